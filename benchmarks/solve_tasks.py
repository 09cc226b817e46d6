"""Small tasks of many kinds for `curious-explorer solve`, by id: ``benchmarks.solve_tasks:solve/PointMaze-v0``.

They differ in what is seen (numbers, symbols, dicts with noise and clocks, bits, one number of a hundred thousand,
pictures, a view of what is near), in what is done (one of a few, several at once, one to four forces) and in what is
paid (at a goal, at the end, everywhere, nothing but costs, penalties, a little near the start and much far away).
`CHOSE_SETTINGS` names those at which settings of `solve` were looked at; the others were run with what was frozen.
docs/solve.md has what came of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Env = gymnasium.Env[Any, Any]
Step = tuple[Any, float, bool, bool, dict[str, Any]]
CHOSE_SETTINGS = ("KeyRoom", "SetBits", "Dials", "PendulumUp", "PointMaze", "SwingUp", "SoftLanding", "NearSight")
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class KeyRoom(gymnasium.Env[Any, Any]):
    """Two rooms in a grid: fetch the key in one corner, then reach another; a dict with noise and a clock beside it."""

    def __init__(self, size: int = 9, slip: float = 0.0) -> None:
        self._size, self._slip = size, slip
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Dict(
            {
                "place": spaces.MultiDiscrete([size, size]),
                "key": spaces.Discrete(2),
                "noise": spaces.Box(-1.0, 1.0, (3,), np.float32),
                "clock": spaces.Box(0.0, 1.0, (1,), np.float32),
            }
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._key, self._time = (0, 0), 0, 0
        return self._seen(), {}

    def _seen(self) -> dict[str, Any]:
        noise = self.np_random.uniform(-1.0, 1.0, 3).astype(np.float32)
        clock = np.array([self._time / 200], np.float32)
        return {"place": np.array(self._place), "key": self._key, "noise": noise, "clock": clock}

    def step(self, action: Any) -> Step:
        if self.np_random.random() < self._slip:
            action = self.np_random.integers(4)
        self._time += 1
        row, column = moved(self._place, int(action), self._size)
        middle = self._size // 2
        if row != middle or column == middle:
            self._place = row, column
        self._key = int(self._key or self._place == (0, self._size - 1))
        done = bool(self._key and self._place == (self._size - 1, 0))
        return self._seen(), float(done), done, False, {}


class PointMaze(gymnasium.Env[Any, Any]):
    """A point with inertia in a U-shaped maze, moved by two forces; pays at the other end alone."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = np.array([0.5, 0.5]) + self.np_random.uniform(-0.1, 0.1, 2)
        self._speed = np.zeros(2)
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.concatenate([self._place, self._speed]).astype(np.float32)

    def step(self, action: Any) -> Step:
        self._speed = np.clip(0.8 * self._speed + 0.05 * np.clip(action, -1.0, 1.0), -0.3, 0.3)
        place = np.clip(self._place + self._speed, 0.0, [5.0, 3.0])
        if 1.0 < place[1] < 2.0 and place[0] < 4.0:
            self._speed = np.zeros(2)
        else:
            self._place = place
        done = bool(self._place[0] < 1.0 and self._place[1] > 2.2)
        return self._seen(), float(done), done, False, {}


class SwingUp(gymnasium.Env[Any, Any]):
    """A pole to be swung up on a cart by three forces, after bsuite's cartpole_swingup (Osband et al. 2020).

    Pays 1 at every step at which the pole is upright (cosine above ``height``), the cart in the middle and both slow,
    and -0.1 for every push; ends after 1,000 steps or 3 from the middle.
    """

    def __init__(self, height: float = 0.5) -> None:
        self._height = height
        self.observation_space = spaces.Box(-np.inf, np.inf, (8,), np.float32)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = (0.0, 0.0, math.pi + 0.05 * float(self.np_random.normal()), 0.0)
        self._time = 0
        return self._seen(), {}

    def _seen(self) -> Any:
        x, x_speed, angle, spin = self._state
        near = 1.0 if abs(x) < 1.0 else -1.0
        up = 1.0 if math.cos(angle) > self._height else -1.0
        row = [x / 3, x_speed / 3, math.sin(angle), math.cos(angle), spin / 3, self._time / 1_000, near, up]
        return np.array(row, np.float32)

    def step(self, action: Any) -> Step:
        x, x_speed, angle, spin = self._state
        push, cart, pole, length, seconds = (int(action) - 1) * 10.0, 1.0, 0.1, 0.5, 0.01
        cos, sin = math.cos(angle), math.sin(angle)
        force = (push + pole * length * spin**2 * sin) / (cart + pole)
        turn = (9.8 * sin - cos * force) / (length * (4.0 / 3.0 - pole * cos**2 / (cart + pole)))
        pull = force - pole * length * turn * cos / (cart + pole)
        x, angle = x + seconds * x_speed, (angle + seconds * spin) % (2.0 * math.pi)
        x_speed, spin = x_speed + seconds * pull, spin + seconds * turn
        self._state, self._time = (x, x_speed, angle, spin), self._time + 1
        slow = abs(spin) < 1.0 and abs(x_speed) < 1.0
        upright = math.cos(angle) > self._height and slow and abs(x) < 1.0
        done = self._time >= 1_000 or abs(x) > 3.0
        return self._seen(), float(upright) - 0.1 * abs(int(action) - 1), done, False, {}


