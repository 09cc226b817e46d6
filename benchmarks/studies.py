"""What the studies of Curious Explorer share: a problem, a run that counts every sample, and a table with spread."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from curious_explorer import TabularWorld, evaluate, solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.studies.executors import Executor, Processes
from curious_explorer.studies.runner import EXECUTORS, make_executor

Job = TypeVar("Job")
Result = TypeVar("Result")
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


def asked_for(description: str | None) -> Executor:
    """The executor that a study's command line names: ``--executor``, ``--workers``; a cluster is RAY_ADDRESS's."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", default="processes", help=f"{', '.join(EXECUTORS)} (processes)")
    parser.add_argument("--workers", type=int, help="jobs at once; all cores by default, with ray all that fit")
    arguments = parser.parse_args()
    try:
        return make_executor(arguments.executor, workers=arguments.workers)
    except ValueError as error:
        parser.error(str(error))


def run_all(
    function: Callable[[Job], Result], jobs: Iterable[Job], label: str, executor: Executor | None = None
) -> list[Result]:
    """The results of all jobs, in their order, with a progress bar on the way."""
    listed = list(enumerate(jobs))
    results: dict[int, Result] = {}
    chosen = Processes(workers=WORKERS) if executor is None else executor
    chosen.check()
    with Progress(console=Console(stderr=True)) as progress, closing(chosen.run(Numbered(function), listed)) as done:
        bar = progress.add_task(label, total=len(listed))
        for number, result in done:
            results[number] = result
            progress.advance(bar)
    return [results[number] for number, _ in listed]


@dataclass(frozen=True)
class Numbered(Generic[Job, Result]):
    """A function that hands its job's number on; a class of the module, so that worker processes can find it."""

    function: Callable[[Job], Result]

    def __call__(self, job: tuple[int, Job]) -> tuple[int, Result]:
        """The job's number and its result."""
        return job[0], self.function(job[1])


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
