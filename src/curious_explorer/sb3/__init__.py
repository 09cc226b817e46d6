"""Stable-Baselines3's on-policy algorithms as optimizers: neural policies on raw observations."""

from curious_explorer.sb3.sb3_optimizer import SB3

__all__ = ["SB3"]
