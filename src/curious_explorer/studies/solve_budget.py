"""How a run of `solve` shares out its samples: what each stage may take, evaluations included."""

from __future__ import annotations

from typing import NamedTuple

LOOK_SHARE, LEAST_LOOK, MOST_LOOK = 0.02, 200, 2_000
PLAIN_SHARE, LEAST_PLAIN, MOST_PLAIN = 0.05, 2_048, 25_000
"""What a plain learner is given to show that it meets rewards by itself."""
PLAIN_TRIAL = 0.3
"""Where plain learning goes on, the share of all samples after which it is asked whether it got anywhere."""
EXPLORE_SHARE = 0.85
"""The most of what is left that exploring takes, if it meets no reward before."""
LEAST_AFTER_SHARE = 0.03
"""How long exploring goes on at least after the first reward, as a share of all samples: a small reward beside the
start is not what a task is about."""
CANDIDATES, CHOOSING_SHARE, CHOOSING_EPISODES = 5, 0.1, 10
"""How many agents are compared in the end, the most of what is left that this may take, and by how many episodes."""
EVALUATIONS, EVALUATION_SHARE = 20, 5
"""Evaluations take at most one step for so many of learning."""
MOST_EVALUATED, FEWEST_EVALUATED = 10, 3


class Budget(NamedTuple):
    """The samples of a run, and how long its episodes may be."""

    samples: int
    """Of all stages together."""
    longest: int = 0
    """The most steps of an episode; nothing before the look has told."""

    @property
    def look(self) -> int:
        """Steps of the look."""
        return int(min(max(LOOK_SHARE * self.samples, LEAST_LOOK), MOST_LOOK))

    @property
    def trial(self) -> int:
        """What a plain learner is given to show that it meets rewards by itself."""
        return int(min(max(PLAIN_SHARE * self.samples, LEAST_PLAIN), MOST_PLAIN))

    @property
    def least_after_reward(self) -> int:
        """How long exploring goes on at least after the first reward."""
        return int(LEAST_AFTER_SHARE * self.samples)

    @property
    def evaluations(self) -> tuple[int, int]:
        """Episodes of an evaluation, and samples between two of them."""
        affordable = self.samples // (EVALUATIONS * EVALUATION_SHARE * self.longest)
        episodes = min(max(affordable, FEWEST_EVALUATED), MOST_EVALUATED)
        return episodes, max(LEAST_PLAIN, self.samples // EVALUATIONS, EVALUATION_SHARE * episodes * self.longest)

    def for_learning(self, left: int) -> int:
        """What of so many samples is left for learning, with evaluations, if candidates are to be compared."""
        return left - int(min(CHOOSING_SHARE * left, CANDIDATES * CHOOSING_EPISODES * self.longest))

    def learned_from(self, given: int) -> int:
        """How many of so many samples are learned from, if evaluations and the choice in the end are to fit beside."""
        episodes, interval = self.evaluations
        evaluation = episodes * self.longest
        left = self.for_learning(given) - evaluation  # that of the beginning
        return max(1, left - -(-left // (interval + evaluation)) * evaluation)

    def episodes_each(self, left: int, candidates: int) -> int:
        """By how many episodes each of so many agents is compared."""
        return min(left // (candidates * self.longest), CHOOSING_EPISODES)
