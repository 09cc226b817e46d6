"""The counted model: how often each transition was seen, what it paid, and where episodes end.

With n(s, a) tries of a pair, n(s, a, s') of which led to s', the model is P(s'|s, a) = n(s, a, s') / n(s, a), and a
pair pays the mean of what it paid. A pair is *known* once it was tried ``known_after`` times (R-MAX, Brafman and
Tennenholtz 2002); what to think of the others is the planner's matter (`planning`).

Transitions are kept in compressed rows (row ``s * A + a`` for each pair), so that nothing allocates S x S, and adding
to them is cheap where nothing new was seen, which is the ordinary case.

**Where episodes end.** An agent that acts step by step is told, and says so to `add`. A batch of episodes may not be:
there it shows. An episode that was not cut off ended in a terminal state, so a state that was entered in a batch more
often than episodes were cut off, and never left, is terminal. A state that was ever left is not: a cell of observations
may end one episode and be left in another, and a step that ends the episode may leave what is seen as it was. Such ends
belong to transitions: of n(s, a, s') times so many *stopped*, and no plan goes on from those. What follows them is
worth nothing, so the chances of a pair that stopped add up to less than one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.worlds.world import EpisodeStatistics, Reward, TransitionCounts

MOST_REWARD = 1.0
"""The world's own rewards lie in [0, 1]."""
NO_REWARD = 1e-9
"""Sums of rewards differ by less than this for want of digits."""
MOST_COUNTED = 1 << 53
"""Above any number of steps that can be taken."""


class Rows(NamedTuple):
    """Where the entries of each pair are, in compressed rows."""

    row_start: Integers  # (S * A + 1,): where the entries of each pair begin
    pairs: Integers  # (E,): the pair s * A + a that each entry belongs to
    next_states: Integers  # (E,)


