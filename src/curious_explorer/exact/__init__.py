"""Exact answers about a known MDP: visitation, values, optimal policies, the most a state can be visited.

Each answer is chosen a method by structure and size, is checked against its own equation, and comes with a report that
says which method it was and how large the residual is. What cannot be had to tolerance raises `ConvergenceError`.
"""

from curious_explorer.exact.evaluation import evaluate, evaluation_report
from curious_explorer.exact.max_visitation import max_visitation, max_visitation_report
from curious_explorer.exact.optimal import Solution, solve
from curious_explorer.exact.report import ConvergenceError, ExactReport
from curious_explorer.exact.visitation import visitation, visitation_report

__all__ = [
    "ConvergenceError",
    "ExactReport",
    "Solution",
    "evaluate",
    "evaluation_report",
    "max_visitation",
    "max_visitation_report",
    "solve",
    "visitation",
    "visitation_report",
]
