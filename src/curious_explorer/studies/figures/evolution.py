"""Figure family (a): how the exploration spreads over the MDP's graph.

Poorly visited states, those in K_n, go from red to green as their visits so far come closer to the threshold beta_n;
all other states are green.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.mdp.drawing import draw_mdp
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.mdp.layout import layout_states
from curious_explorer.studies.figures.canvas import PAGE_WIDTH, new_figure
from curious_explorer.studies.paper_grid import Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Flags = NDArray[np.bool_]

LARGEST_UNIT = 0.62
"""Inches between neighbouring states."""
PANEL_TITLE, FIGURE_TITLE, BAR_ROOM = 0.25, 0.35, 0.55
"""Inches above each panel, above all, and below all."""
WORDS = "visits so far, as a share of the threshold"


def reached_shares(visited: Floats, poorly_visited: Flags, thresholds: Floats) -> Floats:
    """How close each state is to being well visited, by round, shape (N, S): 1 outside K_n, 0 if never visited."""
    total = np.cumsum(visited, axis=0)
    # The paper's schedule begins with a threshold of zero, where K_0 is what was never visited.
    share = np.divide(total, thresholds[:, None], out=np.zeros_like(total), where=thresholds[:, None] > 0.0)
    result: Floats = np.where(poorly_visited, np.clip(share, 0.0, 1.0), 1.0)
    return result


def rounds_shown(cell: Cell, rounds: int) -> list[int]:
    """The rounds that the paper shows for this cell, counted from 1; evenly spread where it has no such cell."""
    paper = {5: [1, 2, 3, 4, 5], 10: [1, 4, 6, 8, 10], 20: [1, 4, 7, 10, 14]}
    if (cell.environment, cell.optimizer) == ("cct", "reinforce"):
        paper |= {10: [1, 2, 3, 4, 10], 20: [1, 2, 3, 6, 20]}
    shown = paper.get(cell.depth, [])
    if shown and shown[-1] <= rounds:
        return shown
    return [int(n) for n in np.unique(np.linspace(1, rounds, 5).round())]


def draw_evolution(
    mdp: FiniteMDP,
    visited: Floats,
    poorly_visited: Flags,
    thresholds: Floats,
    shown: Sequence[int],
    *,
    title: str | None = None,
) -> Figure:
    """The MDP's graph at some rounds, counted from 1, one under the other."""
    shares = reached_shares(visited, poorly_visited, thresholds)
    places = layout_states(mdp)
    width, height = np.ptp(places, axis=0) + 2.0
    unit = min(LARGEST_UNIT, PAGE_WIDTH / width)
    row = max(0.4, unit * height) + PANEL_TITLE
    top = 0.0 if title is None else FIGURE_TITLE
    whole = row * len(shown) + top + BAR_ROOM
    # Places are known, so nothing has to search for them.
    figure = new_figure(unit * width, whole, layout=None)
    if title is not None:
        figure.suptitle(title, fontsize=10, y=1.0 - 0.1 / whole, va="top", parse_math=False)
    for panel, number in enumerate(shown):
        poor = int(poorly_visited[number - 1].sum())
        bottom = whole - top - row * (panel + 1)
        draw_mdp(
            mdp,
            ax=figure.add_axes((0.0, bottom / whole, 1.0, (row - PANEL_TITLE) / whole)),
            values=shares[number - 1],
            vmin=0.0,
            vmax=1.0,
            colorbar=False,
            positions=places,
            title=f"round {number}: {poor} of {mdp.num_states} states poorly visited",
        )
    _draw_bar(figure, whole)
    return figure


def _draw_bar(figure: Figure, height: float) -> None:
    """What the colours mean, under all panels."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    place = figure.add_axes((0.15, 0.38 / height, 0.7, 0.1 / height))
    bar = figure.colorbar(ScalarMappable(Normalize(0.0, 1.0), "RdYlGn"), cax=place, orientation="horizontal")
    bar.ax.tick_params(labelsize=7, length=2.0, width=0.5)
    bar.set_label(WORDS, fontsize=8)
