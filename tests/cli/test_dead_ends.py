"""No way that the program points out ends in a wall: printed commands run, finished runs say so, packages are named."""

import builtins
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys

import gymnasium
import pytest
from cli_helpers import call

from curious_explorer import FiniteMDP
from curious_explorer.cli import terminal
from curious_explorer.errors import StudyError
from curious_explorer.settings_description import make_folder
from curious_explorer.studies import reproduction
from curious_explorer.studies.paper_experiments import Study

LAKE = ["explore", "FrozenLake-v1", "--cells", "identity", "--samples"]


def commands_in(output):
    return [
        shlex.split(re.sub(r"\s+\(curious_explorer.*|\s+--video.*", "", found))
        for found in re.findall(r"curious-explorer ((?:train|certify|explore|play)\b[^)\n]*)", output)
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["MiniGrid-FourRooms-v0", "--samples", "2000", "--layout", "3"],
        ["FrozenLake-v1", "--cells", "identity", "--samples", "2000"],
        ["dcl/2"],
    ],
)
def test_every_command_that_is_printed_runs(words, tmp_path):
    if words[0].startswith("MiniGrid"):
        pytest.importorskip("minigrid", reason="the extra gym is not installed")
    printed = commands_in(call("explore", *words, "--out", tmp_path / "run"))
    assert printed
    for command in printed:
        smaller = []
        if command[0] == "train":
            pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
            sizes = ["--samples", "300", "--num-envs", "2", "--evaluation-episodes", "1", "--set", "n_steps=32"]
            smaller = [*sizes, "--out", str(tmp_path / "trained")]
        elif command[0] == "certify":
            smaller = ["--walks", "200"]
        after = commands_in(call(*command, *smaller))
        if command[0] == "train":
            assert [words[0] for words in after] == ["play"]
            for following in after:
                call(*following, "--episodes", "1")
                call(*following, "--episodes", "1", "--stochastic")
            kept = json.loads((tmp_path / "trained" / "training.json").read_text())
            assert "finished before" in call(*command, *smaller)
            assert kept["settings"]["layout"] == (3 if "--layout" in words else None), (
                "the explored layout is trained in"
            )


class Words(gymnasium.Env):
    """Five rooms in a row, told by name."""

    observation_space, action_space = gymnasium.spaces.Text(9), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room = 0
        return "room0", {}

    def step(self, action):
        self.room = max(0, self.room + (1 if action else -1))
        return f"room{self.room}", float(self.room == 4), self.room == 4, False, {}


def test_no_command_is_printed_that_no_network_can_follow(tmp_path, monkeypatch):
    gymnasium.register("WordsOnly-v0", Words, max_episode_steps=20, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, "WordsOnly-v0", gymnasium.registry["WordsOnly-v0"])
    output = call("explore", "WordsOnly-v0", "--samples", "300", "--out", tmp_path / "run")
    assert "the first reward was seen" in output
    assert commands_in(output) == []
    assert "a network can see nothing of observations in Text" in output


def test_a_finished_exploration_says_so_and_goes_on_with_more_samples(tmp_path):
    out = ["--out", tmp_path / "run"]
    assert "finished before" not in call(*LAKE, 600, *out)
    assert "finished before" in call(*LAKE, 600, *out)
    more = call(*LAKE, 1200, *out)
    assert "finished before" not in more
    assert "1,200 samples" in more
    assert "1,200 samples" in call(*LAKE, 600, *out), "what was taken stays"


def test_more_samples_of_cells_that_were_chosen_are_used_to_the_last(tmp_path):
    car = ["explore", "MountainCar-v0", "--out", tmp_path / "run", "--samples"]
    assert "1,500 samples" in call(*car, 1500)
    assert "4,000 samples" in call(*car, 4000), "the look takes as many steps as before"
    assert "finished before" in call(*car, 4000)
    settings = json.loads((tmp_path / "run" / "environment.json").read_text())["settings"]
    assert settings["look"] == 300


