"""Gaussian elimination without a single subtraction, inside a band.

I - gamma P is a diagonally dominant M-matrix: off-diagonal entries -N with N = gamma P >= 0, and row sums
w = 1 - gamma > 0. Eliminating state k reroutes every path through it: for each later i, with f = N[i, k] / D[k],

    N[i, j] += f N[k, j]  (j > k),      w[i] += f w[k],      where D[k] = w[k] + sum_{j > k} N[k, j].

The diagonal D is rebuilt from w and N rather than updated by a subtraction (Grassmann, Taksar and Heyman 1985; Alfa,
Xue and Ye 2002), so no cancellation can happen: for a right-hand side that is not negative, every entry of the answer
has a small *relative* error, however close gamma is to one and however tiny the entry. No pivoting is needed, so a band
stays a band, and a chain of S states costs O(S).

Storage: ``band[i, j - i + lower]`` holds N[i, j] for j > i and the factor f for j < i; the middle column holds D.
"""

from __future__ import annotations

import numpy as np

from curious_explorer.arrays import Floats, Indices
from curious_explorer.compile import compiled


@compiled
def fill_band(
    indptr: Indices, indices: Indices, data: Floats, rows: Indices, gamma: float, lower: int, upper: int
) -> Floats:
    """The matrix gamma P in band storage; ``rows[s]`` is the compressed row that state s follows."""
    num_states = rows.size
    band = np.zeros((num_states, lower + upper + 1))
    for state in range(num_states):
        for entry in range(indptr[rows[state]], indptr[rows[state] + 1]):
            band[state, indices[entry] - state + lower] += gamma * data[entry]
    return band


@compiled
def factorise(band: Floats, gamma: float, lower: int, upper: int) -> None:
    """Factorise I - gamma P = L U in place."""
    num_states = band.shape[0]
    killing = np.full(num_states, 1.0 - gamma)
    for pivot in range(num_states):
        width = min(upper, num_states - 1 - pivot)
        ahead = band[pivot, lower + 1 : lower + 1 + width]
        diagonal = killing[pivot]
        for offset in range(width):
            diagonal += ahead[offset]
        band[pivot, lower] = diagonal
        for row in range(pivot + 1, min(pivot + lower, num_states - 1) + 1):
            column = pivot - row + lower
            if band[row, column] == 0.0:
                continue
            factor = band[row, column] / diagonal
            band[row, column] = factor
            killing[row] += factor * killing[pivot]
            target = band[row, column + 1 : column + 1 + width]
            for offset in range(width):
                target[offset] += factor * ahead[offset]


@compiled
def solve_values(band: Floats, source: Floats, lower: int, upper: int) -> Floats:
    """The v with v = source + gamma P v, from the factors."""
    num_states = band.shape[0]
    values = source.copy()
    for state in range(num_states):
        for other in range(max(0, state - lower), state):
            values[state] += band[state, other - state + lower] * values[other]
    for state in range(num_states - 1, -1, -1):
        total = values[state]
        for other in range(state + 1, min(state + upper, num_states - 1) + 1):
            total += band[state, other - state + lower] * values[other]
        values[state] = total / band[state, lower]
    return values


@compiled
def solve_visits(band: Floats, source: Floats, lower: int, upper: int) -> Floats:
    """The d with d = source + gamma P^T d, from the factors."""
    num_states = band.shape[0]
    visits = source.copy()
    for state in range(num_states):
        visits[state] /= band[state, lower]
        for other in range(state + 1, min(state + upper, num_states - 1) + 1):
            visits[other] += band[state, other - state + lower] * visits[state]
    for state in range(num_states - 1, -1, -1):
        for other in range(max(0, state - lower), state):
            visits[other] += band[state, other - state + lower] * visits[state]
    return visits
