"""Three figures: sample efficiency with bands, the performance profile, and samples to the target."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curious_explorer.storage import write_atomically
from curious_explorer.studies.comparison import statistics
from curious_explorer.studies.comparison.comparison_grid import TARGET
from curious_explorer.studies.comparison.comparison_summary import PROFILE_TAUS, Results, band
from curious_explorer.studies.figures.canvas import PAGE_WIDTH, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS_IN_A_ROW = 2
FEW_COLOURS, MANY_COLOURS = "tab10", "tab20"
LINE_STYLES = ("-", "--", ":")
DOTS_PER_INCH = 110
"""For a screen; the figures of a paper are made by ``reproduce``."""


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Write the figures as PNG files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "sample-efficiency": draw_curves(results),
        "performance-profile": draw_profile(results),
        "samples-to-target": draw_bars(results),
    }
    saved = []
    for name, figure in figures.items():
        buffer = io.BytesIO()
        # The name of the software would make every copy of a figure another file.
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        saved.append(write_atomically(folder / f"{name}.png", buffer.getvalue()))
    return saved


def look_of(results: Results, method: str) -> tuple[tuple[float, ...], str]:
    """The colour and the line style of a method; of more than ten methods, pairs of them share a hue."""
    from matplotlib import colormaps

    place = results.methods.index(method)
    colours = colormaps[FEW_COLOURS if len(results.methods) <= 10 else MANY_COLOURS]
    return colours(place % colours.N), LINE_STYLES[place // colours.N % len(LINE_STYLES)]


def draw_curves(results: Results) -> Figure:
    """For each environment, the score of the current policy against samples."""
    from matplotlib.ticker import PercentFormatter

    rows = math.ceil(len(results.budgets) / PANELS_IN_A_ROW)
    columns = min(PANELS_IN_A_ROW, len(results.budgets))
    figure = new_figure(PAGE_WIDTH, 2.1 * rows + 0.25 * math.ceil(len(results.methods) / 5) + 0.2)
    for place, environment in enumerate(results.budgets):
        ax = figure.add_subplot(rows, columns, place + 1)
        for method in results.methods:
            curve = band(results, method, environment)
            colour, style = look_of(results, method)
            ax.plot(curve.samples, curve.middle, color=colour, linestyle=style, linewidth=1.2, label=method)
            ax.fill_between(curve.samples, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        ax.axhline(TARGET, color="#64748b", linewidth=0.6, linestyle=":")
        quiet(ax)
        ax.set_xscale("log")
        ax.set_ylim(-0.04, 1.06)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.set_title(environment, fontsize=8.5, loc="left", parse_math=False)
        if place % columns == 0:
            ax.set_ylabel("value, of the best", fontsize=7.5)
        if place >= len(results.budgets) - columns:
            ax.set_xlabel("samples (environment steps)", fontsize=7.5)
    _legend(figure, figure.axes[0], len(results.methods))
    return figure


def draw_profile(results: Results) -> Figure:
    """The share of runs, over all environments, whose final score is at least tau."""
    figure = new_figure(PAGE_WIDTH, 2.8 + 0.25 * math.ceil(len(results.methods) / 5))
    ax = figure.add_subplot()
    for method in results.methods:
        colour, style = look_of(results, method)
        share = statistics.performance_profile(results.scores(method), PROFILE_TAUS)
        ax.plot(PROFILE_TAUS, share, color=colour, linestyle=style, linewidth=1.3, label=method)
    quiet(ax)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("final value tau, of the best", fontsize=7.5)
    ax.set_ylabel("share of runs worth at least tau", fontsize=7.5)
    _legend(figure, ax, len(results.methods))
    return figure


def draw_bars(results: Results) -> Figure:
    """For each environment, the median number of samples to the target; empty where most runs never got there."""
    from matplotlib.ticker import NullLocator

    rows = math.ceil(len(results.budgets) / PANELS_IN_A_ROW)
    columns = min(PANELS_IN_A_ROW, len(results.budgets))
    figure = new_figure(PAGE_WIDTH, (0.16 * len(results.methods) + 0.7) * rows)
    for place, environment in enumerate(results.budgets):
        ax = figure.add_subplot(rows, columns, place + 1)
        _draw_bars_of(ax, results, environment, place)
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_title(environment, fontsize=8.5, loc="left", parse_math=False)
        if place >= len(results.budgets) - columns:
            ax.set_xlabel(f"samples to {TARGET:.0%} of the best (median)", fontsize=7.5)
    return figure


def _draw_bars_of(ax: Axes, results: Results, environment: str, place: int) -> None:
    budget = results.budgets[environment]
    for height, method in enumerate(results.methods):
        to_target = results.to_target(method)[:, place]
        median = float(statistics.upper_median(to_target[None, :, None])[0])
        colour, _ = look_of(results, method)
        if math.isfinite(median):
            ax.barh(height, max(median, 1.0), color=colour, height=0.7)
        else:
            reached = int(np.isfinite(to_target).sum())
            ax.text(2.0, height, f"{reached} of {len(to_target)} runs got there", fontsize=5.5, va="center")
    quiet(ax)
    ax.set_xscale("log")
    ax.set_xlim(1.0, 1.3 * budget)
    ax.set_yticks(range(len(results.methods)), results.methods, fontsize=6.5)
    ax.set_ylim(len(results.methods) - 0.4, -0.6)  # the first method on top
    ax.grid(visible=False, axis="y")


def _legend(figure: Figure, ax: Axes, many: int) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(many, 5), fontsize=7, frameon=False, handlelength=2.2
    )
