"""Callbacks that keep the numbers of a run: in TensorBoard's files, or with Weights & Biases.

Each number goes under its phase and name (``explore/poorly_visited``, ``learn/return``, ``train/mean_return``), over
the samples of that phase. The packages are optional and asked for when a writer is made. Writers are context managers:

    with TensorBoardWriter("logs") as log:
        exploration = explore(world, TRPO(), gamma=0.95, watch=log)
        improve(world, TRPO(), exploration.reset_model, gamma=0.95, watch=log)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curious_explorer.callbacks.events import Callback, Event
from curious_explorer.optional_packages import require


class Writer(Callback):
    """What writers share: to be closed once, and to write numbers alone."""

    _closed = False

    def on_event(self, event: Event) -> None:
        """Write the event's numbers, if it has any."""
        if self._closed:
            raise ValueError(f"this {type(self).__name__} is closed; make another to go on")
        if event.numbers:
            self._write(event)

    def close(self) -> None:
        """Write what is left, and end; nothing happens the second time."""
        if not self._closed:
            self._closed = True
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _write(self, event: Event) -> None:
        """Keep the numbers of an event."""

    @abstractmethod
    def _end(self) -> None:
        """Write what is left."""


class TensorBoardWriter(Writer):
    """Writes event files for TensorBoard.

    Args:
        folder: where to; ``tensorboard --logdir FOLDER`` shows it.
    """

    def __init__(self, folder: str | Path) -> None:
        self._log = require("tensorboard.summary", "tensorboard").Writer(str(folder))

    def _write(self, event: Event) -> None:
        for name, number in event.numbers.items():
            self._log.add_scalar(f"{event.phase}/{name}", number, step=event.samples)

    def _end(self) -> None:
        self._log.close()


class WandbWriter(Writer):
    """Writes to a run of Weights & Biases.

    Args:
        project: its project.
        run: a run of ``wandb.init`` to write to, which is left open in the end; a new one if None.
        config: what to keep with a new run: settings, by name.
        options: whatever else ``wandb.init`` takes: ``name``, ``group``, ``mode="offline"``.
    """

    def __init__(
        self, project: str | None = None, *, run: Any = None, config: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        if run is not None and (project is not None or config is not None or options):
            raise ValueError("run is given, whose project and settings are its own; leave the rest out")
        self._owned = run is None
        if run is None:
            run = require("wandb", "wandb").init(project=project, config=dict(config or {}), **options)
        self._run = run
        self._phases: set[str] = set()

    def _write(self, event: Event) -> None:
        axis = f"{event.phase}/samples"
        if event.phase not in self._phases:  # samples begin anew in each phase, which its own steps do not allow
            self._phases.add(event.phase)
            self._run.define_metric(axis)
            self._run.define_metric(f"{event.phase}/*", step_metric=axis)
        numbers = {f"{event.phase}/{name}": float(number) for name, number in event.numbers.items()}
        self._run.log({**numbers, axis: event.samples})

    def _end(self) -> None:
        if self._owned:
            self._run.finish()
