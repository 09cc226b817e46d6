"""Train an algorithm into a folder: learn, evaluate from the environment's own start, keep, and again.

RUN/training.json             what was asked for
RUN/checkpoint.safetensors    all that the learner knows, and the evaluations so far: one file, replaced in one step
RUN/evaluations.csv           the evaluations, for people
RUN/policy.safetensors        the policy learned last, which acts with NumPy alone (`NetworkPolicy`)
RUN/best.safetensors          what the learner knew when it was evaluated best, as in the checkpoint
RUN/model.zip                 the model learned last in Stable-Baselines3's own format, and beside it the statistics
                              that it sees observations by, for whoever goes on with that library

Weights are tensors, everything else is JSON. Nothing is unpickled, ever; the last two are written and never read.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.callbacks.events import BATCH, EVALUATION, TRAIN, Callback, tell
from curious_explorer.errors import CheckpointError
from curious_explorer.gym.agents import Agent, play_episodes
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.memory import agent_with_memory, first_action
from curious_explorer.optional_packages import require
from curious_explorer.resets.moving_starts import OWN, StartsProgress
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.starts import MIXTURE
from curious_explorer.sb3.algorithms import OFF_POLICY, private_randomness, spawned_seed
from curious_explorer.sb3.kept_buffer import keep_buffer, restore_buffer
from curious_explorer.sb3.step_log import fit, recall
from curious_explorer.sb3.training_learner import Learner, State
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.sb3.warm_start import SHARE as WARM_START_SHARE
from curious_explorer.sb3.warm_start import WarmStart, clone, demonstrate, softness
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, check_tensors, read_plain, reading, tensors_header, write_atomically
from curious_explorer.validation import check_name
from curious_explorer.worlds.policies import ObservationPolicy

TRAINING = Format("curious-explorer/training", 2)
PROGRESS = Format("curious-explorer/training-progress", 2)
SETTINGS_FILE, CHECKPOINT_FILE, POLICY_FILE = "training.json", "checkpoint.safetensors", "policy.safetensors"
BEST_FILE = "best.safetensors"
EVALUATIONS_FILE = "evaluations.csv"
SOONEST_EVALUATION, SOON_SHARE = 4_096, 20
"""Where starts move: at least so many samples between two evaluations, and so many times what one takes."""
_PLAIN = "plain_data"
"""The tensor that holds the JSON, as bytes."""


class Evaluated(NamedTuple):
    """One evaluation, from the environment's own start; its steps are no samples of the training and are told apart."""

    samples: int
    """Every step of the training so far."""
    learning_steps: int
    """Those of them that were not of roll-ins."""
    evaluation_steps: int
    """Steps of this evaluation."""
    mean_return: float
    """Of an episode, not discounted."""
    std_return: float
    mean_length: float


Until = Callable[[Sequence[Evaluated]], bool]
"""Asked, of all evaluations so far, whether the training may end here."""


class Training(NamedTuple):
    """A finished training."""

    evaluations: list[Evaluated]
    samples: int
    learning_steps: int
    policy: Path | None
    """The file of the policy; None if it is of a kind that acts only with PyTorch."""
    starts: StartsProgress | None = None
    """How far starts moved; None where they do not."""
    warm_start: WarmStart | None = None
    """What was cloned first, if anything was."""
    steps_saved: int = 0
    """How many steps of roll-ins were saved in this call by snapshots: what it would have taken besides, at least."""


