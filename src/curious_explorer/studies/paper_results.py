"""The numbers of a reproduction, computed once: whatever tables, figures, video and page show is taken from here.

`summary_text`, `results_csv` and `curves_csv` are the same as data; ``summary.json`` is the same bytes for the same
settings and seeds.

The paper has plots only, of returns by learning episode, 2,400 of them. So what it says about an experiment is judged
there (`Finding`): by how much more the policy is worth with CE than without it after 2,400 learning episodes. A gain
counts as one if its 95% interval over seeds (`difference_interval`) excludes zero, and is as large as the lower end of
that says, so that one lucky seed in ten is no gain and four in ten no big one. Where the paper saw no reward at all,
the end of learning counts too: that is where these runs may go past it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import RHO_WEIGHT
from curious_explorer.studies.paper_experiments import PAPER_EPISODES, Experiment
from curious_explorer.studies.paper_run import ARMS, ExperimentRun
from curious_explorer.studies.runner import counted, csv_text
from curious_explorer.studies.statistics import difference_interval

CSV_COLUMNS = (
    *("env", "depth", "optimizer", "gamma", "beta", "seed", "arm"),
    *("fraction_of_optimum", "exploration_samples", "learning_samples"),
)
DRAWN_ARMS = ("with_ce", "without_ce_total_budget")
"""The two learners that are drawn and judged: with CE, and without it at all the steps."""
CURVE_POINTS = 121
NO_GAIN, MODERATE, CLEAR, BIG, NO_REWARD = "no gain", "moderate gain", "clear gain", "big gain", "no reward at all"
REPRODUCED, WEAKER, NOT_REPRODUCED, PAST = "reproduced", "weaker", "not reproduced", "past the paper"
VERDICTS = (REPRODUCED, PAST, WEAKER, NOT_REPRODUCED)
VISIBLE = 0.05
"""A difference of means, in fractions of the optimum, that a reader of the paper's plots would see."""
SIZES = {NO_GAIN: -math.inf, MODERATE: 0.0, CLEAR: VISIBLE, BIG: 0.25}
"""What the lower end of a gain's interval must exceed for the paper's words. With ten seeds, none of which gets there
without CE, a moderate gain takes four with it, a clear one five and a big one seven."""


FEWEST_SEEDS = 5
"""With fewer, intervals of a difference hold nearly everything, and verdicts say little."""


def few_seeds(seeds: int) -> str:
    """A word of warning about verdicts from so few seeds."""
    return (
        f"Verdicts on {counted(seeds, 'seed')} say little: intervals of a difference hold nearly everything. The paper "
        "has ten (--seeds 10)."
    )


class Spread(NamedTuple):
    """A value over seeds."""

    mean: float
    std: float
    min: float
    values: list[float]

    @staticmethod
    def of(values: Iterable[float]) -> Spread:
        """The spread of some values."""
        found = list(values)
        return Spread(float(np.mean(found)), float(np.std(found)), float(min(found)), found)


class ReturnBand(NamedTuple):
    """Returns while learning, over seeds: the mean, and the band of one standard deviation around it."""

    effort: Floats
    mean: Floats
    low: Floats
    high: Floats


class Finding(NamedTuple):
    """What the paper reports for an experiment and what was found here, in fractions of the optimum over seeds."""

    paper: str
    """What the paper reports; empty if it has no such experiment."""
    with_ce: float
    """After 2,400 learning episodes."""
    without_ce: float
    end_with_ce: float
    """The same at the end of learning."""
    end_without_ce: float
    """Without CE, at all the steps."""
    gain: tuple[float, float]
    """95% interval of the difference after 2,400 learning episodes."""
    end_gain: tuple[float, float]
    """The same at the end of learning."""
    verdict: str
    """One of `VERDICTS`, or empty."""

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        found = size_of(self.gain)
        if self.paper == found == NO_GAIN and not self.means_are_close:
            found = f"{self.with_ce - self.without_ce:+.0%}, where the paper's means agree"
        return (
            f"{self.without_ce:.0%} without and {self.with_ce:.0%} with CE after {PAPER_EPISODES:,} episodes "
            f"({found}: {self.gain[0]:+.2f} to {self.gain[1]:+.2f}); "
            f"{self.end_without_ce:.0%} and {self.end_with_ce:.0%} at the end"
        )

    @property
    def means_are_close(self) -> bool:
        """Whether no reader of the paper's plots would tell the two means apart."""
        return abs(self.with_ce - self.without_ce) <= VISIBLE


