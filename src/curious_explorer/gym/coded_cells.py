"""Cells that are discovered as they are met, by a code that is quick to compare, and cells made of several others.

- `SymbolCells`: one cell for each distinct observation, or for each distinct content of some of its parts;
- `NumberCells`: a grid of bins of given widths, without bounds: bins are discovered as they are met;
- `JointCells`: a cell for each combination of the cells of several maps, for observations of several kinds.
"""

from __future__ import annotations

import copy
import hashlib
import math
import operator
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from curious_explorer.errors import CellError, ObservationError
from curious_explorer.gym.cells import UNKNOWN, Cells, Env
from curious_explorer.gym.discovered_cells import DiscoveredCells
from curious_explorer.gym.observation_reader import (
    UNREADABLE,
    Numbers,
    Read,
    check_reads,
    code_of,
    unreadable,
)

ROOM = 1 << 14
"""How many cells there may be unless said otherwise; see `Cells.with_room`."""
MOST_PARTS = 40
"""Observations of more symbols than this do not name their parts: each state would hold a dict of them."""


class CodedCells(DiscoveredCells):
    """Discovered cells whose codes are looked up before their keys are made, which takes longer."""

    def __init__(self, max_cells: int) -> None:
        super().__init__(max_cells)
        self._of_code: dict[Hashable, int] = {}

    @abstractmethod
    def code(self, observation: Any) -> Hashable:
        """Equal for all observations of one cell, and different for others."""

    def text(self, code: Hashable) -> str:
        """A code as a key."""
        return hashlib.blake2b(repr(code).encode(), digest_size=12).hexdigest()

    def key(self, observation: Any, env: Env | None) -> str:
        """The code as text."""
        return self.text(self.code(observation))

    def index(self, observation: Any, env: Env | None) -> int:
        """The number of the observation's cell; the next free one if it was never met."""
        code = self.code(observation)
        number = self._of_code.get(code)
        if number is None:
            number = self.number(self.text(code))
            if number != UNKNOWN:
                self._of_code[code] = number
        return number

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """A copy with these cells discovered."""
        copied = super().recalling(discovered, growing=growing)
        assert isinstance(copied, CodedCells)
        copied._of_code = {}
        return copied


