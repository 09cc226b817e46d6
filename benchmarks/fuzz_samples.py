"""Small files of every format that is read, written by the library itself, for `benchmarks.fuzz`.

``python -m benchmarks.fuzz_samples tests/data/VERSION`` keeps those of a release, with digests of what is read of them;
`tests/test_files_of_releases.py` reads them from then on.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
from gymnasium import spaces

from benchmarks.fuzz_digest import digest
from benchmarks.fuzz_files import EXPERIMENT, LOADERS, SIGNPOSTS, learner_of_the_car, solve_run
from curious_explorer import GymWorld, ModelBased, ResetModel, TabularWorld, explore
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.explorers.layout_files import write_labels
from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.explorers.rmax import RMax
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cells import GridCells
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.gym.network_policy import Layer, NetworkPolicy, Normalisation
from curious_explorer.gym.recurrent_policy import WEIGHTS, RecurrentPolicy
from curious_explorer.gym.seen_inputs import SeenInputs
from curious_explorer.gym.symbols import Symbols
from curious_explorer.storage import write_json
from curious_explorer.studies import comparison_study, exploration_study, layouts_study, solving_layouts
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare
from curious_explorer.studies.exploration_study import ExploreSettings, explore_into
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.reproduction import run_study
from curious_explorer.studies.solve_files import (
    AGENT,
    AGENT_FILE,
    LOG,
    SUMMARY,
    SUMMARY_FILE,
    keep,
    solve_folder,
)
from curious_explorer.studies.solve_settings import SolveSettings
from curious_explorer.studies.task_comparison import TaskComparison

FINISHED = ("finished", "layouts-summary")
"""Of these the summary is read, too."""
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


def write_samples(folder: Path, *, seed: int = 0, as_far_as_can_be: bool = False) -> None:
    """Write a folder of each format that is read; another seed is another run, of the same shapes.

    ``as_far_as_can_be`` leaves out, with a word, what cannot be written here, for want of a library say.
    """
    for name, write in WRITERS.items():
        (folder / name).mkdir(parents=True)
        try:
            with without_pictures():
                write(folder / name, seed)
        except Exception as error:
            if not as_far_as_can_be:
                raise
            shutil.rmtree(folder / name)
            print(f"left out: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        for made in READ_BY_NOBODY:
            if made != SUMMARY_FILE or name not in FINISHED:
                _remove(folder / name / made)


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


def _write_json(folder: Path, seed: int) -> None:
    combination_lock(2, permute_actions=seed).save(folder / "mdp.json")


def _write_arrays(folder: Path, seed: int) -> None:
    garnet(4, seed=seed).save(folder / "mdp.npz")


def _write_counted(folder: Path, seed: int) -> None:
    world = TabularWorld(combination_lock(2, permute_actions=seed), seed=seed)
    explore(world, RMax(), gamma=0.9, samples=300).reset_model.to(2).save(folder)


def _write_reset_network(folder: Path, seed: int) -> None:
    network(2, 3, seed).save_reset_model(folder)


def _write_network(folder: Path, seed: int) -> None:
    (folder / "policy.safetensors").write_bytes(network(2, 3, seed).encode())


def _write_rounds(folder: Path, seed: int) -> None:
    world = TabularWorld(combination_lock(2, permute_actions=seed), seed=seed)
    explore(world, ModelBased(), checkpoint=folder, gamma=0.9, rounds=2, visits=20, record=True, progress=False)


def _write_counts(folder: Path, seed: int) -> None:
    explore(GymWorld("FrozenLake-v1", seed=seed), gamma=0.9, samples=400, checkpoint=folder)


def _write_explored(folder: Path, seed: int) -> None:
    settings = ExploreSettings(environment="dcl/2", rounds=1, visits=20, samples=2_000, seed=seed)
    explore_into(folder, settings, progress=False)


def _write_comparison(folder: Path, seed: int) -> None:
    compare(Comparison(methods=("r-max",), environments=("dcl/2",), seeds=1, budget=300 + seed), folder)


def _study(seeds: int) -> Study:
    chosen = EXPERIMENT
    return Study(
        preset="paper-figures",
        environments=(chosen.environment,),
        depths=(chosen.depth,),
        optimizers=(chosen.optimizer,),
        seeds=seeds,
    )


def _write_experiment(folder: Path, seed: int) -> None:
    run_study(_study(1 + seed), folder)


def _signposts(seed: int) -> list[Any]:
    SIGNPOSTS.seed(seed)
    return [SIGNPOSTS.sample() for _ in range(6)]


def _write_labels(folder: Path, seed: int) -> None:
    seen, likely = _signposts(seed), np.full((3, 2), 0.5)
    write_labels(folder / "labels.npz", [Labelled(seen[:3], likely, [4, 7, 1]), Labelled(seen[3:], likely, [0, 1, 2])])


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
        _write_labels(folder / "0003", seed)
        ours = layouts_study.owner(study, folder / "0003")
    explored: dict[str, Any] = {
        "layouts": 3,
        "samples": 900 + seed,
        "found": 2,
        "set_aside": 1,
        "failed": 0,
        "labels": 6,
    }
    explored |= {"first_rewards": [40, None, 7], "report": "3 layouts", "repeatable": True, "seconds": 1.5}
    write_json(folder / "0003" / "explored.json", layouts_study.EXPLORED, explored | ours)
    tested: dict[str, Any] = {"solved": 40, "tested": 50, "low": 0.66, "high": 0.9, "steps": 4_000 + seed}
    tested |= {"failed": [7], "seconds": 2.5}
    write_json(folder / "0003" / "tested.json", layouts_study.TESTED, tested | ours)


def _write_training(folder: Path, seed: int) -> None:
    from curious_explorer.sb3.training import train_into
    from curious_explorer.sb3.training_settings import TrainingSettings

    given = {"n_steps": 16, "batch_size": 16, "net_arch": [8, 8]}
    settings = TrainingSettings(
        environment="CartPole-v1", samples=64, num_envs=1, evaluation_episodes=1, hyperparameters=given, seed=seed
    )
    train_into(folder, settings)
    for path in folder.iterdir():
        if path.name not in ("training.json", "checkpoint.safetensors"):
            path.unlink()


def _write_solved(folder: Path, seed: int) -> None:
    """What a run of `solve` keeps of its stages, and its agent: the plan on the counts of an exploration."""
    settings = SolveSettings(environment="FrozenLake-v1", samples=5_000, seed=seed)
    with solve_folder(folder).claim(asdict(settings)):
        _write_counts(folder / "exploration", seed)
        run = solve_run(folder)
        run.keep("layout", {"change": False, "layout": None})
        run.keep("look", {"samples": 200 + seed, "positive": True, "price": 0.0, "best_return": 1.0})
        keep(folder, AGENT_FILE, AGENT, "agent", {"kind": "plan", "folder": "exploration"})


def _write_finished(folder: Path, seed: int) -> None:
    """What a run of `solve` came to, and what one of its trainings has met."""
    settings = SolveSettings(environment="FrozenLake-v1", samples=5_000, seed=seed)
    with solve_folder(folder).claim(asdict(settings)):
        keep(folder, "plain_rewards.json", LOG, "log", {"steps": 96 + seed, "first": 40, "best": 1.0, "told": [0, 1]})
        summary: dict[str, Any] = {"environment": "FrozenLake-v1", "seed": seed, "success": 0.7, "success_return": 0.5}
        summary |= {"return_mean": 0.7, "return_best_seen": 1.0, "samples": 4_900 + seed, "evaluation_samples": 2_000}
        summary |= {"explored": 1_200, "first_reward": None, "cells": {"met": 16, "are": "numbers"}}
        agent = {"kind": "plan", "folder": "exploration"}
        summary |= {"settings": {"asked": asdict(settings), "layout": None, "agent": agent}, "verdict": "Not solved."}
        write_json(folder / SUMMARY_FILE, SUMMARY, summary)


def _write_layouts_summary(folder: Path, seed: int) -> None:
    """What a run over many layouts came to, and how far its last stage stands."""
    study = layouts_study.study_folder(folder)
    with study.claim({"seed": seed}):
        (folder / "0003").mkdir()
        standing = {"layouts": 3, "found": 2, "done": 2, "samples": 900 + seed, "seconds": 1.5}
        write_json(folder / "0003" / "standing.json", layouts_study.STANDING, standing | {"settings": study.digest()})
        summary: dict[str, Any] = {"environment": "FrozenLake-v1", "success": 0.8, "interval": [0.66, 0.9]}
        summary |= {"tested": 50, "layouts": 3, "found": 2, "set_aside": 1, "failed": 0, "report": "3 layouts"}
        summary |= {"repeatable": True, "tests_failed": [7], "samples": 900 + seed, "evaluation_samples": 4_000}
        summary |= {"labels": 6, "settings": {"seed": seed}, "verdict": "0.8 of 50 layouts never seen are solved"}
        write_json(folder / SUMMARY_FILE, solving_layouts.SUMMARY, summary)


def _write_steps(folder: Path, seed: int) -> None:
    from curious_explorer.sb3.step_log import StepLog

    car = gymnasium.make("MountainCar-v0")
    log = StepLog(car)
    log.begin(ActionSet.of(car.action_space))
    watched = log.around(car)
    for number in range(3):
        watched.reset(seed=seed + number)
        for action in (0, 1, 2, 2):
            watched.step(action)
    log.save(folder)


def _write_buffer(folder: Path, seed: int) -> None:
    from curious_explorer.sb3.kept_buffer import keep_buffer
    from curious_explorer.sb3.step_log import StepLog, recall

    car = gymnasium.make("MountainCar-v0")
    log = StepLog(car)
    log.begin(ActionSet.of(car.action_space))
    watched = log.around(car)
    watched.reset(seed=seed)
    for action in (0, 1, 2, 2, 1, 1):
        watched.step(action)
    learner = learner_of_the_car()
    recall(learner, log.arrays(), 1.0)
    keep_buffer(learner.model, 2, folder)


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "mdp-json": _write_json,
    "mdp-npz": _write_arrays,
    "mdp-mapped": _write_arrays,
    "reset-model-counted": _write_counted,
    "reset-model-network": _write_reset_network,
    "network-policy": _write_network,
    "cloned-policy": _write_cloned,
    "recurrent-policy": _write_recurrent,
    "labels": _write_labels,
    "layouts": _write_layouts,
    "rounds": _write_rounds,
    "counts": _write_counts,
    "explored": _write_explored,
    "comparison": _write_comparison,
    "returns": _write_returns,
    "experiment": _write_experiment,
    "steps": _write_steps,
    "replay-buffer": _write_buffer,
    "training": _write_training,
    "trained": _write_training,
    "solved": _write_solved,
    "finished": _write_finished,
    "layouts-summary": _write_layouts_summary,
}
"""By the names of `benchmarks.fuzz_files.LOADERS`."""


def main() -> None:
    folder = Path(sys.argv[1])
    write_samples(folder)
    found = {name: digest(read(folder / name)) for name, (read, _) in sorted(LOADERS.items())}
    (folder / "digests.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "added_since.json").write_text("[]\n")


if __name__ == "__main__":
    main()
