"""A small part of `benchmarks.crashes`: what was stopped in the middle of its files goes on to the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.crashes import KINDS, STOPPED, crash_everywhere, in_process
from benchmarks.stopped_commands import Command, different, explore_rounds, explore_steps, explore_table, files_of


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


def careless(folder: Path) -> None:
    """Writes two files that belong together, and flushes nothing."""
    folder.mkdir(exist_ok=True)
    for name in ("first", "second"):
        if not (folder / name).exists():
            (folder / "temporary").write_text("content")
            os.replace(folder / "temporary", folder / name)
    (folder / "last").write_text("the end")


def in_place(folder: Path) -> None:
    """Writes a file under its own name, and takes what is there for whole."""
    folder.mkdir(exist_ok=True)
    if not (folder / "file").exists():
        os.close(os.open(folder / "file", os.O_WRONLY | os.O_CREAT))
        (folder / "file").write_text("content")


@pytest.mark.parametrize(("command", "kind"), [(careless, "unsynced"), (in_place, "killed"), (in_place, "failed")])
def test_careless_commands_are_found_out(tmp_path: Path, command: Command, kind: str) -> None:
    _, wrong = crash_everywhere(command, tmp_path, kinds=(kind,))
    assert any("other bytes in" in each for each in wrong)


def test_what_a_power_cut_loses(tmp_path: Path) -> None:
    def flushed(path: Path, content: str) -> None:
        with open(path, "w") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())

    def write(folder: Path) -> None:
        folder.mkdir()
        flushed(folder / "old", "old")
        flushed(folder / "kept", "kept")
        flushed(folder / "new", "new")
        (folder / "loose").write_text("never flushed")
        os.replace(folder / "new", folder / "old")
        os.remove(folder / "kept")
        os.replace(folder / "loose", folder / "latest")
        (folder / "end").touch()

    _, operations, _ = in_process(write, tmp_path / "whole")
    in_process(write, tmp_path / "cut", operations, "unsynced")
    found = {path.name: path.read_text() for path in (tmp_path / "cut").iterdir()}
    assert found == {"old": "old", "new": "new", "kept": "kept", "latest": ""}


def test_what_was_torn_has_lost_its_second_half(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        folder.mkdir()
        (folder / "temporary").write_text("0123456789")
        os.replace(folder / "temporary", folder / "file")

    assert in_process(write, tmp_path / "torn", 3, "torn")[0] == STOPPED
    assert (tmp_path / "torn" / "temporary").read_text() == "01234"


def test_an_exploration_of_solve_that_was_finished_is_not_written_in_other_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    from benchmarks.stopped_commands import solve
    from curious_explorer.resets.reset_model import ResetModel

    counts = "exploration/counts.npz"
    solve(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(ResetModel, "save", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        with pytest.raises(OSError, match="no space"):
            solve(tmp_path / "stopped")
    before = (tmp_path / "stopped" / counts).read_bytes()
    solve(tmp_path / "stopped")
    assert (tmp_path / "stopped" / counts).read_bytes() == before == (tmp_path / "whole" / counts).read_bytes()
    assert different(files_of(tmp_path / "stopped"), files_of(tmp_path / "whole")) == []
