"""The plan on the counts of a run's exploration: what it does, what it promises, and what it achieves."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.agents import Agent, CellAgent
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.memory import agent_with_memory
from curious_explorer.models.best_ways import BestWays
from curious_explorer.models.growing_model import GrowingModel

LEAST_HORIZON, MOST_HORIZON = 100.0, 1_000.0


def discount_for(distance: float) -> float:
    """A discount that looks twice as far ahead as this, and within bounds."""
    return round(1.0 - 1.0 / min(max(LEAST_HORIZON, 2.0 * distance), MOST_HORIZON), 6)


class CountsPlan:
    """The best plan on what an exploration counted; what was never tried is worth the least that anything paid."""

    def __init__(self, exploration: Exploration) -> None:
        assert isinstance(exploration.model, GrowingModel)
        self._exploration, self._model = exploration, exploration.model
        self._counted = counted = self._model.counted()
        met, starts = np.arange(len(self._model)), counted.starts / max(1, int(counted.starts.sum()))
        ways = BestWays(counted, met, discount_for(1.0))
        distance = _from_starts(ways, starts)
        if discount_for(distance or 1.0) > discount_for(1.0):
            ways = BestWays(counted, met, discount_for(distance or 1.0))
            distance = _from_starts(ways, starts)
        self._ways, self._starts = ways, starts
        self.distance = distance
        """The steps from a start until half of what there is to earn is earned; None: nothing to earn is known."""

    def promises(self, steps: int) -> float:
        """The return of an episode of so many steps, if the world is as it was counted."""
        none = np.zeros(0, dtype=np.int64)
        return self._ways.expected(none, none, self._starts, steps)[1]

    @cached_property
    def table(self) -> Floats:
        """Probabilities of actions in every cell; all alike where nothing was tried."""
        assert self._exploration.discretisation is not None
        count = Discretisation.from_stored(self._exploration.discretisation).cells.count
        table = np.full((count, self._model.num_actions), 1.0 / self._model.num_actions)
        advised = self._ways.policy.any(axis=1)
        table[self._model.states[advised]] = self._ways.policy[advised]
        return table

    def agent(self, *, seed: int = 0, memory: int | None = None) -> Agent:
        """Who acts by it, on observations that remember so many earlier ones."""
        assert self._exploration.discretisation is not None
        discretisation = Discretisation.from_stored(self._exploration.discretisation)
        first = min((each for each in discretisation.action_set.choices if isinstance(each, int)), default=None)
        return agent_with_memory(CellAgent(self.table, discretisation, seed=seed), memory, first)


def _from_starts(ways: BestWays, starts: Floats) -> int | None:
    known = (starts > 0.0) & np.isfinite(ways.distance)
    return math.ceil(float(np.median(ways.distance[known]))) if known.any() else None
