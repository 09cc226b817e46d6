"""What a network sees of an observation: a row of numbers, made in the way Stable-Baselines3 makes it.

A box is flattened (pictures of bytes are divided by 255 first), whole numbers become one-hot vectors. After that the
numbers may be normalised by a mean and a variance that were measured while learning, as `VecNormalize` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.errors import ObservationError

BOX, ONE_HOT = "box", "one_hot"
BYTES = 255.0


@dataclass(frozen=True)
class Inputs:
    """From observations to rows of numbers.

    Args:
        kind: "box" for numbers as they are, "one_hot" for whole numbers.
        sizes: the shape of a box; or how many values each whole number can have.
        starts: the least value of each whole number; empty for a box.
        divisor: what a box is divided by: 255 for pictures of bytes.
    """

    kind: str
    sizes: tuple[int, ...]
    starts: tuple[int, ...] = ()
    divisor: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in (BOX, ONE_HOT):
            raise ValueError(f"the kind of inputs is {self.kind!r}, expected {BOX!r} or {ONE_HOT!r}")
        if any(size < 1 for size in self.sizes) or (self.kind == ONE_HOT and not self.sizes):
            raise ValueError(f"the sizes of the inputs are {self.sizes}, expected positive numbers")
        if len(self.starts) != (len(self.sizes) if self.kind == ONE_HOT else 0):
            raise ValueError(f"the starts of the inputs are {self.starts}, expected one for each one-hot vector")
        if not 0.0 < self.divisor < math.inf:
            raise ValueError(f"the inputs are divided by {self.divisor}, expected a positive number")

    @staticmethod
    def of(space: spaces.Space[Any]) -> Inputs:
        """The inputs for an observation space."""
        if isinstance(space, spaces.Discrete):
            return Inputs(ONE_HOT, (int(space.n),), (int(space.start),))
        if isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1:
            return Inputs(ONE_HOT, tuple(map(int, space.nvec)), tuple(map(int, space.start)))
        if isinstance(space, spaces.Box):
            picture = space.dtype == np.uint8 and len(space.shape) == 3
            picture = picture and bool((space.low == 0).all() and (space.high == 255).all())
            return Inputs(BOX, tuple(space.shape), divisor=BYTES if picture else 1.0)
        if isinstance(space, spaces.MultiBinary):
            return Inputs(BOX, tuple(space.shape))
        raise ObservationError(
            f"a multilayer perceptron cannot see observations in {space}; put a wrapper around the environment that "
            "makes a box of them, such as gymnasium.wrappers.FlattenObservation or, for a MiniGrid, "
            "minigrid.wrappers.ImgObsWrapper, and explore with it in place"
        )

    @property
    def width(self) -> int:
        """How many numbers an observation becomes."""
        return math.prod(self.sizes) if self.kind == BOX else sum(self.sizes)

    def rows(self, observations: Sequence[Any]) -> Floats:
        """The numbers of each observation, shape (N, width)."""
        try:
            given = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
        except (TypeError, ValueError) as error:
            raise ObservationError(
                f"the policy was given {observations[0]!r}, expected {self._expected()} ({error})"
            ) from None
        if given.shape[1] != (self.width if self.kind == BOX else len(self.sizes)):
            raise ObservationError(
                f"the policy was given an observation of {given.shape[1]} numbers, expected {self._expected()}; it was "
                "learned in another environment, or under other wrappers"
            )
        if self.kind == BOX:
            return given if self.divisor == 1.0 else given / self.divisor
        return self._one_hot(given)

    def _one_hot(self, given: Floats) -> Floats:
        whole = given.astype(np.int64) - self.starts
        if ((whole < 0) | (whole >= self.sizes)).any():
            raise ObservationError(f"the policy was given {given.tolist()}, expected {self._expected()}")
        rows = np.zeros((len(given), self.width))
        first = np.cumsum((0, *self.sizes[:-1]))
        np.put_along_axis(rows, whole + first, 1.0, axis=1)
        return rows

    def _expected(self) -> str:
        if self.kind == BOX:
            return f"numbers of shape {self.sizes}"
        ranges = [f"{start} to {start + size - 1}" for start, size in zip(self.starts, self.sizes, strict=True)]
        return f"whole numbers from {', '.join(ranges)}"


@dataclass(frozen=True, eq=False)
class Normalisation:
    """A shift and a scale for each number, with what lies far out cut off.

    Args:
        mean: shape (width,).
        variance: shape (width,).
        clip: how many standard deviations away from the mean numbers are cut off.
        epsilon: what is added to the variance, so that nothing is divided by zero.
    """

    mean: Floats
    variance: Floats
    clip: float = 10.0
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        mean, variance = (np.array(values, dtype=np.float64) for values in (self.mean, self.variance))
        if mean.ndim != 1 or mean.shape != variance.shape:
            raise ValueError(
                f"the mean has shape {mean.shape} and the variance {variance.shape}, expected one number for each input"
            )
        if not np.isfinite([mean, variance]).all() or (variance < 0.0).any():
            raise ValueError("the mean or the variance of the inputs is not finite, or a variance is negative")
        if not (0.0 < self.clip < math.inf and 0.0 < self.epsilon < math.inf):
            raise ValueError(f"clip is {self.clip} and epsilon {self.epsilon}, expected positive numbers")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", variance)
        object.__setattr__(self, "_factor", 1.0 / np.sqrt(variance + self.epsilon))

    def apply(self, rows: Floats) -> Floats:
        """The rows, shifted, scaled and cut off."""
        factor: Floats = self._factor  # type: ignore[attr-defined]
        scaled = (rows - self.mean) * factor
        return np.minimum(np.maximum(scaled, -self.clip), self.clip)
