"""What commands share: options that say where a grid runs, examples, progress, and a word about what is kept."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.callbacks.events import Callback
    from curious_explorer.studies.executors import Executor

BETWEEN_LINES = 10.0
"""Seconds between two lines of progress where output is piped."""
LOGS = "Logs"
PANEL = "Where to run (results do not depend on it)"


def option(*names: str, help: str, panel: str | None = None) -> Any:
    """An option whose help tells its default, where that matters."""
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=panel)


ExecutorOption = Annotated[
    str | None,
    option(help="inline, processes or ray. By default inline with one worker, processes with more.", panel=PANEL),
]
WorkersOption = Annotated[
    int | None, option(help="Runs at once; all cores by default, with ray all that fit.", panel=PANEL)
]
RayAddressOption = Annotated[
    str | None,
    option(
        help="host:port, ray://host:port or auto; by default RAY_ADDRESS, or a local cluster for this command.",
        panel=PANEL,
    ),
]
RayCpusOption = Annotated[float | None, option(help="CPUs that a run holds (1).", panel=PANEL)]
RayGpusOption = Annotated[float | None, option(help="GPUs that a run holds (0).", panel=PANEL)]
TensorBoardOption = Annotated[Path | None, option(help="Folder for TensorBoard's logs.", panel=LOGS)]
WandbOption = Annotated[str | None, option(help="Project of Weights & Biases to log to.", panel=LOGS)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds already.")]


def examples(command: str, *usual: str) -> str:
    """What stands below a command's help: how it is usually called, and three places to run it in."""
    places = ("--workers 4", "--executor ray", "--executor ray --ray-address 10.0.0.5:6379 --resume")
    return calls(command, *usual, *places)


def calls(command: str, *words: str) -> str:
    """Examples of a command, for the end of its help."""
    lines = [f"curious-explorer {command} {each}" for each in words]
    return "Examples:\n\n" + "\n\n".join(lines)


def chosen_executor(
    name: str | None, workers: int | None, ray_address: str | None, ray_cpus: float | None, ray_gpus: float | None
) -> Executor:
    """The executor that the options describe."""
    from curious_explorer.studies.executors import available_cores
    from curious_explorer.studies.ray_executor import Ray
    from curious_explorer.studies.runner import make_executor

    if name == "ray":
        cpus, gpus = 1 if ray_cpus is None else ray_cpus, 0 if ray_gpus is None else ray_gpus
        return Ray(address=ray_address, workers=workers, cpus_per_task=cpus, gpus_per_task=gpus)
    options = {"--ray-address": ray_address, "--ray-cpus-per-task": ray_cpus, "--ray-gpus-per-task": ray_gpus}
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"{option} is {value}, which only the executor 'ray' uses; add --executor ray, or drop it")
    if name is None and workers is None:
        workers = available_cores()
    return make_executor(name, workers=workers)


class PipedLines:
    """Lines of text every few seconds where output is piped; nothing on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console, self._told = console, time.monotonic()

    def tell(self, text: str) -> None:
        """Say how far it is, unless that was said a moment ago."""
        if not self._console.is_terminal and time.monotonic() - self._told >= BETWEEN_LINES:
            self._told = time.monotonic()
            say(self._console, text)


class ProgressLine:
    """A line on a terminal: a bar, and fields that say how far it is; piped, a line of text every few seconds."""

    def __init__(self, console: Console, texts: tuple[str, ...], total: int, **fields: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        first, *others = (TextColumn(text) for text in texts)
        columns = (first, BarColumn(), *others, TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._bar = self._progress.add_task("runs", total=total, **fields)
        self._texts, self._piped = texts, PipedLines(console)

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, **changes: Any) -> None:
        """Show something else; ``advance`` and ``completed`` move the bar, ``description`` and fields are texts."""
        self._progress.update(self._bar, **changes)
        task = self._progress.tasks[self._bar]
        words = ", ".join(filter(None, (text.format(task=task) for text in self._texts)))
        self._piped.tell(f"{task.percentage:.0f}%: {words}")


@contextmanager
def writers(tensorboard: Path | None, wandb: str | None, settings: Mapping[str, Any]) -> Iterator[list[Callback]]:
    """The writers that were asked for, closed in the end."""
    from curious_explorer.callbacks.writers import TensorBoardWriter, WandbWriter
    from curious_explorer.settings_description import make_folder

    with ExitStack() as opened:
        found: list[Callback] = []
        if tensorboard is not None:
            make_folder(tensorboard)
            found.append(opened.enter_context(TensorBoardWriter(tensorboard)))
        if wandb is not None:
            found.append(opened.enter_context(WandbWriter(wandb, config=settings)))
        yield found


def say(console: Console, text: str) -> None:
    """Print a line as it is: no markup, and no breaks within a path."""
    console.print(text, soft_wrap=True, markup=False)


@contextmanager
def interruptible(console: Console, out: Path, how: str = "the same command goes on from there") -> Iterator[None]:
    """Turns Ctrl-C into a word about what is kept, and exit code 130."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        # Compiled code that is interrupted at its very end says so in its own way.
        if isinstance(error, SystemError) and not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        say(console, f"Interrupted. What was finished is kept in {out}; {how}.")
        raise typer.Exit(130) from None


def see_own_modules(*names: str) -> None:
    """Let 'module:...' name a module in the folder that the command is given in."""
    if any(":" in name for name in names) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def names_in(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
