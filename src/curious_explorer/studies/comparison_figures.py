"""Three figures: sample efficiency with bands, the performance profile, and samples to the target."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from curious_explorer.studies.comparison_results import ComparisonResults
from curious_explorer.studies.comparison_run import TARGET
from curious_explorer.studies.figures import FAINT, PAGE_WIDTH, new_figure, quiet, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS_IN_A_ROW = 2
FEW_COLOURS, MANY_COLOURS = "tab10", "tab20"
LINE_STYLES = ("-", "--", ":")
DOTS_PER_INCH = 110
"""For a screen; the figures of a paper are made by ``reproduce``."""


def draw_all(results: ComparisonResults, folder: Path) -> list[Path]:
    """Write the figures as PNG files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "sample-efficiency": draw_curves(results),
        "performance-profile": draw_profile(results),
        "samples-to-target": draw_bars(results),
    }
    return [save_figure(figure, folder / name, pdf=False, dpi=DOTS_PER_INCH)[0] for name, figure in figures.items()]


def look_of(results: ComparisonResults, method: str) -> tuple[tuple[float, ...], str]:
    """The colour and the line style of a method; of more than ten methods, pairs of them share a hue."""
    from matplotlib import colormaps

    place = results.methods.index(method)
    colours = colormaps[FEW_COLOURS if len(results.methods) <= 10 else MANY_COLOURS]
    return colours(place % colours.N), LINE_STYLES[place // colours.N % len(LINE_STYLES)]


def draw_curves(results: ComparisonResults) -> Figure:
    """For each environment, the score of the current policy against samples."""
    from matplotlib.ticker import PercentFormatter

    rows = math.ceil(len(results.budgets) / PANELS_IN_A_ROW)
    columns = min(PANELS_IN_A_ROW, len(results.budgets))
    figure = new_figure(PAGE_WIDTH, 2.1 * rows + 0.25 * math.ceil(len(results.methods) / 5) + 0.2)
    for place, environment in enumerate(results.budgets):
        ax = figure.add_subplot(rows, columns, place + 1)
        for method in results.methods:
            curve = results.bands[method, environment]
            colour, style = look_of(results, method)
            ax.plot(curve.samples, curve.middle, color=colour, linestyle=style, linewidth=1.2, label=method)
            ax.fill_between(curve.samples, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        ax.axhline(TARGET, color=FAINT, linewidth=0.6, linestyle=":")
        quiet(ax)
        ax.set_xscale("log")
        ax.set_ylim(-0.04, 1.06)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.set_title(environment, fontsize=8.5, loc="left", parse_math=False)
        if place % columns == 0:
            ax.set_ylabel(f"{results.comparison.measure.quantity}, of the best", fontsize=7.5)
        if place >= len(results.budgets) - columns:
            ax.set_xlabel("samples (environment steps)", fontsize=7.5)
    _legend(figure, figure.axes[0], len(results.methods))
    return figure


def draw_profile(results: ComparisonResults) -> Figure:
    """The share of runs, over all environments, whose final score is more than tau."""
    figure = new_figure(PAGE_WIDTH, 2.8 + 0.25 * math.ceil(len(results.methods) / 5))
    ax = figure.add_subplot()
    profile = results.summary["performance_profile"]
    for method in results.methods:
        colour, style = look_of(results, method)
        ax.plot(profile["taus"], profile[method], color=colour, linestyle=style, linewidth=1.3, label=method)
    quiet(ax)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel(f"final {results.comparison.measure.quantity} tau, of the best", fontsize=7.5)
    ax.set_ylabel("share of runs worth more than tau", fontsize=7.5)
    _legend(figure, ax, len(results.methods))
    return figure


def draw_bars(results: ComparisonResults) -> Figure:
    """For each environment, the median number of samples to the target; empty where most runs never got there."""
    from matplotlib.ticker import NullLocator

    rows = math.ceil(len(results.budgets) / PANELS_IN_A_ROW)
    columns = min(PANELS_IN_A_ROW, len(results.budgets))
    figure = new_figure(PAGE_WIDTH, (0.16 * len(results.methods) + 0.7) * rows)
    for place, environment in enumerate(results.budgets):
        ax = figure.add_subplot(rows, columns, place + 1)
        _draw_bars_of(ax, results, environment)
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_title(environment, fontsize=8.5, loc="left", parse_math=False)
        if place >= len(results.budgets) - columns:
            ax.set_xlabel(f"samples to {TARGET:.0%} of the best (median)", fontsize=7.5)
    return figure


def _draw_bars_of(ax: Axes, results: ComparisonResults, environment: str) -> None:
    budget = results.budgets[environment]
    for height, method in enumerate(results.methods):
        figures, seeds = results.on(environment, method), results.comparison.seeds
        colour, _ = look_of(results, method)
        if figures["samples_to_target"] is not None:
            ax.barh(height, max(figures["samples_to_target"], 1.0), color=colour, height=0.7)
        else:
            reached = round(seeds * figures["reached_target"])
            ax.text(2.0, height, f"{reached} of {seeds} runs got there", fontsize=5.5, va="center")
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
