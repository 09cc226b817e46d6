"""Curious Explorer: exploration for agents that never see a reward.

The names below are loaded when first used, so that importing the package stays fast. Importing it also registers its
environments with Gymnasium: ``gymnasium.make("curious_explorer/CombinationLock-v0", depth=20)``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from curious_explorer.registration import register_environments

if TYPE_CHECKING:
    from curious_explorer import environments, exact, sampling
    from curious_explorer.exact import evaluate, max_visitation, solve, visitation
    from curious_explorer.mdp import FiniteMDP, MDPBuilder, RewardScale
    from curious_explorer.sampling import TabularWorld, World, visit

__version__ = "0.1.0"

_HOME = {
    "FiniteMDP": "mdp",
    "MDPBuilder": "mdp",
    "RewardScale": "mdp",
    "visitation": "exact",
    "evaluate": "exact",
    "solve": "exact",
    "max_visitation": "exact",
    "World": "sampling",
    "TabularWorld": "sampling",
    "visit": "sampling",
}
_SUBMODULES = ("environments", "exact", "sampling")

__all__ = [
    "FiniteMDP",
    "MDPBuilder",
    "RewardScale",
    "TabularWorld",
    "World",
    "environments",
    "evaluate",
    "exact",
    "max_visitation",
    "sampling",
    "solve",
    "visit",
    "visitation",
]


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
