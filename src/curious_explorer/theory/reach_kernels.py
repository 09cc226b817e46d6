"""Compiled kernels on the graph of an MDP: breadth-first search, and the best action's chance of each successor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Integers
from curious_explorer.compile import compiled

Successors = NDArray[np.int32]
"""Narrow on purpose: half the memory to fetch at random."""


@compiled
def breadth_first(indptr: Integers, indices: Integers, num_actions: int, starts: Integers) -> Integers:
    """The fewest steps from any of the starts to each state; -1 where there is no path."""
    num_states = (indptr.size - 1) // num_actions
    distance = np.full(num_states, -1, np.int64)
    queue = np.empty(num_states, np.int64)
    tail = 0
    for start in starts:
        distance[start] = 0
        queue[tail] = start
        tail += 1
    head = 0
    while head < tail:
        state = queue[head]
        head += 1
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            successor = indices[entry]
            if distance[successor] < 0:
                distance[successor] = distance[state] + 1
                queue[tail] = successor
                tail += 1
    return distance


@compiled
def best_action_chances(
    indptr: Integers, indices: Integers, data: Floats, num_actions: int
) -> tuple[Integers, Successors, Floats]:
    """C(x, s) = max_a P(s|x, a) as compressed rows, one for each state, successors in the order first met."""
    num_states = (indptr.size - 1) // num_actions
    place = np.full(num_states, -1, np.int64)
    row_start = np.zeros(num_states + 1, np.int64)
    successors = np.empty(indices.size, np.int32)
    chances = np.empty(indices.size)
    filled = 0
    for state in range(num_states):
        first = filled
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            successor = indices[entry]
            if place[successor] < first:
                place[successor] = filled
                successors[filled] = successor
                chances[filled] = data[entry]
                filled += 1
            else:
                chances[place[successor]] = max(chances[place[successor]], data[entry])
        row_start[state + 1] = filled
    return row_start, successors[:filled].copy(), chances[:filled].copy()


@compiled
def return_chances(row_start: Integers, successors: Successors, chances: Floats) -> Floats:
    """Upper bounds on the chance of being back after exactly 1, 2 and 3 steps, whatever the policy; shape (3, S)."""
    num_states = row_start.size - 1
    back = np.zeros((3, num_states))
    for state in range(num_states):
        for first in range(row_start[state], row_start[state + 1]):
            middle = successors[first]
            if middle == state:
                back[0, state] = chances[first]
                continue
            for second in range(row_start[middle], row_start[middle + 1]):
                if successors[second] == state:
                    back[1, state] += chances[first] * chances[second]
                    continue
                last = successors[second]
                for third in range(row_start[last], row_start[last + 1]):
                    if successors[third] == state:
                        back[2, state] += chances[first] * chances[second] * chances[third]
    return back
