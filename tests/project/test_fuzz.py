"""A small part of `benchmarks.fuzz`, and all that it ever found: damaged files are refused by name, or do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

from benchmarks.fuzz import FINDINGS, as_json, corpus, from_json, numbered, read_all
from benchmarks.fuzz_inputs import Format, formats

INPUTS, SEED = 660, 20


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Format], Path]:
    folder = tmp_path_factory.mktemp("formats")
    return formats(folder), folder


def test_damaged_files_are_refused_or_do_no_harm(known: tuple[dict[str, Format], Path]) -> None:
    made, folder = known
    outcomes = list(read_all(numbered(made, 0, INPUTS, SEED), made, folder))
    found = [(given.format, given.file, given.how, words) for given, outcome, words in outcomes if outcome in FINDINGS]
    assert found == []
    assert {given.format for given, outcome, _ in outcomes if outcome == "refused"} == set(made)


def test_what_was_found_stays_found(known: tuple[dict[str, Format], Path]) -> None:
    made, folder = known
    inputs = [given for given in corpus() if given.format in made]
    assert [outcome for _, outcome, _ in read_all(inputs, made, folder) if outcome in FINDINGS] == []


def test_the_corpus_comes_back(known: tuple[dict[str, Format], Path]) -> None:
    for given in numbered(known[0], 0, 30, 1):
        assert from_json(as_json(given)) == given
