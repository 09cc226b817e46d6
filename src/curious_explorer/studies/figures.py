"""What all figures share (paper sizes, quiet axes, the same bytes for the same figure), and those of a single run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.mdp.drawing import draw_mdp
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_WIDTH = 7.0
"""Inches between the margins of a printed page."""
WITH_CE, WITHOUT_CE = "#15803d", "#b91c1c"
"""Green and red, as in the paper, dark enough to be told apart from the paper's white."""
FAINT = "#64748b"
DOTS_PER_INCH = 200
QUICK_PNG = 3
"""How hard to compress: 6, the default, takes half as long again and leaves these files no smaller."""
MOST_BARS = 300
MOST_NODES, SPRING_STEPS = 1_500, 60
"""Of a graph of cells: more of them are a cloud, and take seconds to place."""
NEVER_VISITED = "#f1f5f9"


def new_figure(width: float, height: float, *, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """A figure of its own, in inches, that leaves the caller's pyplot alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout, dpi=DOTS_PER_INCH)
    FigureCanvasAgg(figure)
    return figure


def quiet(ax: Axes) -> None:
    """Axes without a box, with small labels and a faint grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=7, length=2.5, width=0.6)
    ax.grid(visible=True, linewidth=0.3, color="#cbd5e1")
    ax.set_axisbelow(True)


def save_figure(figure: Figure, stem: Path, *, pdf: bool = True, dpi: float | None = None) -> list[Path]:
    """Write ``stem.png`` and, unless told otherwise, ``stem.pdf``."""
    from matplotlib import rc_context

    saved = []
    # A date, or the name of the software, would make every copy of a figure another file.
    metadata: dict[str, dict[str, Any]] = {"png": {"Software": None}} | ({"pdf": {"CreationDate": None}} if pdf else {})
    for ending, extra in metadata.items():
        buffer = io.BytesIO()
        with rc_context({"pdf.fonttype": 42}):
            options: dict[str, Any] = {"pil_kwargs": {"compress_level": QUICK_PNG}} if ending == "png" else {}
            figure.savefig(buffer, format=ending, metadata=extra, dpi="figure" if dpi is None else dpi, **options)
        figure.set_layout_engine("none")  # it has found its places; finding them again would take as long as drawing
        saved.append(write_atomically(stem.with_name(f"{stem.name}.{ending}"), buffer.getvalue()))
    return saved


def draw_evaluations(samples: Sequence[int], returns: Sequence[float], title: str) -> Figure:
    """How a training went: mean returns from the environment's own start."""
    figure = new_figure(0.75 * PAGE_WIDTH, 2.8)
    ax = figure.add_subplot()
    ax.plot(samples, returns, color=WITH_CE, marker=".")
    ax.set_xlabel("samples of the training, roll-ins included", fontsize=8)
    ax.set_ylabel("mean return from the start", fontsize=8)
    ax.set_title(title, fontsize=9)
    quiet(ax)
    return figure


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
    counted are a graph. Else up to a few hundred cells have a bar each; of more of them, only how many have been
    seen after each round is drawn, or where there are no rounds, how evenly visits are spread.
    """
    visited = exploration.total_visited / max(1, len(exploration.rounds))
    from matplotlib.ticker import NullFormatter

    edges = _edges(discretisation.cells.description())
    known = len(discretisation.cells.discovered()) or discretisation.cells.count
    is_map = edges is not None and len(edges) == 2
    if not is_map and isinstance(exploration.model, GrowingModel) and 1 < len(exploration.model) <= MOST_NODES:
        figure = _draw_cell_graph(exploration.model)
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


def _draw_cell_graph(model: GrowingModel) -> Figure:
    """Cells as points, near those that follow them, the darker the more visited; a ring around the start."""
    import networkx
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    seen, visits = model.outcomes(), np.maximum(model.visits(), 1)
    pairs = np.unique(np.sort(np.stack([seen.state, seen.next_state], axis=1), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(model)))
    graph.add_edges_from(pairs.tolist())
    found = networkx.spring_layout(graph, seed=0, iterations=SPRING_STEPS, method="force")
    places = np.array([found[cell] for cell in range(len(model))])
    figure = new_figure(0.75 * PAGE_WIDTH, 0.6 * PAGE_WIDTH)
    ax = figure.add_subplot()
    ax.add_collection(LineCollection(list(places[pairs]), colors=FAINT, linewidths=0.4, alpha=0.5, zorder=1))
    size = float(np.clip(6_000.0 / len(model), 6.0, 60.0))
    dots = ax.scatter(
        places[:, 0],
        places[:, 1],
        c=visits,
        s=size,
        cmap="YlGn",
        norm=LogNorm(),
        edgecolors=FAINT,
        linewidths=0.4,
        zorder=2,
    )
    starts = places[list(model.starts)]
    ax.scatter(
        starts[:, 0],
        starts[:, 1],
        s=4.0 * size,
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
