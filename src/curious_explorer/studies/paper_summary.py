"""Results as data: ``summary.json``, the same bytes for the same settings and seeds, and tidy tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import ARMS, CellRun

CSV_COLUMNS = (
    *("env", "depth", "optimizer", "gamma", "beta", "seed", "arm"),
    *("fraction_of_optimum", "exploration_samples", "learning_samples"),
)


def by_cell(runs: Sequence[CellRun]) -> list[tuple[Cell, list[CellRun]]]:
    """The runs of each cell, in the order given."""
    return [(cell, list(group)) for cell, group in groupby(runs, key=lambda run: run.cell)]


def summarize(runs: Sequence[CellRun]) -> dict[str, Any]:
    """The content of ``summary.json``; values are fractions of V* from the start, samples are means over seeds."""
    return {"cells": [_summarize_cell(cell, group) for cell, group in by_cell(runs)]}


def summary_text(runs: Sequence[CellRun]) -> str:
    """``summary.json`` as it is written."""
    return json.dumps(summarize(runs), indent=2, allow_nan=False) + "\n"


def _summarize_cell(cell: Cell, runs: list[CellRun]) -> dict[str, Any]:
    first = runs[0]
    return {
        "env": cell.environment,
        "depth": cell.depth,
        "optimizer": cell.optimizer,
        "gamma": first.gamma,
        "beta": first.beta,
        "seeds": [run.seed for run in runs],
        "optimal": first.optimal,
        **{arm: spread([run.values[arm] for run in runs]) for arm in ARMS},
        "samples": {
            "exploration": float(np.mean([run.exploration_samples for run in runs])),
            "learning": float(np.mean([run.learning_samples for run in runs])),
        },
    }


def spread(values: list[float]) -> dict[str, Any]:
    """Mean, standard deviation, minimum and the values themselves."""
    return {"mean": float(np.mean(values)), "std": float(np.std(values)), "min": float(min(values)), "values": values}


def results_csv(runs: Sequence[CellRun]) -> str:
    """Tidy results: a row for each run and arm."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for run in runs:
        for arm in ARMS:
            curve = run.curves[arm]
            spent = run.exploration_samples if arm == "with_ce" else 0
            cell = (run.cell.environment, run.cell.depth, run.cell.optimizer, run.gamma, run.beta)
            writer.writerow((*cell, run.seed, arm, run.values[arm], spent, int(curve.samples[-1])))
    return buffer.getvalue()


def curves_csv(runs: Sequence[CellRun]) -> str:
    """Tidy learning curves: a row for each point; samples are of learning, as in `Curve`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("env", "depth", "optimizer", "seed", "arm", "episodes", "samples", "fraction_of_optimum"))
    for run in runs:
        cell = (run.cell.environment, run.cell.depth, run.cell.optimizer, run.seed)
        for arm, curve in run.curves.items():
            points = zip(curve.episodes.tolist(), curve.samples.tolist(), curve.fractions.tolist(), strict=True)
            writer.writerows((*cell, arm, *point) for point in points)
    return buffer.getvalue()


def value_at(runs: Sequence[CellRun], arm: str, episodes: int) -> Floats:
    """Each run's fraction of the optimum after so many learning episodes, or at its end if it had fewer."""
    return np.array([np.interp(episodes, run.curves[arm].episodes, run.curves[arm].fractions) for run in runs])


def mean_curve(
    runs: Sequence[CellRun], arm: str, axis: str, *, points: int = 121, limit: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Effort, mean and standard deviation over runs of the fraction of the optimum.

    ``axis`` is ``episodes``, or ``samples`` with the exploration's included, where a run has no value before its
    exploration is over: until then its policy is the one it started with. Beyond a run's end its last value stands.
    """
    lines = []
    for run in runs:
        curve = run.curves[arm]
        effort = np.asarray(getattr(curve, axis), dtype=np.float64)
        fractions = curve.fractions
        if axis == "samples" and arm == "with_ce":
            effort = np.concatenate([[0.0], effort + run.exploration_samples])
            fractions = np.concatenate([fractions[:1], fractions])
        lines.append((effort, fractions))
    last = max(float(effort[-1]) for effort, _ in lines) if limit is None else limit
    grid = np.linspace(0.0, last, points)
    table = np.array([np.interp(grid, effort, fractions) for effort, fractions in lines])
    return grid, table.mean(axis=0), table.std(axis=0)
