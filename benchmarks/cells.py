"""``python -m benchmarks.cells``: all twelve cells of the paper, ten seeds each, every sample counted.

For each cell: the value from the start as a fraction of the best possible one, with Curious Explorer, without it at
the same learning budget, and without it at the total budget, exploration included. Mean, standard deviation, minimum.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.studies import run_all
from curious_explorer.studies.executors.choosing import EXECUTORS, make_executor
from curious_explorer.studies.paper_grid import Cell, grid
from curious_explorer.studies.paper_run import CellRun, run_cell
from curious_explorer.studies.presets import tuned_settings


def run(job: tuple[Cell, int]) -> CellRun:
    cell, seed = job
    return run_cell(cell, seed, tuned_settings(cell))


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f} (min {min(values):.3f})"


def table_of(runs: list[CellRun]) -> Table:
    table = Table(title="Fraction of the best possible value, from the start; gamma 0.95, beta 1/(2|S|)")
    for name in ("cell", "with CE", "without, same learning", "without, all steps", "exploration", "learning", "s/run"):
        table.add_column(name, justify="left" if name == "cell" else "right")
    for cell in grid():
        mine = [run_ for run_ in runs if run_.cell == cell]
        table.add_row(
            cell.name,
            spread([run_.with_ce for run_ in mine]),
            spread([run_.without_ce for run_ in mine]),
            spread([run_.without_ce_total for run_ in mine]),
            f"{np.mean([run_.exploration_samples for run_ in mine]) / 1e6:.2f} M",
            f"{np.mean([run_.learning_samples for run_ in mine]) / 1e6:.2f} M",
            f"{max(run_.seconds for run_ in mine):.1f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--executor", choices=EXECUTORS, default="processes")
    parser.add_argument("--workers", type=int, help="jobs at once; all cores by default, with ray all that fit")
    arguments = parser.parse_args()
    jobs = [(cell, seed) for cell in grid() for seed in range(arguments.seeds)]
    runs = run_all(run, jobs, "cells", make_executor(arguments.executor, workers=arguments.workers))
    Console(width=150).print(table_of(runs))


if __name__ == "__main__":
    main()