def train_into(
    folder: str | Path,
    settings: TrainingSettings,
    reset_model: ResetModel | None = None,
    *,
    tensorboard: str | Path | None = None,
    watch: Callback | None = None,
    until: Until | None = None,
    callback: Any = None,
    watched: Callable[[Env], Env] | None = None,
    recalled: dict[str, NDArray[Any]] | None = None,
    updates: int = 0,
) -> Training:
    """Train, and keep everything; a training that was interrupted goes on where it was last evaluated.

    Args:
        folder: see the top of this module.
        settings: what to train.
        reset_model: where episodes begin; the environment's own start if None.
        tensorboard: a folder for TensorBoard's logs.
        watch: told of every stretch of learning, and of every evaluation.
        until: asked after every evaluation whether that is enough.
        callback: of Stable-Baselines3, told of every step; one that stops the learning ends the training.
        watched: put around every environment that is learned in.
        recalled: steps that were taken before, with which the replay buffer of an off-policy algorithm begins.
        updates: how many updates it learns from them first.
    """
    settings.arguments(), settings.algorithm_class()  # everything is checked before anything is written
    check_fits(settings.make_env(), reset_model)
    path = Path(folder)
    run, settings, described = _run_of(path, settings, reset_model)
    with (
        run.claim(described, replace=not (path / CHECKPOINT_FILE).exists()),
        private_randomness(settings.seed, threads=1),  # more threads than one make a small network slower
    ):
        saved = load_progress(path)
        logs = None if tensorboard is None else str(tensorboard)
        learner = Learner(settings, reset_model, logs, callback=callback, watched=watched)
        try:
            if recalled is not None:
                recall(learner, recalled, settings.reward_scale)
                if saved is None:
                    fit(learner, updates)
            if settings.algorithm in OFF_POLICY:
                learner.begun = learner.model.replay_buffer.pos
                if saved is not None:
                    restore_buffer(learner.model, path)
            if saved is None and reset_model is not None and settings.starts_warm(reset_model):
                learner.warm_start = _warm_start(learner, settings, reset_model)
            evaluations = _go_on(learner, settings, path, saved, watch, until or (lambda evaluations: False))
            network, policy = learner.network_policy(), None
            if network is not None:
                policy = write_atomically(path / POLICY_FILE, network.encode())
            for name, content in learner.own_format().items():
                write_atomically(path / name, content)
        finally:
            learner.close()
    progress = None if learner.starts is None else learner.starts.progress
    saved_steps, taken = learner.steps_saved, learner.meter.taken
    return Training(evaluations, taken, learner.learning_steps, policy, progress, learner.warm_start, saved_steps)


def _warm_start(learner: Learner, settings: TrainingSettings, reset_model: ResetModel) -> WarmStart | None:
    """Clone the best known way to the reward; nothing where no way is known, or it does not lead there."""
    limit = max(1, int(WARM_START_SHARE * settings.samples))
    found, taken = demonstrate(settings.make_training_env, reset_model, spawned_seed(settings.seed, 0, 2), limit)
    learner.meter.taken += taken
    if not found:
        return None
    choices = Discretisation.of_reset_model(reset_model).action_set.choices
    seed, soft = spawned_seed(settings.seed, 1, 2), softness(reset_model)
    agreement = clone(learner, found, choices, seed, settings.reward_scale, soft)
    return WarmStart(len(found), taken, agreement)


def _go_on(
    learner: Learner,
    settings: TrainingSettings,
    path: Path,
    saved: tuple[State, list[Evaluated]] | None,
    watch: Callback | None,
    until: Until,
) -> list[Evaluated]:
    """Learn from where the training stands to its last sample; returns all evaluations."""
    evaluations: list[Evaluated] = []
    if saved is None:
        _evaluate(learner, settings, evaluations)  # starts may be far at once, if a warm start succeeds already
        save_progress(path, learner.state(), evaluations)
    else:
        _restore(learner, path, saved[0])
        evaluations = saved[1]
        write_evaluations(path, evaluations)  # a training that was killed may not have come to that
    tell(watch, EVALUATION, TRAIN, learner.meter.taken, _numbers(learner, evaluations[-1]))
    enough = True
    while enough and learner.meter.taken < settings.samples and not until(evaluations):
        learner.begin_interval(len(evaluations))
        goal = _next_evaluation(learner, settings, evaluations[-1])
        while enough and learner.meter.taken < goal:
            enough = learner.learn(goal - learner.meter.taken)
            tell(watch, BATCH, TRAIN, learner.meter.taken, learner.numbers())
        evaluated = _evaluate(learner, settings, evaluations)
        learner.log(_numbers(learner, evaluated), evaluated.samples)
        if settings.algorithm in OFF_POLICY:
            keep_buffer(learner.model, learner.begun, path)
        save_progress(path, learner.state(), evaluations)
        tell(watch, EVALUATION, TRAIN, learner.meter.taken, _numbers(learner, evaluated))
    return evaluations


