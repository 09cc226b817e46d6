"""Cells: the finite world that an agent makes of its observations.

Algorithm 2 counts visits of states, so an environment with continuous or structured observations needs a map from
observations to finitely many cells. Each kind here is a small object that can be described as plain data, stored with a
reset model and made again from its description.

- `DiscreteCells`: a `Discrete` observation is its own cell;
- `GridCells`: a box cut into equal bins, with given bounds;
- `QuantileCells`: a box cut where the observations of a warm-up fall, for spaces without bounds;
- `HashedCells`: cells are discovered as they are met, in that order (see `hashed_cells`);
- `MiniGridCells`: a MiniGrid's symbolic state, discovered likewise;
- `FunctionCells`: whatever the user's function says.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from curious_explorer.errors import CellError, ObservationError
from curious_explorer.validation import check_count

UNKNOWN = -1
"""The cell of an observation that was never met, where no cell may be added."""
Env = gymnasium.Env[Any, Any]


class Cells(ABC):
    """A map from observations to ``count`` cells."""

    count: int
    """How many cells there are, or may be."""

    @abstractmethod
    def index(self, observation: Any, env: Env | None) -> int:
        """The cell of an observation; ``env`` is where it was made, for those that look behind it."""

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse observations that this map cannot be meant for, where that can be told before any is seen."""
        return

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """The map as plain data, ``kind`` among it; what was discovered is not part of it."""

    @property
    def function(self) -> Callable[[Any], Any] | None:
        """The user's function behind this map, where there is one: what cannot be stored."""
        return None

    def discovered(self) -> list[str]:
        """The cells met so far, in order, for maps that grow; empty for others."""
        return []

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """The same map with these cells discovered; unless it is growing, others are `UNKNOWN` from now on."""
        return self


class DiscreteCells(Cells):
    """A `Discrete` observation is its own cell."""

    def __init__(self, count: int, start: int = 0) -> None:
        self.count = check_count(count, "count", least=1)
        self._start = int(start)

    def index(self, observation: Any, env: Env | None) -> int:
        """The observation itself, counted from zero."""
        try:
            cell = operator.index(observation) - self._start
        except TypeError:
            raise ObservationError(
                f"the observation is {observation!r}, expected a whole number; repair the environment, or give "
                "GymWorld cells=... for observations of another kind"
            ) from None
        if not 0 <= cell < self.count:
            raise ObservationError(
                f"the observation is {observation!r}, expected a number from {self._start} to "
                f"{self._start + self.count - 1}, as the environment's observation space says"
            )
        return cell

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "discrete", "count": self.count, "start": self._start}


