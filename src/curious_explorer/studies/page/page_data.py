"""What the page's drawings show, as plain data; numbers are rounded to what a screen can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.mdp.layout import edges_of, layout_states
from curious_explorer.studies.figures.evolution import reached_shares
from curious_explorer.studies.figures.learning_curves import episodes_shown
from curious_explorer.studies.figures.scatter import mu_of
from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import CellRun
from curious_explorer.studies.paper_summary import by_cell, mean_curve

DIGITS = 5


def page_data(runs: Sequence[CellRun]) -> dict[str, Any]:
    """Everything that the page's script needs."""
    return {"cells": [_cell_data(cell, group) for cell, group in by_cell(runs)]}


def _cell_data(cell: Cell, runs: Sequence[CellRun]) -> dict[str, Any]:
    run = runs[0]
    mdp = cell.mdp(run.seed)
    edges = edges_of(mdp)
    best = cell.best_return(run.gamma)
    return {
        "name": cell.name,
        "title": cell.title,
        "gamma": run.gamma,
        "beta": run.beta,
        "best": best,
        "discounted": cell.environment == "cct",
        "exploration": float(np.mean([each.exploration_samples for each in runs])),
        "states": list(mdp.state_names),
        "terminal": mdp.terminal.tolist(),
        "starts": np.flatnonzero(mdp.start > 0.0).tolist(),
        "places": _rounded(layout_states(mdp)),
        "edges": [
            [int(tail), int(head), round(float(probability), 3), bool(reward > 0.0), bool(reverse and tail != head)]
            for tail, head, probability, reward, reverse in zip(*edges, strict=True)
        ],
        "mu": _rounded(mu_of(run)),
        "shares": _rounded(reached_shares(run.visited, run.poorly_visited, run.thresholds)),
        "poor": run.poorly_visited.astype(int).tolist(),
        "curves": {axis: _curves(runs, axis, best) for axis in ("episodes", "samples")},
    }


def _curves(runs: Sequence[CellRun], axis: str, best: float) -> dict[str, Any]:
    """Mean returns and the band of one standard deviation around them, with CE and without it."""
    limit = episodes_shown(runs) if axis == "episodes" else None
    result = {}
    for name, arm in (("with", "with_ce"), ("without", "without_ce_total_budget")):
        effort, mean, deviation = mean_curve(runs, arm, axis, limit=limit)
        low, high = (mean - deviation).clip(0.0), (mean + deviation).clip(None, 1.0)
        columns = {"mean": best * mean, "low": best * low, "high": best * high}
        result[name] = {"x": effort.round().tolist(), **{key: _rounded(column) for key, column in columns.items()}}
    return result


def _rounded(values: ArrayLike) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), DIGITS).tolist()
