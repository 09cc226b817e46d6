"""``curious-explorer reproduce`` and ``compare``: grids of runs, their tables, figures and pages, in one command."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curious_explorer.cli.terminal import (
    ExecutorOption,
    ProgressLine,
    RayAddressOption,
    RayCpusOption,
    RayGpusOption,
    Resume,
    WorkersOption,
    chosen_executor,
    interruptible,
    names_in,
    option,
    say,
    see_own_modules,
)

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.studies.comparison_results import ComparisonResults
    from curious_explorer.studies.comparison_run import ComparisonRun
    from curious_explorer.studies.paper_run import ExperimentRun
    from curious_explorer.studies.reproduction import Reproduction

COMPARISON_HELP = "A folder that compare has filled; it becomes a section of the page."
ENVIRONMENTS_HELP = (
    "Separated by commas; dcl/20@4000000 takes samples of its own number. Tables of transitions, or any Gymnasium ids."
)
FIRST_TIME = "The first run ever compiles for about a minute."
NOTHING_DONE = "Everything was there already; nothing was done again. Another --out starts afresh."
WITH_RESUME = "the same command with --resume does the rest"
DONE = "{task.completed}/{task.total}"


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("results/reproduction"),
    preset: Annotated[str, typer.Option(help="tuned (the defaults), fixed, paper-text or paper-figures.")] = "tuned",
    environments: Annotated[str, typer.Option(help="Separated by commas.")] = "cct,dcl",
    depths: Annotated[str, typer.Option(help="Separated by commas.")] = "5,10,20",
    optimizers: Annotated[str, typer.Option(help="Separated by commas.")] = "reinforce,trpo",
    seeds: Annotated[int | None, typer.Option(help="How many seeds: 0, 1, 2, ... (10; 2 with --quick).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A one-minute version, on few seeds.")] = False,
    resume: Resume = False,
    comparison: Annotated[Path | None, typer.Option(help=COMPARISON_HELP)] = None,
    executor: ExecutorOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    ray_cpus_per_task: RayCpusOption = None,
    ray_gpus_per_task: RayGpusOption = None,
) -> None:
    """Reproduce the paper's experiments: runs, tables, figures, video and a page to look at."""
    from rich.console import Console

    from curious_explorer.studies.paper_experiments import Study
    from curious_explorer.studies.reproduction import QUICK_SEEDS, RUNS, reproduce
    from curious_explorer.studies.runner import counted

    study = Study(
        preset=preset,
        environments=names_in(environments.lower()),
        depths=tuple(_depth(name) for name in names_in(depths)),
        optimizers=names_in(optimizers.lower()),
        seeds=(QUICK_SEEDS if quick else 10) if seeds is None else seeds,
    )
    chosen = chosen_executor(executor, workers, ray_address, ray_cpus_per_task, ray_gpus_per_task)
    console, many = Console(), len(study.jobs)
    runs = (
        f"{counted(len(study.experiments), 'experiment')}, {counted(study.seeds, 'seed')} each: {counted(many, 'run')}"
    )
    there = sum(RUNS.path(out, job).exists() for job in study.jobs)
    words = f"{runs} into {out}. "
    words += FIRST_TIME if there == 0 else f"{there} of them are there already."
    console.print(words, markup=False)
    texts = ("{task.description}", DONE, "{task.fields[finished]}", "{task.fields[speed]}")
    began, samples, runs_of = time.perf_counter(), 0, Counter[str]()

    def on_run(run: ExperimentRun, was_there: bool) -> None:
        """Count a run; its three learners' steps are all steps."""
        nonlocal samples
        speed = "from disk"
        if not was_there:
            samples += run.exploration_samples + sum(int(curve.samples[-1]) for curve in run.curves.values())
            speed = f"{samples / (time.perf_counter() - began) / 1e6:.1f} M samples/s"
        runs_of[run.experiment.name] += 1
        done = sum(count == study.seeds for count in runs_of.values())
        line.update(advance=1, finished=f"{done} of {len(study.experiments)} experiments", speed=speed)

    with (
        interruptible(console, out, WITH_RESUME),
        ProgressLine(console, texts, many, finished="", speed="") as line,
    ):
        result = reproduce(
            study,
            out,
            resume=resume,
            executor=chosen,
            comparison=comparison,
            on_run=on_run,
            on_stage=lambda name: line.update(description=name),
        )
    _show_reproduction(console, result)


