"""``python -m benchmarks.frontier``: samples to the first reward, for `Frontier` and for what it is to be beside.

Every method restarts and steps, and every step of the environment is counted where the environment is stepped. Layouts
are fixed: run k of a task has the layout of seed k. Time limits are those of the environments. Observations of MiniGrid
are not drawn, because no method here looks at them; the six actions that do anything are given to all.

- frontier: `Frontier`, on all of the symbolic state (MiniGrid), or on a grid of cells.
- archive: back to a stored cell by its stored actions, then 20 random steps; cells drawn by 1 / sqrt(visits), the
  shortest way to each is kept.
- random: random actions.
- model-based: `ModelBased` from the start, with the cells that studies give it (MiniGrid: without movable things).

With ``--tables``, samples to a policy worth 0.95 of the best on DCL(20) and CCT(20), and what it takes to see a deep
sea whole. Choose with ``--tasks``, ``--methods``, ``--seeds`` and ``--limit``; the table has a line for each task and
method. ``--out FILE`` keeps every run as a line of JSON; runs that are there are not made again, so that a study that
was stopped (``--minutes`` stops it by itself, and leaves out what is not finished) goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from curious_explorer import (
    Frontier,
    GridCells,
    GymWorld,
    MiniGridCells,
    ModelBased,
    TabularWorld,
    World,
    evaluate,
    explore,
    solve,
)
from curious_explorer.environments import combination_lock, crossroad_traps, deep_sea
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.explorers.methods import METHODS as EXPLORERS
from curious_explorer.studies.runner import make_executor

ACROBOT = GridCells([4, 4, 4, 4, 3, 3], [-1, -1, -1, -1, -12.6, -28.3], [1, 1, 1, 1, 12.6, 28.3])
MOUNTAIN_CAR = GridCells(20, [-1.2, -0.07], [0.6, 0.07])
TASKS: dict[str, tuple[str, int, GridCells | None]] = {
    "KeyCorridorS3R1": ("MiniGrid-KeyCorridorS3R1-v0", 50_000, None),
    "KeyCorridorS3R3": ("MiniGrid-KeyCorridorS3R3-v0", 100_000, None),
    "KeyCorridorS4R3": ("MiniGrid-KeyCorridorS4R3-v0", 200_000, None),
    "KeyCorridorS5R3": ("MiniGrid-KeyCorridorS5R3-v0", 500_000, None),
    "KeyCorridorS6R3": ("MiniGrid-KeyCorridorS6R3-v0", 1_000_000, None),
    "DoorKey-8x8": ("MiniGrid-DoorKey-8x8-v0", 100_000, None),
    "DoorKey-16x16": ("MiniGrid-DoorKey-16x16-v0", 200_000, None),
    "UnlockPickup": ("MiniGrid-UnlockPickup-v0", 100_000, None),
    "BlockedUnlockPickup": ("MiniGrid-BlockedUnlockPickup-v0", 300_000, None),
    "MultiRoom-N4": ("MiniGrid-MultiRoom-N4-S5-v0", 100_000, None),
    "MultiRoom-N6": ("MiniGrid-MultiRoom-N6-v0", 200_000, None),
    "ObstructedMaze-1Dlh": ("MiniGrid-ObstructedMaze-1Dlh-v0", 100_000, None),
    "ObstructedMaze-1Dlhb": ("MiniGrid-ObstructedMaze-1Dlhb-v0", 300_000, None),
    "MultiRoom-N7-S8": ("MiniGrid-MultiRoom-N7-S8-v0", 600_000, None),
    "ObstructedMaze-2Dlh": ("MiniGrid-ObstructedMaze-2Dlh-v0", 300_000, None),
    "ObstructedMaze-2Dlhb": ("MiniGrid-ObstructedMaze-2Dlhb-v1", 600_000, None),
    "ObstructedMaze-Full": ("MiniGrid-ObstructedMaze-Full-v1", 2_000_000, None),
    "LockedRoom": ("MiniGrid-LockedRoom-v0", 600_000, None),
    "MountainCar": ("MountainCar-v0", 60_000, MOUNTAIN_CAR),
    "Acrobot": ("Acrobot-v1", 60_000, ACROBOT),
}
"""The environment of each task, the most samples for all methods, and cells where they are not MiniGrid's."""
ARCHIVE_STEPS = 20
LOOK_AT_CLOCK = 1_000
GAMMA = 0.99


class RewardError(Exception):
    """The first reward: nothing more is to be measured."""


class LateError(Exception):
    """No time is left for this run."""


class Run(NamedTuple):
    """One run of a method on a task, with the samples of the first reward (None: not within the limit)."""

    task: str
    method: str
    seed: int
    limit: int
    sticky: float
    first: int | None = None
    taken: int = 0
    seconds: float = 0.0

    @property
    def asked(self) -> tuple[Any, ...]:
        """What tells runs apart."""
        return self[:5]


class UntilReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts steps and stops at the first reward; classic control pays where an episode reaches its goal."""

    def __init__(self, env: gymnasium.Env[Any, Any], *, pays_at_the_end: bool) -> None:
        super().__init__(env)
        self.steps, self.found, self.deadline = 0, False, math.inf
        self._pays_at_the_end = pays_at_the_end

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        if self.steps % LOOK_AT_CLOCK == 0 and time.time() > self.deadline:
            raise LateError
        if terminated if self._pays_at_the_end else float(reward) > 0.0:
            self.found = True
            raise RewardError
        return observation, 0.0, terminated, truncated, info


class Sticky(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Repeats the last action instead of the one that is asked for, now and then."""

    def __init__(self, env: gymnasium.Env[Any, Any], probability: float, seed: int) -> None:
        super().__init__(env)
        self._probability, self._random, self._last = probability, np.random.default_rng(seed), None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._last = None
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self._last is None or self._random.random() >= self._probability:
            self._last = action
        return self.env.step(self._last)


def open_task(task: str, seed: int, method: str, sticky: float = 0.0) -> tuple[GymWorld, UntilReward]:
    """The world of a run, and the environment that knows when the reward was found."""
    identifier, _, cells = TASKS[task]
    grid = cells is None
    if grid:
        import minigrid  # noqa: F401

        if identifier not in gymnasium.registry:  # seven rooms, which the literature uses and MiniGrid does not list
            rooms = {"minNumRooms": 7, "maxNumRooms": 7, "maxRoomSize": 8}
            gymnasium.register(identifier, entry_point="minigrid.envs:MultiRoomEnv", kwargs=rooms)
    made = gymnasium.make(identifier, disable_env_checker=True)
    if grid:
        made.reset(seed=seed)
        bare: Any = made.unwrapped
        nothing = bare.gen_obs()
        bare.gen_obs = lambda: nothing
    if sticky > 0.0:
        made = Sticky(made, sticky, seed)
    env = UntilReward(made, pays_at_the_end=not grid)
    if grid and method == "model-based":
        return GymWorld(env, cells=MiniGridCells(), actions=list(range(6)), seed=seed, layout=seed), env
    given = MiniGridCells(10_000_000, things=True) if grid else cells
    actions, layout = (list(range(6)), seed) if grid else (None, None)
    return GymWorld(env, cells=given, actions=actions, seed=seed, layout=layout, time_limits=True), env


def by_frontier(world: World, limit: int) -> None:
    Frontier().explore(world, gamma=GAMMA, samples=limit)


def by_random_walks(world: World, limit: int) -> None:
    generator = np.random.default_rng(world.seed)
    world.restart()
    for action in generator.integers(world.num_actions, size=limit):
        step = world.step(int(action))
        if step.terminated or step.truncated:
            world.restart()


class ArchiveOfWays:
    """Where a world was stepped to, and the shortest way to each place that was taken; remembers the best episode."""

    def __init__(self, world: World, generator: np.random.Generator) -> None:
        self._world, self._random = world, generator
        self._ways: dict[int, tuple[int, ...]] = {world.restart(): ()}
        self._cells, self._visits = list(self._ways), [1]
        self.best_way: tuple[int, ...] = ()
        self.best_return = 0.0
        self.first_reward: int | None = None
        """After how many samples of the world it was met."""

    def advance(self, limit: int) -> None:
        """Go back to a stored place and on at random, unless the world has taken so many samples by then."""
        weights = np.cumsum(1.0 / np.sqrt(np.array(self._visits) + 1.0))
        chosen = int(np.searchsorted(weights, self._random.random() * weights[-1]))
        self._visits[chosen] += 1
        back = self._ways[self._cells[chosen]]
        self._world.restart()
        way, returned = [], 0.0
        for action in (*back, *self._random.integers(self._world.num_actions, size=ARCHIVE_STEPS).tolist()):
            if self._world.samples + self._world.most_samples_a_step > limit:
                return
            step = self._world.step(action)
            way.append(action)
            returned += step.reward
            if step.reward > 0.0 and self.first_reward is None:
                self.first_reward = self._world.samples
            if returned > self.best_return:
                self.best_return, self.best_way = returned, tuple(way)
            if step.terminated or step.truncated:
                return
            self._store(step.state, tuple(way))

    def _store(self, cell: int, way: tuple[int, ...]) -> None:
        """Keep a way that is new, or shorter."""
        known = self._ways.get(cell)
        if known is None:
            self._cells.append(cell)
            self._visits.append(0)
        if known is None or len(way) < len(known):
            self._ways[cell] = way


def by_archive(world: World, limit: int) -> None:
    archive, last = ArchiveOfWays(world, np.random.default_rng(world.seed)), world.samples + limit
    while world.samples + world.most_samples_a_step <= last:
        archive.advance(last)


def by_model_based(world: World, limit: int) -> None:
    ModelBased()(world, None, gamma=GAMMA, budget=limit)


METHODS: dict[str, Callable[[World, int], None]] = {
    "frontier": by_frontier,
    "archive": by_archive,
    "random": by_random_walks,
    "model-based": by_model_based,
}


