"""Cells: maps from the observations of an environment to finitely many numbers.

Algorithm 2 counts visits of states, so an environment with continuous or structured observations needs a map from
observations to finitely many cells. Each map can be described as plain data, stored with a reset model and made again
from its description (`cells_from_description`).

- `DiscreteCells`: a `Discrete` observation is its own cell;
- `GridCells`: a box cut into equal bins, with given bounds;
- `QuantileCells`: a box cut at the quantiles of the observations of a warm-up, for spaces without bounds;
- `FunctionCells`: the user's function.

Those that are discovered as they are met are in `discovered_cells`.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from curious_explorer.errors import CellError, ObservationError
from curious_explorer.validation import as_list, as_numbers, check_count

Env = gymnasium.Env[Any, Any]
MOST_BINS = 1_000_000
"""Along a dimension: each has its edge in memory."""
UNKNOWN = -1
"""The cell of an observation that was never met, where no cell may be added."""
FEWEST_BINS, MOST_GRID = 4, 1 << 20
"""A grid is not made coarser where it has fewer bins along each dimension, nor finer than so many cells."""


class Cells(ABC):
    """A map from observations to ``count`` cells."""

    count: int
    """How many cells there are, or may be."""

    @abstractmethod
    def index(self, observation: Any, env: Env | None) -> int:
        """The cell of an observation; ``env`` made it, for maps that need more than the observation."""

    def parts(self, observation: Any, env: Env | None) -> Mapping[str, Hashable] | None:
        """What an observation's cell is made of, by name, where this map knows; see `World.parts`."""
        return None

    def enter(self, layout: int) -> None:
        """An episode began in the layout of this seed, for maps that keep layouts apart."""
        return

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse an observation space that this map cannot be meant for."""
        return

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """The map as plain data, its ``kind`` included; discovered cells are not part of it."""

    def describe(self) -> str:
        """The map in words, as part of a sentence."""
        return f"{self.count:,} cells ({self.description()['kind']})"

    def coarser(self) -> tuple[Cells, list[str] | None] | None:
        """The next coarser cells, if there are any, and the key in them of each discovered cell, if that is known."""
        return None

    def finer(self) -> Cells | None:
        """The next finer cells; None: there are none."""
        return None

    def let_room_grow(self) -> None:
        """From now on there may be more cells than `count`, which then grows."""
        return

    @property
    def function(self) -> Callable[[Any], Any] | None:
        """The user's function in this map, or None; it cannot be stored."""
        return None

    def discovered(self) -> list[str]:
        """The keys of the cells met so far, in order; empty for maps that discover none."""
        return []

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """A copy with these cells discovered; unless it is growing, all others are `UNKNOWN`."""
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

    def describe(self) -> str:
        """In words."""
        return f"each of the {self.count:,} observations is its own"


