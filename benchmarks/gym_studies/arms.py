"""The arms, each from an id, a number of samples and a seed; every step of the environment is counted.

ours       `solve_task` with nothing else said: look, explore by counts, PPO from starts that move back from the reward
plain      PPO from the environment's own start
rnd        PPO with random network distillation, as published
noveld     PPO with NovelD
counts     PPO with a bonus of counts
planning   `Frontier` and the plan on its counts: no network

All that learn by PPO have its settings of `sb3.training_settings`. A run ends when three evaluations in a row reach 0.9
of the best return, or with its samples; evaluations on the way are counted where a run ends by them, that is in all
arms alike. What is reported comes from fifty further episodes from the environment's own start.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.gym_studies.tasks import TASKS, Task
from curious_explorer import Frontier, GymWorld, explore, load_policy, solve_task
from curious_explorer.gym.agents import CellAgent, play_episodes
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.sb3.training import Evaluated, train_into
from curious_explorer.sb3.training_settings import TrainingSettings

ARMS = {
    "ours": "ours",
    "plain": "plain PPO",
    "rnd": "RND",
    "noveld": "NovelD",
    "counts": "counts",
    "planning": "planning alone",
}
BONUSES = ("rnd", "noveld", "counts")
SOLVED = 0.9
"""Of the best return."""
IN_A_ROW = 3
EPISODES = 50

Run = dict[str, Any]


def run_named(named: tuple[str, str, int, int]) -> Run:
    """The run of a task, an arm and a seed, with so many samples in all."""
    name, arm, seed, samples = named
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: small networks are slower on more
    warnings.simplefilter("ignore")
    task, began = TASKS[name], time.process_time()
    with TemporaryDirectory() as folder:
        found: Run = ARM_FUNCTIONS[arm](task, seed, samples, Path(folder) / "run")
    fraction = found["return"] / task.best
    return (
        {"task": name, "arm": arm, "seed": seed, "given": samples, "fraction": fraction, "solved": fraction >= SOLVED}
        | found
        | {"seconds": time.process_time() - began}
    )


def run_ours(task: Task, seed: int, samples: int, folder: Path) -> Run:
    """`solve_task`."""
    solved = solve_task(task.environment, samples=samples, seed=seed, out=folder)
    summary = solved.summary
    return {
        "return": summary["return_mean"],
        "samples": summary["samples"],
        "first_reward": summary["first_reward"],
        "explored": summary["explored"],
        "verdict": summary["verdict"],
    }


def run_ppo(task: Task, seed: int, samples: int, folder: Path, algorithm: str) -> Run:
    """PPO, with a bonus or without."""
    settings = TrainingSettings(
        environment=task.environment,
        algorithm=algorithm,
        samples=samples,
        seed=seed,
        layout=_layout(task, seed),
        deterministic=False,
    )

    def solved(evaluations: Any) -> bool:
        last: list[Evaluated] = evaluations[-IN_A_ROW:]
        return len(last) == IN_A_ROW and all(each.mean_return >= SOLVED * task.best for each in last)

    training = train_into(folder, settings, until=solved)
    env = with_layout(make_by_id(task.environment), settings.layout)
    played = play_episodes(env, load_policy(folder), EPISODES, seed=1_000_000 + seed)
    evaluated = sum(each.evaluation_steps for each in training.evaluations)
    return {
        "return": played.mean_return,
        "samples": training.samples + evaluated,
        "curve": [(each.samples, each.mean_return) for each in training.evaluations],
    }


def run_planning(task: Task, seed: int, samples: int, _: Path) -> Run:
    """Explore by counts until nothing is left or a reward was met and as much again; then act by the plan."""
    world = GymWorld(task.environment, seed=seed, layout=_layout(task, seed), time_limits=True)
    explorer = Frontier(after_reward=1.0, least_after_reward=samples // 20)
    exploration = explore(world, explorer, gamma=0.99, samples=samples - world.samples)
    env = with_layout(make_by_id(task.environment), _layout(task, seed))
    policy = exploration.policy
    assert policy is not None
    agent = CellAgent(np.asarray(policy), world.discretisation, seed=seed)
    played = play_episodes(env, agent, EPISODES, seed=1_000_000 + seed)
    return {"return": played.mean_return, "samples": world.samples, "first_reward": exploration.first_reward}


ARM_FUNCTIONS: dict[str, Any] = {
    "ours": run_ours,
    "plain": lambda task, seed, samples, folder: run_ppo(task, seed, samples, folder, "ppo"),
    "planning": run_planning,
    **{
        name: lambda task, seed, samples, folder, name=name: run_ppo(task, seed, samples, folder, name)
        for name in BONUSES
    },
}


def _layout(task: Task, seed: int) -> int | None:
    return seed if task.layouts else None
