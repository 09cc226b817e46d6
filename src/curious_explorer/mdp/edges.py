"""The arrows of a drawing: one for each pair of states that can follow each other, all actions taken together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.arrays import Floats
from curious_explorer.mdp.finite_mdp import FiniteMDP


class Edges(NamedTuple):
    """Arrows as columns."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    probability: Floats
    """That the uniform policy moves from tail to head."""
    reward: Floats
    """The largest reward, by size, of the transitions behind the arrow, in the units of the original problem."""
    has_reverse: NDArray[np.bool_]
    """Whether there is an arrow from head to tail, too."""


def edges_of(mdp: FiniteMDP) -> Edges:
    """The arrows to draw; the loops of terminal states are left out unless they pay."""
    rows, size = mdp.transitions, mdp.num_states
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    own = mdp.transition_rewards
    reward = mdp.reward_scale.original(mdp.rewards.ravel()[row] if own is None else own)
    # Undoing the scale leaves 1e-15 where the original reward was 0.
    reward[np.abs(reward) < 1e-12 * max(1.0, mdp.reward_scale.factor)] = 0.0
    tail, head = row // mdp.num_actions, rows.indices.astype(np.int64)
    key, group = np.unique(tail * size + head, return_inverse=True)
    probability = np.bincount(group, rows.data) / mdp.num_actions
    strongest = np.zeros(key.size)
    order = np.argsort(np.abs(reward), kind="stable")
    strongest[group[order]] = reward[order]  # of several assignments the last, the largest, stays

    tail, head = key // size, key % size
    shown = (tail != head) | ~mdp.terminal[tail] | (strongest != 0.0)
    links = sparse.csr_array((np.ones(key.size), (tail, head)), shape=(size, size))
    has_reverse = np.asarray(links[head, tail]).ravel() > 0.0
    return Edges(tail[shown], head[shown], probability[shown], strongest[shown], has_reverse[shown])
