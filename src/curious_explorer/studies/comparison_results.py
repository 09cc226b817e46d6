"""The numbers of a comparison, computed once: whatever tables, figures and page show is taken from here.

``summary.json`` and ``results.csv`` are the same bytes for the same comparison; ``times.csv`` is not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.studies import statistics
from curious_explorer.studies.comparison_run import TARGET, Comparison, ComparisonRun
from curious_explorer.studies.runner import csv_text
from curious_explorer.studies.task_comparison import TaskComparison

CSV_COLUMNS = (
    "environment",
    "method",
    "seed",
    "gamma",
    "budget",
    "score",
    "samples_to_target",
    "share_above_target",
    "coverage",
    "samples",
)
CURVE_POINTS = 100
CURVE_RESAMPLES = 400
FIRST_POINT = 50.0
"""Where curves begin on their logarithmic axis."""
PROFILE_TAUS = np.linspace(0.0, 0.99, 100)
"""Up to 0.99: beyond it digits decide that nobody cares for."""


class Band(NamedTuple):
    """A curve over seeds: interquartile mean and its bootstrap interval, on a grid of samples."""

    samples: Floats
    middle: Floats
    low: Floats
    high: Floats


class ComparisonResults:
    """All runs of a comparison as tables of shape (seeds, environments), one for each method."""

    def __init__(self, comparison: Comparison | TaskComparison, runs: Sequence[ComparisonRun]) -> None:
        self.comparison = comparison
        self.methods = list(comparison.methods)
        self.budgets = comparison.budgets
        self._runs = {(run.job.method, run.job.environment, run.job.seed): run for run in runs}

    def runs(self, method: str, environment: str) -> list[ComparisonRun]:
        """The runs of a method on an environment, by seed."""
        return [self._runs[method, environment, seed] for seed in range(self.comparison.seeds)]

    def scores(self, method: str) -> Floats:
        """What the policy was worth in the end, to six digits: beyond them it is the arithmetic that differs."""
        return np.round(self._table(method, lambda run: float(run.scores[-1])), 6)

    def to_target(self, method: str) -> Floats:
        """Samples to the target, infinity where it was never reached."""
        return self._table(method, samples_to_target)

    def above_target(self, method: str) -> Floats:
        """The share of the run after first reaching the target that was above it, NaN where it was never reached."""
        return self._table(method, share_above_target)

    def coverage(self, method: str) -> Floats | None:
        """The share of states seen; None where nobody knows it."""
        if not self.comparison.measure.coverage:
            return None
        return self._table(method, lambda run: math.nan if run.coverage is None else run.coverage)

    def returns(self, method: str) -> Floats | None:
        """The mean return of the last policies, where that is what was measured."""
        if any(run.final_return is None for run in self._runs.values()):
            return None
        return self._table(method, lambda run: math.nan if run.final_return is None else run.final_return)

    def seconds(self, method: str) -> Floats:
        """How long the runs took."""
        return self._table(method, lambda run: run.seconds)

    def used(self, method: str) -> int:
        """Samples taken in all runs."""
        return sum(run.used for environment in self.budgets for run in self.runs(method, environment))

    @cached_property
    def bands(self) -> dict[tuple[str, str], Band]:
        """By method and environment, the score of the current policy against samples, on a grid that methods share."""
        return {(method, name): self._band(method, name) for method in self.methods for name in self.budgets}

    def _band(self, method: str, environment: str) -> Band:
        grid = np.geomspace(FIRST_POINT, self.budgets[environment], CURVE_POINTS)
        runs = self.runs(method, environment)
        curves = np.array([statistics.step_values(run.samples, run.scores, grid) for run in runs])
        picked = statistics.resampled((len(runs), 1), CURVE_RESAMPLES, 0)[:, :, 0]
        middles = statistics.interquartile_mean(curves[picked], axis=1)
        low, high = np.percentile(middles, [2.5, 97.5], axis=0)
        return Band(grid, statistics.interquartile_mean(curves, axis=0), low, high)

    def on(self, environment: str, method: str) -> dict[str, Any]:
        """What the summary says about a method on an environment."""
        found: dict[str, Any] = self.summary["environments"][environment][method]
        return found

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of ``summary.json``; see `summarize`."""
        return summarize(self)

    def _table(self, method: str, figure: Callable[[ComparisonRun], float]) -> Floats:
        return np.array([[figure(run) for run in self.runs(method, e)] for e in self.budgets], dtype=np.float64).T


def samples_to_target(run: ComparisonRun) -> float:
    """After how many samples the policy was first worth `TARGET` of the best; infinity if never."""
    return statistics.first_reaching(run.samples, run.scores, TARGET)


def share_above_target(run: ComparisonRun) -> float:
    """From then on, at what share of the samples it was worth that much; NaN if it never was.

    First passage alone flatters a learner that passes the target and falls back.
    """
    return statistics.share_above(run.samples, run.scores, TARGET, run.used)


