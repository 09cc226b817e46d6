"""`RestartWrapper` with starts that move: told how episodes go, cut off rightly, the same for all environments."""

import warnings

import gymnasium
import numpy as np
import pytest
from gym_helpers import Corridor, Counting
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from curious_explorer import Frontier, GridCells, GymWorld, RestartWrapper
from curious_explorer.errors import NoRewardWarning, UnfinishedEpisodesWarning
from curious_explorer.resets.shared_starts import share_between_processes
from curious_explorer.resets.starts import moving_starts

LENGTH = 40


class Unpaid(gymnasium.Wrapper):
    """Nothing pays."""

    def step(self, action):
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, 0.0, terminated, truncated, info


def make_unpaid():
    return TimeLimit(Unpaid(Corridor(length=LENGTH)), 200)


def make():
    return TimeLimit(Corridor(length=LENGTH), 200)


@pytest.fixture(scope="module")
def resets():
    world = GymWorld(make, cells=GridCells(LENGTH, 0.0, LENGTH))
    return Frontier().explore(world, gamma=0.99, samples=2_000).reset_model


@pytest.fixture(scope="module")
def resets_without_reward():
    world = GymWorld(make_unpaid, cells=GridCells(LENGTH, 0.0, LENGTH))
    return Frontier().explore(world, gamma=0.99, samples=2_000).reset_model


def episode(env, action, seed=None):
    """Run an episode by one action; returns where it began, its steps, and how it ended."""
    observation, info = env.reset(seed=seed)
    begun, steps, ended = float(observation[0]), 0, False
    while not ended:
        _, _, terminated, truncated, _ = env.step(action)
        steps += 1
        ended = terminated or truncated
    return begun, steps, terminated, info


def test_starts_move_back_with_a_learner_that_succeeds(resets):
    env = RestartWrapper(make(), resets)
    begun = [episode(env, 1, seed=0 if number == 0 else None)[0] for number in range(400)]
    assert min(begun[:5]) > LENGTH - 5 or 0.0 in begun[:5]
    assert set(begun[-20:]) == {0.0}
    assert env.starts.progress.own_share == 1.0
    assert env.starts.progress.level == env.starts.farthest


def test_a_failing_episode_is_cut_off_and_not_terminated(resets):
    env = RestartWrapper(make(), resets)
    lengths = {}
    for number in range(60):
        begun, steps, terminated, _ = episode(env, 0, seed=0 if number == 0 else None)
        assert not terminated
        lengths.setdefault(begun, set()).add(steps)
    assert lengths.pop(0.0) == {200}  # the own start has its time limit and no other
    distance = {begun: LENGTH - 1 - begun for begun in lengths}
    assert lengths == {begun: {int(3 * d + 20)} for begun, d in distance.items()}
    assert env.starts.progress.level == 1.0


def test_every_step_of_a_roll_in_is_told(resets):
    counter = Counting(Corridor(length=LENGTH))
    env = RestartWrapper(TimeLimit(counter, 200), resets)
    for number in range(30):
        before = counter.steps
        _, steps, _, info = episode(env, 1, seed=0 if number == 0 else None)
        assert counter.steps - before == steps + info["roll_in_steps"]


def test_a_seed_decides_everything(resets):
    def run(seed):
        env = RestartWrapper(make(), resets, starts=moving_starts(resets))
        return [episode(env, number % 2, seed=seed if number == 0 else None)[:2] for number in range(40)]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_wrappers_of_one_reset_model_share_their_starts_while_they_exist(resets):
    one, other = RestartWrapper(make(), resets), RestartWrapper(make(), resets)
    assert one.starts is other.starts
    episode(one, 1, seed=0)
    assert other.starts.progress.episodes == 1
    del one, other
    assert RestartWrapper(make(), resets).starts.progress.episodes == 0


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_vector_environments_agree_on_shared_starts(resets, kind):
    starts = share_between_processes(moving_starts(resets))
    envs = kind([lambda: RestartWrapper(make(), resets, starts=starts)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=3)
    ended = 0
    for _ in range(1_500):
        _, _, terminated, truncated, _ = envs.step(np.ones(2, dtype=np.int64))
        ended += int((terminated | truncated).sum())
    envs.close()
    assert starts.progress.episodes == ended
    assert starts.progress.level == starts.farthest


def test_a_learner_that_never_finishes_an_episode_is_warned(resets):
    env = RestartWrapper(make(), resets, starts=moving_starts(resets))

    def abandon(episodes):
        for _ in range(episodes):
            env.reset()
            env.step(0)

    with pytest.warns(UnfinishedEpisodesWarning, match="given up"):
        abandon(60)


def test_episodes_that_have_no_end_are_warned_of(resets, monkeypatch):
    monkeypatch.setattr("curious_explorer.gym.restart_wrapper.MOST_STEPS_OPEN", 500)
    starts = moving_starts(resets)
    starts.finish()
    env = RestartWrapper(Corridor(length=LENGTH), resets, starts=starts)
    env.reset(seed=0)
    with pytest.warns(UnfinishedEpisodesWarning, match="no episode ended in 500 steps"):
        [env.step(0) for _ in range(600)]


def test_without_a_reward_starts_are_spread_and_that_is_said(resets_without_reward):
    with pytest.warns(NoRewardWarning):
        env = RestartWrapper(make_unpaid(), resets_without_reward)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        begun = [float(env.reset(seed=0 if number == 0 else None)[0][0]) for number in range(45)]
    assert len(set(begun)) > 10
    assert begun.count(0.0) > 10


@pytest.mark.parametrize("starts", ["spread", "uniform", "mixture"])
def test_other_starts_remain(resets, starts):
    env = RestartWrapper(make(), resets, starts=starts)
    assert env.starts is None
    begun = {float(env.reset(seed=0 if number == 0 else None)[0][0]) for number in range(60)}
    assert len(begun) > 5
