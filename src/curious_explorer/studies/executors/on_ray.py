"""Jobs as tasks of a Ray cluster, for grids that one machine is too small for.

A task depends on its job alone, so one whose worker or node dies is simply done again elsewhere, and a driver that is
killed goes on from its run files.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from curious_explorer import __version__
from curious_explorer.errors import ExecutorError
from curious_explorer.optional_packages import require
from curious_explorer.studies.executors.executor import QUEUED_PER_WORKER, Job, Result
from curious_explorer.studies.executors.ray_connection import LOCAL, Needs, connected, own_cpus, resolved, room_for
from curious_explorer.validation import check_count

LOOK_AGAIN = 10.0
"""Seconds after which the size of the cluster is looked at again: nodes come and go."""


@dataclass(frozen=True, kw_only=True)
class Ray:
    """A Ray cluster: one that runs already, or a local one started for the call and stopped after it.

    Its nodes need this library in the same version, and for MDPs from files those files at the same path.
    """

    address: str | None = None
    """``host:port``, ``ray://host:port``, ``auto`` (the one on this machine) or ``local`` (one of our own); by default
    what the variable RAY_ADDRESS says, or else ``local``. A process that is connected already stays so, and needs
    none."""
    workers: int | None = None
    """The most tasks at once; as many as there is room for by default."""
    cpus_per_task: float = 1
    gpus_per_task: float = 0
    retries: int = 3
    """How often a task is tried again whose worker died. The default is Ray's own."""
    runtime_env: dict[str, Any] | None = None
    """What Ray is to bring to the nodes (packages, source, variables), as ``ray.init`` takes it; nothing by default."""

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_count(self.workers, "workers", least=1)
        check_count(self.retries, "retries", least=0)
        for name, least in (("cpus_per_task", "more than 0"), ("gpus_per_task", "at least 0")):
            value = getattr(self, name)
            fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
            if not fits or (value == 0 and name == "cpus_per_task"):
                raise ValueError(f"{name} is {value!r}, expected a number that is {least}")
        require("ray", "ray")

    def check(self) -> None:
        """Look at the cluster: it must answer, and have room for a task."""
        if resolved(self.address) != LOCAL or require("ray", "ray").is_initialized() or self._asks_for_much:
            with self._connected():
                pass

    def run(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Generator[Result, None, None]:
        """The result of each job, as soon as it is there."""
        pending = list(jobs)
        pending.reverse()
        if not pending:
            return
        with self._connected() as ray:
            task = ray.remote(num_cpus=self.cpus_per_task, num_gpus=self.gpus_per_task, max_retries=self.retries)(
                _portable_task()
            )
            running: dict[Any, Job] = {}
            try:
                at_once, looked = self._at_once(ray), time.monotonic()
                while pending or running:
                    while pending and len(running) < at_once:
                        job = pending.pop()
                        running[task.remote(ray.cloudpickle.dumps((function, job)), os.getcwd(), __version__)] = job
                    ready, _ = ray.wait(list(running), num_returns=1, timeout=LOOK_AGAIN)
                    for reference in ready:
                        yield self._result(ray, reference, running.pop(reference))
                    if time.monotonic() - looked > LOOK_AGAIN:
                        at_once, looked = self._at_once(ray), time.monotonic()
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)  # compiled code does not listen to anything gentler

    @property
    def _needs(self) -> Needs:
        return Needs(self.cpus_per_task, self.gpus_per_task)

    @property
    def _asks_for_much(self) -> bool:
        """Whether a cluster of our own may have too little."""
        return self.gpus_per_task > 0 or self.cpus_per_task > own_cpus(self.workers)

    def _connected(self) -> AbstractContextManager[Any]:
        return connected(self.address, self._needs, cpus=own_cpus(self.workers), runtime_env=self.runtime_env)

    def _at_once(self, ray: Any) -> int:
        """How many tasks Ray is given; beyond the room there is, the next ones wait near their workers."""
        room = room_for(ray, self._needs)
        return self.workers if self.workers is not None and self.workers < room else QUEUED_PER_WORKER * room

    def _result(self, ray: Any, reference: Any, job: Any) -> Any:
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ImportError):
                raise ExecutorError(
                    f"a worker of the Ray cluster cannot run a job: {error.cause}; install the same there as here, or "
                    "give Ray(runtime_env=...) what to bring to the nodes"
                ) from error
            if not isinstance(error.cause, Exception):
                raise
            raise error.cause from error
        except ray.exceptions.RuntimeEnvSetupError as error:
            raise ExecutorError(f"the Ray cluster cannot set up the runtime_env {self.runtime_env}: {error}") from error
        except ray.exceptions.RayError as error:
            tries = self.retries + 1
            raise ExecutorError(
                f"the Ray worker died {tries} {'times' if tries > 1 else 'time'} doing {_shortened(job)}, the last "
                f"time by {type(error).__name__}: killed from outside, for want of memory, or with its node; whatever "
                "was finished before is kept, so do the same again with --resume, with more CPUs per task if memory "
                "is short"
            ) from error


def _portable_task() -> Callable[[bytes, str, str], Any]:
    """The function that workers run. It travels as code, so that it can say when this library is not there."""

    def job_of_a_grid(content: bytes, folder: str, version: str) -> Any:
        import contextlib
        import os
        import pickle

        try:
            import curious_explorer
        except ModuleNotFoundError as error:
            raise ImportError(f"curious_explorer is not installed there ({error})") from None
        if curious_explorer.__version__ != version:
            raise ImportError(f"curious_explorer is version {curious_explorer.__version__} there and {version} here")
        with contextlib.suppress(OSError):  # so that relative paths mean the same, on nodes that share the disk
            os.chdir(folder)
        function, job = pickle.loads(content)
        return function(job)

    return job_of_a_grid


def _shortened(job: object) -> str:
    text = repr(job)
    return text if len(text) <= 100 else f"{text[:100]}..."
