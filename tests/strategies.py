"""Random small MDPs for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale

unit_floats = st.floats(0.0, 1.0, allow_subnormal=False)


@st.composite
def distributions(draw: st.DrawFn, size: int) -> np.ndarray:
    """Probabilities over ``size`` outcomes, most of them zero more often than not."""
    support = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    weights = np.array(draw(st.lists(st.integers(1, 1000), min_size=len(support), max_size=len(support))), dtype=float)
    result = np.zeros(size)
    result[support] = weights / weights.sum()
    return result


@st.composite
def finite_mdps(
    draw: st.DrawFn,
    *,
    max_states: int = 8,
    max_actions: int = 4,
    named: bool = False,
    transition_rewards: bool | None = None,
) -> FiniteMDP:
    """An MDP with a general start, some terminal states, sparse rows, sometimes rewards by transition.

    ``transition_rewards`` fixes whether they do; ``named`` adds names, of states and actions, each sometimes.
    """
    num_states = draw(st.integers(1, max_states))
    num_actions = draw(st.integers(1, max_actions))
    terminal = np.array(draw(st.lists(st.booleans(), min_size=num_states, max_size=num_states)))
    if draw(st.booleans()):
        terminal[:] = False
    dense = np.zeros((num_states * num_actions, num_states))
    for row in range(num_states * num_actions):
        state = row // num_actions
        dense[row] = np.eye(num_states)[state] if terminal[state] else draw(distributions(num_states))
    rows = sparse.csr_array(dense)
    by_transition = draw(st.booleans()) if transition_rewards is None else transition_rewards
    size = rows.nnz if by_transition else num_states * num_actions
    rewards = np.array(draw(st.lists(unit_floats, min_size=size, max_size=size)))
    if not by_transition:
        rewards = rewards.reshape(num_states, num_actions)
        rewards[terminal] = draw(st.sampled_from([0.0, 0.25]))
    names = {}
    if named:
        texts = st.text(max_size=5)
        for kind, count in (("state_names", num_states), ("action_names", num_actions)):
            if draw(st.booleans()):
                names[kind] = draw(st.lists(texts, min_size=count, max_size=count, unique=True))
        finite = st.floats(-1e6, 1e6)
        names["reward_scale"] = RewardScale(draw(finite), draw(st.floats(1e-3, 1e6)))
    return FiniteMDP.from_rows(rows, rewards, draw(distributions(num_states)), terminal=terminal, **names)


@st.composite
def policies(draw: st.DrawFn, mdp: FiniteMDP) -> np.ndarray:
    """A policy for an MDP, shape (S, A), sometimes without some of the actions."""
    return np.array([draw(distributions(mdp.num_actions)) for _ in range(mdp.num_states)])
