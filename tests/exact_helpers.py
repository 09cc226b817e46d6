"""Random MDPs and independent judges for the exact solvers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from quantecon.markov import DiscreteDP
from scipy import sparse
from scipy.optimize import linprog

from curious_explorer.mdp.finite_mdp import FiniteMDP


def random_mdp(seed: int, num_states: int = 8, num_actions: int = 3, *, density: float = 0.5) -> FiniteMDP:
    """A random MDP with cycles, self-loops, a terminal state now and then, and a random start distribution."""
    random = np.random.default_rng(seed)
    weights = random.random((num_states, num_actions, num_states))
    weights *= random.random(weights.shape) < density
    weights[..., 0] += 1e-3
    transitions = weights / weights.sum(axis=2, keepdims=True)
    terminal = [num_states - 1] if seed % 2 and num_states > 1 else []
    for state in terminal:
        transitions[state] = 0.0
    return FiniteMDP(
        transitions,
        random.random((num_states, num_actions)),
        random.dirichlet(np.ones(num_states)),
        terminal=terminal,
    )


def layered_mdp(seed: int, num_states: int = 9, num_actions: int = 2) -> FiniteMDP:
    """A random MDP whose only cycles are self-loops, with states numbered in no particular order."""
    random = np.random.default_rng(seed)
    label = random.permutation(num_states)
    transitions = np.zeros((num_states, num_actions, num_states))
    for level in range(num_states):
        later = random.random((num_actions, num_states - level)) + 1e-3
        transitions[label[level]][:, label[level:]] = later / later.sum(axis=1, keepdims=True)
    return FiniteMDP(transitions, random.random((num_states, num_actions)), random.dirichlet(np.ones(num_states)))


def random_policy(mdp: FiniteMDP, seed: int) -> np.ndarray:
    """A random policy in which about a third of the actions have probability zero."""
    random = np.random.default_rng(seed)
    weights = random.random((mdp.num_states, mdp.num_actions))
    weights *= random.random(weights.shape) < 0.7
    weights[:, 0] += 1e-3
    return weights / weights.sum(axis=1, keepdims=True)


def slippery_torus(size: int, *, slip: float, seed: int = 0) -> FiniteMDP:
    """A grid without walls whose borders meet: a move slips with probability ``slip``; random rewards."""
    num_states = size * size
    states = np.arange(num_states)
    row, column = states // size, states % size
    steps = ((-1, 0), (0, 1), (1, 0), (0, -1))
    neighbours = np.stack([(row + up) % size * size + (column + right) % size for up, right in steps], axis=1)
    chances = np.full((4, 4), slip / 4) + (1.0 - slip) * np.eye(4)
    pairs = np.repeat(np.arange(4 * num_states), 4)
    entries = (np.tile(chances, (num_states, 1)).ravel(), (pairs, np.repeat(neighbours, 4, axis=0).ravel()))
    rows = sparse.csr_array(sparse.coo_array(entries, shape=(4 * num_states, num_states)))
    return FiniteMDP.from_rows(rows, np.random.default_rng(seed).random((num_states, 4)), 0)


def back_and_forth(num_states: int, *, forward: float = 0.5, order: np.ndarray | None = None) -> FiniteMDP:
    """A corridor: action 0 steps right with the probability given, else left; action 1 the reverse; the end pays."""
    label = np.arange(num_states) if order is None else order
    here = np.arange(num_states)
    right, left = np.minimum(here + 1, num_states - 1), np.maximum(here - 1, 0)
    matrices = []
    for chance in (forward, 1.0 - forward):
        weights = np.concatenate([np.full(num_states, chance), np.full(num_states, 1.0 - chance)])
        rows, columns = np.tile(label, 2), label[np.concatenate([right, left])]
        matrices.append(sparse.csr_array((weights, (rows, columns)), shape=(num_states, num_states)))
    rewards = np.zeros((num_states, 2))
    rewards[label[-1]] = 1.0
    return FiniteMDP(matrices, rewards, int(label[0]))


def quantecon(mdp: FiniteMDP, gamma: float, rewards: np.ndarray | None = None) -> DiscreteDP:
    """The same problem as QuantEcon's DiscreteDP, in its sparse form; its values are ours divided by 1 - gamma."""
    states = np.repeat(np.arange(mdp.num_states), mdp.num_actions)
    actions = np.tile(np.arange(mdp.num_actions), mdp.num_states)
    table = mdp.rewards if rewards is None else rewards
    return DiscreteDP(table.ravel(), mdp.transitions, gamma, states, actions)


def dense_chain(mdp: FiniteMDP, policy: np.ndarray) -> np.ndarray:
    return np.einsum("sa,sat->st", policy, mdp.dense_transitions())


def dense_visitation(mdp: FiniteMDP, policy: np.ndarray, gamma: float, start: np.ndarray | None = None) -> np.ndarray:
    mu = mdp.start if start is None else start
    return np.linalg.solve(np.eye(mdp.num_states) - gamma * dense_chain(mdp, policy).T, (1 - gamma) * mu)


def dense_values(mdp: FiniteMDP, policy: np.ndarray, gamma: float, rewards: np.ndarray | None = None) -> np.ndarray:
    table = mdp.rewards if rewards is None else rewards
    source = (1 - gamma) * (policy * table).sum(axis=1)
    return np.linalg.solve(np.eye(mdp.num_states) - gamma * dense_chain(mdp, policy), source)


def program_value(mdp: FiniteMDP, gamma: float, rewards: np.ndarray, start: np.ndarray) -> float:
    """The optimal normalised value from a start, by linear programming over state-action visitation."""
    num_states, num_actions = mdp.num_states, mdp.num_actions
    flow = np.repeat(np.eye(num_states), num_actions, axis=1) - gamma * mdp.transitions.toarray().T
    result = linprog(-rewards.ravel(), A_eq=flow, b_eq=(1 - gamma) * start, bounds=(0, None), method="highs")
    assert result.status == 0, result.message
    return -float(result.fun)


def rational_solution(matrix: list[list[Fraction]], source: list[Fraction]) -> list[Fraction]:
    """The exact solution of a linear system, by Gauss-Jordan in rational arithmetic."""
    size = len(source)
    rows = [[*matrix[i], source[i]] for i in range(size)]
    for pivot in range(size):
        swap = next(i for i in range(pivot, size) if rows[i][pivot])
        rows[pivot], rows[swap] = rows[swap], rows[pivot]
        rows[pivot] = [entry / rows[pivot][pivot] for entry in rows[pivot]]
        for i in range(size):
            if i != pivot and rows[i][pivot]:
                factor = rows[i][pivot]
                rows[i] = [entry - factor * base for entry, base in zip(rows[i], rows[pivot], strict=True)]
    return [row[-1] for row in rows]