def _depth(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"depths has {text!r}, expected whole numbers separated by commas, such as 5,10,20") from None


def _show_reproduction(console: Console, result: Reproduction) -> None:
    """The table, where the time went, and where to look."""
    from rich.table import Table

    from curious_explorer.optional_packages import installing
    from curious_explorer.studies.paper_results import FEWEST_SEEDS, VERDICTS, by_experiment, few_seeds, with_verdict
    from curious_explorer.studies.reproduction import VIDEO

    results = by_experiment(result.runs)
    table = Table(
        pad_edge=False, title=f"Share of the best possible value, from the start (preset {result.study.preset})"
    )
    for name in ("experiment", "with CE", "worst\nseed", "without CE,\nsame learning", "without CE,\nall steps"):
        table.add_column(name, justify="left" if name == "experiment" else "right", no_wrap=True)
    for each in results:
        with_ce, *without = (f"{spread.mean:.3f} ± {spread.std:.3f}" for spread in each.spreads.values())
        table.add_row(each.experiment.name, with_ce, f"{each.spreads['with_ce'].min:.3f}", *without)
    console.print(table)
    if result.study.seeds < FEWEST_SEEDS:
        say(console, few_seeds(result.study.seeds))
    for verdict in VERDICTS:
        told = [f"{each.experiment.name} ({each.finding.paper})" for each in with_verdict(results, verdict)]
        if told:
            console.print(f"What the paper says CE brings, {verdict}: {', '.join(told)}.", markup=False)
    if result.seconds:
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result.seconds.items())
        console.print(f"{sum(result.seconds.values()):.1f} s: {parts}.")
    else:
        console.print(NOTHING_DONE)
    say(console, f"Page: {result.folder / 'report.html'}")
    say(
        console, f"Data: {result.folder / 'summary.json'}; beside it results.csv, curves.csv, figures/, exploration.mp4"
    )
    if not (result.folder / VIDEO).exists():
        say(console, f"No {VIDEO}: its encoder, imageio-ffmpeg, is not installed; {installing('report')}")


