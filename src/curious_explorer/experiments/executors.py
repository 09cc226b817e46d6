"""Where jobs run: here, one after the other, or in worker processes. Results do not depend on it, only time does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import connection
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

QUEUED_PER_WORKER = 2
"""Enough that no worker waits, few enough that an interruption loses little."""


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(function: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int) -> Iterator[Result]:
    """The result of each job, as soon as it is there, in no particular order.

    ``function`` and the jobs must be picklable when there is more than one worker. A failing job ends the iteration
    with its exception; results that came before it have been handed out.
    """
    pending = list(jobs)
    if workers == 1 or len(pending) < 2:
        yield from map(function, pending)
        return
    # Spawned, not forked: a fork would copy the progress bar's thread in the middle of whatever it does.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(pending)), mp_context=context, initializer=_obey_the_parent)
    try:
        pending.reverse()
        running: set[Future[Result]] = set()
        while pending or running:
            while pending and len(running) < QUEUED_PER_WORKER * workers:
                running.add(pool.submit(function, pending.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _obey_the_parent() -> None:
    """Leave interruptions to the process that started this worker, and end when that one is gone, even if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
