"""Neural policies by Stable-Baselines3: as an optimizer (`SB3`), and trained from reset models into a folder."""

from curious_explorer.sb3.sb3_optimizer import SB3

__all__ = ["SB3"]
