"""Faults of an environment are told as its own, in a line, whichever command meets them; so are wrong settings."""

import re

import gymnasium
import numpy as np
import pytest
from cli_helpers import refused
from gymnasium import spaces

PREFIX = "faulty"


class Sound(gymnasium.Env):
    """Nothing is wrong with this one; the others differ in one thing."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.time += 1
        return self.observed(), self.paid(), self.time > 20, False, {}

    def observed(self):
        return np.full(3, self.time, np.float32)

    def paid(self):
        return 0.0


class Unknown(Sound):
    def observed(self):
        return np.full(3, np.nan if self.time > 5 else 0.0, np.float32)


class Long(Sound):
    def observed(self):
        return np.zeros(4, np.float32)


class Priceless(Sound):
    def paid(self):
        return float("nan")


class Told(Sound):
    def paid(self):
        return "much"


class Burning(Sound):
    def step(self, action):
        raise RuntimeError("the motor is on fire")


class Short(Sound):
    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False


class Unseeded(Sound):
    def reset(self):
        return np.zeros(3, np.float32), {}


class Spaceless(gymnasium.Env):
    def reset(self, *, seed=None, options=None):
        return 0, {}


FAULTS = {
    Unknown: "finite|NaN",
    Long: r"shape \(4,\)",
    Priceless: "paid a reward of nan",
    Told: "much",
    Burning: "the motor is on fire",
    Short: "expected 5, got 3",
    Unseeded: "when reset",
    Spaceless: "no observation_space",
}
for kind in FAULTS:
    gymnasium.register(f"{PREFIX}/{kind.__name__}-v0", kind, max_episode_steps=50, disable_env_checker=True)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("command", ["explore", "train", "solve", "compare"])
def test_faults_are_told_as_the_environments_own(command, fault, monkeypatch, capsys, tmp_path):
    if command in ("train", "solve"):
        pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    name = f"{PREFIX}/{fault.__name__}-v0"
    words = [command, name, "--samples", "6000", "--out", tmp_path / "run"]
    if command == "compare":
        words[1:2] = ["--environments", name, "--methods", "frontier", "--seeds", "1", "--workers", "1"]
    message = refused(monkeypatch, capsys, *words)
    assert re.search(FAULTS[fault], message), message
    assert fault.__name__ in message or command == "explore"


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        ("n_epochs=many", "n_epochs is 'many'"),
        ("ent_coef=x", "ent_coef is 'x'"),
        ("learning_rate=NaN", "learning_rate is nan"),
        ("gamma=2", "from 0 to 1"),
    ],
)
def test_hyperparameters_that_are_no_numbers_are_refused_before_anything_is_learned(
    given, fact, monkeypatch, capsys, tmp_path
):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    out = tmp_path / "run"
    assert fact in refused(monkeypatch, capsys, "train", "CartPole-v1", "--set", given, "--out", out)
    assert not out.exists()


def test_modules_that_cannot_be_imported_are_named(monkeypatch, capsys, tmp_path):
    (tmp_path / "with_a_slip.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(tmp_path)
    for command in ("explore", "hardness"):
        message = refused(monkeypatch, capsys, command, "with_a_slip:Mine-v0")
        assert "with_a_slip" in message
        assert "invalid syntax" in message


def test_sizes_that_no_machine_holds_are_refused_at_once(monkeypatch, capsys):
    assert "at most 100,000,000" in refused(monkeypatch, capsys, "hardness", "dcl/5000000000000")
