"""A total of samples for a whole exploration, shared out over its rounds and never exceeded.

A round measures where its policy goes, then learns. What a measurement costs is known only afterwards (walks have
random lengths, and later rounds roll in longer), so learning is what gives way: after each measurement, what is left is
shared evenly among the rounds to come, less what their measurements will cost at today's price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.explorers.checkpoint import Remembers
from curious_explorer.explorers.visits import OccupancyVisits
from curious_explorer.learners.optimizer import Optimizer, OptimizerResult, Reward
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import KnownPolicy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import World

SAMPLES_A_ROUND = 50_000
"""What a round of a continuous problem likes to have: on MountainCar, 300,000 samples in six rounds."""
FEWEST_ROUNDS, MOST_ROUNDS = 4, 20
FEWEST_VISITS, MOST_VISITS = 10, 500
SHARE_FOR_VISITS = 0.25
STEPS_A_VISIT = 6.0
"""How long a walk is by expectation, in units of 1 / (1 - gamma): as far as the discount reaches, after a roll-in."""
DEARER = 1.25
"""Later rounds roll in through more policies, so their visits cost more than today's."""
FEW_WALKS = 5
"""As many must be affordable in every round."""


@dataclass(frozen=True)
class Spending:
    """How a total is shared out.

    Args:
        samples: the most steps that the exploration may take.
        rounds: how many rounds share them.
        visits: how many walks measure where a policy goes, if they can be afforded.
        gamma: the discount, which says how long walks are.
        lanes: how many environments are stepped together; all are stepped while one still walks.
    """

    samples: int
    rounds: int
    visits: int
    gamma: float
    lanes: int = 1

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        for name in ("samples", "rounds", "visits", "lanes"):
            check_count(getattr(self, name), name, least=1)
        least = 2 * self.rounds * self.price_of(FEW_WALKS)
        if self.samples < least:
            raise ValueError(
                f"{self.samples:,} samples are too few for {self.rounds} rounds at gamma {self.gamma:g}; expected at "
                f"least {least:,}: give more samples, fewer rounds, or a smaller gamma"
            )

    @staticmethod
    def plan(
        samples: int, gamma: float, *, rounds: int | None = None, visits: int | None = None, lanes: int = 1
    ) -> Spending:
        """A sharing out with sensible numbers where none are given."""
        check_count(samples, "samples", least=1)
        check_gamma(gamma)
        if rounds is None:
            rounds = min(max(round(samples / SAMPLES_A_ROUND), FEWEST_ROUNDS), MOST_ROUNDS)
        if visits is None:
            check_count(rounds, "rounds", least=1)
            afforded = SHARE_FOR_VISITS * samples * (1.0 - gamma) / (STEPS_A_VISIT * rounds)
            visits = min(max(int(afforded), FEWEST_VISITS), MOST_VISITS)
        return Spending(samples, rounds, visits, gamma, lanes)

    @property
    def learning_of_a_round(self) -> float:
        """About how many steps a round learns with."""
        visited = self.price_of(self.visits)
        return max(self.samples / self.rounds - visited, 1.0)

    def price_of(self, walks: int) -> int:
        """About what so many walks cost."""
        return math.ceil(max(walks, self.lanes) * STEPS_A_VISIT / (1.0 - self.gamma))

    def for_visits(self, left: int, number: int) -> int:
        """What round ``number`` may spend on visits, when so much is left: half of its part, so that it can learn."""
        return max(1, left // (2 * (self.rounds - number)))

    def for_learning(self, left: int, number: int, visited_for: int) -> int:
        """What round ``number`` may learn with, when its visits have cost ``visited_for`` and so much is left."""
        to_come = self.rounds - number - 1
        visits_to_come = max(DEARER * visited_for, self.price_of(FEW_WALKS))
        return max(0, math.floor((left - to_come * visits_to_come) / (to_come + 1)))


@dataclass(frozen=True)
class ThriftyVisits:
    """Walks as many times as planned, or fewer where the total would not suffice; counts as `OccupancyVisits` does."""

    spending: Spending

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paid", [0])  # not a field: settings are compared, what a round cost is not

    @property
    def paid(self) -> int:
        """What the last measurement cost."""
        last: int = self._paid[0]  # type: ignore[attr-defined]
        return last

    def __call__(
        self, world: World, policy: KnownPolicy, reset: ResetModel | None, occupancy: Floats | None, gamma: float
    ) -> Floats:
        """The share of visits of each state."""
        before, number = world.samples, 0 if reset is None else len(reset.policies)
        most = self.spending.for_visits(self.spending.samples - before, number)
        visited = OccupancyVisits(self.spending.visits, most)(world, policy, reset, occupancy, gamma)
        self._paid[0] = world.samples - before  # type: ignore[attr-defined]
        return visited


@dataclass(frozen=True)
class ThriftyLearning:
    """An optimizer that is given, in each round, that round's part of the total; its memory is the optimizer's own."""

    optimizer: Optimizer
    visits: ThriftyVisits

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
    ) -> OptimizerResult:
        """Learn within this round's part."""
        spending = self.visits.spending
        assert isinstance(reset, ResetModel)
        number = len(reset.policies) - 1  # round n learns from the resets of pi_0, ..., pi_n
        left = spending.samples - world.samples
        if left < 1:
            raise ValueError(f"all of the {spending.samples:,} samples are spent before round {number} could learn")
        part = min(max(1, spending.for_learning(left, number, self.visits.paid)), left)
        return self.optimizer(world, reset, gamma=gamma, reward=reward, budget=part)

    def memory(self) -> dict[str, NDArray[Any]]:
        """What the optimizer remembers."""
        return self.optimizer.memory() if isinstance(self.optimizer, Remembers) else {}

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Let the optimizer remember this instead."""
        if isinstance(self.optimizer, Remembers):
            self.optimizer.recall(memory)
