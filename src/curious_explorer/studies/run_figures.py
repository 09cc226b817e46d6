"""Drawings of a single run: how cells grew, where they lie between start and reward, and how learning went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.models.reaching import Reaching
from curious_explorer.resets.chosen_states import rewarding_states
from curious_explorer.studies.figures import FAINT, PAGE_WIDTH, WITH_CE, WITHOUT_CE, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JITTER = 0.3
MOST_POINTS = 20_000


def draw_growth(growth: Sequence[Sequence[int]], first_reward: int | None) -> Figure:
    """Cells met against samples, and when the first reward was."""
    figure = new_figure(0.75 * PAGE_WIDTH, 2.6)
    ax = figure.add_subplot()
    samples, cells = np.array([[0, 0], *growth]).T
    ax.plot(samples, cells, color=WITH_CE)
    if first_reward is not None:
        ax.axvline(first_reward, color=WITHOUT_CE, linewidth=0.8, linestyle="--")
        ax.set_title(f"dashed: the first reward, after {first_reward:,} samples", fontsize=8, color=WITHOUT_CE)
    ax.set_xlabel("samples of the exploration", fontsize=8)
    ax.set_ylabel("cells met", fontsize=8)
    quiet(ax)
    return figure


def draw_between(model: GrowingModel) -> Figure:
    """Every cell by its steps from the start and its steps to the reward, the later met the darker.

    The shortest way runs along the diagonal from the start (upper left) to the reward (lower right). Cells from which
    no way to the reward is known stand in a band above all others; where no reward was seen all do.
    """
    counted = model.counted()
    reaching = Reaching(counted)
    away = np.asarray(reaching.distances_from_starts(), dtype=np.float64)
    to_reward = np.full(len(away), -1.0)
    try:
        pays = rewarding_states(counted)
        to_reward = np.asarray(reaching.distances(pays), dtype=np.float64)
    except ValueError:  # none was seen
        pays = np.zeros(len(away), dtype=np.bool_)
    met = np.arange(len(away))
    keep = np.flatnonzero(away >= 0)
    keep = keep[:: -(-len(keep) // MOST_POINTS) or 1]
    known = to_reward[keep] >= 0
    top = max(1.0, to_reward.max())
    band = top * 1.12
    generator = np.random.default_rng(0)
    x = away[keep] + generator.uniform(-JITTER, JITTER, len(keep))
    y = np.where(known, to_reward[keep], band) + generator.uniform(-JITTER, JITTER, len(keep)) * np.where(
        known, 1.0, 0.05 * top / JITTER
    )
    figure = new_figure(0.75 * PAGE_WIDTH, 3.6)
    ax = figure.add_subplot()
    points = ax.scatter(x, y, c=met[keep], cmap="YlGn", s=7, linewidths=0.15, edgecolors=FAINT)
    starts = np.array(list(model.starts))
    shown = np.where(to_reward[starts] >= 0, to_reward[starts], band)
    ax.scatter(away[starts], shown, marker="s", s=40, facecolors="none", edgecolors="black", label="start")
    if pays.any():
        places = np.flatnonzero(pays & (away >= 0))
        ax.scatter(away[places], to_reward[places], marker="*", s=70, color=WITHOUT_CE, label="pays the reward")
    if not known.all():
        ax.set_title("above: cells from which no way to a reward is known", fontsize=7, loc="right")
    ax.set_xlabel("steps from the start, by ways that were seen", fontsize=8)
    ax.set_ylabel("steps to the reward", fontsize=8)
    bar = figure.colorbar(points, ax=ax)
    bar.set_label("order in which cells were met", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False)
    quiet(ax)
    return figure


def draw_learning(curves: dict[str, Sequence[Sequence[float]]], offsets: dict[str, int]) -> Figure:
    """Mean returns from the environment's own start against all samples of the run; a line for each training."""
    figure = new_figure(0.75 * PAGE_WIDTH, 2.8)
    ax = figure.add_subplot()
    colours = {"plain": FAINT, "learn": WITH_CE, "replay": WITHOUT_CE}
    names = {"plain": "plain learning", "learn": "from moving starts", "replay": "values, from steps of exploring"}
    for name, curve in curves.items():
        samples, mean, spread = np.array(curve).T
        samples = samples + offsets[name]
        colour = colours.get(name, WITH_CE)
        ax.plot(samples, mean, color=colour, marker=".", label=names.get(name, name))
        ax.fill_between(samples, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("samples, those of roll-ins included", fontsize=8)
    ax.set_ylabel("return of an episode\n(mean, one standard deviation)", fontsize=8)
    ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2, frameon=False)
    quiet(ax)
    return figure
