"""The zoo: each environment is a function that returns a `FiniteMDP`; Gymnasium knows them by id."""

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.environments.agarwal_chain import agarwal_chain
from curious_explorer.environments.bidirectional_lock import bidirectional_lock
from curious_explorer.environments.branching_tree import branching_tree
from curious_explorer.environments.combination_lock import combination_lock
from curious_explorer.environments.crossroad_traps import crossroad_traps
from curious_explorer.environments.deep_sea import deep_sea
from curious_explorer.environments.garnet import garnet
from curious_explorer.environments.noisy_tv import noisy_tv
from curious_explorer.environments.one_way_maze import one_way_maze
from curious_explorer.environments.river_swim import river_swim

__all__ = [
    "agarwal_chain",
    "bidirectional_lock",
    "branching_tree",
    "combination_lock",
    "crossroad_traps",
    "deep_sea",
    "garnet",
    "noisy_tv",
    "one_way_maze",
    "permute_action_labels",
    "river_swim",
]
