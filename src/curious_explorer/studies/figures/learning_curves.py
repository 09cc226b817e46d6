"""Figure family (c): returns while learning, red without Curious Explorer and green with it.

Mean and one standard deviation over runs of the exact return, from the start, of the policy learned so far; discounted
on CCT and undiscounted on DCL, as in the paper. Two kinds: by learning episodes, as in the paper, and by samples,
where the green learner pays for its exploration before it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from curious_explorer.studies.figures.canvas import PAGE_WIDTH, WITH_CE, WITHOUT_CE, new_figure, quiet
from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import CellRun
from curious_explorer.studies.paper_summary import mean_curve
from curious_explorer.studies.presets import PAPER_EPISODES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"episodes": "learning episodes", "samples": "samples (environment steps), exploration included"}
LINES = {"with_ce": (WITH_CE, "with CE"), "without_ce_total_budget": (WITHOUT_CE, "without CE")}


def episodes_shown(runs: Sequence[CellRun]) -> float:
    """Where the axis of episodes ends: when learning with CE does."""
    return float(max(run.curves["with_ce"].episodes[-1] for run in runs))


def draw_comparison(cells: Sequence[tuple[Cell, Sequence[CellRun]]], axis: str) -> Figure:
    """One panel for each cell; ``axis`` is a key of `AXES`."""
    figure = new_figure(PAGE_WIDTH, 2.1 * len(cells))
    for panel, (cell, runs) in enumerate(cells):
        _draw_panel(figure.add_subplot(len(cells), 1, panel + 1), cell, runs, axis)
    return figure


def _draw_panel(ax: Axes, cell: Cell, runs: Sequence[CellRun], axis: str) -> None:
    from matplotlib.ticker import EngFormatter

    best = cell.best_return(runs[0].gamma)
    limit = episodes_shown(runs) if axis == "episodes" else None
    for arm, (colour, label) in LINES.items():
        effort, mean, deviation = mean_curve(runs, arm, axis, limit=limit)
        ax.plot(effort, best * mean, color=colour, linewidth=1.3, label=label)
        low, high = (mean - deviation).clip(0.0), (mean + deviation).clip(None, 1.0)
        ax.fill_between(effort, best * low, best * high, color=colour, alpha=0.18, linewidth=0)
    ax.axhline(best, color="#64748b", linewidth=0.7, linestyle=":", label="best possible")
    if axis == "episodes" and limit is not None and limit > PAPER_EPISODES:
        ax.axvline(PAPER_EPISODES, color="#64748b", linewidth=0.7, linestyle="--", label="where the paper stops")
    if axis == "samples":
        spent = sum(run.exploration_samples for run in runs) / len(runs)
        ax.axvspan(0.0, spent, color=WITH_CE, alpha=0.07, linewidth=0, label="exploring")
    quiet(ax)
    ax.xaxis.set_major_formatter(EngFormatter(sep=" "))
    ax.set_xlim(left=0.0)
    ax.set_ylim(-0.03 * best, 1.06 * best)
    kind = "discounted" if cell.environment == "cct" else "undiscounted"
    ax.set_ylabel(f"return, {kind}", fontsize=7.5)
    ax.set_xlabel(AXES[axis], fontsize=7.5)
    many = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
    ax.set_title(f"{cell.title}, {many}", fontsize=9, loc="left", parse_math=False)
    ax.legend(fontsize=6.5, frameon=False, loc="center right" if axis == "episodes" else "center")
