"""Compiled passes over compressed rows: order the states, compose a policy, substitute.

A *graph* here is what both an MDP and a policy's Markov chain are: rows ``s * A + a`` (A = 1 for a chain) with the
successors of a state in one contiguous stretch of ``indices``. All rows are distributions.

The substitutions never subtract. The diagonal 1 - gamma p(s|s) of the linear systems is formed as
(1 - gamma) + gamma * (probability of leaving s), so every intermediate number is a sum of non-negative ones, and each
entry of the answer is right to a relative error of a few roundings, for any gamma.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Indices
from curious_explorer.compile import compiled

Order = NDArray[np.int64]

_UNSEEN = -1
_DONE = -2


@compiled
def successors_first(indptr: Indices, indices: Indices, num_actions: int) -> Order:
    """States ordered so that successors come first (self-loops apart); empty if the graph has a cycle.

    A depth-first search, which on a graph with cycles usually meets one at once.
    """
    num_states = (indptr.size - 1) // num_actions
    order = np.empty(num_states, np.int64)
    stack = np.empty(num_states, np.int64)
    cursor = np.full(num_states, _UNSEEN, np.int64)  # the next entry to look at, once a state is on the stack
    finished = 0
    for root in range(num_states):
        if cursor[root] != _UNSEEN:
            continue
        cursor[root] = indptr[root * num_actions]
        stack[0] = root
        depth = 1
        while depth > 0:
            state = stack[depth - 1]
            entry = cursor[state]
            end = indptr[(state + 1) * num_actions]
            descend = False
            while entry < end and not descend:
                successor = indices[entry]
                entry += 1
                if successor == state or cursor[successor] == _DONE:
                    continue
                if cursor[successor] != _UNSEEN:
                    return order[:0]
                cursor[state] = entry
                cursor[successor] = indptr[successor * num_actions]
                stack[depth] = successor
                depth += 1
                descend = True
            if not descend:
                cursor[state] = _DONE
                order[finished] = state
                finished += 1
                depth -= 1
    return order


@compiled
def bandwidths(indptr: Indices, indices: Indices, num_actions: int) -> tuple[int, int]:
    """How far below and above its own index a state's successors reach."""
    num_states = (indptr.size - 1) // num_actions
    lower = 0
    upper = 0
    for state in range(num_states):
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            reach = indices[entry] - state
            upper = max(upper, reach)
            lower = max(lower, -reach)
    return lower, upper


@compiled
def compose(indptr: Indices, indices: Indices, data: Floats, policy: Floats) -> tuple[Indices, Indices, Floats]:
    """Compressed rows of P_pi, without actions of probability zero, each row divided by its sum.

    A successor that several actions share stays in as several entries; every use of the rows adds them up.
    """
    num_states, num_actions = policy.shape
    chain_indptr = np.empty(num_states + 1, np.int32)
    chain_indptr[0] = 0
    for state in range(num_states):
        count = 0
        for action in range(num_actions):
            if policy[state, action] > 0.0:
                row = state * num_actions + action
                count += indptr[row + 1] - indptr[row]
        chain_indptr[state + 1] = chain_indptr[state] + count
    chain_indices = np.empty(chain_indptr[num_states], np.int32)
    chain_data = np.empty(chain_indptr[num_states], np.float64)
    for state in range(num_states):
        slot = chain_indptr[state]
        total = 0.0
        for action in range(num_actions):
            weight = policy[state, action]
            if weight > 0.0:
                row = state * num_actions + action
                for entry in range(indptr[row], indptr[row + 1]):
                    chain_indices[slot] = indices[entry]
                    chain_data[slot] = weight * data[entry]
                    total += chain_data[slot]
                    slot += 1
        for slot in range(chain_indptr[state], chain_indptr[state + 1]):
            chain_data[slot] /= total
    return chain_indptr, chain_indices, chain_data


@compiled
def push_forward(indptr: Indices, indices: Indices, data: Floats, order: Order, source: Floats, gamma: float) -> Floats:
    """The d with d = source + gamma P^T d on an acyclic chain: every state hands on what reached it, once."""
    visits = source.copy()
    for position in range(order.size - 1, -1, -1):
        state = order[position]
        leaving = 0.0
        for entry in range(indptr[state], indptr[state + 1]):
            if indices[entry] != state:
                leaving += data[entry]
        visits[state] /= (1.0 - gamma) + gamma * leaving
        outflow = gamma * visits[state]
        for entry in range(indptr[state], indptr[state + 1]):
            if indices[entry] != state:
                visits[indices[entry]] += outflow * data[entry]
    return visits


@compiled
def substitute_back(
    indptr: Indices, indices: Indices, data: Floats, order: Order, source: Floats, gamma: float
) -> Floats:
    """The v with v = source + gamma P v on an acyclic chain, successors first."""
    values = np.empty_like(source)
    for position in range(order.size):
        state = order[position]
        leaving = 0.0
        expected = 0.0
        for entry in range(indptr[state], indptr[state + 1]):
            if indices[entry] != state:
                leaving += data[entry]
                expected += data[entry] * values[indices[entry]]
        values[state] = (source[state] + gamma * expected) / ((1.0 - gamma) + gamma * leaving)
    return values
