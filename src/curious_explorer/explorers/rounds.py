"""One round of Algorithm 2: what was measured, what was learned, and what both cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.worlds.policies import KnownPolicy
from curious_explorer.worlds.world import TransitionCounts

EMPTY = "every state is well visited"
NOTHING_NEW = "nothing new was reached, however much was tried"


@dataclass(frozen=True, eq=False)
class Round:
    """Round n of Algorithm 2."""

    number: int
    """n."""
    threshold: float
    """beta_n."""
    policy: KnownPolicy
    """pi_n, the policy whose visits were measured, shape (S, A) where it is a table."""
    visited: Floats
    """D_n, the share of visits of each state, shape (S,)."""
    poorly_visited: NDArray[np.bool_]
    """K_n, shape (S,)."""
    learned_policy: KnownPolicy
    """pi_{n+1}, learned for the reward 1 on K_n from mu_n."""
    visit_samples: int
    """Steps taken to measure D_n."""
    learning_samples: int
    """Steps taken to learn pi_{n+1}."""
    accepted: int = 0
    """The optimizer's updates that changed the policy."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """The optimizer's updates that did not, by reason."""
    occupancy: Floats | None = None
    """Where the optimizer's last episodes went, discounted, shape (S,)."""
    seen: TransitionCounts | None = None
    """What was seen while learning, if it was recorded."""
    ended: str | None = None
    """Why no round follows, where exploration ended before its limit: `EMPTY` or `NOTHING_NEW`."""

    @property
    def samples(self) -> int:
        """All steps of the round."""
        return self.visit_samples + self.learning_samples

    @property
    def curiosity_reward(self) -> Floats:
        """r_n, 1 on the poorly visited states, shape (S,)."""
        return self.poorly_visited.astype(np.float64)
