"""R-MAX: pairs tried fewer than m times are worth the most that can be earned, so the agent goes there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.explorers.model_based_explorer import MOST_TRIES, NEVER, ModelBasedExplorer, NextPolicy, Strategy
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem
from curious_explorer.worlds.world import World


@dataclass(frozen=True, kw_only=True)
class RMax(ModelBasedExplorer):
    """R-MAX (Brafman and Tennenholtz 2002): pairs tried fewer than m times are worth the most that can be earned.

    Plans again whenever a pair becomes known. Known pairs are planned with all their tries, not only the first m.
    """

    known_after: int | None = 5
    """m. Practical: 5, with which the lock of depth 20 takes some 8,300 steps. 1 is enough where nothing is random, and
    where chance decides a lot 5 are not (RiverSwim at gamma 0.95, 20 seeds, within 1% of the best: 4 with m = 5,
    14 with 10, all with 30). None takes the order of the published one (Strehl, Li and Littman 2009, from memory; its
    constant is not given there, and is one here): (S + ln(S A / delta)) / (epsilon^2 (1 - gamma)^4) tries."""
    epsilon: float = 0.1
    """Accuracy for the published m, of values that are not normalised."""
    delta: float = 0.05
    """Risk for the published m."""

    def tries_needed(self, num_states: int, num_actions: int, gamma: float) -> int:
        """How many tries make a pair known in a world of this size."""
        if self.known_after is not None:
            return self.known_after
        scale = (self.epsilon * (1.0 - gamma) ** 2) ** 2
        needed = (num_states + math.log(num_states * num_actions / self.delta)) / scale
        return math.ceil(min(needed, MOST_TRIES))

    def strategy(self, world: World, task: Task) -> Strategy:
        """Go where something is unknown, or to what pays."""
        known_after = self.tries_needed(world.num_states, world.num_actions, task.gamma)
        values = np.ones(world.num_states)

        def next_policy(model: CountedModel, samples: int) -> NextPolicy:
            unknown = model.tries < known_after
            settled = model.settled(task.reward, unknown, worth=1.0)
            policy = plan(problem(model, model.rewards(task.reward), settled), task.gamma, values).policy
            return NextPolicy(policy, np.where(unknown, known_after - model.tries, NEVER))

        return next_policy
