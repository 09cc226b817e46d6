"""The best actions for what was seen, for every state from which a way to a reward is known.

These are labels for a learner that imitates: the greedy policy of the counted model, ties split evenly. A reward that
ends the episode counts as one whatever it was, because many environments take off from it what their clock says, so
that of two ways to the same goal the longer one may have been paid more when it was seen.

With the labels come the steps that were counted between their states. In these a learner can walk as often as it likes
without another sample, and so meet the histories that lead to a state, and its own mistakes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.models.planning import TOLERANCE, plan, problem

LEAST_VALUE = 100.0 * TOLERANCE
"""States worth less are left out: their values say too little about which action is best."""
ENDED = -1


class BestActions(NamedTuple):
    """Labels of the states from which a way to a reward is known."""

    states: Integers  # (N,): in the order in which states were met
    probabilities: Floats  # (N, A): alike for all best actions, zero for others
    steps: Integers  # (M, 4): place among the states, action, place that it led to or ENDED, how often
    starts: Integers  # (K,): the places in which episodes began


def best_actions(model: GrowingModel, gamma: float, most: int | None = None) -> BestActions:
    """The labels, for every state of the model that was ever left by an action.

    Args:
        model: the counts.
        gamma: the discount.
        most: how many states to keep: those fewest steps away from the best ways from the starts. None: all.
    """
    seen, counted, ended = model.outcomes(), model.counted(), model.ended()
    paid = np.where(ended & (seen.reward > 0.0), 1.0, seen.reward)
    rewards = np.zeros(counted.shape)
    np.add.at(rewards, (seen.state, seen.action), paid * seen.times)
    rewards /= np.maximum(counted.tries, 1)
    values = np.zeros(len(model))
    settled = counted.settled(None, unknown=~counted.known(1))
    policy = plan(problem(counted, rewards, settled), gamma, values).policy
    kept = np.zeros(len(model), dtype=np.bool_)
    kept[seen.state] = True
    kept &= values > LEAST_VALUE
    starts = np.flatnonzero(model.graph.start_times[: len(model)])
    before, after = seen.state[~ended], seen.next_state[~ended]
    if most is not None and kept.sum() > most:
        best = policy[before, seen.action[~ended]] > 0.0
        ways = _within_reach(kept, starts, before[best], after[best])
        both = np.concatenate([before, after]), np.concatenate([after, before])
        kept = _within_reach(kept, np.flatnonzero(ways), *both, most=most)
    states, place = np.flatnonzero(kept), np.full(len(model), ENDED)
    place[states] = np.arange(len(states))
    inside = kept[seen.state] & (ended | kept[seen.next_state])
    following = np.where(ended, ENDED, place[seen.next_state])
    steps = np.stack([place[seen.state], seen.action, following, seen.times], axis=1)[inside]
    return BestActions(states, policy[states], steps, place[starts[kept[starts]]])


def _within_reach(allowed: Mask, first: Integers, before: Integers, after: Integers, most: int | None = None) -> Mask:
    """The allowed states that lie fewest steps from the first ones, all of them or at most so many."""
    reached = np.zeros(len(allowed), dtype=np.bool_)
    wave = first[allowed[first]]
    while len(wave) and (most is None or reached.sum() < most):
        reached[wave if most is None else wave[: most - reached.sum()]] = True
        led = np.zeros(len(allowed), dtype=np.bool_)
        led[wave] = True
        wave = np.unique(after[led[before]])
        wave = wave[allowed[wave] & ~reached[wave]]
    return reached
