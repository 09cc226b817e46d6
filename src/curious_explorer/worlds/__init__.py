"""The agent's world and what walks in it: random numbers, compiled kernels, `World`, `visit`, sample accounting."""

from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.tabular_world import TabularWorld
from curious_explorer.worlds.visit import visit
from curious_explorer.worlds.world import (
    EpisodeBatch,
    EpisodeStatistics,
    Reward,
    Step,
    TransitionCounts,
    World,
)
from curious_explorer.worlds.wrappers import RecordingWorld

__all__ = [
    "EpisodeBatch",
    "EpisodeStatistics",
    "RecordingWorld",
    "Reward",
    "RollIn",
    "Step",
    "TabularWorld",
    "TransitionCounts",
    "World",
    "visit",
]
