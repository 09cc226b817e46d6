"""``python -m benchmarks.gym_studies``: from an id to an agent, beside bonuses and planning alone, at equal samples.

Every run is a file of JSON in ``--out``; the same command goes on where another stopped. ``--limit SECONDS`` stops all
that is not finished by then and says how far it was. ``--table`` runs nothing and prints the tables of the docs from
one or more folders; ``--curves`` draws their picture, too. With ``--plan`` several grids are run in one go, in that
order, as ARMS:TASKS:SEEDS[:SAMPLES]:

    python -m benchmarks.gym_studies --arms ours --tasks suite --seeds 5
    python -m benchmarks.gym_studies --plan ours:suite:0-2 plain,rnd:core:0-1 ours:KeyCorridorS6R3:0:1000000
    python -m benchmarks.gym_studies --table results/gym_studies another/folder --curves curves.png
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.gym_studies.arms import ARMS
from benchmarks.gym_studies.curves import draw_curves
from benchmarks.gym_studies.runs import FINISHED, NOT_BEGUN, Job, Run, keep, make_run, read
from benchmarks.gym_studies.tables import tables, told
from benchmarks.gym_studies.tasks import GROUPS, TASKS
from curious_explorer.studies.executors import available_cores
from curious_explorer.studies.runner import EXECUTORS, make_executor


def grid(arms: list[str], tasks: list[str], seeds: range, samples: int | None) -> list[Job]:
    """All runs of arms on tasks, one seed after the other."""
    named = [each for name in tasks for each in GROUPS.get(name, (name,))]
    return [Job(task, arm, seed, samples or TASKS[task].samples) for seed in seeds for task in named for arm in arms]


def planned(words: str) -> list[Job]:
    """The runs that ARMS:TASKS:SEEDS[:SAMPLES] means."""
    parts = words.split(":")
    if len(parts) not in (3, 4):
        raise argparse.ArgumentTypeError(f"{words!r} has {len(parts)} parts, expected ARMS:TASKS:SEEDS[:SAMPLES]")
    arms, tasks = parts[0].split(","), parts[1].split(",")
    for given, known in ((arms, list(ARMS)), (tasks, [*TASKS, *GROUPS])):
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} in {words!r} is not known, expected {', '.join(known)}")
    first, _, last = parts[2].partition("-")
    try:
        seeds = range(int(first), int(last or first) + 1)
        samples = int(parts[3]) if len(parts) == 4 else None
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{words!r}: {error}; seeds are 0 or 0-4, samples a number") from error
    return grid(arms, tasks, seeds, samples)


def make_runs(jobs: list[Job], out: Path, executor: str, workers: int, limit: float | None) -> list[Run]:
    """Make those that are missing, and keep each as it comes; returns the ones that did not finish."""
    done = {(run["task"], run["arm"], run["seed"], run["given"]) for run in read([out]) if run["state"] == FINISHED}
    until = float("inf") if limit is None else time.time() + limit
    missing = [job._replace(until=until) for job in dict.fromkeys(jobs) if job[:4] not in done]
    unfinished = []
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("Studies", total=len(missing))
        for run in make_executor(executor, workers=workers).run(make_run, missing):
            if run["state"] != FINISHED:
                unfinished.append(run)
            if run["state"] != NOT_BEGUN:
                keep(out, run)
            progress.advance(bar)
    return unfinished


def main() -> None:
    """Run what is missing, then show everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=[*TASKS, *GROUPS], default=["suite"])
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=["ours"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--samples", type=int, help="of each run, in all, in place of each task's own number")
    parser.add_argument("--plan", nargs="+", type=planned, metavar="GRID", help="these grids in place of one")
    parser.add_argument("--limit", type=float, help="seconds after which what is not finished is stopped")
    parser.add_argument("--executor", choices=list(EXECUTORS), default="processes")
    parser.add_argument("--workers", type=int, default=available_cores(), help="processes, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("results/gym_studies"))
    parser.add_argument("--table", nargs="*", type=Path, metavar="FOLDER", help="print the tables of folders alone")
    parser.add_argument("--curves", type=Path, metavar="PNG", help="draw learning curves on the core tasks")
    given = parser.parse_args()
    if given.table is None:
        given.out.mkdir(parents=True, exist_ok=True)
        one = grid(given.arms, given.tasks, range(given.first_seed, given.first_seed + given.seeds), given.samples)
        jobs = one if given.plan is None else [job for each in given.plan for job in each]
        unfinished = make_runs(jobs, given.out, given.executor, given.workers, given.limit)
        waiting = Counter(ARMS[run["arm"]] for run in unfinished if run["state"] == NOT_BEGUN)
        lines = [told(run) for run in unfinished if run["state"] != NOT_BEGUN]
        lines += [f"not begun: {number} runs of {words}" for words, number in waiting.items()]
        print("".join(f"- {line}\n" for line in lines))
    runs = read(given.table or [given.out])
    print("\n".join(tables(runs)))
    if given.curves is not None:
        print(f"\n{draw_curves(runs, given.curves)}")


if __name__ == "__main__":
    main()
