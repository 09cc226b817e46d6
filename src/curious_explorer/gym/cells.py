"""Cells: maps from the observations of an environment to finitely many numbers.

Algorithm 2 counts visits of states, so an environment with continuous or structured observations needs a map from
observations to finitely many cells. Each map can be described as plain data, stored with a reset model and made again
from its description (`cells_from_description`).

- `DiscreteCells`: a `Discrete` observation is its own cell;
- `GridCells`: a box cut into equal bins, with given bounds;
- `QuantileCells`: a box cut at the quantiles of the observations of a warm-up, for spaces without bounds;
- `HashedCells`: one cell for each distinct observation, discovered as they are met;
- `MiniGridCells`: the symbolic state of a MiniGrid, discovered likewise;
- `FunctionCells`: the user's function;
- `LayoutCells`: any of these, apart by layout.

Discovered cells are numbered in the order in which they are met, up to a number fixed beforehand. A cell that was never
met has no number yet, but there is room for it: to the explorer it is a state that was never visited, so that meeting
it for the first time is rewarded like any other poorly visited state.
"""

from __future__ import annotations

import copy
import hashlib
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
_MOVABLE = ("key", "ball", "box")  # what a MiniGrid agent can carry


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
        return {"kind": "function", "count": self.count, "function": _name_of(self._function)}

    def describe(self) -> str:
        """In words."""
        return f"{self.count:,} cells by the function {_name_of(self._function)}"


class DiscoveredCells(Cells):
    """Cells that are discovered as they are met: a key for each observation, and a number for each key."""

    def __init__(self, max_cells: int) -> None:
        self.count = check_count(max_cells, "max_cells", least=1)
        self._number: dict[str, int] = {}
        self._growing, self._room_grows = True, False

    def let_room_grow(self) -> None:
        """From now on there may be more cells than `count`, which then grows."""
        self._room_grows = True

    @abstractmethod
    def key(self, observation: Any, env: Env | None) -> str:
        """A string that is the same for all observations of one cell, and different for others."""

    def index(self, observation: Any, env: Env | None) -> int:
        """The number of the observation's cell; the next free one if it was never met."""
        return self.number(self.key(observation, env))

    def number(self, key: str) -> int:
        """The number of the cell with this key; the next free one if it was never met."""
        number = self._number.get(key)
        if number is not None:
            return number
        if not self._growing:
            return UNKNOWN
        if len(self._number) == self.count and self._room_grows:
            self.count *= 2
        if len(self._number) == self.count:
            raise CellError(
                f"there are more than {self.count:,} cells; give {type(self).__name__} a larger max_cells "
                "(--max-cells), or coarser cells"
            )
        self._number[key] = len(self._number)
        return len(self._number) - 1

    def discovered(self) -> list[str]:
        """The keys met so far, in order."""
        return list(self._number)

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """A copy with these cells discovered."""
        if len(discovered) > self.count or len(set(discovered)) != len(discovered):
            raise CellError(
                f"{len(discovered):,} cells were discovered, expected at most {self.count:,}, all different"
            )
        copied = copy.copy(self)
        copied._number = {key: number for number, key in enumerate(discovered)}
        copied._growing = growing
        return copied