def first_reward(job: tuple[Run, float]) -> Run | None:
    """A run that was made; None if there was no time left before the deadline."""
    run, deadline = job
    if time.time() > deadline:
        return None
    warnings.simplefilter("ignore")
    began = time.process_time()
    world, env = open_task(run.task, run.seed, run.method, run.sticky)
    env.deadline = deadline
    try:
        METHODS[run.method](world, run.limit)
    except EnvironmentFailureError as error:
        if isinstance(error.__cause__, LateError):
            return None
        if not isinstance(error.__cause__, RewardError):
            raise
    found = env.steps if env.found else None
    return run._replace(first=found, taken=env.steps, seconds=time.process_time() - began)


def report(name: str, method: str, found: list[int | None], words: str) -> None:
    """One line: the median and the range, those that found nothing counted as the longest."""
    order = sorted(np.inf if one is None else one for one in found)
    texts = ["not found" if one == np.inf else f"{one:,.0f}" for one in (np.median(order), order[0], order[-1])]
    hits = sum(one is not None for one in found)
    print(
        f"| {name} | {method} | {texts[0]} | {texts[1]} to {texts[2]} | {hits} of {len(found)} | {words} |", flush=True
    )


def rewards(asked: list[Run], out: Path | None, workers: int, minutes: float) -> None:
    """Make the runs that are not there yet, and print the table of all that were asked for."""
    made = {} if out is None or not out.exists() else {run.asked: run for run in map(_read, out.open())}
    deadline = time.time() + 60.0 * minutes
    left = sorted((run for run in asked if run.asked not in made), key=lambda run: -run.limit)
    with closing(make_executor(workers=workers).run(first_reward, [(run, deadline) for run in left])) as runs:
        for run in runs:
            if run is not None:
                made[run.asked] = run
                if out is not None:
                    with out.open("a") as file:
                        file.write(json.dumps(run._asdict()) + "\n")
    print(
        "| task | method | median samples | range | found | limit, microseconds a sample |\n|---|---|---|---|---|---|"
    )
    for task, method, limit in dict.fromkeys((run.task, run.method, run.limit) for run in asked):
        those = [run for run in asked if (run.task, run.method, run.limit) == (task, method, limit)]
        group = [made[run.asked] for run in those if run.asked in made]
        missing = f", {len(those) - len(group)} not finished" if len(group) < len(those) else ""
        if group:
            pace = 1e6 * sum(run.seconds for run in group) / sum(run.taken for run in group)
            report(task, method, [run.first for run in group], f"{limit:,}; {pace:.0f}{missing}")
        else:
            print(f"| {task} | {method} | - | - | - | {limit:,}{missing} |", flush=True)


def _read(line: str) -> Run:
    return Run(**json.loads(line))


def tables(seeds: int) -> None:
    """Samples to the goal's policy, and to all of a deep sea."""
    for name, make, samples in (("DCL(20)", combination_lock, 5_000), ("CCT(20)", crossroad_traps, 1_000)):
        for method in ("frontier", "mbie-eb"):
            found: list[int | None] = []
            for seed in range(seeds):
                mdp = make(20, permute_actions=seed)
                best = float(mdp.start @ solve(mdp, gamma=0.95).values)
                reached: list[int] = []

                def watch(policy: Any, used: int, mdp: Any = mdp, best: float = best, reached: Any = reached) -> None:
                    if not reached and mdp.start @ evaluate(mdp, policy, gamma=0.95) >= 0.95 * best:
                        reached.append(used)

                explorer = Frontier() if method == "frontier" else EXPLORERS[method]()
                explore(TabularWorld(mdp, seed=seed), explorer, gamma=0.95, samples=samples, watch=watch)
                found.append(reached[0] if reached else None)
            report(f"{name}, policy at 0.95 V*", method, found, f"{samples:,}")
    for depth in (20, 50, 100):
        whole: list[int | None] = []
        for seed in range(min(seeds, 5)):
            world = TabularWorld(deep_sea(depth, permute_actions=seed), seed=seed)
            got = explore(world, gamma=0.99, samples=1_000_000)
            whole.append(got.samples if got.complete else None)
        report(f"deep sea {depth}, seen whole", "frontier", whole, "1,000,000")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS), help="some of: " + ", ".join(TASKS))
    parser.add_argument("--methods", default=",".join(METHODS), help="some of: " + ", ".join(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--sticky", type=float, default=0.0, help="how often the last action is repeated instead")
    parser.add_argument("--limit", type=int, default=None, help="samples of every run, in place of each task's own")
    parser.add_argument("--out", type=Path, default=None, help="a file of runs to add to, as JSON lines")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no run is begun or gone on with after these")
    parser.add_argument("--tables", action="store_true", help="the tables of transitions instead of the tasks")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.tables:
        tables(asked.seeds)
        return
    runs = [
        Run(task, method, asked.first_seed + seed, TASKS[task][1] if asked.limit is None else asked.limit, asked.sticky)
        for task in asked.tasks.split(",")
        for method in asked.methods.split(",")
        for seed in range(asked.seeds)
    ]
    rewards(runs, asked.out, asked.workers, asked.minutes)


if __name__ == "__main__":
    main()
