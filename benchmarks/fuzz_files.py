"""How every format that is read is read, for `benchmarks.fuzz`; `benchmarks.fuzz_samples` writes small ones of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer import FiniteMDP, ResetModel
from curious_explorer.callbacks.events import Callbacks
from curious_explorer.errors import CheckpointError, MDPFileError, ObservationError, ResetModelError, StudyError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.layout_files import read_labels
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.storage import CHECKSUM, read_plain
from curious_explorer.studies import layouts_study
from curious_explorer.studies.comparison_study import load_results
from curious_explorer.studies.explored_runs import open_explored
from curious_explorer.studies.paper_experiments import Experiment
from curious_explorer.studies.paper_run import load_run
from curious_explorer.studies.playing import load_policy
from curious_explorer.studies.reproduction import RUNS
from curious_explorer.studies.solve_files import solve_folder
from curious_explorer.studies.solve_run import SolveRun
from curious_explorer.studies.solve_settings import SolveSettings
from curious_explorer.studies.solve_training import restore_log
from curious_explorer.studies.solving import read_solved
from curious_explorer.studies.solving_layouts import layouts_summary
from curious_explorer.studies.task_look import RewardLog, TaskLook

SIGNPOSTS = spaces.Dict({"colours": spaces.Box(0, 3, (2, 2), np.uint8), "side": spaces.Discrete(2)})
"""What the cloned policy and the labels of layouts see."""
EXPERIMENT = Experiment("dcl", 2, "trpo")
LOOK = TaskLook(
    steps=200,
    episodes=9,
    time_limit=100,
    longest=100,
    threshold=None,
    layouts_change=False,
    price=0.0,
    often=0.01,
    best_return=1.0,
    spread=0.1,
    positive=True,
)


def solve_run(folder: Path) -> SolveRun:
    settings = SolveSettings(environment="FrozenLake-v1", samples=5_000)
    return SolveRun(
        folder=folder, settings=settings, callback=None, watch=Callbacks(), tell=print, progress=lambda now: None
    )


def _mdp(name: str, **options: Any) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        mdp = FiniteMDP.load(folder / name, **options)
        return mdp.fingerprint, mdp.state_names, mdp.action_names, mdp.reward_scale, mdp.start, mdp.transitions.data

    return read


def _reset_model(folder: Path) -> Any:
    model = ResetModel.load(folder)
    used = Discretisation.of_reset_model(model)
    model.roll_in  # noqa: B018
    counted = None if model.model is None else model.model.arrays()
    choice = None if model.choice is None else (model.choice.name, model.choice.weights, model.choice.limit)
    parts = (model.policies, model.gamma, model.weighting, model.visited, model.chained, model.discretisation)
    return parts, counted, choice, used.description()


def _exploration(folder: Path) -> Any:
    found = Exploration.load(folder)
    model = found.model
    counted = None if model is None else model.arrays()
    return found.rounds, found.gamma, found.samples, found.first_reward, found.complete, found.discretisation, counted


def _explored(folder: Path) -> Any:
    found = open_explored(folder, seed=99)  # not its own
    return found.world.identity() | {"seed": 0}, found.exploration.rounds, found.reset_model.policies, found.known


def _comparison(folder: Path) -> Any:
    found = load_results(folder)
    return found.comparison, found.runs("r-max", "dcl/2")


def _comparison_of_returns(folder: Path) -> Any:
    found = load_results(folder)
    return found.comparison, found.runs("frontier", "FrozenLake-v1")


def _experiment(folder: Path) -> Any:
    return load_run(RUNS.folder(folder), EXPERIMENT, 0)


def _labels(folder: Path) -> Any:
    return [tuple(each) for each in read_labels(folder / "labels.npz")]


def _cloned(folder: Path) -> Any:
    found = ClonedPolicy.load(folder, SIGNPOSTS)
    return found.network, found.symbols and found.symbols.description(), found.choices


def _training(folder: Path) -> Any:
    from curious_explorer.sb3.training import load_progress

    saved = load_progress(folder)
    if saved is None:
        return None
    (tensors, plain), evaluations = saved
    return {name: tensor.numpy() for name, tensor in tensors.items()}, plain, evaluations


def _trained(folder: Path) -> Any:
    from curious_explorer.sb3.training import load_trained

    agent, settings = load_trained(folder, "last")
    return settings, [agent(np.full(4, place, np.float32)) for place in (-1.0, 0.0, 1.0)]


def _recurrent(folder: Path) -> Any:
    found = RecurrentPolicy.load(folder, SIGNPOSTS)
    return found.weights, found.inputs.description(), found.choices, found.sharpness


def _layouts(folder: Path) -> Any:
    return layouts_study.read_stage(layouts_study.study_folder(folder), 3, None)


def _solved(folder: Path) -> Any:
    settings, run = solve_folder(folder).settings(), solve_run(folder)
    if not run.read_stages():
        return None
    agent = load_policy(folder)
    return settings, run.stages, run.used, agent.table, agent.discretisation.description()  # type: ignore[attr-defined]


def _finished(folder: Path) -> Any:
    """What a run of `solve` came to, and what one of its trainings has met."""
    met = RewardLog(LOOK)
    restore_log(met, folder, "plain")
    return read_solved(solve_run(folder)).summary, met.state()


def _steps(folder: Path) -> Any:
    """Every step of an exploration of MountainCar."""
    from curious_explorer.sb3.step_log import StepLog

    log = StepLog(gymnasium.make("MountainCar-v0"))
    log.load(folder, 1_000)
    return log.arrays()


def _buffer(folder: Path) -> Any:
    """What a learner of MountainCar goes on with."""
    from curious_explorer.sb3.kept_buffer import COLUMNS, restore_buffer

    learner = learner_of_the_car()
    restore_buffer(learner.model, folder)
    buffer = learner.model.replay_buffer
    return buffer.pos, buffer.full, {name: getattr(buffer, name) for name in COLUMNS}


def learner_of_the_car() -> Any:
    """With room for a few steps."""
    from curious_explorer.sb3.training_learner import Learner
    from curious_explorer.sb3.training_settings import TrainingSettings

    few = {"buffer_size": 20}
    settings = TrainingSettings(environment="MountainCar-v0", algorithm="dqn", num_envs=1, hyperparameters=few)
    return Learner(settings, None, None)


def _layouts_summary(folder: Path) -> Any:
    """What a run over many layouts came to, and how far it stands."""
    told = layouts_summary(folder)
    if told is not None:
        told = {name: value for name, value in told.items() if name not in ("format", "version", CHECKSUM)}
    return told, layouts_study.where_it_stands(folder)


Errors = type[Exception] | tuple[type[Exception], ...]
LOADERS: dict[str, tuple[Callable[[Path], Any], Errors]] = {
    "mdp-json": (_mdp("mdp.json"), MDPFileError),
    "mdp-npz": (_mdp("mdp.npz"), MDPFileError),
    "mdp-mapped": (_mdp("mdp.npz", mmap=True, check=True), MDPFileError),
    "reset-model-counted": (_reset_model, ResetModelError),
    "reset-model-network": (_reset_model, ResetModelError),
    "network-policy": (lambda folder: NetworkPolicy.decode(read_plain(folder / "policy.safetensors")), ValueError),
    "cloned-policy": (_cloned, ObservationError),
    "recurrent-policy": (_recurrent, ObservationError),
    "labels": (_labels, CheckpointError),
    "layouts": (_layouts, (StudyError, CheckpointError)),
    "rounds": (_exploration, CheckpointError),
    "counts": (_exploration, CheckpointError),
    "explored": (_explored, (CheckpointError, MDPFileError, ResetModelError)),
    "comparison": (_comparison, StudyError),
    "returns": (_comparison_of_returns, StudyError),
    "experiment": (_experiment, StudyError),
    "steps": (_steps, CheckpointError),
    "replay-buffer": (_buffer, CheckpointError),
    "training": (_training, CheckpointError),
    "trained": (_trained, CheckpointError),
    "solved": (_solved, (StudyError, CheckpointError)),
    "finished": (_finished, (StudyError, CheckpointError)),
    "layouts-summary": (_layouts_summary, StudyError),
}
"""How each is read, and the error that it may raise; a folder with others in it may raise theirs, which name them."""
BY_NAME = ("mdp-json", "mdp-npz", "mdp-mapped", "network-policy", "labels")
"""Single files, which users name: one that is not there is a FileNotFoundError, and a folder an IsADirectoryError."""
