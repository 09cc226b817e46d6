"""A picture of where an exploration of observations went.

- cells that are a grid of two dimensions: a map, the darker the more visited;
- up to a few hundred cells: a bar for each, in order of their numbers;
- more of them: how many have been seen after each round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.studies.figures.canvas import PAGE_WIDTH, WITH_CE, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 300
NEVER = "#f1f5f9"


def draw_visited_cells(exploration: Exploration, discretisation: Discretisation) -> Figure:
    """The share of visits of each cell, all rounds together."""
    visited = exploration.total_visited / len(exploration.rounds)
    described = discretisation.cells.description()
    edges = _edges(described)
    known = len(discretisation.cells.discovered()) or discretisation.cells.count
    two_dimensional = edges is not None and len(edges) == 2
    figure = new_figure(
        0.62 * PAGE_WIDTH if two_dimensional else PAGE_WIDTH, 0.55 * PAGE_WIDTH if two_dimensional else 2.6
    )
    ax = figure.add_subplot()
    if edges is not None and two_dimensional:
        _map(figure, ax, visited, edges)
    elif known <= MOST_BARS:
        ax.bar(np.arange(known), visited[:known], width=1.0, color=WITH_CE)
        ax.set_xlabel("cell", fontsize=8)
        ax.set_ylabel("share of visits", fontsize=8)
        quiet(ax)
    else:
        seen = np.cumsum([round_.visited for round_ in exploration.rounds], axis=0) > 0.0
        ax.plot(np.arange(1, len(seen) + 1), seen.sum(axis=1), color=WITH_CE, marker="o", markersize=3)
        ax.set_xlabel("round", fontsize=8)
        ax.set_ylabel("cells seen so far", fontsize=8)
        quiet(ax)
    seen_in_all = int((visited > 0.0).sum())
    ax.set_title(f"{discretisation.environment}: {seen_in_all} of {known} cells visited", fontsize=9)
    return figure


def _map(figure: Figure, ax: Axes, visited: NDArray[np.float64], edges: list[NDArray[np.float64]]) -> None:
    from matplotlib.colors import LogNorm

    table = np.ma.masked_equal(visited.reshape([len(along) - 1 for along in edges]), 0.0)
    ax.set_facecolor(NEVER)
    mesh = ax.pcolormesh(*edges, table.T, cmap="YlGn", norm=LogNorm(), linewidth=0)
    bar = figure.colorbar(mesh, ax=ax)
    bar.set_label("share of visits", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    ax.set_xlabel("observation[0]", fontsize=8)
    ax.set_ylabel("observation[1]", fontsize=8)
    ax.tick_params(labelsize=7)


def _edges(described: dict[str, Any]) -> list[NDArray[np.float64]] | None:
    """Where the cells of a grid begin and end along each dimension; a quantile's outermost cells by their number."""
    if described["kind"] == "grid":
        pieces = zip(described["low"], described["high"], described["bins"], strict=True)
        return [np.linspace(low, high, bins + 1) for low, high, bins in pieces]
    if described["kind"] == "quantiles":  # their outermost cells have no end, so cells are drawn by their numbers
        return [np.arange(len(inner) + 2, dtype=np.float64) - 0.5 for inner in described["edges"]]
    return None
