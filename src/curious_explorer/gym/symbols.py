"""Observations made of small whole numbers, as symbols: a one-hot vector for each of their entries.

The numbers of a MiniGrid's view name kinds of things, and a network that takes them for brightness learns little. Which
numbers occur is read off observations that were seen, channel by channel (the last axis of an array): a number that was
never seen has a place of its own, the last. Text is left out, as everywhere in networks' inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Integers, Singles
from curious_explorer.errors import ObservationError
from curious_explorer.gym.cells import Env
from curious_explorer.gym.network_inputs import SEEN, Part, parts_of

MOST_SYMBOLS = 32
"""Numbers from here on are no symbols."""


class Symbols:
    """How observations become one-hot vectors.

    Args:
        parts: those parts of observations that are seen, each with the number of symbols of every channel.
    """

    def __init__(self, parts: Sequence[tuple[Part, Sequence[int]]]) -> None:
        self.parts = [part for part, _ in parts]
        self.channels = [tuple(int(size) for size in sizes) for _, sizes in parts]
        entries = []
        for part, sizes in zip(self.parts, self.channels, strict=True):
            cells = math.prod(part.space.shape or ()) // len(sizes)
            entries.append(np.tile(np.array(sizes, dtype=np.int64), cells))
        self._sizes: Integers = np.concatenate(entries)
        self._offsets = np.cumsum(self._sizes) - self._sizes
        self.width, self.entries = int(self._sizes.sum()), len(self._sizes)
        """How many numbers an observation becomes, and how many of them are one."""
        self.space = spaces.Box(0.0, 1.0, (self.width,), dtype=np.float32)

    @staticmethod
    def of(space: spaces.Space[Any], observations: Sequence[Any]) -> Symbols | None:
        """Symbols for a space, by what was seen in it; None where its numbers are not small whole numbers."""
        found: list[tuple[Part, list[int]]] = []
        for part in parts_of(space):
            if not isinstance(part.space, SEEN):
                continue
            if isinstance(part.space, spaces.Discrete):
                if part.space.start != 0:
                    return None
                found.append((part, [int(part.space.n)]))
                continue
            if part.space.dtype is None or part.space.dtype.kind not in "iu":
                return None
            seen = np.array([part.of(observation) for observation in observations])
            if seen.size == 0 or seen.min() < 0 or seen.max() >= MOST_SYMBOLS:
                return None
            last = seen.shape[-1] if seen.ndim > 2 else 1
            flat = seen.reshape(-1, last)
            found.append((part, [int(flat[:, channel].max()) + 2 for channel in range(last)]))
        return Symbols(found) if found else None

    def columns(self, observations: Sequence[Any]) -> NDArray[np.int64]:
        """Which columns of the one-hot vectors are one, shape (N, entries)."""
        seen = [[np.ravel(part.of(observation)) for part in self.parts] for observation in observations]
        given = np.array([np.concatenate(parts) for parts in seen], dtype=np.int64)
        if given.shape[1] != len(self._sizes) or (given < 0).any():
            raise ObservationError(
                f"the observation {observations[0]!r} has {given.shape[1]} numbers, expected {len(self._sizes)} of "
                "zero or more; it is of another environment, or under other wrappers"
            )
        columns: NDArray[np.int64] = np.minimum(given, self._sizes - 1) + self._offsets
        return columns

    def known_as(self, earlier: Symbols) -> NDArray[np.int64]:
        """For each column the one that stands for it in symbols of fewer observations: the last of its entry if new."""
        sizes = zip(self._sizes, earlier._sizes, earlier._offsets, strict=True)
        return np.concatenate([first + np.minimum(np.arange(size), known - 1) for size, known, first in sizes])

    def rows(self, observations: Sequence[Any]) -> Singles:
        """One-hot vectors, shape (N, width)."""
        rows = np.zeros((len(observations), self.width), dtype=np.float32)
        np.put_along_axis(rows, self.columns(observations), np.float32(1.0), axis=1)
        return rows

    def description(self) -> list[Any]:
        """As plain data: the path of each part, and the symbols of its channels."""
        return [[list(part.path), list(sizes)] for part, sizes in zip(self.parts, self.channels, strict=True)]

    @staticmethod
    def from_description(description: Sequence[Any], space: spaces.Space[Any]) -> Symbols:
        """The symbols that were described, of observations in a space."""
        by_path = {part.path: part for part in parts_of(space)}
        try:
            return Symbols([(by_path[tuple(path)], sizes) for path, sizes in description])
        except KeyError as error:
            raise ObservationError(f"observations in {space} have no part {error}") from None


class SymbolObservations(gymnasium.ObservationWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment that shows one-hot vectors in place of symbols."""

    def __init__(self, env: Env, symbols: Symbols) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, symbols=symbols)
        gymnasium.ObservationWrapper.__init__(self, env)
        self.symbols, self.observation_space = symbols, symbols.space

    def observation(self, observation: Any) -> Singles:
        """The one-hot vectors of one observation, in one row."""
        row: Singles = self.symbols.rows([observation])[0]
        return row
