"""One layout for environments that draw a new one at every reset, as MiniGrid's do."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from curious_explorer.gym.cells import Env
from curious_explorer.validation import check_seed

FIRST_TEST = 1 << 30
"""Layouts for exploring and learning have seeds below; seeds from here on are for tests."""


class FixedLayout(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose every reset draws what the first one drew; its later random numbers go on as they were.

    Args:
        env: the environment.
        layout: the seed of every reset. ``reset(seed=...)`` seeds what the environment draws during an episode.
    """

    def __init__(self, env: Env, layout: int) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, layout=layout)
        super().__init__(env)
        self.layout = check_seed(layout, "layout")
        self._generator: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in this layout."""
        observation, info = self.env.reset(seed=self.layout, options=options)
        if seed is not None or self._generator is None:
            self._generator = np.random.default_rng(self.layout if seed is None else seed)
        self.env.unwrapped.np_random = self._generator
        return observation, info


def with_layout(env: Env, layout: int | None) -> Env:
    """The environment in one layout, or as it is."""
    return env if layout is None else FixedLayout(env, layout)
