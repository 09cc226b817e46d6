"""What a user would pick instead of `visit`: four walkers for Algorithm 1, from plain to vectorised.

Each follows a policy from the start, stops with probability 1 - gamma before every step, and returns how many steps it
took. None of them is a straw man: the tuned loop uses lists, ``bisect`` and no wrapper, and the NumPy walker
advances ten thousand walks at a time.
"""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.toy_text.utils import categorical_sample

from curious_explorer.mdp.finite_mdp import FiniteMDP

Policy = np.ndarray[Any, np.dtype[np.float64]]


class ToyTextEnv(gymnasium.Env[int, int]):
    """The MDP as Gymnasium's own toy-text environments are written: a table of tuples and `categorical_sample`."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self.observation_space = gymnasium.spaces.Discrete(mdp.num_states)  # type: ignore[assignment]
        self.action_space = gymnasium.spaces.Discrete(mdp.num_actions)  # type: ignore[assignment]
        self.start = mdp.start
        self.table = {
            state: {
                action: [
                    (p, int(s), mdp.rewards[state, action], bool(mdp.terminal[s]))
                    for s, p in zip(*mdp.successors(state, action), strict=True)
                ]
                for action in range(mdp.num_actions)
            }
            for state in range(mdp.num_states)
        }
        self.state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self.state = int(categorical_sample(self.start, self.np_random))
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        outcomes = self.table[self.state][action]
        _, self.state, reward, terminated = outcomes[categorical_sample([o[0] for o in outcomes], self.np_random)]
        return self.state, float(reward), terminated, False, {}


class TunedEnv(gymnasium.Env[int, int]):
    """The same with what a careful Python programmer would do: lists, ``bisect``, the standard library's generator."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self.outcomes = [
            [
                (list(accumulate(p))[:-1], s.tolist(), float(mdp.rewards[state, action]))
                for action in range(mdp.num_actions)
                for s, p in [mdp.successors(state, action)]
            ]
            for state in range(mdp.num_states)
        ]
        self.terminal = mdp.terminal.tolist()
        self.first = int(np.argmax(mdp.start))
        self.state = self.first

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        self.state = self.first
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        cuts, states, reward = self.outcomes[self.state][action]
        self.state = states[bisect(cuts, random.random())] if cuts else states[0]
        return self.state, reward, self.terminal[self.state], False, {}


def tuned_loop(env: TunedEnv, policy: Policy, gamma: float, walks: int) -> int:
    """Actions by ``bisect`` too, names bound outside the loop."""
    cuts = [list(accumulate(row))[:-1] for row in policy.tolist()]
    draw, step, steps = random.random, env.step, 0
    for _ in range(walks):
        state, _ = env.reset()
        terminated = False
        while not terminated and draw() < gamma:
            state, _, terminated, _, _ = step(bisect(cuts[state], draw()))
            steps += 1
    return steps


def plain_loop(env: gymnasium.Env[int, int], policy: Policy, gamma: float, walks: int) -> int:
    """As one writes it first: `categorical_sample` for the action as for the transition."""
    generator = np.random.default_rng(0)
    steps = 0
    for _ in range(walks):
        state, _ = env.reset()
        terminated = False
        while not terminated and generator.random() < gamma:
            action = int(categorical_sample(policy[state], generator))
            state, _, terminated, _, _ = env.step(action)
            steps += 1
    return steps


def vector_env_loop(mdp: FiniteMDP, gamma: float, turns: int, copies: int = 64) -> int:
    """Gymnasium's SyncVectorEnv, all copies stepped in turn; a walk that stops is reset by hand."""
    envs = gymnasium.vector.SyncVectorEnv([lambda: ToyTextEnv(mdp) for _ in range(copies)])
    generator = np.random.default_rng(0)
    envs.reset(seed=0)
    for _ in range(turns):
        envs.step(generator.integers(mdp.num_actions, size=copies))
        stopped = generator.random(copies) >= gamma
        if stopped.any():
            envs.reset(options={"reset_mask": stopped})
    return turns * copies


