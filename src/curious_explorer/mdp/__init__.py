"""Finite MDPs: the model itself, ways to build one, to store one and to draw one."""

from curious_explorer.mdp.builder import MDPBuilder
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale

__all__ = ["FiniteMDP", "MDPBuilder", "RewardScale"]