class SymbolCells(CodedCells):
    """One cell for each distinct content of some parts of an observation; no rounding.

    Args:
        reads: which parts, and of these which elements; by default the whole observation.
        max_cells: how many cells there may be.
    """

    def __init__(self, reads: Sequence[Read] = (Read(),), *, max_cells: int = ROOM) -> None:
        super().__init__(max_cells)
        self.reads = tuple(reads)
        self._whole = self.reads == (Read(),)

    def code(self, observation: Any) -> Hashable:
        """The content of the parts."""
        if self._whole:
            return code_of(observation)
        try:
            return tuple(
                [code_of(read.of(observation) if read.kept is None else read.array(observation)) for read in self.reads]
            )
        except UNREADABLE as error:
            raise unreadable(observation, error) from None

    def parts(self, observation: Any, env: Env | None) -> Mapping[str, Hashable] | None:
        """Each symbol by its place, unless there are very many."""
        parts: dict[str, Hashable] = {}
        for read in self.reads:
            value = read.of(observation)
            if isinstance(value, (int, np.integer)):
                parts[read.name] = int(value)
            elif isinstance(value, np.ndarray) and len(parts) + value.size <= MOST_PARTS:
                values = value.ravel().tolist()
                for place in range(len(values)) if read.kept is None else read.kept:
                    parts[f"{read.name}[{place}]"] = values[place]
            else:
                return None
        return parts if len(parts) > 1 else None

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space without the parts that are read."""
        if not self._whole:
            check_reads(self.reads, space, "SymbolCells")

    def description(self) -> dict[str, Any]:
        """As plain data."""
        reads = [read.description() for read in self.reads]
        return {"kind": "symbols", "reads": reads, "max_cells": self.count}

    def describe(self) -> str:
        """In words."""
        names = "observation" if self._whole else "content of " + _listed(self.reads)
        return f"one cell for each distinct {names}"


class NumbersOf(Protocol):
    """What makes numbers of an observation."""

    reads: tuple[Read, ...]

    def __call__(self, observation: Any) -> list[float]:
        """The numbers of an observation."""


class NumberCells(CodedCells):
    """A grid without bounds: a cell for every combination of bins that is met.

    Args:
        widths: of the bins of each number.
        reads: which numbers; by default the whole observation.
        max_cells: how many cells there may be.
    """

    def __init__(self, widths: Sequence[float], reads: Sequence[Read] = (Read(),), *, max_cells: int = ROOM) -> None:
        super().__init__(max_cells)
        self.widths = [float(width) for width in widths]
        if not self.widths or not all(0.0 < width < math.inf for width in self.widths):
            raise CellError(f"widths are {list(widths)}, expected a positive number for each number of the observation")
        self._numbers: NumbersOf = Numbers(reads)
        self._per_width = [1.0 / width for width in self.widths]

    @property
    def reads(self) -> tuple[Read, ...]:
        """Which numbers."""
        return self._numbers.reads

    def code(self, observation: Any) -> Hashable:
        """The bin of each number."""
        values = self._numbers(observation)
        try:
            code = tuple(map(math.floor, map(operator.mul, values, self._per_width)))
        except (ValueError, OverflowError):
            code = self._code_without_end(values)
        if len(values) != len(self.widths):
            raise ObservationError(
                f"the observation has {len(values)} numbers, but the cells were made for {len(self.widths)}; give a "
                "width for each of them"
            )
        return code

    def _code_without_end(self, values: list[float]) -> tuple[int, ...]:
        """The same where numbers are infinite: each end of the line is a bin of its own."""
        if any(map(math.isnan, values)):
            raise ObservationError(
                f"the observation is {values}, which has NaN in it; repair the environment, or map NaN to a number in "
                "a wrapper"
            )
        scaled = [value * per for value, per in zip(values, self._per_width, strict=False)]
        ends = (int(math.copysign(1 << 62, value)) for value in scaled)
        return tuple(math.floor(v) if math.isfinite(v) else end for v, end in zip(scaled, ends, strict=True))

    def text(self, code: Hashable) -> str:
        """The bins, which can be read back."""
        assert isinstance(code, tuple)
        return ",".join(map(str, code))

    def coarser(self) -> tuple[Cells, list[str] | None] | None:
        """Bins of twice the width along the number of which most were met; two old ones are one of these."""
        codes = [tuple(map(int, key.split(","))) for key in self.discovered()]
        met = [len(set(along)) for along in zip(*codes, strict=True)] or [1]
        widest = met.index(max(met))
        if met[widest] < 3:
            return None
        widths = [2.0 * width if place == widest else width for place, width in enumerate(self.widths)]
        halved = [tuple(c // 2 if place == widest else c for place, c in enumerate(code)) for code in codes]
        return self.with_widths(widths), [self.text(code) for code in halved]

    def finer(self) -> Cells | None:
        """Bins of two thirds of the width."""
        return self.with_widths([width / 1.5 for width in self.widths])

    def with_widths(self, widths: Sequence[float]) -> NumberCells:
        """The same with other bins."""
        return NumberCells(widths, self.reads, max_cells=self.count)

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space without the numbers that are read."""
        found = 0
        for read, part in zip(self.reads, check_reads(self.reads, space, "NumberCells"), strict=True):
            found += math.prod(part.space.shape or ()) if read.kept is None else len(read.kept)
        if found != len(self.widths):
            raise CellError(
                f"NumberCells was made for {len(self.widths)} numbers, but {found} are read of observations in "
                f"{space}; give a width for each of them"
            )

    def description(self) -> dict[str, Any]:
        """As plain data."""
        reads = [read.description() for read in self.reads]
        return {"kind": "numbers", "widths": self.widths, "reads": reads, "max_cells": self.count}

    def describe(self) -> str:
        """In words."""
        widths = ", ".join(f"{width:.3g}" for width in self.widths)
        whole = "the observation" if self.reads == (Read(),) else _listed(self.reads)
        bins = "bins" if len(self.widths) == 1 else f"a grid over {len(self.widths)} numbers, bins"
        return f"{bins} of width {widths} along {whole}"


