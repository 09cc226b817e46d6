"""The exact distribution of a reset model, for whoever has the MDP: Algorithm 2's recursion, solved and not sampled."""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.exact import visitation
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import RHO_WEIGHT, ResetModel
from curious_explorer.worlds.policies import as_table


def exact_visits(reset_model: ResetModel, mdp: FiniteMDP) -> list[Floats]:
    """D_0, ..., D_N."""
    reset_model.check_world(mdp)
    visits = []
    mu = mdp.start
    for policy in reset_model.policies:
        table = as_table(policy, "an exact distribution")
        visits.append(visitation(mdp, table, gamma=reset_model.gamma, start=mu / mu.sum()))
        mu = RHO_WEIGHT * mdp.start + (1.0 - RHO_WEIGHT) * visits[-1]
    return visits


def exact_distribution(reset_model: ResetModel, mdp: FiniteMDP) -> Floats:
    """mu: half the start distribution, half the visits as the model weighs them."""
    visits = exact_visits(reset_model, mdp)
    visited: Floats = reset_model.shares @ np.array(visits)
    return RHO_WEIGHT * mdp.start + (1.0 - RHO_WEIGHT) * visited
