"""The commands that `benchmarks.crashes` and `benchmarks.random_kills` stop and resume, each as small as it can be.

Each is a function of a folder, and goes on there when it is called again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare
from curious_explorer.studies.exploration_study import ExploreSettings, explore_into
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.reproduction import reproduce

Command = Callable[[Path], None]
CLOCK = ("times.csv", ".time.json", "timings.json", "report.html", "comparison-speed.png", "comparison-speed.pdf")
"""What holds seconds."""
THEIRS = ("model.zip", "vecnormalize.pkl")
"""What Stable-Baselines3 writes in formats of its own, with the time of day in them; and TensorBoard's logs."""


def explore_table(folder: Path) -> None:
    """Two rounds of Algorithm 2 on a table."""
    explore_into(folder, ExploreSettings(environment="dcl/2", rounds=2, visits=20, samples=4_000), progress=False)


def explore_steps(folder: Path) -> None:
    """`Frontier` in an environment."""
    explore_into(folder, ExploreSettings(environment="CliffWalking-v1", cells="identity", samples=300), progress=False)


def explore_rounds(folder: Path) -> None:
    """Two rounds of Algorithm 2 in an environment."""
    settings = ExploreSettings(
        environment="CliffWalking-v1",
        cells="identity",
        optimizer="model-based",
        gamma=0.9,
        rounds=2,
        visits=20,
        samples=3_000,
    )
    explore_into(folder, settings, progress=False)


def train(folder: Path) -> None:
    """PPO with three evaluations."""
    from curious_explorer.sb3.training import train_into
    from curious_explorer.sb3.training_settings import TrainingSettings

    settings = TrainingSettings(
        environment="CartPole-v1",
        samples=96,
        num_envs=1,
        evaluate_every=32,
        evaluation_episodes=1,
        hyperparameters={"n_steps": 16, "batch_size": 16},
    )
    train_into(folder, settings)


def solve(folder: Path) -> None:
    """From an environment to an agent: a look, a plain trial, an exploration, a training, a choice."""
    from curious_explorer.studies.solving import solve_task

    solve_task("FrozenLake-v1?is_slippery=False", samples=5_000, out=folder)


def compare_two(folder: Path, executor: str = "inline") -> None:
    """A comparison of two runs, with its tables."""
    given = Comparison(methods=("r-max",), environments=("dcl/2",), seeds=2, budget=300)
    compare(given, folder, resume=(folder / "comparison.json").exists(), executor=executor)


def reproduce_small(folder: Path, executor: str = "inline") -> None:
    """Two runs of one of the paper's experiments, with tables, figures, video and page."""
    study = Study(preset="fixed", environments=("dcl",), depths=(2,), optimizers=("trpo",), seeds=2)
    reproduce(study, folder, resume=(folder / "study.json").exists(), executor=executor)


COMMANDS: dict[str, Command] = {
    "explore, a table": explore_table,
    "explore, steps": explore_steps,
    "explore, rounds": explore_rounds,
    "train": train,
    "compare": compare_two,
    "compare, processes": functools.partial(compare_two, executor="processes"),
    "compare, ray": functools.partial(compare_two, executor="ray"),
    "solve": solve,
    "reproduce": reproduce_small,
}


def files_of(folder: Path) -> dict[str, bytes]:
    """What a folder holds, but for seconds, locks, and what others write with the time of day in it."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        name: content
        for name, content in found.items()
        if not name.endswith((*CLOCK, *THEIRS, ".lock")) and "tensorboard/" not in name
    }


def different(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """The names of files that are not the same in both."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
