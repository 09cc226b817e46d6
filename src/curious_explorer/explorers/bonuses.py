"""MBIE-EB, BEB and UCBVI: the model as it was seen, and a bonus for pairs that were tried little."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.model_based_explorer import (
    Directions,
    ModelBasedExplorer,
    Strategy,
    check_growth,
    check_positive,
    growth_quota,
)
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem
from curious_explorer.validation import check_count
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "delta", *([] if self.beta is None else ["beta"]))
        check_growth(self.growth)
        check_count(self.tries, "tries", least=1)

    def bonus(self, tries: Floats, gamma: float) -> Floats:
        """The bonus after so many tries, shape (S, A), added to the reward."""
        beta = self.beta
        if beta is None:
            beta = math.sqrt(0.5 * math.log(2.0 * tries.size * self.tries / self.delta)) / (1.0 - gamma)
        return beta / np.sqrt(np.maximum(tries, 1))

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""
        return BonusStrategy(task, lambda tries, samples: self.bonus(tries, task.gamma), self.growth)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, *([] if self.beta is None else ["beta"]))
        check_growth(self.growth)

    def bonus(self, tries: Floats, gamma: float) -> Floats:
        """The bonus after so many tries, beside the one that the prior is worth, shape (S, A)."""
        beta = 2.0 / (1.0 - gamma) ** 2 if self.beta is None else self.beta
        return beta / (1.0 + PRIOR_TRIES + tries)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""
        return BonusStrategy(task, lambda tries, samples: self.bonus(tries, task.gamma), self.growth, bayesian=True)


PRIOR_TRIES = 1.0
"""Dirichlet(1/S) counts as one try, spread over all states."""


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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "delta", *([] if self.scale is None else ["scale"]))
        check_growth(self.growth)

    def bonus(self, tries: Floats, steps: int) -> Floats:
        """The bonus on normalised action values after so many tries, shape (S, A)."""
        scale = 7.0 * math.log(5.0 * tries.size * steps / self.delta) if self.scale is None else self.scale
        return scale / np.sqrt(np.maximum(tries, 1))

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""
        steps = task.budget or self.steps

        def bonus(tries: Floats, samples: int) -> Floats:
            return self.bonus(tries, steps) / (1.0 - task.gamma)

        return BonusStrategy(task, bonus, self.growth, falling=True)


class BonusStrategy:
    """The best policy of the model that was seen, when tries that are few pay a bonus."""

    def __init__(
        self,
        task: Task,
        bonus: Callable[[Floats, int], Floats],
        growth: float,
        *,
        bayesian: bool = False,
        falling: bool = False,
    ) -> None:
        self._task, self._bonus, self._growth = task, bonus, growth
        self._bayesian, self._falling = bayesian, falling
        self._values: Floats | None = None
        self.cap: Floats = np.zeros((0, 0))
        """What action values cannot exceed, shape (S, A)."""

    def directions(self, model: CountedModel, samples: int) -> Directions:
        """Plan with bonuses."""
        if self._values is None:
            self._values, self.cap = np.ones(model.num_states), np.ones(model.shape)
        tries = model.tries.astype(np.float64)
        rewards = model.rewards(self._task.reward) + self._bonus(tries, samples)
        if self._bayesian:
            settled = model.settled(self._task.reward)
            prior = PRIOR_TRIES / (PRIOR_TRIES + tries)
        else:
            settled = model.settled(self._task.reward, model.tries == 0, worth=1.0)
            prior = None
        now = plan(
            problem(model, rewards, settled, prior=prior, cap=self.cap),
            self._task.gamma,
            self._values,
        )
        if self._falling:
            self.cap = np.minimum(self.cap, now.q)
        return Directions(now.policy, growth_quota(model, self._growth), to_the_end=self._falling)
