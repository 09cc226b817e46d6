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
    *lines, last = path.read_text().split("\n")
    if last:  # it goes on in a line of its own
        path.write_text("".join(f"{line}\n" for line in lines))
    return [kind(**json.loads(line)) for line in lines]


def run_all(
    function: Callable[[Job], Result], jobs: list[Job], workers: int | None, out: Path | None
) -> Iterator[Result]:
    """Every run of a function of a module, as soon as it is there and written; on all cores by default."""
    executor = Processes() if workers is None else Processes(workers=workers)
    with Progress(console=Console(stderr=True)) as progress, closing(executor.run(function, jobs)) as done:
        bar = progress.add_task("runs", total=len(jobs))
        for one in done:
            if out is not None:
                with out.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
            progress.advance(bar)
            yield one
