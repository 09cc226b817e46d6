"""``curious-explorer solve``, from an id to an agent, and ``play``, which shows what was learned."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curious_explorer.cli.terminal import (
    PANEL,
    ExecutorOption,
    ProgressLine,
    RayAddressOption,
    RayCpusOption,
    RayGpusOption,
    WandbOption,
    WorkersOption,
    chosen_executor,
    interruptible,
    option,
    say,
    see_own_modules,
    writers,
)

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.studies.executors import Executor
    from curious_explorer.studies.solving import Progress, SolveSettings

STANDING = ("{task.fields[stage]}: {task.completed:,} of {task.total:,} samples", "{task.fields[words]}")
"""The texts of a progress line."""


def solve(
    environment: Annotated[
        str,
        typer.Argument(
            help="Any Gymnasium id: MiniGrid-DoorKey-8x8-v0, package:Id-v0, 'FrozenLake-v1?map_name=8x8'.",
            show_default=False,
        ),
    ],
    samples: Annotated[int, typer.Option(help="Steps in all, never exceeded; every stage counts.")] = 500_000,
    out: Annotated[
        Path | None, option(help="Folder for the run; an interrupted one goes on. results/solve/ID by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random, and of the layout where resets draw one.")] = 0,
    algorithm: Annotated[
        str | None, option(help="ppo, a2c, trpo, recurrent-ppo, dqn or sac; PPO unless the actions suggest SAC.")
    ] = None,
    success_return: Annotated[
        float | None, option(help="An episode succeeds above this return; zero where anything pays more than that.")
    ] = None,
    cells: Annotated[str | None, option(help="By name, as in explore; chosen by themselves by default.")] = None,
    layout: Annotated[int | None, option(help="The layout of every episode, where resets draw one.")] = None,
    seeds: Annotated[
        int | None, option(help="So many runs from --seed on, each in a folder of its own.", panel=PANEL)
    ] = None,
    executor: ExecutorOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    ray_cpus_per_task: RayCpusOption = None,
    ray_gpus_per_task: RayGpusOption = None,
    layouts: Annotated[
        int | None, option(help="Explore so many layouts and solve others, where resets draw one; tests on 500.")
    ] = None,
    wandb: WandbOption = None,
) -> None:
    """Bring a task to an agent: look, explore, learn from starts that move, evaluate; or say why not."""
    from rich.console import Console

    from curious_explorer.callbacks.events import Callbacks
    from curious_explorer.studies.solving import SolveSettings, default_folder, solve_task

    see_own_modules(environment, cells or "")
    if wandb is not None and (seeds, layouts) != (None, None):
        raise ValueError(f"--wandb {wandb} logs one run; leave --seeds and --layouts out, or leave it out")
    console, folder = Console(), default_folder(environment) if out is None else out
    where = (executor, workers, ray_address, ray_cpus_per_task, ray_gpus_per_task)
    if seeds is not None and layouts is not None:
        raise ValueError("--seeds and --layouts are given; give one of the two")
    if seeds is not None:
        asked = SolveSettings(
            environment=environment,
            samples=samples,
            seed=seed,
            algorithm=algorithm,
            success_return=success_return,
            cells=cells,
            layout=layout,
        )
        with interruptible(console, folder):
            _solve_seeds(console, asked, seeds, folder, chosen_executor(*where))
        return
    if layouts is not None:
        if (layout, algorithm, cells) != (None, None, None):
            raise ValueError("--layouts explores and clones by itself; leave --layout, --algorithm and --cells out")
        pool = chosen_executor(*where)
        _solve_layouts(console, environment, layouts, samples, folder, seed, success_return, pool)
        return
    if where != (None,) * len(where):
        raise ValueError(
            "--executor, --workers and --ray-... are for many runs; give --seeds or --layouts, or leave them out"
        )

    def progress(now: Progress) -> None:
        line.update(completed=now.samples, stage=now.stage, words=now.words)

    with (
        interruptible(console, folder),
        writers(None, wandb, {"environment": environment, "samples": samples, "seed": seed}) as logs,
        ProgressLine(Console(stderr=True), STANDING, samples, stage="looking", words="") as line,
    ):
        solved = solve_task(
            environment,
            samples=samples,
            out=folder,
            seed=seed,
            algorithm=algorithm,
            success_return=success_return,
            cells=cells,
            layout=layout,
            watch=Callbacks(*logs),
            tell=lambda text: say(console, text),
            progress=progress,
        )
    say(console, f"\n{solved.summary['verdict']}")
    say(
        console,
        f"{solved.summary['samples']:,} samples, and {solved.summary['evaluation_samples']:,} of the last episodes.",
    )
    say(console, f"Summary: {folder / 'summary.json'}; report: {folder / 'report.html'}")
    command = f"curious-explorer play {shlex.quote(str(folder))}"
    say(console, f"Play it: {command}   (in Python: curious_explorer.load_policy({str(folder)!r}))")


def _solve_seeds(console: Console, settings: SolveSettings, seeds: int, folder: Path, executor: Executor) -> None:
    """Many seeds, a line for each as it is there."""
    from curious_explorer.studies.solve_seeds import SEEDS_FILE, solve_seeds

    say(console, f"Solving {settings.environment} with {seeds} seeds, each within {settings.samples:,} samples.")

    def on_run(summary: dict[str, Any]) -> None:
        say(console, f"seed {summary['seed']}: {summary['verdict']}")

    summaries = solve_seeds(settings, seeds, folder, executor=executor, on_run=on_run)
    rate = sum(summary["success"] for summary in summaries) / len(summaries)
    say(console, f"Mean success {rate:.0%}. Summaries: {folder / SEEDS_FILE}; each seed has its folder beside it.")


def _solve_layouts(
    console: Console,
    environment: str,
    layouts: int,
    samples: int,
    folder: Path,
    seed: int,
    success_return: float | None,
    executor: Executor,
) -> None:
    from rich.console import Console

    from curious_explorer.studies.solving_layouts import solve_layouts

    say(console, f"Solving {environment} in {layouts} layouts within {samples:,} samples, into {folder}.")

    def tell(text: str) -> None:
        say(console, text)
        line.update(stage=text, words="")

    with (
        interruptible(console, folder),
        ProgressLine(Console(stderr=True), STANDING, samples, stage="beginning", words="") as line,
    ):
        summary = solve_layouts(
            environment,
            layouts=layouts,
            samples=samples,
            out=folder,
            seed=seed,
            success_return=0.0 if success_return is None else success_return,
            executor=executor,
            tell=tell,
            progress=lambda samples, words: line.update(completed=samples, words=words),
        )
    say(console, f"\n{summary['verdict']}")
    if summary["set_aside"] or summary["failed"] or not summary["found"]:
        say(console, summary["report"])
    say(console, f"Summary: {folder / 'summary.json'}; look at it: curious-explorer play {shlex.quote(str(folder))}")


def play(
    run: Annotated[Path, typer.Argument(help="The folder of a run of solve or train.", show_default=False)],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    video: Annotated[bool, typer.Option("--video", help="Film them, into RUN/play.mp4.")] = False,
    which: Annotated[str, typer.Option(help="Of a training: best or last.")] = "best",
    deterministic: Annotated[
        bool | None,
        option(
            "--deterministic/--stochastic", help="The likeliest action, or one drawn; as it was measured by default."
        ),
    ] = None,
) -> None:
    """Play what was learned, from the environment's own start."""
    from rich.console import Console

    from curious_explorer.studies.playing import play as play_run

    console = Console()
    path = run / "play.mp4" if video else None
    played = play_run(run, episodes=episodes, seed=seed, video=path, which=which, deterministic=deterministic)
    for number, (returned, length) in enumerate(zip(played.returns, played.lengths, strict=True), start=1):
        say(console, f"episode {number}: return {returned:.4g} in {length:,} steps")
    say(console, f"mean return {played.mean_return:.4g}")
    if path is not None:
        say(console, f"Video: {path}")
