"""``curious-explorer compare``: exploration methods on the same environments and budgets, with honest statistics."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curious_explorer.cli.executor_options import (
    ExecutorOption,
    RayAddressOption,
    RayCpusOption,
    RayGpusOption,
    WorkersOption,
    chosen_executor,
)

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.studies.comparison.comparison_run import ComparisonRun
    from curious_explorer.studies.comparison.comparison_summary import Results

ENVIRONMENTS_HELP = "Separated by commas; dcl/20@4000000 has a budget of its own."


def compare(
    methods: Annotated[str | None, typer.Option(help="Separated by commas; all practical ones by default.")] = None,
    environments: Annotated[str, typer.Option(help=ENVIRONMENTS_HELP)] = "cct/10,dcl/10",
    seeds: Annotated[int, typer.Option(help="How many seeds: 0, 1, 2, ...")] = 20,
    budget: Annotated[int, typer.Option(help="Samples (environment steps) that each run may take.")] = 100_000,
    gamma: Annotated[float, typer.Option(help="The discount.")] = 0.95,
    out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("results/comparison"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds already.")] = False,
    executor: ExecutorOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    ray_cpus_per_task: RayCpusOption = None,
    ray_gpus_per_task: RayGpusOption = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Print the known methods and environments, and stop.")
    ] = False,
) -> None:
    """Compare exploration methods at equal sample budgets: table, figures, data and a page to look at."""
    from rich.console import Console

    from curious_explorer.studies.comparison.compare_study import PAGE, compare
    from curious_explorer.studies.comparison.comparison_grid import Comparison
    from curious_explorer.studies.comparison.methods import DEFAULT_METHODS

    console = Console()
    if listing:
        show_names(console)
        return
    comparison = Comparison(
        methods=DEFAULT_METHODS if methods is None else _names(methods),
        environments=_names(environments),
        seeds=seeds,
        budget=budget,
        gamma=gamma,
    )
    chosen = chosen_executor(executor, workers, ray_address, ray_cpus_per_task, ray_gpus_per_task)
    many = len(comparison.jobs)
    console.print(
        f"{len(comparison.methods)} methods, {len(comparison.budgets)} environments, {seeds} seeds: {many} runs into "
        f"{out}. The first run ever compiles for about a minute."
    )
    try:
        with _Progress(console, many) as bar:
            results = compare(
                comparison,
                out,
                resume=resume,
                executor=chosen,
                on_run=bar.advance,
            )
    except KeyboardInterrupt:
        console.print(f"Interrupted. Finished runs are kept in {out}; the same command with --resume does the rest.")
        raise typer.Exit(130) from None
    show(console, results)
    if (out / PAGE).exists():
        console.print(f"Page: {out / PAGE}", soft_wrap=True, markup=False)
    else:
        console.print("No page: it needs plotly (pip install 'curious-explorer[report]', then --resume)", markup=False)
    console.print(f"Data: {out / 'summary.json'}, results.csv, times.csv, figures/", soft_wrap=True)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


class _Progress:
    """A line that says how many runs are done, and how much time is left."""

    def __init__(self, console: Console, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console)
        self._bar = self._progress.add_task("runs", total=total)

    def __enter__(self) -> _Progress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, run: ComparisonRun, was_there: bool) -> None:
        """Count a run."""
        done = "from disk" if was_there else f"{run.job.method} on {run.job.environment}"
        self._progress.update(self._bar, advance=1, description=done)


def show_names(console: Console) -> None:
    """The methods and environments that can be named."""
    from rich.table import Table

    from curious_explorer.registration import ZOO
    from curious_explorer.studies.comparison.comparison_grid import repr_of
    from curious_explorer.studies.comparison.methods import METHODS, make_method

    table = Table(title="Methods", pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("settings")
    for name in METHODS:
        table.add_row(name, repr_of(make_method(name)))
    console.print(table, markup=False)
    sizes = ", ".join(f"{kind}/20" for kind in ZOO)
    console.print(
        f"Environments: {sizes} (any size); any Gymnasium environment with a table of transitions, such as "
        "FrozenLake-v1; any MDP file (.json, .npz).",
        markup=False,
    )


def show(console: Console, results: Results) -> None:
    """The two tables: all environments together, and samples to the target on each."""
    from rich.table import Table

    from curious_explorer.studies.comparison.comparison_grid import TARGET

    summary = results.summary
    table = Table(title="All environments together", pad_edge=False)
    table.add_column("method", no_wrap=True)
    for name in ("final value, of the best\n(IQM, 95% interval)", f"runs that reached\n{TARGET:.0%}", "states\nseen"):
        table.add_column(name, justify="right")
    table.add_column("seconds\na run", justify="right")
    for method, figures in summary["aggregate"].items():
        low, high = figures["iqm_interval"]
        table.add_row(
            method,
            f"{figures['iqm']:.3f} [{low:.3f}, {high:.3f}]".replace("[", r"\["),
            f"{figures['reached_target']:.0%}",
            f"{figures['coverage']:.0%}",
            f"{results.seconds(method).mean():.2f}",
        )
    console.print(table)
    table = Table(title=f"Samples to {TARGET:.0%} of the best (median over seeds)", pad_edge=False)
    table.add_column("method", no_wrap=True)
    for environment, budget in results.budgets.items():
        table.add_column(f"{environment}\nof {_short(budget)}", justify="right", no_wrap=True)
    for method in results.methods:
        cells = [summary["environments"][environment][method] for environment in results.budgets]
        table.add_row(method, *(_samples(cell["samples_to_target"], cell["reached_target"]) for cell in cells))
    console.print(table)


def _short(budget: int) -> str:
    """A number of samples in few letters, so that six columns fit a terminal: 500k, 2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if budget >= size:
            return f"{budget / size:g}{letter}"
    return str(budget)


def _samples(median: float | None, reached: float) -> str:
    if median is not None and math.isfinite(median):
        return f"{median:,.0f}"
    return f"- ({reached:.0%})" if reached else "-"
