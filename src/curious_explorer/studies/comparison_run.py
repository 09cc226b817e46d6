"""What is compared, and one run of it: a method on an environment with a seed and a budget, and its policy's score.

A score says what a policy is worth on a scale that environments share: 0 is earning nothing, 1 is the best possible.

score = (V - V_0) / (V* - V_0), values from the start, exact, normalised by 1 - gamma. V_0 is what a policy is worth
that never earns anything. Where rewards were rescaled into [0, 1], nothing is not zero, and the environment's
`reward_scale` says what it is; so the score is the fraction of V* in the units of the original problem. Where even the
best policy loses (CliffWalking costs 1 a step), V_0 is the value of the worst policy instead.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer import __version__
from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.learners.optimizer import OptimizerResult
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Archive, Format, check_size
from curious_explorer.studies.comparison_methods import DEFAULT_METHODS, least_budget, make_method
from curious_explorer.studies.run_files import RunFiles
from curious_explorer.studies.runner import MOST_RUNS, finite_number, safe_name
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.tabular_world import TabularWorld
from curious_explorer.worlds.wrappers import SeenStates

TIME = Format("curious-explorer/comparison-time", 2)
FILES = RunFiles(Format("curious-explorer/comparison-run", 2), TIME)
OWN_BUDGET = "@"
"""Stands between the name of an environment and a budget of its own: ``dcl/20@4000000``."""
TARGET = 0.95
"""The share of V* whose first reaching is timed in samples."""
SMALLEST_GAIN = 1e-12
RESOLUTION = 1.02
"""A policy is evaluated when it has used so many times the samples of the last evaluated one: curves are right to 2%
of the samples, and cost a few hundred evaluations whatever a method does."""


class Measure(NamedTuple):
    """What a comparison measures, in words for tables, figures and the page."""

    quantity: str
    """What of a policy is compared, in a word."""
    explained: str
    """What 0 and 1 stand for, and how it is found out, in sentences."""
    seeds: str
    """What a seed decides."""
    coverage: bool
    """Whether it is known which share of the states a method has seen."""


class GridJob(Protocol):
    """What a run of a comparison depends on, all of it: a named tuple."""

    @property
    def method(self) -> str:
        """The id of a method."""

    @property
    def environment(self) -> str:
        """The name of an environment."""

    @property
    def seed(self) -> int:
        """Where everything random comes from."""

    @property
    def key(self) -> Hashable:
        """What tells this run from the others."""

    def _asdict(self) -> dict[str, Any]:
        """All of it, by name."""


class ComparisonJob(NamedTuple):
    """A run on a table."""

    method: str
    environment: str
    seed: int
    budget: int
    gamma: float

    @property
    def key(self) -> ComparisonJob:
        """What tells this run from the others."""
        return self


@dataclass(frozen=True, eq=False)
class ComparisonRun:
    """What a run left behind."""

    job: GridJob
    samples: Integers
    """When the policy was looked at, beginning with 0 samples."""
    scores: Floats
    """What it was worth from the start then; see the top of this module, and of `task_comparison`."""
    coverage: float | None
    """The share that was seen of the states that can be reached and are not terminal; None where nobody knows them."""
    used: int
    """Samples taken in all; fewer than the budget if the method saw nothing more to do."""
    seconds: float
    """Wall-clock time of the method, looking at its policy included."""
    final_return: float | None = None
    """The mean return of the last policy, where that is what scores were made of."""

    @property
    def key(self) -> Hashable:
        """What tells this run from the others."""
        return self.job.key


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores policies of one MDP; see the top of this module."""

    mdp: FiniteMDP
    gamma: float
    best: float
    """V* from the start."""
    nothing: float
    """V_0 from the start."""

    @staticmethod
    def of(mdp: FiniteMDP, gamma: float) -> Scorer:
        """A scorer; raises ``ValueError`` if there is nothing to gain in the MDP."""
        best = float(mdp.start @ solve(mdp, gamma=gamma).values)
        nothing = -mdp.reward_scale.offset / mdp.reward_scale.factor
        if not 0.0 <= nothing < best:
            nothing = 1.0 - float(mdp.start @ solve(mdp, gamma=gamma, rewards=1.0 - mdp.rewards).values)
        if best - nothing <= SMALLEST_GAIN:
            raise ValueError(
                "every policy is worth the same from the start, so there is nothing to compare; choose an environment "
                "in which a reward can be reached"
            )
        return Scorer(mdp, gamma, best, nothing)

    def __call__(self, policy: Floats) -> float:
        """The score of a policy of shape (S, A)."""
        value = float(self.mdp.start @ evaluate(self.mdp, policy, gamma=self.gamma))
        return (value - self.nothing) / (self.best - self.nothing)


