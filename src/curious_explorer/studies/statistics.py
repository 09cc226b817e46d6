"""Statistics for few runs (Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice"), as pure functions.

Scores come as an array of shape (runs, tasks): a row is a seed, a column an environment.

- `interquartile_mean`: the mean of the middle half of all scores; robust to outliers, and less wasteful than a median.
- `bootstrap_interval`: a percentile interval from resampling runs within each task (stratified), so that every
  resample has as many runs of each task as there were.
- `probability_of_improvement`: how likely a run of X is better than a run of Y on a task, ties counting one half,
  averaged over tasks; per task it is the Mann-Whitney U statistic divided by the number of pairs.
- `difference_interval`: by how much the mean of one set of scores in [0, 1] exceeds that of another, for few runs.
- `performance_profile`: the share of runs whose score is more than tau, as a function of tau.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, trim_mean

from curious_explorer.arrays import Floats, Integers

RESAMPLES = 2_000
"""Enough for the ends of a 95% interval to be stable to about a tenth of its width."""
CONFIDENCE = 0.95


def check_scores(scores: ArrayLike, name: str = "scores") -> Floats:
    """Scores as an array of shape (runs, tasks) with at least one of each and no NaN; infinities are allowed."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} has shape {table.shape}, expected (runs, tasks) with at least one of each")
    if np.isnan(table).any():
        raise ValueError(f"{name} holds NaN, expected a number for every run of every task")
    return table


def interquartile_mean(scores: ArrayLike, axis: int | None = None) -> Floats:
    """The mean of what is left when the lowest and the highest quarter (rounded down) are cut off.

    Over all entries if ``axis`` is None, else along an axis.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.size == 0:
        raise ValueError("there are no scores to take a mean of")
    return np.asarray(trim_mean(table, 0.25, axis=axis))


def bootstrap_interval(
    scores: ArrayLike,
    statistic: Callable[[Floats], Floats],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """A stratified percentile bootstrap interval of a statistic of scores of shape (runs, tasks).

    ``statistic`` is given an array of shape (resamples, runs, tasks) and returns one number for each resample.
    """
    table = check_scores(scores)
    picked = resampled(table.shape, resamples, seed)
    return percentile_interval(statistic(table[picked, np.arange(table.shape[1])]), confidence)


def percentile_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The values between which a share ``confidence`` lies; never between two of them, so that they may be infinite."""
    tail = 50.0 * (1.0 - confidence)
    low = np.percentile(values, tail, method="lower")
    high = np.percentile(values, 100.0 - tail, method="higher")
    return float(low), float(high)


def resampled(shape: tuple[int, int], resamples: int, seed: int) -> Integers:
    """Which runs each resample takes of each task, shape (resamples, runs, tasks)."""
    return np.random.default_rng(seed).integers(shape[0], size=(resamples, *shape))


def mean_of_middle(resamples: Floats) -> Floats:
    """The interquartile mean of each resample, as `bootstrap_interval` wants it."""
    return interquartile_mean(resamples.reshape(len(resamples), -1), axis=1)


