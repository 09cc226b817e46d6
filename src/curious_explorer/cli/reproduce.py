"""``curious-explorer reproduce``: the paper's experiments, every figure, the video and a page, in one command."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

    from curious_explorer.studies.paper_run import CellRun
    from curious_explorer.studies.reproduction import Reproduction

COMPARISON_HELP = "A folder that compare has filled; it becomes a section of the page."
FIRST_TIME = "The first run ever compiles for about a minute."


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("results/reproduction"),
    preset: Annotated[str, typer.Option(help="tuned, paper-text or paper-figures.")] = "tuned",
    environments: Annotated[str, typer.Option(help="Separated by commas.")] = "cct,dcl",
    depths: Annotated[str, typer.Option(help="Separated by commas.")] = "5,10,20",
    optimizers: Annotated[str, typer.Option(help="Separated by commas.")] = "reinforce,trpo",
    seeds: Annotated[int | None, typer.Option(help="How many seeds: 0, 1, 2, ... (10; 2 with --quick).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A one-minute version, on few seeds.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds already.")] = False,
    comparison: Annotated[Path | None, typer.Option(help=COMPARISON_HELP)] = None,
    executor: ExecutorOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    ray_cpus_per_task: RayCpusOption = None,
    ray_gpus_per_task: RayGpusOption = None,
) -> None:
    """Reproduce the paper's experiments: runs, tables, figures, video and a page to look at."""
    from rich.console import Console

    from curious_explorer.studies.reproduction import QUICK_SEEDS, reproduce
    from curious_explorer.studies.study import Study

    study = Study(
        preset=preset,
        environments=_names(environments),
        depths=tuple(_depth(name) for name in _names(depths)),
        optimizers=_names(optimizers),
        seeds=(QUICK_SEEDS if quick else 10) if seeds is None else seeds,
    )
    chosen = chosen_executor(executor, workers, ray_address, ray_cpus_per_task, ray_gpus_per_task)
    console = Console()
    runs = f"{len(study.cells)} cells, {study.seeds} seeds each: {len(study.jobs)} runs"
    console.print(f"{runs} into {out}. {FIRST_TIME}", markup=False)
    try:
        with RunProgress(console, len(study.cells), study.seeds) as bar:
            result = reproduce(
                study,
                out,
                resume=resume,
                executor=chosen,
                comparison=comparison,
                on_run=bar.advance,
                on_stage=bar.stage,
            )
    except KeyboardInterrupt:
        console.print(
            f"Interrupted. Finished runs are kept in {out}; the same command with --resume does the rest.", markup=False
        )
        raise typer.Exit(130) from None
    show(console, result)


class RunProgress:
    """A line that says how many runs and cells are done, how fast steps are taken, and how much time is left."""

    def __init__(self, console: Console, cells: int, seeds: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[cells]}"),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._bar = self._progress.add_task("runs", total=cells * seeds, cells="", speed="")
        self._cells, self._seeds = cells, seeds
        self._runs_of: Counter[str] = Counter()
        self._began = time.perf_counter()
        self._samples = 0

    def __enter__(self) -> RunProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._progress.stop()

    def stage(self, name: str) -> None:
        """Say what is being done."""
        self._progress.update(self._bar, description=name)

    def advance(self, run: CellRun, was_there: bool) -> None:
        """Count a run; its three learners' steps are all steps."""
        speed = "from disk"
        if not was_there:
            self._samples += run.exploration_samples + sum(int(curve.samples[-1]) for curve in run.curves.values())
            speed = f"{self._samples / (time.perf_counter() - self._began) / 1e6:.1f} M samples/s"
        self._runs_of[run.cell.name] += 1
        done = sum(count == self._seeds for count in self._runs_of.values())
        self._progress.update(self._bar, advance=1, cells=f"{done} of {self._cells} cells", speed=speed)


def show(console: Console, result: Reproduction) -> None:
    """The table, where the time went, and where to look."""
    from rich.table import Table

    from curious_explorer.studies.findings import NOT_REPRODUCED, PAST, REPRODUCED, findings
    from curious_explorer.studies.paper_run import ARMS
    from curious_explorer.studies.paper_summary import by_cell, spread

    table = Table(
        pad_edge=False, title=f"Share of the best possible value, from the start (preset {result.study.preset})"
    )
    for name in ("cell", "with CE", "worst\nseed", "without CE,\nsame learning", "without CE,\nall steps"):
        table.add_column(name, justify="left" if name == "cell" else "right", no_wrap=True)
    for cell, runs in by_cell(result.runs):
        spreads = [spread([run.values[arm] for run in runs]) for arm in ARMS]
        values = [f"{each['mean']:.3f} ± {each['std']:.3f}" for each in spreads]
        worst = f"{spreads[0]['min']:.3f}"
        table.add_row(cell.name, values[0], worst, *values[1:])
    console.print(table)
    found = findings(result.runs)
    for verdict in (REPRODUCED, PAST, NOT_REPRODUCED):
        told = [f"{finding.cell.name} ({finding.paper})" for finding in found if finding.verdict == verdict]
        if told:
            console.print(f"What the paper says CE brings, {verdict}: {', '.join(told)}.", markup=False)
    if result.seconds:
        total = sum(result.seconds.values())
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result.seconds.items())
        console.print(f"{total:.1f} s: {parts}.")
    else:
        console.print("Everything was there already; nothing was done again. Another --out starts afresh.")
    console.print(f"Page: {result.folder / 'report.html'}", soft_wrap=True, markup=False)
    words = f"Data: {result.folder / 'summary.json'}; beside it results.csv, curves.csv, figures/, exploration.mp4"
    console.print(words, soft_wrap=True, markup=False)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


def _depth(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"depths has {text!r}, expected whole numbers separated by commas, such as 5,10,20") from None
