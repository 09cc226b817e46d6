"""Tasks that were made up after `solve` was finished, to see what it does with what nobody prepared it for.

    curious-explorer solve benchmarks.fresh_tasks:fresh/ToldOnce-v0 --samples 100000

Ten kinds: a maze with a dict to look at and a price on every step, a lock with several numbers to an action, rooms to
be crossed by a velocity, a picture of a small grid, a reward that is paid long after it was earned, wind beside a
cliff, a cue that is shown once, a room among many numbers that say nothing, actions that are a tuple, and forces
without bounds. docs/solve.md says what came of the first run of each, and of later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from benchmarks.solve_tasks import MOVES, Step, moved

MAZE = (
    ".....#.....",
    "####.###.#.",
    ".....#...#.",
    ".#####.####",
    "...#...#...",
    "##.#.#.#.#.",
    ".#.#.#...#.",
    ".#.#.#####.",
    ".#.#...#...",
    ".#.#####.#.",
    ".........#.",
)


class PricedMaze(gymnasium.Env[Any, Any]):
    """A maze that is seen as a place and the walls around; each step costs 0.01, the end of it pays 1."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Dict(
            {"place": spaces.Box(0, 10, (2,), np.int32), "walls": spaces.MultiBinary(4)}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = (0, 0)
        return self._seen(), {}

    def _seen(self) -> dict[str, Any]:
        walls = np.array([not self._free(self._towards(action)) for action in range(4)], np.int8)
        return {"place": np.array(self._place, np.int32), "walls": walls}

    def _towards(self, action: int) -> tuple[int, int]:
        return self._place[0] + MOVES[action][0], self._place[1] + MOVES[action][1]

    def _free(self, place: tuple[int, int]) -> bool:
        row, column = place
        return 0 <= row < 11 and 0 <= column < 11 and MAZE[row][column] != "#"

    def step(self, action: Any) -> Step:
        there = self._towards(int(action))
        self._place = there if self._free(there) else self._place
        done = self._place == (10, 10)
        return self._seen(), float(done) - 0.01, done, False, {}


