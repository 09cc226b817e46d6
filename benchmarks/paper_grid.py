"""``python -m benchmarks.paper_grid``: all twelve experiments of the paper, ten seeds each, every sample counted.

For each experiment: the value from the start as a fraction of the best possible one, with Curious Explorer, without it
at the same learning budget, and without it at the total budget, exploration included. Mean, standard deviation,
minimum.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.studies import run_all
from curious_explorer.studies.paper_experiments import Experiment, grid, tuned_settings
from curious_explorer.studies.paper_run import ExperimentRun, run_experiment
from curious_explorer.studies.runner import EXECUTORS, make_executor


def run(job: tuple[Experiment, int]) -> ExperimentRun:
    experiment, seed = job
    return run_experiment(experiment, seed, tuned_settings(experiment))


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f} (min {min(values):.3f})"


def table_of(runs: list[ExperimentRun]) -> Table:
    table = Table(title="Fraction of the best possible value, from the start; gamma 0.95, beta 1/(2|S|)")
    for name in (
        "experiment",
        "with CE",
        "without, same learning",
        "without, all steps",
        "exploration",
        "learning",
        "s/run",
    ):
        table.add_column(name, justify="left" if name == "experiment" else "right")
    for experiment in grid():
        mine = [run_ for run_ in runs if run_.experiment == experiment]
        table.add_row(
            experiment.name,
            spread([run_.values["with_ce"] for run_ in mine]),
            spread([run_.values["without_ce"] for run_ in mine]),
            spread([run_.values["without_ce_total_budget"] for run_ in mine]),
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
    jobs = [(experiment, seed) for experiment in grid() for seed in range(arguments.seeds)]
    runs = run_all(run, jobs, "experiments", make_executor(arguments.executor, workers=arguments.workers))
    Console(width=150).print(table_of(runs))


if __name__ == "__main__":
    main()