def upper_median(resamples: Floats) -> Floats:
    """The median of each resample, the upper one of two: a value that occurs, so it may be infinite."""
    ordered = np.sort(resamples.reshape(len(resamples), -1), axis=1)
    return ordered[:, ordered.shape[1] // 2]


def probability_of_improvement(better: ArrayLike, worse: ArrayLike) -> float:
    """P(X > Y) + P(X = Y) / 2, averaged over tasks; both of shape (runs, tasks), with the same tasks.

    Infinite scores are compared like others, so that runs that never got there can be ranked last.
    """
    left, right = _check_same_tasks(better, worse)
    return float(_wins(left[None], right[None])[0])


def improvement_interval(
    better: ArrayLike, worse: ArrayLike, *, seed: int = 0, resamples: int = 1_000, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """A stratified percentile bootstrap interval of `probability_of_improvement`."""
    left, right = _check_same_tasks(better, worse)
    tasks = np.arange(left.shape[1])
    first, second = (resampled(table.shape, resamples, seed + place) for place, table in enumerate((left, right)))
    return percentile_interval(_wins(left[first, tasks], right[second, tasks]), confidence)


def _check_same_tasks(better: ArrayLike, worse: ArrayLike) -> tuple[Floats, Floats]:
    left, right = check_scores(better, "better"), check_scores(worse, "worse")
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"one method has scores for {left.shape[1]} tasks and the other for {right.shape[1]}, expected the same"
        )
    return left, right


def _wins(left: Floats, right: Floats) -> Floats:
    """The share of pairs that the left one wins, ties counting half, averaged over tasks; one for each resample."""
    pairs = left[:, :, None, :], right[:, None, :, :]
    wins: Floats = ((pairs[0] > pairs[1]) + 0.5 * (pairs[0] == pairs[1])).mean(axis=(1, 2, 3))
    return wins


def difference_interval(better: ArrayLike, worse: ArrayLike) -> tuple[float, float]:
    """Newcombe's 95% interval of the mean of X minus the mean of Y, scores in [0, 1] of shape (runs,) each.

    Each mean has a Wilson score interval, and the two distances to the far ends are added as squares (Newcombe 1998,
    method 10). It is meant for shares of runs, whose variance is the largest that scores of a given mean can have, so
    it is on the safe side for others. A bootstrap interval is not: where all runs agree, two of them as well as two
    hundred, it has no width.
    """
    lows, highs, means = [], [], []
    for name, given in (("better", better), ("worse", worse)):
        scores = np.asarray(given, dtype=np.float64)
        if scores.ndim != 1 or scores.size == 0 or not ((scores >= 0.0) & (scores <= 1.0)).all():
            raise ValueError(f"{name} has shape {scores.shape}, expected (runs,), at least one, each in [0, 1]")
        low, high = _wilson_interval(float(scores.mean()), scores.size)
        lows.append(low)
        highs.append(high)
        means.append(float(scores.mean()))
    gain = means[0] - means[1]
    below = np.hypot(means[0] - lows[0], highs[1] - means[1])
    above = np.hypot(highs[0] - means[0], means[1] - lows[1])
    return float(gain - below), float(gain + above)


def _wilson_interval(mean: float, runs: int) -> tuple[float, float]:
    """The means p for which the observed one is not too far away: |mean - p| <= z sqrt(p (1 - p) / runs)."""
    squared = float(norm.ppf(0.5 * (1.0 + CONFIDENCE))) ** 2
    middle = (mean + 0.5 * squared / runs) / (1.0 + squared / runs)
    variance = mean * (1.0 - mean) / runs + 0.25 * squared / runs**2
    width = float(np.sqrt(squared * variance)) / (1.0 + squared / runs)
    return min(middle - width, mean), max(middle + width, mean)


def performance_profile(scores: ArrayLike, taus: ArrayLike) -> Floats:
    """The share of all runs whose score is more than tau, for each tau."""
    table = check_scores(scores)
    thresholds = np.asarray(taus, dtype=np.float64)
    share: Floats = (table.ravel()[None, :] > thresholds[:, None]).mean(axis=1)
    return share


def step_values(samples: ArrayLike, values: ArrayLike, grid: ArrayLike) -> Floats:
    """A step function on a grid: at x, the value that was current after x samples.

    ``samples`` does not decrease and begins at or before the grid; of several values at the same place the last holds.
    """
    place = np.searchsorted(np.asarray(samples), np.asarray(grid), side="right") - 1
    if (place < 0).any():
        raise ValueError("the grid begins before the first value; a curve needs a value at zero samples")
    chosen: Floats = np.asarray(values, dtype=np.float64)[place]
    return chosen


def first_reaching(samples: ArrayLike, values: ArrayLike, target: float) -> float:
    """After how many samples a curve reached a target for the first time; infinity if it never did."""
    reached = np.flatnonzero(np.asarray(values) >= target)
    return float(np.asarray(samples)[reached[0]]) if reached.size else float("inf")


def share_above(samples: ArrayLike, values: ArrayLike, target: float, end: float) -> float:
    """Of the samples from the first reaching of a target to the end, the share at which a curve was not below it.

    The curve is a step function (see `step_values`). NaN if it never reached the target; one that reached it only with
    its last sample has kept it.
    """
    places, heights = np.asarray(samples, dtype=np.float64), np.asarray(values, dtype=np.float64)
    began = first_reaching(places, heights, target)
    if not np.isfinite(began):
        return float("nan")
    lengths = np.diff(np.append(places, max(end, places[-1])))
    # From the first point on that reached it: of several at the same place only the last has a length.
    lengths[: np.flatnonzero(heights >= target)[0]] = 0.0
    rest = float(lengths.sum())
    return float(lengths[heights >= target].sum()) / rest if rest > 0.0 else float(heights[-1] >= target)
