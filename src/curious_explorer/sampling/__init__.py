"""The agent's world and what walks in it: random numbers, compiled kernels, `World`, `visit`, sample accounting."""

from curious_explorer.sampling.recording import RecordingWorld
from curious_explorer.sampling.roll_in import RollIn
from curious_explorer.sampling.tabular_world import TabularWorld
from curious_explorer.sampling.visit import visit
from curious_explorer.sampling.world import (
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
