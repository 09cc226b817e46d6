"""The way to a Ray cluster: one that runs already, by its address, or a small one of our own for as long as it is used.

Ray waits for minutes for an address where nobody answers, and for ever for a task that fits no node. Both are looked
at first here, so that they are errors within seconds.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from curious_explorer.errors import ExecutorError
from curious_explorer.optional_packages import require
from curious_explorer.studies.executors.local import available_cores

LOCAL, AUTO = "local", "auto"
CLIENT = "ray://"
PATIENCE = 5.0
"""Seconds until an address counts as not reachable."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How every gRPC conversation begins: HTTP/2's preface and empty settings, a frame of type 4, as the answer is."""

TOKEN_ADVICE = "if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"


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
    """The module ``ray``, connected to a cluster with room for a task.

    Args:
        address: ``host:port``, ``ray://host:port``, ``auto`` or ``local``; without one, what RAY_ADDRESS says.
        needs: what a task holds.
        cpus: of the cluster, if it is one of our own.
        runtime_env: what Ray is to bring to the nodes, as `ray.init` takes it.
    """
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
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as line:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return  # who answers there is for Ray to find out
            line.sendall(HELLO)
            answer = line.recv(9)
    except OSError as error:
        raise ExecutorError(f"no Ray cluster answers at {address} ({error}); {advice}") from error
    if len(answer) < 4 or answer[3] != HELLO[-6]:
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