class PendulumUp(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pendulum-v1, which pays 1 while it is upright and slow, and nothing else."""

    def step(self, action: Any) -> Step:
        seen, _, terminated, truncated, info = self.env.step(action)
        return seen, float(seen[0] > 0.95 and abs(seen[2]) < 1.0), terminated, truncated, info


class SetBits(gymnasium.Env[Any, Any]):
    """Bits to be set in their order, of which clearing one clears those after it; pays at the end, if all are set."""

    def __init__(self, bits: int = 10) -> None:
        self._bits = bits
        self.observation_space = spaces.MultiBinary(bits)
        self.action_space = spaces.MultiDiscrete([bits, 2])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._set = np.zeros(self._bits, np.int8)
        return self._set.copy(), {}

    def step(self, action: Any) -> Step:
        place, to = (int(each) for each in action)
        if not to:
            self._set[place:] = 0
        elif place == 0 or self._set[place - 1]:
            self._set[place] = 1
        done = bool(self._set.all())
        return self._set.copy(), float(done), done, False, {}


class Dials(gymnasium.Env[Any, Any]):
    """One whole number of a hundred thousand: two dials to be turned to a combination."""

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(100_000, start=5)
        self.action_space = spaces.Discrete(6, start=1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._dials = [0, 0]
        return 5, {}

    def step(self, action: Any) -> Step:
        dial, turn = divmod(int(action) - 1, 3)
        self._dials[dial] = (self._dials[dial] + (-1, 1, 0)[turn]) % 60
        done = self._dials == [30, 30]
        return 5 + self._dials[0] * 300 + self._dials[1], 10.0 * done, done, False, {}


class TwoGoals(gymnasium.Env[Any, Any]):
    """A grid of 20 x 20 without a time limit: 0.1 and the end two steps away, 1 and the end in the far corner."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 19, (2,), np.int64)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = (10, 10)
        return np.array(self._place), {}

    def step(self, action: Any) -> Step:
        self._place = moved(self._place, int(action), 20)
        pays = {(10, 12): 0.1, (0, 0): 1.0}.get(self._place, 0.0)
        return np.array(self._place), pays, pays > 0.0, False, {}


class Reach(gymnasium.Env[Any, Any]):
    """Four forces move a point to a place that is drawn anew; every step costs the distance, and arriving ends it."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-5.0, 5.0, (8,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (4,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._goal = self.np_random.uniform(-1.0, 1.0, (2, 4))
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.concatenate([self._place, self._goal]).astype(np.float32)

    def step(self, action: Any) -> Step:
        self._place = np.clip(self._place + 0.1 * np.clip(action, -1.0, 1.0), -5.0, 5.0)
        away = float(np.linalg.norm(self._place - self._goal))
        return self._seen(), -away, away < 0.15, False, {}


class BlinkingRoom(gymnasium.Env[Any, Any]):
    """A picture of a room with a wall, over a background that blinks; pays behind the wall."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (36, 36, 3), np.uint8)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = (0, 0)
        return self._seen(), {}

    def _seen(self) -> Any:
        frame = np.zeros((36, 36, 3), np.uint8)
        frame[..., 2] = self.np_random.integers(0, 40)
        row, column = self._place
        frame[6 * row : 6 * row + 6, 6 * column : 6 * column + 6, 0] = 255
        frame[18:24, :30, 1] = 120
        return frame

    def step(self, action: Any) -> Step:
        row, column = moved(self._place, int(action), 6)
        if row != 3 or column == 5:
            self._place = row, column
        done = self._place == (5, 0)
        return self._seen(), float(done), done, False, {}


class Current(gymnasium.Env[Any, Any]):
    """Episodes of 1,500 steps: 119 steps against a noisy current that carries back; two numbers that say the same."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = 0.0
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.array([self._at, 0.5 * self._at + 3.0])

    def step(self, action: Any) -> Step:
        pulled = self._at + int(action) - 1.3 + 0.1 * float(self.np_random.normal())
        self._at = min(max(pulled, 0.0), 120.0)
        done = self._at >= 119.0
        return self._seen(), float(done), done, False, {}


class SoftLanding(gymnasium.Env[Any, Any]):
    """A rocket with little fuel above the ground: 1 for a soft landing, -1 for a crash; a dict of three numbers."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {
                "height": spaces.Box(0.0, 200.0, (1,), np.float32),
                "speed": spaces.Box(-100.0, 100.0, (1,), np.float32),
                "fuel": spaces.Box(0.0, 100.0, (1,), np.float32),
            }
        )
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._height, self._speed, self._fuel = 100.0 + float(self.np_random.uniform(-5.0, 5.0)), 0.0, 60.0
        return self._seen(), {}

    def _seen(self) -> dict[str, Any]:
        numbers = {"height": min(max(self._height, 0.0), 200.0), "speed": self._speed, "fuel": self._fuel}
        return {name: np.array([number], np.float32) for name, number in numbers.items()}

    def step(self, action: Any) -> Step:
        thrust = 2.0 * int(action) if self._fuel > 0.0 else 0.0
        self._fuel = max(0.0, self._fuel - thrust / 2.0)
        self._speed += 0.5 * (thrust - 1.5)
        self._height += 0.5 * self._speed
        down = self._height <= 0.0
        pays = (1.0 if self._speed > -2.5 else -1.0) if down else 0.0
        return self._seen(), pays, down, self._height > 190.0, {}


