"""What the studies of Curious Explorer share: a problem, a run that counts every sample, and a table with spread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from curious_explorer import TabularWorld, evaluate, solve
from curious_explorer.mdp import FiniteMDP

Job = TypeVar("Job")
WORKERS = 2


class Outcome(NamedTuple):
    """One seed of one row."""

    row: str
    fraction: float
    exploration_samples: int
    learning_samples: int
    seconds: float


def fraction_of_optimum(mdp: FiniteMDP, policy: np.ndarray[Any, Any], gamma: float) -> float:
    """The exact value from the start, over the best possible one."""
    best = mdp.start @ solve(mdp, gamma=gamma).values
    return float(mdp.start @ evaluate(mdp, policy, gamma=gamma) / best)


def samples_to(
    mdp: FiniteMDP, world: TabularWorld, target: float, gamma: float
) -> tuple[Callable[[np.ndarray[Any, Any], int], None], list[int]]:
    """A function for an optimizer's ``watch``, and the list where it notes the samples at which the target was met."""
    best = float(mdp.start @ solve(mdp, gamma=gamma).values)
    reached: list[int] = []

    def watch(policy: np.ndarray[Any, Any], used: int) -> None:
        if not reached and mdp.start @ evaluate(mdp, policy, gamma=gamma) >= target * best:
            reached.append(world.samples)

    return watch, reached


def run_all(function: Callable[[Job], Outcome], jobs: Iterable[Job], label: str) -> list[Outcome]:
    """Run every job in worker processes, with a progress bar."""
    listed = list(jobs)
    outcomes = []
    with Progress(console=Console(stderr=True)) as progress, ProcessPoolExecutor(WORKERS) as pool:
        bar = progress.add_task(label, total=len(listed))
        for outcome in pool.map(function, listed):
            outcomes.append(outcome)
            progress.advance(bar)
    return outcomes


def table_of(outcomes: list[Outcome], title: str) -> Table:
    table = Table(title=title)
    names = ("setting", "mean", "std", "min", "exploration", "learning", "worst total", "s/run", "seeds")
    for name in names:
        table.add_column(name, justify="left" if name == "setting" else "right")
    for row in dict.fromkeys(outcome.row for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.row == row]
        values = [outcome.fraction for outcome in mine]
        table.add_row(
            row,
            f"{np.mean(values):.3f}",
            f"{np.std(values):.3f}",
            f"{min(values):.3f}",
            f"{np.mean([outcome.exploration_samples for outcome in mine]):,.0f}",
            f"{np.mean([outcome.learning_samples for outcome in mine]):,.0f}",
            f"{max(outcome.exploration_samples + outcome.learning_samples for outcome in mine):,}",
            f"{max(outcome.seconds for outcome in mine):.1f}",
            str(len(mine)),
        )
    return table
