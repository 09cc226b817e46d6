"""The paper's figures, from the numbers of `paper_results`, each with what it shows.

(a) evolution: how the exploration spreads over the MDP's graph. Poorly visited states, those in K_n, go from red to
green as their visits so far come closer to the threshold beta_n; all other states are green.

(b) scatter: mu_n(s) by state, from red (n = 0) to blue (n = N - 1). Two lines: the uniform distribution and half of it,
which is the paper's beta; points should gather there.

(c) returns while learning, red without Curious Explorer and green with it: mean and one standard deviation over runs of
the exact return, from the start, of the policy learned so far; discounted on CCT and undiscounted on DCL, as in the
paper. By learning episodes, as in the paper, and by samples, where the green learner pays for its exploration first.

(d) graph: the MDPs themselves.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.mdp.drawing import draw_mdp
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.mdp.layout import layout_states
from curious_explorer.studies.figures import FAINT, PAGE_WIDTH, WITH_CE, WITHOUT_CE, new_figure, quiet, save_figure
from curious_explorer.studies.paper_experiments import PAPER_EPISODES, TITLES
from curious_explorer.studies.paper_results import ExperimentResults, by_experiment, reached_shares
from curious_explorer.studies.paper_run import ExperimentRun
from curious_explorer.studies.runner import safe_name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"episodes": "learning episodes", "samples": "samples (environment steps), exploration included"}
LINES = {"with_ce": (WITH_CE, "with CE"), "without_ce_total_budget": (WITHOUT_CE, "without CE")}
LARGEST_UNIT = 0.62
"""Inches between neighbouring states."""
PANEL_TITLE, FIGURE_TITLE, BAR_ROOM = 0.25, 0.35, 0.55
"""Inches above each panel, above all, and below all."""
LEGEND_ROOM, AXIS_SIDE, BAR_SIDE, LETTER = 0.25, 0.55, 0.65, 0.052
"""Inches above all panels for their legend, beside axes at the left and for a colour bar at the right, and of a letter
of a state's name."""
SHARE_LABEL = "visits so far, as a share of the threshold"
MOST_LABELS = 40


@dataclass(frozen=True, eq=False)
class FigureJob:
    """One figure to draw and save; worker processes can do it."""

    family: str
    """``evolution``, ``scatter``, ``episodes``, ``samples``, ``graph`` or ``video``."""
    name: str
    """Of the file, without its ending."""
    results: list[ExperimentResults]
    folder: Path


def figure_jobs(runs: Sequence[ExperimentRun], folder: Path) -> list[FigureJob]:
    """All figures of a study; those that take long come first."""
    results = by_experiment(runs)
    deep_first = sorted(results, key=lambda result: -result.experiment.depth)
    jobs = [
        FigureJob("evolution", f"evolution-{safe_name(result.experiment.name)}", [result], folder)
        for result in deep_first
    ]
    # As in the paper, the depths of one optimizer on one environment share a page.
    for (optimizer, environment), pages in groupby(
        results, key=lambda result: (result.experiment.optimizer, result.experiment.environment)
    ):
        page = list(pages)
        shared = ("scatter", "episodes", "samples")
        jobs += [FigureJob(family, f"{family}-{optimizer}-{environment}", page, folder) for family in shared]
    shallowest = {result.experiment.environment: result for result in deep_first}
    environments = dict.fromkeys(result.experiment.environment for result in results)
    for name in environments:
        result = shallowest[name]
        jobs.append(FigureJob("graph", f"graph-{name}{result.experiment.depth}", [result], folder))
    return jobs


def draw_figure(job: FigureJob) -> None:
    """Draw and save a figure, or the video."""
    if job.family == "video":
        from curious_explorer.studies.video import write_video

        write_video(job.folder / f"{job.name}.mp4", job.results)
        return
    # All that Matplotlib makes is needed until the file is written; looking for garbage among it takes an eighth more.
    collecting = gc.isenabled()
    gc.disable()
    try:
        save_figure(make_figure(job), job.folder / job.name)
    finally:
        if collecting:
            gc.enable()


def make_figure(job: FigureJob) -> Figure:
    """The figure of a job."""
    if job.family == "scatter":
        return draw_scatter(job.results)
    if job.family in AXES:
        return draw_returns(job.results, job.family)
    result = job.results[0]
    experiment, run = result.experiment, result.first
    if job.family == "graph":
        axes = draw_mdp(result.mdp, title=f"{TITLES[experiment.environment]}, depth {experiment.depth}")
        figure: Figure = axes.figure  # type: ignore[assignment]
        return figure
    title = f"Curious Explorer with {experiment.title}"
    return draw_evolution(result.mdp, run.visited, run.poorly_visited, run.thresholds, result.rounds_shown, title=title)


def draw_evolution(
    mdp: FiniteMDP,
    visited: Floats,
    poorly_visited: NDArray[np.bool_],
    thresholds: Floats,
    shown: Sequence[int],
    *,
    title: str | None = None,
) -> Figure:
    """The MDP's graph at some rounds, counted from 1, one under the other."""
    from matplotlib import colormaps

    from curious_explorer.mdp.repeated_drawing import RepeatedDrawing

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
    colours = colormaps["RdYlGn"]
    graph = RepeatedDrawing(mdp, (unit * width, row - PANEL_TITLE), figure.dpi, places)
    for panel, number in enumerate(shown):
        poor = int(poorly_visited[number - 1].sum())
        bottom = whole - top - row * (panel + 1)
        ax = figure.add_axes((0.0, bottom / whole, 1.0, (row - PANEL_TITLE) / whole))
        counted = f"round {number}: {poor} of {mdp.num_states} states poorly visited"
        graph.draw(ax, colours(shares[number - 1]), counted)
    _draw_bar(figure, whole)
    return figure


