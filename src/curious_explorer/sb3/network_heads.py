"""What a network's output means: the distribution that an action is drawn from, for each kind of action space.

A draw is a row of numbers, as Stable-Baselines3 keeps it in its rollout buffer; `to_actions` makes of it what the
environment wants.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Singles
from curious_explorer.errors import ActionError

Rows = NDArray[Any]


class Head(ABC):
    """A distribution over actions whose parameters are a network's output."""

    kind: str
    width: int
    """How many numbers the network puts out."""

    @abstractmethod
    def draw(self, outputs: Singles, generator: np.random.Generator) -> Rows:
        """One draw for each row of outputs."""

    @abstractmethod
    def likeliest(self, outputs: Singles) -> Rows:
        """The likeliest of all draws for each row of outputs."""

    @abstractmethod
    def to_actions(self, draws: Rows) -> list[Any]:
        """The environment's actions."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """As plain data, without arrays."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What else it is made of."""
        return {}


class Categorical(Head):
    """One action of ``count``, numbered from ``start``."""

    kind = "categorical"

    def __init__(self, count: int, start: int = 0) -> None:
        if count < 1:
            raise ValueError(f"there are {count} actions, expected at least one")
        self.width, self._start = count, start

    def draw(self, outputs: Singles, generator: np.random.Generator) -> Rows:
        """The number of an action, shape (N, 1)."""
        return pick(outputs, generator)[:, None]

    def likeliest(self, outputs: Singles) -> Rows:
        """The number of the likeliest action, shape (N, 1)."""
        _check(outputs)
        numbers: Rows = np.argmax(outputs, axis=1)[:, None]
        return numbers

    def to_actions(self, draws: Rows) -> list[Any]:
        """Whole numbers."""
        numbers: list[Any] = (draws[:, 0] + self._start).tolist()
        return numbers

    def probabilities(self, outputs: Singles) -> NDArray[np.float64]:
        """The probability of each action, shape (N, count)."""
        weights = np.exp((outputs - outputs.max(axis=1, keepdims=True)).astype(np.float64))
        probabilities: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return probabilities

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": self.kind, "count": self.width, "start": self._start}


class MultiCategorical(Head):
    """Several numbers, each of its own range, independently."""

    kind = "multi_categorical"

    def __init__(self, counts: tuple[int, ...], starts: tuple[int, ...]) -> None:
        if not counts or any(count < 1 for count in counts) or len(starts) != len(counts):
            raise ValueError(f"the actions have {counts} values from {starts}, expected a positive number for each")
        self._counts, self._starts = counts, starts
        self.width = sum(counts)

    def draw(self, outputs: Singles, generator: np.random.Generator) -> Rows:
        """A number for each of them, shape (N, D)."""
        return np.stack([pick(piece, generator) for piece in self._pieces(outputs)], axis=1)

    def likeliest(self, outputs: Singles) -> Rows:
        """The likeliest number of each, shape (N, D)."""
        _check(outputs)
        return np.stack([piece.argmax(axis=1) for piece in self._pieces(outputs)], axis=1)

    def _pieces(self, outputs: Singles) -> list[Singles]:
        return np.split(outputs, np.cumsum(self._counts)[:-1], axis=1)

    def to_actions(self, draws: Rows) -> list[Any]:
        """Arrays of whole numbers."""
        return list(draws + np.array(self._starts, dtype=np.int64))

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": self.kind, "counts": list(self._counts), "starts": list(self._starts)}


class Bernoulli(Head):
    """Several bits, independently."""

    kind = "bernoulli"

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"there are {count} bits, expected at least one")
        self.width = count

    def draw(self, outputs: Singles, generator: np.random.Generator) -> Rows:
        """The bits, shape (N, D)."""
        _check(outputs)
        with np.errstate(over="ignore"):
            chance = 1.0 / (1.0 + np.exp(-outputs.astype(np.float64)))
        return (generator.random(outputs.shape) < chance).astype(np.int8)

    def likeliest(self, outputs: Singles) -> Rows:
        """The likelier value of each bit, shape (N, D)."""
        _check(outputs)
        return (outputs > 0.0).astype(np.int8)

    def to_actions(self, draws: Rows) -> list[Any]:
        """Arrays of bits."""
        return list(draws)

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": self.kind, "count": self.width}


