"""What the best plan on a counted model earns from each state that was met, and how soon.

Rewards are taken above the least that a step was seen to pay (or above nothing, if all pay more), and a pair that was
never tried is worth the least once and what steps pay as a rule ever after, so that the plan keeps to what was seen
whatever the sign of rewards. W_t(s) is what it
earns in t steps from s, discounted and above the least. A step that ended the episode leads to nothing more, even where
what is seen stays the same and other steps go on from there. The *length* of the way from s is the t at which half of
W(s) is earned: the steps to the goal, where there is one; and it means the same where rewards are shaped, several,
noisy, or costs that end at the goal. The *distance* of s is by how much its way is longer than the shortest one, and
one step.

A penalty is no cost: what is paid less as an episode ends, or hardly ever, says nothing about what the other steps are
worth. Beside penalties a length is therefore the time by which half of the *gains* is earned, which are rewards above
what steps pay as a rule (`usual`). Where the best plan rather earns nothing than risk a penalty, the ways are those of
the plan without penalties: how to avoid them is for whoever learns along the way.

Which plan is best is decided with doubt: where the world is random, a pair that was tried n times is believed in by
n / (n + doubt) only (`CountedModel.trust`), so that one lucky try does not decide. What the plan earns is then stated
on the frequencies as they are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from curious_explorer.arrays import Floats, Integers
from curious_explorer.models.counted_model import NO_REWARD, CountedModel
from curious_explorer.models.planning import FINE_TOLERANCE, plan, problem

MOST_STEPS = 20_000
"""So many steps ahead the plan's returns are looked at."""

RARE = 0.05
"""A penalty is paid in at most this share of the tries; what is paid more often is what steps cost."""
GAINS_TOLERANCE = 1e-4


