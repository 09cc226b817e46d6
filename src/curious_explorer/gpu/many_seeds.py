"""Curious Explorer for a thousand seeds in one call: exploration and learning on tensors with a dimension of runs.

This package needs PyTorch and Triton (the extra ``gpu``), so nothing else in the library imports it unless asked to.
"""

from curious_explorer.errors import BackendError

try:
    from curious_explorer.gpu.many_seeds_explore import ManyExplorations, ManyRounds, explore_many, improve_many
    from curious_explorer.gpu.many_seeds_learning import ManyResults, learn_many
    from curious_explorer.gpu.many_worlds import ManyRollIns, ManyStatistics, ManyWorlds
    from curious_explorer.gpu.seeded_worlds import SeededWorlds
except ModuleNotFoundError as error:
    raise BackendError(
        f"many seeds at once need the package {error.name!r}, which is not installed; install it by "
        "pip install 'curious-explorer[gpu]', or call explore for each seed"
    ) from error

__all__ = [
    "ManyExplorations",
    "ManyResults",
    "ManyRollIns",
    "ManyRounds",
    "ManyStatistics",
    "ManyWorlds",
    "SeededWorlds",
    "explore_many",
    "improve_many",
    "learn_many",
]
