"""Optimizers: one protocol, and those that come with the library."""

from curious_explorer.optimizers.model_based import ModelBased
from curious_explorer.optimizers.off_policy import OffPolicy
from curious_explorer.optimizers.planner import Planner
from curious_explorer.optimizers.protocol import Evaluation, LearningCurve, Optimizer, OptimizerResult, Reward
from curious_explorer.optimizers.reinforce import Reinforce
from curious_explorer.optimizers.trpo import TRPO

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
]
