"""MBIE: model-based interval estimation, the best model within confidence intervals around what was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.intervals import interval_strategy
from curious_explorer.explorers.model_based_explorer import ModelBasedExplorer, Strategy
from curious_explorer.learners.optimizer import Task
from curious_explorer.worlds.world import World


@dataclass(frozen=True, kw_only=True)
class MBIE(ModelBasedExplorer):
    """Model-based interval estimation (Strehl and Littman 2008).

    After n tries a reward is within sqrt(ln(2 / d) / (2 n)) of its mean and a row of transitions within
    sqrt(2 (ln(2^S - 2) - ln d) / n) of its frequencies (L1), each with probability 1 - d, where d = delta / (2 S A m)
    shares the risk among all intervals that are ever used.
    """

    delta: float = 0.05
    """The risk that any interval misses (published: a parameter; 0.05 is our choice)."""
    tries: int = 1_000
    """m, the number of tries for which intervals are computed (published: a bound of the theory; only its logarithm
    counts)."""
    scale: float = 0.05
    """What the intervals are multiplied by: 1 as published. Practical: a twentieth, because with the published ones
    a row of 34 states is anything at all for its first 20 tries and half of it for 80. (The paper, too, chooses the
    factors before 1/sqrt(n) by hand in its experiments; from memory.)"""
    growth: float = 0.1
    """Plan again when some pair was tried this much more often; 0 as published, after every step."""

    def reward_radius(self, tries: Floats) -> Floats:
        """How far the mean reward may be off after so many tries, shape (S, A)."""
        risk = self.delta / (2.0 * tries.size * self.tries)
        return self.scale * np.sqrt(max(math.log(2.0 / risk), 0.0) / (2.0 * np.maximum(tries, 1)))

    def transition_radius(self, tries: Floats) -> Floats:
        """How far frequencies may be off in L1 after so many tries, shape (S, A); 2 where there were none."""
        risk = self.delta / (2.0 * tries.size * self.tries)
        num_states = tries.shape[0]
        # ln(2^S - 2), also where 2^S overflows; there is nothing to be wrong about with one state.
        log_sets = num_states * math.log(2.0) + math.log1p(-(2.0 ** (1 - num_states))) if num_states > 1 else 0.0
        radius = self.scale * np.sqrt(2.0 * max(log_sets - math.log(risk), 0.0) / np.maximum(tries, 1))
        return np.where(tries > 0, np.minimum(radius, 2.0), 2.0)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `interval_strategy`."""

        def radii(tries: Floats, samples: int) -> tuple[Floats, Floats]:
            return self.reward_radius(tries), self.transition_radius(tries)

        return interval_strategy(world, task, radii, self.growth)
