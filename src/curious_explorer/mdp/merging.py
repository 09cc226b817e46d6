"""From a list of single outcomes (row, next state, probability, reward) to compressed rows with aligned rewards.

Descriptions by hand and Gymnasium's tables both name the same next state more than once for a pair: the
probabilities add up, and the reward of the merged transition is their average, weighted by probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.arrays import Floats, Integers


def merge_outcomes(
    row: Integers, column: Integers, probability: Floats, reward: Floats, shape: tuple[int, int]
) -> tuple[sparse.csr_array, Floats]:
    """Canonical rows of the given shape, and rewards: (S, A) if they do not depend on the next state, else by entry."""
    order = np.lexsort((column, row))
    row, column, probability, reward = row[order], column[order], probability[order], reward[order]
    is_first = np.ones(row.size, dtype=np.bool_)
    is_first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    group = np.flatnonzero(is_first)
    merged_probability, merged_reward = _merge_groups(group, probability, reward)
    happens = merged_probability != 0.0
    group, merged_probability, merged_reward = group[happens], merged_probability[happens], merged_reward[happens]
    row, column = row[group], column[group]

    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    rows = sparse.csr_array((merged_probability, column, indptr), shape=shape)
    rows.has_canonical_format = True  # sorted and merged above
    table = np.zeros(shape[0])
    table[row] = merged_reward
    if (table[row] == merged_reward).all():
        return rows, table.reshape(shape[1], -1)
    return rows, merged_reward


def _merge_groups(group: NDArray[np.intp], probability: Floats, reward: Floats) -> tuple[Floats, Floats]:
    """Sums of probabilities and weighted means of rewards over the runs that begin at ``group``."""
    if group.size == 0:
        return np.zeros(0), np.zeros(0)
    total = np.add.reduceat(probability, group)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.add.reduceat(probability * reward, group) / total
    lowest, highest = np.minimum.reduceat(reward, group), np.maximum.reduceat(reward, group)
    # Equal rewards stay exactly what they were, and rounding cannot leave the interval that they span.
    return total, np.clip(np.where(np.isfinite(mean), mean, lowest), lowest, highest)
