"""Cells of pictures: each distinct picture, or pictures that look alike when they are made small and grey.

A small picture is the mean over blocks, all colours together, cut into so many levels of grey (Ecoffet et al. 2021,
"First return, then explore", cells without domain knowledge). Sizes and levels stand in one list, `SIZES`, from the
finest to the coarsest, so that cells can be made finer or coarser by a number.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.errors import CellError
from curious_explorer.gym.cells import Cells
from curious_explorer.gym.coded_cells import ROOM, CodedCells
from curious_explorer.gym.observation_reader import UNREADABLE, Read, array_code, check_reads, unreadable

SIZES = (
    (42, 16),
    (32, 16),
    (24, 16),
    (20, 12),
    (16, 12),
    (13, 8),
    (11, 8),
    (9, 8),
    (8, 6),
    (6, 6),
    (5, 4),
    (4, 4),
    (3, 3),
)
"""Rows of small pictures and levels of grey; columns follow from the shape of the picture."""


def channels_first(shape: Sequence[int]) -> bool:
    """Whether a picture of this shape has its colours, or the frames of a stack, before its rows."""
    return len(shape) == 3 and shape[0] < min(shape[1:])


def height_of(shape: Sequence[int]) -> int:
    """How many rows a picture of this shape has."""
    return shape[1] if channels_first(shape) else shape[0]


class PictureCells(CodedCells):
    """One cell for all pictures that are alike when they are made small.

    Colours, or the frames of a stack, may be the last axis or the first.

    Args:
        rows: of the small picture; None: pictures are compared as they are.
        levels: of grey.
        path: where the picture is in an observation; by default it is the observation.
        noise: the elements of the flattened picture that are not looked at.
        most: what a white pixel is, 255 for bytes and 1 for numbers, as a rule.
        max_cells: how many cells there may be.
    """

    def __init__(
        self,
        rows: int | None = None,
        levels: int = 8,
        *,
        path: tuple[str | int, ...] = (),
        noise: Sequence[int] = (),
        most: float = 255.0,
        max_cells: int = ROOM,
    ) -> None:
        super().__init__(max_cells)
        if rows is not None and (rows < 1 or not 2 <= levels <= 256):
            raise CellError(f"{rows} rows and {levels} levels of grey; expected at least one row and 2 to 256 levels")
        self.rows, self.levels, self.most = rows, int(levels), float(most)
        self._read = Read(tuple(path))
        self.noise = tuple(noise)
        self._mask: NDArray[np.bool_] | None = None
        self._blocks: tuple[tuple[int, ...], NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]] | None = None

    @property
    def path(self) -> tuple[str | int, ...]:
        """Where the picture is in an observation."""
        return self._read.path

    def code(self, observation: Any) -> Hashable:
        """The small picture, or the picture itself."""
        try:
            picture = np.asarray(self._read.of(observation))
            if self.noise:
                picture = np.where(self._kept(picture), picture, 0).astype(picture.dtype)
            if self.rows is None:
                return array_code(picture)
            return self.small(picture).tobytes()
        except UNREADABLE as error:
            raise unreadable(observation, error) from None

    def small(self, picture: NDArray[Any]) -> NDArray[np.uint8]:
        """The small picture, shape (rows, columns)."""
        if channels_first(picture.shape):
            picture = np.moveaxis(picture, 0, -1)
        if self._blocks is None or self._blocks[0] != picture.shape:
            self._blocks = picture.shape, *self._sums(picture.shape)
        _, rows, columns, per_sum = self._blocks
        flat = picture.reshape(len(picture), -1).astype(np.float32)
        sums = np.add.reduceat(np.add.reduceat(flat, rows, axis=0), columns, axis=1)
        grey: NDArray[np.uint8] = (sums * per_sum).clip(0, self.levels - 1).astype(np.uint8)
        return grey

    def _sums(self, shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Where blocks of rows, and of columns and colours, begin, and what makes a level of a sum over one.

        Sums of bytes are exact in single precision. Products of matrices would take 50 microseconds instead of 65 for
        210 x 160 x 3 where a core is free, and 9 milliseconds where the threads of a library wait for each other.
        """
        assert self.rows is not None
        height, width, colours = shape[0], shape[1], math.prod(shape[2:])
        wanted = max(1, min(width, round(self.rows * width / height)))
        row = np.arange(height) * min(self.rows, height) // height
        column = np.repeat(np.arange(width) * wanted // width, colours)
        rows, columns = (np.searchsorted(each, np.arange(each[-1] + 1)) for each in (row, column))
        sizes = np.outer(np.bincount(row), np.bincount(column)).astype(np.float64)
        above = 1.0 if self.most > 1.0 else 1e-9  # so that white belongs to the last level
        return rows, columns, self.levels / (sizes * (self.most + above))

    def _kept(self, picture: NDArray[Any]) -> NDArray[np.bool_]:
        if self._mask is None:
            self._mask = np.ones(picture.size, dtype=np.bool_)
            self._mask[list(self.noise)] = False
        return self._mask.reshape(picture.shape)

    def coarser(self) -> tuple[Cells, list[str] | None] | None:
        """The next size of `SIZES` with fewer rows."""
        smaller = [size for size in SIZES if self.rows is None or size[0] < self.rows]
        return (self._of_size(*smaller[0]), None) if smaller else None

    def finer(self) -> Cells | None:
        """The next size of `SIZES` with more rows; beyond the largest, pictures as they are."""
        if self.rows is None:
            return None
        larger = [size for size in SIZES if size[0] > self.rows]
        return self._of_size(*larger[-1]) if larger else self._of_size(None, self.levels)

    def _of_size(self, rows: int | None, levels: int) -> PictureCells:
        given = {"path": self.path, "noise": self.noise, "most": self.most, "max_cells": self.count}
        return PictureCells(rows, levels, **given)  # type: ignore[arg-type]

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space that has no picture there."""
        (part,) = check_reads([self._read], space, "PictureCells")
        shape = part.space.shape or ()
        if len(shape) not in (2, 3):
            raise CellError(f"PictureCells reads {part.name}, which has shape {shape}, expected a picture")

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "kind": "picture",
            "rows": self.rows,
            "levels": self.levels,
            "path": list(self.path),
            "noise": list(self.noise),
            "most": self.most,
            "max_cells": self.count,
        }

    def describe(self) -> str:
        """In words."""
        name = "picture" if not self.path else f"picture {self._read.name}"
        without = f", {len(self.noise):,} of its pixels left out" if self.noise else ""
        if self.rows is None:
            return f"one cell for each distinct {name}{without}"
        return f"the {name}, made small ({self.rows} rows) and grey ({self.levels} levels){without}"
