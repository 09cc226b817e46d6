"""Sampling: `visit` and policy-gradient statistics against what a user would pick instead, in one run.

``python -m benchmarks.walks`` prints the table. Steps are those really taken; steps a walk would "take" in a terminal
state count for nobody. Each figure is the best of several runs, ours and theirs alike, after a warm-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from rich.console import Console
from rich.table import Table

from benchmarks import rivals
from curious_explorer import TRPO, TabularWorld, visit
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds.alias_tables import composed_log2_size
from curious_explorer.worlds.roll_in import RollIn

GAMMA = 0.95


class Row(NamedTuple):
    """One line of the table."""

    task: str
    who: str
    steps_a_second: float
    memory_bytes: int | None = None


def best_rate(function: Callable[[], int], repeats: int = 5) -> float:
    """The highest number of steps a second of several runs."""
    function()
    rates = []
    for _ in range(repeats):
        begin = time.perf_counter()
        steps = function()
        rates.append(steps / (time.perf_counter() - begin))
    return max(rates)


def visit_rate(mdp: FiniteMDP, count: int, *, threads: int) -> float:
    world = TabularWorld(mdp, seed=1, threads=threads)
    policy = mdp.uniform_policy()
    policy.flags.writeable = False  # so that the world knows it again and builds its table once

    def walk() -> int:
        before = world.samples
        visit(world, policy, gamma=GAMMA, count=count)
        return world.samples - before

    return best_rate(walk)


def small_rows() -> list[Row]:
    mdp = combination_lock(20)
    table = 16 * mdp.num_states << composed_log2_size(mdp)
    task = "visit, DCL(20), 64 states"
    tuned = rivals.TunedEnv(mdp)
    plain = gymnasium_stack(mdp)
    uniform = mdp.uniform_policy()
    return [
        Row(task, "curious-explorer, 1 thread", visit_rate(mdp, 2_000_000, threads=1), table),
        Row(task, "curious-explorer, 2 threads", visit_rate(mdp, 2_000_000, threads=2), table),
        Row(task, "NumPy, 10,000 walks at a time", best_rate(lambda: rivals.numpy_walker(mdp, GAMMA, 10_000))),
        Row(task, "Gymnasium loop, hand-tuned", best_rate(lambda: rivals.tuned_loop(tuned, uniform, GAMMA, 20_000), 3)),
        Row(task, "Gymnasium loop, as written", best_rate(lambda: rivals.plain_loop(plain, uniform, GAMMA, 1_000), 3)),
        Row(task, "Gymnasium SyncVectorEnv of 64", best_rate(lambda: rivals.vector_env_loop(mdp, GAMMA, 100), 3)),
    ]


def gymnasium_stack(mdp: FiniteMDP) -> gymnasium.Env[int, int]:
    """The environment as ``gymnasium.make`` hands it out: order checks and a time limit around it."""
    return TimeLimit(OrderEnforcing(PassiveEnvChecker(rivals.ToyTextEnv(mdp))), 1_000)


def large_rows() -> list[Row]:
    rows = []
    for branching in (1, 2):
        mdp = garnet(10**6, 4, branching)
        table = 16 * mdp.num_states << composed_log2_size(mdp)
        task = f"visit, random graph, 10^6 states, {4 * branching} successors"
        rows += [
            Row(task, f"curious-explorer, {threads} thread{'s' * (threads > 1)}", rate, table)
            for threads in (1, 2)
            for rate in [visit_rate(mdp, 2_000_000, threads=threads)]
        ]
    return rows


class TrainingTime(NamedTuple):
    """A whole TRPO training of 2,400 episodes."""

    ours: float
    numpy: float


def training_time(updates: int = 24, episodes: int = 100) -> TrainingTime:
    """2,400 episodes on DCL(20), from its start."""
    mdp = combination_lock(20)
    world = TabularWorld(mdp, seed=1)
    optimizer = TRPO(updates=updates, episodes=episodes)
    reset = RollIn.from_start()
    theirs = rivals.NumpyTRPO(mdp, GAMMA, horizon=90)
    times: dict[str, list[float]] = {"ours": [], "numpy": []}
    optimizer(world, reset, gamma=GAMMA)
    for _ in range(15):
        begin = time.perf_counter()
        optimizer(world, reset, gamma=GAMMA)
        times["ours"].append(time.perf_counter() - begin)
    for _ in range(3):
        begin = time.perf_counter()
        theirs.train(updates, episodes)
        times["numpy"].append(time.perf_counter() - begin)
    return TrainingTime(min(times["ours"]), min(times["numpy"]))


def table_of(rows: list[Row]) -> Table:
    table = Table(title="Sampling: steps a second, all in this run")
    for name in ("task", "who"):
        table.add_column(name)
    for name in ("million steps/s", "ours is faster by", "table"):
        table.add_column(name, justify="right")
    ours = {row.task: row.steps_a_second for row in rows if row.who.endswith("1 thread")}
    for row in rows:
        memory = "" if row.memory_bytes is None else f"{row.memory_bytes / 2**20:,.3g} MiB"
        ratio = ours[row.task] / row.steps_a_second
        table.add_row(row.task, row.who, f"{row.steps_a_second / 1e6:,.3g}", f"{ratio:,.3g}x", memory)
    return table


def report(console: Console) -> None:
    """Print everything."""
    console.print(table_of([*small_rows(), *large_rows()]))
    for updates, episodes in ((24, 100), (48, 50)):
        training = training_time(updates, episodes)
        console.print(
            f"TRPO, DCL(20), {updates} updates x {episodes} episodes: {training.ours * 1e3:.2f} ms of one core; "
            f"in NumPy {training.numpy * 1e3:.0f} ms ({training.numpy / training.ours:.0f}x)"
        )


if __name__ == "__main__":
    report(Console(width=120))
