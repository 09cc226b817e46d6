"""PPO with a bonus for what is new: what is paid, who learns from it, and that a training goes on bit for bit."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from curious_explorer.sb3.intrinsic_ppo import (
    PPOWithCounts,
    PPOWithDistillation,
    PPOWithNoveltyDifference,
    advantages,
)
from curious_explorer.sb3.novelty import Counts, Distillation, NoveltyDifference

ALL = (PPOWithDistillation, PPOWithNoveltyDifference, PPOWithCounts)


class Ladder(gymnasium.Env):
    """Up or down; it pays at the top alone, and ends there."""

    observation_space = spaces.Box(0.0, 1.0, (9,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.age = 0
        return self._look(), {}

    def step(self, action):
        self.steps += 1
        self.age += 1
        self.place = min(8, max(0, self.place + (1 if action else -1)))
        top = self.place == 8
        return self._look(), float(top), top, self.age == 30, {}

    def _look(self):
        return np.eye(9, dtype=np.float32)[self.place]


@pytest.fixture(autouse=True)
def one_thread():
    """More of them wait for each other in networks as small as these."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def rollout(places):
    """Observations of one environment that goes through these places, as (steps, 1, 9), and what they led to."""
    seen = np.eye(9, dtype=np.float32)[places][:, None]
    return seen[:-1], seen[1:]


def test_advantages_of_a_bonus_do_not_end_with_episodes():
    """Against the plain sum: A_t = sum_k (gamma lambda)^k delta_{t+k}."""
    random = np.random.default_rng(0)
    rewards, values = random.random((6, 2)), random.random((7, 2))
    surprises = rewards + 0.9 * values[1:] - values[:-1]
    expected = [sum((0.9 * 0.8) ** (k - t) * surprises[k] for k in range(t, 6)) for t in range(6)]
    np.testing.assert_allclose(advantages(rewards, values, 0.9, 0.8), expected)


def test_the_error_of_what_was_learned_falls_and_of_what_was_not_stays():
    torch.manual_seed(0)
    novelty = Distillation(9, 1)
    _, following = rollout([0, 1, 2, 3, 2, 1] * 40)
    novelty.learn(following, warming_up=True)
    new = np.eye(9, dtype=np.float32)[[7, 8]][:, None]
    before, untouched = novelty.error(following).mean(), novelty.error(new).mean()
    for _ in range(300):
        novelty.learn(following)
    assert novelty.error(following).mean() < 0.1 * before
    assert novelty.error(new).mean() > 0.2 * untouched


def test_noveld_pays_once_an_episode_and_only_for_a_rise():
    torch.manual_seed(0)
    novelty = NoveltyDifference(9, 1)
    seen, following = rollout([0, 1, 2, 1, 2, 0])
    ended = np.zeros((5, 1), dtype=bool)
    paid = novelty.bonus(seen, following, ended)
    rise = np.maximum(novelty.error(following) - 0.5 * novelty.error(seen), 0.0)
    np.testing.assert_allclose(paid[:2], rise[:2])
    assert not paid[2:].any()  # 1, 2 and 0 were met in this episode
    novelty.begin_episodes()
    np.testing.assert_allclose(novelty.bonus(seen, following, ended), paid)


def test_counts_pay_by_how_often():
    seen, following = rollout([0, 1, 0, 1, 0])
    paid = Counts(9, 1).bonus(seen, following, np.zeros((4, 1), dtype=bool))
    np.testing.assert_allclose(paid[:, 0], [1.0, 1.0, 2**-0.5, 2**-0.5])


@pytest.mark.parametrize("kind", ALL)
def test_it_climbs_and_every_step_is_counted(kind):
    torch.manual_seed(0)
    inside = [Ladder() for _ in range(4)]
    envs = VecNormalize(DummyVecEnv([lambda env=env: env for env in inside]), norm_reward=False)
    model = kind("MlpPolicy", envs, n_steps=64, batch_size=64, learning_rate=1e-3, gamma=0.95, seed=0, device="cpu")
    model.learn(4_000)
    assert sum(env.steps for env in inside) == model.num_timesteps
    observation, ended, length = envs.reset(), [False], 0
    while not ended[0]:
        observation, _, ended, _ = envs.step(model.predict(observation, deterministic=True)[0])
        length += 1
    assert length == 8  # straight to the top


@pytest.mark.parametrize("kind", ALL)
def test_what_a_bonus_knows_is_kept(kind):
    def fresh(seed):
        torch.manual_seed(seed)
        return kind("MlpPolicy", DummyVecEnv([Ladder] * 2), n_steps=32, batch_size=32, seed=seed, device="cpu")

    model, other = fresh(0), fresh(1)
    model.learn(700)
    other.restore_bonus(model.bonus_state())
    for name, value in model.bonus_state().items():
        assert torch.equal(value, other.bonus_state()[name]), name
    seen, following = rollout([0, 1, 2, 3])
    seen, following = np.repeat(seen, 2, axis=1), np.repeat(following, 2, axis=1)
    ended = np.zeros((3, 2), dtype=bool)
    model._novelty.begin_episodes()
    other._novelty.begin_episodes()
    np.testing.assert_array_equal(
        model._novelty.bonus(seen, following, ended), other._novelty.bonus(seen, following, ended)
    )


def test_numbers_are_seen_as_rows_with_a_one():
    envs = DummyVecEnv([lambda: gymnasium.make("FrozenLake-v1")] * 2)
    model = PPOWithNoveltyDifference("MlpPolicy", envs, n_steps=32, batch_size=32, device="cpu")
    model.learn(64)
    assert model._following.shape == (32, 2, 16)
    np.testing.assert_array_equal(model._following.sum(axis=2), 1.0)


class Bits(Ladder):
    observation_space = spaces.MultiBinary(9)


def test_observations_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="FlattenObservation"):
        PPOWithDistillation("MlpPolicy", DummyVecEnv([Bits]), device="cpu")
