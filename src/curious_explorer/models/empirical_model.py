"""What a model-based explorer knows of its world: how often each transition was seen, and what it paid.

Kept in compressed rows (row ``s * A + a`` for each pair), so that nothing allocates S x S. `add` is cheap where nothing
new was seen, which is the ordinary case. Other than `optimizers.empirical_model`, whose `Experience` is made from
batches of episodes and solved exactly, this one is fed by `World.follow`, which says where episodes ended, and is
planned on thousands of times in a run: plans start from the last values and come from one kernel (`planning`).
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.learners.optimizer import Reward
from curious_explorer.worlds.world import TransitionCounts


class EmpiricalModel:
    """Counts N(s, a, s') and sums of rewards, of a world with S states and A actions."""

    def __init__(self, num_states: int, num_actions: int) -> None:
        self.num_states, self.num_actions = num_states, num_actions
        self.tries: Integers = np.zeros((num_states, num_actions), dtype=np.int64)
        """How often each pair was tried, shape (S, A)."""
        self.terminal: Mask = np.zeros(num_states, dtype=np.bool_)
        """The states in which an episode is known to end, shape (S,)."""
        self.end_rewards: Floats = np.zeros(num_states)
        """What those go on paying at every step, shape (S,)."""
        self.row_start: Integers = np.zeros(num_states * num_actions + 1, dtype=np.int64)
        """Where the entries of each pair begin in the four below, shape (S * A + 1,)."""
        self.pairs: Integers = np.zeros(0, dtype=np.int64)
        """The pair ``s * A + a`` that each entry belongs to."""
        self.next_states: Integers = np.zeros(0, dtype=np.int64)
        self.times: Integers = np.zeros(0, dtype=np.int64)
        self.paid: Floats = np.zeros(0)
        """The sum of what each transition paid."""
        self._codes: Integers = np.zeros(0, dtype=np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return self.num_states, self.num_actions

    def add(self, seen: TransitionCounts, ends: Integers, end_rewards: Floats) -> Integers:
        """Learn from what was seen; returns how often each pair was tried, shape (S, A)."""
        tried = np.zeros(self.shape, dtype=np.int64)
        pairs = seen.state * self.num_actions + seen.action
        np.add.at(tried.reshape(-1), pairs, seen.times)
        self.tries += tried
        codes = pairs * self.num_states + seen.next_state
        places = np.searchsorted(self._codes, codes)
        if (places == len(self._codes)).any() or (self._codes[places] != codes).any():
            self._make_room(codes)
            places = np.searchsorted(self._codes, codes)
        np.add.at(self.times, places, seen.times)
        np.add.at(self.paid, places, seen.times * seen.reward)
        ended = ends > 0
        self.terminal |= ended
        self.end_rewards[ended] = end_rewards[ended]
        return tried

    def _make_room(self, codes: Integers) -> None:
        """Entries for transitions never seen before, in order."""
        new = np.setdiff1d(codes, self._codes)
        at = np.searchsorted(self._codes, new)
        self._codes = np.insert(self._codes, at, new)
        self.times = np.insert(self.times, at, 0)
        self.paid = np.insert(self.paid, at, 0.0)
        self.pairs, self.next_states = np.divmod(self._codes, self.num_states)
        self.row_start = np.searchsorted(self.pairs, np.arange(self.num_states * self.num_actions + 1))

    def chances(self) -> Floats:
        """The frequency of each entry among the tries of its pair."""
        chances: Floats = self.times / self.tries.reshape(-1)[self.pairs]
        return chances

    def rewards(self, reward: Reward | None) -> Floats:
        """What each pair pays on average, as far as it is known, shape (S, A); zero where it was never tried.

        A reward that replaces the world's own is known everywhere.
        """
        if reward is not None and reward.combine == "replace":
            return reward.table.copy()
        paid = self.paid
        if reward is not None:
            paid = np.maximum(paid, self.times * reward.table.reshape(-1)[self.pairs])
        total = np.bincount(self.pairs, weights=paid, minlength=self.tries.size)
        mean: Floats = total.reshape(self.shape) / np.maximum(self.tries, 1)
        return mean

    def settled(self, reward: Reward | None, unknown: Mask | None = None, worth: float = 0.0) -> Floats:
        """Values of pairs that need no planning, shape (S, A), and NaN for all others.

        A terminal state is worth what it goes on paying, each ``unknown`` pair is taken to be worth ``worth``.
        """
        values = np.full(self.shape, np.nan)
        if unknown is not None:
            values[unknown] = worth
        if self.terminal.any():
            ends = np.repeat(self.end_rewards[:, None], self.num_actions, axis=1)
            if reward is not None:
                ends = reward.table if reward.combine == "replace" else np.maximum(ends, reward.table)
            values[self.terminal] = ends[self.terminal]
        return values