def _next_evaluation(learner: Learner, settings: TrainingSettings, last: Evaluated) -> int:
    """After which samples to evaluate next: soon where starts move and an evaluation costs little.

    That is where episodes are short, as those are that succeed: so it is seen soon that nothing is left to learn.
    """
    assert settings.evaluate_every is not None
    taken, interval = learner.meter.taken, settings.evaluate_every
    goal = (taken // interval + 1) * interval
    if learner.starts is not None:
        goal = min(goal, taken + max(SOONEST_EVALUATION, SOON_SHARE * last.evaluation_steps))
    return min(goal, settings.samples)


def _numbers(learner: Learner, evaluated: Evaluated) -> dict[str, float]:
    """What an evaluation says, and where starts are by then."""
    numbers = {
        "evaluation/mean_return": evaluated.mean_return,
        "evaluation/mean_length": evaluated.mean_length,
        "samples/learning": float(evaluated.learning_steps),
        "samples/roll_ins": float(evaluated.samples - evaluated.learning_steps),
    }
    if learner.starts is not None:
        at = learner.starts.progress
        numbers |= {"starts/level": at.level, "starts/own_share": at.own_share, "starts/own_success": at.own_success}
    return numbers


def _restore(learner: Learner, path: Path, state: State) -> None:
    with reading(path / CHECKPOINT_FILE, CheckpointError, "one of this algorithm", "delete it to train from the start"):
        learner.restore(state)


def _evaluate(learner: Learner, settings: TrainingSettings, evaluations: list[Evaluated]) -> Evaluated:
    """Run whole episodes from the environment's own start, as whoever uses the policy will begin."""
    seed = spawned_seed(settings.seed, len(evaluations), 1)
    env, episodes = settings.make_env(), settings.evaluation_episodes
    assert episodes is not None
    played = play_episodes(env, learner.agent(seed), episodes, seed=seed, longest=settings.evaluation_steps)
    env.close()
    if learner.starts is not None and not evaluations:
        for returned, length in zip(played.returns, played.lengths, strict=True):
            learner.starts.tell(OWN, returned - settings.price * length)
    evaluated = Evaluated(
        samples=learner.meter.taken,
        learning_steps=learner.learning_steps,
        evaluation_steps=played.steps,
        mean_return=played.mean_return,
        std_return=float(np.std(played.returns)),
        mean_length=float(np.mean(played.lengths)),
    )
    evaluations.append(evaluated)
    return evaluated


def load_trained(
    folder: str | Path, which: str = "best", *, deterministic: bool | None = None, seed: int = 0
) -> tuple[Agent, TrainingSettings]:
    """What `train_into` has left in a folder, as an agent, and how it was trained.

    Args:
        folder: see the top of this module.
        which: "best", as it was when it was evaluated best, or "last".
        deterministic: whether it takes the likeliest action instead of drawing one; as it was evaluated by default.
        seed: where draws come from.
    """
    path = Path(folder)
    stored = training_folder(path).settings()
    known = {field.name for field in fields(TrainingSettings)}
    with reading(path / SETTINGS_FILE, CheckpointError, "the settings of a training", "train in another folder"):
        settings = TrainingSettings(**{name: value for name, value in stored.items() if name in known})
        settings.arguments(), settings.algorithm_class()
        settings.make_env().close()
    saved = load_progress(path, BEST_FILE if check_name(which, ("best", "last"), "which") == "best" else None)
    if saved is None:
        raise CheckpointError(f"{path} holds a training of which nothing was kept yet; the same command goes on")
    with private_randomness(settings.seed, threads=1):
        learner = Learner(settings, None, None)
        _restore(learner, path, saved[0])
    agent = settings.choosing(learner.agent(seed, deterministic))
    return agent_with_memory(agent, settings.memory, first_action(learner.action_space)), settings


def trained_samples(folder: str | Path) -> int:
    """How many samples of a training in a folder are done; 0 where there is none."""
    path = Path(folder)
    saved = load_progress(path) if training_folder(path).claimed else None
    return 0 if saved is None else saved[1][-1].samples


def check_fits(env: Env, reset_model: ResetModel | None) -> None:
    """Refuse an environment that the reset model was not made for; closes it."""
    try:
        if reset_model is not None:
            Discretisation.of_reset_model(reset_model).check(env)
    finally:
        env.close()


def training_folder(path: str | Path) -> RunFolder:
    """The folder of a training. Only the number of samples may grow from one call to the next: then it goes on."""
    return RunFolder(Path(path), SETTINGS_FILE, TRAINING, "training", CheckpointError, growing=("samples",))


def _run_of(
    path: Path, settings: TrainingSettings, reset_model: ResetModel | None
) -> tuple[RunFolder, TrainingSettings, dict[str, Any]]:
    """The folder, the settings to go on with there, and how both are described."""
    starts = {"reset_model": "none"}
    if reset_model is not None:
        digest = fingerprint(reset_model, counts=settings.starts != MIXTURE or reset_model.choice is not None)
        starts = {"reset_model": digest, "weighting": reset_model.weighting}
    folder = training_folder(path)
    if folder.claimed:
        stored = folder.settings()
        if settings.evaluate_every is None:
            settings = replace(settings, evaluate_every=stored.get("evaluate_every"))
        if settings.evaluation_episodes is None:
            settings = replace(settings, evaluation_episodes=stored.get("evaluation_episodes"))
    settings = settings.with_evaluations()
    return folder, settings, asdict(settings) | starts


def fingerprint(model: ResetModel, *, counts: bool = False) -> str:
    """What tells a reset model from others, but for how its rounds are weighed; its counts, too, where they matter."""
    discretisation = Discretisation.of_reset_model(model).stored()
    digest = hashlib.sha256(f"{model.gamma} {discretisation.description}".encode())
    for policy in model.policies:
        digest.update(
            policy.encode() if isinstance(policy, ObservationPolicy) else np.ascontiguousarray(policy).tobytes()
        )
    for cell in discretisation.discovered:
        digest.update(cell.encode())
    if model.choice is not None:
        choice = model.choice
        digest.update(f"{choice.start_share} {choice.limit} {choice.tries}".encode() + choice.weights.tobytes())
    if counts and model.model is not None:
        for array in model.model.arrays().values():
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def save_progress(path: Path, state: State, evaluations: list[Evaluated]) -> None:
    """Keep where the training stands, and once more if it was never better."""
    import torch

    tensors, plain = state
    content = {
        "learner": plain,
        "evaluations": [list(evaluated) for evaluated in evaluations],
        "settings": training_folder(path).digest(),
    }
    header = tensors_header(PROGRESS, content, {name: tensor.numpy() for name, tensor in tensors.items()})
    stored = {**tensors, _PLAIN: torch.frombuffer(bytearray(header.encode()), dtype=torch.uint8)}
    encoded = require("safetensors.torch", "sb3").save(stored)
    if evaluations[-1].mean_return >= max(each.mean_return for each in evaluations):
        write_atomically(path / BEST_FILE, encoded)
    write_atomically(path / CHECKPOINT_FILE, encoded)
    write_evaluations(path, evaluations)


def write_evaluations(folder: Path, evaluations: list[Evaluated]) -> None:
    """The evaluations, for people."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([Evaluated._fields, *evaluations])
    write_atomically(folder / EVALUATIONS_FILE, text.getvalue())


def load_progress(folder: Path, file: str | None = None) -> tuple[State, list[Evaluated]] | None:
    """Where the training stands; None if nothing was saved yet."""
    path = folder / (file or CHECKPOINT_FILE)
    if not path.exists() and not path.is_symlink():
        return None
    with reading(path, CheckpointError, "a checkpoint of a training", "delete it to train from the beginning"):
        tensors = require("safetensors.torch", "sb3").load(read_plain(path, within=folder))
        text = tensors.pop(_PLAIN).numpy().tobytes()
        numbers = {name: tensor.numpy() for name, tensor in tensors.items()}
        header = check_tensors(text, PROGRESS, {"learner", "evaluations", "settings"}, numbers)
        training_folder(folder).check_digest(header["settings"])
        evaluations = [Evaluated(*row) for row in header["evaluations"]]
        if not evaluations:
            raise ValueError("it has no evaluation, with which every training begins")
        return (tensors, header["learner"]), evaluations
