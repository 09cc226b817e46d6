"""The names of array types, once for the whole library, and long arrays a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]
Singles: TypeAlias = NDArray[np.float32]
Indices: TypeAlias = NDArray[np.int32]
Unsigned: TypeAlias = NDArray[np.uint32]
Pixels: TypeAlias = NDArray[np.uint8]

ROWS_AT_ONCE = 1 << 20
"""Enough for NumPy to be at its best, few enough that what is in between (a mask, a difference) stays small."""


def blocks(size: int, at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[int, int]]:
    """First and stop of each block of 0..size-1, so that ten million rows take no more memory than a million."""
    for first in range(0, size, at_once):
        yield first, min(first + at_once, size)
