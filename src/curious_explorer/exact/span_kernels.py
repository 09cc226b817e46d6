"""Modified policy iteration with MacQueen's bounds, for MDPs with many states.

One sweep of the optimality operator T finds a greedy policy; a few sweeps of that policy's own operator, which touch
only one action per state, then carry the values most of the way; and again. With lo <= T u - u <= hi,

    T u + gamma / (1 - gamma) lo  <=  v*  <=  T u + gamma / (1 - gamma) hi,

so the middle of the bounds is wrong by at most gamma / (1 - gamma) (hi - lo) / 2. Only the span hi - lo has to become
small, which on an MDP that mixes happens at the rate of mixing, whatever gamma is. Constants are dropped from the
iterates as they arise (the bounds do not see them), and put back once at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Indices
from curious_explorer.compile import compiled

Unsigned = NDArray[np.uint32]
"""Indices here are unsigned, which spares the compiled code the check for negative ones (a factor of two)."""

EVALUATION_SWEEPS = 50
"""The most sweeps spent on one policy."""
EVALUATION_GAIN = 0.1
"""A policy is left when its own span has shrunk to this part of what the optimality operator saw."""


@compiled
def apply_rows(
    indptr: Unsigned, indices: Unsigned, data: Floats, source: Floats, gamma: float, values: Floats
) -> Floats:
    """The product source + gamma rows v, one number for each row."""
    product = np.empty(source.size)
    for row in range(source.size):
        expected = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            expected += data[entry] * values[indices[entry]]
        product[row] = source[row] + gamma * expected
    return product


@compiled
def take_best(action_values: Floats, values: Floats, updated: Floats, rows: Indices) -> tuple[float, float]:
    """T v into ``updated`` and greedy rows into ``rows``; the least and the largest entry of T v - v.

    A pass of its own, and without branches: which action wins is a coin toss to the processor, and a wrong guess inside
    `apply_rows` would stop it from fetching ahead.
    """
    num_actions = action_values.size // values.size
    low, high = np.inf, -np.inf
    for state in range(values.size):
        best, best_row = -np.inf, 0
        for row in range(state * num_actions, (state + 1) * num_actions):
            better = action_values[row] > best
            best_row = row if better else best_row
            best = action_values[row] if better else best
        rows[state] = best_row
        updated[state] = best
        change = best - values[state]
        low = change if change < low else low
        high = change if change > high else high
    return low, high


@compiled
def select_rows(
    indptr: Unsigned, indices: Unsigned, data: Floats, source: Floats, rows: Indices
) -> tuple[Unsigned, Unsigned, Floats, Floats]:
    """The rows of one policy, side by side, so that evaluating it reads nothing else."""
    chain_indptr = np.zeros(rows.size + 1, np.uint32)
    for state in range(rows.size):
        chain_indptr[state + 1] = chain_indptr[state] + (indptr[rows[state] + 1] - indptr[rows[state]])
    chain_indices = np.empty(chain_indptr[rows.size], np.uint32)
    chain_data = np.empty(chain_indptr[rows.size], np.float64)
    chain_source = np.empty(rows.size, np.float64)
    for state in range(rows.size):
        chain_source[state] = source[rows[state]]
        first, target = indptr[rows[state]], chain_indptr[state]
        for offset in range(indptr[rows[state] + 1] - first):
            chain_indices[target + offset] = indices[first + offset]
            chain_data[target + offset] = data[first + offset]
    return chain_indptr, chain_indices, chain_data, chain_source


@compiled
def policy_sweep(
    indptr: Unsigned, indices: Unsigned, data: Floats, source: Floats, gamma: float, constant: float, values: Floats,
    updated: Floats
) -> tuple[float, float]:  # fmt: skip
    """T_pi v minus a constant into ``updated``; the least and the largest change."""
    for state in range(values.size):
        expected = 0.0
        for entry in range(indptr[state], indptr[state + 1]):
            expected += data[entry] * values[indices[entry]]
        updated[state] = source[state] + gamma * expected - constant
    low, high = np.inf, -np.inf
    for state in range(values.size):
        change = updated[state] - values[state]
        low = change if change < low else low
        high = change if change > high else high
    return low, high


@compiled
def modified_policy_iteration(
    indptr: Unsigned, indices: Unsigned, data: Floats, source: Floats, num_states: int, gamma: float, target: float,
    budget: int
) -> tuple[Floats, int]:  # fmt: skip
    """Optimal values and the sweeps spent; stops early when the rate shows that the budget will not suffice."""
    values = np.zeros(num_states)
    updated = np.empty(num_states)
    rows = np.empty(num_states, np.int32)
    sweeps = 0
    first_span = -1.0
    last_span = np.inf
    stalls = 0
    while True:
        action_values = apply_rows(indptr, indices, data, source, gamma, values)
        low, high = take_best(action_values, values, updated, rows)
        sweeps += 1
        span = high - low
        middle = 0.5 * (low + high)
        stalls += not span < last_span
        last_span = span
        if gamma * 0.5 * span <= target or sweeps >= budget or stalls >= 3:
            break
        if first_span < 0.0:
            first_span = span
        elif sweeps > 100:
            rate = np.log(first_span / span) / sweeps
            if sweeps + np.log(gamma * 0.5 * span / target) / max(rate, 1e-12) > budget:
                break
        chain = select_rows(indptr, indices, data, source, rows)
        values, updated = updated, values
        constant = middle
        for _ in range(EVALUATION_SWEEPS):
            low, high = policy_sweep(chain[0], chain[1], chain[2], chain[3], gamma, constant, values, updated)
            values, updated = updated, values
            constant += 0.5 * (low + high)
            sweeps += 1
            if high - low <= EVALUATION_GAIN * span:
                break
    for state in range(num_states):
        updated[state] += gamma / (1.0 - gamma) * middle
    return updated, sweeps
