"""The ``curious-explorer`` command: its list of subcommands, `demo`, and errors as one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from curious_explorer.cli.run_commands import explore, train
from curious_explorer.cli.solve_commands import play, solve
from curious_explorer.cli.study_commands import compare, reproduce
from curious_explorer.cli.terminal import calls, examples
from curious_explorer.cli.theory_commands import certify, hardness, plan

app = typer.Typer(
    name="curious-explorer",
    help="Exploration for reinforcement learning when the reward is never seen.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from curious_explorer import __version__

        print(f"curious-explorer {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Exploration for reinforcement learning when the reward is never seen."""


app.command(epilog=examples("reproduce", "--quick --out results/quick"))(reproduce)
app.command(
    epilog=examples(
        "compare",
        "--environments dcl/10,cct/10 --samples 1000000",
        "--environments MiniGrid-DoorKey-6x6-v0 --samples 100000",
    )
)(compare)
_EXPLORING = (
    "MountainCar-v0 --cells 20x20 --out results/car",
    "'FrozenLake-v1?map_name=8x8'",
    "my_module:MyEnv-v0 --cells my_module:cell:400",
    "dcl/20 --optimizer reinforce",
)
_TRAINING = (
    "MountainCar-v0 --reset-model results/car",
    "my_module:MyEnv-v0 --reset-model results/mine --weighting average --samples 500000",
)
_SOLVING = (
    "MiniGrid-DoorKey-8x8-v0 --samples 300000",
    "MountainCar-v0 --samples 200000 --seeds 3 --workers 3",
    "my_package:MyEnv-v0 --samples 500000 --out results/mine",
)
app.command(epilog=calls("solve", *_SOLVING))(solve)
app.command(epilog=calls("play", "results/mine --video"))(play)
app.command(epilog=calls("explore", *_EXPLORING))(explore)
app.command(epilog=calls("train", *_TRAINING))(train)
app.command(epilog="Example: curious-explorer hardness FrozenLake-v1 --gamma 0.99")(hardness)
app.command(epilog="Example: curious-explorer plan dcl/20 --eta 0.1 --delta 0.05")(plan)
app.command(epilog="Example: curious-explorer certify results/lock --delta 0.05")(certify)


@app.command(epilog="Example: curious-explorer demo --depth 10 --out results/demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("results/demo"),
    depth: Annotated[int, typer.Option(min=1, max=100, help="Depth of the combination lock.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """A lock that a learner cannot open, and the same learner after exploring; ends in a picture."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"Exploring a combination lock of depth {depth}. The first run ever compiles for about a minute.")
    from curious_explorer.studies.demonstration import demonstrate

    with console.status("Working"):
        result = demonstrate(out, depth=depth, seed=seed, progress=False)
    table = Table(title=f"TRPO on the combination lock of depth {depth}, gamma 0.95")
    for name in ("", "exploration steps", "learning steps", "value, of the best possible"):
        table.add_column(name, justify="right" if name else "left")
    total = result.exploration_samples + result.learning_samples
    table.add_row("from the start alone", "0", f"{total:,}", f"{result.without_exploration:.1%}")
    explored = f"{result.exploration_samples:,}"
    table.add_row("from explored resets", explored, f"{result.learning_samples:,}", f"{result.with_exploration:.1%}")
    console.print(table)
    console.print(f"How the exploration went: {result.picture}")


def main() -> None:
    """Run the command; errors that users can mend are one line and exit code 2."""
    import io
    import signal
    import sys

    from curious_explorer.errors import EnvironmentFailureError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that a terminal does not have ends no run
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is to be interrupted, with a word
    try:
        app()
    except (ValueError, OSError, EnvironmentFailureError) as error:
        print(f"curious-explorer: {error}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, OverflowError) as error:
        print(f"curious-explorer: what was asked for is too large for this machine: {error}", file=sys.stderr)
        sys.exit(2)
