"""Gymnasium environments as worlds: discretised observations, action sets, rollouts, and restarts for any learner.

Names are loaded when first used: `gymnasium.make` of one of our environments needs none of the compiled kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curious_explorer.gym.action_set import ActionSet as ActionSet
    from curious_explorer.gym.automatic_cells import choose_cells as choose_cells
    from curious_explorer.gym.cells import Cells as Cells
    from curious_explorer.gym.cells import DiscreteCells as DiscreteCells
    from curious_explorer.gym.cells import FunctionCells as FunctionCells
    from curious_explorer.gym.cells import GridCells as GridCells
    from curious_explorer.gym.cells import QuantileCells as QuantileCells
    from curious_explorer.gym.cells import default_cells as default_cells
    from curious_explorer.gym.coded_cells import JointCells as JointCells
    from curious_explorer.gym.coded_cells import NumberCells as NumberCells
    from curious_explorer.gym.coded_cells import SymbolCells as SymbolCells
    from curious_explorer.gym.colour_places import ColourPlaces as ColourPlaces
    from curious_explorer.gym.colour_places import PlaceCells as PlaceCells
    from curious_explorer.gym.discovered_cells import HashedCells as HashedCells
    from curious_explorer.gym.discovered_cells import MiniGridCells as MiniGridCells
    from curious_explorer.gym.discretisation import Discretisation as Discretisation
    from curious_explorer.gym.feature_cells import FeatureCells as FeatureCells
    from curious_explorer.gym.flat_actions import FlatActions as FlatActions
    from curious_explorer.gym.gym_world import GymWorld as GymWorld
    from curious_explorer.gym.minari_dataset import EpisodeRecorder as EpisodeRecorder
    from curious_explorer.gym.minari_dataset import write_minari as write_minari
    from curious_explorer.gym.picture_cells import PictureCells as PictureCells
    from curious_explorer.gym.restart_wrapper import RestartWrapper as RestartWrapper

_CELLS = ("Cells", "DiscreteCells", "FunctionCells", "GridCells", "QuantileCells", "default_cells")
_HOME = {
    "ActionSet": "action_set",
    "Discretisation": "discretisation",
    "FlatActions": "flat_actions",
    "EpisodeRecorder": "minari_dataset",
    "GymWorld": "gym_world",
    "RestartWrapper": "restart_wrapper",
    "write_minari": "minari_dataset",
    **dict.fromkeys(_CELLS, "cells"),
    **dict.fromkeys(("HashedCells", "MiniGridCells"), "discovered_cells"),
    **dict.fromkeys(("JointCells", "NumberCells", "SymbolCells"), "coded_cells"),
    "FeatureCells": "feature_cells",
    "PictureCells": "picture_cells",
    **dict.fromkeys(("ColourPlaces", "PlaceCells"), "colour_places"),
    "choose_cells": "automatic_cells",
}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
