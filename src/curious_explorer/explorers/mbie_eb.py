"""MBIE-EB: the model as it was seen, with a bonus beta / sqrt(n) on what a pair pays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.bonuses import BonusStrategy
from curious_explorer.explorers.model_based_explorer import ModelBasedExplorer, Strategy
from curious_explorer.learners.optimizer import Task
from curious_explorer.worlds.world import World


@dataclass(frozen=True, kw_only=True)
class MBIEEB(ModelBasedExplorer):
    """MBIE with an exploration bonus (Strehl and Littman 2008): beta / sqrt(n) on top of the mean reward.

    A pair never tried is worth the most that can be earned.
    """

    beta: float | None = 1.0
    """Practical: 1, in the unit of one step's reward. None takes the published one,
    sqrt(ln(2 S A m / delta) / 2) / (1 - gamma), about 56 at gamma 0.95 for 34 states."""
    delta: float = 0.05
    """Risk for the published beta."""
    tries: int = 1_000
    """m for the published beta, of which only the logarithm counts."""
    growth: float = 0.1
    """Plan again when some pair was tried this much more often; 0 as published, after every step."""

    def bonus(self, tries: Floats, gamma: float) -> Floats:
        """The bonus after so many tries, shape (S, A), added to the reward."""
        beta = self.beta
        if beta is None:
            beta = math.sqrt(0.5 * math.log(2.0 * tries.size * self.tries / self.delta)) / (1.0 - gamma)
        return beta / np.sqrt(np.maximum(tries, 1))

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `BonusStrategy`."""
        return BonusStrategy(world, task, lambda tries: self.bonus(tries, task.gamma), self.growth)
