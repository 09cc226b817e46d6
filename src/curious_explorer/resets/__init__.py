"""Reset models: chains of policies that start episodes all over the state space, using only restart and step."""

from curious_explorer.resets.reset_model import ResetModel

__all__ = ["ResetModel"]
