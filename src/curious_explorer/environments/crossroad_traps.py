"""Consecutive Crossroad Traps, CCT(d): a chain in which one action of four moves on and the rest fall back.

States T0..Td. In every state but the last, one action goes one step forward and three go one step back (at T0 back
means stay). Entering Td pays 1 and ends the episode. The optimal discounted return from T0 is gamma ** (d - 1), while
a uniform policy needs a time exponential in d to see any reward at all.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count

NUM_ACTIONS = 4
FORWARD = 0  # before labels are permuted


def crossroad_traps(depth: int, *, permute_actions: int | None = 0) -> FiniteMDP:
    """CCT(depth), with ``depth + 1`` states and four actions.

    Args:
        depth: how many right choices lead from the start to the reward.
        permute_actions: seed for the action labels of each state; None keeps "action 0 is forward" everywhere.
    """
    depth = check_count(depth, "depth", least=1, most=10_000)
    num_states = depth + 1
    transitions = np.zeros((num_states, NUM_ACTIONS, num_states))
    rewards = np.zeros((num_states, NUM_ACTIONS))
    for state in range(depth):
        transitions[state, :, max(state - 1, 0)] = 1.0
        transitions[state, FORWARD] = 0.0
        transitions[state, FORWARD, state + 1] = 1.0
    rewards[depth - 1, FORWARD] = 1.0  # paid on entering the end
    mdp = FiniteMDP(transitions, rewards, 0, terminal=[depth], state_names=[f"T{state}" for state in range(num_states)])
    return permute_action_labels(mdp, permute_actions)
