"""The chain from which CCT descends (Agarwal, Kakade, Lee and Mahajan 2019, Figure 2).

States s_0..s_{H+1}. Every action leads from s_0 to s_1; from s_1..s_H one action of four moves on and three move back;
the last state is absorbing and pays 1 at every step. Their discount is H / (H + 1), at which the gradient of a uniform
policy is exponentially small in H.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.environments.crossroad_traps import FORWARD, NUM_ACTIONS
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count


def agarwal_chain(length: int, *, permute_actions: int | None = 0) -> FiniteMDP:
    """Agarwal's chain with H = ``length``, so ``length + 2`` states and four actions.

    Args:
        length: H, how many right choices lead from s_1 to the paying state.
        permute_actions: seed for the action labels of each state; None keeps "action 0 is forward" everywhere.
    """
    length = check_count(length, "length", least=1, most=10_000)
    last = length + 1
    transitions = np.zeros((last + 1, NUM_ACTIONS, last + 1))
    transitions[0, :, 1] = 1.0
    for state in range(1, last):
        transitions[state, :, state - 1] = 1.0
        transitions[state, FORWARD] = 0.0
        transitions[state, FORWARD, state + 1] = 1.0
    transitions[last, :, last] = 1.0
    rewards = np.zeros((last + 1, NUM_ACTIONS))
    rewards[last] = 1.0
    # Absorbing but not terminal: it pays for ever, and an agent may stay to collect.
    mdp = FiniteMDP(transitions, rewards, 0, state_names=[f"s{state}" for state in range(last + 1)])
    return permute_action_labels(mdp, permute_actions)