class _BoxCells(Cells):
    """A box cut at inner edges along each dimension; observations outside the box belong to the outermost cells."""

    def __init__(self) -> None:
        self._edges: list[list[float]] | None = None  # the inner edges along each dimension, once they are known
        self._strides: list[int] = []
        self.count = 0

    def _set_edges(self, edges: Sequence[ArrayLike]) -> None:
        arrays = [np.array(along, dtype=np.float64).ravel() for along in edges]
        for dimension, array in enumerate(arrays):
            if not np.isfinite(array).all() or (np.diff(array) < 0).any():
                raise CellError(
                    f"the edges of dimension {dimension} are {array}, expected finite numbers that increase"
                )
        self._edges = [array.tolist() for array in arrays]
        bins = [len(array) + 1 for array in arrays]
        self._strides = [math.prod(bins[dimension + 1 :]) for dimension in range(len(bins))]
        self.count = math.prod(bins)

    def index(self, observation: Any, env: Env | None) -> int:
        """The cell in row-major order."""
        try:
            values = observation.tolist()
            total = sum(values)  # NaN if one of them is
            if total == total and len(values) == len(self._strides):
                return sum(map(operator.mul, map(bisect_right, self._edges, values), self._strides))  # type: ignore[arg-type]
        except (AttributeError, TypeError):  # not the common case of a flat array
            pass
        return self._index_checked(observation)

    def _index_checked(self, observation: Any) -> int:
        """The same for any array of numbers; raises what is wrong with anything else."""
        if self._edges is None:
            raise CellError("the quantiles are not known yet; GymWorld(env, cells=...) finds them in a warm-up")
        try:
            values = np.asarray(observation, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise ObservationError(
                f"the observation is {observation!r}, expected an array of {len(self._edges)} numbers; for Dict or "
                "Tuple observations give cells=FunctionCells(function, count)"
            ) from None
        if len(values) != len(self._edges):
            raise ObservationError(
                f"the observation has {len(values)} numbers, but the cells were made for {len(self._edges)}; give bins "
                "and bounds for each number, or cells=FunctionCells(function, count) to use some of them"
            )
        if np.isnan(values).any():
            raise ObservationError(
                f"the observation is {values.tolist()}, which has NaN in it; repair the environment, or map NaN to a "
                "number in a wrapper"
            )
        places = [bisect_right(edges, value) for edges, value in zip(self._edges, values.tolist(), strict=True)]
        return sum(place * stride for place, stride in zip(places, self._strides, strict=True))

    def describe(self) -> str:
        """In words."""
        bins = [] if self._edges is None else [str(len(edges) + 1) for edges in self._edges]
        kind = "quantiles of a warm-up" if isinstance(self, QuantileCells) else "equal bins"
        return f"a grid of {' x '.join(bins) or 'as yet unknown'} cells, {kind}"

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space that is no box, or a box of another dimension."""
        if isinstance(space, (spaces.Dict, spaces.Tuple)):
            raise CellError(
                f"{type(self).__name__} cuts boxes of numbers, but observations are in {space}; give "
                "cells=FunctionCells(function, count) or HashedCells(key=function)"
            )
        numbers = 1 if not space.shape else math.prod(space.shape)
        if self._edges is not None and numbers != len(self._edges):
            raise CellError(
                f"{type(self).__name__} was made for {len(self._edges)} numbers, but an observation in {space} has "
                f"{numbers}; give bins and bounds for each of them, or cells=FunctionCells(function, count) to use some"
            )


class GridCells(_BoxCells):
    """A box cut into equal bins.

    Args:
        bins: how many along each dimension, or one number for all.
        low: where the first bin begins, along each dimension.
        high: where the last one ends. Observations beyond these bounds belong to the outermost bins.
    """

    def __init__(self, bins: int | Sequence[int], low: ArrayLike, high: ArrayLike) -> None:
        super().__init__()
        lows, highs = (as_numbers(bound, name).ravel() for bound, name in ((low, "low"), (high, "high")))
        if lows.shape != highs.shape or not np.isfinite([lows, highs]).all() or not (lows < highs).all():
            raise CellError(
                f"the grid goes from {lows.tolist()} to {highs.tolist()}, expected finite bounds with low < high in "
                "every dimension; give GridCells(bins, low, high) the range that matters, or use QuantileCells"
            )
        self._bins = _bins(bins, len(lows))
        self._low, self._high = lows, highs
        pieces = zip(lows, highs, self._bins, strict=True)
        self._set_edges([np.linspace(first, last, number + 1)[1:-1] for first, last, number in pieces])

    def coarser(self) -> tuple[Cells, list[str] | None] | None:
        """Half as many bins along the dimension that has the most."""
        most = max(range(len(self._bins)), key=self._bins.__getitem__)
        if self._bins[most] < FEWEST_BINS:
            return None
        bins = [max(1, bins // 2) if place == most else bins for place, bins in enumerate(self._bins)]
        return GridCells(bins, self._low, self._high), None

    def finer(self) -> Cells | None:
        """Half as many bins again along each dimension."""
        bins = [bins + max(1, bins // 2) for bins in self._bins]
        return None if math.prod(bins) > MOST_GRID else GridCells(bins, self._low, self._high)

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "grid", "bins": self._bins, "low": self._low.tolist(), "high": self._high.tolist()}


class QuantileCells(_BoxCells):
    """A box cut so that the observations of a warm-up fall into each bin of a dimension equally often.

    For spaces without bounds. `GymWorld` takes the warm-up's steps (they are counted) and then fixes the edges: a
    table learned on cells that move would mean nothing.

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
            self._set_edges(edges)

    @property
    def fitted(self) -> bool:
        """Whether the edges are known."""
        return self._edges is not None

    def fitted_to(self, observations: Sequence[Any]) -> QuantileCells:
        """A copy whose edges are the quantiles of these observations, shape (N, D)."""
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
        return {"kind": "quantiles", "bins": bins, "warm_up": self.warm_up, "edges": self._edges}


class FunctionCells(Cells):
    """Cells given by the user's function.

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
        """What the function returns, checked."""
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
        """As plain data."""
        return {"kind": "function", "count": self.count, "function": name_of(self._function)}

    def describe(self) -> str:
        """In words."""
        return f"{self.count:,} cells by the function {name_of(self._function)}"


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


class MissingFunction:
    """In the place of the user's function, which cannot be stored and was not given again."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, observation: Any) -> Any:
        """Refuse to map an observation."""
        raise self.error()

    def error(self) -> CellError:
        """Which function is missing, and how to give it."""
        return CellError(
            f"the cells were made by the function {self.name}, which cannot be stored; give it again: "
            f"ResetModel.load(folder, cell_function=...), or --cell-function {self.name} on the command line"
        )


def _bins(bins: int | Sequence[int], dimensions: int) -> list[int]:
    numbers = [bins] * dimensions if isinstance(bins, int) else as_list(bins, "bins", "whole numbers")
    numbers = [check_count(number, "a number of bins") for number in numbers]
    if max(numbers, default=1) > MOST_BINS:
        raise CellError(f"bins is {bins}, expected at most {MOST_BINS:,} along a dimension")
    if len(numbers) != dimensions or min(numbers) < 1:
        raise CellError(
            f"bins is {bins}, expected a positive number of bins for each of the {dimensions} dimensions of the "
            "observation"
        )
    return numbers


def name_of(function: Callable[[Any], Any]) -> str:
    """A function as ``module:name``, also where it is missing."""
    if isinstance(function, MissingFunction):
        return function.name
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', '?')}"
