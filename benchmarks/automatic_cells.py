"""``python -m benchmarks.automatic_cells``: what `GymWorld` makes of environments that nobody prepared.

Each task is an id or an environment of this file, and a number of samples; nothing else is said. Printed are the steps
of the look, the cells that were met, and the samples to the first reward, those of the look included (classic control:
to the end of the episode that it is about). MiniGrids have one fixed layout a seed. Time limits are the environments'.

Chosen on MountainCar, DoorKey-8x8 and DoorKey-8x8 from pixels; all other tasks were run once, with what was chosen.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer import Frontier, GymWorld

GAMMA = 0.99


class GoalAtTheEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays 1 where the episode is over for good, and nothing before."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, float(terminated), terminated, truncated, info


class Upright(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pendulum that pays only while it is upright and slow."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, float(observation[0] > 0.95 and abs(observation[2]) < 1.0), terminated, truncated, info


class WithNoise(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Numbers with a random number, a number of the clock on the wall, and the steps of the episode beside them."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert env.observation_space.shape is not None
        size = env.observation_space.shape[0] + 3
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self._steps = 0

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        return super().reset(**arguments)

    def observation(self, observation: Any) -> Any:
        self._steps += 1
        beside = [self.env.unwrapped.np_random.normal(), time.perf_counter(), self._steps / 200]
        return np.concatenate([observation, beside])


class NoisyScreen(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Pictures with a screen in one corner that shows snow."""

    def observation(self, observation: Any) -> Any:
        seen = observation.copy()
        seen[:12, :12] = self.env.unwrapped.np_random.integers(256, size=(12, 12, 3))
        return seen


class Rooms(gymnasium.Env[Any, Any]):
    """A place in the unit square, cut in two by a wall with a door; the key lies in one corner, the goal in another."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(5)
        self.observation_space = self.seen_space()
        self._at, self._key = np.zeros(2), False
        self._moves = np.array([[0, 0], [0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]])

    def seen_space(self) -> spaces.Space[Any]:
        return spaces.Dict(
            where=spaces.Box(0.0, 1.0, (2,)),
            has_key=spaces.Discrete(2),
            mission=spaces.Text(60),
            time=spaces.Discrete(999),
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at, self._key, self._steps = np.array([0.1, 0.1]), False, 0
        return self.see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        before = self._at
        after = np.clip(self._at + self.move(action) + 0.005 * self.np_random.normal(size=2), 0.0, 1.0)
        if (before[0] < 0.5) != (after[0] < 0.5) and not (self._key and abs(after[1] - 0.5) < 0.1):
            after[0] = before[0]
        self._at = after
        self._key |= bool(after[0] < 0.15 and after[1] > 0.85)
        self._steps += 1
        goal = bool(after[0] > 0.85 and after[1] < 0.15)
        return self.see(), float(goal), goal, self._steps >= 300, {}

    def move(self, action: Any) -> Any:
        return self._moves[action]

    def see(self) -> Any:
        where = self._at.astype(np.float32)
        return {
            "where": where,
            "has_key": int(self._key),
            "mission": "get the key and go to the goal",
            "time": self._steps,
        }


class ManyNumbers(Rooms):
    """The same, seen as 30 numbers: place and key mixed by a fixed matrix, and ten that wander by themselves."""

    def __init__(self) -> None:
        self._mix = np.random.default_rng(5).normal(size=(20, 3))
        self._wander = np.zeros(10)
        super().__init__()

    def seen_space(self) -> spaces.Space[Any]:
        return spaces.Box(-np.inf, np.inf, (30,), np.float64)

    def see(self) -> Any:
        self._wander = 0.95 * self._wander + 0.3 * self.np_random.normal(size=10)
        return np.concatenate([self._mix @ [*self._at, 0.5 * self._key], self._wander])


class Picture(Rooms):
    """The same as a picture of 64 x 64, with continuous actions, the key where it lies or in a corner, and clouds."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1.0, 1.0, (2,))

    def seen_space(self) -> spaces.Space[Any]:
        return spaces.Box(0, 255, (64, 64, 3), np.uint8)

    def move(self, action: Any) -> Any:
        return 0.05 * np.clip(action, -1.0, 1.0)

    def see(self) -> Any:
        seen = np.full((64, 64, 3), 40, dtype=np.uint8)
        seen[:, 32] = 90
        row, column = int(self._at[1] * 58), int(self._at[0] * 58)
        seen[60:64, :8] = 200 if self._key else 40
        seen[row : row + 6, column : column + 6] = 255
        return seen


class Task(NamedTuple):
    """An environment, samples, and whether its layout is to be fixed by the seed."""

    make: Callable[[], gymnasium.Env[Any, Any]]
    samples: int
    fixed_layout: bool = False
    by_hand: str = ""


