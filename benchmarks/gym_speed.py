"""``python -m benchmarks.gym_speed``: what `GymWorld` costs, as a fraction of a bare loop's steps a second.

The bare loop steps the same environment with actions drawn beforehand and resets it when an episode ends; it maps
nothing to cells, checks nothing and counts nothing. Portions of both are run in turn, so that what else the machine
does hits both alike, and what is measured is processor time: both are one thread. Each figure is the median over
portions. Resets are part of both, as they are in use. `Frontier` explores while it is measured, compiling left out.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from curious_explorer import Cells, Frontier, GridCells, GymWorld, MiniGridCells
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch

PORTIONS = 15
TARGET = 0.7
GAMMA = 0.99


class Case(NamedTuple):
    """An environment, its cells, and how many steps a portion takes."""

    name: str
    cells: Cells | None
    steps: int


CASES = (
    Case("MountainCar-v0", None, 10_000),
    Case("FrozenLake-v1", None, 10_000),
    Case("CartPole-v1", GridCells(6, [-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0]), 10_000),
    Case("MiniGrid-DoorKey-8x8-v0", MiniGridCells(), 2_000),
)


class Speeds(NamedTuple):
    """Steps a second."""

    bare: float
    walks: float
    episodes: float
    frontier: float


def bare_loop(env: gymnasium.Env[Any, Any], actions: list[int]) -> float:
    began = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return len(actions) / (time.process_time() - began)


def measure(case: Case, portions: int = PORTIONS) -> list[Speeds]:
    env, world = make_by_id(case.name), GymWorld(case.name, cells=case.cells, seed=1)
    policy = np.full((world.num_states, world.num_actions), 1.0 / world.num_actions)
    roll_in = RollIn.from_start().then(policy, GAMMA)
    random = np.random.default_rng(0)
    env.reset(seed=0)
    world.walk(roll_in, 30)
    walks = int(case.steps * 30 / world.samples)  # walks end early where episodes do
    world.episodes(policy, EpisodeBatch(episodes=1, horizon=10, gamma=GAMMA))
    exploring = GymWorld(case.name, cells=case.cells, seed=1)
    exploration = Frontier().begin(exploring)
    exploration.advance(case.steps)
    speeds = []
    for _ in range(portions):
        bare = bare_loop(env, random.integers(world.num_actions, size=case.steps).tolist())
        before, began = world.samples, time.process_time()
        world.walk(roll_in, walks)
        between, halfway = world.samples, time.process_time()
        world.episodes(policy, EpisodeBatch(episodes=case.steps, horizon=200, gamma=GAMMA, max_samples=case.steps))
        ended = time.process_time()
        known = exploration.taken
        exploration.advance(known + case.steps)
        explored = (exploration.taken - known) / (time.process_time() - ended)
        walked, episodes = (between - before) / (halfway - began), (world.samples - between) / (ended - halfway)
        speeds.append(Speeds(bare, walked, episodes, explored))
    env.close()
    world.close()
    exploring.close()
    return speeds


def main() -> None:
    table = Table(title=f"GymWorld against a bare loop, medians of {PORTIONS} portions each (target {TARGET})")
    ratios = ("walks / bare", "episodes / bare", "Frontier / bare")
    for column in ("environment", "bare, steps/s", "walks", "episodes", "Frontier", *ratios):
        table.add_column(column, justify="left" if column == "environment" else "right")
    for case in CASES:
        speeds = measure(case)
        medians = [statistics.median(column) for column in zip(*speeds, strict=True)]
        shares = [statistics.median(one[kind] / one.bare for one in speeds) for kind in range(1, len(medians))]
        table.add_row(case.name, *(f"{speed:,.0f}" for speed in medians), *(f"{share:.2f}" for share in shares))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
