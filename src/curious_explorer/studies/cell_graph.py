"""A picture of cells that are no grid: points, near those that follow them, the darker the more visited.

Up to a thousand cells or so are placed by springs along the transitions that were seen. More of them are placed by
their distances from a few landmarks, each as far as can be from those before it (landmark multidimensional scaling: the
two main directions in which the squared distances differ), which takes a second where springs would take minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer.arrays import Floats, Integers
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.studies.figures import FAINT, PAGE_WIDTH, WITHOUT_CE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SPRINGS, SPRING_STEPS = 1_500, 60
LANDMARKS = 40
MOST_DRAWN = 100_000
"""Cells beyond which points are a blot."""
MOST_LINES = 20_000


def draw_cell_graph(model: GrowingModel) -> Figure:
    """Cells as points, the darker the more visited; a ring around the start."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    seen, visits = model.outcomes(), np.maximum(model.visits(), 1)
    pairs = np.unique(np.sort(np.stack([seen.state, seen.next_state], axis=1), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    # Where episodes begin in many places, these are near each other: what is apart otherwise would lie on one line.
    first, *others = model.starts
    held = np.concatenate([pairs, [(first, other) for other in others]]) if others else pairs
    places = _by_springs(held, len(model)) if len(model) <= MOST_SPRINGS else _by_landmarks(held, len(model))
    figure = new_figure(0.75 * PAGE_WIDTH, 0.6 * PAGE_WIDTH)
    ax = figure.add_subplot()
    if len(pairs) <= MOST_LINES:
        ax.add_collection(LineCollection(list(places[pairs]), colors=FAINT, linewidths=0.4, alpha=0.5, zorder=1))
    size = float(np.clip(6_000.0 / len(model), 2.0, 60.0))
    order = np.argsort(visits, kind="stable")  # the most visited on top
    dots = ax.scatter(
        places[order, 0],
        places[order, 1],
        c=visits[order],
        s=size,
        cmap="YlGn",
        norm=LogNorm(),
        edgecolors=FAINT,
        linewidths=0.4 if size > 5.0 else 0.1,
        zorder=2,
    )
    starts = places[list(model.starts)]
    ax.scatter(
        starts[:, 0],
        starts[:, 1],
        s=max(4.0 * size, 30.0),
        facecolors="none",
        edgecolors=WITHOUT_CE,
        linewidths=1.2,
        zorder=3,
        label="start",
    )
    bar = figure.colorbar(dots, ax=ax)
    bar.set_label("visits", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    ax.set_axis_off()
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.0))
    return figure


def _by_springs(pairs: Integers, cells: int) -> Floats:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(cells))
    graph.add_edges_from(pairs.tolist())
    found = networkx.spring_layout(graph, seed=0, iterations=SPRING_STEPS, method="force")
    return np.array([found[cell] for cell in range(cells)])


def _by_landmarks(pairs: Integers, cells: int) -> Floats:
    """The two main directions of the squared distances from landmarks, whichever way transitions lead."""
    ones = np.ones(len(pairs))
    graph = sparse.csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(cells, cells))
    nearest, squares = np.full(cells, np.inf), []
    landmark = 0
    for _ in range(min(LANDMARKS, cells)):
        away = csgraph.dijkstra(graph, directed=False, indices=landmark, unweighted=True)
        away = np.where(np.isfinite(away), away, away[np.isfinite(away)].max() + 1.0)
        squares.append(away**2)
        nearest = np.minimum(nearest, away)
        landmark = int(np.argmax(nearest))
    table = np.array(squares).T
    table -= table.mean(axis=0)
    _, _, directions = np.linalg.svd(table - table.mean(axis=1, keepdims=True), full_matrices=False)
    places: Floats = (table - table.mean(axis=1, keepdims=True)) @ directions[:2].T
    return np.sign(places) * np.sqrt(np.abs(places))
