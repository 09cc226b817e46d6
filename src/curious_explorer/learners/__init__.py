"""Optimizers: one protocol, and those that come with the library."""

from __future__ import annotations

from curious_explorer.learners.exact_planner import Planner
from curious_explorer.learners.improve import improve
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.off_policy import OffPolicy
from curious_explorer.learners.optimizer import Evaluation, LearningCurve, Optimizer, OptimizerResult
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.worlds.world import Reward

__all__ = [
    "TRPO",
    "Evaluation",
    "LearningCurve",
    "ModelBased",
    "OffPolicy",
    "Optimizer",
    "OptimizerResult",
    "Planner",
    "Reinforce",
    "Reward",
    "improve",
]
