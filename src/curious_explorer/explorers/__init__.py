"""Explorers: from a world and a number of samples, an `Exploration` with a reset model; each algorithm has its file.

`curious_explorer` is Algorithm 2 with any optimizer, with its `thresholds`, `visits`, `sample_budget` and `checkpoint`.
The others are listed in `methods`.
"""

from curious_explorer.explorers.anytime import AnytimeResult, learn
from curious_explorer.explorers.curious_explorer import CuriousExplorer, explore
from curious_explorer.explorers.exact_visits import ExactVisits
from curious_explorer.explorers.exploration import Exploration, Explorer, Round
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.explorers.thresholds import constant, linear, paper_linear
from curious_explorer.explorers.visits import FreshVisits, LearningVisits, OccupancyVisits
from curious_explorer.learners.improve import improve

__all__ = [
    "AnytimeResult",
    "CuriousExplorer",
    "ExactVisits",
    "Exploration",
    "Explorer",
    "FreshVisits",
    "Frontier",
    "LearningVisits",
    "OccupancyVisits",
    "Round",
    "constant",
    "explore",
    "improve",
    "learn",
    "linear",
    "paper_linear",
]
