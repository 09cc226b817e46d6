"""Where an exploration went: over a table's graph, over a grid of cells, or over cells as they follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.mdp.drawing import draw_mdp
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.studies.cell_graph import MOST_DRAWN, draw_cell_graph
from curious_explorer.studies.figures import PAGE_WIDTH, WITH_CE, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 300
NEVER_VISITED = "#f1f5f9"


def draw_visited_states(mdp: FiniteMDP, visited: Floats) -> Figure:
    """Where an exploration of a table went: its graph, the greener the more visited."""
    from matplotlib.figure import Figure

    shares = np.log10(np.maximum(visited / max(float(visited.sum()), 1e-12), 1e-6))
    figure = draw_mdp(mdp, values=shares, vmin=-6.0, vmax=0.0, values_label="share of visits, log10").figure
    assert isinstance(figure, Figure)
    return figure


def draw_visited_cells(exploration: Exploration, discretisation: Discretisation) -> Figure:
    """Where an exploration of observations went, all rounds together.

    Cells that are a grid of two dimensions are a map, the darker the more visited. Others of which the transitions were
    counted are a graph, see `cell_graph`. Else up to a few hundred cells have a bar each; of more of them, only how
    many have been seen after each round is drawn, or where there are no rounds, how evenly visits are spread.
    """
    visited = exploration.total_visited / max(1, len(exploration.rounds))
    from matplotlib.ticker import NullFormatter

    edges = _edges(discretisation.cells.description())
    known = len(discretisation.cells.discovered()) or discretisation.cells.count
    is_map = edges is not None and len(edges) == 2
    if not is_map and isinstance(exploration.model, GrowingModel) and 1 < len(exploration.model) <= MOST_DRAWN:
        figure = draw_cell_graph(exploration.model)
        figure.axes[0].set_title(f"{discretisation.environment}: {len(exploration.model):,} cells visited", fontsize=9)
        return figure
    figure = new_figure(0.62 * PAGE_WIDTH if is_map else PAGE_WIDTH, 0.55 * PAGE_WIDTH if is_map else 2.6)
    ax = figure.add_subplot()
    if edges is not None and is_map:
        _draw_map(figure, ax, visited, edges)
    else:
        if known <= MOST_BARS:
            ax.bar(np.arange(known), visited[:known], width=1.0, color=WITH_CE)
            names = ("cell", "share of visits")
        elif not exploration.rounds:
            ax.plot(-np.sort(-visited[visited > 0.0]), color=WITH_CE)
            ax.set_yscale("log")
            ax.yaxis.set_minor_formatter(NullFormatter())  # a range of less than ten would name every tick, and large
            names = ("cells seen, most visited first", "share of visits")
        else:
            seen = np.cumsum([round_.visited for round_ in exploration.rounds], axis=0) > 0.0
            ax.plot(np.arange(1, len(seen) + 1), seen.sum(axis=1), color=WITH_CE, marker="o", markersize=3)
            names = ("round", "cells seen so far")
        ax.set_xlabel(names[0], fontsize=8)
        ax.set_ylabel(names[1], fontsize=8)
        quiet(ax)
    ax.set_title(f"{discretisation.environment}: {int((visited > 0.0).sum()):,} of {known:,} cells visited", fontsize=9)
    return figure


def _draw_map(figure: Figure, ax: Axes, visited: Floats, edges: list[Floats]) -> None:
    from matplotlib.colors import LogNorm

    table = np.ma.masked_equal(visited.reshape([len(along) - 1 for along in edges]), 0.0)
    ax.set_facecolor(NEVER_VISITED)
    mesh = ax.pcolormesh(*edges, table.T, cmap="YlGn", norm=LogNorm(), linewidth=0)
    bar = figure.colorbar(mesh, ax=ax)
    bar.set_label("share of visits", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    ax.set_xlabel("observation[0]", fontsize=8)
    ax.set_ylabel("observation[1]", fontsize=8)
    ax.tick_params(labelsize=7)


def _edges(described: dict[str, Any]) -> list[Floats] | None:
    """Where the cells of a grid begin and end along each dimension."""
    if described["kind"] == "grid":
        pieces = zip(described["low"], described["high"], described["bins"], strict=True)
        return [np.linspace(low, high, bins + 1) for low, high, bins in pieces]
    if described["kind"] == "quantiles":  # their outermost cells have no end, so cells are drawn by their numbers
        return [np.arange(len(inner) + 2, dtype=np.float64) - 0.5 for inner in described["edges"]]
    return None
