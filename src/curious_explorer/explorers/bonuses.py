"""What MBIE-EB, BEB and UCBVI share: the model as it was seen, and a bonus for pairs that were tried little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.model_based_explorer import (
    NextPolicy,
    growth_quota,
)
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem

PRIOR_TRIES = 1.0
"""Dirichlet(1/S) counts as one try, spread over all states."""


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

    def next_policy(self, model: CountedModel, samples: int) -> NextPolicy:
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
        return NextPolicy(now.policy, growth_quota(model, self._growth), finish_episode=self._falling)
