"""RiverSwim (Strehl and Littman 2008, Figure 1): a little food downstream, a treasure upstream against the current.

States 0..n-1 from left to right, two actions. Swimming left (with the current) always works. Swimming right moves on
with probability 0.3, stays with 0.6 and is swept back with 0.1; in the leftmost state it moves on with 0.3 and stays
with 0.7, in the rightmost it stays with 0.3 and is swept back with 0.7. Swimming left in the leftmost state pays 5,
holding out in the rightmost one pays 10,000. An episode begins in state 1 or 2, with equal probability, and never ends.

Rewards are divided by 10,000, which `FiniteMDP.reward_scale` keeps. Transitions, rewards and starts are those of the
class ``RiverSwimEnv`` written for the package table-rl, which names the same paper. Others use the name for other
numbers: implementations of Osband, Russo and Van Roy (2013) swim with 0.35, 0.6 and 0.05, and with 0.6 at both ends,
for rewards of 0.005 and 1, from the leftmost state. Lengths other than six are ours.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.validation import check_count

LEFT, RIGHT = 0, 1  # before labels are permuted
SMALL_REWARD, LARGE_REWARD = 5.0, 10_000.0
FORWARD, STAY, SWEPT_BACK = 0.3, 0.6, 0.1


def river_swim(num_states: int = 6, *, permute_actions: int | None = 0) -> FiniteMDP:
    """RiverSwim with two actions; six states are the published size.

    Args:
        num_states: how long the river is; at least 3, since episodes begin in state 1 or 2.
        permute_actions: seed for the action labels of each state; None keeps "action 1 is right" everywhere.
    """
    last = check_count(num_states, "num_states", least=3, most=10_000) - 1
    transitions = np.zeros((last + 1, 2, last + 1))
    rewards = np.zeros(transitions.shape)
    for state in range(last + 1):
        transitions[state, LEFT, max(state - 1, 0)] = 1.0
        transitions[state, RIGHT, max(state - 1, 0)] += SWEPT_BACK
        transitions[state, RIGHT, state] += STAY
        transitions[state, RIGHT, min(state + 1, last)] += FORWARD
    transitions[last, RIGHT] = 0.0
    transitions[last, RIGHT, last] = FORWARD
    transitions[last, RIGHT, last - 1] = 1.0 - FORWARD
    rewards[0, LEFT, 0] = SMALL_REWARD / LARGE_REWARD
    rewards[last, RIGHT, last] = 1.0
    start = np.zeros(last + 1)
    start[1:3] = 0.5
    mdp = FiniteMDP(transitions, rewards, start, reward_scale=RewardScale(0.0, LARGE_REWARD))
    return permute_action_labels(mdp, permute_actions)
