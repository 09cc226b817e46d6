"""A small part of `benchmarks.crashes`: what was stopped in the middle of its files goes on to the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.crashes import KINDS, crash_everywhere
from benchmarks.stopped_commands import Command, explore_rounds, explore_steps, explore_table, files_of


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_stopped_at_a_file_goes_on_to_the_same_bytes(tmp_path: Path, kind: str) -> None:
    tried, wrong = crash_everywhere(explore_table, tmp_path, stride=6, kinds=(kind,))
    assert tried >= 4
    assert wrong == []


def test_counts_that_were_stopped_go_on_to_the_same_bytes(tmp_path: Path) -> None:
    tried, wrong = crash_everywhere(explore_steps, tmp_path, stride=12, kinds=("killed",))
    assert tried >= 2
    assert wrong == []


@pytest.mark.parametrize("command", [explore_steps, explore_rounds])
def test_a_finished_command_that_is_called_again_changes_no_byte(tmp_path: Path, command: Command) -> None:
    command(tmp_path)
    files = files_of(tmp_path)
    command(tmp_path)
    assert files_of(tmp_path) == files


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    for seed in ("1", "2"):  # of the hashes of strings, on which the order of a set depends
        words = [sys.executable, "-m", "benchmarks.random_kills", "--alone", "explore, steps", str(tmp_path / seed)]
        subprocess.run(words, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
    assert files_of(tmp_path / "1") == files_of(tmp_path / "2")
