"""Where to draw each state, so that the structure shows: a layered drawing, from the start at the left.

1. Layers: a state's layer is its distance from the start (breadth first). Chains become a row, locks become lanes.
2. Order: sweeps of barycentres (Sugiyama) from left to right and back; the order with the fewest crossings is kept.
3. Lanes: between neighbouring layers, a largest set of edges that do not cross is made straight; packing those lanes
   from above and from below, with ties resolved either way, gives four drawings, and their mean is the result (Brandes
   and Koepf 2001). A full set of lanes comes out straight, a fan comes out centred.

Very wide layers are split into several columns. States that cannot be reached stand apart, below the rest. Ties go by
state number; names play no part.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer.arrays import Floats, Integers
from curious_explorer.mdp.finite_mdp import FiniteMDP

SWEEPS = 12
LANE_SPACING = 1.2
"""Vertical distance of neighbours in a layer; layers are 1 apart. A little more room shows crossing edges better."""


def layout_states(mdp: FiniteMDP) -> Floats:
    """The position of each state, shape (S, 2); neighbours are about 1 apart, the start is at the left."""
    graph = _neighbours(mdp)
    layer = _distances(mdp, graph)
    depth = int(layer.max()) + 1
    layers = [np.flatnonzero(layer == level) for level in range(depth)]
    undirected = sparse.csr_array(graph + graph.T)
    order = _order_layers(layers, undirected, layer)

    most_rows = max(8, int(np.ceil(1.5 * np.sqrt(mdp.num_states))))
    columns = [-(-len(states) // most_rows) for states in order]
    height = _heights(order, columns, undirected, mdp.num_states)
    positions = np.zeros((mdp.num_states, 2))
    left = 0
    for states, count in zip(order, columns, strict=True):
        positions[states, 0] = left + np.arange(len(states)) % count
        positions[states, 1] = -LANE_SPACING * height[states]
        left += count
    # Few, tall layers have many edges between them, which need room.
    stretch = float(np.clip(0.8 * np.ptp(height) / left, 1.0, 2.5))
    positions[:, 0] *= stretch
    _place_apart(positions, np.flatnonzero(layer < 0), width=round(left * stretch))
    return positions


def _neighbours(mdp: FiniteMDP) -> sparse.csr_array:
    """Which states can follow which, whatever the action; without self-loops."""
    rows = mdp.transitions
    tail = np.repeat(np.arange(rows.shape[0]) // mdp.num_actions, np.diff(rows.indptr))
    moves = tail != rows.indices
    links = (np.ones(int(moves.sum())), (tail[moves], rows.indices[moves]))
    graph = sparse.csr_array(links, shape=(mdp.num_states, mdp.num_states))
    graph.data[:] = 1.0
    return graph


def _distances(mdp: FiniteMDP, graph: sparse.csr_array) -> Integers:
    """Steps from the nearest start; -1 where there is no way."""
    starts = np.flatnonzero(mdp.start > 0.0)
    distance = csgraph.dijkstra(graph, indices=starts, unweighted=True, min_only=True)
    return np.where(np.isfinite(distance), distance, -1).astype(np.int64)


def _order_layers(layers: list[Integers], undirected: sparse.csr_array, layer: Integers) -> list[Integers]:
    """The states of each layer from top to bottom, with few crossings between neighbouring layers."""
    order = [states.copy() for states in layers]
    best, fewest = order, _all_crossings(order, undirected)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        order = _sweep(order, undirected, layer, rightwards=sweep % 2 == 0)
        crossings = _all_crossings(order, undirected)
        if crossings < fewest:
            best, fewest = order, crossings
    upside_down = [states[::-1] for states in best]
    return min(best, upside_down, key=_inversions)  # the same drawing, with low numbers on top


def _sweep(order: list[Integers], undirected: sparse.csr_array, layer: Integers, *, rightwards: bool) -> list[Integers]:
    """Sort each layer by the mean place of its neighbours in the layer that was sorted before it."""
    result = [states.copy() for states in order]
    place = np.zeros(undirected.shape[0])
    levels = list(range(len(order)))
    for level in levels if rightwards else levels[::-1]:
        states = result[level]
        before = level - 1 if rightwards else level + 1
        if 0 <= before < len(order):
            towards = undirected[states][:, result[before]]
            degree = np.asarray(towards.sum(axis=1)).ravel()
            mean = (towards @ place[result[before]]) / np.maximum(degree, 1.0)
            here = (np.arange(len(states)) + 0.5) / len(states)
            result[level] = states[np.argsort(np.where(degree > 0, mean, here), kind="stable")]
        place[result[level]] = (np.arange(len(states)) + 0.5) / len(states)
    return result


def _all_crossings(order: list[Integers], undirected: sparse.csr_array) -> int:
    return sum(_crossings(sparse.coo_array(undirected[a][:, b])) for a, b in pairwise(order))


def _crossings(between: sparse.coo_array) -> int:
    """How many pairs of edges cross, given their two ends as row and column."""
    ends = between.col[np.lexsort((between.col, between.row))]
    # An edge crosses those before it that end strictly below it; a binary indexed tree counts them.
    size = between.shape[1]
    tree = [0] * (size + 1)
    crossings = 0
    for seen, end in enumerate(ends.tolist()):
        not_below, index = 0, end + 1
        while index > 0:
            not_below += tree[index]
            index -= index & -index
        crossings += seen - not_below
        index = end + 1
        while index <= size:
            tree[index] += 1
            index += index & -index
    return crossings


def _inversions(order: list[Integers]) -> int:
    """How many neighbours within layers stand against the order of their numbers."""
    return sum(int((np.diff(states) < 0).sum()) for states in order)


def _heights(order: list[Integers], columns: list[int], undirected: sparse.csr_array, num_states: int) -> Floats:
    """How far down each state stands, from straight lanes packed in four ways."""
    upside_down = [states[::-1] for states in order]
    total = np.zeros(num_states)
    # From below is from above in the mirror, and so is "the lower of two lanes".
    for preference in (order, upside_down):
        lanes = _lanes(preference, undirected, num_states)
        total += _pack(order, columns, lanes, num_states) - _pack(upside_down, columns, lanes, num_states)
    return total / 4.0


def _lanes(order: list[Integers], undirected: sparse.csr_array, num_states: int) -> Integers:
    """A lane number for each state: neighbours joined by a straight edge share it."""
    lane = np.arange(num_states)
    for left, right in pairwise(order):
        for above, below in _straight_edges(undirected[left][:, right].toarray() > 0):
            lane[right[below]] = lane[left[above]]
    return lane


def _straight_edges(linked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """A largest set of edges without crossings, as early as possible (longest common subsequence)."""
    num_left, num_right = linked.shape
    longest = np.zeros((num_left + 1, num_right + 1), dtype=np.int64)  # over edges from (i, j) on
    for i in range(num_left - 1, -1, -1):
        take = np.where(linked[i], longest[i + 1, 1:] + 1, 0)
        skip = np.maximum(take, longest[i + 1, :-1])
        longest[i, :-1] = np.maximum.accumulate(skip[::-1])[::-1]
    edges, i, j = [], 0, 0
    while i < num_left and j < num_right:
        if linked[i, j] and longest[i, j] == longest[i + 1, j + 1] + 1:
            edges.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i, j] == longest[i, j + 1]:
            j += 1
        else:
            i += 1
    return edges


def _pack(order: list[Integers], columns: list[int], lanes: Integers, num_states: int) -> Floats:
    """Heights with every lane as near to the top as its neighbours above allow (longest paths)."""
    tail, head, gap = [], [], []
    for states, count in zip(order, columns, strict=True):
        tail.append(lanes[states[:-1]])
        head.append(lanes[states[1:]])
        gap.append(np.full(len(states) - 1, 1.0 / count))
    above, below, distance = np.concatenate(tail), np.concatenate(head), np.concatenate(gap)
    height = np.zeros(num_states)
    while True:  # lanes do not cross, so "above" has no cycle and this ends after its longest path
        moved = height.copy()
        np.maximum.at(moved, below, height[above] + distance)
        if np.array_equal(moved, height):
            return height[lanes]
        height = moved


def _place_apart(positions: Floats, apart: Integers, width: int) -> None:
    """Put states that cannot be reached in rows below the drawing."""
    if apart.size == 0:
        return
    reached = np.ones(len(positions), dtype=np.bool_)
    reached[apart] = False
    top = float(positions[reached, 1].min()) - 2.0 * LANE_SPACING
    per_row = max(width, int(np.ceil(np.sqrt(apart.size))))
    row, column = np.divmod(np.arange(apart.size), per_row)
    positions[apart, 0] = column
    positions[apart, 1] = top - LANE_SPACING * row
