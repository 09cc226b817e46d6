"""Callbacks: who is told of an exploration, a learning or a training while it runs, and writers that keep it."""

from __future__ import annotations

from curious_explorer.callbacks.events import Callback, Callbacks, Event, on_events
from curious_explorer.callbacks.writers import TensorBoardWriter, WandbWriter

__all__ = ["Callback", "Callbacks", "Event", "TensorBoardWriter", "WandbWriter", "on_events"]
