"""Tasks of packages that are no part of this library or of its extras, for `benchmarks.solve_suite`.

    pip install dm_control "mujoco<4"            outside/CartpoleSwingupSparse-v0
    pip install bsuite scikit-image              outside/BsuiteSwingup-v0
    pip install gymnasium-robotics "mujoco<4"    outside/PointMazeLarge-v0

The first is the cart-pole of the DeepMind Control Suite that pays 1 while the pole is upright and nothing else (Tassa
et al. 2018), the second bsuite's, where pushing costs something (Osband et al. 2020), and the third the large maze of
Gymnasium-Robotics with start and goal in opposite corners.
"""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from benchmarks.solve_tasks import Step

CORNERS = ((1, 1), (7, 10))
"""Rows and columns of start and goal in the large maze."""


class DeepMindEnv(gymnasium.Env[Any, Any]):
    """An environment of dm_env, as the Control Suite and bsuite make them, as one of Gymnasium.

    Observations are put together to one row; a time limit is a truncation, as the discount says.
    """

    def __init__(self, make: Any) -> None:
        self._make, self._env = make, make(0)
        actions = self._env.action_spec()
        if hasattr(actions, "num_values"):
            self.action_space: Any = spaces.Discrete(int(actions.num_values))
        else:
            bounds = (
                np.broadcast_to(bound, actions.shape).astype(np.float32) for bound in (actions.minimum, actions.maximum)
            )
            self.action_space = spaces.Box(next(bounds), next(bounds), dtype=np.float32)
        width = len(self._row(self._env.reset().observation))
        self.observation_space = spaces.Box(-np.inf, np.inf, (width,), np.float32)

    @staticmethod
    def _row(observation: Any) -> Any:
        parts = observation.values() if hasattr(observation, "values") else [observation]
        return np.concatenate([np.ravel(part) for part in parts]).astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._env = self._make(seed)
        return self._row(self._env.reset().observation), {}

    def step(self, action: Any) -> Step:
        seen = self._env.step(action)
        over = bool(seen.last())
        goes_on = over and seen.discount > 0.0
        return self._row(seen.observation), float(seen.reward or 0.0), over and not goes_on, goes_on, {}


def _control_suite(**_: Any) -> gymnasium.Env[Any, Any]:
    suite = importlib.import_module("dm_control.suite")
    return DeepMindEnv(lambda seed: suite.load("cartpole", "swingup_sparse", task_kwargs={"random": seed}))


def _bsuite(**_: Any) -> gymnasium.Env[Any, Any]:
    module = importlib.import_module("bsuite.experiments.cartpole_swingup.cartpole_swingup")
    return DeepMindEnv(lambda seed: module.CartpoleSwingup(seed=seed))


def _point_maze(**_: Any) -> gymnasium.Env[Any, Any]:
    gymnasium.register_envs(importlib.import_module("gymnasium_robotics"))
    maps = importlib.import_module("gymnasium_robotics.envs.maze.maps")
    maze = [list(row) for row in maps.LARGE_MAZE]
    for (row, column), what in zip(CORNERS, "rg", strict=True):
        maze[row][column] = what
    env = gymnasium.make("PointMaze_Large-v3", maze_map=maze, disable_env_checker=True)
    env.unwrapped.position_noise_range = 0.0  # type: ignore[attr-defined] # the goal stays where it is
    return env


gymnasium.register("outside/CartpoleSwingupSparse-v0", _control_suite)
gymnasium.register("outside/BsuiteSwingup-v0", _bsuite)
gymnasium.register("outside/PointMazeLarge-v0", _point_maze)
