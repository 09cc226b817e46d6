"""The methods that can be compared, by id: the grid is data, and a method is a line in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from curious_explorer.explorers.methods import METHODS as BASELINES
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.studies.comparison.ce_methods import CE_METHODS
from curious_explorer.studies.paper_grid import check_name

METHODS: dict[str, Callable[[], Any]] = {**CE_METHODS, **BASELINES}
"""Each makes a fresh `Optimizer`: ``METHODS[id]()(world, gamma=..., budget=..., watch=...)``."""
PUBLISHED = "-published"
"""Ends the ids of variants with the constants of their papers, 15 to 1,000 times slower; compared only when named."""
DEFAULT_METHODS = tuple(name for name in METHODS if not name.endswith(PUBLISHED))


def make_method(name: str) -> Any:
    """A fresh optimizer; raises ``ValueError`` with the nearest match for a name that is not known."""
    return METHODS[check_name(name, METHODS, "method")]()


def least_budget(name: str, gamma: float) -> int:
    """The fewest samples that a method can do anything with: an episode, or what it says itself."""
    episode = default_horizon(gamma)
    own = getattr(make_method(name), "least_budget", None)
    return episode if own is None else max(episode, int(own(gamma)))
