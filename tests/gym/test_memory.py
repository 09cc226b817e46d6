"""Observations that remember: what they show, when they are of use, and agents that act by them."""

import numpy as np
import pytest
from gym_helpers import Blind
from gymnasium import spaces

from curious_explorer import GymWorld
from curious_explorer.gym.agents import Agent, play_episodes
from curious_explorer.gym.memory import (
    LONGEST_STAY,
    AgentWithMemory,
    Memory,
    RememberingObserver,
    advised_memory,
    first_action,
)


def test_what_differed_is_remembered_and_how_long_nothing_has():
    observer = RememberingObserver(2, 0)
    assert observer.see(7) == (7, 0, 7, -1, 7, -1)
    observer.did(1)
    assert observer.see(7) == (7, 1, 7, -1, 7, -1)
    observer.did(0)
    assert observer.see(8) == (8, 0, 7, 0, 8, -1)
    observer.did(1)
    assert observer.see(9) == (9, 0, 8, 1, 7, 0)
    for _ in range(2 * LONGEST_STAY):
        observer.did(0)
        shown = observer.see(9)
    assert shown == (9, LONGEST_STAY, 8, 1, 7, 0)
    observer.begin()
    assert observer.see(3) == (3, 0, 3, -1, 3, -1)


def test_real_numbers_are_no_change_unless_there_is_nothing_else():
    observer = RememberingObserver(1, None)
    observer.see({"x": np.array([0.5]), "n": 1})
    assert observer.see({"x": np.array([0.6]), "n": 1})[1] == 1
    alone = RememberingObserver(1, None)
    alone.see(np.array([0.5]))
    now, stay, before = alone.see(np.array([0.6]))
    assert (now[0], stay, before[0]) == (0.6, 0, 0.5)


def test_what_is_remembered_is_not_written_into():
    observer, place = RememberingObserver(1, None), np.array([0])
    observer.see(place)
    place[0] = 1
    assert observer.see(place)[2][0] == 0


@pytest.mark.parametrize("actions", [spaces.Discrete(2, start=3), spaces.Box(-1.0, 1.0, (2,), np.float32)])
def test_observations_that_remember_are_in_their_space(actions):
    env = Blind()
    if not isinstance(actions, spaces.Discrete):
        env.action_space = actions
        env.step = lambda action: (env._seen(), 0.0, False, False, {})
    memory = Memory(env, 3)
    observation, _ = memory.reset(seed=0)
    memory.action_space.seed(0)
    for _ in range(20):
        assert observation in memory.observation_space
        observation, *_ = memory.step(memory.action_space.sample())


def test_an_agent_with_memory_acts_as_in_the_environment_that_remembers():
    class BySeen(Agent):
        """The way on, by how long nothing has changed."""

        def act(self, observation, env=None):
            now, stay = observation[:2]
            return 3 if now["first"][0] else 3 + (stay + 1) % 2

    agent = AgentWithMemory(BySeen(), RememberingObserver(2, first_action(Blind().action_space)))
    assert play_episodes(Blind(), agent, 3, seed=0).returns == [1.0, 1.0, 1.0]
    assert play_episodes(Memory(Blind(), 2), BySeen(), 3, seed=0).returns == [1.0, 1.0, 1.0]


def test_memory_is_advised_where_something_is_not_seen_and_nothing_is_random():
    assert GymWorld(Blind, seed=0).advised_memory > 0
    assert GymWorld(lambda: Blind(slip=0.3), seed=0).advised_memory == 0
    walk, actions = [0, 1, 2, 3] * 20, [0, 0, 0, -1] * 20
    assert advised_memory(walk, actions) == 0
    assert advised_memory([0, 0, 0, 1] * 20, actions) == 2
