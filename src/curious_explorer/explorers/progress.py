"""A progress bar for explorations: round, poorly visited states, coverage, samples a second, time left."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from curious_explorer.explorers.exploration import Round
from curious_explorer.worlds.world import World


class RoundProgress:
    """Shows how an exploration goes, on a terminal; shows nothing when switched off, or where there is no terminal."""

    def __init__(self, world: World, rounds: int, *, show: bool) -> None:
        self._bar: Any = None
        self._world = world
        self._samples = world.samples
        self._seen = np.zeros(world.num_states, dtype=bool)
        if show:
            self._bar = _make_bar()
            self._task = self._bar.add_task("exploring", total=rounds, poorly="-", coverage="-", rate="-")

    def __enter__(self) -> RoundProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, round_: Round) -> None:
        """A round is done."""
        self._seen |= round_.visited > 0.0
        if self._bar is None:
            return
        elapsed = self._bar.tasks[0].elapsed or 1e-9
        self._bar.update(
            self._task,
            advance=1,
            poorly=str(int(round_.poorly_visited.sum())),
            coverage=f"{self._seen.mean():.0%}",
            rate=f"{(self._world.samples - self._samples) / elapsed:,.0f}",
        )


def _make_bar() -> Any:
    """A bar on the error stream, so that it never mixes with output that is piped on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}: round"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("poorly visited {task.fields[poorly]}, states seen {task.fields[coverage]}"),
        TextColumn("{task.fields[rate]} samples/s"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
