"""Curious Explorer for a thousand seeds in one call: exploration and learning on tensors with a dimension of runs.

This package needs PyTorch and Triton (the extra ``gpu``), so nothing else in the library imports it unless asked to.
"""

from curious_explorer.errors import BackendError

try:
    from curious_explorer.explorer.many_seeds.algorithm import ManyExplorations, ManyRounds, explore_many, improve_many
    from curious_explorer.explorer.many_seeds.learning import ManyResults, learn_many
    from curious_explorer.explorer.many_seeds.seeded_worlds import SeededWorlds
    from curious_explorer.explorer.many_seeds.worlds import ManyRollIns, ManyStatistics, ManyWorlds
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
