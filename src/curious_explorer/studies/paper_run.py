"""One run of an experiment: explore, learn from the reset model, and let two rivals learn without it.

The rivals start from the environment's own start: one with as many learning steps, and one with all the steps, the
exploration's included. Every policy is evaluated exactly, from the start, as a fraction of the best possible value, at
the end and along the way; that costs no samples and hides nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Integers
from curious_explorer.errors import CertificateError
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.learners.improve import improve
from curious_explorer.learners.optimizer import OptimizerResult
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Archive, Format, check_size
from curious_explorer.studies.paper_experiments import Experiment, ExperimentJob, ExperimentSettings, settings_of
from curious_explorer.studies.run_files import RunFiles
from curious_explorer.studies.runner import finite_number, safe_name
from curious_explorer.theory import theorem_1
from curious_explorer.theory.certificates import certify
from curious_explorer.theory.quantities import mismatch_coefficient
from curious_explorer.worlds.tabular_world import TabularWorld

AS_MANY_AS_THE_BUDGET_ALLOWS = 10**9
EVERY_UPDATE = 60
"""So many updates are kept one by one: the paper's 2,400 episodes and a little more."""
CURVE_POINTS = 120
"""How many points of the rest of a curve are kept; a printed figure shows no more."""
CERTIFICATE_DELTA = 0.05
CERTIFICATE_SEED = 1_000_003
"""Added to a run's seed: a certificate must not see the visits that it certifies."""
ARMS = ("with_ce", "without_ce", "without_ce_total_budget")
"""How a policy was trained: with CE, without it at the same learning steps, without it at all the steps."""

FILES = RunFiles(Format("curious-explorer/experiment-run", 2), Format("curious-explorer/experiment-time", 1))
_NUMBERS = ("gamma", "beta", "optimal")
_COUNTS = ("exploration_samples", "learning_samples")
_KEYS = {"values", "bounds", *_NUMBERS, *_COUNTS}
_CURVE_ARRAYS = {"episodes": "<i8", "samples": "<i8", "fractions": "<f8"}
_ARRAYS = {"thresholds", "visited", "poorly_visited"} | {f"{arm}_{name}" for arm in ARMS for name in _CURVE_ARRAYS}


@dataclass(frozen=True, eq=False)
class Curve:
    """How learning went: the current policy's exact value from the start, as a fraction of the best, by effort."""

    episodes: Integers
    samples: Integers
    """Learning steps, roll-ins included; the exploration's are not."""
    fractions: Floats


@dataclass(frozen=True, eq=False)
class ExperimentRun:
    """What one seed gave; values are fractions of the best possible one, from the start."""

    experiment: Experiment
    seed: int
    gamma: float
    beta: float
    optimal: float
    """The best possible value from the start, normalised."""
    values: dict[str, float]
    """By arm; see `ARMS`."""
    curves: dict[str, Curve]
    exploration_samples: int
    learning_samples: int
    thresholds: Floats
    """beta_n, shape (N,)."""
    visited: Floats
    """D_n, shape (N, S)."""
    poorly_visited: NDArray[np.bool_]
    """K_n, shape (N, S)."""
    bounds: dict[str, float | None]
    """Both sides of Theorem 1, the resets' mismatch and a certificate, None where there is none; see `theory_of`."""
    seconds: float

    @property
    def key(self) -> tuple[Experiment, int]:
        """What tells this run from the others of its study."""
        return self.experiment, self.seed


