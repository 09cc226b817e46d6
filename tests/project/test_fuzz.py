"""A small part of `benchmarks.fuzz`, and all that it ever found: damaged files are refused by name, or do no harm."""

from __future__ import annotations

import pytest

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

from benchmarks.fuzz import FINDINGS, as_json, corpus, from_json, numbered, read_all
from benchmarks.fuzz_inputs import Format, Input, formats

INPUTS, SEED = 840, 20


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Format]:
    return formats(tmp_path_factory.mktemp("formats"))


def test_damaged_files_are_refused_or_do_no_harm(known: dict[str, Format]) -> None:
    outcomes = list(read_all(numbered(known, 0, INPUTS, SEED), known))
    found = [(given.format, given.file, given.how, words) for given, outcome, words in outcomes if outcome in FINDINGS]
    assert found == []
    assert {given.format for given, outcome, _ in outcomes if outcome == "refused"} == set(known)


def test_files_of_another_run_are_not_read_as_part_of_this_one(known: dict[str, Format]) -> None:
    inputs = [
        Input(name, file, content, "of another run")
        for name, format in known.items()
        for file, content in format.others.items()
    ]
    outcomes = {(given.format, given.file): outcome for given, outcome, _ in read_all(inputs, known)}
    assert [place for place, outcome in outcomes.items() if outcome in FINDINGS] == []
    assert outcomes["solved", "stages.json"] == outcomes["rounds", "round-0001.npz"] == "refused"
    assert outcomes["finished", "summary.json"] == outcomes["finished", "plain_rewards.json"] == "refused"
    assert outcomes["layouts-summary", "summary.json"] == "refused"


def test_what_was_found_stays_found(known: dict[str, Format]) -> None:
    inputs = [given for given in corpus() if given.format in known]
    assert [outcome for _, outcome, _ in read_all(inputs, known) if outcome in FINDINGS] == []


def test_the_corpus_comes_back(known: dict[str, Format]) -> None:
    for given in numbered(known, 0, 30, 1):
        assert from_json(as_json(given)) == given
