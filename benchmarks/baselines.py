"""``python -m benchmarks.baselines``: how many samples each method needs, and how many steps a second it takes.

Samples: the first of the policies that ``watch`` sees (what the method would use now; for model-based methods, the best
policy for what was seen) that is worth 0.99 of the best value from the start, evaluated exactly, at no sample cost.
Labels are permuted and every step is counted. Speed: whole runs on the lock of depth 20, planning included, next to the
same methods as one writes them first in Python (`plain_learners`). With ``--rlberry PYTHON``, an interpreter that has
rlberry-scool, only that: speed beside it (`rlberry_rival`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import plain_learners
from benchmarks.rivals import ToyTextEnv
from benchmarks.rlberry_rival import speed_beside_rlberry
from benchmarks.studies import WORKERS, fraction_of_optimum, samples_to
from curious_explorer import TabularWorld
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.explorers.methods import METHODS
from curious_explorer.mdp.finite_mdp import FiniteMDP

GAMMA, TARGET, SEEDS = 0.95, 0.99, 5
ENVIRONMENTS: dict[str, Callable[[int], FiniteMDP]] = {
    "CCT(10)": lambda seed: crossroad_traps(10, permute_actions=seed),
    "DCL(10)": lambda seed: combination_lock(10, permute_actions=seed),
    "DCL(20)": lambda seed: combination_lock(20, permute_actions=seed),
}
BUDGETS = {"CCT(10)": 1_000_000, "DCL(10)": 1_000_000, "DCL(20)": 10_000}
SPEED_STEPS = 1_000_000
PLAIN: dict[str, tuple[Callable[..., object], int]] = {
    "eps-greedy-q": (plain_learners.q_learning, 50_000),
    "r-max": (plain_learners.r_max, 50_000),
    "ucbvi": (plain_learners.ucbvi, 20_000),
}
"""Each in plain Python, and how many steps of it one waits for."""


def run(job: tuple[str, str, int]) -> tuple[int | None, float]:
    """Samples to the target, or None, and the final fraction of the best value, of one seed."""
    environment, method, seed = job
    mdp = ENVIRONMENTS[environment](seed)
    world = TabularWorld(mdp, seed=seed)
    watch, reached = samples_to(mdp, world, TARGET, GAMMA)
    result = METHODS[method]()(world, None, gamma=GAMMA, budget=BUDGETS[environment], watch=watch)
    return (reached[0] if reached else None), fraction_of_optimum(mdp, result.policy, GAMMA)


def samples_table(environment: str, methods: Iterable[str]) -> Table:
    table = Table(title=f"{environment}: samples to {TARGET} V*, budget {BUDGETS[environment]:,}, {SEEDS} seeds")
    for name in ("method", "median", "worst", "reached", "final fraction, mean", "worst"):
        table.add_column(name, justify="left" if name == "method" else "right")
    jobs = [(environment, method, seed) for method in methods for seed in range(SEEDS)]
    with ProcessPoolExecutor(WORKERS) as pool:
        outcomes = dict(zip(jobs, pool.map(run, jobs), strict=True))
    for method in methods:
        mine = [outcomes[environment, method, seed] for seed in range(SEEDS)]
        reached = [np.inf if samples is None else samples for samples, _ in mine]
        final = [fraction for _, fraction in mine]
        table.add_row(
            method,
            *(f"{value:,.0f}" if np.isfinite(value) else "-" for value in (np.median(reached), max(reached))),
            f"{np.isfinite(reached).sum()} of {SEEDS}",
            f"{np.mean(final):.3f}",
            f"{min(final):.3f}",
        )
    return table


def steps_a_second(function: Callable[..., object], steps: int) -> float:
    """Of a function that takes the number of steps."""
    began = time.perf_counter()
    function(steps)
    return steps / (time.perf_counter() - began)


def ours(mdp: FiniteMDP, method: str, steps: int) -> float:
    return steps_a_second(lambda n: METHODS[method]()(TabularWorld(mdp), None, gamma=GAMMA, budget=n), steps)


def plain(mdp: FiniteMDP, method: str) -> tuple[float, int]:
    function, steps = PLAIN[method]
    arguments = (ToyTextEnv(mdp), mdp.num_states, mdp.num_actions, GAMMA)
    return steps_a_second(lambda n: function(*arguments, n), steps), steps


def speed_table() -> Table:
    table = Table(title="DCL(20): environment steps a second, planning included")
    for name in (
        "method",
        "10,000 steps",
        f"{SPEED_STEPS:,} steps",
        "plain Python",
        "times as fast",
        "in the long run",
    ):
        table.add_column(name, justify="left" if name == "method" else "right")
    mdp = combination_lock(20)
    for name in METHODS:
        ours(mdp, name, 2_000)  # compile
        row = [name, f"{ours(mdp, name, 10_000):,.0f}", f"{(long_run := ours(mdp, name, SPEED_STEPS)):,.0f}"]
        if name in PLAIN:
            theirs, steps = plain(mdp, name)
            row += [f"{theirs:,.0f} ({steps:,} steps)", f"{ours(mdp, name, steps) / theirs:,.0f}"]
            row += [f"{long_run / theirs:,.0f}"]
        table.add_row(*row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rlberry", metavar="PYTHON", help="an interpreter in which rlberry-scool is installed")
    rlberry = parser.parse_args().rlberry
    console = Console(width=130)
    if rlberry is not None:
        console.print(*speed_beside_rlberry(rlberry))
        return
    for environment in ("CCT(10)", "DCL(10)"):
        console.print(samples_table(environment, list(METHODS)))
    console.print(
        samples_table("DCL(20)", ["r-max", "e3", "mbie", "mbie-eb", "beb", "ucrl2", "psrl", "ucbvi", "ucb-q"])
    )
    console.print(speed_table())


if __name__ == "__main__":
    main()
