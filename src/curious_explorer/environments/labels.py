"""Action labels that give nothing away.

With a fixed labelling ("action 0 is always right") an ``argmax`` over tied values solves the test problems by
accident. So labels are permuted state by state, from a seed, unless the caller asks for the fixed ones.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.mdp import FiniteMDP
from curious_explorer.mdp.validation import check_seed


def permute_action_labels(mdp: FiniteMDP, seed: int | None) -> FiniteMDP:
    """The same MDP with each state's action labels shuffled from ``seed``; unchanged when the seed is None."""
    if seed is None:
        return mdp
    labels = np.tile(np.arange(mdp.num_actions), (mdp.num_states, 1))
    return mdp.relabel_actions(np.random.default_rng(check_seed(seed)).permuted(labels, axis=1))
