"""The improvement phase: learn for the world's own reward from the resets that exploration found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.callbacks.events import EVALUATION, LEARN, tell
from curious_explorer.learners.actor_critic import ActorCritic, default_horizon
from curious_explorer.learners.moving_starts_world import MovingStartsWorld
from curious_explorer.learners.optimizer import (
    Evaluation,
    Optimizer,
    OptimizerResult,
    Watch,
    check_budget,
    check_learned,
    check_optimizer,
)
from curious_explorer.resets.moving_starts import MovingStarts
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.starts import ADAPTIVE, starts_of
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, World, check_world

EVALUATION_EPISODES = 1_000


def improve(
    world: World,
    optimizer: Optimizer,
    reset_model: ResetModel | None,
    *,
    gamma: float,
    budget: int | None = None,
    evaluation_episodes: int = EVALUATION_EPISODES,
    watch: Watch | None = None,
    starts: str | MovingStarts = ADAPTIVE,
) -> OptimizerResult:
    """Learn for the world's own reward, then measure the policy from the world's own start.

    Args:
        world: where to act; every step is counted in ``world.samples``.
        optimizer: `TRPO`, `Reinforce`, `ModelBased`, or anything with their signature.
        reset_model: where episodes begin; None means the world's start, which is learning without Curious Explorer.
        gamma: the discount.
        budget: the most steps to learn with, roll-ins included; the optimizer's own default if None.
        evaluation_episodes: episodes from the start that measure the result, as ``result.evaluation``. Their steps are
            counted by the world and reported there, beside the budget. Zero leaves the measurement out.
        watch: called with the policy and the steps so far, whenever there is a new policy; or a `Callback`, which is
            told more of every batch, and of the measurement.
        starts: "adaptive": episodes begin near the reward and move back as they are learned, where the reset model has
            counts (from `Frontier` and other explorers that count), for optimizers that learn from batches of episodes
            (`TRPO`, `Reinforce`); else, and with "mixture", in the reset model as it is weighed. "spread" and
            "uniform": that weighting. See `resets.moving_starts`.
    """
    check_world(world)
    check_optimizer(optimizer)
    gamma, budget = check_gamma(gamma), check_budget(budget)
    check_count(evaluation_episodes, "evaluation_episodes")
    if reset_model is not None:
        if not isinstance(reset_model, ResetModel):
            raise ValueError(
                f"reset_model is {type(reset_model).__name__}, expected a ResetModel: exploration.reset_model, or "
                "ResetModel.load(folder)"
            )
        reset_model.check_world(world)
    before = world.samples
    watching: dict[str, Any] = {} if watch is None else {"watch": watch}
    place, reset = _place(world, optimizer, reset_model, starts, gamma)
    learned = optimizer(place, reset, gamma=gamma, budget=budget, **watching)
    check_learned(learned, world.samples - before, budget)
    if evaluation_episodes == 0:
        return learned
    measured = measure_value(world, learned.policy, gamma=gamma, episodes=evaluation_episodes)
    numbers = {"value": measured.value, "standard_error": measured.standard_error}
    tell(watch, EVALUATION, LEARN, learned.samples, numbers, lambda: learned.policy)
    return replace(learned, evaluation=measured)


def _place(
    world: World, optimizer: Optimizer, reset_model: ResetModel | None, starts: str | MovingStarts, gamma: float
) -> tuple[World, ResetModel | RollIn | None]:
    """Where an optimizer acts, and what it is told about where episodes begin."""
    if reset_model is None:
        return world, None
    if starts == ADAPTIVE and not isinstance(optimizer, ActorCritic):
        return world, reset_model
    found = starts_of(reset_model, starts, gamma=gamma)
    if isinstance(found, MovingStarts):
        return MovingStartsWorld(world, found, reset_model.roll_in), reset_model
    return world, reset_model if starts == ADAPTIVE else found


def measure_value(world: World, policy: Floats, *, gamma: float, episodes: int) -> Evaluation:
    """The normalised value of a policy from the world's start, by Monte Carlo."""
    # Cutting episodes off where gamma**horizon is 0.0001 costs at most that much of a value in [0, 1].
    horizon = 2 * default_horizon(gamma)
    check_count(episodes, "episodes", least=1)
    batch = world.episodes(policy, EpisodeBatch(episodes=episodes, horizon=horizon, gamma=gamma))
    values = (1.0 - gamma) * batch.returns
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")
    return Evaluation(float(values.mean()), error, len(values), batch.samples)
