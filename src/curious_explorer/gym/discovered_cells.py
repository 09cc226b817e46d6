"""Cells that are discovered as they are met: each new key that an observation has is the next cell.

- `HashedCells`: one cell for each distinct observation;
- `MiniGridCells`: the symbolic state of a MiniGrid;
- `LayoutCells`: cells of any map, apart by layout.

They are numbered in the order in which they are met, up to a number fixed beforehand. A cell that was never met has no
number yet, but there is room for it: to the explorer it is a state that was never visited, so that meeting it for the
first time is rewarded like any other poorly visited state.
"""

from __future__ import annotations

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.errors import CellError, ObservationError
from curious_explorer.gym.cells import UNKNOWN, Cells, Env, name_of
from curious_explorer.validation import check_count

_MOVABLE = ("key", "ball", "box")  # what a MiniGrid agent can carry


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
        key = None if self._key is None else name_of(self._key)
        return {"kind": "hashed", "max_cells": self.count, "width": width, "key": key}

    def describe(self) -> str:
        """In words."""
        if self._key is not None:
            return f"one cell for each distinct result of the function {name_of(self._key)}"
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
        self._grid_seen: list[Any] = []
        self._places: list[int] = []

    def key(self, observation: Any, env: Env | None) -> str:
        """The symbolic state as text."""
        grid = self._grid(env)
        column, row = (int(place) for place in grid.agent_pos)
        carried = "" if grid.carrying is None else f"{grid.carrying.type}/{grid.carrying.color}"
        cells = grid.grid.grid
        if cells != self._grid_seen:  # which is seldom: looking through all of them takes longer than a step
            self._grid_seen = list(cells)
            self._places = [place for place, thing in enumerate(cells) if thing is not None and self._matters(thing)]
        things = [
            f"{place}{thing.type}{thing.color}{int(getattr(thing, 'is_open', 0))}{int(getattr(thing, 'is_locked', 0))}"
            for place, thing in ((place, cells[place]) for place in self._places)
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

    def _matters(self, thing: Any) -> bool:
        """Whether it tells cells apart where a thing lies, and how it is."""
        return thing.type == "door" or (self._things and thing.type in _MOVABLE)

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
