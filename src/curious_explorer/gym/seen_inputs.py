"""What a cloned network sees of an observation: symbols where it is made of small whole numbers, else scaled numbers.

Either way the first layer is a product with a table: of a one-hot vector, which is a sum of the table's rows, or of a
row of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Integers, Singles
from curious_explorer.errors import ObservationError
from curious_explorer.gym.network_inputs import NetworkInputs
from curious_explorer.gym.network_policy import Normalisation
from curious_explorer.gym.symbols import Symbols


def distinct(observations: Iterable[Any]) -> tuple[list[Any], Integers]:
    """The different ones among some observations, and for each of all of them which of these it is."""
    place: dict[Any, int] = {}
    different: list[Any] = []
    which = []
    for observation in observations:
        key = _key(observation)
        number = place.setdefault(key, len(different))
        if number == len(different):
            different.append(observation)
        which.append(number)
    return different, np.array(which, dtype=np.int64)


def _key(observation: Any) -> Any:
    """What tells observations in one space apart."""
    if isinstance(observation, dict):
        return tuple(_key(part) for part in observation.values())
    if isinstance(observation, tuple):
        return tuple(map(_key, observation))
    return observation.tobytes() if isinstance(observation, np.ndarray) else observation


class SeenInputs:
    """How observations in a space become what a network sees.

    Args:
        space: of the observations.
        symbols: how they become one-hot vectors; None: they are numbers.
        scale: of numbers; None where there are symbols.
    """

    def __init__(self, space: spaces.Space[Any], symbols: Symbols | None, scale: Normalisation | None) -> None:
        self.space, self.symbols, self.scale = space, symbols, scale
        self._numbers = None if symbols is not None else NetworkInputs(space)
        self.width = symbols.width if symbols is not None else NetworkInputs(space).width
        """How many numbers an observation becomes."""

    @staticmethod
    def of(space: spaces.Space[Any], observations: Sequence[Any]) -> SeenInputs:
        """By what was seen in the space."""
        symbols = Symbols.of(space, observations)
        if symbols is not None:
            return SeenInputs(space, symbols, None)
        rows = NetworkInputs(space).rows(observations)
        return SeenInputs(space, None, Normalisation(rows.mean(axis=0), rows.var(axis=0), epsilon=1e-4))

    def given(self, observations: Sequence[Any]) -> NDArray[Any]:
        """The columns of one-hot vectors that are one, shape (N, entries); or rows of numbers, shape (N, width)."""
        if self.symbols is not None:
            return self.symbols.columns(observations)
        assert self._numbers is not None
        assert self.scale is not None
        return self.scale.apply(self._numbers.rows(observations)).astype(np.float32)

    def rows(self, observations: Sequence[Any]) -> Singles:
        """What the network sees, with one-hot vectors written out, shape (N, width)."""
        return self.given(observations) if self.symbols is None else self.symbols.rows(observations)

    def through(self, table: Singles, observation: Any) -> Singles:
        """One observation's product with a table of shape (width, outputs)."""
        given = self.given([observation])[0]
        product: Singles = table[given].sum(axis=0) if self.symbols is not None else given @ table
        return product

    def description(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """As plain data, and arrays."""
        if self.symbols is not None:
            return {"symbols": self.symbols.description()}, {}
        assert self.scale is not None
        plain = {"symbols": None, "clip": self.scale.clip, "epsilon": self.scale.epsilon}
        return plain, {"mean": self.scale.mean, "variance": self.scale.variance}

    @staticmethod
    def from_description(
        described: dict[str, Any], arrays: dict[str, NDArray[Any]], space: spaces.Space[Any]
    ) -> SeenInputs:
        """The inputs that were described, of observations in a space."""
        if described["symbols"] is not None:
            return SeenInputs(space, Symbols.from_description(described["symbols"], space), None)
        scale = Normalisation(arrays["mean"], arrays["variance"], described["clip"], described["epsilon"])
        inputs = SeenInputs(space, None, scale)
        if scale.mean.shape != (inputs.width,):
            raise ObservationError(f"it sees {scale.mean.size} numbers, but observations in {space} are {inputs.width}")
        return inputs
