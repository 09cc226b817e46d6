"""Pictures in which most of what moves is beside the point: where things of each colour are, of those that matter.

A picture made small is another one whenever anything large moves in it, whoever moves it. What the agent moves has a
colour as a rule, so that the middle of all pixels of that colour says where it is. Of every colour there are three
numbers: its share of the pixels, and the row and the column of their middle. Which of them matter is found by
`steered_places`; a grid over those is the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Integers
from curious_explorer.gym.coded_cells import ROOM, NumberCells
from curious_explorer.gym.observation_reader import UNREADABLE, Read, check_reads, unreadable
from curious_explorer.gym.picture_cells import channels_first

LEVELS = 8
"""Of each colour channel, to tell colours apart."""
LARGEST = 100
"""Of larger pictures every second pixel is looked at, or every third."""


class ColourPlaces:
    """The numbers of a picture: of each colour its share, and the row and the column of its middle, from 0 to 1.

    Args:
        colours: codes of the colours, see `codes_of`.
        kept: which of their numbers, three for each colour.
        path: where the picture is in an observation.
        noise: elements of the flattened picture that are not looked at.
        most: what a white pixel is.
    """

    def __init__(
        self,
        colours: Sequence[int],
        kept: Sequence[int] | None = None,
        *,
        path: tuple[str | int, ...] = (),
        noise: Sequence[int] = (),
        most: float = 255.0,
    ) -> None:
        self.colours = tuple(int(colour) for colour in colours)
        self.kept = tuple(range(3 * len(self.colours)) if kept is None else map(int, kept))
        self.reads: tuple[Read, ...] = (Read(tuple(path)),)
        self.noise, self.most = tuple(noise), float(most)
        self._number = {colour: place for place, colour in enumerate(self.colours)}
        self._table: Integers = np.zeros(0, dtype=np.int64)

    def __call__(self, observation: Any) -> list[float]:
        """The kept numbers."""
        try:
            numbers = self.all_of(observation)
        except UNREADABLE as error:
            raise unreadable(observation, error) from None
        return [numbers[place] for place in self.kept]

    def all_of(self, observation: Any) -> list[float]:
        """All numbers; a colour that is not there has a share of 0 and lies at -1."""
        codes = codes_of(np.asarray(self.reads[0].of(observation)), self.noise, self.most)
        top = int(codes.max()) + 1
        if top > len(self._table):
            self._table = np.array([self._number.get(code, len(self.colours)) for code in range(top)])
        numbers = self._table[codes]
        count = len(self.colours) + 1
        rows, columns = numbers.shape
        each = np.bincount((numbers + count * np.arange(rows)[:, None]).ravel(), minlength=count * rows)
        by_row = each.reshape(rows, count)
        total = by_row.sum(axis=0)
        along = np.bincount((numbers + count * np.arange(columns)).ravel(), minlength=count * columns)
        by_column = along.reshape(columns, count)
        middle = [
            (np.arange(length) + 0.5) @ by / np.maximum(total, 1) / length
            for length, by in ((rows, by_row), (columns, by_column))
        ]
        found = np.where(total > 0, np.array([total / (rows * columns), *middle]), np.array([[0.0], [-1.0], [-1.0]]))
        numbers_of: list[float] = found[:, :-1].T.ravel().tolist()
        return numbers_of

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "colours": list(self.colours),
            "kept": list(self.kept),
            "path": list(self.reads[0].path),
            "noise": list(self.noise),
            "most": self.most,
        }

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> ColourPlaces:
        """What `description` gave."""
        given = {name: value for name, value in description.items() if name != "path"}
        return ColourPlaces(path=tuple(description["path"]), **given)


class PlaceCells(NumberCells):
    """A grid over where things of some colours are in a picture.

    Args:
        widths: of the bins of each number.
        places: what makes the numbers.
        max_cells: how many cells there may be.
    """

    def __init__(self, widths: Sequence[float], places: ColourPlaces, *, max_cells: int = ROOM) -> None:
        super().__init__(widths, places.reads, max_cells=max_cells)
        self.places = places
        self._numbers = places

    def with_widths(self, widths: Sequence[float]) -> PlaceCells:
        """The same with other bins."""
        return PlaceCells(widths, self.places, max_cells=self.count)

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space that has no picture there."""
        check_reads(self.reads, space, "PlaceCells")

    def description(self) -> dict[str, Any]:
        """As plain data."""
        described = self.places.description()
        return {"kind": "places", "widths": self.widths, "places": described, "max_cells": self.count}

    def describe(self) -> str:
        """In words."""
        colours = len({place // 3 for place in self.places.kept})
        things = "one colour is" if colours == 1 else f"{colours} colours are"
        widths = ", ".join(f"{width:.3g}" for width in self.widths)
        return f"where {things} in the picture, bins of width {widths}; what moves by itself is left out"


def codes_of(picture: NDArray[Any], noise: Sequence[int], most: float) -> Integers:
    """A code for the colour of every pixel, shape (rows, columns); large pictures are thinned out."""
    levels = np.minimum(picture.astype(np.float32) * (LEVELS / most), LEVELS - 1).astype(np.int64)
    if noise:
        levels.reshape(-1)[list(noise)] = 0
    if levels.ndim == 3:
        levels = np.moveaxis(levels, 0, -1) if channels_first(levels.shape) else levels
        levels = levels[..., -3:] if levels.shape[-1] > 4 else levels[..., :3]  # of a stack the last frames
        levels = levels @ LEVELS ** np.arange(levels.shape[-1])
    thin = -(-max(levels.shape) // LARGEST)
    found: Integers = levels[::thin, ::thin]
    return found