class JointCells(DiscoveredCells):
    """A cell for each combination of the cells of several maps, of which each looks at something else.

    Args:
        members: the maps, by name.
        max_cells: how many combinations there may be.
    """

    def __init__(self, members: Mapping[str, Cells], *, max_cells: int = ROOM) -> None:
        super().__init__(max_cells)
        if not members:
            raise CellError("JointCells was given no members; expected at least one map from observations to cells")
        self.members = dict(members)
        for name, member in self.members.items():
            if member.function is not None:
                raise CellError(f"the member {name} is made by a function, which JointCells cannot store")
        self._listed = list(self.members.values())
        self._of_code: dict[tuple[int, ...], int] = {}

    def index(self, observation: Any, env: Env | None) -> int:
        """The number of the combination; the next free one if it was never met."""
        code = tuple([member.index(observation, env) for member in self._listed])
        number = self._of_code.get(code)
        if number is None:
            if UNKNOWN in code:
                return UNKNOWN
            number = self.number(self.key(observation, env))
            if number != UNKNOWN:
                self._of_code[code] = number
        return number

    def key(self, observation: Any, env: Env | None) -> str:
        """The keys of the members, so that what they have discovered can be told from it."""
        return "|".join(
            member.key(observation, env) if isinstance(member, DiscoveredCells) else str(member.index(observation, env))
            for member in self._listed
        )

    def parts(self, observation: Any, env: Env | None) -> Mapping[str, Hashable] | None:
        """The parts of the members that know theirs, and the cells of the others."""
        parts: dict[str, Hashable] = {}
        for name, member in self.members.items():
            own = member.parts(observation, env)
            parts |= {name: member.index(observation, env)} if own is None else own
        return parts if len(parts) > 1 else None

    def recalling(self, discovered: Sequence[str], *, growing: bool) -> Cells:
        """A copy with these combinations discovered, and what they are made of."""
        copied = super().recalling(discovered, growing=growing)
        assert isinstance(copied, JointCells)
        columns = list(zip(*(key.split("|") for key in discovered), strict=True)) or [()] * len(self.members)
        if len(columns) != len(self.members):
            raise CellError(f"discovered combinations have {len(columns)} members, expected {len(self.members)}")
        copied.members = {
            name: member.recalling(list(dict.fromkeys(column)), growing=growing)
            if isinstance(member, DiscoveredCells)
            else copy.copy(member)
            for (name, member), column in zip(self.members.items(), columns, strict=True)
        }
        copied._listed, copied._of_code = list(copied.members.values()), {}
        return copied

    def coarser(self) -> tuple[Cells, list[str] | None] | None:
        """The member of which most cells were met made coarser; the next one where that cannot be."""
        keys = [key.split("|") for key in self.discovered()]
        for name in sorted(self.members, key=lambda name: -len(self.members[name].discovered())):
            member = self.members[name]
            made = member.coarser()
            if made is None:
                continue
            cells = JointCells({**self.members, name: made[0]}, max_cells=self.count)
            if made[1] is None:
                return cells, None
            now, place = dict(zip(member.discovered(), made[1], strict=True)), list(self.members).index(name)
            return cells, ["|".join([*key[:place], now[key[place]], *key[place + 1 :]]) for key in keys]
        return None

    def finer(self) -> Cells | None:
        """All members made finer that can be."""
        finer = {name: member.finer() for name, member in self.members.items()}
        if not any(finer.values()):
            return None
        members = {name: finer[name] or member for name, member in self.members.items()}
        return JointCells(members, max_cells=self.count)

    def let_room_grow(self) -> None:
        """From now on there may be more combinations, and more cells of each member."""
        super().let_room_grow()
        for member in self._listed:
            member.let_room_grow()

    def check_space(self, space: spaces.Space[Any]) -> None:
        """Refuse a space that one of the members refuses."""
        for member in self._listed:
            member.check_space(space)

    def description(self) -> dict[str, Any]:
        """As plain data."""
        members = {name: member.description() for name, member in self.members.items()}
        return {"kind": "joint", "members": members, "max_cells": self.count}

    def describe(self) -> str:
        """In words."""
        return "combinations of " + "; and of ".join(member.describe() for member in self._listed)


def _listed(reads: Sequence[Read]) -> str:
    return ", ".join(_named(read) if read.kept is None else f"{_named(read)}[{_places(read.kept)}]" for read in reads)


def _named(read: Read) -> str:
    return f"part {read.name}" if read.path and isinstance(read.path[0], int) else read.name


def _places(places: Sequence[int]) -> str:
    shown = [str(place) for place in places[:6]]
    return ", ".join([*shown, "..."] if len(places) > 6 else shown)
