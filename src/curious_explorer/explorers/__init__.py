"""Curious Explorer itself: Algorithm 2, its schedules, and the improvement phase that follows it."""

from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.exact_visits import ExactVisits
from curious_explorer.explorers.exploration import Exploration, Round
from curious_explorer.explorers.thresholds import constant, linear, paper_linear
from curious_explorer.explorers.visits import FreshVisits, LearningVisits, OccupancyVisits
from curious_explorer.learners.improve import improve

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
