"""Long arrays, a block at a time, so that checking ten million rows takes no more memory than checking a million."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ROWS_AT_ONCE = 1 << 20
"""Enough for NumPy to be at its best, few enough that what is in between (a mask, a difference) stays small."""


def blocks(size: int, at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[int, int]]:
    """First and stop of each block of 0..size-1, in order."""
    for first in range(0, size, at_once):
        yield first, min(first + at_once, size)


def feed(digest: Any, array: NDArray[Any], dtype: DTypeLike) -> None:
    """Add an array to a digest of `hashlib`, as the bytes it would have with this type."""
    flat = array.ravel()
    for first, stop in blocks(flat.size):
        digest.update(np.ascontiguousarray(flat[first:stop], dtype=dtype).data)
