"""Reminders of what was cloned: fewer and fewer, and stored with all else."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
import torch
from stable_baselines3 import PPO

from curious_explorer.sb3.reminders import Reminders


def reminders(first=2.0, soft=0.0, **given):
    generator = np.random.default_rng(0)
    seen = generator.normal(size=(40, 4)).astype(np.float32)
    return Reminders(seen, (seen[:, 0] > 0).astype(np.int64), np.arange(2), soft, first=first, **given)


def test_a_policy_is_pulled_back_to_what_was_advised():
    model, kept = PPO("MlpPolicy", gymnasium.make("CartPole-v1"), seed=0, device="cpu"), reminders(first=50.0)
    inputs = kept.inputs(model.policy, None)

    def agreement():
        with torch.no_grad():
            return float((model.policy.get_distribution(inputs).mode() == kept.advised).float().mean())

    before = agreement()
    for _ in range(5):
        kept.remind(model, None)
    assert agreement() > max(0.9, before)


def test_they_fade_and_end():
    kept, model = reminders(first=1.05), PPO("MlpPolicy", gymnasium.make("CartPole-v1"), seed=0, device="cpu")
    ends = []
    for _ in range(3):
        ends.append(kept.over)
        kept.remind(model, None)
    assert ends == [False, False, True]


@pytest.mark.parametrize("parts", [False, True])
def test_they_are_stored_and_restored(parts):
    kept = reminders(soft=0.1)
    if parts:
        kept = Reminders(
            {"numbers": np.ones((3, 2)), "eye": np.zeros((3, 4))}, np.arange(3), np.arange(3), 0.1, first=2.0
        )
    again = Reminders.restored(*kept.state())
    first, second = kept.state(), again.state()
    assert first[1] == second[1]
    assert first[0].keys() == second[0].keys()
    assert all(torch.equal(first[0][name], second[0][name]) for name in first[0])


def test_a_share_of_what_is_cloned_is_random():
    kept = reminders(soft=0.5)
    torch.manual_seed(0)
    drawn = [kept.batch(torch.zeros(40, 4)) for _ in range(200)]
    other = torch.cat([cloned != kept.advised[places] for places, _, cloned in drawn]).float().mean()
    assert float(other) == pytest.approx(0.25, abs=0.02)  # half of the random ones are those that were advised
