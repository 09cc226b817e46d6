"""What a network sees of an observation: all parts that are numbers, in one row, and the names of those that are not.

Dicts and tuples are taken apart, however deep they go. A box is flattened (pictures of bytes are divided by 255 first),
and whole numbers become one-hot vectors, as Stable-Baselines3 makes them: of more than `MOST_ONE_HOT` values, one for
each decimal digit, since a vector of a hundred thousand numbers at every step takes longer than all else. Text, graphs
and sequences have no fixed number of numbers: they are left out, and `NetworkInputs.left_out` names them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.errors import ObservationError

MOST_ONE_HOT = 2_000
BASE = 10
SEEN = (spaces.Discrete, spaces.MultiDiscrete, spaces.Box, spaces.MultiBinary)
"""Spaces whose observations are a fixed number of numbers."""


class Part(NamedTuple):
    """A part of an observation that has no parts itself."""

    path: tuple[str | int, ...]
    """The keys and places that lead to it; none if it is the whole observation."""
    space: spaces.Space[Any]

    @property
    def name(self) -> str:
        """As in ``room/0``."""
        return "/".join(map(str, self.path)) or "the observation"

    def of(self, observation: Any) -> Any:
        """What an observation has in this place."""
        for key in self.path:
            observation = observation[key]
        return observation


def parts_of(space: spaces.Space[Any], path: tuple[str | int, ...] = ()) -> Iterator[Part]:
    """All parts of observations in a space."""
    if isinstance(space, spaces.Dict):
        for key, below in space.spaces.items():
            yield from parts_of(below, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for place, below in enumerate(space.spaces):
            yield from parts_of(below, (*path, place))
    else:
        yield Part(path, space)


def num_inputs(space: spaces.Space[Any]) -> int:
    """How many numbers an observation becomes; refuses a space of which a network can see nothing."""
    return NetworkInputs(space).width


def is_picture(space: spaces.Space[Any]) -> bool:
    """Whether observations are pictures of bytes, which are divided by 255."""
    pixels = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    return pixels and bool((space.low == 0).all() and (space.high == 255).all())  # type: ignore[attr-defined]


def by_digits(space: spaces.Space[Any]) -> bool:
    """Whether whole numbers are so many that a network sees their digits."""
    if isinstance(space, spaces.Discrete):
        return int(space.n) > MOST_ONE_HOT
    return isinstance(space, spaces.MultiDiscrete) and bool((space.nvec > MOST_ONE_HOT).any())


class NetworkInputs:
    """How observations in a space become rows of numbers."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.space = space
        every = list(parts_of(space))
        self.parts = [part for part in every if isinstance(part.space, SEEN) and spaces.flatdim(part.space) > 0]
        self.left_out = [part for part in every if part not in self.parts]
        """Parts that a network does not see."""
        if not self.parts:
            raise ObservationError(
                f"a network can see nothing of observations in {space}; put a wrapper around the environment that "
                "makes numbers of them (gymnasium.wrappers.TransformObservation), and explore with it in place"
            )
        self._rows = [_PartRows(part) for part in self.parts]
        self.width: int = sum(each.width for each in self._rows)
        """How many numbers an observation becomes."""

    def rows(self, observations: Sequence[Any]) -> Floats:
        """The numbers of each observation, shape (N, width)."""
        try:
            if len(self._rows) == 1:
                return self._rows[0](observations)
            return np.concatenate([rows(observations) for rows in self._rows], axis=1)
        except ObservationError:
            raise
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise ObservationError(
                f"the policy was given {observations[0]!r}, expected {self.space} ({type(error).__name__}: {error})"
            ) from None


class _PartRows:
    """Rows of one part."""

    def __init__(self, part: Part) -> None:
        space: Any = part.space
        self._part, self.width = part, int(spaces.flatdim(space))
        self._numbers = math.prod(space.shape or ())
        self._sizes: Any = None
        self._places = np.zeros(0, dtype=np.int64)
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            self._sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec.ravel())
            self._first = np.ravel(space.start)
            hot = self._sizes
            if by_digits(space):
                self._places = BASE ** np.arange(len(str(int(self._sizes.max()) - 1)), dtype=np.int64)
                hot = np.full(self._numbers * len(self._places), BASE)
                self.width = int(hot.sum())
            self._offsets = np.cumsum(hot) - hot
        self._divisor = 255.0 if is_picture(space) else 1.0

    def __call__(self, observations: Sequence[Any]) -> Floats:
        part = self._part
        seen = observations if not part.path else [part.of(observation) for observation in observations]
        given = np.asarray(seen, dtype=np.float64).reshape(len(seen), -1)
        if given.shape[1] != self._numbers:
            raise ObservationError(
                f"the policy was given an observation in which {part.name} has {given.shape[1]} numbers, expected "
                f"{part.space}; it was learned in another environment, or under other wrappers"
            )
        if self._sizes is not None:
            return self._one_hot(given)
        return given if self._divisor == 1.0 else given / self._divisor

    def _one_hot(self, given: Floats) -> Floats:
        """A one-hot vector for each whole number, one after another."""
        numbers = given.astype(np.int64) - self._first
        if ((numbers < 0) | (numbers >= self._sizes)).any():
            raise ObservationError(f"the policy was given {given.tolist()}, expected {self._part.space}")
        if len(self._places):
            numbers = (numbers[:, :, None] // self._places % BASE).reshape(len(given), -1)
        rows = np.zeros((len(given), self.width))
        rows[np.arange(len(rows))[:, None], numbers + self._offsets] = 1.0
        return rows