class CountedModel:
    """Counts n(s, a, s') and sums of rewards, of a world with S states and A actions."""

    def __init__(self, num_states: int, num_actions: int) -> None:
        self.num_states, self.num_actions = num_states, num_actions
        self.tries: Integers = np.zeros((num_states, num_actions), dtype=np.int64)
        """How often each pair was tried, shape (S, A)."""
        self.terminal: Mask = np.zeros(num_states, dtype=np.bool_)
        """The states in which an episode is known to end, shape (S,)."""
        self.starts: Integers = np.zeros(num_states, dtype=np.int64)
        """How often each state was seen right after a restart of the world, shape (S,), where that was counted."""
        self.times: Integers = np.zeros(0, dtype=np.int64)
        """How often each transition was seen, shape (E,)."""
        self.paid: Floats = np.zeros(0)
        """The sum of what each transition paid, shape (E,)."""
        self.ended: Integers = np.zeros(0, dtype=np.int64)
        """How many of those times the episode was told to have ended with it, shape (E,)."""
        self._codes: Integers = np.zeros(0, dtype=np.int64)  # (s * A + a) * S + s' of each entry, in order
        self._rows: Rows | None = None
        self._left: Mask = np.zeros(num_states, dtype=np.bool_)
        self._end_times: Integers = np.zeros(num_states, dtype=np.int64)
        self._end_paid: Floats = np.zeros(num_states)

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return self.num_states, self.num_actions

    # Adding what was seen -------------------------------------------------------------------------------------------

    def add(
        self,
        seen: TransitionCounts,
        ends: Integers | None = None,
        end_rewards: Floats | None = None,
        *,
        ended: Integers | None = None,
    ) -> Integers:
        """Add transitions; returns how often each pair was tried among them, shape (S, A).

        Args:
            seen: the transitions.
            ends: how often an episode ended in each state, shape (S,), where that is known.
            end_rewards: what such a state goes on paying at every step, shape (S,).
            ended: how many of the times of each transition the episode ended, where that is known.
        """
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
        if ended is not None:
            np.add.at(self.ended, places, ended)
        self._left[seen.state] = True
        self.terminal &= ~self._left
        if ended is not None:
            stops = seen.next_state[ended > 0]
            self.terminal[stops] = ~self._left[stops]
        if ends is not None and end_rewards is not None:
            at_end = (ends > 0) & ~self._left
            self.terminal |= at_end
            self._end_times[at_end], self._end_paid[at_end] = 1, end_rewards[at_end]
        return tried

    def _make_room(self, codes: Integers) -> None:
        """Entries for transitions never seen before, in order."""
        new = np.setdiff1d(codes, self._codes)
        at = np.searchsorted(self._codes, new)
        self._codes = np.insert(self._codes, at, new)
        self.times = np.insert(self.times, at, 0)
        self.paid = np.insert(self.paid, at, 0.0)
        self.ended = np.insert(self.ended, at, 0)
        self._rows = None

    def add_episodes(self, batch: EpisodeStatistics, *, cut_off: int, gamma: float) -> None:
        """Add a batch of episodes, of which at most ``cut_off`` stopped before a terminal state.

        The batch must have been recorded for the world's own reward, without a critic and with ``trace=0``: then a step
        is credited with its reward and, if it led to a terminal state, with gamma / (1 - gamma) times what that pays.
        """
        assert batch.seen is not None, "the batch must be recorded"
        seen = batch.seen
        self.add(seen, ended=batch.ended)
        entered = np.bincount(seen.next_state, weights=seen.times, minlength=self.num_states)
        left_now = np.zeros(self.num_states, dtype=np.bool_)
        left_now[seen.state] = True
        self.terminal |= (entered > cut_off) & ~left_now & ~self._left
        if gamma > 0.0:
            self._add_end_rewards(batch.advantage_sum, seen, left_now, (1.0 - gamma) / gamma)

    def _add_end_rewards(self, credited: Floats, seen: TransitionCounts, left_now: Mask, share: float) -> None:
        """What entries into terminal states were credited with beyond their rewards.

        A pair that may have led to two ends in one batch says nothing about either.
        """
        beyond = credited.copy()
        np.subtract.at(beyond, (seen.state, seen.action), seen.times * seen.reward)
        stopped = ~left_now[seen.next_state]
        ends = np.zeros(self.shape, dtype=np.int64)
        np.add.at(ends, (seen.state, seen.action), stopped)
        clear = stopped & self.terminal[seen.next_state] & (ends[seen.state, seen.action] == 1)
        np.add.at(self._end_times, seen.next_state[clear], seen.times[clear])
        np.add.at(self._end_paid, seen.next_state[clear], share * beyond[seen.state[clear], seen.action[clear]])

    # What it says ---------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        """Where the entries of each pair are."""
        if self._rows is None:
            pairs, next_states = np.divmod(self._codes, self.num_states)
            row_start = np.searchsorted(pairs, np.arange(self.num_states * self.num_actions + 1))
            self._rows = Rows(row_start, pairs, next_states)
        return self._rows

    def transitions(self) -> TransitionCounts:
        """Each transition once, with the mean of what it paid."""
        pairs, next_states = np.divmod(self._codes, self.num_states)
        state, action = np.divmod(pairs, self.num_actions)
        return TransitionCounts(state, action, next_states, self.times.copy(), self.paid / self.times)

    def met(self) -> Mask:
        """The states that were stood in, shape (S,)."""
        mask = self._left.copy()
        mask[self._codes % self.num_states] = True
        return mask

    def known(self, known_after: int) -> Mask:
        """Which pairs were tried so often, or need no try because an episode ends there, shape (S, A)."""
        return (self.tries >= known_after) | self.terminal[:, None]

    @property
    def stopped(self) -> Integers:
        """How often each entry ended its episode in a state that is not terminal, shape (E,)."""
        return np.where(self.terminal[self.rows.next_states], 0, self.ended)

    def chances(self) -> Floats:
        """The frequency of each entry, as far as it did not stop, among the tries of its pair, shape (E,)."""
        chances: Floats = (self.times - self.stopped) / self.tries.reshape(-1)[self.rows.pairs]
        return chances

    def doubt(self) -> float:
        """The probability that two tries of a pair differ, averaged over the pairs that were tried twice or more."""
        tries = self.tries.reshape(-1).astype(np.float64)
        going_on = self.times - self.stopped
        alike = going_on * (going_on - 1.0) + self.stopped * (self.stopped - 1.0)
        same = np.bincount(self.rows.pairs, weights=alike, minlength=tries.size)
        twice = tries >= 2
        return float((1.0 - same[twice] / (tries[twice] * (tries[twice] - 1.0))).mean()) if twice.any() else 0.0

    def trust(self) -> Floats:
        """How much of what was seen of each pair a careful plan believes, shape (S, A): n / (n + doubt)."""
        share: Floats = self.tries / np.maximum(self.tries + self.doubt(), 1e-300)
        return share

    def stopping(self) -> Floats:
        """How often each pair ended its episode in a state that is not terminal, as a share of its tries, (S, A)."""
        stops = np.bincount(self.rows.pairs, weights=self.stopped, minlength=self.tries.size)
        share: Floats = stops.reshape(self.shape) / np.maximum(self.tries, 1)
        return share

    def rewards(self, reward: Reward | None) -> Floats:
        """What each pair pays on average, as far as it is known, shape (S, A); zero where it was never tried.

        A reward that replaces the world's own is known everywhere.
        """
        if reward is not None and reward.combine == "replace":
            return reward.table.copy()
        pairs, paid = self.rows.pairs, self.paid
        if reward is not None:
            paid = np.maximum(paid, self.times * reward.table.reshape(-1)[pairs])
        total = np.bincount(pairs, weights=paid, minlength=self.tries.size)
        mean: Floats = total.reshape(self.shape) / np.maximum(self.tries, 1)
        return mean

    def end_rewards(self) -> Floats:
        """What each terminal state goes on paying at every step, shape (S,); zero where nothing says otherwise."""
        mean = self._end_paid / np.maximum(self._end_times, 1)
        return np.clip(np.where(np.abs(mean) > NO_REWARD, mean, 0.0), 0.0, MOST_REWARD)

    def settled(self, reward: Reward | None, unknown: Mask | None = None, worth: float = 0.0) -> Floats:
        """Values of pairs that need no planning, shape (S, A), and NaN for all others.

        A terminal state is worth what it goes on paying, each ``unknown`` pair is taken to be worth ``worth``.
        """
        values = np.full(self.shape, np.nan)
        if unknown is not None:
            values[unknown] = worth
        if self.terminal.any():
            ends = np.repeat(self.end_rewards()[:, None], self.num_actions, axis=1)
            if reward is not None:
                ends = reward.table if reward.combine == "replace" else np.maximum(ends, reward.table)
            values[self.terminal] = ends[self.terminal]
        return values

    def within(self, states: Integers) -> CountedModel:
        """The same counts, with these states (sorted, every one that was met among them) renumbered from zero."""
        part = CountedModel(len(states), self.num_actions)
        pairs, next_states = np.divmod(self._codes, self.num_states)
        state, action = np.divmod(pairs, self.num_actions)
        part._codes = (np.searchsorted(states, state) * self.num_actions + action) * len(states)
        part._codes += np.searchsorted(states, next_states)
        part.times, part.paid, part.ended = self.times, self.paid, self.ended
        for name in ("tries", "terminal", "starts", "_left", "_end_times", "_end_paid"):
            setattr(part, name, getattr(self, name)[states])
        return part

    # Storing --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds, as plain arrays; `from_arrays` makes it again."""
        pairs, next_states = np.divmod(self._codes, self.num_states)
        state, action = np.divmod(pairs, self.num_actions)
        columns = {"state": state, "action": action, "next_state": next_states, "times": self.times, "paid": self.paid}
        columns["ended"] = self.ended
        ends = {"terminal": self.terminal, "end_times": self._end_times, "end_paid": self._end_paid}
        return {**columns, **ends, "starts": self.starts, "num_actions": np.array([self.num_actions], dtype=np.int64)}

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]]) -> CountedModel:
        """The model that `arrays` gave; the arrays are copied, once they are checked."""
        check_arrays(arrays)
        model = CountedModel(len(arrays["terminal"]), int(arrays["num_actions"][0]))
        times = np.array(arrays["times"])
        seen = TransitionCounts(arrays["state"], arrays["action"], arrays["next_state"], times, np.zeros(len(times)))
        model.add(seen)
        model.paid, model.ended = np.array(arrays["paid"]), np.array(arrays["ended"])
        model.terminal, model.starts = np.array(arrays["terminal"]), np.array(arrays["starts"])
        model._end_times, model._end_paid = np.array(arrays["end_times"]), np.array(arrays["end_paid"])
        return model


