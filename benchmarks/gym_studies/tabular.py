"""The tabular tasks: TRPO on tables, from the start and from explored resets, and a count bonus.

Gymnasium's toy-text environments show their transitions, so a policy's value is known exactly: it is given as the share
of the way from the uniform policy's value to the best possible one, for the rewards of Taxi and CliffWalking are dense
and any policy that avoids blunders is worth most of the best in absolute terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.gym_studies.tasks import WEIGHTINGS
from curious_explorer import TRPO, FiniteMDP, TabularWorld, evaluate, explore, improve, solve
from curious_explorer.explorers.q_learning import UCBQLearning

GAMMA = 0.99


class TabularTask(NamedTuple):
    """One task; see the module."""

    name: str
    environment: str
    arguments: dict[str, Any]
    total: int
    note: str


TABULAR_TASKS = {
    task.name: task
    for task in (
        TabularTask("frozen-lake-8x8", "FrozenLake-v1", {"map_name": "8x8"}, 3_000_000, "slippery, reward at the goal"),
        TabularTask("taxi", "Taxi-v4", {}, 3_000_000, "dense penalties"),
        TabularTask("cliff-walking", "CliffWalking-v1", {}, 1_000_000, "dense penalties"),
    )
}


def run_tabular(task: TabularTask, arm: str, seed: int) -> dict[str, Any]:
    """One run of one arm."""
    import gymnasium

    mdp = FiniteMDP.from_gymnasium(gymnasium.make(task.environment, **task.arguments))
    world = TabularWorld(mdp, seed=seed)
    learner = TRPO(updates=100_000, episodes=100)
    exploration = 0
    if arm == "distillation":  # on tables, the bonus that people use is one of counts
        learned = UCBQLearning()(world, gamma=GAMMA, budget=task.total)
        policy = learned.policy
    else:
        resets = None
        if arm in WEIGHTINGS:
            budget = task.total // 40
            explored = explore(
                world, TRPO(updates=100_000), gamma=GAMMA, rounds=10, budget=budget, visits=300, progress=False
            )
            resets, exploration = explored.reset_model.weighted(WEIGHTINGS[arm]), world.samples
        left = task.total - exploration
        learned = improve(world, learner, resets, gamma=GAMMA, budget=left, evaluation_episodes=0)
        policy = learned.policy
    values = [float(mdp.start @ value) for value in (
        evaluate(mdp, np.asarray(policy), gamma=GAMMA),
        evaluate(mdp, mdp.uniform_policy(), gamma=GAMMA),
        solve(mdp, gamma=GAMMA).values,
    )]  # fmt: skip
    own, uniform, best = values
    return {
        "task": task.name,
        "arm": arm,
        "seed": seed,
        "return": own,
        "fraction": (own - uniform) / (best - uniform),
        "exploration_samples": exploration,
        "samples": world.samples,
        "cells": 0,
        "curve": [],
    }
