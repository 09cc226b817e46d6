"""Algorithm 1: find out where a policy goes.

Walk from the start (or from a reset model); before each step stop with probability 1 - gamma; report where the walk
stopped. That state is distributed as the discounted visitation d_mu^pi, so counting it over many walks estimates d.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import ObservationPolicy, check_any_policy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import World

WALKS_AT_ONCE = 1 << 22
"""Walks are counted in portions, so that a thousand million visits need no more memory than a few million."""


class Reset(Protocol):
    """Anything that says how to roll in, such as a reset model."""

    @property
    def roll_in(self) -> RollIn:
        """How to reach a state by steps alone."""


@runtime_checkable
class CountsEnds(Protocol):
    """A world that counts where walks end by itself, so that the ends of many walks need not be kept, or come home."""

    def count_ends(self, roll_in: RollIn, portions: Sequence[int]) -> NDArray[np.int64]:
        """How many walks end in each state, shape (S,): as many calls of `walk` as there are portions, counted."""


def as_roll_in(reset: Reset | RollIn | None) -> RollIn:
    """The roll-in behind a reset model; the start distribution for None."""
    if reset is None:
        return RollIn.from_start()
    return reset if isinstance(reset, RollIn) else reset.roll_in


def visit(
    world: World,
    policy: ArrayLike | ObservationPolicy,
    *,
    gamma: float,
    count: int,
    reset: Reset | RollIn | None = None,
) -> NDArray[np.int64]:
    """How many of ``count`` walks of the policy stop in each state, shape (S,).

    Args:
        world: where to walk; each step is counted in ``world.samples``.
        policy: action probabilities, shape (S, A), or a policy that sees observations.
        gamma: the walk stops with probability ``1 - gamma`` before each step.
        count: how many walks.
        reset: where walks begin; the world's start distribution if None.
    """
    gamma = check_gamma(gamma)
    count = check_count(count, "count")
    checked = check_any_policy(policy, world.num_states, world.num_actions)
    roll_in = as_roll_in(reset).then(checked, gamma)
    counts = np.zeros(world.num_states, dtype=np.int64)
    portions = [min(WALKS_AT_ONCE, count - done) for done in range(0, count, WALKS_AT_ONCE)]
    if isinstance(world, CountsEnds):
        return world.count_ends(roll_in, portions)
    for portion in portions:
        counts += np.bincount(world.walk(roll_in, portion), minlength=world.num_states)
    return counts
