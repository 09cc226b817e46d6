"""Learning curves of all arms, task by task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

COLOURS = {"plain": "#888888", "explored": "#1b7f3b", "distillation": "#b5651d"}
LABELS = {"plain": "from the start", "explored": "from explored resets", "distillation": "with distillation"}


def draw(runs: list[dict[str, Any]], path: Path) -> Path:
    """One panel a task: the mean of the seeds, and each seed thinly; exploration is the shaded stretch."""
    with_curves = [run for run in runs if run["curve"]]
    tasks = list(dict.fromkeys(run["task"] for run in with_curves))
    columns = min(3, max(1, len(tasks)))
    rows = -(-max(1, len(tasks)) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.0 * rows), layout="constrained")
    for place, task in enumerate(tasks):
        axes = figure.add_subplot(rows, columns, place + 1)
        for arm, colour in COLOURS.items():
            curves = [run["curve"] for run in with_curves if run["task"] == task and run["arm"] == arm]
            best = next(
                (run["return"] / run["fraction"] for run in runs if run["task"] == task and run["fraction"]), 1.0
            )
            if not curves:
                continue
            for curve in curves:
                samples, returns = np.array(curve).T
                axes.plot(samples, returns / best, color=colour, alpha=0.25, linewidth=0.8)
            length = min(len(curve) for curve in curves)
            mean = np.array([curve[:length] for curve in curves]).mean(axis=0)
            axes.plot(mean[:, 0], mean[:, 1] / best, color=colour, linewidth=2.0, label=LABELS[arm])
        explored = [r["exploration_samples"] for r in with_curves if r["task"] == task and r["arm"] == "explored"]
        if explored:
            axes.axvspan(0, float(np.mean(explored)), color=COLOURS["explored"], alpha=0.08, linewidth=0)
        axes.set_title(task)
        axes.set_ylim(-0.08, 1.08)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1_000:g} k")
        axes.set_xlabel("environment steps, all counted")
        axes.set_ylabel("return, of the best")
        axes.spines[["top", "right"]].set_visible(False)
    if tasks:
        figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
    return path
