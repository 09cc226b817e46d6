"""UCBVI: the model as it was seen, with a bonus on action values, which never rise."""

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
class UCBVI(ModelBasedExplorer):
    """UCBVI-CH (Azar, Osband and Munos 2017), discounted: bonus 7 H ln(5 S A T / delta) / sqrt(n) on action values.

    H is 1 / (1 - gamma), T the budget. Action values never rise from plan to plan: each is at most the one before. A
    plan is kept to the end of the episode.
    """

    scale: float | None = 0.05
    """The bonus on normalised action values is scale / sqrt(n). Practical: 0.05. None takes the published one,
    7 ln(5 S A T / delta), above one (so, all alike) until a pair was tried 27,000 times in a million steps."""
    delta: float = 0.05
    """Risk for the published bonus."""
    growth: float = 0.1
    """Plan again at the end of the episode in which some pair was tried this much more often; 0 as published, after
    every episode."""

    def bonus(self, tries: Floats, steps: int) -> Floats:
        """The bonus on normalised action values after so many tries, shape (S, A)."""
        scale = 7.0 * math.log(5.0 * tries.size * steps / self.delta) if self.scale is None else self.scale
        return scale / np.sqrt(np.maximum(tries, 1))

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `BonusStrategy`."""
        steps = task.budget or self.steps

        def bonus(tries: Floats) -> Floats:
            return self.bonus(tries, steps) / (1.0 - task.gamma)

        return BonusStrategy(world, task, bonus, self.growth, falling=True)
