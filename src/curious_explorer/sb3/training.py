"""Train an algorithm into a folder: learn, evaluate from the environment's own start, keep, and again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from curious_explorer.errors import CheckpointError
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.sb3.algorithms import private_randomness, spawned_seed
from curious_explorer.sb3.training_files import POLICY_FILE, Evaluated, TrainingFolder
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
        folder: see `training_files`.
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
            network = learner.network_policy()
            policy = None if network is None else kept.path / POLICY_FILE
            if network is not None and policy is not None:
                write_atomically(policy, network.encode())
        finally:
            learner.close()
    return Training(evaluations, samples, learning_steps, policy)


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
    """Run whole episodes from the environment's own start, as whoever uses the policy will begin."""
    seed = spawned_seed(settings.seed, len(evaluations), 1)
    act, env = learner.actor(seed), make_by_id(settings.environment)
    limited = env.spec is not None and env.spec.max_episode_steps is not None
    returns, lengths = [], []
    for episode in range(settings.evaluation_episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, length, ended = 0.0, 0, False
        while not ended and (limited or length < settings.evaluation_steps):
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, length, ended = total + float(reward), length + 1, terminated or truncated
        returns.append(total)
        lengths.append(length)
    env.close()
    evaluated = Evaluated(
        samples=learner.meter.taken,
        learning_steps=learner.learning_steps,
        evaluation_steps=sum(lengths),
        mean_return=float(np.mean(returns)),
        std_return=float(np.std(returns)),
        mean_length=float(np.mean(lengths)),
    )
    evaluations.append(evaluated)
    return evaluated


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
