"""What MBIE and UCRL2 share: planning on the best model that confidence intervals allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.model_based_explorer import NextPolicy, Strategy, growth_quota
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem
from curious_explorer.worlds.world import World

RadiiRule = Callable[[Floats, int], tuple[Floats, Floats]]
"""From tries (S, A) and samples so far to the radii of rewards and of transitions."""


def interval_strategy(world: World, task: Task, radii: RadiiRule, growth: float) -> Strategy:
    """The best policy of the best model within the intervals; a pair never tried pays one and leads to the best state.

    It is planned anew when a pair was tried ``growth`` times more often.
    """
    values = np.ones(world.num_states)
    reward_known = task.reward is not None and task.reward.combine == "replace"

    def next_policy(model: CountedModel, samples: int) -> NextPolicy:
        reward_radius, radius = radii(model.tries.astype(np.float64), samples)
        rewards = model.rewards(task.reward)
        if not reward_known:
            rewards = np.where(model.tries > 0, np.minimum(1.0, rewards + reward_radius), 1.0)
        policy = plan(problem(model, rewards, model.settled(task.reward), radius=radius), task.gamma, values).policy
        return NextPolicy(policy, growth_quota(model, growth))

    return next_policy
