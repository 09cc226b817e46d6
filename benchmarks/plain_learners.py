"""Three of the methods as one writes them first, in Python and NumPy: what the compiled ones are measured against.

They act in `ToyTextEnv`, the MDP as Gymnasium's own tabular environments are written. Each takes ``steps`` steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rivals import ToyTextEnv

Array = np.ndarray[Any, np.dtype[np.float64]]

HORIZON = 90


def q_learning(env: ToyTextEnv, num_states: int, num_actions: int, gamma: float, steps: int) -> Array:
    """Epsilon-greedy Q-learning with a table."""
    random = np.random.default_rng(0)
    q = np.zeros((num_states, num_actions))
    state, _ = env.reset(seed=0)
    age = 0
    for _ in range(steps):
        if random.random() < 0.1:
            action = int(random.integers(num_actions))
        else:
            action = int(random.choice(np.flatnonzero(q[state] == q[state].max())))
        following, reward, terminated, _, _ = env.step(action)
        target = reward + (0.0 if terminated else gamma * q[following].max())
        q[state, action] += 0.1 * (target - q[state, action])
        state, age = following, age + 1
        if terminated or age >= HORIZON:
            (state, _), age = env.reset(), 0
    return q


class _Counts:
    """Dense counts, and value iteration by matrix products."""

    def __init__(self, num_states: int, num_actions: int) -> None:
        self.times = np.zeros((num_states, num_actions, num_states))
        self.paid = np.zeros((num_states, num_actions))
        self.values = np.ones(num_states)
        self.ended = np.zeros(num_states, dtype=bool)

    def plan(self, gamma: float, bonus: Array, unknown: np.ndarray[Any, np.dtype[np.bool_]]) -> Array:
        tries = np.maximum(self.times.sum(axis=2), 1)
        chances, rewards = self.times / tries[:, :, None], self.paid / tries + bonus
        while True:
            q: Array = np.minimum(1.0, (1.0 - gamma) * rewards + gamma * chances @ self.values)
            q[unknown] = 1.0
            q[self.ended] = 0.0
            change = np.abs(q.max(axis=1) - self.values).max()
            self.values = q.max(axis=1)
            if change <= 1e-7 * (1.0 - gamma):
                return q


def r_max(env: ToyTextEnv, num_states: int, num_actions: int, gamma: float, steps: int, known_after: int = 3) -> Array:
    """R-MAX: plan again whenever a pair becomes known."""
    random = np.random.default_rng(0)
    counts = _Counts(num_states, num_actions)
    nothing = np.zeros((num_states, num_actions))
    q = np.ones((num_states, num_actions))
    state, _ = env.reset(seed=0)
    age = 0
    for _ in range(steps):
        action = int(random.choice(np.flatnonzero(q[state] >= q[state].max() - 2e-7)))
        following, reward, terminated, _, _ = env.step(action)
        counts.times[state, action, following] += 1
        counts.paid[state, action] += reward
        counts.ended[following] |= terminated
        if counts.times[state, action].sum() == known_after:
            q = counts.plan(gamma, nothing, counts.times.sum(axis=2) < known_after)
        state, age = following, age + 1
        if terminated or age >= HORIZON:
            (state, _), age = env.reset(), 0
    return q


def ucbvi(env: ToyTextEnv, num_states: int, num_actions: int, gamma: float, steps: int, scale: float = 0.05) -> Array:
    """UCBVI: plan with bonuses after every episode."""
    random = np.random.default_rng(0)
    counts = _Counts(num_states, num_actions)
    q = np.ones((num_states, num_actions))
    state, _ = env.reset(seed=0)
    age = 0
    for _ in range(steps):
        action = int(random.choice(np.flatnonzero(q[state] >= q[state].max() - 2e-7)))
        following, reward, terminated, _, _ = env.step(action)
        counts.times[state, action, following] += 1
        counts.paid[state, action] += reward
        counts.ended[following] |= terminated
        state, age = following, age + 1
        if terminated or age >= HORIZON:
            tries = counts.times.sum(axis=2)
            bonus = scale / ((1.0 - gamma) * np.sqrt(np.maximum(tries, 1)))
            q = np.minimum(q, counts.plan(gamma, bonus, tries == 0))
            (state, _), age = env.reset(), 0
    return q
