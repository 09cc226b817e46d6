"""Figure family (b): scatterplots of mu_n(s) by state, from red (n = 0) to blue (n = N - 1).

mu_n = 1/2 rho + 1/2 D_n, with D_n as it was measured. Two lines: the uniform distribution and half of it, which is the
paper's beta; points should gather there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.resets.reset_model import RHO_WEIGHT
from curious_explorer.studies.figures.canvas import PAGE_WIDTH, WITH_CE, new_figure, quiet
from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import CellRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_LABELS = 40


def mu_of(run: CellRun) -> Floats:
    """mu_n, shape (N, S)."""
    start: Floats = run.cell.mdp(run.seed).start
    result: Floats = RHO_WEIGHT * start + (1.0 - RHO_WEIGHT) * run.visited
    return result


def draw_scatter(cells: Sequence[tuple[Cell, Sequence[CellRun]]]) -> Figure:
    """One panel for each cell, the first run of each."""
    figure = new_figure(PAGE_WIDTH, 2.6 * len(cells))
    for panel, (cell, runs) in enumerate(cells):
        _draw_panel(figure.add_subplot(len(cells), 1, panel + 1), cell, runs[0])
    return figure


def _draw_panel(ax: Axes, cell: Cell, run: CellRun) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

    mu = mu_of(run)
    rounds, states = mu.shape
    colours = LinearSegmentedColormap.from_list("red to blue", ["#dc2626", "#2563eb"])
    norm = Normalize(0, max(1, rounds - 1))
    where, when = np.tile(np.arange(states), rounds), np.repeat(np.arange(rounds), states)
    ax.scatter(where, mu.ravel(), s=9, c=when, cmap=colours, norm=norm, alpha=0.75, linewidths=0, zorder=2)
    uniform = 1.0 / states
    ax.axhline(uniform, color=WITH_CE, linewidth=1.0, label="uniform", zorder=1)
    ax.axhline(uniform / 2, color=WITH_CE, linewidth=1.0, linestyle="--", label="half of it", zorder=1)
    # The start holds half of every mu_n; on a linear scale it would press everything else flat.
    ax.set_yscale("symlog", linthresh=uniform / 4)
    ax.set_ylim(0.0, 1.0)
    names = run.cell.mdp(run.seed).state_names
    every = max(1, -(-states // MOST_LABELS))
    ax.set_xticks(range(0, states, every), [names[s] for s in range(0, states, every)], rotation=90, parse_math=False)
    quiet(ax)
    ax.tick_params(axis="x", labelsize=5.5)
    ax.set_ylabel(r"$\mu_n(s)$", fontsize=8)
    ax.set_title(f"{cell.title}, seed {run.seed}", fontsize=9, loc="left", parse_math=False)
    ax.legend(fontsize=6.5, loc="upper right", frameon=False, ncols=2)
    bar = ax.figure.colorbar(
        ScalarMappable(norm, colours), ax=ax, pad=0.01, fraction=0.03, ticks=MaxNLocator(integer=True)
    )
    bar.set_label("round n", fontsize=7)
    bar.ax.tick_params(labelsize=6, length=2)
