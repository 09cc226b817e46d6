"""Random sparse MDPs (Garnet: generic average reward non-stationary environment testbed, Archibald et al. 1995).

Each pair of a state and an action leads to a few successors chosen at random, with probabilities cut from the unit
interval at random; each state pays a random reward with a small probability. Built directly in compressed rows, so ten
million states are no trouble: building takes little more memory than the model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.arrays import blocks
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count, check_probability, check_seed


def garnet(
    num_states: int, num_actions: int = 4, branching: int = 2, *, reward_sparsity: float = 0.9, seed: int = 0
) -> FiniteMDP:
    """A random MDP from a seed, started in state 0.

    Args:
        branching: how many successors are drawn for each pair; draws that coincide are merged.
        reward_sparsity: the probability that a state pays nothing.
    """
    num_states = check_count(num_states, "num_states", least=1)
    num_actions = check_count(num_actions, "num_actions", least=1)
    branching = check_count(branching, "branching", least=1)
    reward_sparsity = check_probability(reward_sparsity, "reward_sparsity")
    random = np.random.default_rng(check_seed(seed))
    num_pairs = num_states * num_actions
    probabilities = _cut_unit_intervals(num_pairs, branching, random)
    successors = random.integers(num_states, size=num_pairs * branching, dtype=np.int32)
    kind = np.int32 if num_pairs * branching <= np.iinfo(np.int32).max else np.int64
    indptr = np.arange(0, num_pairs * branching + 1, branching, dtype=kind)
    rows = sparse.csr_array((probabilities, successors, indptr), shape=(num_pairs, num_states))
    del probabilities, successors, indptr  # so that merging can let go of what it replaces
    rows.sum_duplicates()
    state_rewards = random.random(num_states) * (random.random(num_states) >= reward_sparsity)
    rewards = np.repeat(state_rewards[:, None], num_actions, axis=1)
    return FiniteMDP.from_rows(rows, rewards, 0, copy=False)


def _cut_unit_intervals(count: int, pieces: int, random: np.random.Generator) -> NDArray[np.float64]:
    """The lengths of the pieces into which random cuts divide ``count`` unit intervals, one after the other."""
    lengths = np.empty((count, pieces))
    for first, stop in blocks(count):
        cuts = np.sort(random.random((stop - first, pieces - 1)), axis=1)
        lengths[first:stop] = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    return lengths.reshape(-1)
