"""Curious Explorer itself: Algorithm 2, its schedules, and the improvement phase that follows it."""

from curious_explorer.explorer.algorithm import explore
from curious_explorer.explorer.exact_visits import ExactVisits
from curious_explorer.explorer.exploration import Exploration, Round
from curious_explorer.explorer.improvement import improve
from curious_explorer.explorer.thresholds import constant, linear, paper_linear
from curious_explorer.explorer.visits import FreshVisits, LearningVisits, OccupancyVisits

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
