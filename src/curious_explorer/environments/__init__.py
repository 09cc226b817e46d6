"""The zoo: each environment is a function that returns a `FiniteMDP`; Gymnasium knows them by id."""

from curious_explorer.environments.agarwal_chain import agarwal_chain
from curious_explorer.environments.combination_lock import combination_lock
from curious_explorer.environments.crossroad_traps import crossroad_traps
from curious_explorer.environments.garnet import garnet
from curious_explorer.environments.labels import permute_action_labels

__all__ = ["agarwal_chain", "combination_lock", "crossroad_traps", "garnet", "permute_action_labels"]
