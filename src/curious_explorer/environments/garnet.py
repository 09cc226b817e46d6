"""Random sparse MDPs (Garnet: generic average reward non-stationary environment testbed, Archibald et al. 1995).

Each pair of a state and an action leads to a few successors chosen at random, with probabilities cut from the unit
interval at random; each state pays a random reward with a small probability. Built directly in compressed rows, so ten
million states are no trouble.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from curious_explorer.mdp import FiniteMDP
from curious_explorer.mdp.validation import check_count, check_seed


def garnet(
    num_states: int, num_actions: int = 4, branching: int = 2, *, reward_sparsity: float = 0.9, seed: int = 0
) -> FiniteMDP:
    """A random MDP from a seed, started in state 0.

    Args:
        num_states: how many states.
        num_actions: how many actions in each.
        branching: how many successors are drawn for each pair; draws that coincide are merged.
        reward_sparsity: the probability that a state pays nothing.
        seed: what it is drawn from.
    """
    num_states = check_count(num_states, "num_states", least=1)
    num_actions = check_count(num_actions, "num_actions", least=1)
    branching = check_count(branching, "branching", least=1)
    if not 0.0 <= reward_sparsity <= 1.0:
        raise ValueError(f"reward_sparsity is {reward_sparsity!r}, expected a probability in [0, 1]")
    random = np.random.default_rng(check_seed(seed))
    num_pairs = num_states * num_actions
    cuts = np.sort(random.random((num_pairs, branching - 1)), axis=1)
    edges = np.hstack([np.zeros((num_pairs, 1)), cuts, np.ones((num_pairs, 1))])
    successors = random.integers(num_states, size=num_pairs * branching, dtype=np.int32)
    indptr = np.arange(0, num_pairs * branching + 1, branching)
    rows = sparse.csr_array((np.diff(edges, axis=1).ravel(), successors, indptr), shape=(num_pairs, num_states))
    rows.sum_duplicates()
    state_rewards = random.random(num_states) * (random.random(num_states) >= reward_sparsity)
    return FiniteMDP.from_rows(rows, np.repeat(state_rewards[:, None], num_actions, axis=1), 0)
