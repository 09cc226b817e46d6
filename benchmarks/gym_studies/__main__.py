"""``python -m benchmarks.gym_studies``: plain PPO, PPO from explored resets and PPO with a bonus, at equal samples.

Every run is a line of ``runs.jsonl``; the same command goes on where another stopped. Ends in a table and a figure.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.gym_studies.jobs import Run, run_named
from benchmarks.gym_studies.tabular import TABULAR_TASKS
from benchmarks.gym_studies.tasks import TASKS
from curious_explorer.studies.executors import available_cores
from curious_explorer.studies.runner import EXECUTORS, make_executor

ARMS = {
    "plain": "from the start",
    "explored": "from explored resets",
    "averaged": "the same, rounds alike",
    "distillation": "with a bonus",
}


def read(path: Path) -> list[Run]:
    """The runs that are there; a line that was cut off by a kill is no run."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return list(_whole(lines))


def _whole(lines: list[str]) -> Iterator[Run]:
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def table(runs: list[Run]) -> Table:
    """Fractions of the best return by task and arm: mean, and worst and best seed."""
    shown = Table(title="Return from the environment's own start, of the best; mean (worst to best seed)")
    for column in ("task", "samples", "exploration", "seeds", *ARMS.values()):
        shown.add_column(column, justify="left" if column == "task" else "right")
    for task in dict.fromkeys(run["task"] for run in runs):
        of_task = [run for run in runs if run["task"] == task]
        explored = [run["exploration_samples"] for run in of_task if run["arm"] == "explored"]
        cells = []
        for arm in ARMS:
            found = [run["fraction"] for run in of_task if run["arm"] == arm]
            cells.append(f"{np.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "")
        seeds = len({run["seed"] for run in of_task})
        spent = f"{np.mean(explored):,.0f}" if explored else ""
        shown.add_row(task, f"{max(run['samples'] for run in of_task):,}", spent, str(seeds), *cells)
    return shown


def main() -> None:
    """Run what is missing, then show everything."""
    every = [*TABULAR_TASKS, *TASKS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=every, default=every)
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=["plain", "explored", "distillation"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--executor", choices=list(EXECUTORS), default="processes")
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("results/gym_studies"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "runs.jsonl"
    done = {(run["task"], run["arm"], run["seed"]) for run in read(path)}
    asked = [(task, arm, seed) for seed in range(given.seeds) for task in given.tasks for arm in given.arms]
    missing = [one for one in asked if one not in done]
    executor = make_executor(given.executor, workers=given.workers)
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("Gymnasium studies", total=len(missing))
        for finished in executor.run(run_named, missing):
            with path.open("a") as stream:
                stream.write(json.dumps(finished) + "\n")
            progress.advance(bar)
    runs = read(path)
    Console().print(table(runs))
    from benchmarks.gym_studies.figure import draw

    print(f"wrote {draw(runs, given.out / 'gym-studies.png')}")


if __name__ == "__main__":
    main()
