"""What was read from files, as a digest that tells one thing from another."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from curious_explorer.worlds.policies import ObservationPolicy


def digest(value: Any, *, without: frozenset[str] = frozenset()) -> str:
    """What tells one thing that was read from another, but for members and fields of some names."""
    state = hashlib.sha256()
    _feed(state, value, without)
    return state.hexdigest()


def _feed(state: Any, value: Any, without: frozenset[str]) -> None:
    state.update(type(value).__name__.encode())
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, ObservationPolicy):
        state.update(value.encode())
    elif isinstance(value, dict):
        for key in sorted(value.keys() - without, key=repr):
            _feed(state, key, without)
            _feed(state, value[key], without)
    elif isinstance(value, list | tuple):
        for item in value:
            _feed(state, item, without)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name not in without:
                _feed(state, getattr(value, field.name), without)
    else:
        state.update(repr(value).encode("utf-8", "surrogatepass"))
