"""Runs that are written to a file as soon as they are there, one a line, so that what was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import Progress

from curious_explorer.studies.executors import Processes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Job = TypeVar("Job")
Result = TypeVar("Result", bound="DataclassInstance")


def read_lines(path: Path | None, kind: type[Result]) -> list[Result]:
    """The runs of a file, none if there is none; a last line that was cut off when the run was stopped is left out."""
    if path is None or not path.exists():
        return []
    return [kind(**json.loads(line)) for line in path.read_text().split("\n")[:-1]]


def drop_cut_line(path: Path) -> None:
    """Leave out a last line that was cut off, so that the next one begins a line of its own."""
    if path.exists() and not path.read_text().endswith("\n"):
        path.write_text("".join(f"{line}\n" for line in path.read_text().split("\n")[:-1]))


def run_all(
    function: Callable[[Job], Result], jobs: list[Job], workers: int | None, out: Path | None
) -> Iterator[Result]:
    """Every run of a function of a module, as soon as it is there and written; on all cores by default."""
    if out is not None:
        drop_cut_line(out)
    executor = Processes() if workers is None else Processes(workers=workers)
    with Progress(console=Console(stderr=True)) as progress, closing(executor.run(function, jobs)) as done:
        bar = progress.add_task("runs", total=len(jobs))
        for one in done:
            if out is not None:
                with out.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
            progress.advance(bar)
            yield one
