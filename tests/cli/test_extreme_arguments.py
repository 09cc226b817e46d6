"""Numbers without end, folders with odd names, environments that tell little: one line, no traceback, no half run."""

import json
import sys
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from curious_explorer.cli.app import main

HUGE = ("9223372036854775808", "99999999999999999999", "1" + "0" * 40)  # 2^63; more than 2^64; more than 2^128
COMMANDS = {
    "explore a table": ["explore", "dcl/3", "--samples"],
    "explore rounds": ["explore", "dcl/3", "--rounds"],
    "explore steps": ["explore", "FrozenLake-v1", "--samples"],
    "train": ["train", "CartPole-v1", "--samples"],
    "solve": ["solve", "FrozenLake-v1", "--samples"],
    "compare": ["compare", "--environments", "dcl/3", "--methods", "r-max", "--samples"],
    "reproduce": ["reproduce", "--depths", "2", "--seeds"],
    "hardness": ["hardness", "dcl/3", "--gamma"],
    "plan": ["plan", "dcl/3", "--eta"],
    "seed": ["explore", "dcl/3", "--seed"],
}
FOLDERS = ("explore", "train", "solve", "compare", "reproduce")


class Silent(gymnasium.Env):
    """Its info is None, in a reset and in a step."""

    observation_space, action_space = spaces.Discrete(4), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return 0, None

    def step(self, action):
        self.state = min(3, self.state + int(action))
        return self.state, float(self.state == 3), self.state == 3, False, None


gymnasium.register("Silent-v0", Silent, max_episode_steps=20, disable_env_checker=True)


def told(monkeypatch, capsys, *words, code):
    monkeypatch.setattr(sys, "argv", ["curious-explorer", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    caught = capsys.readouterr()
    message = caught.out + caught.err
    assert (stop.value.code or 0) == code, message
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_without_end_are_refused_at_once(command, number, monkeypatch, capsys, tmp_path):
    words = COMMANDS[command]
    if words[0] in ("train", "solve"):
        pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    if command == "seed" and number == HUGE[0]:
        return  # which is a seed like any other below 2^64
    out = ["--out", tmp_path / "run"] if words[0] in FOLDERS else []
    began = time.monotonic()
    told(monkeypatch, capsys, *words, number, *out, code=2)
    assert time.monotonic() - began < 20.0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("compare", "--environments", "dcl/3", "--methods", "r-max", "--seeds", "100000000"), "at most 1000000"),
        (("reproduce", "--depths", "2", "--seeds", "100000000"), "at most 1000000"),
        (("solve", "FrozenLake-v1", "--seeds", "100000000"), "at most 1000000"),
        (("train", "CartPole-v1", "--num-envs", "1000000"), "at most 10000"),
        (("train", "CartPole-v1", "--set", "n_steps=100000000"), "n_steps times num_envs"),
        (("train", "CartPole-v1", "--set", "net_arch=[100000,100000]"), "weights between layers"),
    ],
)
def test_sizes_that_no_machine_holds_are_refused_at_once(words, fact, monkeypatch, capsys, tmp_path):
    if words[0] in ("train", "solve"):
        pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    began = time.monotonic()
    assert fact in told(monkeypatch, capsys, *words, "--out", tmp_path / "run", code=2)
    assert time.monotonic() - began < 20.0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "dcl/3", "--eta", "1e-300"),
        ("plan", "dcl/3", "--delta", "1e-320"),
        ("hardness", "garnet/99999999999"),
        ("hardness", "dcl/3", "--gamma", "nan"),
    ],
)
def test_numbers_next_to_nothing_end_in_words(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["curious-explorer", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["[/b]", "a[bold]b", "with space", "=1+1", "%s{0}", "ünï"])
def test_folders_of_any_name(name, monkeypatch, capsys, tmp_path):
    message = told(monkeypatch, capsys, "explore", "dcl/2", "--samples", "6000", "--out", tmp_path / name, code=0)
    assert name in message
    assert json.loads((tmp_path / name / "reset_model" / "reset_model.json").read_text())
    assert name in told(monkeypatch, capsys, "certify", tmp_path / "no" / name, code=2)


@pytest.mark.parametrize("command", ["explore", "train"])
def test_an_environment_that_tells_no_more_than_it_must(command, monkeypatch, capsys, tmp_path):
    if command == "train":
        pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    words = [command, "Silent-v0", "--samples", "600", "--out", tmp_path / "run"]
    if command == "train":
        words += ["--num-envs", "1", "--evaluation-episodes", "1", "--set", "n_steps=64"]
    told(monkeypatch, capsys, *words, code=0)


def test_what_cannot_be_trained_claims_no_folder(monkeypatch, capsys, tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    out = ["--out", tmp_path / "run"]
    told(monkeypatch, capsys, "train", "Silent-v0", "--algorithm", "sac", "--samples", "100", *out, code=2)
    small = ["--num-envs", "1", "--evaluation-episodes", "1", "--set", "n_steps=32"]
    told(monkeypatch, capsys, "train", "Blackjack-v1", "--samples", "64", *small, *out, code=0)


def test_no_cell_of_a_table_is_a_formula(tmp_path):
    from curious_explorer.studies.runner import csv_text

    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "\r=1", "plain"]
    rows = csv_text(("name", "value"), [(name, np.float64(-0.5)) for name in names])
    for line in rows.split("\n")[1:-1]:
        assert line.lstrip('"')[:1] in ("'", "p")
        assert line.endswith("-0.5"), "numbers stay numbers"
