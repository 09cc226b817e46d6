"""Two processes and one folder: nothing is mixed, nothing is lost, and a reader never sees a half."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from file_helpers import change_json, change_settings

from benchmarks.two_writers import GOOD, races
from curious_explorer import TRPO, ResetModel, TabularWorld, explore
from curious_explorer.environments import combination_lock
from curious_explorer.errors import CheckpointError, ResetModelError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation

SAVER = """
import sys
import numpy as np
from curious_explorer import ResetModel
number = float(sys.argv[2])
for turn in range(int(sys.argv[3])):
    table = np.full((300, 2), 0.5)
    table[turn % 300] = [number / 10, 1.0 - number / 10]
    ResetModel([table, table], gamma=0.9).save(sys.argv[1])
"""


def small(folder: Path, seed: int = 0, rounds: int = 2) -> Exploration:
    world = TabularWorld(combination_lock(2), seed=seed)
    options = {"gamma": 0.9, "rounds": rounds, "visits": 20, "progress": False}
    return explore(world, TRPO(updates=2, episodes=5), checkpoint=folder, **options)


def test_a_reader_finds_one_model_or_the_other_while_two_writers_replace_it(tmp_path: Path) -> None:
    ResetModel([np.full((300, 2), 0.5)], gamma=0.9).save(tmp_path)
    command = [sys.executable, "-c", SAVER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(number), "25"]) for number in (1, 2)]
    loads = 0
    while any(writer.poll() is None for writer in writers):
        assert ResetModel.load(tmp_path).num_states == 300
        loads += 1
    assert [writer.returncode for writer in writers] == [0, 0]
    assert loads > 10
    assert len(list(tmp_path.iterdir())) == 2  # no tables of another are left, and none are missing
    assert len(ResetModel.load(tmp_path).policies) == 2


def test_of_two_processes_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    assert races("explore, steps", 4) == {GOOD: 4}


def test_rounds_of_other_settings_are_refused(tmp_path: Path) -> None:
    small(tmp_path / "one")
    small(tmp_path / "two", seed=1)
    (tmp_path / "one" / "round-0001.npz").write_bytes((tmp_path / "two" / "round-0001.npz").read_bytes())
    with pytest.raises(CheckpointError, match=r"round-0001.*other settings"):
        Exploration.load(tmp_path / "one")
    with pytest.raises(CheckpointError, match=r"round-0001.*other settings"):
        small(tmp_path / "one")


def test_rounds_that_grow_are_the_same_run(tmp_path: Path) -> None:
    small(tmp_path, rounds=2)
    assert len(small(tmp_path, rounds=3).rounds) == 3


def test_a_folder_in_which_nothing_was_finished_may_be_claimed_anew(tmp_path: Path) -> None:
    small(tmp_path)
    for path in tmp_path.glob("round-*.npz"):
        path.unlink()
    assert len(small(tmp_path, seed=1).rounds) == 2


def test_settings_that_were_changed_are_refused(tmp_path: Path) -> None:
    small(tmp_path)
    change_settings(tmp_path / "exploration.json", gamma=0.8)
    with pytest.raises(CheckpointError, match="other settings"):
        Exploration.load(tmp_path)


def test_resets_by_endless_walks_and_of_more_cells_than_states_are_refused(tmp_path: Path) -> None:
    uniform = np.full((25, 3), 1 / 3)
    cells = {"kind": "grid", "bins": [5, 5], "low": [0.0, 0.0], "high": [1.0, 1.0]}
    described = {"environment": "", "observation_space": "", "action_space": "", "cells": cells, "actions": [0, 1, 2]}
    ResetModel([uniform], gamma=0.9, discretisation=StoredDiscretisation(described)).save(tmp_path)
    assert Discretisation.of_reset_model(ResetModel.load(tmp_path)).cells.count == 25
    for bins, words in (([100_000_000, 1], "at most 1,000,000"), ([5, 6], "25 states")):
        change_json(tmp_path / "reset_model.json", discretisation=described | {"cells": cells | {"bins": bins}})
        with pytest.raises(ResetModelError, match=words):
            Discretisation.of_reset_model(ResetModel.load(tmp_path))
    change_json(tmp_path / "reset_model.json", discretisation=described, gamma=1.0 - 1e-13)
    with pytest.raises(ResetModelError, match="steps on average"):
        ResetModel.load(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_reset_model_is_saved_and_read_in_plain_files_alone(tmp_path: Path, kind: str) -> None:
    import os

    model = ResetModel([np.full((2, 2), 0.5)], gamma=0.9)
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "reset_model.json"
    file.rename(tmp_path / "precious")
    content = (tmp_path / "precious").read_bytes()
    if kind == "link":
        file.symlink_to(tmp_path / "precious")
        with pytest.raises(ValueError, match="is a link"):
            model.weighted("last").save(tmp_path / "model")
    else:
        os.mkfifo(file)
    with pytest.raises(ResetModelError, match=r"link|no reset model"):
        ResetModel.load(tmp_path / "model")
    assert (tmp_path / "precious").read_bytes() == content


def test_a_training_whose_table_was_lost_writes_it_again(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    from benchmarks.stopped_commands import train

    train(tmp_path / "run")
    rows = (tmp_path / "run" / "evaluations.csv").read_bytes()
    assert len(rows.splitlines()) >= 4
    (tmp_path / "run" / "evaluations.csv").unlink()
    train(tmp_path / "run")
    assert (tmp_path / "run" / "evaluations.csv").read_bytes() == rows
