"""Optimizers: one protocol, and those that come with the library."""

from curious_explorer.optimizers.protocol import Evaluation, LearningCurve, Optimizer, OptimizerResult, Reward
from curious_explorer.optimizers.reinforce import Reinforce
from curious_explorer.optimizers.trpo import TRPO

__all__ = ["TRPO", "Evaluation", "LearningCurve", "Optimizer", "OptimizerResult", "Reinforce", "Reward"]
