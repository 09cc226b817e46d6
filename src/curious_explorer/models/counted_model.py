"""What can be planned from counts alone: the model that was seen, and what to think of the rest.

With n(s, a) tries of a pair, n(s, a, s') of which led to s', the empirical model is P(s'|s, a) = n(s, a, s') / n(s, a),
and a pair pays the mean of what it paid. Pairs tried fewer than ``known_after`` times are *unknown*: they lead to one
extra state that pays the same for ever, the most that can be earned for a learner that should go and look (R-MAX,
Brafman and Tennenholtz 2002), the least for one that should use what it has.

Nobody says which states are terminal; it shows. An episode that was not cut off ended in a terminal state, so a state
that was entered in a batch more often than episodes were cut off, and never left, is terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.arrays import Floats, Mask
from curious_explorer.exact.optimal import solve
from curious_explorer.learners.optimizer import Reward
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds.episodes import merge_transitions
from curious_explorer.worlds.world import EpisodeStatistics, TransitionCounts

MOST_REWARD = 1.0
"""The world's own rewards lie in [0, 1]."""
CURIOUS_EDGE = 0.01
"""How much more than the most that can be earned an unknown pair is worth, so that it wins over the known that pays as
much: a curiosity reward pays the most in every poorly visited state, and a plan content with those never looks on."""
NO_PAY = 1e-9
"""Sums of rewards differ by less than this for want of digits."""


