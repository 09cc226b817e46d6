"""The address of `explore` and its options in version 0.1; they live in `curious_explorer.explorers` now."""

from curious_explorer.explorers import (
    CuriousExplorer,
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
    "CuriousExplorer",
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
