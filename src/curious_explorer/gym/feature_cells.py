"""Cells of many numbers: a few features of them, and a new cell wherever none of the known ones is near.

Features are linear, phi(x) = W (x - m), and found by `learned_features`. A cell is the first known centre within the
radius of an observation's features; where there is none the features become a centre. The *first* one, not the nearest:
so an observation that has a cell keeps it, whatever centres come after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.compile import compiled, int64
from curious_explorer.errors import CellError, ObservationError
from curious_explorer.gym.cells import UNKNOWN, Cells, Env
from curious_explorer.gym.coded_cells import ROOM
from curious_explorer.gym.discovered_cells import DiscoveredCells
from curious_explorer.gym.observation_reader import Numbers, Read, check_reads

FIRST_CENTRES = 256


class FeatureCells(DiscoveredCells):
    """A cover of what was seen by balls of one radius, in a space of a few features.

    Args:
        mean: m, shape (D,).
        weights: W, shape (features, D).
        radius: how far from a centre its cell reaches.
        reads: which numbers the D are; by default the whole observation.
        max_cells: how many cells there may be.
    """

    def __init__(
        self,
        mean: ArrayLike,
        weights: ArrayLike,
        radius: float,
        reads: Sequence[Read] = (Read(),),
        *,
        max_cells: int = ROOM,
    ) -> None:
        super().__init__(max_cells)
        self._mean, self._weights = np.array(mean, dtype=np.float64).ravel(), np.array(weights, dtype=np.float64)
        if self._weights.ndim != 2 or self._weights.shape[1] != len(self._mean):
            raise CellError(
                f"weights have shape {self._weights.shape} and the mean has {len(self._mean)} numbers, expected "
                f"weights of shape (features, {len(self._mean)})"
            )
        if not 0.0 < radius < math.inf:
            raise CellError(f"radius is {radius}, expected a positive number")
        self.radius = float(radius)
        self._numbers = Numbers(reads)
        self._centres = np.zeros((FIRST_CENTRES, len(self._weights)))

    @property
    def reads(self) -> tuple[Read, ...]:
        """Which numbers."""
        return self._numbers.reads

    def features(self, observation: Any) -> Floats:
        """The features of an observation."""
        values = np.array(self._numbers(observation))
        if len(values) != len(self._mean):
            raise ObservationError(
                f"the observation has {len(values)} numbers, but the features were learned from {len(self._mean)}"
            )
        found: Floats = self._weights @ (values - self._mean)
        if not np.isfinite(found).all():
            raise ObservationError(
                f"the observation has NaN or infinite numbers in it: {values.tolist()}; repair the environment, or map "
                "them to finite numbers in a wrapper"
            )
        return found

    def index(self, observation: Any, env: Env | None) -> int:
        """The first centre near enough; the observation's own features if there is none."""
        return self._place(self.features(observation))

    def _place(self, features: Floats) -> int:
        known = len(self._number)
        place = int(first_within(self._centres, known, features, self.radius * self.radius))
        if place >= 0 or not self._growing:
            return place if place >= 0 else UNKNOWN
        number = self.number(_text(features))
        if number == len(self._centres):
            self._centres = np.concatenate([self._centres, np.zeros_like(self._centres)])
        self._centres[number] = features
        return number

    def key(self, observation: Any, env: Env | None) -> str:
        """The features of the cell's centre."""
        return _text(self._centres[self.index(observation, env)])

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """A copy with these centres."""
        copied = super().recalling(discovered, growing=growing)
        assert isinstance(copied, FeatureCells)
        room = max(FIRST_CENTRES, 1 << len(discovered).bit_length())
        copied._centres = np.zeros((room, len(self._weights)))
        for number, text in enumerate(discovered):
            copied._centres[number] = [float.fromhex(value) for value in text.split(",")]
        return copied

    def coarser(self) -> tuple[Cells, list[str] | None] | None:
        """A radius larger by a half; the cell of an old centre stands for its cell."""
        wider = self._of_radius(1.5 * self.radius)
        places = [wider._place(self._centres[number]) for number in range(len(self._number))]
        keys = wider.discovered()
        return self._of_radius(1.5 * self.radius), [keys[place] for place in places]

    def finer(self) -> Cells | None:
        """A radius smaller by a third."""
        return self._of_radius(self.radius / 1.5)

    def _of_radius(self, radius: float) -> FeatureCells:
        return FeatureCells(self._mean, self._weights, radius, self.reads, max_cells=self.count)

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space without the numbers that are read."""
        check_reads(self.reads, space, "FeatureCells")

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "kind": "features",
            "mean": self._mean.tolist(),
            "weights": self._weights.tolist(),
            "radius": self.radius,
            "reads": [read.description() for read in self.reads],
            "max_cells": self.count,
        }

    def describe(self) -> str:
        """In words."""
        return (
            f"{len(self._weights)} features of {len(self._mean)} numbers, and a new cell wherever no known one is "
            f"within {self.radius:.3g}"
        )


def _text(features: Floats) -> str:
    return ",".join(value.hex() for value in features.tolist())


@compiled
def first_within(centres: Floats, count: int, features: Floats, square: float) -> int:
    """The first of ``count`` centres whose squared distance is at most ``square``; -1 if there is none."""
    for place in range(count):
        distance = 0.0
        for feature in range(len(features)):
            apart = centres[place, feature] - features[feature]
            distance += apart * apart
        if distance <= square:
            return int64(place)
    return int64(-1)
