"""Which kernels a `TabularWorld` runs: compiled by Numba for the CPU, or by Triton for a GPU.

Results do not depend on it: integers are the same, and sums of floats differ by rounding alone.
"""

from __future__ import annotations

import logging

from curious_explorer.errors import BackendError

BACKENDS = ("numba", "triton", "auto")

log = logging.getLogger(__name__)


def choose_backend(name: str) -> str:
    """The backend behind a name: "auto" is "triton" where a GPU is found, and "numba" otherwise; it logs which.

    Raises `BackendError` if "triton" is asked for and cannot be used here, with the reason.
    """
    if name not in BACKENDS:
        raise ValueError(f"backend is {name!r}, expected one of {', '.join(map(repr, BACKENDS))}")
    if name == "numba":
        return name
    from curious_explorer.gpu import device

    if name == "triton":
        device.find_device()
        return name
    if device.interpreting():
        log.info("backend 'auto' is 'numba': Triton is set to interpret kernels on the CPU, which is for tests")
        return "numba"
    try:
        found = device.find_device()
    except BackendError as error:
        log.info("backend 'auto' is 'numba': %s", error)
        return "numba"
    log.info("backend 'auto' is 'triton', on %s", device.name_of(found))
    return "triton"
