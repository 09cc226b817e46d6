"""Environments and wrappers that tests of `GymWorld` and `RestartWrapper` look through."""

from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer import ResetModel
from curious_explorer.worlds.policies import ObservationPolicy
from curious_explorer.worlds.roll_in import RollIn


class Counting(gymnasium.Wrapper):
    """Counts the steps that reach the environment, and fails if one comes where none is allowed."""

    def __init__(self, env):
        super().__init__(env)
        self.steps = self.resets = 0
        self.over = True

    def reset(self, **arguments):
        self.resets += 1
        self.over = False
        return self.env.reset(**arguments)

    def step(self, action):
        assert not self.over, "stepped before a reset, or after the end of an episode"
        self.steps += 1
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.over = terminated
        return observation, reward, terminated, truncated, info


def counting(name, **arguments):
    """An environment by its id, below the wrappers that `gymnasium.make` adds around what it is given."""
    return Counting(gymnasium.make(name, disable_env_checker=True, **arguments))


class Corridor(gymnasium.Env):
    """Cells 0..length-1 in a row, seen as a number in a box; action 1 goes on, 0 goes back, the last cell ends it."""

    def __init__(self, length=6, shape=(1,), fault=None, at=3):
        self.observation_space = spaces.Box(-1.0, length, shape, dtype=np.float64)
        self.action_space = spaces.Discrete(2)
        self.length, self.fault, self.at = length, fault, at
        self.taken = 0
        self.place = 0

    def look(self):
        return np.full(self.observation_space.shape, float(self.place))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return (self.fault(self.look()) if self.at == 0 else self.look()), {}

    def step(self, action):
        self.taken += 1
        self.place = max(0, self.place + (1 if action == 1 else -1))
        seen = self.look()
        if self.fault is not None and self.taken == self.at:
            seen = self.fault(seen)
        return seen, float(self.place == self.length - 1), self.place == self.length - 1, False, {}


class Blind(gymnasium.Env):
    """A row of cells that all look alike but the first; the way on takes another action in every other cell."""

    def __init__(self, length=8, slip=0.0):
        self.observation_space = spaces.Dict({"first": spaces.MultiBinary(2), "hum": spaces.Box(-9.0, 9.0, (1,))})
        self.action_space = spaces.Discrete(2, start=3)
        self._length, self._slip = length, slip

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = 0
        return self._seen(), {}

    def _seen(self):
        return {"first": np.array([self._at == 0, 0], np.int8), "hum": self.np_random.normal(size=1).astype(np.float32)}

    def step(self, action):
        if self._slip and self.np_random.random() < self._slip:
            action = self.np_random.integers(3, 5)
        self._at = self._at + 1 if action - 3 == self._at % 2 else 0
        done = self._at == self._length
        return self._seen(), float(done), bool(done), False, {}


class NativeCorridors(gymnasium.vector.VectorEnv):
    """Corridors that are stepped together by one array, and reset where they are told to."""

    metadata: ClassVar = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}

    def __init__(self, num_envs, length=6):
        self.num_envs, self.length = num_envs, length
        self.single_observation_space = spaces.Box(-1.0, length, (1,), dtype=np.float64)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.places = np.zeros((num_envs, 1))

    def reset(self, *, seed=None, options=None):
        self.places[(options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))] = 0.0
        return self.places, {}  # its own array, as some do

    def step(self, actions):
        assert (self.places < self.length - 1).all(), "stepped after the end"
        np.maximum(self.places + np.where(actions == 1, 1, -1)[:, None], 0.0, out=self.places)
        ended = self.places[:, 0] == self.length - 1
        return self.places, ended.astype(float), ended, np.zeros(self.num_envs, dtype=bool), {}


class Fixed(ObservationPolicy):
    """Acts by a function of the observation alone."""

    def __init__(self, function):
        self.function = function

    def act(self, observations, generator):
        return [self.function(observation) for observation in observations]

    def encode(self):
        raise NotImplementedError


def uniform(world):
    return np.full((world.num_states, world.num_actions), 1.0 / world.num_actions)


def table(world, seed):
    """A random policy, every action possible."""
    rows = np.random.default_rng(seed).random((world.num_states, world.num_actions)) + 0.1
    return rows / rows.sum(axis=1, keepdims=True)


def random_reset_model(mdp_or_world, seed=0, gamma=0.8, policies=3, discretisation=None):
    return ResetModel(
        [table(mdp_or_world, seed + k) for k in range(policies)], gamma=gamma, discretisation=discretisation
    )


def a_roll_in(mdp, seed):
    """Nowhere, one policy or two."""
    return RollIn.mixture([table(mdp, seed), table(mdp, seed + 1)], 0.7, [0.4, 0.3, 0.3], [(0, 0), (0, 1), (0, 2)])


def raises(error):
    """A fault that raises."""

    def fault(observation):
        raise error

    return fault
