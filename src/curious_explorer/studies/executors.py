"""Where jobs run: in this process or in worker processes; `ray_executor` has a third place, a cluster.

Results do not depend on it, only time does.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Protocol, TypeVar

from curious_explorer.errors import ExecutorError
from curious_explorer.validation import check_count

Job = TypeVar("Job")
Result = TypeVar("Result")

QUEUED_PER_WORKER = 2
"""Jobs handed to each worker: enough that none waits, few enough that an interruption loses little."""


class Executor(Protocol):
    """Runs jobs somewhere; `Inline`, `Processes` and `Ray` are three, and any object with these methods is another."""

    def check(self) -> None:
        """Refuse now, with a ``ValueError``, what would fail later; called before a grid writes its first file."""

    def run(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Generator[Result, None, None]:
        """The result of each job, as soon as it is there, in no particular order.

        A failing job ends the iteration with its exception; results that came before it have been handed out. Closing
        the generator abandons the jobs that are not finished.
        """


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Inline:
    """One job after the other, in this process."""

    def check(self) -> None:
        """Nothing can be wrong."""

    def run(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Generator[Result, None, None]:
        """The result of each job, in order."""
        yield from map(function, jobs)


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Worker processes on this machine; function and jobs must be picklable."""

    workers: int = field(default_factory=available_cores)
    """How many; all cores by default."""

    def __post_init__(self) -> None:
        check_count(self.workers, "workers", least=1)

    def check(self) -> None:
        """Nothing can be wrong."""

    def run(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Generator[Result, None, None]:
        """The result of each job, as soon as it is there."""
        pending = list(jobs)
        if len(pending) < 2:
            yield from map(function, pending)
            return
        many = min(self.workers, len(pending))
        pool = _workers(many)
        try:
            yield from _run_in(pool, many, function, pending)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def kept(self) -> Iterator[KeptProcesses]:
        """An executor whose workers stay from one `run` to the next, for many short ones."""
        pool = _workers(self.workers)
        try:
            yield KeptProcesses(pool, self.workers)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class KeptProcesses:
    """The workers of `Processes.kept`."""

    _pool: ProcessPoolExecutor
    _workers: int

    def check(self) -> None:
        """Nothing can be wrong."""

    def run(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Generator[Result, None, None]:
        """The result of each job, as soon as it is there."""
        yield from _run_in(self._pool, self._workers, function, list(jobs))


def kept(executor: Executor) -> AbstractContextManager[Executor]:
    """The same executor, with workers that stay from one `run` to the next where it has such."""
    return executor.kept() if hasattr(executor, "kept") else nullcontext(executor)


def _workers(many: int) -> ProcessPoolExecutor:
    # Spawned, not forked: a fork would copy the progress bar's thread in the middle of whatever it does.
    return ProcessPoolExecutor(many, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_the_parent)


def _run_in(
    pool: ProcessPoolExecutor, many: int, function: Callable[[Job], Result], pending: list[Job]
) -> Generator[Result, None, None]:
    """The results of jobs, a few of which are handed out at a time; the others are dropped if this is closed."""
    pending.reverse()
    running: set[Future[Result]] = set()
    try:
        while pending or running:
            while pending and len(running) < QUEUED_PER_WORKER * many:
                running.add(pool.submit(function, pending.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise ExecutorError(
            "a worker process died: killed from outside, for want of memory, or because a script starts workers "
            "outside of if __name__ == '__main__'; whatever was finished before is kept, so do the same again with "
            "--resume, with fewer --workers if memory is short"
        ) from error
    finally:
        for future in running:
            future.cancel()


def _end_with_the_parent() -> None:
    """Leave interruptions to the process that started this worker, and end when that one is gone, even if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
