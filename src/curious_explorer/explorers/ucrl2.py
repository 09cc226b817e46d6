"""UCRL2: the best model within confidence intervals that narrow with the steps, in epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.intervals import interval_strategy
from curious_explorer.explorers.model_based_explorer import ModelBasedExplorer, Strategy
from curious_explorer.learners.optimizer import Task
from curious_explorer.worlds.world import World


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

    def radii(self, tries: Floats, samples: int) -> tuple[Floats, Floats]:
        """The radii of rewards and of transitions, each (S, A)."""
        (num_states, num_actions), t = tries.shape, max(1, samples)
        n = np.maximum(1, tries)
        reward = self.scale * np.sqrt(7.0 * max(math.log(2.0 * tries.size * t / self.delta), 0.0) / (2.0 * n))
        transition = self.scale * np.sqrt(
            14.0 * num_states * max(math.log(2.0 * num_actions * t / self.delta), 0.0) / n
        )
        return reward, np.where(tries > 0, np.minimum(transition, 2.0), 2.0)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `interval_strategy`."""
        return interval_strategy(world, task, self.radii, growth=1.0)
