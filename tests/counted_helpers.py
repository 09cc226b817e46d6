"""Counted models made from an MDP, as if everything had been tried so often that the counts are its probabilities."""

import numpy as np

from curious_explorer.models.counted_model import CountedModel
from curious_explorer.worlds.world import TransitionCounts


def counted(mdp, tries=1_000_000, skip=()):
    """What ``tries`` of every pair would count on average; states in ``skip`` are neither entered nor left."""
    model = CountedModel(mdp.num_states, mdp.num_actions)
    rows = mdp.transitions.tocoo()
    state, action = np.divmod(rows.row, mdp.num_actions)
    times = np.round(tries * rows.data).astype(np.int64)
    kept = (times > 0) & ~mdp.terminal[state] & ~np.isin(state, skip) & ~np.isin(rows.col, skip)
    paid = mdp.rewards[state, action]
    model.add(
        TransitionCounts(
            state[kept].astype(np.int64),
            action[kept].astype(np.int64),
            rows.col[kept].astype(np.int64),
            times[kept],
            paid[kept],
        )
    )
    model.terminal[:] = mdp.terminal & model.met()
    model.starts[:] = np.round(tries * mdp.start)
    return model
