"""Jobs as tasks of a Ray cluster, for grids that one machine is too small for.

The cluster is one that runs already, by its address, or a small one of our own for as long as it is used. A task
depends on its job alone, so one whose worker or node dies is simply done again elsewhere, and a driver that is killed
goes on from its run files. Ray waits for minutes for an address where nobody answers, and for ever for a task that fits
no node. Both are looked at first here, so that they are errors within seconds.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from curious_explorer import __version__
from curious_explorer.errors import ExecutorError
from curious_explorer.optional_packages import require
from curious_explorer.studies.executors import QUEUED_PER_WORKER, Job, Result, available_cores
from curious_explorer.validation import check_count

LOCAL, AUTO = "local", "auto"
CLIENT = "ray://"
CONNECT_SECONDS = 5.0
"""Seconds until an address counts as not reachable."""
GRPC_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How every gRPC conversation begins: HTTP/2's preface and empty settings, a frame of type 4, as the answer is."""

TOKEN_ADVICE = "if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
LOOK_AGAIN = 10.0
"""Seconds after which the size of the cluster is looked at again: nodes come and go."""


@dataclass(frozen=True)
class Needs:
    """What one task holds while it runs."""

    cpus: float
    gpus: float

    def fit_into(self, resources: dict[str, float]) -> int:
        """How many such tasks a node has room for."""
        parts = [(self.cpus, resources.get("CPU", 0.0)), (self.gpus, resources.get("GPU", 0.0))]
        return min(math.floor(there / needed + 1e-9) for needed, there in parts if needed > 0)


@contextmanager
def connected(address: str | None, needs: Needs, *, cpus: int, runtime_env: dict[str, Any] | None) -> Iterator[Any]:
    """The module ``ray``, connected to a cluster with room for a task; ``cpus`` are those of a cluster of our own."""
    ray = require("ray", "ray")
    _own_cluster.wait_until_stopped()
    if ray.is_initialized():
        if address is not None or runtime_env is not None:
            raise ExecutorError(
                "this process is connected to a Ray cluster already; leave address and runtime_env out to use that "
                "one, or call ray.shutdown() first"
            )
        room_for(ray, needs)
        yield ray  # and whoever connected will disconnect
        return
    where = resolved(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "runtime_env": runtime_env}
    if where == LOCAL:
        options |= {"num_cpus": cpus, "include_dashboard": False}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    else:
        check_reachable(where)
    try:
        ray.init(where, **options)
    except (ray.exceptions.RayError, RuntimeError, ValueError, OSError) as error:
        advice = "" if where == LOCAL else f"; {TOKEN_ADVICE}"
        raise ExecutorError(f"{_named(where)} cannot be used: {_first_line(error)}{advice}") from error
    try:
        room_for(ray, needs)
        yield ray
    finally:
        if where == LOCAL:
            _own_cluster.stop(ray)
        else:
            ray.shutdown()


class _OwnCluster:
    """Stops the cluster of our own while results are put to use already: Ray takes a second to end its processes.

    Whoever connects next waits for that, and so does the interpreter before it ends.
    """

    def __init__(self) -> None:
        self._stopping: threading.Thread | None = None

    def stop(self, ray: Any) -> None:
        """Begin to stop."""
        self._stopping = threading.Thread(target=ray.shutdown, name="stopping Ray")
        self._stopping.start()

    def wait_until_stopped(self) -> None:
        """Return when nothing is stopping any more."""
        if self._stopping is not None:
            self._stopping.join()
            self._stopping = None


_own_cluster = _OwnCluster()


def resolved(address: str | None) -> str:
    """Where to connect to: the address given, or RAY_ADDRESS, or else a cluster of our own."""
    where = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if where != AUTO:
        return where
    require("ray", "ray")
    try:
        from ray._private import services

        find = services.get_ray_address_from_environment
    except (ImportError, AttributeError):  # not documented, so it may move: then Ray itself looks, without our check
        return AUTO
    try:
        return str(find(AUTO, None))
    except ConnectionError as error:
        raise ExecutorError(
            "no Ray cluster runs on this machine, expected one for the address 'auto'; start it by "
            "ray start --head, give its address as host:port, or leave the address out for a cluster of our own"
        ) from error


def check_reachable(address: str) -> None:
    """Say within seconds that nobody answers at an address, or somebody who is not Ray."""
    if address == AUTO:
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ExecutorError(
            f"the Ray address is {address!r}, expected host:port such as 10.0.0.5:6379, ray://host:10001, 'auto' or "
            "'local'"
        )
    advice = "is the cluster up (ray status, on its head node), and the port open to this machine?"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS) as line:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return  # who answers there is for Ray to find out
            line.sendall(GRPC_PREFACE)
            answer = line.recv(9)
    except OSError as error:
        raise ExecutorError(f"no Ray cluster answers at {address} ({error}); {advice}") from error
    if len(answer) < 4 or answer[3] != GRPC_PREFACE[-6]:
        raise ExecutorError(f"what answers at {address} is not a Ray cluster; {advice}")


def room_for(ray: Any, needs: Needs) -> int:
    """How many tasks the cluster has room for at once; none is an error, because Ray would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    many = sum(needs.fit_into(resources) for resources in nodes)
    if many == 0:
        most = [max((resources.get(kind, 0.0) for resources in nodes), default=0.0) for kind in ("CPU", "GPU")]
        raise ExecutorError(
            f"a task holds {needs.cpus:g} CPUs and {needs.gpus:g} GPUs, and no node of the Ray cluster has that (at "
            f"most {most[0]:g} CPUs and {most[1]:g} GPUs); ask for less, or add such a node first"
        )
    return many


def own_cpus(workers: int | None) -> int:
    """The CPUs of a cluster of our own: the cores, or more if more workers are wanted."""
    return max(available_cores(), workers or 1)


def _named(where: str) -> str:
    return "a local Ray cluster" if where == LOCAL else f"the Ray cluster at {where}"


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


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

    @contextmanager
    def kept(self) -> Iterator[Ray]:
        """The same, connected from one `run` to the next, for many short ones."""
        with self._connected():
            yield replace(self, address=None, runtime_env=None)

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
            return ray.cloudpickle.loads(ray.get(reference))
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


def _portable_task() -> Callable[[bytes, str, str], bytes]:
    """The function that workers run. It travels as code, so that it can say when this library is not there.

    Its result comes back as bytes, since Ray would hand out arrays that cannot be written to, and who goes on from them
    writes.
    """

    def job_of_a_grid(content: bytes, folder: str, version: str) -> bytes:
        import contextlib
        import os
        import pickle

        import ray

        try:
            import curious_explorer
        except ModuleNotFoundError as error:
            raise ImportError(f"curious_explorer is not installed there ({error})") from None
        if curious_explorer.__version__ != version:
            raise ImportError(f"curious_explorer is version {curious_explorer.__version__} there and {version} here")
        with contextlib.suppress(OSError):  # so that relative paths mean the same, on nodes that share the disk
            os.chdir(folder)
        function, job = pickle.loads(content)
        dumps: Callable[[Any], bytes] = ray.cloudpickle.dumps
        return dumps(function(job))

    return job_of_a_grid


def _shortened(job: object) -> str:
    text = repr(job)
    return text if len(text) <= 100 else f"{text[:100]}..."
