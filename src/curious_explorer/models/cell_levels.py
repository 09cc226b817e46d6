"""Coarser ways to tell states apart, found from what the states are made of.

A state of many parts (where the agent is, what it carries, which doors are open, where each thing lies) is new whenever
one part is, so that a key that can be dropped anywhere makes every place new again a hundred times over. Three levels,
from the coarsest:

    0. the parts that change often, and those that have few values;
    1. the same, and how many of the other parts differ from what they were when exploration began;
    2. everything: the states themselves.

A part is left out of level 0 when it has more than `FEW_VALUES` values and changes in less than `OFTEN` of the steps:
that is a thing which lies about. Which parts these are is looked up again whenever the number of states has doubled.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from curious_explorer.arrays import Indices

FEW_VALUES = 6
OFTEN = 0.05
FIRST_LOOK = 64

Parts = Mapping[str, Hashable]


class CellLevels:
    """Keys of states on the coarser levels; states are added in the order of their indices."""

    def __init__(self) -> None:
        self._parts: list[Parts | None] = []
        self._values: dict[str, set[Hashable]] = {}
        self._changes: dict[str, int] = {}
        self._steps = 0
        self._next_look = FIRST_LOOK
        self.scattered: frozenset[str] = frozenset()
        """The parts that are left out of level 0."""
        self._numbers: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})

    def meet(self, parts: Parts | None) -> None:
        """A state was met for the first time, made of these parts."""
        self._parts.append(parts)
        if parts is not None:
            for name, value in parts.items():
                self._values.setdefault(name, set()).add(value)

    def moved(self, before: int, after: int) -> None:
        """A step led from one state to another; called for new transitions only, which are what matters here."""
        self._steps += 1
        first, second = self._parts[before], self._parts[after]
        if first is None or second is None or before == after:
            return
        for name in first.keys() | second.keys():
            if first.get(name) != second.get(name):
                self._changes[name] = self._changes.get(name, 0) + 1

    def look(self) -> bool:
        """Look again which parts lie about, if it is time; whether keys have changed."""
        if len(self._parts) < self._next_look:
            return False
        self._next_look = 2 * len(self._parts)
        scattered = frozenset(
            name
            for name, values in self._values.items()
            if len(values) > FEW_VALUES and self._changes.get(name, 0) < OFTEN * self._steps
        )
        changed = scattered != self.scattered
        if changed:
            self.scattered = scattered
            self._numbers = ({}, {})
        return changed

    def keys(self, index: int) -> tuple[int, int]:
        """The keys of a state on levels 0 and 1, numbered as they come."""
        parts = self._parts[index] or {}
        kept = frozenset((name, value) for name, value in parts.items() if name not in self.scattered)
        first = self._parts[0] or {}
        moved = sum(parts.get(name) != first.get(name) for name in self.scattered)
        coarse, finer = self._numbers
        return coarse.setdefault(kept, len(coarse)), finer.setdefault((kept, moved), len(finer))

    def all_keys(self) -> Indices:
        """The keys of all states so far, shape (2, M)."""
        return np.array([self.keys(index) for index in range(len(self._parts))], dtype=np.int32).T