class Gaussian(Head):
    """A normal distribution in each dimension of a box, cut off at its bounds."""

    kind = "gaussian"

    def __init__(self, log_std: NDArray[Any], low: NDArray[Any], high: NDArray[Any], dtype: str = "float32") -> None:
        self._log_std = np.ascontiguousarray(log_std, dtype=np.float32)
        self._low, self._high = (np.ascontiguousarray(bound, dtype=np.float64) for bound in (low, high))
        self._dtype = np.dtype(dtype)
        self.width = math.prod(self._low.shape)
        if self._log_std.shape != (self.width,) or self._high.shape != self._low.shape or self.width == 0:
            raise ValueError(
                f"the standard deviations have shape {self._log_std.shape} and the bounds {self._low.shape} and "
                f"{self._high.shape}, expected one for each dimension of the action"
            )
        bounds = np.isfinite([self._low, self._high]).all() and (self._low <= self._high).all()
        if not bounds or not np.isfinite(self._log_std).all() or self._dtype.kind not in "fiu":
            raise ValueError("the bounds or the standard deviations of the actions are not finite, or low > high")
        with np.errstate(over="ignore"):
            self._std = np.exp(self._log_std.astype(np.float64))
        if not np.isfinite(self._std).all():
            raise ValueError("a standard deviation of the actions is too large to be a number")

    def draw(self, outputs: Singles, generator: np.random.Generator) -> Rows:
        """Numbers without bounds, shape (N, D)."""
        _check(outputs)
        return (outputs + self._std * generator.standard_normal(outputs.shape)).astype(np.float32)

    def likeliest(self, outputs: Singles) -> Rows:
        """The means, shape (N, D)."""
        _check(outputs)
        return outputs.astype(np.float32)

    def to_actions(self, draws: Rows) -> list[Any]:
        """Arrays of the box's shape, inside its bounds."""
        shaped = draws.reshape(len(draws), *self._low.shape)
        return list(np.clip(shaped, self._low, self._high).astype(self._dtype))

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": self.kind, "shape": list(self._low.shape), "dtype": self._dtype.name}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Standard deviations and bounds."""
        return {"head.log_std": self._log_std, "head.low": self._low, "head.high": self._high}


def head_of(space: spaces.Space[Any], log_std: NDArray[Any] | None = None) -> Head:
    """The head for an action space."""
    if isinstance(space, spaces.Discrete):
        return Categorical(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1:
        return MultiCategorical(tuple(map(int, space.nvec)), tuple(map(int, space.start)))
    if isinstance(space, spaces.MultiBinary) and len(space.shape) == 1:
        return Bernoulli(int(space.shape[0]))
    if isinstance(space, spaces.Box) and space.is_bounded("both"):
        zeros = np.zeros(math.prod(space.shape), dtype=np.float32)
        return Gaussian(zeros if log_std is None else log_std, space.low, space.high, str(space.dtype))
    raise ActionError(
        f"there is no network that acts in {space}; put a wrapper around the environment whose actions are a number, "
        "a row of numbers or bits, or a box with bounds (gymnasium.wrappers.RescaleAction)"
    )


def pick(logits: Singles, generator: np.random.Generator) -> NDArray[np.int64]:
    """A column for each row, drawn by the softmax of its logits."""
    if len(logits) == 1:
        return np.array([_pick_one(logits[0].tolist(), generator.random())], dtype=np.int64)
    cumulative = np.cumsum(np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64), axis=1)
    if not cumulative[:, -1].min() > 0.0:  # NaN is not greater than anything
        _refuse()
    draws = generator.random(len(logits)) * cumulative[:, -1]
    picked: NDArray[np.int64] = (cumulative[:, :-1] <= draws[:, None]).sum(axis=1)
    return picked


def _pick_one(logits: list[float], draw: float) -> int:
    """The same for one row, without arrays: three times as fast for the few actions that there are."""
    largest = max(logits)
    weights = [math.exp(logit - largest) for logit in logits]
    left = draw * sum(weights)
    if not left >= 0.0:  # NaN is not greater than anything
        _refuse()
    for number, weight in enumerate(weights):
        left -= weight
        if left < 0.0:
            return number
    return len(logits) - 1


def _check(outputs: Singles) -> None:
    if not np.isfinite(outputs).all():
        _refuse()


def _refuse() -> None:
    from curious_explorer.errors import ObservationError

    raise ObservationError(
        "the network put out numbers that are not finite: the observation has NaN or infinity in it, or learning "
        "diverged; repair the environment, or learn with a smaller learning_rate"
    )
