"""A total of samples for a whole exploration, shared out over its rounds and never exceeded.

A round measures where its policy goes, then learns. What a measurement costs is known only afterwards (walks have
random lengths, and later rounds roll in longer), so learning is what gives way: after each measurement, what is left is
shared evenly among the rounds to come, less what their measurements will cost, estimated by the last one's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from curious_explorer.explorers.visits import Visits, limited
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.world import World

SAMPLES_A_ROUND = 50_000
"""What a round of a continuous problem likes to have: on MountainCar, 300,000 samples in six rounds."""
FEWEST_ROUNDS, MOST_ROUNDS = 4, 20
FEWEST_VISITS, MOST_VISITS = 10, 500
SHARE_FOR_VISITS = 0.25
STEPS_A_VISIT = 6.0
"""How long a walk is by expectation, in units of 1 / (1 - gamma): as far as the discount reaches, after a roll-in."""
COST_GROWTH = 1.25
"""Later rounds roll in through more policies, so their visits cost more than the last ones."""
FEW_WALKS = 5
"""As many must be affordable in every round."""


@dataclass(frozen=True)
class SampleBudget:
    """How a total is shared out."""

    samples: int
    """The most steps that the exploration may take."""
    rounds: int
    """How many rounds share them."""
    visits: int
    """How many walks measure where a policy goes, if they can be afforded."""
    gamma: float
    """The discount, which says how long walks are."""
    num_envs: int = 1
    """How many environments are stepped together; all are stepped while one still walks."""

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        for name in ("samples", "rounds", "visits", "num_envs"):
            check_count(getattr(self, name), name, least=1)
        least = 2 * self.rounds * self.cost_of(FEW_WALKS)
        if self.samples < least:
            raise ValueError(
                f"{self.samples:,} samples are too few for {self.rounds} rounds at gamma {self.gamma:g}; expected at "
                f"least {least:,}: give more samples, fewer rounds, or a smaller gamma"
            )

    @staticmethod
    def plan(
        samples: int, gamma: float, *, rounds: int | None = None, visits: int | None = None, num_envs: int = 1
    ) -> SampleBudget:
        """A budget with sensible numbers of rounds and visits where none are given."""
        check_count(samples, "samples", least=1)
        check_gamma(gamma)
        if rounds is None:
            rounds = min(max(round(samples / SAMPLES_A_ROUND), FEWEST_ROUNDS), MOST_ROUNDS)
        if visits is None:
            check_count(rounds, "rounds", least=1)
            afforded = SHARE_FOR_VISITS * samples * (1.0 - gamma) / (STEPS_A_VISIT * rounds)
            visits = min(max(int(afforded), FEWEST_VISITS), MOST_VISITS)
        return SampleBudget(samples, rounds, visits, gamma, num_envs)

    @property
    def learning_of_a_round(self) -> float:
        """About how many steps a round learns with."""
        visited = self.cost_of(self.visits)
        return max(self.samples / self.rounds - visited, 1.0)

    def cost_of(self, walks: int) -> int:
        """About what so many walks cost."""
        return math.ceil(max(walks, self.num_envs) * STEPS_A_VISIT / (1.0 - self.gamma))

    def for_visits(self, left: int, number: int) -> int:
        """What round ``number`` may spend on visits, when so much is left: half of its part, so that it can learn."""
        return max(1, left // (2 * (self.rounds - number)))

    def for_learning(self, left: int, number: int, visited_for: int) -> int:
        """What round ``number`` may learn with, when its visits have cost ``visited_for`` and so much is left."""
        if left < 1:
            raise ValueError(f"all of the {self.samples:,} samples are spent before round {number} could learn")
        to_come = self.rounds - number - 1
        visits_to_come = max(COST_GROWTH * visited_for, self.cost_of(FEW_WALKS))
        return max(1, math.floor((left - to_come * visits_to_come) / (to_come + 1)))


class SampleAccount:
    """What an exploration in progress has spent, and what its next step may cost; unlimited without a budget."""

    def __init__(self, world: World, budget: SampleBudget | None, *, spent: int) -> None:
        self._world, self._budget = world, budget
        self._before = world.samples - spent

    @property
    def spent(self) -> int:
        """Steps taken since the exploration began."""
        return self._world.samples - self._before

    def limit_visits(self, measure: Visits, number: int) -> Visits:
        """The way to measure D_n, limited to what round ``number`` may spend on it."""
        if self._budget is None:
            return measure
        return limited(measure, self._budget.for_visits(self._budget.samples - self.spent, number))

    def limit_learning(self, budget: int | None, number: int, visited_for: int) -> int | None:
        """What round ``number`` may learn with, when its visits have cost ``visited_for``; at most ``budget``."""
        if self._budget is None:
            return budget
        part = self._budget.for_learning(self._budget.samples - self.spent, number, visited_for)
        return part if budget is None else min(budget, part)
