"""MBIE and UCRL2: the best model that confidence intervals allow, found by value iteration that chooses it as well."""

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
class MBIE(ModelBasedExplorer):
    """Model-based interval estimation (Strehl and Littman 2008).

    After n tries a reward is within sqrt(ln(2 / d) / (2 n)) of its mean and a row of transitions within
    sqrt(2 (ln(2^S - 2) - ln d) / n) of its frequencies (L1), each with probability 1 - d, where d = delta / (2 S A m)
    shares the risk among all intervals that are ever used.
    """

    delta: float = 0.05
    """The risk that any interval misses (published: a parameter; 0.05 is our choice)."""
    tries: int = 1_000
    """m, the number of tries for which intervals are computed (published: a bound of the theory; only its logarithm
    counts)."""
    scale: float = 0.05
    """What the intervals are multiplied by: 1 as published. Practical: a twentieth, because with the published ones
    a row of 34 states is anything at all for its first 20 tries and half of it for 80. (The paper, too, chooses the
    factors before 1/sqrt(n) by hand in its experiments; from memory.)"""
    growth: float = 0.1
    """Plan again when some pair was tried this much more often; 0 as published, after every step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "delta", "scale")
        check_growth(self.growth)
        check_count(self.tries, "tries", least=1)

    def reward_radius(self, tries: Floats) -> Floats:
        """How far the mean reward may be off after so many tries, shape (S, A)."""
        risk = self.delta / (2.0 * tries.size * self.tries)
        return self.scale * np.sqrt(math.log(2.0 / risk) / (2.0 * np.maximum(tries, 1)))

    def transition_radius(self, tries: Floats) -> Floats:
        """How far frequencies may be off in L1 after so many tries, shape (S, A); 2 where there were none."""
        risk = self.delta / (2.0 * tries.size * self.tries)
        num_states = tries.shape[0]
        # ln(2^S - 2), also where 2^S overflows; there is nothing to be wrong about with one state.
        log_sets = num_states * math.log(2.0) + math.log1p(-(2.0 ** (1 - num_states))) if num_states > 1 else 0.0
        radius = self.scale * np.sqrt(2.0 * (log_sets - math.log(risk)) / np.maximum(tries, 1))
        return np.where(tries > 0, np.minimum(radius, 2.0), 2.0)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""

        def radii(tries: Floats, samples: int) -> tuple[Floats, Floats]:
            return self.reward_radius(tries), self.transition_radius(tries)

        return IntervalStrategy(task, radii, self.growth)


@dataclass(frozen=True, kw_only=True)
class UCRL2(ModelBasedExplorer):
    """UCRL2 (Jaksch, Ortner and Auer 2010), discounted: extended value iteration, epochs that end when a count doubles.

    After t steps and n tries of a pair, its reward is within sqrt(7 ln(2 S A t / delta) / (2 max(1, n))) of the mean
    and its transitions within sqrt(14 S ln(2 A t / delta) / max(1, n)) of the frequencies (L1).
    """

    delta: float = 0.05
    """The risk that any interval misses (published: a parameter)."""
    scale: float = 0.02
    """What both radii are multiplied by: 1 as published. Practical: a fiftieth. Published radii let a row of 34 states
    be anything at all until it was tried some 2,000 times."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "delta", "scale")

    def radii(self, tries: Floats, samples: int) -> tuple[Floats, Floats]:
        """The radii of rewards and of transitions, each (S, A)."""
        (num_states, num_actions), t = tries.shape, max(1, samples)
        n = np.maximum(1, tries)
        reward = self.scale * np.sqrt(7.0 * math.log(2.0 * tries.size * t / self.delta) / (2.0 * n))
        transition = self.scale * np.sqrt(14.0 * num_states * math.log(2.0 * num_actions * t / self.delta) / n)
        return reward, np.where(tries > 0, np.minimum(transition, 2.0), 2.0)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""
        return IntervalStrategy(task, self.radii, growth=1.0)


RadiiRule = Callable[[Floats, int], tuple[Floats, Floats]]
"""From tries (S, A) and samples so far to the radii of rewards and of transitions."""


class IntervalStrategy:
    """The best policy of the best model within the intervals."""

    def __init__(self, task: Task, radii: RadiiRule, growth: float) -> None:
        self._task, self._radii, self._growth = task, radii, growth
        self._values: Floats | None = None

    def directions(self, model: CountedModel, samples: int) -> Directions:
        """Plan on the best model that the intervals allow; a pair never tried pays one and leads to the best state."""
        if self._values is None:
            self._values = np.ones(model.num_states)
        reward_radius, radius = self._radii(model.tries.astype(np.float64), samples)
        rewards = model.rewards(self._task.reward)
        if self._task.reward is None or self._task.reward.combine != "replace":  # else it is known
            rewards = np.where(model.tries > 0, np.minimum(1.0, rewards + reward_radius), 1.0)
        task = problem(model, rewards, model.settled(self._task.reward), radius=radius)
        policy = plan(task, self._task.gamma, self._values).policy
        return Directions(policy, growth_quota(model, self._growth))
