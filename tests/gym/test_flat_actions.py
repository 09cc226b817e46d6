"""`FlatActions`: actions of any kind as a network can choose them."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from curious_explorer.errors import ActionError
from curious_explorer.gym import ActionSet, FlatActions
from curious_explorer.gym.flat_actions import is_flat, with_flat_actions
from curious_explorer.gym.network_policy import num_outputs


class Acted(gymnasium.Env):
    """Notes the action, which must be in its space."""

    observation_space = spaces.Discrete(2)

    def __init__(self, space):
        self.action_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.did = action
        return 0, 0.0, False, False, {}


FREE = spaces.Box(-np.inf, np.inf, (2,), np.float32)
SPACES = {
    "whole": spaces.Dict({"a": spaces.Discrete(3, start=5), "b": spaces.Tuple([spaces.MultiBinary(2)])}),
    "boxes": spaces.Tuple([spaces.Box(-2.0, 3.0, (2, 1), np.float32), FREE]),
    "both": spaces.Tuple([spaces.Discrete(2), spaces.Box(0.0, 4.0, (1,), np.float64)]),
    "free": FREE,
    "half": spaces.Box(np.array([0.0, -np.inf]), np.array([np.inf, -7.0]), dtype=np.float64),
    "grid": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "one of": spaces.OneOf([spaces.Discrete(3), FREE]),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_flat_action_is_one_of_the_environment(name):
    env = with_flat_actions(Acted(SPACES[name]))
    assert is_flat(env.action_space)
    assert num_outputs(env.action_space) > 0
    env.action_space.seed(0)
    for action in [*ActionSet.of(env.action_space).choices, *(env.action_space.sample() for _ in range(20))]:
        env.step(action)  # which asserts


def test_what_flat_actions_stand_for():
    env = FlatActions(Acted(SPACES["whole"]))
    assert env.action_space == spaces.MultiDiscrete([3, 2, 2])
    env.step(np.array([2, 0, 1]))
    assert env.unwrapped.did["a"] == 7
    assert env.unwrapped.did["b"][0].tolist() == [0, 1]
    env = FlatActions(Acted(SPACES["both"]))
    env.step(np.array([1, 1]))
    number, box = env.unwrapped.did
    assert (number, box.tolist()) == (1, [2.0])
    box = FlatActions(Acted(SPACES["half"])).action_space
    assert (box.low.tolist(), box.high.tolist()) == ([0.0, -9.0], [2.0, -7.0])


def test_spaces_that_a_network_acts_in_stay_as_they_are():
    for space in (spaces.Discrete(3), spaces.MultiBinary(2), spaces.Box(0.0, 1.0, (2, 2))):
        env = Acted(space)
        assert with_flat_actions(env) is env


def test_a_list_of_actions_is_the_hook_for_all_others():
    text = Acted(spaces.Text(5))
    with pytest.raises(ActionError, match=r"FlatActions\(env, actions="):
        num_outputs(with_flat_actions(text).action_space)
    env = FlatActions(text, actions=["left", "right"])
    assert env.action_space == spaces.Discrete(2)
    env.step(1)
    assert text.did == "right"
    with pytest.raises(ActionError, match="not in Text"):
        FlatActions(text, actions=["much too long"])


def test_resets_of_other_actions_are_refused_by_name():
    with pytest.raises(ActionError, match="under the wrappers under which it was explored"):
        ActionSet.of(SPACES["whole"]).in_space(spaces.MultiDiscrete([3, 2, 2]))
