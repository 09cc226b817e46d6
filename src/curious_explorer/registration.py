"""The zoo's names: a short one for the command line, an id for Gymnasium.

Only strings here: an environment's code loads when somebody makes one.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import gymnasium

NAMESPACE = "curious_explorer"
_ENTRY_POINT = "curious_explorer.gym.tabular_env:make_tabular_env"


class ZooEntry(NamedTuple):
    """One environment of the zoo."""

    function: str
    """Of `curious_explorer.environments`; ``gymnasium.make`` takes its arguments."""
    size: str
    """The argument that says how large it is."""
    default: int
    """The size if Gymnasium is given none: near the smallest that is published."""
    gymnasium_name: str | None
    seeds: tuple[str, ...] = ("permute_actions",)
    """Which arguments take the seed of a study: action labels, or the environment itself where it is random."""
    stochastic: bool | None = None


ZOO = {
    "cct": ZooEntry("crossroad_traps", "depth", 5, "CrossroadTraps"),
    "dcl": ZooEntry("combination_lock", "depth", 5, "CombinationLock"),
    "chain": ZooEntry("agarwal_chain", "length", 5, "AgarwalChain"),
    "garnet": ZooEntry("garnet", "num_states", 50, "Garnet", seeds=("seed",)),  # its labels mean nothing to begin with
    "river": ZooEntry("river_swim", "num_states", 6, "RiverSwim"),
    "sea": ZooEntry("deep_sea", "size", 10, "DeepSea"),
    "windy-sea": ZooEntry("deep_sea", "size", 10, None, stochastic=True),
    "bilock": ZooEntry("bidirectional_lock", "horizon", 5, "BidirectionalLock"),
    "tv": ZooEntry("noisy_tv", "screens", 50, "NoisyTV"),
    "tree": ZooEntry("branching_tree", "depth", 5, "BranchingTree", seeds=("seed",)),
    "maze": ZooEntry("one_way_maze", "height", 8, "OneWayMaze", seeds=("seed", "permute_actions")),
}
"""Each short name, as in ``dcl/20``, and what it stands for."""

ENVIRONMENT_IDS = {f"{NAMESPACE}/{entry.gymnasium_name}-v0": entry for entry in ZOO.values() if entry.gymnasium_name}


def register_environments() -> None:
    """Make the zoo known to Gymnasium; calling it again changes nothing."""
    for environment_id, entry in ENVIRONMENT_IDS.items():
        if environment_id not in gymnasium.registry:
            arguments = {"environment": entry.function, entry.size: entry.default}
            gymnasium.register(id=environment_id, entry_point=_ENTRY_POINT, kwargs=arguments)


_PYTHON = {"True": True, "False": False, "None": None}


def split_arguments(name: str) -> tuple[str, dict[str, Any]]:
    """A Gymnasium id, and the arguments that follow it after a question mark.

    A value is a number, true or false (or Python's True, False and None), or else text.
    """
    identifier, _, query = name.partition("?")
    if identifier.startswith(":"):
        raise ValueError(f"{name!r} has no module before the colon, expected 'module:Id-v0', or an id alone")
    arguments = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not (key.isidentifier() and equals):
            raise ValueError(f"{name!r} has {part!r} after the question mark, expected arguments as in '?depth=20&x=a'")
        if key in arguments:
            raise ValueError(f"{name!r} gives {key} twice, expected one value for each argument")
        try:
            arguments[key] = _PYTHON[value] if value in _PYTHON else json.loads(value)
        except json.JSONDecodeError:
            arguments[key] = value
    return identifier, arguments
