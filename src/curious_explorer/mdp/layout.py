"""What a drawing of an MDP shows, as numbers: where each state stands, and the arrows between them.

States stand in layers, by their distance from the start (breadth first), which is at the left; networkx finds the
layers and places them (its multipartite layout). Two things are added: the order within the layers, by sweeps of
barycentres from left to right and back (Sugiyama), so that few arrows cross; and layers drawn apart as far as the
tallest one reaches, where that shows the structure better: a tree spreads out, a grid stays a lozenge.

Very wide layers are split into several columns. States that cannot be reached stand apart, below the rest. Ties go by
state number; names play no part.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers, Mask

if TYPE_CHECKING:  # it imports this module
    from curious_explorer.mdp.finite_mdp import FiniteMDP

SWEEPS = 12
LANE_SPACING = 1.2
"""Vertical distance of neighbours in a layer; layers are 1 apart. A little more room shows crossing edges better."""


class Edges(NamedTuple):
    """Arrows as columns: one for each pair of states that can follow each other, all actions taken together."""

    tail: Integers
    head: Integers
    probability: Floats
    """That the uniform policy moves from tail to head."""
    reward: Floats
    """The largest reward, by size, of the transitions behind the arrow, in the units of the original problem."""
    has_reverse: Mask
    """Whether there is an arrow from head to tail, too."""


def edges_of(mdp: FiniteMDP) -> Edges:
    """The arrows to draw; the loops of terminal states are left out unless they pay."""
    rows, size = mdp.transitions, mdp.num_states
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    own = mdp.transition_rewards
    reward = mdp.reward_scale.original(mdp.rewards.ravel()[row] if own is None else own)
    # Undoing the scale leaves 1e-15 where the original reward was 0.
    reward[np.abs(reward) < 1e-12 * max(1.0, mdp.reward_scale.factor)] = 0.0
    tail, head = row // mdp.num_actions, rows.indices.astype(np.int64)
    key, group = np.unique(tail * size + head, return_inverse=True)
    probability = np.bincount(group, rows.data) / mdp.num_actions
    strongest = np.zeros(key.size)
    order = np.argsort(np.abs(reward), kind="stable")
    strongest[group[order]] = reward[order]  # of several assignments the last, the largest, stays

    tail, head = key // size, key % size
    shown = (tail != head) | ~mdp.terminal[tail] | (strongest != 0.0)
    has_reverse = np.isin(head * size + tail, key)
    return Edges(tail[shown], head[shown], probability[shown], strongest[shown], has_reverse[shown])


@lru_cache(maxsize=16)  # figures, video and page show the same graphs
def layout_states(mdp: FiniteMDP) -> Floats:
    """The position of each state, shape (S, 2), read-only; neighbours are about 1 apart, the start is at the left."""
    import networkx  # takes a quarter of a second, and only drawings need it

    edges = edges_of(mdp)
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(mdp.num_states))
    graph.add_edges_from(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))
    starts = np.flatnonzero(mdp.start > 0.0).tolist()
    layers = [np.array(sorted(layer)) for layer in networkx.bfs_layers(graph, starts)]
    order = _order_layers(layers, edges, mdp.num_states)

    most_rows = max(8, int(np.ceil(1.5 * np.sqrt(mdp.num_states))))
    columns: list[Integers] = []
    shift = np.zeros(mdp.num_states)  # columns of one layer are staggered, so that no arrow runs through a state
    for states in order:
        count = -(-len(states) // most_rows)
        columns.extend(states[first::count] for first in range(count))
        shift[states] = (np.arange(len(states)) % count - (count - 1) / 2) / count
    reached = np.concatenate(columns)
    found = networkx.multipartite_layout(
        graph.subgraph(reached.tolist()), subset_key={number: c.tolist() for number, c in enumerate(columns)}
    )
    positions = np.zeros((mdp.num_states, 2))
    positions[reached] = np.array([found[state] for state in reached.tolist()])
    # networkx fits everything into a square; back to neighbours that are 1 apart, the start at 0, low numbers on top.
    rows = max(map(len, columns))
    positions[reached] *= max(rows - 1, len(columns) - 1, 1) / max(np.ptp(positions[reached], axis=0).max(), 1e-9)
    positions[reached, 0] -= positions[columns[0][0], 0]
    positions[:, 1] *= -LANE_SPACING
    _spread(positions, columns, edges)
    positions[:, 1] -= LANE_SPACING * shift
    # Few, tall layers have many edges between them, which need room.
    stretch = float(np.clip(0.8 * np.ptp(positions[:, 1]) / LANE_SPACING / len(columns), 1.0, 2.5))
    positions[:, 0] *= stretch
    _place_apart(positions, np.setdiff1d(np.arange(mdp.num_states), reached), width=round(len(columns) * stretch))
    positions.flags.writeable = False
    return positions


class Links(NamedTuple):
    """The arrows between two neighbouring layers, either way, without doubles."""

    left: Integers
    right: Integers
    weight: Floats
    """2 where there are arrows both ways."""


def _order_layers(layers: list[Integers], edges: Edges, num_states: int) -> list[Integers]:
    """The states of each layer from top to bottom, with few crossings between neighbouring layers."""
    links = _links(layers, edges, num_states)
    place = np.zeros(num_states)  # as a part of the height
    for states in layers:
        place[states] = (np.arange(len(states)) + 0.5) / len(states)
    order = list(layers)
    best, fewest = list(order), _crossings(links, place)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        step = 1 if sweep % 2 == 0 else -1
        for level in range(len(order))[::step][1:]:
            states = order[level]
            between = links[level - 1] if step == 1 else links[level]
            here, before = (between.right, between.left) if step == 1 else (between.left, between.right)
            degree = np.bincount(here, between.weight, minlength=num_states)[states]
            total = np.bincount(here, between.weight * place[before], minlength=num_states)[states]
            mean = total / np.maximum(degree, 1.0)
            order[level] = states[np.argsort(np.where(degree > 0, mean, place[states]), kind="stable")]
            place[order[level]] = (np.arange(len(states)) + 0.5) / len(states)
        crossings = _crossings(links, place)
        if crossings < fewest:
            best, fewest = list(order), crossings
    upside_down = [states[::-1] for states in best]
    # The same drawing, with low numbers on top.
    return min(best, upside_down, key=lambda order: sum(int((np.diff(states) < 0).sum()) for states in order))


def _links(layers: list[Integers], edges: Edges, num_states: int) -> list[Links]:
    """The links between each layer and the next."""
    level = np.full(num_states, -2)
    for number, states in enumerate(layers):
        level[states] = number
    ahead = level[edges.head] == level[edges.tail] + 1
    back = level[edges.tail] == level[edges.head] + 1
    left = np.concatenate([edges.tail[ahead], edges.head[back]])
    right = np.concatenate([edges.head[ahead], edges.tail[back]])
    pairs, many = np.unique(np.stack([left, right]), axis=1, return_counts=True)
    of_level = level[pairs[0]]
    found = []
    for number in range(len(layers) - 1):
        these = of_level == number
        found.append(Links(pairs[0, these], pairs[1, these], many[these].astype(np.float64)))
    return found


def _crossings(links: list[Links], place: Floats) -> int:
    """How many pairs of arrows between neighbouring layers cross."""
    crossings = 0
    for left, right, _ in links:
        begin, end = place[left], place[right]
        seen: list[float] = []
        for height in end[np.lexsort((end, begin))].tolist():
            crossings += len(seen) - bisect_right(seen, height)
            insort(seen, height)
    return crossings


def _spread(positions: Floats, columns: list[Integers], edges: Edges) -> None:
    """Draw each column apart as far as the tallest one reaches, if that puts states before the middle of what follows.

    So a tree spreads out, and a grid stays a lozenge.
    """
    rows = max(map(len, columns))
    height = positions[:, 1]
    spread = height.copy()
    for states in columns:
        spread[states] *= rows / len(states)
    rightwards = positions[edges.head, 0] > positions[edges.tail, 0]
    tail, head = edges.tail[rightwards], edges.head[rightwards]
    many = np.maximum(np.bincount(tail, minlength=len(height)), 1)

    def off_centre(height: Floats) -> float:
        drop = np.bincount(tail, height[head] - height[tail], minlength=len(height))
        return float(((drop / many) ** 2).sum())

    if off_centre(spread) < off_centre(height) - 1e-9:
        positions[:, 1] = spread


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
