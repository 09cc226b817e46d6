"""Where episodes start: reset models, using only restart and step, and starts that move with what is learned."""

from curious_explorer.resets.moving_starts import MovingStarts, StartSettings
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.shared_starts import share_between_processes
from curious_explorer.resets.starts import moving_starts

__all__ = ["MovingStarts", "ResetModel", "StartSettings", "moving_starts", "share_between_processes"]