def compare(
    methods: Annotated[str | None, typer.Option(help="Separated by commas; all practical ones by default.")] = None,
    environments: Annotated[str, typer.Option(help=ENVIRONMENTS_HELP)] = "cct/10,dcl/10",
    seeds: Annotated[int | None, option(help="How many seeds: 0, 1, 2, ... (20; 5 on Gymnasium tasks).")] = None,
    budget: Annotated[
        int, typer.Option("--samples", "--budget", help="Steps that each run may take in all, never exceeded.")
    ] = 100_000,
    gamma: Annotated[float | None, option(help="The discount on tables: 0.95.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("results/comparison"),
    resume: Resume = False,
    executor: ExecutorOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    ray_cpus_per_task: RayCpusOption = None,
    ray_gpus_per_task: RayGpusOption = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Print the known methods and environments, and stop.")
    ] = False,
) -> None:
    """Compare exploration methods at equal numbers of samples: table, figures, data and a page to look at."""
    from rich.console import Console

    from curious_explorer.studies.comparison_study import PAGE, compare, comparison_of
    from curious_explorer.studies.runner import counted

    console = Console()
    if listing:
        _show_names(console)
        return
    see_own_modules(environments)
    comparison = comparison_of(
        None if methods is None else names_in(methods),
        names_in(environments),
        seeds=seeds,
        budget=budget,
        gamma=gamma,
    )
    chosen = chosen_executor(executor, workers, ray_address, ray_cpus_per_task, ray_gpus_per_task)
    many = len(comparison.jobs)
    console.print(
        f"{counted(len(comparison.methods), 'method')}, {counted(len(comparison.budgets), 'environment')}, "
        f"{counted(comparison.seeds, 'seed')}: {counted(many, 'run')} into {out}. {FIRST_TIME}",
        markup=False,
    )

    done = 0

    def on_run(run: ComparisonRun, was_there: bool) -> None:
        nonlocal done
        done += not was_there
        line.update(advance=1, description="from disk" if was_there else f"{run.job.method} on {run.job.environment}")

    with interruptible(console, out, WITH_RESUME), ProgressLine(console, ("{task.description}", DONE), many) as line:
        results = compare(comparison, out, resume=resume, executor=chosen, on_run=on_run)
    _show_comparison(console, results)
    if done == 0:
        console.print(NOTHING_DONE)
    if (out / PAGE).exists():
        say(console, f"Page: {out / PAGE}")
    else:
        from curious_explorer.optional_packages import installing

        say(console, f"No page: it needs plotly ({installing('report')}; then --resume)")
    say(console, f"Data: {out / 'summary.json'}, results.csv, times.csv, figures/")


def _show_names(console: Console) -> None:
    """The methods and environments that can be named."""
    from rich.table import Table

    from curious_explorer.explorers.methods import WITHOUT_PUBLISHED
    from curious_explorer.registration import ZOO
    from curious_explorer.studies.comparison_methods import METHODS, make_method
    from curious_explorer.studies.comparison_run import repr_of
    from curious_explorer.studies.task_methods import TASK_METHODS, make_task_method

    listed = {
        "Methods on tables of transitions": {name: repr_of(make_method(name)) for name in METHODS},
        "Methods on Gymnasium environments": {name: repr_of(make_task_method(name)) for name in TASK_METHODS},
    }
    for title, settings in listed.items():
        table = Table(title=title, pad_edge=False)
        table.add_column("id", no_wrap=True)
        table.add_column("settings")
        for name, words in settings.items():
            table.add_row(name, words)
        console.print(table, markup=False)
    reasons = "; ".join(f"{name}: {reason}" for name, reason in WITHOUT_PUBLISHED.items())
    console.print(
        "-published has the constants of the paper. Some methods have no such row, because with them nothing is ever "
        f"known in a million steps, and what was timed would be a random walk with a greedy read-out ({reasons}).",
        markup=False,
        highlight=False,
    )
    sizes = ", ".join(f"{kind}/20" for kind in ZOO)
    console.print(
        f"Environments with a table: {sizes} (any size); any Gymnasium environment that shows its transitions, such as "
        "FrozenLake-v1; any MDP file (.json, .npz). Any other Gymnasium id is stepped in, and so is one with a table "
        "when a method is named that needs none.",
        markup=False,
    )


def _show_comparison(console: Console, results: ComparisonResults) -> None:
    """The three tables: all environments together, samples to the target on each, and how well it was kept."""
    from rich.table import Table

    from curious_explorer.studies.comparison_run import TARGET

    table = Table(title="All environments together", pad_edge=False)
    table.add_column("method", no_wrap=True)
    final = f"final {results.comparison.measure.quantity}, of the best\n(IQM, 95% interval)"
    seen = ("states\nseen",) if results.comparison.measure.coverage else ()
    for name in (final, f"runs that reached\n{TARGET:.0%}", "above it\nafter", *seen, "seconds\na run"):
        table.add_column(name, justify="right")
    for method, figures in results.summary["aggregate"].items():
        low, high = figures["iqm_interval"]
        table.add_row(
            method,
            f"{figures['iqm']:.3f} [{low:.3f}, {high:.3f}]".replace("[", r"\["),
            f"{figures['reached_target']:.0%}",
            _share(figures["share_above_target"]),
            *((_share(figures["coverage"]),) if seen else ()),
            f"{results.seconds(method).mean():.2f}",
        )
    console.print(table)
    texts: dict[str, Callable[[dict[str, Any]], str]] = {
        f"Samples to {TARGET:.0%} of the best, for the first time (median over seeds)": _samples,
        "Share of the rest of the run above it (mean over the runs that got there)": (
            lambda figures: _share(figures["share_above_target"])
        ),
    }
    if not results.comparison.measure.coverage:
        texts = {"Mean return of an episode (over seeds; the worst and the best of them)": _returns} | texts
    for title, text in texts.items():
        say(console, f"\n{title}:")
        table = Table(pad_edge=False)
        table.add_column("method", no_wrap=True)
        for environment, budget in results.budgets.items():
            table.add_column(f"{environment}\nof {_short(budget)}", justify="right", no_wrap=True)
        for method in results.methods:
            table.add_row(method, *(text(results.on(environment, method)) for environment in results.budgets))
        console.print(table)


def _short(budget: int) -> str:
    """A number of samples in few letters, so that six columns fit a terminal: 500k, 2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if budget >= size:
            return f"{budget / size:g}{letter}"
    return str(budget)


def _returns(figures: dict[str, Any]) -> str:
    found = figures["return"]
    return f"{found['mean']:.3g} ({found['least']:.3g} to {found['most']:.3g})"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _samples(figures: dict[str, Any]) -> str:
    median, reached = figures["samples_to_target"], figures["reached_target"]
    if median is not None:
        return f"{median:,.0f}"
    return f"- ({reached:.0%})" if reached else "-"
