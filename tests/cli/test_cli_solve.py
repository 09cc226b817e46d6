"""``solve`` and ``play`` from the command line, as a person would."""

import html
import json
import re
import shlex
import sys
from pathlib import Path

import gymnasium
import pytest
from cli_helpers import told as call
from file_helpers import frames_of

from curious_explorer.cli.app import main

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

MODULE = '''
import gymnasium
import numpy as np


class Line(gymnasium.Env):
    """Twelve cells in a row, of which the last pays; a wrong step leads back to the first."""

    observation_space = gymnasium.spaces.Discrete(13)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at = self.at + 1 if action == self.at % 2 else 0
        return self.at, float(self.at == 12), self.at == 12, False, {}


gymnasium.register("OwnLine-v0", entry_point=Line, max_episode_steps=30)
'''


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_line.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "own_line:OwnLine-v0"
    sys.modules.pop("own_line", None)
    gymnasium.registry.pop("OwnLine-v0", None)


def test_an_environment_of_ones_own_becomes_an_agent_that_can_be_played(own_module):
    told = call("solve", own_module, "--samples", "10000")
    run = Path("results/solve/own_line-OwnLine-v0")
    assert "Solved: 100%" in told
    assert f"curious-explorer play {run}" in told
    summary = json.loads((run / "summary.json").read_text())
    assert summary["success"] == 1.0
    page = (run / "report.html").read_text()
    assert "no video, because" in page  # it draws no pictures
    assert page.count("data:image/png") == 3
    assert "<script src" not in page
    compared = page.split("Agents compared</h3>")[1].split("</table>")[0]
    stages = json.loads((run / "stages.json").read_text())["stages"]
    assert compared.count("<tr>") == 1 + len(stages["choose"]["measured"]), "no two agents share a name"
    assert "mean return 1" in call("play", run, "--episodes", "2")
    assert "finished" in call("solve", own_module, "--samples", "10000")


def test_what_solve_prints_and_writes_can_be_given_as_it_stands(own_module):
    out = "my runs/the line"
    told = call("solve", own_module, "--samples", "5000", "--out", out)
    printed = re.findall(r"curious-explorer (play .*?)\s+\(in Python", told)
    page = html.unescape(Path(out, "report.html").read_text())
    printed += re.findall(r"<p>curious-explorer ((?:play|solve) .*?)</p>", page)
    assert [shlex.split(each)[0] for each in printed] == ["play", "solve", "play"]
    for each in printed:
        words = shlex.split(each)
        call(*words, *(["--episodes", "1"] if words[0] == "play" else ["--out", out]))


def test_what_train_has_left_is_played_and_filmed(tmp_path):
    pytest.importorskip("pygame")
    pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "run"
    few = ["--samples", "600", "--num-envs", "2", "--set", "n_steps=64", "--evaluation-episodes", "1"]
    call("train", "CartPole-v1", *few, "--out", out)
    told = call("play", out, "--episodes", "2", "--video")
    steps = [int(each) for each in re.findall(r"in (\d+) steps", told)]
    frames = frames_of(out / "play.mp4")
    assert len(frames) == sum(steps) + len(steps), "every step, and where each episode begins"
    assert all(frame.std() > 3.0 for frame in frames), "none is blank"
    assert "mean return" in call("play", out, "--episodes", "1", "--which", "last")


def test_several_seeds_have_a_folder_each(own_module):
    told = call("solve", own_module, "--samples", "5000", "--seeds", "2", "--executor", "inline", "--out", "many")
    assert "seed 0: " in told
    assert "seed 1: " in told
    kept = json.loads(Path("many/seeds.json").read_text())
    assert [run["seed"] for run in kept["runs"]] == [0, 1]
    assert all(Path(f"many/seed-{seed}/report.html").is_file() for seed in (0, 1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["solve", "MountanCar-v0"], "did you mean 'MountainCar-v0'"),
        (["solve", "nowhere_at_all:Id-v0"], "nowhere_at_all, which is not installed"),
        (["solve", "MountainCar-v0", "--samples", "10"], "the least is 5,000"),
        (["solve", "MountainCar-v0", "--executor", "ray"], "give --seeds"),
        (["solve", "MountainCar-v0", "--seeds", "0"], "seeds is 0"),
        (["play", "nowhere"], "holds no run of curious-explorer solve or train"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["curious-explorer", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    found = capsys.readouterr().err
    assert message in found
    assert "Traceback" not in found


def test_control_c_says_what_is_kept(own_module, monkeypatch):
    from curious_explorer.studies import solving

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(solving, "explore", interrupt)
    told = call("solve", own_module, "--samples", "6000", "--out", "half", code=130)
    assert "Interrupted. What was finished is kept in half; the same command goes on from there." in told