class ExperimentResults:
    """What the runs of one experiment amount to; pictures of a single run show the first."""

    def __init__(self, experiment: Experiment, runs: Sequence[ExperimentRun]) -> None:
        self.experiment = experiment
        self.runs = list(runs)
        self.first = self.runs[0]
        self.best = experiment.best_return(self.first.gamma)
        """The best return, as the paper plots it."""
        self.kind_of_return = "discounted" if experiment.environment == "cct" else "undiscounted"
        self.spreads = {arm: Spread.of(run.values[arm] for run in self.runs) for arm in ARMS}
        """Final values, as fractions of the best possible one, by arm."""
        self.exploration_samples = float(np.mean([run.exploration_samples for run in self.runs]))
        self.learning_samples = float(np.mean([run.learning_samples for run in self.runs]))

    @property
    def mdp(self) -> FiniteMDP:
        """The MDP of the first run."""
        return self.experiment.mdp(self.first.seed)

    @cached_property
    def mu(self) -> Floats:
        """mu_n = 1/2 rho + 1/2 D_n of the first run, with D_n as it was measured, shape (N, S)."""
        resets: Floats = RHO_WEIGHT * self.mdp.start + (1.0 - RHO_WEIGHT) * self.first.visited
        return resets

    @cached_property
    def shares(self) -> Floats:
        """How close each state was to being well visited in the first run; see `reached_shares`."""
        return reached_shares(self.first.visited, self.first.poorly_visited, self.first.thresholds)

    @property
    def rounds_shown(self) -> list[int]:
        """The rounds that the paper shows, counted from 1; evenly spread where it has no such experiment."""
        rounds = len(self.first.thresholds)
        paper = {5: [1, 2, 3, 4, 5], 10: [1, 4, 6, 8, 10], 20: [1, 4, 7, 10, 14]}
        if (self.experiment.environment, self.experiment.optimizer) == ("cct", "reinforce"):
            paper |= {10: [1, 2, 3, 4, 10], 20: [1, 2, 3, 6, 20]}
        shown = paper.get(self.experiment.depth, [])
        return shown if shown and shown[-1] <= rounds else evenly_spread(rounds, 5)

    @property
    def episodes_shown(self) -> float:
        """Where an axis of episodes ends: when learning with CE does."""
        return float(max(run.curves["with_ce"].episodes[-1] for run in self.runs))

    def returns(self, axis: str) -> dict[str, ReturnBand]:
        """Exact returns from the start of the policies learned so far, by arm; see `mean_curve` for ``axis``."""
        bands = {}
        for arm in DRAWN_ARMS:
            limit = self.episodes_shown if axis == "episodes" else None
            effort, mean, deviation = mean_curve(self.runs, arm, axis, limit=limit)
            low, high = (mean - deviation).clip(0.0), (mean + deviation).clip(None, 1.0)
            bands[arm] = ReturnBand(effort, self.best * mean, self.best * low, self.best * high)
        return bands

    @cached_property
    def finding(self) -> Finding:
        """What the paper says, and whether these runs say the same."""
        paper = paper_says(self.experiment)
        # An exact value can exceed the exact optimum by the last digit.
        at_paper = [value_at(self.runs, arm, PAPER_EPISODES).clip(0.0, 1.0) for arm in DRAWN_ARMS]
        at_end = [np.clip(self.spreads[arm].values, 0.0, 1.0) for arm in DRAWN_ARMS]
        with_ce, without_ce = (float(values.mean()) for values in at_paper)
        end_with_ce, end_without_ce = (self.spreads[arm].mean for arm in DRAWN_ARMS)
        gain, end_gain = difference_interval(*at_paper), difference_interval(*at_end)
        verdict = judge(paper, at_paper, at_end)
        return Finding(paper, with_ce, without_ce, end_with_ce, end_without_ce, gain, end_gain, verdict)

    def bound(self, name: str) -> float | None:
        """The mean over seeds of a figure of the theory (see `theory_of`); None if a seed has none."""
        known = [value for run in self.runs if (value := run.bounds.get(name)) is not None]
        return float(np.mean(known)) if len(known) == len(self.runs) else None


def by_experiment(runs: Sequence[ExperimentRun]) -> list[ExperimentResults]:
    """The results of each experiment, in the order given."""
    return [
        ExperimentResults(experiment, list(group)) for experiment, group in groupby(runs, lambda run: run.experiment)
    ]


def with_verdict(results: Sequence[ExperimentResults], verdict: str) -> list[ExperimentResults]:
    """The experiments whose finding was judged so."""
    return [result for result in results if result.finding.verdict == verdict]


def reached_shares(visited: Floats, poorly_visited: NDArray[np.bool_], thresholds: Floats) -> Floats:
    """How close each state is to being well visited, by round, shape (N, S): 1 outside K_n, 0 if never visited."""
    total = np.cumsum(visited, axis=0)
    # The paper's schedule begins with a threshold of zero, where K_0 is what was never visited.
    share = np.divide(total, thresholds[:, None], out=np.zeros_like(total), where=thresholds[:, None] > 0.0)
    result: Floats = np.where(poorly_visited, np.clip(share, 0.0, 1.0), 1.0)
    return result