def numpy_walker(mdp: FiniteMDP, gamma: float, walks: int) -> int:
    """All walks at once, by comparing a column of random numbers with cumulative rows of P_pi."""
    chain = mdp.dense_transitions().mean(axis=1)
    support = [np.flatnonzero(row) for row in chain]
    width = max(map(len, support))
    cumulative = np.ones((mdp.num_states, width))
    successor = np.zeros((mdp.num_states, width), dtype=np.int64)
    for state, next_states in enumerate(support):
        cumulative[state, : len(next_states)] = np.cumsum(chain[state, next_states])
        successor[state, : len(next_states)] = next_states
        successor[state, len(next_states) :] = next_states[-1]
    cumulative[:, -1] = 1.0
    generator = np.random.default_rng(0)
    at = np.full(walks, int(np.argmax(mdp.start)))
    walking = np.arange(walks)
    steps = 0
    while walking.size:
        walking = walking[(generator.random(walking.size) < gamma) & ~mdp.terminal[at[walking]]]
        here = at[walking]
        choice = (generator.random((walking.size, 1)) >= cumulative[here]).sum(axis=1)
        at[walking] = successor[here, choice]
        steps += walking.size
    return steps


class NumpyTRPO:
    """TRPO on tables in NumPy: episodes advanced together, advantages by a backward loop, the step by bisection."""

    def __init__(self, mdp: FiniteMDP, gamma: float, horizon: int) -> None:
        self.cumulative = np.cumsum(mdp.dense_transitions(), axis=2)
        self.cumulative[..., -1] = 1.0
        self.rewards, self.terminal = mdp.rewards, mdp.terminal
        self.first = int(np.argmax(mdp.start))
        self.gamma, self.horizon = gamma, horizon
        self.generator = np.random.default_rng(0)

    def train(self, updates: int, episodes: int, trace: float = 0.95, max_kl: float = 0.05) -> np.ndarray[Any, Any]:
        """The policy after so many updates."""
        num_states, num_actions = self.rewards.shape
        policy = np.full((num_states, num_actions), 1.0 / num_actions)
        critic = np.zeros(num_states)
        for _ in range(updates):
            states, actions, advantages = self.batch(policy, critic, episodes, trace)
            pair = states * num_actions + actions
            count = np.bincount(pair, minlength=policy.size).reshape(policy.shape)
            total = np.bincount(pair, advantages, policy.size).reshape(policy.shape)
            advantage = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
            advantage -= (policy * advantage).sum(axis=1, keepdims=True)
            weight = count.sum(axis=1) / count.sum()
            target = np.bincount(states, advantages + critic[states], num_states)
            seen = count.sum(axis=1)
            critic = np.where(seen > 0, (20 * critic + target) / (20 + seen), critic)
            low, high = 0.0, 1e6
            for _ in range(40):
                middle = (low * high) ** 0.5 if low > 0 else high / 2
                shifted = middle * advantage
                top = shifted.max(axis=1, keepdims=True)
                divergence = weight @ (np.log((policy * np.exp(shifted - top)).sum(axis=1)) + top[:, 0])
                low, high = (middle, high) if divergence <= max_kl else (low, middle)
            scores = policy * np.exp(low * advantage - (low * advantage).max(axis=1, keepdims=True))
            policy = scores / scores.sum(axis=1, keepdims=True)
        return policy

    def batch(
        self, policy: np.ndarray[Any, Any], critic: np.ndarray[Any, Any], episodes: int, trace: float
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """States, actions and advantages of one batch, a row for each step."""
        choice = np.cumsum(policy, axis=1)
        choice[:, -1] = 1.0
        state = np.full(episodes, self.first)
        alive = np.ones(episodes, dtype=bool)
        path: list[tuple[np.ndarray[Any, Any], ...]] = []
        while alive.any() and len(path) < self.horizon:
            action = (self.generator.random((episodes, 1)) >= choice[state]).sum(axis=1)
            following = (self.generator.random((episodes, 1)) >= self.cumulative[state, action]).sum(axis=1)
            path.append((state, action, alive, self.rewards[state, action], following))
            alive = alive & ~self.terminal[following]
            state = following
        advantage = np.zeros(episodes)
        columns = []
        for here, action, walked, reward, following in reversed(path):
            ahead = np.where(self.terminal[following], 0.0, critic[following])
            advantage = np.where(
                walked, reward + self.gamma * ahead - critic[here] + self.gamma * trace * advantage, 0.0
            )
            columns.append((here[walked], action[walked], advantage[walked]))
        states, actions, advantages = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        return states, actions, advantages
