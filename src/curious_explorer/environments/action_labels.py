"""Action labels that give nothing away.

With a fixed labelling ("action 0 is always right") an ``argmax`` over tied values solves the test problems by
accident. So labels are permuted state by state, from a seed, unless the caller asks for the fixed ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import blocks
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_seed


def permute_action_labels(mdp: FiniteMDP, seed: int | None) -> FiniteMDP:
    """The same MDP with each state's action labels shuffled from ``seed``; unchanged when the seed is None."""
    if seed is None:
        return mdp
    return mdp.relabel_actions(action_labels(mdp.num_states, mdp.num_actions, seed))


def action_labels(num_states: int, num_actions: int, seed: int) -> NDArray[np.integer]:
    """A new label for each action of each state, shape (S, A), in the smallest type that holds them."""
    random = np.random.default_rng(check_seed(seed))
    labels = np.empty((num_states, num_actions), dtype=np.min_scalar_type(num_actions - 1))
    for first, stop in blocks(num_states):
        labels[first:stop] = random.permuted(np.tile(np.arange(num_actions), (stop - first, 1)), axis=1)
    return labels
