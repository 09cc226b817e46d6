"""What MBIE-EB, BEB and UCBVI share: the model as it was seen, and a bonus for pairs that were tried little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.model_based_explorer import NextPolicy, growth_quota
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem
from curious_explorer.worlds.world import World

PRIOR_TRIES = 1.0
"""Dirichlet(1/S) counts as one try, spread over all states."""


class BonusStrategy:
    """The best policy of the model that was seen, when tries that are few pay a bonus.

    Args:
        world: what is explored.
        task: what for.
        bonus: from tries (S, A) to what they add to rewards.
        growth: plan again when a pair was tried this much more often.
        bayesian: whether to plan on the mean of a Bayesian's belief; otherwise pairs never tried are worth the most.
        falling: whether action values never rise from plan to plan, and plans are kept to the end of the episode.
    """

    def __init__(
        self,
        world: World,
        task: Task,
        bonus: Callable[[Floats], Floats],
        growth: float,
        *,
        bayesian: bool = False,
        falling: bool = False,
    ) -> None:
        self._task, self._bonus, self._growth = task, bonus, growth
        self._bayesian, self._falling = bayesian, falling
        self._values = np.ones(world.num_states)
        self.cap: Floats = np.ones((world.num_states, world.num_actions))
        """What action values cannot exceed, shape (S, A)."""

    def __call__(self, model: CountedModel, samples: int) -> NextPolicy:
        """Plan with bonuses."""
        reward, tries = self._task.reward, model.tries.astype(np.float64)
        if self._bayesian:
            settled, prior = model.settled(reward), PRIOR_TRIES / (PRIOR_TRIES + tries)
        else:
            settled, prior = model.settled(reward, model.tries == 0, worth=1.0), None
        rewards = model.rewards(reward) + self._bonus(tries)
        task = problem(model, rewards, settled, prior=prior, cap=self.cap)
        now = plan(task, self._task.gamma, self._values)
        if self._falling:
            self.cap = np.minimum(self.cap, now.q)
        return NextPolicy(now.policy, growth_quota(model, self._growth), finish_episode=self._falling)
