"""Gymnasium environments as worlds: discretised observations, action sets, rollouts, and restarts for any learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cells import (
    Cells,
    DiscreteCells,
    FunctionCells,
    GridCells,
    HashedCells,
    MiniGridCells,
    QuantileCells,
    default_cells,
)
from curious_explorer.gym.discretisation import Discretisation

if TYPE_CHECKING:
    from curious_explorer.gym.gym_world import GymWorld as GymWorld
    from curious_explorer.gym.restart_wrapper import RestartWrapper as RestartWrapper

__all__ = [
    "ActionSet",
    "Cells",
    "DiscreteCells",
    "Discretisation",
    "FunctionCells",
    "GridCells",
    "GymWorld",
    "HashedCells",
    "MiniGridCells",
    "QuantileCells",
    "RestartWrapper",
    "default_cells",
]


def __getattr__(name: str) -> Any:
    if name == "GymWorld":  # not at once: it brings the compiled kernels with it
        from curious_explorer.gym.gym_world import GymWorld

        return GymWorld
    if name == "RestartWrapper":
        from curious_explorer.gym.restart_wrapper import RestartWrapper

        return RestartWrapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
