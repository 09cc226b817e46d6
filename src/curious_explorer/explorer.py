"""The address of `explore` and its options in version 0.1; they live in `curious_explorer.explorers` now."""

from curious_explorer.explorers import (
    ExactVisits,
    Exploration,
    FreshVisits,
    LearningVisits,
    OccupancyVisits,
    Round,
    constant,
    explore,
    improve,
    linear,
    paper_linear,
)

__all__ = [
    "ExactVisits",
    "Exploration",
    "FreshVisits",
    "LearningVisits",
    "OccupancyVisits",
    "Round",
    "constant",
    "explore",
    "improve",
    "linear",
    "paper_linear",
]
