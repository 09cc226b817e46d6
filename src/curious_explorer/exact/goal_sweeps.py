"""Sweeps in the order of the distance to where rewards are paid.

A breadth-first search backwards from the states that pay visits states with their successors first. Updated in place in
that order, self-loops solved on the way, values are exact after one sweep where moves are certain, cycles or not; where
they are not, each sweep carries values along the likely ways at once. Values rise from zero, nothing is subtracted, and
the sweeps end when none of them gains more than rounding. States from which no reward can be reached are worth zero.

*One state that pays for being there* (`goal_values`). Let f(x) be the best of E[gamma^T] over all policies, where T is
the time at which the target g is first entered: f(g) = 1, held fixed, and the others are swept. Coming back to g as
well as one can is worth

    c = gamma max_a sum_x' P(x'|g, a) f(x'),      so that      v*_g(x) = (1 - gamma) f(x) / (1 - c)

is the optimal value of the reward that is 1 in g and 0 elsewhere: no sweep has to carry a value around a cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.compile import compiled
from curious_explorer.exact.policy_chain import Rows

ROUNDING_GAIN = 1e-14
"""A sweep that raises no value by more than this part of it has converged."""


class Predecessors(NamedTuple):
    """Which states can lead to each state in one step (itself left out), in compressed rows; some may come twice."""

    indptr: Integers
    states: Indices


def predecessors(rows: Rows) -> Predecessors:
    """The graph of an MDP, backwards."""
    return Predecessors(*reversed_graph(rows.indptr, rows.indices, rows.data, rows.num_actions))


@compiled
def reversed_graph(indptr: Indices, indices: Indices, data: Floats, num_actions: int) -> tuple[Integers, Indices]:
    """For each state, who has an entry for it, without entries of probability zero and without itself."""
    num_states = (indptr.size - 1) // num_actions
    first = np.zeros(num_states + 1, np.int64)
    last_seen = np.full(num_states, -1, np.int64)  # of a state's successors, each counts once
    for state in range(num_states):
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            successor = indices[entry]
            if successor != state and data[entry] > 0.0 and last_seen[successor] != state:
                last_seen[successor] = state
                first[successor + 1] += 1
    first = np.cumsum(first)
    states = np.empty(first[num_states], np.int32)
    cursor = first[:-1].copy()
    last_seen[:] = -1
    for state in range(num_states):
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            successor = indices[entry]
            if successor != state and data[entry] > 0.0 and last_seen[successor] != state:
                last_seen[successor] = state
                states[cursor[successor]] = state
                cursor[successor] += 1
    return first, states


@compiled
def nearest_first(
    first: Integers, states: Indices, targets: Integers, order: Indices, is_met: Indices, mark: int
) -> int:  # fmt: skip
    """States that can reach a target into ``order``, by the fewest steps, targets first; how many there are."""
    count = 0
    for target in targets:
        if is_met[target] != mark:
            is_met[target] = mark
            order[count] = target
            count += 1
    position = 0
    while position < count:
        state = order[position]
        position += 1
        for entry in range(first[state], first[state + 1]):
            before = states[entry]
            if is_met[before] != mark:
                is_met[before] = mark
                order[count] = before
                count += 1
    return count


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
def ordered_sweeps(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, gamma: float, values: Floats, order: Indices,
    limit: int
) -> int:  # fmt: skip
    """Raise the values of the states in ``order``, one after the other, until nothing is gained; the sweeps taken."""
    num_actions = source.size // values.size
    for sweep in range(1, limit + 1):
        gained = False
        for state in order:
            best = values[state]
            for row in range(state * num_actions, (state + 1) * num_actions):
                best = max(best, closed_value(indptr, indices, data, values, source[row], row, state, gamma))
            gained |= best > values[state] * (1.0 + ROUNDING_GAIN)
            values[state] = best
        if not gained:
            return sweep
    return limit


def reward_sweeps(rows: Rows, source: Floats, gamma: float, limit: int) -> tuple[Floats, int]:
    """Optimal values for a non-negative source, one number a row, and the sweeps; callers check the residual."""
    paying = np.flatnonzero(source.reshape(rows.num_states, -1).any(axis=1))
    order = np.empty(rows.num_states, np.int32)
    is_met = np.full(rows.num_states, -1, np.int32)
    count = nearest_first(*predecessors(rows), paying, order, is_met, 0)
    values = np.zeros(rows.num_states)
    sweeps = ordered_sweeps(rows.indptr, rows.indices, rows.data, source, gamma, values, order[:count], limit)
    return values, sweeps


@compiled
def best_ahead(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, values: Floats, state: int, gamma: float
) -> float:
    """The discounted value of the next state under the best action, gamma max_a sum_x' P(x'|state, a) v(x')."""
    best = 0.0
    for row in range(state * num_actions, (state + 1) * num_actions):
        expected = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            expected += data[entry] * values[indices[entry]]
        best = max(best, gamma * expected)
    return best


@compiled
def goal_values(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, first: Integers, states: Indices,
    targets: Integers, gamma: float, start: Floats, limit: int
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """For each target: the optimal value from the start, its Bellman residual; and the most sweeps that one took."""
    num_states = (indptr.size - 1) // num_actions
    found = np.empty(targets.size)
    residuals = np.empty(targets.size)
    order = np.empty(num_states, np.int32)
    is_met = np.full(num_states, -1, np.int32)
    source = np.zeros(num_states * num_actions)
    values = np.zeros(num_states)
    most = 0
    for slot in range(targets.size):
        target = targets[slot]
        count = nearest_first(first, states, targets[slot : slot + 1], order, is_met, slot)
        values[target] = 1.0
        sweeps = ordered_sweeps(indptr, indices, data, source, gamma, values, order[1:count], limit)
        most = max(most, sweeps)
        coming_back = best_ahead(indptr, indices, data, num_actions, values, target, gamma)
        scale = (1.0 - gamma) / (1.0 - coming_back)
        worth = 0.0
        residual = 0.0
        for state in order[:count]:
            here = scale * values[state]
            worth += start[state] * here
            ahead = scale * best_ahead(indptr, indices, data, num_actions, values, state, gamma)
            if state == target:
                ahead += 1.0 - gamma
            residual = max(residual, abs(ahead - here))
        found[slot] = worth
        residuals[slot] = residual
        for state in order[:count]:
            values[state] = 0.0
    return found, residuals, most
