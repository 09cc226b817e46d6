"""Random small MDPs from a seed, with everything an MDP may have: general start, terminal states, uneven rows."""

from __future__ import annotations

import numpy as np

from curious_explorer import FiniteMDP


def random_mdp(seed, *, num_states=None, num_actions=None, terminal=True, transition_rewards=False):
    """A random MDP with 2 to 12 states and 1 to 4 actions unless said otherwise; state 0 is never terminal."""
    random = np.random.default_rng(seed)
    num_states = num_states or int(random.integers(2, 13))
    num_actions = num_actions or int(random.integers(1, 5))
    transitions = random.random((num_states, num_actions, num_states)) ** 3
    transitions *= random.random(transitions.shape) < 0.5
    transitions[:, :, 0] += 1e-3
    transitions /= transitions.sum(axis=2, keepdims=True)
    ends = random.random(num_states) < 0.2 if terminal else np.zeros(num_states, dtype=bool)
    ends[0] = False
    transitions[ends] = 0.0
    start = random.random(num_states) * (random.random(num_states) < 0.5)
    start[0] += 0.1
    shape = transitions.shape if transition_rewards else transitions.shape[:2]
    rewards = random.random(shape)
    return FiniteMDP(transitions, rewards, start / start.sum(), terminal=ends)


def random_policy(mdp, seed, *, zeros=0.3):
    """A random policy in which some actions are impossible."""
    random = np.random.default_rng(seed)
    table = random.random((mdp.num_states, mdp.num_actions)) * (
        random.random((mdp.num_states, mdp.num_actions)) >= zeros
    )
    table[np.arange(mdp.num_states), random.integers(mdp.num_actions, size=mdp.num_states)] += 0.1
    return table / table.sum(axis=1, keepdims=True)
