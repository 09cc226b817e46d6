"""Any Gymnasium environment as a world: cells of observations, menus of actions, walks by restart and step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curious_explorer.sampling.gym.cells import (
    Cells,
    DiscreteCells,
    FunctionCells,
    GridCells,
    QuantileCells,
    default_cells,
)
from curious_explorer.sampling.gym.hashed_cells import HashedCells, MiniGridCells
from curious_explorer.sampling.gym.menu import ActionMenu
from curious_explorer.sampling.gym.senses import Senses

if TYPE_CHECKING:
    from curious_explorer.sampling.gym.world import GymWorld as GymWorld

__all__ = [
    "ActionMenu",
    "Cells",
    "DiscreteCells",
    "FunctionCells",
    "GridCells",
    "GymWorld",
    "HashedCells",
    "MiniGridCells",
    "QuantileCells",
    "Senses",
    "default_cells",
]


def __getattr__(name: str) -> Any:
    if name == "GymWorld":  # not at once: it brings the compiled kernels with it
        from curious_explorer.sampling.gym.world import GymWorld

        return GymWorld
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
