"""Which kernels a `TabularWorld` runs: compiled by Numba for the CPU, or those of a package that is registered here.

Results do not depend on it: integers are the same, and sums of floats differ by rounding alone. A backend is loaded
when somebody asks for it. The registry stands below everything else, so that worlds need not know what is built on
them, and a package can be registered without loading any world.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from curious_explorer.errors import BackendError


class Backend(NamedTuple):
    """How to find a device and to run an MDP's walks and episodes on it."""

    find: Callable[[], str]
    """The device in words; raises `BackendError`, with the reason, where there is none."""
    why_not_by_itself: Callable[[], str | None]
    """Why "auto" should pass it by although it could be used; None if it should not."""
    kernels: Callable[[Any], Any]
    """What walks a `FiniteMDP`: an object with the methods of `NumbaBackend`."""


BACKENDS: dict[str, Callable[[], Backend]] = {}
"""By name, what loads a backend; "numba" is built in."""

log = logging.getLogger(__name__)


def choose_backend(name: str) -> str:
    """The backend behind a name: "auto" is a registered one that can be used here, or else "numba"; it logs which.

    Raises `BackendError` if a backend is asked for that cannot be used here, with the reason.
    """
    names = ("numba", *BACKENDS, "auto")
    if name not in names:
        raise ValueError(f"backend is {name!r}, expected one of {', '.join(map(repr, names))}")
    if name == "auto":
        return next((other for other in BACKENDS if _usable(other)), "numba")
    if name != "numba":
        BACKENDS[name]().find()
    return name


def _usable(name: str) -> bool:
    backend = BACKENDS[name]()
    reason: object = backend.why_not_by_itself()
    if reason is None:
        try:
            log.info("backend 'auto' is %r, on %s", name, backend.find())
            return True
        except BackendError as error:
            reason = error
    log.info("backend 'auto' is 'numba': %s", reason)
    return False