def check_arrays(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays that are not those of a model: of other shapes, or with numbers that are no counts."""
    sizes = arrays["num_actions"]
    if sizes.shape != (1,) or sizes.dtype.kind != "i" or sizes[0] < 1:
        raise ValueError(f"it has {sizes!r} actions, expected one number that is at least 1")
    columns, of_states = (
        ("state", "action", "next_state", "times", "paid", "ended"),
        ("terminal", "end_times", "end_paid", "starts"),
    )
    for names in (columns, of_states):
        shapes = {name: arrays[name].shape for name in names}
        if len(set(shapes.values())) != 1 or arrays[names[0]].ndim != 1:
            raise ValueError(f"its counts have the shapes {shapes}, expected one length")
        for name in names:
            kind = "b" if name == "terminal" else "f" if name.endswith("paid") else "i"
            if arrays[name].dtype.kind != kind or not np.isfinite(arrays[name]).all():
                raise ValueError(f"its {name} are of {arrays[name].dtype}, expected finite numbers of another kind")
    num_states, num_actions = len(arrays["terminal"]), int(sizes[0])
    if num_states * num_states * num_actions >= np.iinfo(np.int64).max:
        raise ValueError(f"it has {num_states} states and {num_actions} actions, too many to number their transitions")
    ranges = {"state": (0, num_states), "action": (0, num_actions), "next_state": (0, num_states)}
    ranges |= {"times": (1, MOST_COUNTED)} | dict.fromkeys(("ended", "starts", "end_times"), (0, MOST_COUNTED))
    for name, (least, stop) in ranges.items():
        if arrays[name].size and not (arrays[name].min() >= least and arrays[name].max() < stop):
            raise ValueError(f"it has counted transitions whose {name} are no counts: not from {least} to {stop - 1}")
    if (arrays["ended"] > arrays["times"]).any():
        raise ValueError("it has transitions that ended more episodes than they were counted")
    codes = (arrays["state"] * num_actions + arrays["action"]) * num_states + arrays["next_state"]
    if (np.diff(codes) <= 0).any():
        raise ValueError("it has counted transitions that are not in order, or twice")
