"""Curious Explorer: exploration for agents that never see a reward.

The names below are loaded when first used, so that importing the package stays fast. Importing it also registers its
environments with Gymnasium: ``gymnasium.make("curious_explorer/CombinationLock-v0", depth=20)``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from curious_explorer.backends import BACKENDS, Backend
from curious_explorer.registration import register_environments

if TYPE_CHECKING:
    from curious_explorer.callbacks import Callback as Callback
    from curious_explorer.callbacks import TensorBoardWriter as TensorBoardWriter
    from curious_explorer.callbacks import WandbWriter as WandbWriter
    from curious_explorer.exact.evaluation import evaluate as evaluate
    from curious_explorer.exact.max_visitation import max_visitation as max_visitation
    from curious_explorer.exact.optimal import solve as solve
    from curious_explorer.exact.visitation import visitation as visitation
    from curious_explorer.explorers.anytime import AnytimeResult as AnytimeResult
    from curious_explorer.explorers.anytime import learn as learn
    from curious_explorer.explorers.curious_explorer import explore as explore
    from curious_explorer.explorers.exploration import Exploration as Exploration
    from curious_explorer.explorers.frontier import Frontier as Frontier
    from curious_explorer.gym.cells import Cells as Cells
    from curious_explorer.gym.cells import FunctionCells as FunctionCells
    from curious_explorer.gym.cells import GridCells as GridCells
    from curious_explorer.gym.cells import QuantileCells as QuantileCells
    from curious_explorer.gym.discovered_cells import HashedCells as HashedCells
    from curious_explorer.gym.discovered_cells import MiniGridCells as MiniGridCells
    from curious_explorer.gym.gym_world import GymWorld as GymWorld
    from curious_explorer.gym.restart_wrapper import RestartWrapper as RestartWrapper
    from curious_explorer.learners.exact_planner import Planner as Planner
    from curious_explorer.learners.improve import improve as improve
    from curious_explorer.learners.model_based import ModelBased as ModelBased
    from curious_explorer.learners.off_policy import OffPolicy as OffPolicy
    from curious_explorer.learners.reinforce import Reinforce as Reinforce
    from curious_explorer.learners.trpo import TRPO as TRPO
    from curious_explorer.mdp.builder import MDPBuilder as MDPBuilder
    from curious_explorer.mdp.finite_mdp import FiniteMDP as FiniteMDP
    from curious_explorer.mdp.finite_mdp import RewardScale as RewardScale
    from curious_explorer.resets.reset_model import ResetModel as ResetModel
    from curious_explorer.sb3.sb3_optimizer import SB3 as SB3
    from curious_explorer.studies.playing import load_policy as load_policy
    from curious_explorer.studies.solving import Solved as Solved
    from curious_explorer.studies.solving import solve_task as solve_task
    from curious_explorer.worlds.tabular_world import TabularWorld as TabularWorld
    from curious_explorer.worlds.visit import visit as visit
    from curious_explorer.worlds.world import World as World

__version__ = "0.2.0"

_NAMES_BY_HOME = {
    "callbacks": ("Callback", "TensorBoardWriter", "WandbWriter"),
    "exact": ("evaluate", "max_visitation", "solve", "visitation"),
    "explorers": ("AnytimeResult", "Exploration", "Frontier", "explore", "learn"),
    "gym": (
        "Cells",
        "FunctionCells",
        "GridCells",
        "GymWorld",
        "HashedCells",
        "MiniGridCells",
        "QuantileCells",
        "RestartWrapper",
    ),
    "learners": ("ModelBased", "OffPolicy", "Planner", "Reinforce", "TRPO", "improve"),
    "mdp": ("FiniteMDP", "MDPBuilder", "RewardScale"),
    "resets": ("ResetModel",),
    "sb3": ("SB3",),
    "studies.playing": ("load_policy",),
    "studies.solving": ("Solved", "solve_task"),
    "worlds": ("TabularWorld", "World", "visit"),
}
_HOME = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}
_SUBMODULES = ("baselines", "environments", "theory", *(home for home in _NAMES_BY_HOME if "." not in home))

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
    return sorted({*globals(), *__all__})


def _triton() -> Backend:
    from curious_explorer.gpu import TRITON

    return TRITON


BACKENDS.setdefault("triton", _triton)
register_environments()
