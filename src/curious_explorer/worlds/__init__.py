"""The agent's world and what walks in it: random numbers, compiled kernels, `World`, `visit`, sample accounting."""

from curious_explorer.worlds.recording import RecordingWorld
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.tabular_world import TabularWorld
from curious_explorer.worlds.visit import visit
from curious_explorer.worlds.world import (
    EpisodeStatistics,
    Followed,
    QProgress,
    QRule,
    QTable,
    Step,
    TransitionCounts,
    World,
)

__all__ = [
    "EpisodeStatistics",
    "Followed",
    "QProgress",
    "QRule",
    "QTable",
    "RecordingWorld",
    "RollIn",
    "Step",
    "TabularWorld",
    "TransitionCounts",
    "World",
    "visit",
]
