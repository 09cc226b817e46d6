"""The arms: PPO from the environment's own start, from explored resets, and with random network distillation.

Every step of the environment is counted where it is taken, roll-ins included, and a run ends when the samples of its
task are used up. What a policy is worth is measured from the environment's own start, on environments of its own whose
steps are not counted: measuring is ours, not the learner's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from benchmarks.gym_studies.distillation import DistillationBonus
from benchmarks.gym_studies.tasks import PPO_SETTINGS, WEIGHTINGS, Env, Task
from curious_explorer import GymWorld, ResetModel, RestartWrapper, explore
from curious_explorer.sb3.training_envs import Meter, MeteredEnv

NUM_ENVS = 8
EVALUATIONS = 8
EPISODES = 20


class Referee(BaseCallback):
    """Ends learning when the samples are used up, and measures the policy from time to time."""

    def __init__(self, meter: Meter, total: int, measure: Callable[[], float]) -> None:
        super().__init__()
        self.meter, self.total, self.measure = meter, total, measure
        self.every = max(1, (total - meter.taken) // EVALUATIONS)
        self.next = meter.taken + self.every
        self.curve: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        return self.meter.taken < self.total

    def _on_rollout_start(self) -> None:  # the policy has just been updated
        if self.meter.taken >= self.next:
            self.curve.append((self.meter.taken, self.measure()))
            self.next += self.every


def run(task: Task, arm: str, seed: int) -> dict[str, Any]:
    """One run of one arm: its curve, and the return of its last policy."""
    torch.set_num_threads(1)
    meter = Meter(2 * task.total)  # never met: the referee ends a run at its total, between two steps
    resets, cells = None, 0
    if arm in WEIGHTINGS:
        resets, meter.taken, cells = explored_resets(task, seed, WEIGHTINGS[arm])
    exploration = meter.taken

    def make() -> Env:
        env = MeteredEnv(task.make(seed), meter)
        if resets is None:
            return task.view(env)
        started = RestartWrapper(env, resets)
        return task.view(started if task.limit is None else TimeLimit(started, task.limit))

    envs: Any = VecNormalize(DummyVecEnv([make] * NUM_ENVS), norm_reward=False)
    if arm == "distillation":
        envs = DistillationBonus(envs, gamma=task.gamma, seed=seed)
    envs.seed(seed)
    model = PPO("MlpPolicy", envs, gamma=task.gamma, seed=seed, device="cpu", **(PPO_SETTINGS | task.ppo))
    statistics = model.get_vec_normalize_env()
    assert statistics is not None

    def measure() -> float:
        return mean_return(task, seed, model, statistics)

    referee = Referee(meter, task.total, measure)
    model.learn(10 * task.total, callback=referee)
    final = mean_return(task, seed + 1_000, model, statistics, episodes=2 * EPISODES)
    return {
        "task": task.name,
        "arm": arm,
        "seed": seed,
        "return": final,
        "fraction": final / task.best,
        "exploration_samples": exploration,
        "samples": meter.taken,
        "cells": cells,
        "curve": [*referee.curve, (meter.taken, final)],
    }


def explored_resets(task: Task, seed: int, weighting: str) -> tuple[ResetModel, int, int]:
    """Explore; returns the reset model, what it cost, and how many cells the visits saw."""
    world = GymWorld(lambda: task.make(seed), cells=task.cells(), seed=seed)
    exploration = explore(world, task.optimizer(), progress=False, **task.exploration)
    return exploration.reset_model.weighted(weighting), world.samples, int((exploration.total_visited > 0).sum())


def mean_return(task: Task, seed: int, model: PPO, statistics: VecNormalize, episodes: int = EPISODES) -> float:
    """The mean return of the policy (actions drawn, as in training) from the environment's own start."""
    env = task.view(task.make(seed % 1_000))
    total = 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=1_000_000 + seed * 1_000 + episode)
        ended = False
        while not ended:
            action, _ = model.predict(statistics.normalize_obs(np.asarray(observation)[None]), deterministic=False)
            observation, reward, terminated, truncated, _ = env.step(action[0])
            total += float(reward)
            ended = terminated or truncated
    env.close()
    return total / episodes