def evenly_spread(rounds: int, many: int) -> list[int]:
    """About so many of the rounds, counted from 1, the first and the last among them."""
    return [int(number) for number in np.unique(np.linspace(1, rounds, many).round())]


def value_at(runs: Sequence[ExperimentRun], arm: str, episodes: int) -> Floats:
    """Each run's fraction of the optimum after so many learning episodes, or at its end if it had fewer."""
    return np.array([np.interp(episodes, run.curves[arm].episodes, run.curves[arm].fractions) for run in runs])


def mean_curve(
    runs: Sequence[ExperimentRun], arm: str, axis: str, *, limit: float | None = None
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
    grid = np.linspace(0.0, last, CURVE_POINTS)
    table = np.array([np.interp(grid, effort, fractions) for effort, fractions in lines])
    return grid, table.mean(axis=0), table.std(axis=0)


def paper_says(experiment: Experiment) -> str:
    """The paper's finding for an experiment, read off its text; empty where it has none."""
    if experiment.depth == 5:
        return NO_GAIN
    if experiment.depth == 10:
        return MODERATE if (experiment.environment, experiment.optimizer) == ("cct", "reinforce") else CLEAR
    if experiment.depth == 20:
        return BIG if experiment.optimizer == "trpo" else NO_REWARD
    return ""


def size_of(gain: tuple[float, float]) -> str:
    """The largest of the paper's words that the lower end of a gain's interval allows."""
    return [word for word, least in SIZES.items() if gain[0] > least][-1]


def judge(paper: str, at_paper: Sequence[Floats], at_end: Sequence[Floats]) -> str:
    """Whether the seeds agree with what the paper reports; each pair is with CE and without it, (seeds,) each.

    Where it reports no gain the means must be close, too: few seeds have intervals that contain everything.
    """
    if paper == "":
        return ""
    found = size_of(difference_interval(*at_paper))
    if paper == NO_REWARD:
        if max(float(values.mean()) for values in (*at_paper, *at_end)) <= VISIBLE:
            return REPRODUCED
        sizes = {found, size_of(difference_interval(*at_end))}
        return NOT_REPRODUCED if sizes == {NO_GAIN} else PAST
    if paper == NO_GAIN:
        close = abs(float(at_paper[0].mean() - at_paper[1].mean())) <= VISIBLE
        return REPRODUCED if close and found == NO_GAIN else NOT_REPRODUCED
    if found == NO_GAIN:
        return NOT_REPRODUCED
    return REPRODUCED if SIZES[found] >= SIZES[paper] else WEAKER


def summarize(runs: Sequence[ExperimentRun]) -> dict[str, Any]:
    """The content of ``summary.json``; values are fractions of V* from the start, samples are means over seeds."""
    return {
        "cells": [  # the name that this key has had from the first
            {
                "env": result.experiment.environment,
                "depth": result.experiment.depth,
                "optimizer": result.experiment.optimizer,
                "gamma": result.first.gamma,
                "beta": result.first.beta,
                "seeds": [run.seed for run in result.runs],
                "optimal": result.first.optimal,
                **{arm: result.spreads[arm]._asdict() for arm in ARMS},
                "samples": {"exploration": result.exploration_samples, "learning": result.learning_samples},
            }
            for result in by_experiment(runs)
        ]
    }


def summary_text(runs: Sequence[ExperimentRun]) -> str:
    """``summary.json`` as it is written."""
    return json.dumps(summarize(runs), indent=2, allow_nan=False) + "\n"


def results_csv(runs: Sequence[ExperimentRun]) -> str:
    """Tidy results: a row for each run and arm."""
    rows = []
    for run in runs:
        name = (run.experiment.environment, run.experiment.depth, run.experiment.optimizer, run.gamma, run.beta)
        for arm in ARMS:
            spent = run.exploration_samples if arm == "with_ce" else 0
            rows.append((*name, run.seed, arm, run.values[arm], spent, int(run.curves[arm].samples[-1])))
    return csv_text(CSV_COLUMNS, rows)


def curves_csv(runs: Sequence[ExperimentRun]) -> str:
    """Tidy learning curves: a row for each point; samples are of learning, as in `Curve`."""
    rows: list[Sequence[Any]] = []
    for run in runs:
        name = (run.experiment.environment, run.experiment.depth, run.experiment.optimizer, run.seed)
        for arm, curve in run.curves.items():
            points = zip(curve.episodes.tolist(), curve.samples.tolist(), curve.fractions.tolist(), strict=True)
            rows += [(*name, arm, *point) for point in points]
    return csv_text(("env", "depth", "optimizer", "seed", "arm", "episodes", "samples", "fraction_of_optimum"), rows)
