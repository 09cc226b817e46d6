"""The best actions for what was seen, for every state from which a way to a reward is known.

These are labels for a learner that imitates: the greedy policy of the counted model, ties split evenly. A reward that
ends the episode counts as one whatever it was, because many environments take off from it what their clock says, so
that of two ways to the same goal the longer one may have been paid more when it was seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.models.planning import TOLERANCE, plan, problem

LEAST_VALUE = 100.0 * TOLERANCE
"""States worth less are left out: their values say too little about which action is best."""


class BestActions(NamedTuple):
    """Labels of the states from which a way to a reward is known."""

    states: Integers  # (N,): in the order in which states were met
    probabilities: Floats  # (N, A): alike for all best actions, zero for others


def best_actions(model: GrowingModel, gamma: float) -> BestActions:
    """The labels, for every state of the model that was ever left by an action."""
    seen, counted = model.outcomes(), model.counted()
    paid = np.where(model.ended() & (seen.reward > 0.0), 1.0, seen.reward)
    rewards = np.zeros(counted.shape)
    np.add.at(rewards, (seen.state, seen.action), paid * seen.times)
    rewards /= np.maximum(counted.tries, 1)
    values = np.zeros(len(model))
    settled = counted.settled(None, unknown=~counted.known(1))
    policy = plan(problem(counted, rewards, settled), gamma, values).policy
    states = np.intersect1d(np.flatnonzero(values > LEAST_VALUE), seen.state)
    return BestActions(states, policy[states])
