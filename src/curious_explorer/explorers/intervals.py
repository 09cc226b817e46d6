"""What MBIE and UCRL2 share: planning on the best model that confidence intervals allow."""

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

RadiiRule = Callable[[Floats, int], tuple[Floats, Floats]]
"""From tries (S, A) and samples so far to the radii of rewards and of transitions."""


class IntervalStrategy:
    """The best policy of the best model within the intervals."""

    def __init__(self, task: Task, radii: RadiiRule, growth: float) -> None:
        self._task, self._radii, self._growth = task, radii, growth
        self._values: Floats | None = None

    def next_policy(self, model: CountedModel, samples: int) -> NextPolicy:
        """Plan on the best model that the intervals allow; a pair never tried pays one and leads to the best state."""
        if self._values is None:
            self._values = np.ones(model.num_states)
        reward_radius, radius = self._radii(model.tries.astype(np.float64), samples)
        rewards = model.rewards(self._task.reward)
        if self._task.reward is None or self._task.reward.combine != "replace":  # else it is known
            rewards = np.where(model.tries > 0, np.minimum(1.0, rewards + reward_radius), 1.0)
        task = problem(model, rewards, model.settled(self._task.reward), radius=radius)
        policy = plan(task, self._task.gamma, self._values).policy
        return NextPolicy(policy, growth_quota(model, self._growth))
