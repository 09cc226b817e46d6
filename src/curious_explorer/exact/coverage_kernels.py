"""Compiled kernels for many targets at once: the best discounted visitation of each of a block of states.

Rewards are 1 in the target and 0 elsewhere. Values of all targets in a block lie side by side, ``values[s, k]`` for
target k, so that one look at a transition serves the whole block and the inner loops are vectorised.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats, Indices
from curious_explorer.compile import compiled
from curious_explorer.exact.kernels import Order
from curious_explorer.exact.optimal_kernels import bellman_residual, policy_iteration
from curious_explorer.exact.span_kernels import apply_rows


@compiled
def acyclic_block(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, order: Order, targets: Order, gamma: float
) -> Floats:
    """Optimal values, shape (S, block), of an MDP without cycles: one pass, successors first."""
    num_states = order.size
    column = np.full(num_states, -1, np.int64)
    for slot in range(targets.size):
        column[targets[slot]] = slot
    values = np.zeros((num_states, targets.size))
    ahead = np.empty(targets.size)
    for position in range(num_states):
        state = order[position]
        best = values[state]
        for row in range(state * num_actions, (state + 1) * num_actions):
            ahead[:] = 0.0
            leaving = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                if indices[entry] != state:
                    leaving += data[entry]
                    weight = gamma * data[entry]
                    successor = values[indices[entry]]
                    for slot in range(targets.size):
                        ahead[slot] += weight * successor[slot]
            if column[state] >= 0:
                ahead[column[state]] += 1.0 - gamma
            closing = 1.0 / ((1.0 - gamma) + gamma * leaving)
            for slot in range(targets.size):
                best[slot] = max(best[slot], closing * ahead[slot])
    return values


@compiled
def optimality_block(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Order, gamma: float, values: Floats,
    updated: Floats
) -> tuple[Floats, Floats]:  # fmt: skip
    """T v into ``updated`` for every target of the block; the least and largest entries of T v - v."""
    num_states = values.shape[0]
    column = np.full(num_states, -1, np.int64)
    for slot in range(targets.size):
        column[targets[slot]] = slot
    low = np.full(targets.size, np.inf)
    high = np.full(targets.size, -np.inf)
    ahead = np.empty(targets.size)
    for state in range(num_states):
        best = updated[state]
        best[:] = -np.inf
        for row in range(state * num_actions, (state + 1) * num_actions):
            ahead[:] = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                weight = gamma * data[entry]
                successor = values[indices[entry]]
                for slot in range(targets.size):
                    ahead[slot] += weight * successor[slot]
            for slot in range(targets.size):
                best[slot] = max(best[slot], ahead[slot])
        if column[state] >= 0:
            best[column[state]] += 1.0 - gamma
        here = values[state]
        for slot in range(targets.size):
            change = best[slot] - here[slot]
            low[slot] = min(low[slot], change)
            high[slot] = max(high[slot], change)
    return low, high


@compiled
def span_block(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Order, gamma: float, goal: float,
    budget: int
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """Value iteration with MacQueen's bounds; values (S, block), the half-span of each target, sweeps."""
    num_states = (indptr.size - 1) // num_actions
    values = np.zeros((num_states, targets.size))
    updated = np.empty((num_states, targets.size))
    for sweep in range(1, budget + 1):
        low, high = optimality_block(indptr, indices, data, num_actions, targets, gamma, values, updated)
        middle = 0.5 * (low + high)
        half_span = gamma * 0.5 * (high - low)
        if half_span.max() <= goal or sweep == budget:
            break
        values, updated = updated, values
        values -= middle
    updated += gamma / (1.0 - gamma) * middle
    return updated, half_span, sweep


@compiled
def policy_iteration_targets(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Order, gamma: float, start: Floats,
    lower: int, upper: int, limit: int
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """Policy iteration target by target; the value from the start, the Bellman residual, policies evaluated."""
    num_states = (indptr.size - 1) // num_actions
    found = np.empty(targets.size)
    residuals = np.empty(targets.size)
    evaluated = 0
    source = np.zeros(num_states * num_actions)
    unsigned = indptr.view(np.uint32), indices.view(np.uint32)
    for slot in range(targets.size):
        first = targets[slot] * num_actions
        source[first : first + num_actions] = 1.0 - gamma
        values, count = policy_iteration(indptr, indices, data, source, num_states, gamma, lower, upper, limit)
        evaluated += count
        residuals[slot] = bellman_residual(apply_rows(*unsigned, data, source, gamma, values), values)
        found[slot] = start @ values
        source[first : first + num_actions] = 0.0
    return found, residuals, evaluated


@compiled
def block_residual(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Order, gamma: float, values: Floats
) -> Floats:
    """The sup norm of T v - v for every target of the block."""
    low, high = optimality_block(indptr, indices, data, num_actions, targets, gamma, values, np.empty_like(values))
    return np.maximum(-low, high)
