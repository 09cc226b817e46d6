"""An MDP from a function that says what each pair may lead to, with rewards of any size and permuted action labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from curious_explorer import FiniteMDP
from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.assembly import RewardScale

Outcome = tuple[float, int, float]
"""A probability, the state after it, and the reward on the way."""


def from_outcomes(
    states: int,
    actions: int,
    outcomes: Callable[[int, int], Iterable[Outcome]],
    start: int | Sequence[int],
    seed: int,
    *,
    terminal: Iterable[int] = (),
) -> FiniteMDP:
    """An MDP from a function that says what a pair may lead to; several starts are equally likely.

    Rewards outside of [0, 1] are scaled, and so is the 0 that follows an end.
    """
    ends = set(terminal)
    transitions, rewards = np.zeros((states, actions, states)), np.zeros((states, actions, states))
    for state, action in itertools.product(range(states), range(actions)):
        for probability, after, reward in [(1.0, state, 0.0)] if state in ends else outcomes(state, action):
            transitions[state, action, after] += probability
            rewards[state, action, after] = reward
    lowest, highest = min(rewards.min(), 0.0), max(rewards.max(), 0.0)
    scale = RewardScale(float(lowest), max(1.0, float(highest - lowest)))
    starts = np.zeros(states)
    starts[start] = 1.0
    mdp = FiniteMDP(
        *(transitions, (rewards - scale.offset) / scale.factor, starts / starts.sum()),
        terminal=np.isin(np.arange(states), sorted(ends)) if ends else None,
        reward_scale=scale,
    )
    return permute_action_labels(mdp, seed)
