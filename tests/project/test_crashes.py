"""A small part of `benchmarks.crashes`: an exploration stopped in the middle of its files goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.crashes import KINDS, crash_everywhere, explore_table


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_stopped_at_a_file_goes_on_to_the_same_bytes(tmp_path: Path, kind: str) -> None:
    tried, wrong = crash_everywhere(explore_table, tmp_path, stride=6, kinds=(kind,))
    assert tried >= 4
    assert wrong == []
