"""The distribution over seeds: for each cell, how many of its seeds reach at least a given value.

A curve that stays high to the right is a method that works whatever the seed; one that falls early fails for most. The
shaded band holds the true curve with 95% confidence, everywhere at once (Dvoretzky, Kiefer, Wolfowitz; Massart 1990).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.studies.figures.canvas import PAGE_WIDTH, WITH_CE, WITHOUT_CE, new_figure, quiet
from curious_explorer.studies.seed_runs import SeedRuns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CONFIDENCE = 0.95
LINES = {
    "with_ce": (WITH_CE, "-", "with CE"),
    "without_ce_total_budget": (WITHOUT_CE, "-", "without CE, as many steps in all"),
    "without_ce": (WITHOUT_CE, ":", "without CE, as many learning steps"),
}


def draw_seeds(cells: Sequence[SeedRuns]) -> Figure:
    """One panel for each cell, two in a row."""
    rows = math.ceil(len(cells) / 2)
    figure = new_figure(PAGE_WIDTH, 2.5 * rows)
    for panel, runs in enumerate(cells):
        _draw_panel(figure.add_subplot(rows, min(2, len(cells)), panel + 1), runs)
    return figure


def share_reaching(values: Floats) -> tuple[Floats, Floats]:
    """Points x in order, and the share of seeds that reach more than the point before and so, for all we know, x."""
    ordered = np.sort(values).clip(0.0, 1.0)  # rounding may put the best policy just above the best
    at_least = 1.0 - np.arange(len(ordered)) / len(ordered)
    return np.concatenate([[0.0], ordered, [1.0]]), np.concatenate([[1.0], at_least, [0.0]])


def band_width(count: int) -> float:
    """How far the true curve may lie from that of ``count`` seeds."""
    return math.sqrt(math.log(2.0 / (1.0 - CONFIDENCE)) / (2.0 * count))


def _draw_panel(ax: Axes, runs: SeedRuns) -> None:
    for arm, (colour, style, label) in LINES.items():
        where, share = share_reaching(runs.values[arm])
        width = band_width(len(runs.seeds))
        order = 3 if arm == "with_ce" else 2
        ax.step(where, share, where="pre", color=colour, linestyle=style, linewidth=1.3, label=label, zorder=order)
        low, high = (share - width).clip(0.0), (share + width).clip(None, 1.0)
        ax.fill_between(where, low, high, step="pre", color=colour, alpha=0.12, linewidth=0)
    quiet(ax)
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("fraction of the best possible value", fontsize=7.5)
    ax.set_ylabel("share of seeds that reach it", fontsize=7.5)
    ax.set_title(f"{runs.cell.title}, {len(runs.seeds):,} seeds", fontsize=9, loc="left", parse_math=False)
    ax.legend(fontsize=6.5, frameon=False, loc="best")
