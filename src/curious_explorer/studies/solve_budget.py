"""How a run of `solve` shares out its samples: what each stage may take, evaluations included."""

from __future__ import annotations

from typing import NamedTuple

LOOK_SHARE, LEAST_LOOK, MOST_LOOK = 0.02, 200, 2_000
PLAIN_SHARE, LEAST_PLAIN, MOST_PLAIN = 0.05, 2_048, 25_000
"""What a plain learner is given to show that it meets rewards by itself."""
PLAIN_MOST = 0.5
"""The most that it gets before anything is explored, where it is on its way to what the registration asks for."""
EXPLORE_SHARE = 0.85
"""The most of what is left that exploring takes, if it meets no reward before."""
AFTER_REWARD, LEAST_AFTER_SHARE = 0.5, 0.1
"""How long exploring goes on after the first reward: so many times what that took, and a share of all samples more. A
small reward beside the start is not what a task is about. Where rewards come nearly everywhere, that share alone."""
PIECES, LEAST_PIECE = 40, 500
"""Exploring goes in pieces of so large a share of all samples; after each it is asked whether that is enough."""
MEASURING_SHARE = 0.01
"""What it takes of all samples to measure what a way to go on has come to, unless episodes are longer."""
CHOOSING_EPISODES, CHOOSING_SHARE = 60, 0.1
"""What is left for comparing agents in the end: so many episodes, and the most of what is left that this may take."""
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

    def trials_with_evaluations(self, times: int) -> int:
        """The same, so many times, with the evaluations before and after each."""
        return times * self.trial + (times + 1) * self.evaluations[0] * self.longest

    @property
    def most_trials(self) -> int:
        """The most that it is given before anything is explored."""
        return int(PLAIN_MOST * self.samples)

    @property
    def piece(self) -> int:
        """Exploring is asked after so many samples whether it is enough."""
        return max(LEAST_PIECE, self.samples // PIECES)

    def explored(self, looked: int, first_reward: int | None, left: int, *, often: bool) -> int:
        """How many of so many samples are for exploring, of which finding the cells took the first.

        ``often``: where rewards come nearly everywhere.
        """
        most, after = int(EXPLORE_SHARE * left), int(LEAST_AFTER_SHARE * self.samples)
        if often:
            return min(most, looked + after)
        return most if first_reward is None else min(most, int((1.0 + AFTER_REWARD) * first_reward) + after)

    @property
    def measuring(self) -> int:
        """Steps by which it is measured what a way to go on has come to."""
        return int(MEASURING_SHARE * self.samples)

    @property
    def evaluations(self) -> tuple[int, int]:
        """Episodes of an evaluation, and samples between two of them."""
        affordable = self.samples // (EVALUATIONS * EVALUATION_SHARE * self.longest)
        episodes = min(max(affordable, FEWEST_EVALUATED), MOST_EVALUATED)
        return episodes, max(LEAST_PLAIN, self.samples // EVALUATIONS, EVALUATION_SHARE * episodes * self.longest)

    @property
    def least_share(self) -> int:
        """The least that is worth going on with: an evaluation before and after, and as much to learn from."""
        return max(LEAST_PLAIN, 4 * self.evaluations[0] * self.longest)

    def for_learning(self, left: int) -> int:
        """What of so many samples is left for learning, with evaluations, if candidates are to be compared."""
        return left - self.choosing(left)

    def choosing(self, left: int) -> int:
        """What of so many samples is for comparing candidates in the end."""
        return int(min(CHOOSING_SHARE * left, CHOOSING_EPISODES * self.longest))

    def learned_from(self, given: int, interval: int) -> int:
        """How many of so many samples are learned from, if evaluations are to fit beside."""
        evaluation = self.evaluations[0] * self.longest
        left = given - evaluation  # that of the beginning
        return max(1, left - -(-left // (interval + evaluation)) * evaluation)
