"""Demonstrations: the best known way to the reward, walked again, counted, and only where it gets there."""

import numpy as np
import pytest
from counted_helpers import counted
from gym_helpers import Corridor

from curious_explorer import FiniteMDP, Frontier, GridCells, GymWorld, ResetModel, TabularWorld, explore
from curious_explorer.environments import deep_sea
from curious_explorer.errors import DemonstrationError
from curious_explorer.explorers.demonstrations import demonstrations


def test_they_take_the_shortest_way_and_every_step_is_counted():
    world = TabularWorld(deep_sea(15), seed=2)
    exploration = explore(world, gamma=0.99, samples=20_000)
    before = world.samples
    found = exploration.demonstrations(world, 4)
    assert [len(episode) for episode in found] == [15] * 4
    assert world.samples - before == 60
    for episode in found:
        assert episode.terminated
        assert episode.returned == pytest.approx(1.0, abs=0.02)
        assert episode.actions == episode.advised
        assert episode.observations == episode.states
        assert len(episode.states) == 16


def test_observations_and_actions_are_the_environments_own():
    world = GymWorld(lambda: Corridor(length=12), cells=GridCells(12, 0.0, 12.0), seed=1)
    exploration = Frontier().explore(world, gamma=0.99, samples=1_000)
    (episode,) = exploration.demonstrations(world, 1)
    assert [float(seen[0]) for seen in episode.observations] == list(range(12))
    assert episode.actions == [1] * 11
    assert episode.rewards == [0.0] * 10 + [1.0]


def test_with_noise_the_advice_stays_the_plans():
    corridor = GymWorld(lambda: Corridor(length=12), cells=GridCells(12, 0.0, 12.0), seed=1)
    exploration = Frontier().explore(corridor, gamma=0.99, samples=1_000)
    found = exploration.demonstrations(corridor, 20, noise=0.3, seed=4)
    assert {advised for episode in found for advised in episode.advised} == {1}
    wrong = np.mean([action == 0 for episode in found for action in episode.actions])
    assert 0.08 < wrong < 0.25  # half of the random actions


def test_episodes_that_do_not_get_there_are_left_out():
    world = TabularWorld(FiniteMDP.from_gymnasium("FrozenLake-v1"), seed=3)
    exploration = explore(world, gamma=0.99, samples=20_000)
    found = exploration.demonstrations(world, 10)
    assert len(found) == 10
    assert all(episode.returned == 1.0 for episode in found)


def test_samples_are_never_exceeded():
    world = TabularWorld(deep_sea(15), seed=2)
    exploration = explore(world, gamma=0.99, samples=20_000)
    before = world.samples
    assert len(exploration.demonstrations(world, 10, samples=50)) == 3
    assert world.samples - before == 50


def test_what_cannot_be_demonstrated_is_said():
    world = TabularWorld(deep_sea(10), seed=2)
    blind = counted(deep_sea(10))
    blind.paid[:] = 0.0
    with pytest.raises(DemonstrationError, match="no reward was seen"):
        demonstrations(world, blind, gamma=0.99)
    other = TabularWorld(deep_sea(10, permute_actions=7), seed=2)
    with pytest.raises(DemonstrationError, match="not as it was counted"):
        demonstrations(other, counted(deep_sea(10)), gamma=0.99, episodes=2)
    exploration = explore(world, gamma=0.99, samples=5_000)
    with pytest.raises(ValueError, match="noise is"):
        exploration.demonstrations(world, noise=1.0)
    bare = type(exploration)(
        (), 0.99, reset_model=ResetModel([np.full((world.num_states, 2), 0.5)], gamma=0.99), samples=0
    )
    with pytest.raises(DemonstrationError, match="counted no transitions"):
        bare.demonstrations(world)
