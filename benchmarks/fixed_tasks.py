"""MiniGrid tasks with one layout, and deep seas: importing this module registers them with Gymnasium.

    gymnasium.make("benchmarks.fixed_tasks:FixedGrid-v0", task="KeyCorridorS3R3", layout=0)
    gymnasium.make("benchmarks.fixed_tasks:OneHotSea-v0", depth=20, layout=0)

Every episode has the layout of one seed, the six actions that do anything are given, and the reward is 1 for success.
A network sees what the agent sees, where it is and looks, and what it carries: 156 numbers.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.compile import compiled

CARRIED = ("key", "ball", "box")


class FixedGrid(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MiniGrid environment with one layout.

    What the agent sees is computed here, from an array of codes that follows the grid: the same numbers as MiniGrid's,
    at a tenth of the time of a step. An action changes nothing but the place in front of the agent.
    """

    def __init__(self, task: str, layout: int) -> None:
        import minigrid  # noqa: F401

        super().__init__(gymnasium.make(f"MiniGrid-{task}-v0", disable_env_checker=True))
        self._layout = layout
        grid: Any = self.env.unwrapped
        grid.gen_obs = lambda: None
        self._grid: Any = grid
        self._codes = np.zeros((0, 0, 3), np.uint8)
        self.observation_space = spaces.Box(-1.0, 1.0, (156,), np.float32)
        self.action_space = spaces.Discrete(6)

    def _seen(self) -> Any:
        grid = self._grid
        seen = np.zeros(156, np.float32)
        x, y, facing = int(grid.agent_pos[0]), int(grid.agent_pos[1]), int(grid.agent_dir)
        carried = _EMPTY if grid.carrying is None else np.array(grid.carrying.encode(), np.uint8)
        write_view(self._codes, x, y, facing, carried, seen)
        seen[147 + facing] = 1.0
        seen[151] = 2.0 * x / grid.width - 1.0
        seen[152] = 2.0 * y / grid.height - 1.0
        if grid.carrying is not None and grid.carrying.type in CARRIED:
            seen[153 + CARRIED.index(grid.carrying.type)] = 1.0
        return seen

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        bare: Any = self._grid
        bare.reset(seed=self._layout)  # past MiniGrid's wrappers, which want an observation
        if self._codes.size == 0:
            self._first = bare.grid.encode()
        self._codes = self._first.copy()
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        grid = self._grid
        place = grid.agent_pos[0] + _DX[grid.agent_dir], grid.agent_pos[1] + _DY[grid.agent_dir]
        _, reward, terminated, truncated, _ = grid.step(int(action))
        if action >= 3:
            there = grid.grid.get(*place)
            self._codes[place] = _EMPTY if there is None else there.encode()
        return self._seen(), float(reward > 0), terminated, truncated, {}


_EMPTY = np.array([1, 0, 0], np.uint8)
_DX, _DY = (1, 0, -1, 0), (0, 1, 0, -1)
_WALL, _DOOR = 2, 4


@compiled
def write_view(codes: Any, x: int, y: int, facing: int, carried: Any, seen: Any) -> None:
    """Fill in the 7 x 7 cells that an agent sees, turned so that it looks up, divided by ten."""
    view = np.zeros((7, 7, 3), np.uint8)
    for i in range(7):
        for j in range(7):
            ahead, aside = 6 - j, i - 3
            if facing == 0:
                column, row = x + ahead, y + aside
            elif facing == 1:
                column, row = x - aside, y + ahead
            elif facing == 2:
                column, row = x - ahead, y - aside
            else:
                column, row = x + aside, y - ahead
            if 0 <= column < codes.shape[0] and 0 <= row < codes.shape[1]:
                view[i, j] = codes[column, row]
            else:
                view[i, j, 0], view[i, j, 1] = _WALL, 5
    view[3, 6] = carried
    shown = np.zeros((7, 7), np.bool_)
    shown[3, 6] = True
    for j in range(6, -1, -1):
        for i in range(6):
            if shown[i, j] and not (view[i, j, 0] == _WALL or (view[i, j, 0] == _DOOR and view[i, j, 2] != 0)):
                shown[i + 1, j] = True
                if j > 0:
                    shown[i + 1, j - 1] = shown[i, j - 1] = True
        for i in range(6, 0, -1):
            if shown[i, j] and not (view[i, j, 0] == _WALL or (view[i, j, 0] == _DOOR and view[i, j, 2] != 0)):
                shown[i - 1, j] = True
                if j > 0:
                    shown[i - 1, j - 1] = shown[i, j - 1] = True
    for i in range(7):
        for j in range(7):
            for part in range(3):
                seen[(i * 7 + j) * 3 + part] = 0.1 * view[i, j, part] if shown[i, j] else 0.0


gymnasium.register("FixedGrid-v0", entry_point="benchmarks.fixed_tasks:FixedGrid")


class OneHotSea(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A deep sea whose states are seen as one-hot vectors; labels of actions are permuted by the layout."""

    def __init__(self, depth: int, layout: int) -> None:
        made = gymnasium.make("curious_explorer/DeepSea-v0", size=depth, permute_actions=layout)
        super().__init__(made)
        self._number = int(made.observation_space.n)  # type: ignore[attr-defined]
        self.observation_space = spaces.Box(0.0, 1.0, (self._number,), np.float32)

    def _seen(self, state: Any) -> Any:
        return np.eye(1, self._number, int(state), dtype=np.float32)[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        state, info = self.env.reset(seed=seed, options=options)
        return self._seen(state), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        state, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(state), reward, terminated, truncated, info


gymnasium.register("OneHotSea-v0", entry_point="benchmarks.fixed_tasks:OneHotSea")
