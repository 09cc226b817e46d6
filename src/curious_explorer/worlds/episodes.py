"""What a world is asked when it runs a batch of episodes, and what such a batch leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Integers
from curious_explorer.validation import check_count, check_finite, check_gamma
from curious_explorer.worlds.roll_in import RollIn

COMBINATIONS = ("replace", "max")
"""How a given reward goes together with the world's own."""


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward to learn for in place of the world's own, or together with it.

    Args:
        table: shape (S, A); a terminal state pays its row for ever.
        combine: "replace" pays the table alone, "max" the larger of the table and the world's own reward.
    """

    table: Floats
    combine: str = "replace"

    @staticmethod
    def of_states(values: ArrayLike, num_actions: int, combine: str = "replace") -> Reward:
        """A reward that depends on the state alone, shape (S,)."""
        by_state = np.asarray(values, dtype=np.float64)
        return Reward(np.repeat(by_state[:, None], num_actions, axis=1), combine)


def check_reward(reward: Reward | None, shape: tuple[int, int]) -> Reward | None:
    """A reward with a finite table of this shape (S, A), or None."""
    if reward is None:
        return None
    if reward.combine not in COMBINATIONS:
        raise ValueError(f"combine is {reward.combine!r}, expected one of {', '.join(map(repr, COMBINATIONS))}")
    return Reward(check_finite(reward.table, shape, "the reward"), reward.combine)


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeBatch:
    """Which episodes to run and what to add up about them; checked here, once for every world."""

    episodes: int
    horizon: int
    """After how many steps an episode is cut off."""
    gamma: float
    """The discount of returns and advantages."""
    reset: RollIn | None = None
    """Where episodes begin; the start distribution if None. Roll-ins that end in a terminal state are repeated; their
    steps are counted."""
    reward: Reward | None = None
    """In place of the world's own."""
    critic: Floats | None = None
    """Predicted values (not normalised), shape (S,); zero if None."""
    trace: float = 1.0
    """lambda of generalised advantage estimation."""
    weight_decay: float = 1.0
    """Step t of an episode enters the sums with this factor to the power t."""
    credited: int | None = None
    """How many steps of an episode enter the sums; all if None."""
    max_samples: int | None = None
    """The number of steps, roll-ins included, that may not be exceeded."""
    record: bool = False
    """Whether to return which transitions were seen."""

    def __post_init__(self) -> None:
        check_count(self.episodes, "episodes")
        check_count(self.horizon, "horizon", least=1)
        check_gamma(self.gamma)
        for name, count in (("credited", self.credited), ("max_samples", self.max_samples)):
            if count is not None:
                check_count(count, name)
        for name, factor in (("trace", self.trace), ("weight_decay", self.weight_decay)):
            if not 0.0 <= factor <= 1.0:
                raise ValueError(f"{name} is {factor!r}, expected a number in [0, 1]")

    def values(self, num_states: int) -> Floats:
        """The critic's values, shape (S,)."""
        return np.zeros(num_states) if self.critic is None else check_finite(self.critic, (num_states,), "critic")


class TransitionCounts(NamedTuple):
    """Which transitions were seen, how often, and what they paid; five columns of equal length."""

    state: Integers
    action: Integers
    next_state: Integers
    times: Integers
    reward: Floats


class EpisodeStatistics(NamedTuple):
    """What a batch of episodes leaves behind: sums over steps, not trajectories.

    Divide `advantage_sum` by `weight` for the mean advantage of a pair; `weight` counts steps unless weights decay.
    """

    advantage_sum: Floats  # (S, A)
    weight: Floats  # (S, A)
    target_sum: Floats  # (S,): what the critic should predict, summed over the steps taken in a state
    occupancy: Floats  # (S,): discounted visits, one in all for each episode; the end of an episode keeps what is left
    returns: Floats  # (E,): the discounted return of each episode, not normalised
    lengths: Integers  # (E,)
    samples: int  # every step taken, roll-ins included
    seen: TransitionCounts | None = None  # of the episodes, not of their roll-ins; only where asked for
    ended: Integers | None = None  # how many of the times of each of those the episode ended, where the world tells


def merge_transitions(parts: list[TransitionCounts], num_states: int, num_actions: int) -> TransitionCounts:
    """One table of transitions from several: counts added up, rewards averaged."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return TransitionCounts(none, none, none, none, np.zeros(0))
    state, action, next_state, times, reward = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    codes = (state * num_actions + action) * num_states + next_state
    distinct, place = np.unique(codes, return_inverse=True)
    count = np.bincount(place, weights=times, minlength=len(distinct)).astype(np.int64)
    earned = np.bincount(place, weights=times * reward, minlength=len(distinct))
    pair, next_state = np.divmod(distinct, num_states)
    state, action = np.divmod(pair, num_actions)
    return TransitionCounts(state, action, next_state, count, earned / count)
