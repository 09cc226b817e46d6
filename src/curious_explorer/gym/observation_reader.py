"""What of an observation tells cells apart: some of its parts, and of a part all elements or some.

Observations of `Dict` and `Tuple` spaces are taken apart, however deep they go (`network_inputs.parts_of`). A `Read`
names one part, and which of its elements are looked at; elements that are noise are left out there.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.errors import CellError, ObservationError
from curious_explorer.gym.network_inputs import Part, parts_of

SHORT = 256
"""Arrays of up to so many bytes are their own code; longer ones have a hash of two words."""
UNREADABLE = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)


class Read(NamedTuple):
    """One part of an observation, and which of its elements are looked at."""

    path: tuple[str | int, ...] = ()
    """The keys and places that lead to the part; none if it is the whole observation."""
    kept: tuple[int, ...] | None = None
    """The elements that are looked at, by their places in the flattened part; None: all of them."""

    @property
    def name(self) -> str:
        """As in ``room/0``."""
        return "/".join(map(str, self.path)) or "observation"

    def of(self, observation: Any) -> Any:
        """What an observation has in this place, all of it."""
        for key in self.path:
            observation = observation[key]
        return observation

    def array(self, observation: Any) -> NDArray[Any]:
        """The elements that are looked at."""
        array = np.asarray(self.of(observation))
        return array if self.kept is None else array.reshape(-1)[list(self.kept)]

    def description(self) -> dict[str, Any]:
        """As plain data."""
        return {"path": list(self.path), "kept": None if self.kept is None else list(self.kept)}

    @staticmethod
    def from_description(description: Mapping[str, Any]) -> Read:
        """What `description` gave."""
        kept = description["kept"]
        return Read(tuple(description["path"]), None if kept is None else tuple(kept))


def check_reads(reads: Iterable[Read], space: spaces.Space[Any], kind: str) -> list[Part]:
    """The parts of a space that are read; refuses a space that has no such parts."""
    parts = {part.path: part for part in parts_of(space)}
    for read in reads:
        part = parts.get(read.path)
        if part is None:
            raise CellError(
                f"{kind} reads {read.name}, but observations in {space} have "
                f"{', '.join(each.name for each in parts.values())}; make cells for this space"
            )
        numbers = math.prod(part.space.shape or ())
        if read.kept is not None and read.kept and max(read.kept) >= numbers:
            raise CellError(f"{kind} reads element {max(read.kept)} of {read.name}, which has {numbers} elements")
    return [parts[read.path] for read in reads]


class Numbers:
    """The numbers of some parts, one after the other, as a list: fast where the observation is one flat array."""

    def __init__(self, reads: Sequence[Read]) -> None:
        self.reads = tuple(reads)
        self._whole = self.reads == (Read(),)

    def __call__(self, observation: Any) -> list[float]:
        """The numbers of an observation."""
        try:
            if self._whole and observation.ndim == 1:
                values: list[float] = observation.tolist()
                return values
            return [float(value) for read in self.reads for value in read.array(observation).ravel().tolist()]
        except UNREADABLE as error:
            raise unreadable(observation, error) from None


def unreadable(observation: Any, error: Exception) -> ObservationError:
    """The error to raise for an observation that does not have what is read of it."""
    return ObservationError(
        f"the observation is {observation!r}, which the cells were not made for ({type(error).__name__}: {error}); "
        "repair the environment, so that all observations are in its observation space, or choose cells anew"
    )


def code_of(value: Any) -> Hashable:
    """Something that can be compared quickly, equal for equal values and, as good as surely, different for others."""
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, np.ndarray):
        return array_code(value)
    if isinstance(value, np.generic):
        number: Hashable = value.item()
        return number
    if isinstance(value, Mapping):
        return tuple((key, code_of(value[key])) for key in sorted(value))
    if hasattr(value, "_asdict"):  # the nodes and edges of a graph
        return code_of(value._asdict())
    if isinstance(value, Iterable):
        return tuple(map(code_of, value))
    return repr(value)


def array_code(array: NDArray[Any]) -> Hashable:
    """Its bytes, or a hash of them if they are many: two sums of 32-bit words times random odd numbers, modulo 2^64."""
    if array.dtype.kind not in "iufb":
        return tuple(map(str, array.ravel().tolist()))
    content = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if content.nbytes <= SHORT:
        return content.tobytes()
    flat = content.reshape(-1).view(np.uint8)
    whole = len(flat) & ~3
    words = flat[:whole].view(np.uint32).astype(np.uint64)
    first, second = _weights(len(words))
    return int(words @ first), int(words @ second), flat[whole:].tobytes()


_WEIGHTS: dict[int, tuple[NDArray[np.uint64], NDArray[np.uint64]]] = {}


def _weights(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Random odd numbers, the same in every process."""
    if count not in _WEIGHTS:
        drawn = np.random.PCG64(count).random_raw(2 * count) | np.uint64(1)
        _WEIGHTS[count] = drawn[:count], drawn[count:]
    return _WEIGHTS[count]
