"""Algorithm 1: find out where a policy goes.

Walk from the start (or from a reset model); before each step stop with probability 1 - gamma; report where the walk
stopped. That state is distributed as the discounted visitation d_mu^pi, so counting it over many walks estimates d.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import ObservationPolicy, check_any_policy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import World


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
        reset: where walks begin; the world's start distribution if None.
    """
    gamma = check_gamma(gamma)
    count = check_count(count, "count")
    checked = check_any_policy(policy, world.num_states, world.num_actions)
    return world.count_ends(as_roll_in(reset).then(checked, gamma), count)
