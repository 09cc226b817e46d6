"""Algorithm 1: find out where a policy goes.

Walk from the start (or from a reset model); before each step stop with probability 1 - gamma; report where the walk
stopped. That state is distributed as the discounted visitation d_mu^pi, so counting it over many walks estimates d.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curious_explorer.mdp.validation import check_count, check_gamma, check_policy
from curious_explorer.sampling.roll_in import RollIn
from curious_explorer.sampling.world import World

WALKS_AT_ONCE = 1 << 22
"""Walks are counted in portions, so that a thousand million visits need no more memory than a few million."""


class Reset(Protocol):
    """Anything that says how to roll in, such as a reset model."""

    @property
    def roll_in(self) -> RollIn:
        """How to reach a state by steps alone."""


def as_roll_in(reset: Reset | RollIn | None) -> RollIn:
    """The roll-in behind a reset model; the start distribution for None."""
    if reset is None:
        return RollIn.from_start()
    return reset if isinstance(reset, RollIn) else reset.roll_in


def visit(
    world: World, policy: ArrayLike, *, gamma: float, count: int, reset: Reset | RollIn | None = None
) -> NDArray[np.int64]:
    """How many of ``count`` walks of the policy stop in each state, shape (S,).

    Args:
        world: where to walk; each step is counted in ``world.samples``.
        policy: action probabilities, shape (S, A).
        gamma: the walk stops with probability ``1 - gamma`` before each step.
        count: how many walks.
        reset: where walks begin; the world's start distribution if None.
    """
    gamma = check_gamma(gamma)
    count = check_count(count, "count")
    table = check_policy(policy, world.num_states, world.num_actions)
    roll_in = as_roll_in(reset).then(table, gamma)
    counts = np.zeros(world.num_states, dtype=np.int64)
    for done in range(0, count, WALKS_AT_ONCE):
        ends = world.walk(roll_in, min(WALKS_AT_ONCE, count - done))
        counts += np.bincount(ends, minlength=world.num_states)
    return counts