def summarize(results: ComparisonResults) -> dict[str, Any]:
    """The content of ``summary.json``."""
    methods = results.methods
    return {
        "settings": results.comparison.described(),
        "aggregate": {name: _aggregate(results, name) for name in methods},
        "environments": {
            environment: {name: _on_environment(results, name, place) for name in methods}
            for place, environment in enumerate(results.budgets)
        },
        "probability_of_improvement": {
            "final_score": _pairs(results, results.scores),
            "samples_to_target": _pairs(results, lambda name: -results.to_target(name)),
        },
        "performance_profile": {
            "taus": PROFILE_TAUS.tolist(),
            **{name: statistics.performance_profile(results.scores(name), PROFILE_TAUS).tolist() for name in methods},
        },
    }


def _aggregate(results: ComparisonResults, method: str) -> dict[str, Any]:
    scores = results.scores(method)
    return {
        "iqm": float(statistics.interquartile_mean(scores)),
        "iqm_interval": list(statistics.bootstrap_interval(scores, statistics.mean_of_middle)),
        "mean": float(scores.mean()),
        "reached_target": float(np.isfinite(results.to_target(method)).mean()),
        "share_above_target": _mean_of_known(results.above_target(method)),
        "coverage": _mean(results.coverage(method)),
    }


def _on_environment(results: ComparisonResults, method: str, place: int) -> dict[str, Any]:
    scores = results.scores(method)[:, [place]]
    to_target = results.to_target(method)[:, [place]]
    median = float(statistics.upper_median(to_target[None])[0])
    low, high = statistics.bootstrap_interval(to_target, statistics.upper_median)
    return {
        "iqm": float(statistics.interquartile_mean(scores)),
        "iqm_interval": list(statistics.bootstrap_interval(scores, statistics.mean_of_middle)),
        "reached_target": float(np.isfinite(to_target).mean()),
        "samples_to_target": _finite(median),
        "samples_to_target_interval": [_finite(low), _finite(high)],
        "share_above_target": _mean_of_known(results.above_target(method)[:, place]),
        "coverage": _mean(results.coverage(method), place),
    } | _returns(results, method, place)


def _mean(table: Floats | None, place: int | None = None) -> float | None:
    if table is None:
        return None
    return float(table.mean() if place is None else table[:, place].mean())


def _returns(results: ComparisonResults, method: str, place: int) -> dict[str, Any]:
    """Mean returns in the environment's own units, where they were measured."""
    table = results.returns(method)
    if table is None:
        return {}
    returns = table[:, place]
    return {"return": {"mean": float(returns.mean()), "least": float(returns.min()), "most": float(returns.max())}}


def _finite(value: float) -> float | None:
    """JSON has no infinity; None says that it was not reached."""
    return value if math.isfinite(value) else None


def _mean_of_known(values: Floats) -> float | None:
    """The mean over the runs that reached the target; None if none did."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _pairs(results: ComparisonResults, table: Callable[[str], Floats]) -> dict[str, dict[str, dict[str, Any]]]:
    """For each method and each rival, the probability that a run of the first beats one of the second."""
    tables = {name: table(name) for name in results.methods}
    return {
        one: {
            other: {
                "probability": statistics.probability_of_improvement(tables[one], tables[other]),
                "interval": list(statistics.improvement_interval(tables[one], tables[other], resamples=200)),
            }
            for other in results.methods
            if other != one
        }
        for one in results.methods
    }


def summary_text(results: ComparisonResults) -> str:
    """``summary.json`` as it is written."""
    return json.dumps(results.summary, indent=2, allow_nan=False) + "\n"


def results_csv(results: ComparisonResults) -> str:
    """Tidy results: a row for each run; what is said about the target is empty where it was never reached."""
    gamma, rows = results.comparison.described().get("gamma", ""), []
    by_returns = not results.comparison.measure.coverage
    for environment, budget in results.budgets.items():
        for method in results.methods:
            for run in results.runs(method, environment):
                reached = samples_to_target(run)
                name = (environment, method, run.job.seed, gamma, budget)
                arrived = (int(reached), share_above_target(run)) if math.isfinite(reached) else ("", "")
                row = (*name, float(run.scores[-1]), *arrived, run.coverage, run.used)
                rows.append((*row, run.final_return) if by_returns else row)
    return csv_text((*CSV_COLUMNS, "return") if by_returns else CSV_COLUMNS, rows)


def times_csv(results: ComparisonResults) -> str:
    """How long each run took; not the same twice, so it stands alone."""
    rows = [
        (environment, method, run.job.seed, f"{run.seconds:.4f}", f"{run.used / max(run.seconds, 1e-9):.0f}")
        for environment in results.budgets
        for method in results.methods
        for run in results.runs(method, environment)
    ]
    return csv_text(("environment", "method", "seed", "seconds", "samples_per_second"), rows)
