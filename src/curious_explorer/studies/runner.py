"""The one way to run a study: a grid of jobs, run anywhere, in a folder that survives being killed.

The folder holds the settings and one file for each finished run. A run depends on its job alone, so whatever was
finished before an interruption is used as it is, and the rest is run; other settings are refused.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from curious_explorer.errors import StudyError
from curious_explorer.settings_description import Plain, RunFolder
from curious_explorer.storage import DISK_IS_FULL, Format
from curious_explorer.studies.executors import Executor, Inline, Processes
from curious_explorer.studies.ray_executor import Ray
from curious_explorer.validation import check_count, check_name

EXECUTORS = ("inline", "processes", "ray")
MOST_RUNS = 1_000_000
"""Of one study."""


class Keyed(Protocol):
    """A job, or the run that came of it; both have the same key."""

    @property
    def key(self) -> Hashable:
        """What tells this run from the others of its study."""


JobOfGrid = TypeVar("JobOfGrid", bound=Keyed)
Run = TypeVar("Run", bound=Keyed)
OnRun = Callable[[Run, bool], None]
"""Told each run as soon as it is there, and whether it was there before."""


@dataclass(frozen=True)
class Runs(Generic[JobOfGrid, Run]):
    """How the runs of one kind of study are done and kept."""

    what: str
    """The kind of study in a word, for errors."""
    file: str
    """Where the settings are kept."""
    format: Format
    do: Callable[[JobOfGrid], Run]
    """A function of a module, so that worker processes can find it."""
    path: Callable[[Path, JobOfGrid], Path]
    load: Callable[[RunFolder, JobOfGrid], Run]
    save: Callable[[RunFolder, Run], object]

    def folder(self, path: str | Path) -> RunFolder:
        """A folder for such a study."""
        return RunFolder(Path(path), self.file, self.format, self.what, StudyError, "choose another --out")

    @contextmanager
    def claim(self, settings: Plain, folder: str | Path, *, resume: bool) -> Iterator[RunFolder]:
        """A folder that nobody else writes in within the block; see `RunFolder.claim`."""
        claimed = self.folder(folder)
        nothing_there = not any(claimed.path.glob("runs/**/*.npz"))
        with explained_full_disk(claimed.path), claimed.claim(settings, resume=resume, replace=nothing_there):
            yield claimed

    def run(
        self,
        settings: Plain,
        jobs: Sequence[JobOfGrid],
        folder: str | Path,
        *,
        resume: bool = False,
        executor: str | Executor | None = None,
        workers: int | None = None,
        on_run: OnRun[Run] | None = None,
    ) -> dict[Hashable, Run]:
        """Do all runs that the folder does not hold yet, and return all of them by key.

        Args:
            settings: everything that the results depend on, as plain data.
            jobs: all runs, the long ones first, so that none is left alone at the end.
            folder: where runs are kept.
            resume: whether the folder may hold runs of the same study already.
            executor: where to run: ``inline``, ``processes``, ``ray`` or an `Executor`; results do not depend on it.
            workers: how many runs at once; more than one without an executor means ``processes``.
            on_run: see `OnRun`.
        """
        chosen = self.executor(jobs, folder, executor, workers)
        with self.claim(settings, folder, resume=resume) as claimed:
            return self.finish(jobs, claimed, chosen, on_run)

    def executor(
        self, jobs: Sequence[JobOfGrid], folder: str | Path, executor: str | Executor | None, workers: int | None
    ) -> Executor:
        """Where to run, checked before anything is written."""
        chosen = make_executor(executor, workers=workers)
        if not all(self.path(Path(folder), job).exists() for job in jobs):
            chosen.check()
        return chosen

    def finish(
        self, jobs: Sequence[JobOfGrid], folder: RunFolder, executor: Executor, on_run: OnRun[Run] | None = None
    ) -> dict[Hashable, Run]:
        """Do all runs that a claimed folder does not hold yet; see `run`."""
        missing = [job for job in jobs if not self.path(folder.path, job).exists()]
        report = on_run or (lambda run, was_there: None)
        runs: dict[Hashable, Run] = {}
        not_there = {job.key for job in missing}
        for job in jobs:
            if job.key not in not_there:
                runs[job.key] = self.load(folder, job)
                report(runs[job.key], True)
        with closing(executor.run(self.do, missing)) as finished:
            for run in finished:
                self.save(folder, run)
                runs[run.key] = run
                report(run, False)
        return runs


@contextmanager
def explained_full_disk(folder: Path) -> Iterator[None]:
    """Say what a full disk means for the results."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_IS_FULL:
            raise
        raise StudyError(
            f"{folder}: no space left on the disk; everything finished so far is kept, so free some space and run the "
            "same command with --resume"
        ) from error


@dataclass
class Stages:
    """How long each stage of a study took, and whom to tell which one it is."""

    tell: Callable[[str], None] = lambda name: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        self.tell(name)
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


def make_executor(executor: str | Executor | None = None, *, workers: int | None = None) -> Executor:
    """The executor that is meant: by name, by object, or by the number of workers alone.

    Args:
        executor: one of `EXECUTORS`, or an object, which is used as it is. Without one, more than one worker means
            ``processes``, and anything else ``inline``.
        workers: how many jobs at once; by default all cores for ``processes``, and all that the cluster has room for
            with ``ray``. An object knows this itself, and ``inline`` does one job at a time.
    """
    if workers is not None:
        check_count(workers, "workers", least=1)
    if executor is None:
        executor = "inline" if workers in (None, 1) else "processes"
    if not isinstance(executor, str):
        if workers is not None:
            raise ValueError(f"workers is {workers}, and {executor!r} knows that itself; leave workers out")
        return executor
    check_name(executor, EXECUTORS, "executor")
    if executor == "ray":
        return Ray(workers=workers)
    if executor == "processes":
        return Processes() if workers is None else Processes(workers=workers)
    if workers not in (None, 1):
        raise ValueError(
            f"workers is {workers}, and the executor 'inline' does one job after the other; choose the executor "
            "'processes', or leave one of the two out"
        )
    return Inline()


def local_executor(executor: Executor) -> Executor:
    """The executor for jobs that write files: a cluster's nodes do not see this machine's disk."""
    return executor if isinstance(executor, Inline | Processes) else Processes()


def safe_name(text: str) -> str:
    """A file name that stands for any text: readable, harmless in a shell, and different for different texts."""
    harmless = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:80]
    # A name with slashes between plain words, as experiments have, needs no digest to stay unique.
    if re.fullmatch(r"[A-Za-z0-9]+(/[A-Za-z0-9]+)*", text) and len(text) <= 80:
        return harmless
    return f"{harmless or 'name'}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def counted(count: int, what: str) -> str:
    """A number of things in words: 1 seed, 2 seeds."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def finite_number(value: object, name: str) -> float:
    """A number that was read from a file."""
    if type(value) not in (int, float) or not abs(value) < float("inf"):  # type: ignore[arg-type]
        raise ValueError(f"{name} is {value!r}, expected a finite number")
    return float(value)  # type: ignore[arg-type]


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as the text of a ``.csv`` file."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
