"""Coarser ways to tell states apart, found from what the states are made of.

A state of many parts (where the agent is, what it carries, which doors are open, where each thing lies) is new whenever
one part is, so that a key that can be dropped anywhere makes every place new again a hundred times over. Four levels,
from the coarsest:

    0. the parts that change often: where the agent is and looks;
    1. all parts that do not jump: what it carries and which doors are open, too;
    2. the same, and how many of the parts that jump differ from what they were when exploration began;
    3. everything: the states themselves.

A part *jumps* when one and the same value of it was followed by more than `MOST_SUCCESSORS` others: a key that was
carried may lie anywhere next, while places follow on places, and a door is open or shut. A part changes *often* when
more than `OFTEN` of all pairs change it. Which parts these are is looked up again whenever there are a quarter more
states.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from curious_explorer.arrays import Indices

MOST_SUCCESSORS = 4
OFTEN = 0.02
FIRST_LOOK, GROWTH = 64, 1.25
COARSER = 3
"""How many levels there are above the states themselves."""

Parts = Mapping[str, Hashable]


class CellLevels:
    """Keys of states on the coarser levels; states are added in the order of their indices."""

    def __init__(self) -> None:
        self._parts: list[Parts] = []
        self._successors: dict[tuple[str, Hashable], set[Hashable]] = {}
        self._changes: dict[str, int] = {}
        self._steps = 0
        self._next_look = FIRST_LOOK
        self.jumping: frozenset[str] = frozenset()
        """The parts that are left out of levels 0 and 1."""
        self.rare: frozenset[str] = frozenset()
        """The parts that are left out of level 0, besides."""
        self._numbers: list[dict[Hashable, int]] = [{} for _ in range(COARSER)]

    def meet(self, parts: Parts) -> None:
        """A state was met for the first time, made of these parts."""
        self._parts.append(parts)

    @property
    def parts(self) -> list[Parts]:
        """What the states are made of, in order."""
        return self._parts

    def moved(self, before: int, after: int) -> None:
        """A pair was seen to lead from one state to another."""
        self._steps += 1
        if before == after:
            return
        first, second = self._parts[before], self._parts[after]
        for name in first.keys() | second.keys():
            old, new = first.get(name), second.get(name)
            if old != new:
                self._changes[name] = self._changes.get(name, 0) + 1
                self._successors.setdefault((name, old), set()).add(new)

    def look(self) -> bool:
        """Look again at what kind each part is, if it is time; whether keys have changed."""
        if len(self._parts) < self._next_look:
            return False
        self._next_look = int(GROWTH * len(self._parts))
        jumping = {name for (name, _), others in self._successors.items() if len(others) > MOST_SUCCESSORS}
        names = {name for parts in self._parts[:1] for name in parts} | self._changes.keys()
        rare = {name for name in names - jumping if self._changes.get(name, 0) < OFTEN * self._steps}
        if jumping == set(self.jumping) and rare == set(self.rare):
            return False
        self.jumping, self.rare = frozenset(jumping), frozenset(rare)
        self._numbers = [{} for _ in range(COARSER)]
        return True

    def keys(self, index: int) -> list[int]:
        """The keys of a state on the coarser levels, numbered as they come."""
        parts, first = self._parts[index], self._parts[0]
        steady = frozenset((name, value) for name, value in parts.items() if name not in self.jumping)
        often = frozenset((name, value) for name, value in steady if name not in self.rare)
        moved = sum(parts.get(name) != first.get(name) for name in self.jumping)
        keys: tuple[Hashable, ...] = (often, steady, (steady, moved))
        return [numbers.setdefault(key, len(numbers)) for numbers, key in zip(self._numbers, keys, strict=True)]

    def all_keys(self) -> Indices:
        """The keys of all states so far, shape (`COARSER`, M)."""
        return np.array([self.keys(index) for index in range(len(self._parts))], dtype=np.int32).T
