"""PPO that keeps what succeeds: how advantages are scaled."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger

from curious_explorer.sb3.steady_ppo import LEAST_SHARE, SteadyPPO, scaled


def test_advantages_are_divided_by_their_deviation():
    found = scaled(np.array([1.0, 3.0, 5.0, 7.0]), 0.5)
    assert found.mean() == pytest.approx(0.0)
    assert found.std() == pytest.approx(1.0)


def test_noise_is_not_scaled_up():
    noise = 0.001 * np.random.default_rng(0).normal(size=1_000)
    assert scaled(noise, LEAST_SHARE * 1.0).std() == pytest.approx(0.02, rel=0.1)
    assert (scaled(np.zeros(5), 0.0) == 0.0).all()


class Paid(gymnasium.Env):
    """One observation, one step, and the same reward whatever is done: nothing can be learned, only unlearned."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), 1.0, True, False, {}


def test_where_nothing_can_be_gained_the_policy_stays(monkeypatch):
    """A critic that errs by a thousandth of what is paid, at random."""

    def moved(kind):
        model = kind("MlpPolicy", Paid(), n_steps=64, batch_size=64, ent_coef=0.0, vf_coef=0.0, seed=0, device="cpu")
        model.set_logger(Logger(folder=None, output_formats=[]))
        model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=0.1)  # Adam's steps have one size
        model.lr_schedule = lambda _: 0.1
        seen = model.policy.obs_to_tensor(np.ones((1, 1), np.float32))[0]
        errors, chances = np.random.default_rng(1), []
        collect = PPO.collect_rollouts

        def collect_with_errors(self, env, callback, rollout_buffer, n_rollout_steps):
            chances.append(float(self.policy.get_distribution(seen).distribution.probs[0, 0].detach()))
            found = collect(self, env, callback, rollout_buffer, n_rollout_steps)
            rollout_buffer.advantages = errors.normal(size=rollout_buffer.advantages.shape).astype(np.float32) / 1_000
            return found

        monkeypatch.setattr(kind, "collect_rollouts", collect_with_errors, raising=False)
        model.learn(20 * 64)
        monkeypatch.undo()
        assert model.normalize_advantage
        return float(np.abs(np.diff(chances)).mean())

    assert moved(SteadyPPO) < 0.2 * moved(PPO)