def _draw_bar(figure: Figure, height: float) -> None:
    """What the colours mean, under all panels."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    place = figure.add_axes((0.15, 0.38 / height, 0.7, 0.1 / height))
    bar = figure.colorbar(ScalarMappable(Normalize(0.0, 1.0), "RdYlGn"), cax=place, orientation="horizontal")
    bar.ax.tick_params(labelsize=7, length=2.0, width=0.5)
    bar.set_label(SHARE_LABEL, fontsize=8)


def draw_scatter(results: Sequence[ExperimentResults]) -> Figure:
    """One panel for each experiment, the first run of each."""
    longest = max(len(name) for result in results for name in result.mdp.state_names)
    room = min(LETTER * longest, 1.0) + 0.1  # names stand upright under the panel
    return _panels(results, 2.0 + room, room, BAR_SIDE, _draw_resets)


def _panels(
    results: Sequence[ExperimentResults],
    height: float,
    below: float,
    right: float,
    draw: Callable[[Axes, ExperimentResults], None],
) -> Figure:
    """A panel for each experiment, one under the other, and one legend above all of them, off the curves.

    Places are given in inches: to have Matplotlib look for them takes longer than drawing.

    Args:
        results: one a panel.
        height: of a panel, with its title and what stands below it.
        below: how much of that is needed below its axes.
        right: inches beside its axes.
        draw: draws a panel.
    """
    whole = height * len(results) + LEGEND_ROOM
    figure = new_figure(PAGE_WIDTH, whole, layout=None)
    across = PAGE_WIDTH - AXIS_SIDE - right
    entries: dict[str, Artist] = {}
    for panel, result in enumerate(results):
        bottom = height * (len(results) - 1 - panel) + below
        up = height - below - PANEL_TITLE
        ax = figure.add_axes((AXIS_SIDE / PAGE_WIDTH, bottom / whole, across / PAGE_WIDTH, up / whole))
        draw(ax, result)
        ax.yaxis.set_label_coords(-0.65 * AXIS_SIDE / across, 0.5)
        ax.xaxis.set_label_coords(0.5, -0.22 / up)
        entries |= dict(reversed(entry) for entry in zip(*ax.get_legend_handles_labels(), strict=True))
    figure.legend(
        entries.values(),
        entries.keys(),
        fontsize=7.5,
        loc="upper left",
        bbox_to_anchor=(AXIS_SIDE / PAGE_WIDTH, 1.0 - 0.04 / whole),
        borderaxespad=0.0,
        borderpad=0.0,
        frameon=False,
        ncols=len(entries),
    )
    return figure


def _draw_resets(ax: Axes, result: ExperimentResults) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

    mu = result.mu
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
    ax.set_xlim(-0.02 * states - 0.5, 1.02 * states - 0.5)
    names = result.mdp.state_names
    every = max(1, -(-states // MOST_LABELS))
    ax.set_xticks(range(0, states, every), [names[s] for s in range(0, states, every)], rotation=90, parse_math=False)
    quiet(ax)
    ax.tick_params(axis="x", labelsize=5.5)
    ax.set_ylabel("μₙ(s)", fontsize=8)
    _title(ax, f"{result.experiment.title}, seed {result.first.seed}")
    bar = ax.figure.colorbar(
        ScalarMappable(norm, colours),
        cax=ax.inset_axes((1.01, 0.0, 0.02, 1.0)),
        ticks=MaxNLocator(integer=True),
    )
    bar.set_label("round n", fontsize=7)
    bar.ax.tick_params(labelsize=6, length=2)


def _title(ax: Axes, text: str) -> None:
    """A title over the left end of the axes; where it stands is said, so that nothing has to search for it."""
    ax.set_title(text, fontsize=9, loc="left", y=1.0, pad=4.0, parse_math=False)


def draw_returns(results: Sequence[ExperimentResults], axis: str) -> Figure:
    """One panel for each experiment; ``axis`` is a key of `AXES`."""
    return _panels(results, 2.1, 0.42, 0.1, partial(_draw_returns, axis=axis))


def _draw_returns(ax: Axes, result: ExperimentResults, axis: str) -> None:
    from matplotlib.ticker import EngFormatter

    best, runs = result.best, result.runs
    for arm, band in result.returns(axis).items():
        colour, label = LINES[arm]
        ax.plot(band.effort, band.mean, color=colour, linewidth=1.3, label=label)
        ax.fill_between(band.effort, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
    ax.axhline(best, color=FAINT, linewidth=0.7, linestyle=":", label="best possible")
    if axis == "episodes" and result.episodes_shown > PAPER_EPISODES:
        ax.axvline(PAPER_EPISODES, color=FAINT, linewidth=0.7, linestyle="--", label="where the paper stops")
    if axis == "samples":
        ax.axvspan(0.0, result.exploration_samples, color=WITH_CE, alpha=0.07, linewidth=0, label="exploring")
    quiet(ax)
    ax.xaxis.set_major_formatter(EngFormatter(sep=" "))
    ax.set_xlim(left=0.0)
    ax.set_ylim(-0.03 * best, 1.06 * best)
    ax.set_ylabel(f"return, {result.kind_of_return}", fontsize=7.5)
    ax.set_xlabel(AXES[axis], fontsize=7.5)
    many = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
    _title(ax, f"{result.experiment.title}, {many}")