class Recorder:
    """Evaluates the learner's current policy exactly while it learns, more often at first."""

    def __init__(self, mdp: FiniteMDP, gamma: float, best: float, *, updates: int, budget: int | None) -> None:
        self._mdp, self._gamma, self._best = mdp, gamma, best
        self._update = -1
        self._next = 0
        # A learner stops by its updates or by its budget; marks are spread evenly over what stops it.
        self._by_samples = budget is not None
        self._stride = max(1, (updates if budget is None else budget) // CURVE_POINTS)
        self._points: list[tuple[int, int, float]] = []

    def __call__(self, policy: Floats, samples: int) -> None:
        """Look at the policy; called before the first update and after each one."""
        self._update += 1
        progress = samples if self._by_samples else self._update
        if self._update <= EVERY_UPDATE or progress >= self._next:
            self._next = (progress // self._stride + 1) * self._stride
            self._points.append((self._update, samples, self.fraction(policy)))

    def fraction(self, policy: Floats) -> float:
        """The policy's exact value from the start, as a fraction of the best possible one."""
        return float(self._mdp.start @ evaluate(self._mdp, policy, gamma=self._gamma)) / self._best

    def curve(self, result: OptimizerResult) -> Curve:
        """What was recorded, with the learner's own account of its episodes, ending in what is handed out."""
        points = [*self._points]
        if points[-1][0] != self._update:
            points.append((self._update, result.samples, self.fraction(result.policy)))
        episodes = np.concatenate([[0], result.curve.episodes])
        updates, samples, fractions = zip(*points, strict=True)
        # What is handed out may be an earlier policy, shown once more after the last update.
        return Curve(
            episodes[np.minimum(updates, len(result.curve.episodes))].astype(np.int64),
            np.array(samples, dtype=np.int64),
            np.array(fractions, dtype=float),
        )


def run_job(job: ExperimentJob) -> ExperimentRun:
    """Do one run."""
    return run_experiment(job.experiment, job.seed, settings_of(job.preset, job.experiment))


def run_experiment(experiment: Experiment, seed: int, settings: ExperimentSettings) -> ExperimentRun:
    """Explore, learn, and let the rivals learn; action labels are permuted from the seed."""
    began = time.perf_counter()
    mdp = experiment.mdp(seed)
    gamma = settings.gamma
    best = float(mdp.start @ solve(mdp, gamma=gamma).values)
    world = TabularWorld(mdp, seed=seed)
    exploration = explore(
        world,
        settings.exploring,
        gamma=gamma,
        rounds=settings.rounds,
        thresholds=settings.thresholds(mdp.num_states),
        visits=settings.visits,
        learn_from=settings.learn_from,
        progress=False,
    )
    reset_model = exploration.reset_model.weighted(settings.weighting)

    def learn(
        learner: TRPO | Reinforce, own_world: TabularWorld, reset: ResetModel | None, budget: int | None
    ) -> OptimizerResult:
        recorder = Recorder(mdp, gamma, best, updates=learner.updates or CURVE_POINTS, budget=budget)
        learned = improve(own_world, learner, reset, gamma=gamma, budget=budget, evaluation_episodes=0, watch=recorder)
        curves.append(recorder.curve(learned))
        return learned

    curves: list[Curve] = []
    trained = learn(settings.learning, world, reset_model, None)
    until_spent = replace(settings.learning, updates=AS_MANY_AS_THE_BUDGET_ALLOWS)
    for budget in (trained.samples, exploration.samples + trained.samples):
        learn(until_spent, TabularWorld(mdp, seed=seed), None, budget)
    return ExperimentRun(
        experiment=experiment,
        seed=seed,
        gamma=gamma,
        beta=settings.beta_for(mdp.num_states),
        optimal=best,
        values={arm: float(curve.fractions[-1]) for arm, curve in zip(ARMS, curves, strict=True)},
        curves=dict(zip(ARMS, curves, strict=True)),
        exploration_samples=exploration.samples,
        learning_samples=trained.samples,
        thresholds=np.array([round_.threshold for round_ in exploration.rounds]),
        visited=np.array([round_.visited for round_ in exploration.rounds]),
        poorly_visited=np.array([round_.poorly_visited for round_ in exploration.rounds]),
        bounds=theory_of(mdp, exploration, reset_model, seed),
        seconds=time.perf_counter() - began,
    )


def theory_of(mdp: FiniteMDP, exploration: Exploration, reset_model: ResetModel, seed: int) -> dict[str, float | None]:
    """Theorem 1 on this run, with exact accuracies of the optimizer, and the mismatch d* / mu of its resets.

    The mismatch of ideal resets, half rho and half uniform, stands beside it; and a certificate of the last round, from
    fresh visits in a world of its own, beside the truth that it has to be above.
    """
    theorem = theorem_1(mdp, exploration)
    uniform_start = 0.5 * mdp.start + 0.5 / mdp.num_states
    fresh = TabularWorld(mdp, seed=seed + CERTIFICATE_SEED)
    try:
        certified = certify(fresh, exploration, delta=CERTIFICATE_DELTA, epsilon=float(theorem.epsilons[-1])).limit
    except CertificateError:  # it would say nothing
        certified = np.inf
    figures = {
        "theorem_1_left": theorem.left[-1],
        "theorem_1_a_posteriori": theorem.a_posteriori[-1],
        "theorem_1_repaired": theorem.repaired[-1],
        "theorem_1_printed": theorem.printed[-1],
        "exploitative_factor": theorem.exploitative_factor,
        "mismatch": mismatch_coefficient(mdp, reset_model, gamma=exploration.gamma),
        "mismatch_ideal": mismatch_coefficient(mdp, uniform_start, gamma=exploration.gamma),
        "certificate": certified,
        "certificate_truth": theorem.round_left[-1],
    }
    return {name: float(figure) if np.isfinite(figure) else None for name, figure in figures.items()}


def run_path(folder: Path, experiment: Experiment, seed: int) -> Path:
    """Where a run is kept."""
    return folder / "runs" / safe_name(experiment.name) / f"{seed:04d}.npz"


def save_run(folder: RunFolder, run: ExperimentRun) -> Path:
    """Write a run's files."""
    header: dict[str, Any] = {
        **_job(run.experiment, run.seed),
        "values": run.values,
        "bounds": run.bounds,
        **{key: getattr(run, key) for key in (*_NUMBERS, *_COUNTS)},
    }
    arrays: dict[str, NDArray[Any]] = {
        "thresholds": run.thresholds,
        "visited": run.visited,
        "poorly_visited": run.poorly_visited,
    }
    for arm, curve in run.curves.items():
        arrays |= {f"{arm}_{name}": getattr(curve, name) for name in _CURVE_ARRAYS}
    return FILES.write(folder, run_path(folder.path, run.experiment, run.seed), header, arrays, run.seconds)


def _job(experiment: Experiment, seed: int) -> dict[str, Any]:
    """What tells a run from others, in its header."""
    described = {name: getattr(experiment, name) for name in ("environment", "depth", "optimizer")}
    return described | {"seed": seed}


def load_run(folder: RunFolder, experiment: Experiment, seed: int) -> ExperimentRun:
    """Read a run's files; a damaged one is named, and left where it is."""
    path = run_path(folder.path, experiment, seed)
    with FILES.open(folder, path, _job(experiment, seed), _KEYS, _ARRAYS) as (archive, seconds):
        return _decode(archive, experiment, seed, seconds)


def _decode(archive: Archive, experiment: Experiment, seed: int, seconds: float) -> ExperimentRun:
    header = archive.header
    values, bounds = header["values"], header["bounds"]
    if not isinstance(values, dict) or values.keys() != set(ARMS):
        raise ValueError(f"values is {values!r}, expected numbers for {', '.join(ARMS)}")
    if not isinstance(bounds, dict):
        raise ValueError(f"bounds is {bounds!r}, expected numbers by name")
    thresholds = archive.array("thresholds", "<f8", None)
    states = archive.array("visited", "<f8", (len(thresholds), experiment.mdp(seed).num_states))
    curves = {
        arm: Curve(**{name: archive.array(f"{arm}_{name}", kind, None) for name, kind in _CURVE_ARRAYS.items()})
        for arm in ARMS
    }
    for arm, curve in curves.items():
        if not len(curve.episodes) == len(curve.samples) == len(curve.fractions) > 0:
            raise ValueError(f"the curve {arm} has parts of different lengths, or none")
    if not all(np.isfinite(array).all() for array in (thresholds, states, *(c.fractions for c in curves.values()))):
        raise ValueError("it holds numbers that are not finite")
    numbers: dict[str, Any] = {key: finite_number(header[key], key) for key in _NUMBERS}
    counts: dict[str, Any] = {key: check_size(header, key, least=0) for key in _COUNTS}
    return ExperimentRun(
        experiment=experiment,
        seed=seed,
        values={arm: finite_number(values[arm], arm) for arm in ARMS},
        bounds={str(key): None if value is None else finite_number(value, str(key)) for key, value in bounds.items()},
        curves=curves,
        thresholds=thresholds,
        visited=states,
        poorly_visited=archive.array("poorly_visited", "|b1", states.shape),
        **numbers,
        **counts,
        seconds=seconds,
    )