def minigrid(name: str, *, pixels: bool = False, partial: bool = False, noisy: bool = False) -> Callable[[], Any]:
    def make() -> gymnasium.Env[Any, Any]:
        wrappers: Any = importlib.import_module("minigrid.wrappers")

        env = gymnasium.make(f"MiniGrid-{name}-v0", disable_env_checker=True)
        if pixels:
            env = wrappers.ImgObsWrapper(wrappers.RGBImgObsWrapper(env, tile_size=8))
        if partial:
            env = wrappers.FlatObsWrapper(env)
        return NoisyScreen(env) if noisy else env

    return make


def classic(name: str, around: Callable[[Any], Any] = GoalAtTheEnd) -> Callable[[], Any]:
    return lambda: around(gymnasium.make(name, disable_env_checker=True))


TASKS = {
    "MountainCar": Task(classic("MountainCar-v0"), 60_000, by_hand="6,320"),
    "DoorKey-8x8": Task(minigrid("DoorKey-8x8"), 100_000, True, by_hand="1,676"),
    "DoorKey-8x8, pixels": Task(minigrid("DoorKey-8x8", pixels=True), 100_000, True),
    "MountainCarContinuous": Task(classic("MountainCarContinuous-v0"), 60_000),
    "Acrobot": Task(classic("Acrobot-v1"), 60_000, by_hand="13,684"),
    "Pendulum upright": Task(classic("Pendulum-v1", Upright), 60_000),
    "CartPole": Task(classic("CartPole-v1"), 20_000),
    "FrozenLake 8x8": Task(lambda: gymnasium.make("FrozenLake-v1", map_name="8x8"), 50_000),
    "Taxi": Task(lambda: gymnasium.make("Taxi-v4"), 50_000),
    "Blackjack": Task(lambda: gymnasium.make("Blackjack-v1"), 20_000),
    "KeyCorridorS3R3": Task(minigrid("KeyCorridorS3R3"), 100_000, True, by_hand="13,372"),
    "MultiRoom-N4": Task(minigrid("MultiRoom-N4-S5"), 100_000, True, by_hand="6,081"),
    "UnlockPickup": Task(minigrid("UnlockPickup"), 100_000, True, by_hand="1,605"),
    "UnlockPickup, pixels": Task(minigrid("UnlockPickup", pixels=True), 100_000, True),
    "MultiRoom-N4, pixels": Task(minigrid("MultiRoom-N4-S5", pixels=True), 100_000, True),
    "DoorKey-8x8, flat partial view": Task(minigrid("DoorKey-8x8", partial=True), 100_000, True),
    "DoorKey-8x8, pixels, snow": Task(minigrid("DoorKey-8x8", pixels=True, noisy=True), 100_000, True),
    "MountainCar, noise and clocks": Task(lambda: WithNoise(classic("MountainCar-v0")()), 60_000),
    "Rooms, Dict": Task(Rooms, 100_000),
    "Rooms, 30 numbers": Task(ManyNumbers, 100_000),
    "Rooms, picture": Task(Picture, 100_000),
    "LunarLander": Task(classic("LunarLander-v3"), 60_000),
}


class Run(NamedTuple):
    """What one run took and found."""

    look: int
    first_reward: int | None
    cells: int
    samples: int
    words: str


def run(task: Task, seed: int) -> Run:
    """One run of a task."""
    env = task.make()
    world = GymWorld(env, seed=seed, layout=seed if task.fixed_layout else None, time_limits=True)
    look = world.samples
    found = Frontier(stop_at_reward=True).explore(world, gamma=GAMMA, samples=task.samples - look)
    first = None if found.first_reward is None else world.samples
    return Run(look, first, int((found.total_visited > 0).sum()), world.samples, world.describe())


def first_rewards(runs: list[Run], limit: int) -> str:
    """The median and the range, or how many found any."""
    found = sorted(each.first_reward for each in runs if each.first_reward is not None)
    if not found:
        return f"0 of {len(runs)} within {limit:,}"
    middle = len(runs) // 2
    median = f"{found[middle]:,}" if middle < len(found) else f"more than {limit:,}"
    some = "" if len(found) == len(runs) else f"; {len(found)} of {len(runs)}"
    return f"{median} ({found[0]:,} to {found[-1]:,}{some})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| task | look | cells met | samples to the first reward: median (range) | cells by hand |")
    print("|---|---|---|---|---|", flush=True)
    for name in options.tasks:
        task, began = TASKS[name], time.process_time()
        try:
            runs = [run(task, seed) for seed in range(options.seeds)]
        except gymnasium.error.DependencyNotInstalled as error:
            print(f"| {name} | | not run: {error} | | |", flush=True)
            continue
        looks, cells = (sorted({getattr(each, field) for each in runs}) for field in ("look", "cells"))
        words = first_rewards(runs, task.samples)
        print(f"| {name} | {looks[-1]:,} | {cells[0]:,} to {cells[-1]:,} | {words} | {task.by_hand} |")
        micros = 1e6 * (time.process_time() - began) / sum(each.samples for each in runs)
        print(f"<!-- {micros:.0f} microseconds a sample. {runs[0].words} -->", flush=True)


if __name__ == "__main__":
    main()
