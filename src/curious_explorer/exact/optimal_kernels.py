"""Compiled passes of the Bellman optimality operator.

Arguments are those of `kernels`, and ``source[s * A + a]`` = (1 - gamma) r(s, a), not negative. Updates of a single
state solve its self-loop in place: staying with action a for ever while in s is worth

    u(s, a) = (source(s, a) + gamma sum_{s' != s} P(s'|s, a) v(s')) / (1 - gamma P(s|s, a)),

and max_a u(s, a) is the value of s once its successors have theirs. As in `kernels`, nothing is ever subtracted.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats, Indices
from curious_explorer.compile import compiled
from curious_explorer.exact.elimination import factorise, fill_band, solve_values
from curious_explorer.exact.kernels import Order

RELATIVE_GAIN = 1e-13
"""A change of action must gain this much, relative to the value; smaller gains may be rounding, and would cycle."""
FINE_GAIN = 2e-15
FINE_ROUNDS = 20
"""Once stable, policy iteration goes on with the finer threshold for at most this many rounds."""


@compiled
def closed_value(
    indptr: Indices, indices: Indices, data: Floats, values: Floats, source: float, row: int, state: int, gamma: float
) -> float:
    """What it is worth to follow one row for as long as its state lasts."""
    leaving = 0.0
    expected = 0.0
    for entry in range(indptr[row], indptr[row + 1]):
        if indices[entry] != state:
            leaving += data[entry]
            expected += data[entry] * values[indices[entry]]
    return (source + gamma * expected) / ((1.0 - gamma) + gamma * leaving)


@compiled
def acyclic_values(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, order: Order, gamma: float
) -> Floats:
    """Optimal values of an MDP without cycles (self-loops apart), in one pass, successors first."""
    num_states = order.size
    num_actions = source.size // num_states
    values = np.zeros(num_states)
    for position in range(num_states):
        state = order[position]
        best = 0.0
        for row in range(state * num_actions, (state + 1) * num_actions):
            best = max(best, closed_value(indptr, indices, data, values, source[row], row, state, gamma))
        values[state] = best
    return values


@compiled
def improve_in_place(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, rows: Indices, values: Floats, gamma: float,
    gain: float, backwards: bool
) -> bool:  # fmt: skip
    """One Gauss-Seidel sweep that raises values and switches actions; whether any action was switched."""
    num_states = rows.size
    num_actions = source.size // num_states
    switched = False
    for step in range(num_states):
        state = num_states - 1 - step if backwards else step
        current = closed_value(indptr, indices, data, values, source[rows[state]], rows[state], state, gamma)
        best = current
        for row in range(state * num_actions, (state + 1) * num_actions):
            value = closed_value(indptr, indices, data, values, source[row], row, state, gamma)
            if value > best and value > current * (1.0 + gain):
                best = value
                rows[state] = row
                switched = True
        values[state] = max(values[state], best)
    return switched


@compiled
def policy_iteration(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, num_states: int, gamma: float, lower: int,
    upper: int, limit: int
) -> tuple[Floats, int]:  # fmt: skip
    """Optimal values by policy iteration, each policy evaluated by elimination; and how many were evaluated.

    Gauss-Seidel sweeps both ways between evaluations carry news along a chain at once rather than state by state.
    They raise values monotonically, so the policy they leave behind is at least as good as what they show.
    """
    num_actions = source.size // num_states
    rows = np.arange(0, source.size, num_actions).astype(np.int32)
    values = np.zeros(num_states)
    improve_in_place(indptr, indices, data, source, rows, values, gamma, RELATIVE_GAIN, True)
    improve_in_place(indptr, indices, data, source, rows, values, gamma, RELATIVE_GAIN, False)
    gain = RELATIVE_GAIN
    fine_rounds = 0
    for evaluation in range(1, limit + 1):
        band = fill_band(indptr, indices, data, rows, gamma, lower, upper)
        factorise(band, gamma, lower, upper)
        values = solve_values(band, source[rows], lower, upper)
        improved = values.copy()
        switched = improve_in_place(indptr, indices, data, source, rows, improved, gamma, gain, True)
        switched |= improve_in_place(indptr, indices, data, source, rows, improved, gamma, gain, False)
        fine_rounds += gain == FINE_GAIN
        if not switched:
            if gain == FINE_GAIN:
                return values, evaluation
            gain = FINE_GAIN
        if fine_rounds >= FINE_ROUNDS:
            return values, evaluation
    return values, limit


@compiled
def bellman_residual(action_values: Floats, values: Floats) -> float:
    """The largest distance between a state's value and the best of its action values."""
    num_actions = action_values.size // values.size
    residual = 0.0
    for state in range(values.size):
        best = -np.inf
        for row in range(state * num_actions, (state + 1) * num_actions):
            best = max(best, action_values[row])
        gap = abs(best - values[state])
        if not gap <= residual:  # so that a NaN is not passed over
            residual = gap
    return residual


@compiled
def split_ties(action_values: Floats, num_actions: int, relative: float, absolute: float) -> Floats:
    """The greedy policy, shape (S, A), with probability split evenly over actions that are as good as tied."""
    num_states = action_values.size // num_actions
    policy = np.zeros((num_states, num_actions))
    for state in range(num_states):
        here = action_values[state * num_actions : (state + 1) * num_actions]
        best = here.max()
        threshold = best - (relative * abs(best) + absolute)
        tied = 0
        for action in range(num_actions):
            tied += here[action] >= threshold
        for action in range(num_actions):
            if here[action] >= threshold:
                policy[state, action] = 1.0 / tied
    return policy