def reachable(mdp: FiniteMDP) -> Mask:
    """Which states can be reached from the start, shape (S,)."""
    rows = mdp.transitions
    pair = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    starts = np.flatnonzero(mdp.start)
    origin = np.concatenate([pair // mdp.num_actions, np.full(len(starts), mdp.num_states)])
    target = np.concatenate([rows.indices, starts])
    size = mdp.num_states + 1  # one node more, which leads to every start
    graph = sparse.csr_array((np.ones(len(origin)), (origin, target)), shape=(size, size))
    found = np.zeros(size, dtype=np.bool_)
    found[csgraph.breadth_first_order(graph, mdp.num_states, return_predecessors=False)] = True
    return found[:-1]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What to compare."""

    methods: tuple[str, ...] = DEFAULT_METHODS
    environments: tuple[str, ...] = ("cct/10", "dcl/10")
    """Names as `find_environment` knows them, with ``@`` and a budget of its own where the common one does not suit."""
    seeds: int = 20
    """How many; they are 0, 1, 2, ... A seed permutes the action labels (and draws mazes, trees and Garnets)."""
    budget: int = 100_000
    gamma: float = 0.95
    measure: ClassVar[Measure] = Measure(
        "value",
        "Values are exact, from the start, of the policy that a method would use if it had to stop now, as a share of "
        "the best possible one.",
        "permute the action labels",
        coverage=True,
    )

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_grid(self.methods, self.environments, self.seeds, self.budget)
        for method in self.methods:
            make_method(method)
        for environment, budget in self.budgets.items():
            _check_environment(environment, self.gamma)
            self._check_budget(environment, budget)

    @property
    def budgets(self) -> dict[str, int]:
        """The environments and the samples that each method may take in them."""
        return budgets_of(self.environments, self.budget)

    @property
    def jobs(self) -> list[ComparisonJob]:
        """All runs, in the order of environments, methods and seeds."""
        return [
            ComparisonJob(method, environment, seed, budget, self.gamma)
            for environment, budget in self.budgets.items()
            for method in self.methods
            for seed in range(self.seeds)
        ]

    def described(self) -> dict[str, Any]:
        """Everything that the results depend on, as plain data."""
        return {
            "library": __version__,
            "methods": {name: repr_of(make_method(name)) for name in self.methods},
            "environments": self.budgets,
            "seeds": self.seeds,
            "gamma": self.gamma,
            "target": TARGET,
        }

    @property
    def command(self) -> str:
        """The command that does this comparison again."""
        words = grid_command(self.methods, DEFAULT_METHODS, self.budgets, self.seeds)
        return words if self.gamma == Comparison.gamma else f"{words} --gamma {self.gamma:g}"

    def _check_budget(self, environment: str, budget: int) -> None:
        check_count(budget, f"samples on {environment}", least=1)
        for method in self.methods:
            least = least_budget(method, self.gamma)
            if budget < least:
                raise ValueError(
                    f"samples on {environment} is {budget:,}, too few for {method}, which needs at least "
                    f"{least:,} at gamma {self.gamma:g} for one episode of each kind it runs; raise --samples"
                )


def budgets_of(environments: Sequence[str], budget: int) -> dict[str, int]:
    """The names of environments and the samples that each method may take there."""
    found = {}
    for given in environments:
        name, separator, own = given.partition(OWN_BUDGET)
        if separator and not own.isdecimal():
            raise ValueError(
                f"environment {given!r} gives {own!r} samples, expected a whole number after the {OWN_BUDGET!r}"
            )
        found[name] = int(own) if separator else budget
    return found


def check_grid(methods: Sequence[str], environments: Sequence[str], seeds: int, budget: int) -> None:
    """Refuse a grid that is empty, or that has something twice."""
    check_count(seeds, "seeds", least=1)
    check_count(budget, "samples", least=1)
    for kind, listed in (("methods", methods), ("environments", tuple(budgets_of(environments, budget)))):
        if not listed:
            raise ValueError(f"{kind} is empty, expected at least one; curious-explorer compare --list shows all")
    for kind, listed in (("methods", methods), ("environments", environments)):
        names = [name.partition(OWN_BUDGET)[0] for name in listed]
        if len(set(names)) != len(names):
            raise ValueError(f"{kind} is {', '.join(listed)}, expected each only once")
    check_count(len(methods) * len(environments) * seeds, "the number of all runs", most=MOST_RUNS)


def grid_command(methods: Sequence[str], default: Sequence[str], budgets: Mapping[str, int], seeds: int) -> str:
    """The command that compares these again."""
    words = ["curious-explorer compare"]
    if tuple(methods) != tuple(default):
        words.append(f"--methods {','.join(methods)}")
    if len(set(budgets.values())) == 1:
        words.append(f"--environments {shlex.quote(','.join(budgets))} --samples {next(iter(budgets.values()))}")
    else:
        own = ",".join(f"{name}{OWN_BUDGET}{budget}" for name, budget in budgets.items())
        words.append(f"--environments {shlex.quote(own)}")
    words.append(f"--seeds {seeds}")
    return " ".join(words)


def _check_environment(name: str, gamma: float) -> None:
    """Refuse an environment that does not exist, has no finite table, or in which nothing can be gained."""
    try:
        mdp = find_environment(name)
        Scorer.of(mdp, gamma)
    except ValueError as error:
        raise ValueError(f"environment {name!r} cannot be compared on: {error}") from error


def repr_of(method: Any) -> str:
    """The settings of a method as text, the same in every process; optimizers within it are described too."""
    settings = [f"{key}={_setting(value)}" for key, value in sorted(vars(method).items()) if not key.startswith("_")]
    return f"{type(method).__name__}({', '.join(settings)})"


def _setting(value: Any) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return repr_of(value)
    return repr_of(value()) if callable(value) else repr(value)


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


def run_job(job: ComparisonJob) -> ComparisonRun:
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


def run_path(folder: Path, job: GridJob) -> Path:
    """Where a run is kept."""
    return folder / "runs" / safe_name(job.environment) / job.method / f"{job.seed:04d}.npz"


def save_run(folder: RunFolder, run: ComparisonRun) -> Path:
    """Write a run's files."""
    header = {"coverage": run.coverage, "used": run.used}
    arrays = {"samples": run.samples, "scores": run.scores}
    return FILES.write(folder, run_path(folder.path, run.job), run.job._asdict() | header, arrays, run.seconds)


def load_run(folder: RunFolder, job: ComparisonJob) -> ComparisonRun:
    """Read a run's files; a damaged one is named, and left where it is."""
    stored = FILES.open(folder, run_path(folder.path, job), job._asdict(), {"coverage", "used"}, {"samples", "scores"})
    with stored as (archive, seconds):
        samples, scores = curve_in(archive, "scores")
        return ComparisonRun(
            job,
            samples,
            scores,
            finite_number(archive.header["coverage"], "coverage"),
            check_size(archive.header, "used", least=0),
            seconds,
        )


def curve_in(archive: Archive, name: str) -> tuple[Integers, Floats]:
    """The samples of a stored curve, and what the policy was worth then."""
    samples, worth = archive.array("samples", "<i8", None), archive.array(name, "<f8", None)
    if not len(samples) == len(worth) > 0 or samples[0] != 0 or (np.diff(samples) < 0).any():
        raise ValueError("its curve does not begin at 0 samples, or runs backwards")
    if not np.isfinite(worth).all():
        raise ValueError(f"its {name} are not finite")
    return samples, worth
