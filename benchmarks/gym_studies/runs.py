"""Runs of the studies: a file of JSON each, in a folder that can be put together with others; within a time limit.

A run that the limit stops, or that fails, is kept as such, with the samples that it had taken, and made again by the
next call: what is in a file is either whole or says that it is not. Nothing in a run depends on how many are made side
by side.
"""

from __future__ import annotations

import json
import os
import signal
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from curious_explorer.storage import write_atomically

Run = dict[str, Any]
FINISHED, STOPPED, FAILED, NOT_BEGUN = "finished", "stopped", "failed", "not begun"
AGAIN_S = 5.0
"""An interruption that was lost, as inside of a callback of C, comes again after so many seconds."""


class Job(NamedTuple):
    """A run that is asked for."""

    task: str
    arm: str
    seed: int
    given: int
    """Samples in all."""
    until: float = float("inf")
    """The time (of `time.time`) at which it is stopped."""

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.task}_{self.arm}_{self.given}_{self.seed}"


class OutOfTime(BaseException):
    """The limit was reached; not an error, so that nobody who handles errors on the way takes it for one."""


@contextmanager
def stopped_at(until: float) -> Iterator[None]:
    """Raise `OutOfTime` in what runs inside, at a time; in a process's main thread, and not on Windows."""
    if until == float("inf"):
        yield
        return

    def stop(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(until - time.time(), 1e-3), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def make_run(job: Job) -> Run:
    """The run of a job."""
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: small networks are slower on more
    described = {"task": job.task, "arm": job.arm, "seed": job.seed, "given": job.given}
    if time.time() >= job.until:
        return described | {"state": NOT_BEGUN}
    from benchmarks.gym_studies.arms import run_arm
    from benchmarks.gym_studies.tasks import TASKS

    warnings.simplefilter("ignore")
    began, taken = time.process_time(), [0]

    def note(samples: int) -> None:
        taken[0] = samples

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with stopped_at(job.until):
                found = run_arm(TASKS[job.task], job.arm, job.seed, job.given, Path(folder) / "run", note)
            found = {"state": FINISHED} | found
        except OutOfTime:
            found = {"state": STOPPED, "samples": taken[0]}
        except Exception as error:  # the others go on
            found = {"state": FAILED, "samples": taken[0], "error": f"{type(error).__name__}: {error}"}
    return described | found | {"seconds": round(time.process_time() - began, 1)}


def keep(folder: Path, run: Run) -> None:
    """Write a run's file."""
    name = Job(run["task"], run["arm"], run["seed"], run["given"]).name
    write_atomically(folder / f"{name}.json", (json.dumps(run) + "\n").encode())


def read(folders: Iterable[Path]) -> list[Run]:
    """The runs in folders; of several of the same job one that is finished, the first of these."""
    found: dict[str, Run] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            run: Run = json.loads(path.read_text())
            known = found.get(path.stem)
            if known is None or (known["state"] != FINISHED and run["state"] == FINISHED):
                found[path.stem] = run
    return [found[name] for name in sorted(found)]