class HashedCells(DiscoveredCells):
    """Each distinct observation is a cell, after rounding or by the user's key function.

    Args:
        max_cells: how many there may be.
        width: numbers are rounded to multiples of this, one for all dimensions or one for each; None leaves them.
        key: from an observation to anything made of numbers and strings; observations with equal keys share a cell.
    """

    def __init__(
        self,
        max_cells: int = 10_000,
        *,
        width: float | Sequence[float] | None = None,
        key: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(max_cells)
        if key is not None and width is not None:
            raise CellError("HashedCells was given both width and key; the key function can round by itself")
        self._width = None if width is None else np.array(width, dtype=np.float64)
        if self._width is not None and not (np.isfinite(self._width) & (self._width > 0.0)).all():
            raise CellError(f"width is {width}, expected positive numbers")
        self._key = key

    @property
    def function(self) -> Callable[[Any], Any] | None:
        """The user's function."""
        return self._key

    def key(self, observation: Any, env: Env | None) -> str:
        """A digest of the rounded observation."""
        if self._key is not None:
            return _digest(_content(self._key(observation)))
        if isinstance(observation, dict):
            raise ObservationError(
                "the observation is a dict; give HashedCells(key=function) to say what of it tells cells apart"
            )
        array = np.asarray(observation)
        if array.dtype.kind not in "fiub":
            raise ObservationError(
                f"the observation is {observation!r}, expected numbers; give HashedCells(key=function) to say what of "
                "it tells cells apart"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ObservationError(f"the observation is {array}, expected finite numbers; repair the environment")
        if self._width is not None:
            array = np.floor(array / self._width)
        return _digest(_content(array))

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a width for each dimension if the dimensions are others."""
        if self._width is not None and self._width.ndim > 0 and space.shape != self._width.shape:
            raise CellError(
                f"width is {self._width.tolist()}, but observations in {space} have shape {space.shape}; give one "
                "width for all numbers, or one for each"
            )

    def description(self) -> dict[str, Any]:
        """As plain data."""
        width = None if self._width is None else self._width.tolist()
        key = None if self._key is None else _name_of(self._key)
        return {"kind": "hashed", "max_cells": self.count, "width": width, "key": key}

    def describe(self) -> str:
        """In words."""
        if self._key is not None:
            return f"one cell for each distinct result of the function {_name_of(self._key)}"
        rounded = "" if self._width is None else f", rounded to multiples of {self._width.tolist()}"
        return f"one cell for each distinct observation{rounded}"


class MiniGridCells(DiscoveredCells):
    """The symbolic state of a MiniGrid: where the agent is and looks, what it carries, and what it has changed.

    It looks at the environment itself, since an observation shows only what the agent sees. Walls are left out, so it
    suits a layout that is the same in every episode (``minigrid.wrappers.ReseedWrapper``), or tells rooms apart only by
    what is in them.

    Args:
        max_cells: how many there may be.
        things: whether it matters where movable things lie. That is the whole state, but every place where a key was
            dropped makes all the others new again; left out, as by default, exploration is drawn to doors instead.
    """

    def __init__(self, max_cells: int = 5_000, *, things: bool = False) -> None:
        super().__init__(max_cells)
        self._things = bool(things)

    def key(self, observation: Any, env: Env | None) -> str:
        """The symbolic state as text."""
        grid = self._grid(env)
        column, row = (int(place) for place in grid.agent_pos)
        carried = "" if grid.carrying is None else f"{grid.carrying.type}/{grid.carrying.color}"
        things = [
            f"{place}{thing.type}{thing.color}{int(getattr(thing, 'is_open', 0))}{int(getattr(thing, 'is_locked', 0))}"
            for place, thing in enumerate(grid.grid.grid)
            if thing is not None and (thing.type == "door" or (self._things and thing.type in _MOVABLE))
        ]
        return f"{column},{row},{int(grid.agent_dir)};{carried};{' '.join(things)}"

    def parts(self, observation: Any, env: Env | None) -> Mapping[str, Hashable] | None:
        """Where the agent is and looks, what it carries, how each door is and where each movable thing lies."""
        grid = self._grid(env)
        parts: dict[str, Hashable] = {
            "column": int(grid.agent_pos[0]),
            "row": int(grid.agent_pos[1]),
            "direction": int(grid.agent_dir),
            "carried": None if grid.carrying is None else f"{grid.carrying.type}/{grid.carrying.color}",
        }
        numbers: dict[str, int] = {}
        for place, thing in enumerate(grid.grid.grid):
            if thing is None:
                continue
            if thing.type == "door":
                parts[f"door {place}"] = 2 * int(thing.is_open) + int(thing.is_locked)
            elif self._things and thing.type in _MOVABLE:
                name = f"{thing.color} {thing.type}"
                numbers[name] = numbers.get(name, 0) + 1
                parts[f"{name} {numbers[name]}"] = place
        return parts

    def _grid(self, env: Env | None) -> Any:
        grid: Any = None if env is None else env.unwrapped
        if grid is None or not hasattr(grid, "agent_pos"):
            raise CellError(f"MiniGridCells needs a MiniGrid environment in this process, got {grid}")
        return grid

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "minigrid", "max_cells": self.count, "things": self._things}

    def describe(self) -> str:
        """In words."""
        where = ", and where each movable thing lies" if self._things else ""
        return f"the symbolic state of the MiniGrid: where the agent is and looks, what it carries, the doors{where}"


class LayoutCells(DiscoveredCells):
    """The cells of an environment apart by layout: the same place in two layouts is two cells.

    Args:
        cells: the cells within one layout; cells of a map that discovers none are discovered here.
        layouts: how many layouts there are.
    """

    def __init__(self, cells: Cells, layouts: int) -> None:
        self.cells, self._layouts = cells, check_count(layouts, "layouts", least=1)
        super().__init__(cells.count if isinstance(cells, DiscoveredCells) else cells.count * layouts)
        self._layout: int | None = None

    def enter(self, layout: int) -> None:
        """From now on cells are of this layout."""
        self._layout = layout

    def key(self, observation: Any, env: Env | None) -> str:
        """The layout's seed, and what tells the cell from others within the layout."""
        cells = self.cells
        within = cells.key if isinstance(cells, DiscoveredCells) else cells.index
        return f"{self._layout}|{within(observation, env)}"

    def parts(self, observation: Any, env: Env | None) -> Mapping[str, Hashable] | None:
        """What a cell is made of, the layout among it."""
        parts = self.cells.parts(observation, env)
        return None if parts is None else {**parts, "layout": self._layout}

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """A copy with these cells discovered, and what they are within a layout."""
        copied = super().recalling(discovered, growing=growing)
        assert isinstance(copied, LayoutCells)
        if isinstance(self.cells, DiscoveredCells):
            within = dict.fromkeys(key.partition("|")[2] for key in discovered)
            copied.cells = self.cells.recalling(list(within), growing=growing)
        return copied

    @property
    def function(self) -> Callable[[Any], Any] | None:
        """The user's function."""
        return self.cells.function

    def describe(self) -> str:
        """In words."""
        return f"{self.cells.describe()}, apart for each of {self._layouts:,} layouts"

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse what the cells within a layout refuse."""
        self.cells.check_space(space)

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "layouts", "cells": self.cells.description(), "layouts": self._layouts}


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


def _name_of(function: Callable[[Any], Any]) -> str:
    if isinstance(function, MissingFunction):
        return function.name
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', '?')}"


def _content(value: Any) -> bytes:
    """A value as bytes; equal numbers have equal bytes, whatever their type."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        numbers = value.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        return repr(value.shape).encode() + numbers.tobytes()
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(_content(item) for item in value) + b")"
    return repr(value.item() if isinstance(value, np.generic) else value).encode()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()