class NumberLock(gymnasium.Env[Any, Any]):
    """Eight stages, each passed by one of sixteen pairs of numbers; any other pair closes the lock again."""

    KEYS = ((3, 0), (1, 1), (2, 3), (0, 2), (3, 3), (1, 0), (0, 0), (2, 1))

    def __init__(self) -> None:
        self.action_space = spaces.MultiDiscrete([4, 4])
        self.observation_space = spaces.Dict(
            {"stage": spaces.Discrete(len(self.KEYS) + 1), "flicker": spaces.Box(0.0, 1.0, (2,), np.float32)}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._stage = 0
        return self._seen(), {}

    def _seen(self) -> dict[str, Any]:
        return {"stage": self._stage, "flicker": self.np_random.random(2).astype(np.float32)}

    def step(self, action: Any) -> Step:
        self._stage = self._stage + 1 if tuple(int(each) for each in action) == self.KEYS[self._stage] else 0
        done = self._stage == len(self.KEYS)
        return self._seen(), 5.0 * done, done, False, {}


class FourRooms(gymnasium.Env[Any, Any]):
    """A point in four rooms, moved by a velocity, with a little noise; pays in the corner that is farthest."""

    def __init__(self) -> None:
        self.action_space = spaces.Box(-0.5, 0.5, (2,), np.float32)
        self.observation_space = spaces.Box(0.0, 10.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = self.np_random.uniform(0.5, 1.5, 2)
        return self._place.astype(np.float32), {}

    def step(self, action: Any) -> Step:
        move = np.clip(action, -0.5, 0.5) + 0.02 * self.np_random.normal(size=2)
        there = np.clip(self._place + move, 0.0, 10.0)
        for axis in (0, 1):
            across = (self._place[axis] < 5.0) != (there[axis] < 5.0)
            along = float(there[1 - axis])
            if across and not (1.0 < along < 2.0 or 8.5 < along < 9.5):
                there[axis] = self._place[axis]
        self._place = there
        done = bool((there > 9.0).all())
        return there.astype(np.float32), float(done), done, False, {}


class PictureRooms(gymnasium.Env[Any, Any]):
    """A picture of 32 x 32: a red agent, a yellow key that opens a blue door, a green goal behind it."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.Box(0, 255, (32, 32, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._key, self._open = (0, 0), False, False
        return self._seen(), {}

    def _seen(self) -> Any:
        frame = np.full((8, 8, 3), 30, np.uint8)
        frame[:, 4] = 120
        frame[5, 4] = (30, 30, 30) if self._open else (0, 0, 255)
        if not self._key:
            frame[7, 1] = (255, 255, 0)
        frame[1, 7], frame[self._place] = (0, 255, 0), (255, 0, 0)
        return frame.repeat(4, axis=0).repeat(4, axis=1)

    def step(self, action: Any) -> Step:
        if int(action) == 4:
            self._key |= self._place == (7, 1)
            self._open |= self._key and self._place == (5, 3)
        else:
            there = moved(self._place, int(action), 8)
            if there[1] != 4 or (there == (5, 4) and self._open):
                self._place = there
        done = self._place == (1, 7)
        return self._seen(), float(done), done, False, {}


class PaidAtHome(gymnasium.Env[Any, Any]):
    """Five berries in a field of 9 x 9; all are paid at once when one goes home, a fifth for each, which is the end."""

    BERRIES = ((0, 8), (8, 0), (8, 8), (4, 7), (7, 4))

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.MultiDiscrete([9, 9, 2, 2, 2, 2, 2])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._picked = (4, 4), [0] * len(self.BERRIES)
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.array([*self._place, *self._picked])

    def step(self, action: Any) -> Step:
        done = int(action) == 4 and self._place == (4, 4)
        if int(action) < 4:
            self._place = moved(self._place, int(action), 9)
        if self._place in self.BERRIES:
            self._picked[self.BERRIES.index(self._place)] = 1
        return self._seen(), sum(self._picked) / 5 if done else 0.0, done, False, {}


class WindyCliff(gymnasium.Env[Any, Any]):
    """A path of 4 x 16 along a cliff: gusts push towards it, falling costs 1 and is the end, arriving pays 1."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Discrete(64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = (3, 0)
        return self._seen(), {}

    def _seen(self) -> int:
        return 16 * self._place[0] + self._place[1]

    def step(self, action: Any) -> Step:
        row, column = self._place[0] + MOVES[int(action)][0], self._place[1] + MOVES[int(action)][1]
        row += int(self.np_random.random() < 0.1)
        row, column = min(max(row, 0), 3), min(max(column, 0), 15)
        self._place = row, column
        fell, done = row == 3 and 0 < column < 15, self._place == (3, 15)
        return self._seen(), float(done) - float(fell), done or fell, False, {}


class ToldOnce(gymnasium.Env[Any, Any]):
    """A corridor shaped like a T: a cue at its start says at which side of its end 1 is paid; the other costs 1."""

    def __init__(self, length: int = 7) -> None:
        self._length = length
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.MultiDiscrete([3, 3])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at, self._side = 0, int(self.np_random.integers(2))
        return self._seen(), {}

    def _seen(self) -> Any:
        cue = 1 + self._side if self._at == 0 else 0
        return np.array([cue, 0 if self._at == 0 else 2 if self._at == self._length else 1])

    def step(self, action: Any) -> Step:
        end = self._at == self._length
        if end and int(action) >= 2:
            return self._seen(), 1.0 if int(action) - 2 == self._side else -1.0, True, False, {}
        self._at = min(max(self._at + (1, -1, 0, 0)[int(action)], 0), self._length)
        return self._seen(), 0.0, False, False, {}


class AmongNoise(gymnasium.Env[Any, Any]):
    """A place in a room is two of twenty numbers; ten are noise, and eight wander by themselves."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.Box(-np.inf, np.inf, (20,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._wander = np.zeros(2), self.np_random.normal(size=8)
        return self._seen(), {}

    def _seen(self) -> Any:
        noise = self.np_random.normal(size=10)
        return np.concatenate([noise[:4], self._place, noise[4:], self._wander]).astype(np.float32)

    def step(self, action: Any) -> Step:
        self._wander = 0.9 * self._wander + 0.4 * self.np_random.normal(size=8)
        if int(action) < 4:
            there = np.clip(self._place + 0.5 * np.array(MOVES[int(action)]), 0.0, 8.0)
            if not (3.5 <= there[0] <= 4.5 and there[1] < 7.0):
                self._place = there
        done = bool(self._place[0] > 7.0 and self._place[1] < 1.0)
        return self._seen(), float(done), done, False, {}


class TwoControls(gymnasium.Env[Any, Any]):
    """An action is a tuple, a gear and a throttle: a cart must stand still on a hilltop that only a low gear climbs."""

    def __init__(self) -> None:
        self.action_space = spaces.Tuple([spaces.Discrete(3), spaces.Box(-1.0, 1.0, (1,), np.float32)])
        self.observation_space = spaces.Tuple([spaces.Box(-np.inf, np.inf, (2,), np.float32), spaces.Discrete(3)])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at, self._speed, self._gear = 0.0, 0.0, 1
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.array([self._at, self._speed], np.float32), self._gear

    def step(self, action: Any) -> Step:
        self._gear = int(action[0])
        throttle = float(np.clip(np.asarray(action[1]).item(), -1.0, 1.0))
        slope = 0.06 if 4.0 < self._at < 8.0 else 0.0
        force = (0.1, 0.05, 0.03)[self._gear] * throttle - slope
        most = (0.15, 0.4, 0.8)[self._gear]
        self._speed = float(np.clip(0.95 * self._speed + force, -most, most))
        self._at = float(np.clip(self._at + self._speed, -4.0, 12.0))
        done = 8.0 < self._at < 10.0 and abs(self._speed) < 0.1
        return self._seen(), float(done), done, False, {}


class FreeForce(gymnasium.Env[Any, Any]):
    """A mass on a line that forces without bounds move: 1 where it comes to rest at a place ten away, in 200 steps."""

    def __init__(self) -> None:
        self.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at, self._speed = float(self.np_random.uniform(-0.5, 0.5)), 0.0
        return np.array([self._at, self._speed]), {}

    def step(self, action: Any) -> Step:
        self._speed = 0.98 * self._speed + 0.1 * float(np.asarray(action).item())
        self._at += 0.2 * self._speed
        away = abs(self._at) > 30.0
        done = abs(self._at - 10.0) < 0.5 and abs(self._speed) < 0.3
        return np.array([self._at, self._speed]), float(done) - float(away), done or away, False, {}


TASKS: dict[str, tuple[Callable[..., gymnasium.Env[Any, Any]], int]] = {
    "PricedMaze": (PricedMaze, 200),
    "NumberLock": (NumberLock, 60),
    "FourRooms": (FourRooms, 200),
    "PictureRooms": (PictureRooms, 150),
    "PaidAtHome": (PaidAtHome, 120),
    "WindyCliff": (WindyCliff, 100),
    "ToldOnce": (ToldOnce, 50),
    "AmongNoise": (AmongNoise, 200),
    "TwoControls": (TwoControls, 200),
    "FreeForce": (FreeForce, 200),
}
"""What makes each, and its time limit."""
for _name, (_made, _steps) in TASKS.items():
    gymnasium.register(f"fresh/{_name}-v0", _made, max_episode_steps=_steps)
