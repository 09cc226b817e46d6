"""Curious Explorer: exploration for agents that never see a reward.

The names below are loaded when first used, so that importing the package stays fast. Importing it also registers its
environments with Gymnasium: ``gymnasium.make("curious_explorer/CombinationLock-v0", depth=20)``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from curious_explorer.registration import register_environments

if TYPE_CHECKING:
    from curious_explorer.exact import evaluate as evaluate
    from curious_explorer.exact import solve as solve
    from curious_explorer.exact.max_visitation import max_visitation as max_visitation
    from curious_explorer.exact.visitation import visitation as visitation
    from curious_explorer.explorer import Exploration as Exploration
    from curious_explorer.explorer import explore as explore
    from curious_explorer.explorer import improve as improve
    from curious_explorer.mdp import FiniteMDP as FiniteMDP
    from curious_explorer.mdp import MDPBuilder as MDPBuilder
    from curious_explorer.mdp import RewardScale as RewardScale
    from curious_explorer.optimizers import SB3 as SB3
    from curious_explorer.optimizers import TRPO as TRPO
    from curious_explorer.optimizers import ModelBased as ModelBased
    from curious_explorer.optimizers import OffPolicy as OffPolicy
    from curious_explorer.optimizers import Planner as Planner
    from curious_explorer.optimizers import Reinforce as Reinforce
    from curious_explorer.reset import ResetModel as ResetModel
    from curious_explorer.sampling import TabularWorld as TabularWorld
    from curious_explorer.sampling import World as World
    from curious_explorer.sampling.gym import Cells as Cells
    from curious_explorer.sampling.gym import FunctionCells as FunctionCells
    from curious_explorer.sampling.gym import GridCells as GridCells
    from curious_explorer.sampling.gym import GymWorld as GymWorld
    from curious_explorer.sampling.gym import HashedCells as HashedCells
    from curious_explorer.sampling.gym import MiniGridCells as MiniGridCells
    from curious_explorer.sampling.gym import QuantileCells as QuantileCells
    from curious_explorer.sampling.visit import visit as visit
    from curious_explorer.wrappers import RestartWrapper as RestartWrapper

__version__ = "0.1.0"

_NAMES_BY_HOME = {
    "exact": ("evaluate", "max_visitation", "solve", "visitation"),
    "explorer": ("Exploration", "explore", "improve"),
    "mdp": ("FiniteMDP", "MDPBuilder", "RewardScale"),
    "optimizers": ("ModelBased", "OffPolicy", "Planner", "Reinforce", "SB3", "TRPO"),
    "reset": ("ResetModel",),
    "sampling": ("TabularWorld", "World", "visit"),
    "sampling.gym": (
        "Cells",
        "FunctionCells",
        "GridCells",
        "GymWorld",
        "HashedCells",
        "MiniGridCells",
        "QuantileCells",
    ),
    "wrappers": ("RestartWrapper",),
}
_HOME = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}
_SUBMODULES = ("environments", *(home for home in _NAMES_BY_HOME if "." not in home), "theory", "baselines")

__all__ = [*_HOME, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


register_environments()