@dataclass(frozen=True, eq=False)
class Experience:
    """Everything that was seen of a world."""

    num_actions: int
    seen: TransitionCounts
    """Each transition once."""
    terminal: Mask
    """Which states are known to end an episode, shape (S,)."""
    end_met: NDArray[np.int64]
    """How often what a terminal state pays was seen, shape (S,)."""
    end_paid: Floats
    """The sum of what it paid for a step each time, shape (S,)."""

    @staticmethod
    def nothing(num_states: int, num_actions: int) -> Experience:
        """No experience at all."""
        return Experience(
            num_actions,
            merge_transitions([], num_states, num_actions),
            np.zeros(num_states, dtype=np.bool_),
            np.zeros(num_states, dtype=np.int64),
            np.zeros(num_states),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """(S, A)."""
        return len(self.terminal), self.num_actions

    def tries(self) -> NDArray[np.int64]:
        """How often each pair was tried, shape (S, A)."""
        return self.by_pair(self.seen.times).astype(np.int64)

    def met(self) -> Mask:
        """The states that were stood in, shape (S,)."""
        mask = np.zeros(self.shape[0], dtype=np.bool_)
        mask[self.seen.state] = True
        mask[self.seen.next_state] = True
        return mask

    def after(self, batch: EpisodeStatistics, cut_off: int, gamma: float) -> Experience:
        """What was seen, and a batch of episodes, of which at most ``cut_off`` stopped before a terminal state.

        The batch must have been run for the world's own reward without a critic and with ``trace=0``: then a step is
        credited with its reward and, if it led to a terminal state, with gamma / (1 - gamma) times what that one pays.
        """
        assert batch.seen is not None, "the batch must be recorded"
        seen = batch.seen
        entered = np.bincount(seen.next_state, weights=seen.times, minlength=len(self.terminal))
        left = np.zeros(len(self.terminal), dtype=np.bool_)
        left[seen.state] = True
        merged = merge_transitions([self.seen, seen], *self.shape)
        terminal = self.terminal | (~left & (entered > cut_off))
        terminal[merged.state] = False  # a cell of observations may end one episode and be left in another
        met, paid = self._pay_of_ends(batch.advantage_sum, seen, left, terminal)
        return Experience(
            self.num_actions,
            merged,
            terminal,
            self.end_met + met,
            self.end_paid + paid * ((1.0 - gamma) / gamma if gamma > 0.0 else 0.0),
        )

    def _pay_of_ends(
        self, credited: Floats, seen: TransitionCounts, left: Mask, terminal: Mask
    ) -> tuple[NDArray[np.int64], Floats]:
        """How often each end was met in a batch, and what its entries were credited with beyond their rewards.

        A pair that may have led to two ends in one batch says nothing about either.
        """
        beyond = credited.copy()
        np.subtract.at(beyond, (seen.state, seen.action), seen.times * seen.reward)
        stopped = ~left[seen.next_state]
        ends = np.zeros(self.shape, dtype=np.int64)
        np.add.at(ends, (seen.state, seen.action), stopped)
        clear = stopped & terminal[seen.next_state] & (ends[seen.state, seen.action] == 1)
        met, paid = np.zeros(len(terminal), dtype=np.int64), np.zeros(len(terminal))
        np.add.at(met, seen.next_state[clear], seen.times[clear])
        np.add.at(paid, seen.next_state[clear], beyond[seen.state[clear], seen.action[clear]])
        return met, paid

    def terminal_rewards(self) -> Floats:
        """What each terminal state pays at every step, shape (S,); zero where nothing says otherwise."""
        mean = self.end_paid / np.maximum(self.end_met, 1)
        return np.clip(np.where(np.abs(mean) > NO_PAY, mean, 0.0), 0.0, MOST_REWARD)

    def within(self, states: NDArray[np.int64]) -> Experience:
        """The same experience, with these states (sorted, every one that was met among them) renumbered from zero."""
        seen = self.seen._replace(
            state=np.searchsorted(states, self.seen.state), next_state=np.searchsorted(states, self.seen.next_state)
        )
        return Experience(self.num_actions, seen, self.terminal[states], self.end_met[states], self.end_paid[states])

    def by_pair(self, column: NDArray[np.int64] | Floats) -> Floats:
        """A column of `seen`, summed over each pair, shape (S, A)."""
        total = np.zeros(self.shape)
        np.add.at(total, (self.seen.state, self.seen.action), column)
        return total


class Plan(NamedTuple):
    """The best policy for a model with gaps."""

    policy: Floats
    """Shape (S, A), ties split evenly."""
    leads_to_unknown: bool
    """Whether it would try an unknown pair in a state that was met; never where all pay the same and none is better."""


def plan(experience: Experience, *, gamma: float, reward: Reward | None, known_after: int, hopeful: bool) -> Plan:
    """The best policy for a reward, as far as the world is known.

    Only the states that were met are planned for. In any other all actions are alike, so that a world of a million
    states costs no more than the part of it that was seen.

    Args:
        experience: what was seen.
        gamma: the discount.
        reward: what to plan for; the world's own rewards, as they were seen, if None.
        known_after: how many tries make a pair known.
        hopeful: whether unknown pairs are worth the most that can be earned, or the least.
    """
    low, high = _range(reward)
    elsewhere = high + CURIOUS_EDGE * (high - low) if hopeful else low
    met = np.flatnonzero(experience.met())
    of_met = None if reward is None else Reward(reward.table[met], reward.combine)
    best, known = _plan_for(experience.within(met), of_met, gamma, known_after, elsewhere)
    policy = np.full(experience.shape, 1.0 / experience.num_actions)
    policy[met] = best
    tried_blindly = (best > 0.0) & ~known & ~experience.terminal[met][:, None]
    return Plan(policy, bool(high > low and tried_blindly.any()))


def _plan_for(
    experience: Experience, reward: Reward | None, gamma: float, known_after: int, elsewhere: float
) -> tuple[Floats, Mask]:
    """The best policy where an unknown pair pays ``elsewhere`` for ever, and which pairs are known, both (S, A)."""
    num_states, num_actions = experience.shape
    known = (experience.tries() >= known_after) | experience.terminal[:, None]
    table = np.full((num_states + 1, num_actions), elsewhere)
    table[:num_states][known] = _rewards(experience, reward)[known]
    mdp = FiniteMDP.from_rows(
        _rows(experience, known), np.zeros(table.shape), num_states, terminal=[*np.flatnonzero(experience.terminal)]
    )
    return solve(mdp, gamma=gamma, rewards=table).policy[:num_states], known


def _rows(experience: Experience, known: Mask) -> sparse.csr_array:
    """Transitions of the S states and the extra one, to which every unknown pair leads."""
    num_states, num_actions = experience.shape
    seen = experience.seen
    tries = experience.tries()
    used = known[seen.state, seen.action]
    state, action = np.nonzero(~known)
    pair = np.concatenate(
        [
            seen.state[used] * num_actions + seen.action[used],
            state * num_actions + action,
            num_states * num_actions + np.arange(num_actions),
        ]
    )
    onward = np.full(len(state) + num_actions, num_states)
    chance = seen.times[used] / tries[seen.state[used], seen.action[used]]
    shape = ((num_states + 1) * num_actions, num_states + 1)
    entries = (np.concatenate([chance, np.ones(len(onward))]), (pair, np.concatenate([seen.next_state[used], onward])))
    return sparse.csr_array(entries, shape=shape)


def _rewards(experience: Experience, reward: Reward | None) -> Floats:
    """What each known pair pays, shape (S, A); terminal states pay their own reward at every step."""
    if reward is not None and reward.combine == "replace":
        return reward.table
    seen = experience.seen
    ends = experience.terminal_rewards()[:, None]
    floor = np.full(experience.shape, -np.inf) if reward is None else reward.table
    paid = experience.by_pair(seen.times * np.maximum(floor[seen.state, seen.action], seen.reward))
    mean: Floats = paid / np.maximum(experience.tries(), 1)
    return np.where(experience.terminal[:, None], np.maximum(floor, ends), mean)


def _range(reward: Reward | None) -> tuple[float, float]:
    """The least and the most that a step can pay."""
    if reward is None:
        return 0.0, MOST_REWARD
    low, high = float(reward.table.min()), float(reward.table.max())
    return (low, high) if reward.combine == "replace" else (max(low, 0.0), max(high, MOST_REWARD))
