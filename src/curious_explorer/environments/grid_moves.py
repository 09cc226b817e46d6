"""Moves on a grid, shared by the grid worlds: cells are numbered row by row, from the top left one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOVES = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}


def neighbours(height: int, width: int) -> NDArray[np.int64]:
    """The cell that lies in each direction of `MOVES` from each cell, the cell itself at the border; (cells, 4)."""
    row, column = np.divmod(np.arange(height * width), width)
    columns = []
    for down, right in MOVES.values():
        next_row = np.clip(row + down, 0, height - 1)
        next_column = np.clip(column + right, 0, width - 1)
        columns.append(next_row * width + next_column)
    return np.stack(columns, axis=1).astype(np.int64)
