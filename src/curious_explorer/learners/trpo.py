"""Trust-region policy optimisation for tables (Schulman et al. 2015), with the exact step.

For a tabular softmax policy the natural direction has a closed form and the trust region's edge is found by bisection
(see `trust_region`), so there is no conjugate gradient, no damping and no line search to get wrong: the divergence is
never above its limit, and where the batch carries no signal the old parameters are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from curious_explorer.arrays import Floats
from curious_explorer.learners.actor_critic import ActorCritic
from curious_explorer.learners.trust_region import ACCEPTED, NO_SIGNAL, natural_step
from curious_explorer.worlds.world import EpisodeStatistics


@dataclass(frozen=True, kw_only=True)
class TRPO(ActorCritic):
    """TRPO on tables; see `ActorCritic` for what it shares with `Reinforce`."""

    max_kl: float = 0.05
    """The trust region: how far the policy may move in an update, on average over the batch's states."""
    advantage_memory: float = 5.0
    """How many tries to no advantage each pair is credited with, beside those in the batch. A step always goes to the
    edge of the trust region, whatever the size of the signal, so without this the mean of one or two lucky tries
    can make a wrong action certain; deep problems want more (20 at depth 60 and beyond)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.max_kl < float("inf"):
            raise ValueError(f"max_kl is {self.max_kl!r}, expected a positive number")
        if not 0.0 <= self.advantage_memory < float("inf"):
            raise ValueError(f"advantage_memory is {self.advantage_memory!r}, expected a number that is not negative")

    def take_step(self, logits: Floats, policy: Floats, batch: EpisodeStatistics) -> str | None:
        """Take the natural step to the edge of the trust region, or none."""
        sums = (batch.weight, batch.advantage_sum)
        verdict, _ = natural_step(logits, policy, *sums, self.max_kl, float(self.advantage_memory))
        if verdict == ACCEPTED:
            return None
        return "no advantage to follow" if verdict == NO_SIGNAL else "advantages not finite"
