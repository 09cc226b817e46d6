"""Finding a GPU that Triton can use, or saying in plain words why there is none; and how kernels are laid out on it.

PyTorch and Triton (the extra ``gpu``) are imported inside functions only. With TRITON_INTERPRET=1 in the environment
Triton runs kernels on the CPU, slowly: that is how they are tested.
"""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from typing import Any, NamedTuple

from curious_explorer.errors import BackendError
from curious_explorer.optional_packages import installing

EXTRA = "gpu"
OTHERWISE = "use backend='numba' to walk on the CPU"
MEMORY_LEFT = 1 << 28
"""Bytes of GPU memory that are left alone: PyTorch and the driver need some for themselves."""

UNASKED = 1 << 26
"""Less than this is not asked for: the answer would take longer than small work itself."""


def interpreting() -> bool:
    """Whether Triton runs kernels on the CPU."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes", "y")


def require(module: str) -> Any:
    """Import a package of the extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise BackendError(
            f"backend 'triton' needs the package {(error.name or module)!r}, which is not installed; "
            f"{installing(EXTRA)}, or {OTHERWISE}"
        ) from error


def find_device() -> Any:
    """The torch device that kernels run on: the current GPU, or the CPU where Triton interprets.

    Raises `BackendError` if PyTorch or Triton are missing, or if there is no GPU that they can use.
    """
    torch = require("torch")
    require("triton")
    if interpreting():
        return torch.device("cpu")
    try:
        torch.cuda.init()
        return torch.device("cuda", torch.cuda.current_device())
    except (RuntimeError, AssertionError) as error:
        raise BackendError(f"{_why_not(torch, str(error))}; {OTHERWISE}") from error


def _why_not(torch: Any, message: str) -> str:
    """What keeps PyTorch from using a GPU."""
    build = torch.version.cuda
    version = torch.__version__
    if build is None:
        return f"backend 'triton' needs a GPU, but PyTorch {version} is built for the CPU alone; install its CUDA build"
    if "too old" in message:
        return (
            f"the NVIDIA driver is too old for PyTorch {version}, which is built for CUDA {build} ({message}); update "
            "the driver, or install a PyTorch that is built for an older CUDA"
        )
    return f"backend 'triton' needs an NVIDIA GPU, and PyTorch {version} finds none ({message})"


def check_memory(needed: int, device: Any, what: str) -> None:
    """Refuse work for which too little GPU memory is free, before it begins."""
    if device.type != "cuda" or needed < UNASKED:
        return
    torch = require("torch")
    free, total = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # kept by PyTorch for reuse
    if needed > free - MEMORY_LEFT:
        raise BackendError(
            f"{what} needs {needed / 2**30:.2f} GiB of GPU memory, but {max(free - MEMORY_LEFT, 0) / 2**30:.2f} GiB of "
            f"{total / 2**30:.1f} GiB are free on {torch.cuda.get_device_name(device)}; free some, or {OTHERWISE}"
        )


def name_of(device: Any) -> str:
    """The device in words."""
    return str(require("torch").cuda.get_device_name(device)) if device.type == "cuda" else str(device)


# Layout --------------------------------------------------------------------------------------------------------------

TABLE_BYTES = 1 << 23
"""Copies of counts or sums may take this much together: they are to stay in the GPU's second-level cache."""

PROGRAMS_IN_TURN, WALKS_PER_LANE = 8, 32
"""A run's walks go to at most this many times the programs that fill the device, if each lane has so many to do: at the
end of a program most of its lanes are idle."""


class Launch(NamedTuple):
    """How kernels are laid out on the GPU; results do not depend on it, speed does."""

    block: int  # lanes of a program
    warps: int
    stride: int  # steps between looks for lanes that have finished
    programs_per_processor: int  # that run at a time
    copies: int = 32  # of an entry of a table that is added to, at most


# The fastest of those that `python -m benchmarks.gpu --tune` tries, on an H200.
WALKS = Launch(block=64, warps=1, stride=7, programs_per_processor=32)
EPISODES = Launch(block=32, warps=1, stride=4, programs_per_processor=32, copies=4)


def programs_that_fill(device: Any, launch: Launch) -> int:
    """How many programs fill the device; where Triton interprets, few, so that each has several things to do."""
    return _processors(device) * launch.programs_per_processor if device.type == "cuda" else 1


@lru_cache(maxsize=8)
def _processors(device: Any) -> int:
    return int(require("torch").cuda.get_device_properties(device).multi_processor_count)


def programs_per_run(device: Any, launch: Launch, runs: int, count: int) -> int:
    """How many programs share the walks of a run.

    As many as fill the device would end at different times, and leave it half empty meanwhile. Where there is work for
    more of them, those that have not begun take the place of those that end.
    """
    filling = -(-programs_that_fill(device, launch) // max(runs, 1))
    busy = count // (launch.block * WALKS_PER_LANE)
    return max(1, min(-(-count // launch.block), max(filling, min(busy, filling * PROGRAMS_IN_TURN))))


def copies_of(launch: Launch, runs: int, entries: int, programs: int) -> tuple[int, int]:
    """How many copies of each entry stand side by side, and how many copies of the whole table there are."""
    room = TABLE_BYTES // (8 * max(runs, 1) * entries)
    copies = 1
    while copies < launch.copies and 2 * copies <= room:
        copies *= 2
    return copies, max(1, min(programs, room // copies))
