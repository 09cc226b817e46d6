"""Gymnasium wrappers: environments that restart from a reset model."""

from curious_explorer.wrappers.restart import RestartWrapper

__all__ = ["RestartWrapper"]
