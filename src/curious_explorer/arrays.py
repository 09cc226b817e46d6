"""The names of array types, once for the whole library."""

from __future__ import annotations

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
