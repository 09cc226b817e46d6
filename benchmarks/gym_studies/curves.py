"""Learning curves of the arms on the tasks that rivals were run on, on one page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.gym_studies.arms import ARMS
from benchmarks.gym_studies.runs import Run
from benchmarks.gym_studies.tables import OURS, RIVALS, Runs, worth_at
from benchmarks.gym_studies.tasks import CORE, TASKS
from curious_explorer.studies.figures import PAGE_WIDTH, WITH_CE, new_figure, quiet, save_figure

LOOKS = {
    OURS: (WITH_CE, "-"),
    "plain": ("#64748b", "-"),
    "rnd": ("#b91c1c", "-"),
    "noveld": ("#7c3aed", "-"),
    "counts": ("#0369a1", "-"),
    "planning": (WITH_CE, ":"),
    "archive": ("#92400e", ":"),
}
"""Colour and line; dotted are those that learn nothing."""
COLUMNS, FIRST, BEYOND, POINTS = 4, 1_000, 1.3, 200
"""Panels in a row; where the axis of samples begins and how far it goes beyond those that were given, because the
evaluations of rivals come on top of these; at how many places of it curves are taken."""


def draw_curves(runs: Sequence[Run], path: Path) -> Path:
    """Write a picture: a panel a task, the mean of each arm's runs, and a band from the worst to the best of them."""
    found = Runs(runs)
    problems = [(task, TASKS[task].samples) for task in CORE]
    rows = math.ceil(len(problems) / COLUMNS)
    figure = new_figure(PAGE_WIDTH * 1.4, 2.2 * rows + 0.4)
    arms = [arm for arm in found.arms() if arm in RIVALS]
    for place, problem in enumerate(problems):
        ax = figure.add_subplot(rows, COLUMNS, place + 1)
        grid = np.geomspace(FIRST, BEYOND * problem[1], POINTS).astype(np.int64).tolist()
        for arm in arms:
            colour, line = LOOKS[arm]
            curves = [worth_at(run, grid) for run in found.of(problem, arm)] or [np.full(len(grid), np.nan)]
            ax.plot(grid, np.mean(curves, axis=0), color=colour, linestyle=line, linewidth=1.3, label=ARMS[arm])
            ax.fill_between(grid, np.min(curves, axis=0), np.max(curves, axis=0), color=colour, alpha=0.12, linewidth=0)
        quiet(ax)
        ax.set_xscale("log")
        ax.set_xlim(FIRST, BEYOND * problem[1])
        ax.set_ylim(-0.04, 1.06)
        ax.set_title(problem[0], fontsize=8.5, loc="left", parse_math=False)
        if place % COLUMNS == 0:
            ax.set_ylabel("worth, of the best", fontsize=7.5)
        if place >= len(problems) - COLUMNS:
            ax.set_xlabel("samples in all", fontsize=7.5)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(arms), fontsize=8, frameon=False)
    return save_figure(figure, path.with_suffix(""), pdf=False, dpi=110)[0]
