"""``python -m benchmarks.executors``: the reproduction's grid inline, in processes and on a local Ray cluster.

One run, in turns, so that whatever else the machine does meets all three. Every executor does the whole grid into a
folder of its own, by a command of its own, and ``summary.json`` and ``results.csv`` have to be the same bytes. A grid's
time ends with its last result: workers and Ray's cluster end in the background. Starting and stopping are also timed
alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from curious_explorer.studies.executors import available_cores
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import results_csv, summary_text
from curious_explorer.studies.reproduction import run_study
from curious_explorer.studies.runner import EXECUTORS, make_executor


@dataclass(frozen=True)
class Turn:
    """One executor doing the grid once."""

    grid: float
    """Seconds of all runs, with starting the executor."""
    startup: float
    """Seconds of one job that does nothing, executor started and stopped."""
    work: float
    """Seconds that the runs themselves took, summed over workers."""


def do_grid(name: str, workers: int, seeds: int, folder: Path) -> Turn:
    """One turn, in this process; leaves the tables in the folder."""
    executor = make_executor(name, workers=1 if name == "inline" else workers)
    began = time.perf_counter()
    runs = run_study(Study(seeds=seeds), folder, executor=executor)
    grid = time.perf_counter() - began
    began = time.perf_counter()
    # As many as there are workers, so that each of them starts; a cluster that is still stopping is waited for first.
    list(executor.run(abs, range(workers)))
    startup = time.perf_counter() - began
    (folder / "summary.json").write_text(summary_text(runs))
    (folder / "results.csv").write_text(results_csv(runs))
    return Turn(grid, startup, sum(run.seconds for run in runs))


def in_a_process_of_its_own(name: str, workers: int, seeds: int, folder: Path) -> Turn:
    """A turn that finds nothing imported or compiled by the turns before it."""
    words = ["--turn", name, "--workers", str(workers), "--seeds", str(seeds), "--folder", str(folder)]
    done = subprocess.run([sys.executable, "-m", "benchmarks.executors", *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return Turn(**json.loads(done.stdout.splitlines()[-1]))


def table_of(turns: dict[str, list[Turn]], workers: int, title: str) -> Table:
    table = Table(title=title)
    columns = ("executor", "grid, median s", "all turns", "against processes", "startup and stop s", "busy workers")
    for name in columns:
        table.add_column(name, justify="left" if name == "executor" else "right")
    processes = statistics.median(turn.grid for turn in turns["processes"])
    for name, mine in turns.items():
        grid = statistics.median(turn.grid for turn in mine)
        busy = [turn.work / turn.grid / (1 if name == "inline" else workers) for turn in mine]
        table.add_row(
            name,
            f"{grid:.1f}",
            ", ".join(f"{turn.grid:.1f}" for turn in mine),
            f"{grid / processes - 1:+.1%}",
            f"{statistics.median(turn.startup for turn in mine):.1f}",
            f"{statistics.median(busy):.0%}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--turn", choices=EXECUTORS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.turn:
        turn = do_grid(arguments.turn, arguments.workers, arguments.seeds, arguments.folder)
        print(json.dumps(asdict(turn)))
        return
    console, load = Console(width=130), os.getloadavg()
    turns: dict[str, list[Turn]] = {name: [] for name in EXECUTORS}
    tables = set()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(arguments.turns):
            for name in EXECUTORS:
                folder = Path(scratch, f"{name}-{number}")
                turns[name].append(in_a_process_of_its_own(name, arguments.workers, arguments.seeds, folder))
                tables.add(tuple((folder / file).read_bytes() for file in ("summary.json", "results.csv")))
                print(f"turn {number + 1}: {name} {turns[name][-1].grid:.1f} s", file=sys.stderr)
    runs = len(Study(seeds=arguments.seeds).jobs)
    title = f"{runs} runs of the reproduction's grid, {arguments.workers} workers"
    console.print(table_of(turns, arguments.workers, title))
    same = "the same bytes from all" if len(tables) == 1 else f"{len(tables)} DIFFERENT versions"
    console.print(f"summary.json and results.csv: {same}.")
    console.print(f"{available_cores()} cores; load before {load[0]:.1f}, after {os.getloadavg()[0]:.1f}.")
    if len(tables) > 1:
        sys.exit(1)


if __name__ == "__main__":
    main()