def test_a_cell_function_that_made_nothing_is_refused(tmp_path):
    car = tmp_path / "car"
    call("explore", "dcl/2", "--out", tmp_path / "lock")
    call("explore", "MountainCar-v0", "--samples", 300, "--cells", "4x4", "--out", car)
    for words, what in (
        (["certify", tmp_path / "lock"], "states of a table"),
        (["certify", car], "cells of the kind grid"),
        (["train", "MountainCar-v0", "--reset-model", car, "--out", tmp_path / "trained"], "cells of the kind grid"),
    ):
        if words[0] == "train":
            pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
        with pytest.raises(ValueError, match=f"cell_function is os:getpid, but the run has {what}"):
            call(*words, "--cell-function", "os:getpid")


def test_certify_names_options_that_work(tmp_path):
    call(*LAKE, 600, "--out", tmp_path / "run")
    output = " ".join(call("certify", tmp_path / "run", "--walks", "200").split())
    (named,) = re.findall(r"explore into another folder with (.*?)\.", output)
    call(*LAKE, 30_000, *named.split(), "--out", tmp_path / "recorded")
    output = call("certify", tmp_path / "recorded", "--walks", "200")
    assert "no transitions were recorded" not in output


def test_a_table_is_read_from_an_id_with_arguments():
    assert FiniteMDP.from_gymnasium("FrozenLake-v1?map_name=8x8").num_states == 64


def test_room_for_cells_can_be_given_where_they_are_chosen(tmp_path):
    output = call("explore", "CartPole-v1", "--max-cells", "500", "--samples", "1500", "--out", tmp_path)
    assert "500 cells" in output


def test_a_package_that_an_environment_misses_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_box2d(name, *args, **kwargs):
        if name.split(".")[0] == "Box2D":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_box2d)
    with pytest.raises(ValueError, match="Box2D"):
        call("explore", "BipedalWalker-v3", "--samples", "300", "--out", tmp_path)


def test_folders_that_cannot_be_are_explained_alike(tmp_path):
    (tmp_path / "file").touch()
    for words in (["demo", "--depth", "2"], ["explore", "dcl/2"], ["reproduce", "--depths", "2", "--seeds", "1"]):
        with pytest.raises(StudyError.__base__, match="is a file, expected a folder; choose another"):
            call(*words, "--out", tmp_path / "file")
    with pytest.raises(StudyError, match="cannot be written"):
        make_folder(tmp_path / "file" / "inside")


def test_a_reproduction_without_the_encoder_does_the_rest(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "imageio_ffmpeg" else real(name))
    drawn = []
    monkeypatch.setattr(reproduction, "draw_figure", lambda job: drawn.append(job.family))
    reproduction.reproduce(Study(depths=(2,), environments=("dcl",), optimizers=("trpo",), seeds=1), tmp_path / "out")
    assert drawn
    assert "video" not in drawn
    assert (tmp_path / "out" / "report.html").exists()


def test_a_terminal_without_some_letters_ends_nothing():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "curious_explorer.cli", "compare", "--list"]
    told = subprocess.run(words, capture_output=True, env=environment)
    assert told.returncode == 0, told.stderr
    assert b"r-max" in told.stdout


def test_piped_progress_is_lines(monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setattr(terminal, "BETWEEN_LINES", 0.0)
    with terminal.ProgressLine(Console(stderr=True), ("{task.completed} of {task.total}",), 10) as line:
        line.update(completed=4)
        line.update(completed=8)
    assert capsys.readouterr().err.splitlines() == ["40%: 4 of 10", "80%: 8 of 10"]


def test_rounds_are_told_where_output_is_piped(monkeypatch, tmp_path):
    monkeypatch.setattr(terminal, "BETWEEN_LINES", 0.0)
    output = call("explore", "dcl/2", "--rounds", "2", "--samples", "9000", "--out", tmp_path / "run")
    assert re.search(r"exploring: round 1, [\d,]+ samples", output)
