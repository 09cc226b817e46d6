"""``python -m benchmarks.gym_studies``: from an id to an agent, beside bonuses and planning alone, at equal samples.

Every run is a line of ``runs.jsonl``; the same command goes on where another stopped. The table says how many seeds
were solved, with how many samples in all; a run that was not made has no line.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.gym_studies.arms import ARMS, Run, run_named
from benchmarks.gym_studies.tasks import CHOSE_SETTINGS, GROUPS, SAMPLES, TASKS
from curious_explorer.studies.executors import available_cores
from curious_explorer.studies.runner import EXECUTORS, make_executor


def read(path: Path) -> list[Run]:
    """The runs that are there; a line that was cut off by a kill is no run."""
    runs = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return runs


def table(runs: list[Run]) -> Table:
    """For each task and arm: seeds solved, the return as a share of the best, and the median samples in all."""
    shown = Table(title="Seeds solved; mean return, of the best; median samples in all (thousands)")
    shown.add_column("task")
    for words in ARMS.values():
        shown.add_column(words, justify="right")
    for task in dict.fromkeys(run["task"] for run in runs):
        cells = []
        for arm in ARMS:
            found = [run for run in runs if run["task"] == task and run["arm"] == arm]
            solved = sum(run["solved"] for run in found)
            mean = np.mean([run["fraction"] for run in found]) if found else 0.0
            median = np.median([run["samples"] for run in found]) / 1_000 if found else 0.0
            cells.append(f"{solved} of {len(found)}; {mean:.2f}; {median:,.0f}" if found else "")
        shown.add_row(f"{task} *" if task in CHOSE_SETTINGS else task, *cells)
    return shown


def main() -> None:
    """Run what is missing, then show everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=[*TASKS, *GROUPS], default=list(TASKS))
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=["ours"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of each run, in all")
    parser.add_argument("--executor", choices=list(EXECUTORS), default="processes")
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("results/gym_studies"))
    given = parser.parse_args()
    tasks = [each for name in given.tasks for each in GROUPS.get(name, (name,))]
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "runs.jsonl"
    done = {(run["task"], run["arm"], run["seed"], run["given"]) for run in read(path)}
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    asked = [(task, arm, seed, given.samples) for seed in seeds for task in tasks for arm in given.arms]
    missing = [one for one in asked if one not in done]
    executor = make_executor(given.executor, workers=given.workers)
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("Studies", total=len(missing))
        for finished in executor.run(run_named, missing):
            with path.open("a") as stream:
                stream.write(json.dumps(finished) + "\n")
            progress.advance(bar)
    Console().print(table(read(path)))
    Console().print("* a task on which settings were chosen")


if __name__ == "__main__":
    main()
