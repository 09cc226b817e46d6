"""R-MAX: pairs tried fewer than m times are worth the most that can be earned, so the agent goes there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.model_based_explorer import (
    MOST_TRIES,
    NEVER,
    ModelBasedExplorer,
    NextPolicy,
    Strategy,
)
from curious_explorer.explorers.optimizing_explorer import check_positive
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem
from curious_explorer.validation import check_count
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "epsilon", "delta")
        if self.known_after is not None:
            check_count(self.known_after, "known_after", least=1)

    def tries_needed(self, num_states: int, num_actions: int, gamma: float) -> int:
        """How many tries make a pair known in a world of this size."""
        if self.known_after is not None:
            return self.known_after
        scale = (self.epsilon * (1.0 - gamma) ** 2) ** 2
        needed = (num_states + math.log(num_states * num_actions / self.delta)) / scale
        return math.ceil(min(needed, MOST_TRIES))

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""
        return _RMaxStrategy(task, self.tries_needed(world.num_states, world.num_actions, task.gamma))


class _RMaxStrategy:
    def __init__(self, task: Task, known_after: int) -> None:
        self._task, self._known_after = task, known_after
        self._values: Floats | None = None

    def next_policy(self, model: CountedModel, samples: int) -> NextPolicy:
        """Go where something is unknown, or to what pays."""
        if self._values is None:
            self._values = np.ones(model.num_states)
        unknown = model.tries < self._known_after
        settled = model.settled(self._task.reward, unknown, worth=1.0)
        task = problem(model, model.rewards(self._task.reward), settled)
        policy = plan(task, self._task.gamma, self._values).policy
        return NextPolicy(policy, np.where(unknown, self._known_after - model.tries, NEVER))
