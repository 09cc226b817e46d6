"""A branching tree: every action opens another branch, and one leaf of all pays.

A complete tree of a given depth in which action k leads to child k. Leaves are terminal; entering the one leaf drawn
from a seed pays 1, entering another pays nothing. Nothing hints at the right leaf, so nobody can do better than to try
the leaves one after the other: the limit of what any exploration can save.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count, check_seed

MOST_STATES = 100_000_000


def branching_tree(depth: int, *, branching: int = 2, seed: int = 0) -> FiniteMDP:
    """A complete tree; states are numbered level by level, from the root, where episodes begin.

    Action labels are not permuted: which leaf pays is random, so the labels say nothing.

    Args:
        depth: how many choices lead from the root to a leaf.
        branching: how many actions there are, each with a child of its own.
        seed: draws the leaf that pays.
    """
    depth = check_count(depth, "depth", least=1, most=100)
    branching = check_count(branching, "branching", least=2)
    num_states = (branching ** (depth + 1) - 1) // (branching - 1)
    if num_states > MOST_STATES:
        raise ValueError(
            f"a tree of depth {depth} with {branching} branches has {num_states:,} states, expected at most "
            f"{MOST_STATES:,}; choose a smaller depth"
        )
    num_leaves = branching**depth
    first_leaf = num_states - num_leaves
    pairs = np.arange(first_leaf * branching)
    chances = np.ones(len(pairs))
    rows = sparse.csr_array((chances, (pairs, pairs + 1)), shape=(num_states * branching, num_states))
    paying = first_leaf + int(np.random.default_rng(check_seed(seed)).integers(num_leaves))
    rewards = np.zeros((num_states, branching))
    rewards.flat[paying - 1] = 1.0  # child k of s is s * branching + 1 + k, so pair p leads to state p + 1
    return FiniteMDP.from_rows(rows, rewards, 0, terminal=np.arange(num_states) >= first_leaf)