class BestWays:
    """The best plan on a counted model, among the states ``met``, shape (M,), which all arrays are about."""

    def __init__(self, model: CountedModel, met: Integers, gamma: float) -> None:
        self._part, self._gamma = model.within(met), gamma
        part = self._part
        self._tried = tried = part.tries > 0
        own = part.rewards(None)
        ends = np.where(part.terminal, part.end_rewards(), 0.0)
        self._stopping = stopping = part.stopping()
        paid = [*own[tried].tolist(), *ends[part.terminal].tolist(), *([0.0] if stopping.any() else [])]
        self.least = min(0.0, min(paid, default=0.0))
        """The least that a step was seen to pay, or nothing."""
        most = max(paid, default=0.0)
        over = np.where(part.terminal[part.rows.next_states], part.times, part.ended)
        on = (part.times > over) & ~part.terminal[part.rows.pairs // part.num_actions]
        self.usual = _without_the_rarest((part.paid / part.times)[on], (part.times - over)[on], self.least)
        """The least that steps pay as a rule, but for penalties; or nothing."""
        span = most - self.least if most > self.least + NO_REWARD else 0.0
        self.reward_known = span > 0.0
        """Whether anything pays more than that, and a way there is known."""
        self.planned = np.full(len(met), self.least / (1.0 - gamma))
        """The discounted return of the plan, shape (M,)."""
        self.distance: Floats = np.full(len(met), math.inf)
        """Shape (M,); infinite where the plan earns nothing."""
        self.policy: Floats = np.zeros(part.shape)
        """The plan, shape (M, A); zero where nothing was tried, and at ends."""
        self._own, self._terminal = own, part.terminal
        if not self.reward_known or len(met) == 0:
            return
        self._plan(own, ends, self.least, most)
        penalties = self.usual > self.least and most > self.usual + NO_REWARD
        if penalties and not np.isfinite(self.distance[part.starts > 0]).any():
            self._plan(np.maximum(own, self.usual), np.maximum(ends, self.usual), self.usual, most)

    def _plan(self, own: Floats, ends: Floats, least: float, most: float) -> None:
        """Find the best plan for these rewards, from the least to the most, its values and its distances."""
        part, tried, stopping, gamma = self._part, self._tried, self._stopping, self._gamma
        span = most - least
        # Above the least, in units of the most: an end is above the least, too, and so is what is unknown if the least
        # is a penalty; that it should be paid for ever would make any doubt worse than any penalty.
        shifted = np.where(tried, (own - least) / span, 0.0)
        end_worth = -least / span
        with_ends = shifted + gamma / (1.0 - gamma) * stopping * end_worth
        unknown = gamma * (self.usual - least) / span
        settled = np.full(part.shape, np.nan)
        settled[~tried] = unknown
        settled[part.terminal] = ((ends[part.terminal] - least) / span)[:, None]
        values = np.zeros(len(own))
        task, trust = problem(part, with_ends, settled), part.trust()
        doubtful = with_ends * trust + (1.0 - trust) * unknown / (1.0 - gamma)
        doubted = task._replace(chances=task.chances * trust.reshape(-1)[part.rows.pairs], rewards=doubtful)
        policy = plan(doubted, gamma, values, FINE_TOLERANCE).policy * tried
        policy[part.terminal] = 0.0
        if (trust[tried] < 1.0).any():  # what this plan is worth without doubt
            others = np.where((policy > 0.0) | part.terminal[:, None], settled, 0.0)
            others[~(policy > 0.0).any(axis=1) & ~part.terminal] = unknown
            plan(task._replace(settled=others), gamma, values, FINE_TOLERANCE)
        total = policy.sum(axis=1, keepdims=True)
        self.policy = np.divide(policy, total, out=np.zeros_like(policy), where=total > 0.0)
        rows = part.rows
        before, action = np.divmod(rows.pairs, part.num_actions)
        chances = task.chances * self.policy[before, action]
        self._moves = sparse.csr_array((chances, (before, rows.next_states)), shape=(len(own), len(own)))
        self.planned = (values * span + least) / (1.0 - gamma)
        if self.usual > least:  # gains alone
            shifted, end_worth = np.where(tried, np.maximum(own - self.usual, 0.0) / span, 0.0), -self.usual / span
            settled[part.terminal] = (np.maximum(ends[part.terminal] - self.usual, 0.0) / span)[:, None]
        pays, ends_now = (shifted * self.policy).sum(axis=1), (stopping * self.policy).sum(axis=1) * end_worth
        if self.usual > least:
            values = self._gains(pays, ends_now, settled[:, 0], gamma)
        lengths = self._lengths(pays, ends_now, values, settled[:, 0], gamma)
        self.reward_known = bool(np.isfinite(lengths).any())
        if self.reward_known:
            self.distance = lengths - lengths.min() + 1.0

    def _gains(self, pays: Floats, ends: Floats, settled: Floats, gamma: float) -> Floats:
        """What the plan earns in gains, discounted, times 1 - gamma, shape (M,)."""
        total, following = np.zeros(len(pays)), pays + gamma / (1.0 - gamma) * ends
        following[self._terminal] = settled[self._terminal] / (1.0 - gamma)
        largest = following.max(initial=0.0)
        while following.max(initial=0.0) > GAINS_TOLERANCE * largest:
            total += following
            following = gamma * (self._moves @ following)
        return (1.0 - gamma) * total

    def _lengths(self, pays: Floats, ends: Floats, values: Floats, settled: Floats, gamma: float) -> Floats:
        """After how many steps half of what the plan earns is earned, shape (M,); infinite where it earns nothing."""
        lengths = np.full(len(values), math.inf)
        wanted = 0.5 * values / (1.0 - gamma)
        waiting = (values > 10.0 * FINE_TOLERANCE) & ~self._terminal
        ahead = np.zeros(len(values))
        for step in range(1, MOST_STEPS + 1):
            if not waiting.any():
                break
            ended = (1.0 - gamma ** (step - 1)) / (1.0 - gamma)  # what a worth of one adds up to since
            ahead[self._terminal] = settled[self._terminal] * ended
            ahead = pays + gamma * (self._moves @ ahead + ends * ended)
            there = waiting & (ahead >= wanted * (1.0 - 1e-9))
            lengths[there] = step
            waiting &= ~there
        return lengths

    def expected(self, chosen: Integers, cuts: Integers, starts: Floats, own_cut: int) -> tuple[Floats, float]:
        """What the plan returns, not discounted, in so many steps: from each chosen state, and from the own start."""
        expected, own = np.zeros(len(chosen)), 0.0
        if not self.reward_known:
            return expected, own
        pays = np.where(self._terminal, 0.0, (self._own * self.policy).sum(axis=1))
        ahead = np.zeros(len(pays))
        for step in range(1, int(max(cuts.max(initial=0), own_cut)) + 1):
            ahead = pays + self._moves @ ahead
            now = cuts == step
            expected[now] = ahead[chosen[now]]
            if step == own_cut:
                own = float(starts @ ahead)
        return expected, own


def _without_the_rarest(rewards: Floats, tries: Integers, least: float) -> float:
    """The least of rewards, or nothing, once the lowest in a share of `RARE` of the tries are left aside."""
    if not len(rewards):
        return least
    order = np.argsort(rewards)
    below = np.cumsum(tries[order]) <= RARE * tries.sum()
    return max(least, min(0.0, float(rewards[order][~below][0])))
