"""Small files of every format that is read, written by the library itself, and how each is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from curious_explorer import FiniteMDP, GymWorld, ModelBased, ResetModel, TabularWorld, explore
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.errors import CheckpointError, MDPFileError, ResetModelError, StudyError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.rmax import RMax
from curious_explorer.gym.cells import GridCells
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.network_policy import Layer, NetworkPolicy, Normalisation
from curious_explorer.storage import read_plain
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare, load_results
from curious_explorer.studies.exploration_study import ExploreSettings, explore_into, open_explored


def write_samples(folder: Path) -> None:
    """Write a folder of each format of `LOADERS`."""
    for name in LOADERS:
        (folder / name).mkdir(parents=True)
    mdp = combination_lock(2)
    mdp.save(folder / "mdp-json" / "mdp.json")
    garnet(4).save(folder / "mdp-npz" / "mdp.npz")
    garnet(4).save(folder / "mdp-mapped" / "mdp.npz")
    model = explore(TabularWorld(mdp), RMax(), gamma=0.9, samples=300).reset_model
    model.to(2).save(folder / "reset-model-counted")
    network().reset_model().save(folder / "reset-model-network")
    (folder / "network-policy" / "policy.safetensors").write_bytes(network().encode())
    rounds = folder / "rounds"
    options: dict[str, Any] = {"gamma": 0.9, "rounds": 2, "visits": 20, "record": True, "progress": False}
    explore(TabularWorld(mdp), ModelBased(), checkpoint=rounds, **options)
    explore(GymWorld("FrozenLake-v1"), gamma=0.9, samples=400, checkpoint=folder / "counts")
    settings = ExploreSettings(environment="dcl/2", rounds=1, visits=20, samples=2_000)
    explore_into(folder / "explored", settings, progress=False)
    compare(Comparison(methods=("r-max",), environments=("dcl/2",), seeds=1, budget=300), folder / "comparison")
    for made in ("figures", "report.html", "summary.json", "results.csv", "times.csv"):
        _remove(folder / "comparison" / made)
    _write_training(folder / "training")


def _remove(path: Path) -> None:
    if path.is_dir():
        for inside in path.iterdir():
            inside.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


class network(NetworkPolicy):  # noqa: N801
    """A small network for MountainCar."""

    def __init__(self) -> None:
        env, generator = gymnasium.make("MountainCar-v0"), np.random.default_rng(0)
        sizes = [(2, 3), (3, 3)]
        weights = [generator.normal(size=size).astype(np.float32) for size in sizes]
        layers = [Layer(weight, np.zeros(3, np.float32), "tanh") for weight in weights]
        scale = Normalisation(np.zeros(2), np.ones(2))
        super().__init__(env.observation_space, env.action_space, layers, normalisation=scale)

    def reset_model(self) -> ResetModel:
        """A reset model that walks it."""
        env = gymnasium.make("MountainCar-v0")
        cells = GridCells(3, env.observation_space.low, env.observation_space.high)  # type: ignore[attr-defined]
        world = GymWorld(env, cells=cells)
        uniform = np.full((world.num_states, world.num_actions), 1.0 / world.num_actions)
        stored = world.stored_discretisation()
        return ResetModel([uniform, self], gamma=0.9, visited=[np.ones(9) / 9], discretisation=stored)


def _write_training(folder: Path) -> None:
    from curious_explorer.sb3.training import train_into
    from curious_explorer.sb3.training_settings import TrainingSettings

    given = {"n_steps": 16, "batch_size": 16}
    settings = TrainingSettings(
        environment="CartPole-v1", samples=64, num_envs=1, evaluation_episodes=1, hyperparameters=given
    )
    train_into(folder, settings)
    for path in folder.iterdir():
        if path.name not in ("training.json", "checkpoint.safetensors"):
            path.unlink()


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
    found = open_explored(folder)
    return found.world.identity(), found.exploration.rounds, found.reset_model.policies, found.known


def _comparison(folder: Path) -> Any:
    found = load_results(folder)
    return found.comparison, found.runs("r-max", "dcl/2")


def _training(folder: Path) -> Any:
    from curious_explorer.sb3.training import load_progress

    saved = load_progress(folder)
    if saved is None:
        return None
    (tensors, plain), evaluations = saved
    return {name: tensor.numpy() for name, tensor in tensors.items()}, plain, evaluations


Errors = type[Exception] | tuple[type[Exception], ...]
LOADERS: dict[str, tuple[Callable[[Path], Any], Errors]] = {
    "mdp-json": (_mdp("mdp.json"), MDPFileError),
    "mdp-npz": (_mdp("mdp.npz"), MDPFileError),
    "mdp-mapped": (_mdp("mdp.npz", mmap=True, check=True), MDPFileError),
    "reset-model-counted": (_reset_model, ResetModelError),
    "reset-model-network": (_reset_model, ResetModelError),
    "network-policy": (lambda folder: NetworkPolicy.decode(read_plain(folder / "policy.safetensors")), ValueError),
    "rounds": (_exploration, CheckpointError),
    "counts": (_exploration, CheckpointError),
    "explored": (_explored, (CheckpointError, MDPFileError, ResetModelError)),
    "comparison": (_comparison, StudyError),
    "training": (_training, CheckpointError),
}
"""How each is read, and the error that it may raise; a folder with others in it may raise theirs, which name them."""
BY_NAME = ("mdp-json", "mdp-npz", "mdp-mapped", "network-policy")
"""Single files, which users name: one that is not there is a FileNotFoundError, and a folder an IsADirectoryError."""
