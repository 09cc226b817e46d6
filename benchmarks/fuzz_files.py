"""Small files of every format that is read, written by the library itself, and how each is read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer import FiniteMDP, GymWorld, ModelBased, ResetModel, TabularWorld, explore
from curious_explorer.callbacks.events import Callbacks
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.errors import CheckpointError, MDPFileError, ObservationError, ResetModelError, StudyError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.layout_files import read_labels, write_labels
from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.explorers.rmax import RMax
from curious_explorer.gym.cells import GridCells
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.network_policy import Layer, NetworkPolicy, Normalisation
from curious_explorer.gym.recurrent_policy import WEIGHTS, RecurrentPolicy
from curious_explorer.gym.seen_inputs import SeenInputs
from curious_explorer.gym.symbols import Symbols
from curious_explorer.storage import read_plain, write_json
from curious_explorer.studies import comparison_study, exploration_study, layouts_study
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare, load_results
from curious_explorer.studies.exploration_study import ExploreSettings, explore_into, open_explored
from curious_explorer.studies.paper_experiments import Experiment, Study
from curious_explorer.studies.paper_run import load_run
from curious_explorer.studies.playing import load_policy
from curious_explorer.studies.reproduction import RUNS, run_study
from curious_explorer.studies.solve_files import AGENT, AGENT_FILE, keep, solve_folder
from curious_explorer.studies.solve_run import SolveRun
from curious_explorer.studies.solve_settings import SolveSettings
from curious_explorer.studies.task_comparison import TaskComparison

SIGNPOSTS = spaces.Dict({"colours": spaces.Box(0, 3, (2, 2), np.uint8), "side": spaces.Discrete(2)})
"""What the cloned policy and the labels of layouts see."""
EXPERIMENT = Experiment("dcl", 2, "trpo")
READ_BY_NOBODY = ("figures", "report.html", "summary.json", "results.csv", "times.csv", "visited.pdf", "visited.png")
"""What a run leaves for people, and is not read again."""


PICTURES = (
    (exploration_study, "draw_visited_states"),
    (exploration_study, "draw_visited_cells"),
    (exploration_study, "write_exploration_report"),
    (comparison_study, "draw_all"),
    (comparison_study, "find_spec"),
)
"""What draws them, and asks for a library that does; all of it is left out."""


@contextmanager
def without_pictures() -> Iterator[None]:
    """Runs leave no figures and pages: nobody reads those again, and they need libraries that nothing else needs."""
    with ExitStack() as left_out:
        for module, name in PICTURES:
            left_out.enter_context(mock.patch.object(module, name, return_value=None))
        yield


def write_samples(folder: Path, *, seed: int = 0) -> None:
    """Write a folder of each format of `LOADERS`; another seed is another run, of the same shapes."""
    with without_pictures():
        _write_samples(folder, seed)
    for name in ("explored", "comparison", "returns", "experiment"):
        for made in READ_BY_NOBODY:
            _remove(folder / name / made)


def _write_samples(folder: Path, seed: int) -> None:
    for name in LOADERS:
        (folder / name).mkdir(parents=True)
    mdp = combination_lock(2, permute_actions=seed)
    mdp.save(folder / "mdp-json" / "mdp.json")
    garnet(4, seed=seed).save(folder / "mdp-npz" / "mdp.npz")
    garnet(4, seed=seed).save(folder / "mdp-mapped" / "mdp.npz")
    model = explore(TabularWorld(mdp, seed=seed), RMax(), gamma=0.9, samples=300).reset_model
    model.to(2).save(folder / "reset-model-counted")
    network(2, 3, seed).save_reset_model(folder / "reset-model-network")
    (folder / "network-policy" / "policy.safetensors").write_bytes(network(2, 3, seed).encode())
    rounds = folder / "rounds"
    options: dict[str, Any] = {"gamma": 0.9, "rounds": 2, "visits": 20, "record": True, "progress": False}
    explore(TabularWorld(mdp, seed=seed), ModelBased(), checkpoint=rounds, **options)
    frozen_lake = GymWorld("FrozenLake-v1", seed=seed)
    explore(frozen_lake, gamma=0.9, samples=400, checkpoint=folder / "counts")
    settings = ExploreSettings(environment="dcl/2", rounds=1, visits=20, samples=2_000, seed=seed)
    explore_into(folder / "explored", settings, progress=False)
    compare(Comparison(methods=("r-max",), environments=("dcl/2",), seeds=1, budget=300 + seed), folder / "comparison")
    _write_returns(folder / "returns", seed)
    run_study(_study(1 + seed), folder / "experiment")
    _write_labels(folder / "labels" / "labels.npz", seed)
    _write_cloned(folder / "cloned-policy", seed)
    _write_recurrent(folder / "recurrent-policy", seed)
    _write_layouts(folder / "layouts", seed)
    _write_training(folder / "training", seed)
    _write_trained(folder / "trained", folder / "training")
    _write_solved(folder / "solved", folder / "counts", seed)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class network(NetworkPolicy):  # noqa: N801
    """A small network for observations of so many numbers, by default those of MountainCar."""

    def __init__(self, inputs: int, actions: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        weights = [generator.normal(size=size).astype(np.float32) for size in ((inputs, 3), (3, actions))]
        layers = [Layer(weight, np.zeros(weight.shape[1], np.float32), "tanh") for weight in weights]
        if inputs == 2:
            self.car = gymnasium.make("MountainCar-v0")
            seen, scale = self.car.observation_space, Normalisation(np.zeros(2), np.ones(2))
        else:
            seen, scale = spaces.Box(0.0, 1.0, (inputs,), dtype=np.float32), None
        super().__init__(seen, spaces.Discrete(actions), layers, normalisation=scale)

    def save_reset_model(self, folder: Path) -> None:
        """Write a reset model that walks it."""
        cells = GridCells(3, self.car.observation_space.low, self.car.observation_space.high)  # type: ignore[attr-defined]
        world = GymWorld(self.car, cells=cells)
        uniform = np.full((world.num_states, world.num_actions), 1.0 / world.num_actions)
        stored = world.stored_discretisation()
        ResetModel([uniform, self], gamma=0.9, visited=[np.ones(9) / 9], discretisation=stored).save(folder)


def _study(seeds: int) -> Study:
    chosen = EXPERIMENT
    return Study(
        preset="paper-figures",
        environments=(chosen.environment,),
        depths=(chosen.depth,),
        optimizers=(chosen.optimizer,),
        seeds=seeds,
    )


def _signposts(seed: int) -> list[Any]:
    SIGNPOSTS.seed(seed)
    return [SIGNPOSTS.sample() for _ in range(6)]


def _write_labels(path: Path, seed: int) -> None:
    seen, likely = _signposts(seed), np.full((3, 2), 0.5)
    write_labels(path, [Labelled(seen[:3], likely, [4, 7, 1]), Labelled(seen[3:], likely, [0, 1, 2])])


def _write_cloned(folder: Path, seed: int) -> None:
    symbols = Symbols.of(SIGNPOSTS, _signposts(0))
    assert symbols is not None
    ClonedPolicy(network(symbols.width, 2, seed), symbols, [0, 2]).save(folder)


def _write_returns(folder: Path, seed: int) -> None:
    given = TaskComparison(methods=("frontier",), environments=("FrozenLake-v1",), seeds=1, budget=600 + seed)
    compare(given, folder)


def _write_recurrent(folder: Path, seed: int) -> None:
    """A policy that remembers two numbers, of what is seen beside signposts."""
    inputs = SeenInputs.of(SIGNPOSTS, _signposts(0))
    generator = np.random.default_rng(seed)
    sizes = {"seen": inputs.width, "wide": 3, "gates": 6, "memory": 2, "mixed": 3, "actions": 2}
    sizes |= {"actions and none": 3, "wide and memory": 5}
    weights = {
        name: generator.normal(size=[sizes[word] for word in words]).astype(np.float32)
        for name, words in WEIGHTS.items()
    }
    RecurrentPolicy(inputs, weights, [0, 2], sharpness=1.5).save(folder)


def _write_layouts(folder: Path, seed: int) -> None:
    """What a stage of a study of layouts leaves, its networks aside."""
    study = layouts_study.study_folder(folder)
    with study.claim({"seed": seed}):
        (folder / "0003").mkdir()
        _write_labels(folder / "0003" / "labels.npz", seed)
        ours = layouts_study.owner(study, folder / "0003")
    explored: dict[str, Any] = {
        "layouts": 3,
        "samples": 900 + seed,
        "found": 2,
        "set_aside": 1,
        "failed": 0,
        "labels": 6,
    }
    explored |= {"first_rewards": [40, None, 7], "report": "3 layouts", "seconds": 1.5}
    write_json(folder / "0003" / "explored.json", layouts_study.EXPLORED, explored | ours)
    tested: dict[str, Any] = {"solved": 40, "tested": 50, "low": 0.66, "high": 0.9, "steps": 4_000 + seed}
    tested |= {"failed": [7], "seconds": 2.5}
    write_json(folder / "0003" / "tested.json", layouts_study.TESTED, tested | ours)


def _write_trained(folder: Path, training: Path) -> None:
    """The same training, to be acted by."""
    shutil.copytree(training, folder, dirs_exist_ok=True)


def _write_training(folder: Path, seed: int) -> None:
    from curious_explorer.sb3.training import train_into
    from curious_explorer.sb3.training_settings import TrainingSettings

    given = {"n_steps": 16, "batch_size": 16}
    settings = TrainingSettings(
        environment="CartPole-v1", samples=64, num_envs=1, evaluation_episodes=1, hyperparameters=given, seed=seed
    )
    train_into(folder, settings)
    for path in folder.iterdir():
        if path.name not in ("training.json", "checkpoint.safetensors"):
            path.unlink()


def _write_solved(folder: Path, counts: Path, seed: int) -> None:
    """What a run of `solve` keeps of its stages, and its agent: the plan on the counts of an exploration."""
    settings = SolveSettings(environment="FrozenLake-v1", samples=5_000, seed=seed)
    with solve_folder(folder).claim(asdict(settings)):
        shutil.copytree(counts, folder / "exploration")
        run = _solve_run(folder)
        run.keep("layout", {"change": False, "layout": None})
        run.keep("look", {"samples": 200 + seed, "positive": True, "price": 0.0, "best_return": 1.0})
        keep(folder, AGENT_FILE, AGENT, "agent", {"kind": "plan", "folder": "exploration"})


def _solve_run(folder: Path) -> SolveRun:
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
    settings, run = solve_folder(folder).settings(), _solve_run(folder)
    if not run.read_stages():
        return None
    agent = load_policy(folder)
    return settings, run.stages, run.used, agent.table, agent.discretisation.description()  # type: ignore[attr-defined]


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
    "training": (_training, CheckpointError),
    "trained": (_trained, CheckpointError),
    "solved": (_solved, (StudyError, CheckpointError)),
}
"""How each is read, and the error that it may raise; a folder with others in it may raise theirs, which name them."""
BY_NAME = ("mdp-json", "mdp-npz", "mdp-mapped", "network-policy", "labels")
"""Single files, which users name: one that is not there is a FileNotFoundError, and a folder an IsADirectoryError."""
