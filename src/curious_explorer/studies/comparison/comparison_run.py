"""One run: a method on an environment with a seed and a budget, and the curve of what its policy was worth."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.learners.optimizer import OptimizerResult
from curious_explorer.studies.comparison.methods import make_method
from curious_explorer.studies.comparison.scoring import Scorer, reachable
from curious_explorer.worlds.tabular_world import TabularWorld
from curious_explorer.worlds.wrappers import SeenStates

RESOLUTION = 1.02
"""A policy is evaluated when it has used so many times the samples of the last evaluated one: curves are right to 2%
of the samples, and cost a few hundred evaluations whatever a method does."""


class Job(NamedTuple):
    """What a run depends on, all of it."""

    method: str
    environment: str
    seed: int
    budget: int
    gamma: float


@dataclass(frozen=True, eq=False)
class ComparisonRun:
    """What a run left behind."""

    job: Job
    samples: NDArray[np.int64]
    """When the policy was looked at, beginning with 0 samples."""
    scores: Floats
    """What it was worth from the start then; see `scoring`."""
    coverage: float
    """The share that was seen of the states that can be reached and are not terminal."""
    used: int
    """Samples taken in all; fewer than the budget if the method saw nothing more to do."""
    seconds: float
    """Wall-clock time of the method, looking at its policy included."""


class Curve:
    """Evaluates the method's current policy exactly, at no cost in samples, as often as `RESOLUTION` says."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._next = 0.0
        self._policy: Floats | None = None
        self.points: list[tuple[int, float]] = []

    def watch(self, policy: Floats, samples: int) -> None:
        """Look at a policy; methods call this."""
        if samples < self._next:
            return
        self._next = max(samples * RESOLUTION, samples + 1.0)
        self.look(policy, samples)

    def look(self, policy: Floats, samples: int) -> None:
        """Evaluate a policy unless it is the one that was evaluated last."""
        if self._policy is not None and np.array_equal(policy, self._policy):
            return
        self._policy = np.array(policy)
        self.points.append((int(samples), self._scorer(self._policy)))


def run_job(job: Job) -> ComparisonRun:
    """Do one run; a function of the module, so that worker processes can find it."""
    mdp = find_environment(job.environment, labels=job.seed)
    scorer = Scorer.of(mdp, job.gamma)
    curve = Curve(scorer)
    curve.look(mdp.uniform_policy(), 0)  # what a method acts with that has seen nothing
    world = TabularWorld(mdp, seed=job.seed)
    seeing = SeenStates(world)
    method = make_method(job.method)
    began = time.perf_counter()
    result: OptimizerResult = method(seeing, None, gamma=job.gamma, budget=job.budget, watch=curve.watch)
    seconds = time.perf_counter() - began
    if not 0 <= result.samples == world.samples <= job.budget:
        raise RuntimeError(
            f"{job.method} on {job.environment} says it took {result.samples:,} samples and the world counted "
            f"{world.samples:,}, with a budget of {job.budget:,}"
        )
    curve.look(result.policy, result.samples)
    samples, scores = zip(*curve.points, strict=True)
    return ComparisonRun(
        job,
        np.array(samples, dtype=np.int64),
        np.array(scores, dtype=np.float64),
        float(seeing.seen[reachable(mdp) & ~mdp.terminal].mean()),
        result.samples,
        seconds,
    )
