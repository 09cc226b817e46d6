"""What a policy can be: a table of action probabilities, or something that looks at observations.

Everything tabular in this library is an array of shape (S, A). A neural policy is an `ObservationPolicy`: only a world
that has observations (`GymWorld`) can walk it, and a reset model can chain it with tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.validation import check_policy


class ObservationPolicy(ABC):
    """A policy that acts on observations, not on cells; what is stored of it are arrays and plain data, never code."""

    @abstractmethod
    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """An action of the environment (not its number) for each observation, drawn by the generator."""

    @abstractmethod
    def encode(self) -> bytes:
        """What a file of this policy holds."""


class StoredPolicy(ObservationPolicy):
    """A policy that sees observations, as it was stored: the core hands it on without looking inside.

    `GymWorld` and `RestartWrapper` decode it where it is to act.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """Refuse to act."""
        raise ValueError(
            "this policy is as it was stored; NetworkPolicy.decode(policy.encode()) makes one that acts "
            "(curious_explorer.gym.network_policy)"
        )

    def encode(self) -> bytes:
        """What was stored."""
        return self._content


Policy: TypeAlias = Floats | ObservationPolicy
KnownPolicy: TypeAlias = Any
"""A `Policy` as it comes back from a learner. Whoever chose the learner knows which kind it is, and a type checker
would make them say so at every use; `as_table` says it where it is not known."""


_checked: WeakValueDictionary[int, Floats] = WeakValueDictionary()
"""Frozen tables that were found to be policies, by identity: Algorithm 2 hands the same ones on in every round."""


def check_any_policy(
    policy: ArrayLike | ObservationPolicy, num_states: int, num_actions: int, name: str = "policy"
) -> Policy:
    """A policy that fits a world of this size, frozen."""
    known = _checked.get(id(policy))
    if known is not None and known is policy and known.shape == (num_states, num_actions) and not known.flags.writeable:
        return known
    if isinstance(policy, ObservationPolicy):
        return policy
    table = frozen(check_policy(policy, num_states, num_actions, name=name))
    _checked[id(table)] = table
    return table


def as_table(policy: Policy, purpose: str) -> Floats:
    """A policy's table, for those who can do nothing without one."""
    if isinstance(policy, ObservationPolicy):
        raise ValueError(
            f"{purpose} needs policies that are tables, but this one sees observations ({type(policy).__name__})"
        )
    return policy


def frozen(policy: ArrayLike) -> Floats:
    """A read-only table, which can be recognised by identity; a copy unless it is one already."""
    if isinstance(policy, np.ndarray) and policy.dtype == np.float64 and _is_frozen(policy):
        return policy
    table = np.array(policy, dtype=np.float64, order="C")
    table.flags.writeable = False
    return table


def _is_frozen(table: Floats) -> bool:
    return table.base is None and table.flags.c_contiguous and not table.flags.writeable
