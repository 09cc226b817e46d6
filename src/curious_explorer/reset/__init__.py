"""Reset models: chains of policies that start episodes all over the state space, using only restart and step."""

from curious_explorer.reset.model import ResetModel

__all__ = ["ResetModel"]
