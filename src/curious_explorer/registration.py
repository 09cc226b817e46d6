"""The zoo's Gymnasium ids. Only strings here: an environment's code loads when somebody makes one."""

from __future__ import annotations

from typing import Any

import gymnasium

NAMESPACE = "curious_explorer"
_ENTRY_POINT = "curious_explorer.gym.tabular_env:make_tabular_env"

ENVIRONMENT_IDS = {
    f"{NAMESPACE}/CrossroadTraps-v0": "crossroad_traps",
    f"{NAMESPACE}/CombinationLock-v0": "combination_lock",
    f"{NAMESPACE}/AgarwalChain-v0": "agarwal_chain",
    f"{NAMESPACE}/Garnet-v0": "garnet",
    f"{NAMESPACE}/RiverSwim-v0": "river_swim",
    f"{NAMESPACE}/DeepSea-v0": "deep_sea",
    f"{NAMESPACE}/BidirectionalLock-v0": "bidirectional_lock",
    f"{NAMESPACE}/NoisyTV-v0": "noisy_tv",
    f"{NAMESPACE}/BranchingTree-v0": "branching_tree",
    f"{NAMESPACE}/OneWayMaze-v0": "one_way_maze",
}
"""Each id, and the function of `curious_explorer.environments` behind it, whose arguments ``gymnasium.make`` takes."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "crossroad_traps": {"depth": 5},  # the smallest of the paper's depths, and for the others much the same size
    "combination_lock": {"depth": 5},
    "agarwal_chain": {"length": 5},
    "garnet": {"num_states": 50},
    "river_swim": {"num_states": 6},  # the published size
    "deep_sea": {"size": 10},  # bsuite's smallest
    "bidirectional_lock": {"horizon": 5},
    "noisy_tv": {"screens": 50},
    "branching_tree": {"depth": 5},
    "one_way_maze": {"height": 8},
}


def register_environments() -> None:
    """Make the zoo known to Gymnasium; calling it again changes nothing."""
    for environment_id, function in ENVIRONMENT_IDS.items():
        if environment_id not in gymnasium.registry:
            arguments = {"environment": function, **_DEFAULTS[function]}
            gymnasium.register(id=environment_id, entry_point=_ENTRY_POINT, kwargs=arguments)
