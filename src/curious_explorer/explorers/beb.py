"""BEB: the mean of a Bayesian's belief, with a bonus beta / (1 + n) on what a pair pays."""

from __future__ import annotations

from dataclasses import dataclass

from curious_explorer.arrays import Floats
from curious_explorer.explorers.bonuses import PRIOR_TRIES, BonusStrategy
from curious_explorer.explorers.model_based_explorer import ModelBasedExplorer, Strategy
from curious_explorer.learners.optimizer import Task
from curious_explorer.worlds.world import World


@dataclass(frozen=True, kw_only=True)
class BEB(ModelBasedExplorer):
    """Bayesian exploration bonus (Kolter and Ng 2009): plan on the posterior mean, with beta / (1 + n) on top.

    The prior of each row is Dirichlet(1/S), worth one try in all, and n counts it, as published. Rewards, which the
    paper takes to be known, are the mean of what was seen and zero before that. BEB aims at what is best for a
    Bayesian, and may stop looking before the optimum is found.
    """

    beta: float | None = 5.0
    """Practical: 5, in the unit of one step's reward. None takes the published one, 2 / (1 - gamma)^2 (2 H^2 with
    1 / (1 - gamma) for the horizon)."""
    growth: float = 0.1
    """Plan again when some pair was tried this much more often; 0 as published, after every step."""

    def bonus(self, tries: Floats, gamma: float) -> Floats:
        """The bonus after so many tries, beside the one that the prior is worth, shape (S, A)."""
        beta = 2.0 / (1.0 - gamma) ** 2 if self.beta is None else self.beta
        return beta / (1.0 + PRIOR_TRIES + tries)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `BonusStrategy`."""
        return BonusStrategy(world, task, lambda tries: self.bonus(tries, task.gamma), self.growth, bayesian=True)
