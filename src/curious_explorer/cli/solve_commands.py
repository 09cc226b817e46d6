"""``curious-explorer solve``, from an id to an agent, and ``play``, which shows what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curious_explorer.cli.terminal import ProgressLine, interruptible, option, say, see_own_modules

if TYPE_CHECKING:
    from curious_explorer.studies.solving import Progress


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
) -> None:
    """Bring a task to an agent: look, explore, learn from starts that move, evaluate; or say why not."""
    from rich.console import Console

    from curious_explorer.studies.solving import default_folder, solve_task

    see_own_modules(environment, cells or "")
    console, folder = Console(), default_folder(environment) if out is None else out
    say(
        console,
        f"Solving {environment} within {samples:,} samples, into {folder}; interrupted, the same command goes on.",
    )
    texts = ("{task.fields[stage]}: {task.completed:,} of {task.total:,} samples", "{task.fields[words]}")

    def progress(now: Progress) -> None:
        line.update(completed=now.samples, stage=now.stage, words=now.words)

    with (
        interruptible(console, folder),
        ProgressLine(Console(stderr=True), texts, samples, stage="looking", words="") as line,
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
            tell=lambda text: say(console, text),
            progress=progress,
        )
    say(console, f"\n{solved.summary['verdict']}")
    say(
        console,
        f"{solved.summary['samples']:,} samples, and {solved.summary['evaluation_samples']:,} of the last episodes.",
    )
    say(console, f"Summary: {folder / 'summary.json'}; report: {folder / 'report.html'}")
    say(
        console, f"Play it: curious-explorer play {folder}   (in Python: curious_explorer.load_policy({str(folder)!r}))"
    )


def play(
    run: Annotated[Path, typer.Argument(help="The folder of a run of solve or train.", show_default=False)],
    episodes: Annotated[int, typer.Option(help="How many to play.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    video: Annotated[bool, typer.Option("--video", help="Film them, into RUN/play.mp4.")] = False,
    which: Annotated[str, typer.Option(help="Of a training: best or last.")] = "best",
) -> None:
    """Play what was learned, from the environment's own start."""
    from rich.console import Console

    from curious_explorer.studies.playing import play as play_run

    console = Console()
    path = run / "play.mp4" if video else None
    played = play_run(run, episodes=episodes, seed=seed, video=path, which=which)
    for number, (returned, length) in enumerate(zip(played.returns, played.lengths, strict=True), start=1):
        say(console, f"episode {number}: return {returned:.4g} in {length:,} steps")
    say(console, f"mean return {played.mean_return:.4g}")
    if path is not None:
        say(console, f"Video: {path}")
