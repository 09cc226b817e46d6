"""Optimizers: one protocol, and those that come with the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curious_explorer.optimizers.model_based import ModelBased
from curious_explorer.optimizers.off_policy import OffPolicy
from curious_explorer.optimizers.planner import Planner
from curious_explorer.optimizers.protocol import Evaluation, LearningCurve, Optimizer, OptimizerResult, Reward
from curious_explorer.optimizers.reinforce import Reinforce
from curious_explorer.optimizers.trpo import TRPO

if TYPE_CHECKING:
    from curious_explorer.optimizers.sb3 import SB3 as SB3

__all__ = [
    "SB3",
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


def __getattr__(name: str) -> Any:
    if name == "SB3":  # not at once: few need it, and it brings worlds of observations with it
        from curious_explorer.optimizers.sb3 import SB3

        return SB3
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
