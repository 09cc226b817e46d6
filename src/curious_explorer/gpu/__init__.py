"""Walks, episodes and whole runs on a GPU, through Triton; the extra ``gpu``.

Importing this package needs neither PyTorch nor Triton; its other modules, `device` excepted, do.
"""

from __future__ import annotations

from typing import Any

from curious_explorer.backends import Backend
from curious_explorer.gpu import device


def _find() -> str:
    return device.name_of(device.find_device())


def _why_not_by_itself() -> str | None:
    return "Triton is set to interpret kernels on the CPU, which is for tests" if device.interpreting() else None


def _kernels(mdp: Any) -> Any:
    from curious_explorer.gpu.triton_backend import TritonBackend

    return TritonBackend(mdp)


TRITON = Backend(_find, _why_not_by_itself, _kernels)
"""What ``TabularWorld(mdp, backend="triton")`` runs."""
