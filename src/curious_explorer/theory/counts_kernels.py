"""Compiled value iteration that is optimistic about transitions: the best model that the counts allow.

Two kinds of regions, and the smaller of the two expectations they allow. *L1 ball*: the best model for values v moves
radius / 2 of probability to the state with the largest value, taking it from the row's successors with the least
(Strehl and Littman 2008). *Box*: each entry between its limits; the best model gives every entry its lower limit, and
what is left to states in order of decreasing value, up to their upper limits. Entries of a row are kept sorted by value
from sweep to sweep, which makes sorting them again nearly free.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.compile import compiled


@compiled
def sort_row(order: Integers, indices: Integers, first: int, stop: int, values: Floats) -> None:
    """Put the entries of a row in order of increasing value, in place; ``order`` holds their places."""
    for place in range(first + 1, stop):
        entry = order[place]
        value = values[indices[entry]]
        slot = place
        while slot > first and values[indices[order[slot - 1]]] > value:
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = entry


@compiled
def best_in_ball(
    order: Integers, indices: Integers, data: Floats, first: int, stop: int, radius: float, values: Floats, best: int
) -> float:
    """The largest p v over distributions p within the radius (L1) of a row that is not empty."""
    sort_row(order, indices, first, stop, values)
    at_best = 0.0
    expected = 0.0
    for entry in range(first, stop):
        expected += data[entry] * values[indices[entry]]
        if indices[entry] == best:
            at_best = data[entry]
    moved = min(0.5 * radius, 1.0 - at_best)
    left = moved
    for place in range(first, stop):
        if left <= 0.0:
            break
        entry = order[place]
        if indices[entry] != best:
            taken = min(left, data[entry])
            expected -= taken * values[indices[entry]]
            left -= taken
    return float(expected + (moved - max(left, 0.0)) * values[best])


@compiled
def best_in_box(
    indices: Integers, lower: Floats, upper: Floats, first: int, stop: int, unseen: float, values: Floats,
    falling: Integers, place: Integers
) -> float:  # fmt: skip
    """The largest p v over distributions p with entries between their limits; other states have at most ``unseen``.

    ``falling`` lists the states by decreasing value. ``place`` is scratch space of -1, and is left that way.
    """
    expected, left = 0.0, 1.0
    for entry in range(first, stop):
        expected += lower[entry] * values[indices[entry]]
        left -= lower[entry]
        place[indices[entry]] = entry
    for state in falling:
        if left <= 0.0:
            break
        entry = place[state]
        room = unseen if entry < 0 else upper[entry] - lower[entry]
        given = min(left, room)
        expected += given * values[state]
        left -= given
    for entry in range(first, stop):
        place[indices[entry]] = -1
    return float(expected + max(left, 0.0) * values[falling[0]])


Region = tuple[Integers, Integers, Floats, Floats, Floats, Floats, Floats]
"""Rows (indptr, successors, frequencies), L1 radii, lower and upper limits of entries, upper limits of unseen ones."""


@compiled
def optimistic_sweep(
    region: Region, order: Integers, place: Integers, num_actions: int, source: Floats, gamma: float, values: Floats,
    updated: Floats
) -> tuple[float, float]:  # fmt: skip
    """One step of optimistic value iteration into ``updated``; the least and the largest change."""
    indptr, indices, data, radius, lower, upper, unseen = region
    falling = np.argsort(-values)
    best = int(falling[0])
    low, high = np.inf, -np.inf
    for state in range(values.size):
        most = -np.inf
        for row in range(state * num_actions, (state + 1) * num_actions):
            first, stop = indptr[row], indptr[row + 1]
            ahead = values[best]  # a pair never tried may lead anywhere
            if first < stop:
                ball = best_in_ball(order, indices, data, first, stop, radius[row], values, best)
                box = best_in_box(indices, lower, upper, first, stop, unseen[row], values, falling, place)
                ahead = min(ball, box)
            most = max(most, ahead)
        updated[state] = source[state] + gamma * most
        low = min(low, updated[state] - values[state])
        high = max(high, updated[state] - values[state])
    return low, high


@compiled
def optimistic_values(
    region: Region, num_actions: int, source: Floats, gamma: float, goal: float, budget: int
) -> tuple[Floats, int]:
    """Upper bounds on the optimistic values, right to the goal unless the budget of sweeps ends; sweeps used.

    Values start at one, above every fixed point for rewards in [0, 1], and fall; with hi the largest change of a sweep,
    T v + gamma / (1 - gamma) hi is never below the fixed point (MacQueen), so stopping early stays on the safe side.
    """
    values = np.ones(source.size)
    updated = np.empty(source.size)
    order = np.arange(region[1].size)
    place = np.full(source.size, -1, np.int64)
    sweeps = 0
    while True:
        low, high = optimistic_sweep(region, order, place, num_actions, source, gamma, values, updated)
        sweeps += 1
        if gamma / (1.0 - gamma) * (high - low) <= goal or sweeps >= budget:
            break
        values, updated = updated, values
    for state in range(source.size):
        updated[state] = min(1.0, updated[state] + gamma / (1.0 - gamma) * high)
    return updated, sweeps