class _CutCells(Cells):
    """A box cut by inner edges along each dimension; what lies outside belongs to the outermost cells."""

    def __init__(self) -> None:
        self._cuts: list[list[float]] | None = None  # the inner edges along each dimension, once they are known
        self._strides: list[int] = []
        self.count = 0

    def _cut(self, inner: Sequence[ArrayLike]) -> None:
        """Fix the edges."""
        self._cuts = []
        for dimension, edges in enumerate(inner):
            array = np.array(edges, dtype=np.float64).ravel()
            if not np.isfinite(array).all() or (np.diff(array) < 0).any():
                raise CellError(
                    f"the edges of dimension {dimension} are {array}, expected finite numbers that increase"
                )
            self._cuts.append(array.tolist())
        bins = [len(edges) + 1 for edges in self._cuts]
        self._strides = [math.prod(bins[dimension + 1 :]) for dimension in range(len(bins))]
        self.count = math.prod(bins)

    def index(self, observation: Any, env: Env | None) -> int:
        """The cell in row-major order."""
        try:
            values = observation.tolist()
            total = sum(values)  # NaN if one of them is
            if total == total and len(values) == len(self._strides):
                return sum(map(operator.mul, map(bisect_right, self._cuts, values), self._strides))  # type: ignore[arg-type]
        except (AttributeError, TypeError):  # not the common case of a flat array
            pass
        return self._index_carefully(observation)

    def _index_carefully(self, observation: Any) -> int:
        """The cell of an observation that is no flat array of finite numbers, or what is wrong with it."""
        if self._cuts is None:
            raise CellError("the quantiles are not known yet; GymWorld(env, cells=...) finds them in a warm-up")
        try:
            values = np.asarray(observation, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise ObservationError(
                f"the observation is {observation!r}, expected an array of {len(self._cuts)} numbers; for Dict or "
                "Tuple observations give cells=FunctionCells(function, count)"
            ) from None
        if len(values) != len(self._cuts):
            raise ObservationError(
                f"the observation has {len(values)} numbers, but the cells were made for {len(self._cuts)}; give bins "
                "and bounds for each number, or cells=FunctionCells(function, count) to use some of them"
            )
        if np.isnan(values).any():
            raise ObservationError(
                f"the observation is {values.tolist()}, which has NaN in it; repair the environment, or map NaN to a "
                "number in a wrapper"
            )
        places = [bisect_right(edges, value) for edges, value in zip(self._cuts, values.tolist(), strict=True)]
        return sum(place * stride for place, stride in zip(places, self._strides, strict=True))

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse what is no box, or one of another dimension."""
        if isinstance(space, (spaces.Dict, spaces.Tuple)):
            raise CellError(
                f"{type(self).__name__} cuts boxes of numbers, but observations are in {space}; give "
                "cells=FunctionCells(function, count) or HashedCells(key=function)"
            )
        numbers = 1 if not space.shape else math.prod(space.shape)
        if self._cuts is not None and numbers != len(self._cuts):
            raise CellError(
                f"{type(self).__name__} was made for {len(self._cuts)} numbers, but an observation in {space} has "
                f"{numbers}; give bins and bounds for each of them, or cells=FunctionCells(function, count) to use some"
            )


class GridCells(_CutCells):
    """A box cut into equal bins.

    Args:
        bins: how many along each dimension, or one number for all.
        low: where the first bin begins, along each dimension.
        high: where the last one ends. Observations beyond these bounds belong to the outermost bins.
    """

    def __init__(self, bins: int | Sequence[int], low: ArrayLike, high: ArrayLike) -> None:
        super().__init__()
        lows, highs = (np.array(bound, dtype=np.float64).ravel() for bound in (low, high))
        if lows.shape != highs.shape or not np.isfinite([lows, highs]).all() or not (lows < highs).all():
            raise CellError(
                f"the grid goes from {lows.tolist()} to {highs.tolist()}, expected finite bounds with low < high in "
                "every dimension; give GridCells(bins, low, high) the range that matters, or use QuantileCells"
            )
        self._bins = _bins(bins, len(lows))
        self._low, self._high = lows, highs
        pieces = zip(lows, highs, self._bins, strict=True)
        self._cut([np.linspace(first, last, number + 1)[1:-1] for first, last, number in pieces])

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "grid", "bins": self._bins, "low": self._low.tolist(), "high": self._high.tolist()}


class QuantileCells(_CutCells):
    """A box cut so that the observations of a warm-up fall into each bin of a dimension equally often.

    For spaces without bounds. The world takes the warm-up's steps (they are counted) and fixes the edges then: a table
    learned on cells that moved would mean nothing.

    Args:
        bins: how many along each dimension, or one number for all.
        warm_up: steps of uniformly random actions to take the quantiles from.
        edges: the inner edges, once they are known.
    """

    def __init__(
        self, bins: int | Sequence[int], *, warm_up: int = 5_000, edges: Sequence[ArrayLike] | None = None
    ) -> None:
        super().__init__()
        self._bins = bins
        self.warm_up = check_count(warm_up, "warm_up", least=1)
        if edges is not None:
            self._cut(edges)

    @property
    def fitted(self) -> bool:
        """Whether the edges are known."""
        return self._cuts is not None

    def fitted_to(self, observations: Sequence[Any]) -> QuantileCells:
        """The same with its edges fixed by the observations of a warm-up, shape (N, D)."""
        seen = np.array(observations, dtype=np.float64).reshape(len(observations), -1)
        if not np.isfinite(seen).all():
            raise ObservationError(
                f"an observation of the warm-up is {seen[~np.isfinite(seen).all(axis=1)][0].tolist()}, expected finite "
                "numbers; repair the environment, or map such numbers to finite ones in a wrapper"
            )
        shares = [np.arange(1, number) / number for number in _bins(self._bins, seen.shape[1])]
        edges = [np.unique(np.quantile(seen[:, d], share)) for d, share in enumerate(shares)]
        return QuantileCells(self._bins, warm_up=self.warm_up, edges=edges)

    def description(self) -> dict[str, Any]:
        """As plain data."""
        bins = self._bins if isinstance(self._bins, int) else list(self._bins)
        return {"kind": "quantiles", "bins": bins, "warm_up": self.warm_up, "edges": self._cuts}


class FunctionCells(Cells):
    """Cells by the user's function.

    Args:
        function: from an observation to a cell, a whole number from 0 to ``count - 1``.
        count: how many cells there are.
    """

    def __init__(self, function: Callable[[Any], int], count: int) -> None:
        if not callable(function):
            raise CellError(f"function is {function!r}, expected a function from an observation to a cell")
        self._function = function
        self.count = check_count(count, "count", least=1)

    @property
    def function(self) -> Callable[[Any], Any] | None:
        """The user's function."""
        return self._function

    def index(self, observation: Any, env: Env | None) -> int:
        """What the function says, checked."""
        try:
            cell = self._function(observation)
        except CellError:
            raise
        except Exception as error:
            raise CellError(
                f"the cell function raised {type(error).__name__} for the observation {observation!r}: {error}; it "
                "must give a cell for every observation of the environment"
            ) from error
        if not isinstance(cell, (int, np.integer)) or not 0 <= cell < self.count:
            raise CellError(
                f"the cell function returned {cell!r} for the observation {observation!r}, expected a whole number "
                f"from 0 to {self.count - 1}; give FunctionCells the number of cells that the function needs"
            )
        return int(cell)

    def description(self) -> dict[str, Any]:
        """As plain data; the function itself cannot be stored and must be given again."""
        name = f"{getattr(self._function, '__module__', '?')}:{getattr(self._function, '__qualname__', '?')}"
        return {"kind": "function", "count": self.count, "function": name}


def default_cells(space: spaces.Space[Any]) -> Cells:
    """Cells for an observation space for which there is an obvious choice."""
    if isinstance(space, spaces.Discrete):
        return DiscreteCells(int(space.n), int(space.start))
    if isinstance(space, spaces.Box) and len(space.shape) == 1 and space.shape[0] <= 4 and space.is_bounded("both"):
        bins = {1: 100, 2: 20, 3: 12, 4: 8}[space.shape[0]]
        return GridCells(bins, space.low, space.high)
    raise CellError(
        f"there are no obvious cells for observations in {space}; give GymWorld cells=GridCells(bins, low, high) or "
        "QuantileCells(bins) for a few numbers, HashedCells(max_cells) for symbols, MiniGridCells() for MiniGrid, or "
        "FunctionCells(function, count) for anything else, such as Dict observations. On the command line: --cells "
        "20x20:LOW,LOW:HIGH,HIGH, quantiles:10, hash, minigrid or MODULE:FUNCTION:COUNT"
    )


def _bins(bins: int | Sequence[int], dimensions: int) -> list[int]:
    numbers = [bins] * dimensions if isinstance(bins, int) else [int(number) for number in bins]
    if len(numbers) != dimensions or min(numbers) < 1:
        raise CellError(
            f"bins is {bins}, expected a positive number of bins for each of the {dimensions} dimensions of the "
            "observation"
        )
    return numbers
