"""Train an algorithm into a folder: learn, evaluate from the environment's own start, keep, and again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from curious_explorer.errors import CheckpointError, ObservationError
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.sb3_algorithm import private_randomness
from curious_explorer.sb3.training_evaluation import Evaluated, evaluate
from curious_explorer.sb3.training_files import POLICY_FILE, TrainingFolder
from curious_explorer.sb3.training_learner import Learner, State
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.storage import write_atomically
from curious_explorer.worlds.policies import ObservationPolicy

Saved = tuple[State, list[Evaluated]]
Watch = Callable[[int, int, Evaluated | None], None]
"""Told the samples, the learning steps and the last evaluation."""


class Training(NamedTuple):
    """A finished training."""

    evaluations: list[Evaluated]
    samples: int
    learning_steps: int
    policy: Path | None
    """The file of the policy; None if it is of a kind that acts only with PyTorch."""
    picture: Path


def train_into(
    folder: str | Path,
    settings: TrainingSettings,
    reset_model: ResetModel | None = None,
    *,
    tensorboard: str | Path | None = None,
    watch: Watch | None = None,
) -> Training:
    """Train, and keep everything; a training that was interrupted goes on where it was last evaluated.

    Args:
        folder: see `storage`.
        settings: what to train.
        reset_model: where episodes begin; the environment's own start if None.
        tensorboard: a folder for TensorBoard's logs.
        watch: called whenever something was learned.
    """
    settings.algorithm_class()  # everything is checked before anything is written
    check_fits(settings.environment, reset_model)
    kept = TrainingFolder(folder)
    settings = kept.claim(settings, _starts(reset_model))
    saved = kept.load()
    with private_randomness(settings.seed, threads=1):  # more threads than one make a small network slower
        learner = Learner(settings, reset_model, None if tensorboard is None else str(tensorboard))
        try:
            evaluations = _go_on(learner, settings, kept, saved, watch or (lambda *_: None))
            samples, learning_steps = learner.meter.taken, learner.learning_steps
            policy = _keep_policy(learner, kept.path / POLICY_FILE)
        finally:
            learner.close()
    start = "the environment's start" if reset_model is None else "explored resets"
    title = f"{settings.algorithm.upper()} on {settings.environment}, trained from {start}"
    return Training(evaluations, samples, learning_steps, policy, kept.draw(evaluations, title))


def _go_on(
    learner: Learner, settings: TrainingSettings, kept: TrainingFolder, saved: Saved | None, watch: Watch
) -> list[Evaluated]:
    evaluations: list[Evaluated] = []
    if saved is None:
        _evaluate(learner, settings, evaluations)
        kept.save(learner.state(), evaluations)
    else:
        state, evaluations = saved
        try:
            learner.restore(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"the checkpoint in {kept.path} does not fit the algorithm: {error}; delete it to train from the start"
            ) from error
    watch(learner.meter.taken, learner.learning_steps, evaluations[-1])
    enough = True
    while enough and learner.meter.taken < settings.samples:
        learner.begin_interval(len(evaluations))
        goal = min((learner.meter.taken // settings.interval + 1) * settings.interval, settings.samples)
        while enough and learner.meter.taken < goal:
            enough = learner.learn(goal - learner.meter.taken)
            watch(learner.meter.taken, learner.learning_steps, None)
        evaluated = _evaluate(learner, settings, evaluations)
        numbers = {"evaluation/mean_return": evaluated.mean_return, "evaluation/mean_length": evaluated.mean_length}
        learner.log(
            numbers | {"samples/roll_ins": float(evaluated.samples - evaluated.learning_steps)}, evaluated.samples
        )
        kept.save(learner.state(), evaluations)
        watch(learner.meter.taken, learner.learning_steps, evaluated)
    return evaluations


def _evaluate(learner: Learner, settings: TrainingSettings, evaluations: list[Evaluated]) -> Evaluated:
    seed = int(np.random.SeedSequence([settings.seed, len(evaluations), 1]).generate_state(1)[0] >> 1)
    counted = {"samples": learner.meter.taken, "learning_steps": learner.learning_steps}
    evaluations.append(evaluate(learner.act, settings, **counted, seed=seed))
    return evaluations[-1]


def _keep_policy(learner: Learner, path: Path) -> Path | None:
    """The actor as a file that acts with NumPy alone, where it is a multilayer perceptron."""
    try:
        write_atomically(path, learner.network_policy().encode())
    except ObservationError:  # pictures and dicts, which other networks see
        return None
    return path


def check_fits(environment: str, reset_model: ResetModel | None) -> None:
    """Refuse an environment that cannot be made, or that the reset model was not made for."""
    env = make_by_id(environment)
    try:
        if reset_model is not None:
            Discretisation.of_reset_model(reset_model).check(env)
    finally:
        env.close()


def _starts(reset_model: ResetModel | None) -> dict[str, str]:
    """Where episodes begin, in plain data that two trainings can be told apart by."""
    if reset_model is None:
        return {"reset_model": "none"}
    return {"reset_model": fingerprint(reset_model), "weighting": reset_model.weighting}


def fingerprint(model: ResetModel) -> str:
    """What tells a reset model from others, but for how its rounds are weighed."""
    discretisation = Discretisation.of_reset_model(model).stored()
    digest = hashlib.sha256(f"{model.gamma} {discretisation.description}".encode())
    for policy in model.policies:
        digest.update(
            policy.encode() if isinstance(policy, ObservationPolicy) else np.ascontiguousarray(policy).tobytes()
        )
    for cell in discretisation.discovered:
        digest.update(cell.encode())
    return digest.hexdigest()