class NearSight(gymnasium.Env[Any, Any]):
    """A maze of which only the nine cells around are seen, so that many places look alike; pays in the far corner."""

    MAZE = (
        "....#....", "###.#.##.", "....#.#..", ".####.#.#", "......#..",
        ".######.#", ".#....#..", ".#.##.##.", "...#.....",
    )  # fmt: skip

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 2, (3, 3), np.uint8)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = (0, 0)
        return self._seen(), {}

    def _cell(self, row: int, column: int) -> int:
        inside = 0 <= row < 9 and 0 <= column < 9
        return int(not inside or self.MAZE[row][column] == "#") + 2 * int((row, column) == (8, 8))

    def _seen(self) -> Any:
        row, column = self._place
        return np.array([[self._cell(row + i, column + j) for j in (-1, 0, 1)] for i in (-1, 0, 1)], np.uint8)

    def step(self, action: Any) -> Step:
        row, column = self._place[0] + MOVES[int(action)][0], self._place[1] + MOVES[int(action)][1]
        if self._cell(row, column) != 1:
            self._place = row, column
        done = self._place == (8, 8)
        return self._seen(), float(done), done, False, {}


class StickyActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Takes the last action again now and then (Machado et al. 2018)."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._last: Any = None
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Step:
        if self._last is None or self.np_random.random() >= 0.25:
            self._last = action
        seen, paid, terminated, truncated, info = self.env.step(self._last)
        return seen, float(paid), terminated, truncated, info


def moved(place: tuple[int, int], action: int, size: int) -> tuple[int, int]:
    """One step in a grid, not over its edge."""
    row, column = place[0] + MOVES[action][0], place[1] + MOVES[action][1]
    return min(max(row, 0), size - 1), min(max(column, 0), size - 1)


def _pendulum_up(**_: Any) -> Env:
    return PendulumUp(gymnasium.make("Pendulum-v1", disable_env_checker=True))


def _sticky_car(**_: Any) -> Env:
    import benchmarks.gym_studies.tasks  # noqa: F401 (it registers the car)

    return StickyActions(gymnasium.make("studies/MountainCarGoal-v0", disable_env_checker=True))


def _pixels(name: str = "", tile: int = 8, **_: Any) -> Env:
    from minigrid.wrappers import ImgObsWrapper, RGBImgObsWrapper

    return ImgObsWrapper(
        RGBImgObsWrapper(  # type: ignore[no-untyped-call]
            gymnasium.make(name, disable_env_checker=True), tile_size=tile
        )
    )


TASKS: dict[str, tuple[Callable[..., Env], int | None, dict[str, Any]]] = {
    "KeyRoom": (KeyRoom, 200, {}),
    "SlipperyKeyRoom": (KeyRoom, 200, {"size": 7, "slip": 0.2}),
    "PointMaze": (PointMaze, 300, {}),
    "SwingUp": (SwingUp, None, {}),
    "SwingUpHard": (SwingUp, None, {"height": 0.95}),
    "PendulumUp": (_pendulum_up, None, {}),
    "SetBits": (SetBits, 40, {}),
    "Dials": (Dials, 500, {}),
    "TwoGoals": (TwoGoals, None, {}),
    "Reach": (Reach, 100, {}),
    "BlinkingRoom": (BlinkingRoom, 80, {}),
    "Current": (Current, 1_500, {}),
    "SoftLanding": (SoftLanding, 100, {}),
    "NearSight": (NearSight, 200, {}),
    "StickyCar": (_sticky_car, None, {}),
    "DoorKeyPixels": (_pixels, None, {"name": "MiniGrid-DoorKey-6x6-v0"}),
    "MultiRoomPixels": (_pixels, None, {"name": "MiniGrid-MultiRoom-N2-S4-v0"}),
}
"""What makes each, its time limit if it has none of its own, and arguments."""
for _name, (_made, _steps, _arguments) in TASKS.items():
    gymnasium.register(f"solve/{_name}-v0", _made, kwargs=_arguments, max_episode_steps=_steps)
