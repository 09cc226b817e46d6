"""An environment whose every episode has a layout that is drawn anew from those that are not for tests."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.gym.cells import Env
from curious_explorer.gym.fixed_layout import FIRST_TEST

MOST_FAILURES = 20
"""In so many layouts one after the other an environment may raise before it is given up."""


class NewLayouts(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Draws a seed below `FIRST_TEST` for every episode; ``info`` of a reset says which ``layout`` it is.

    A layout in which the environment raises is noted in `failed`, by its seed: if it cannot be begun, another is drawn,
    and an episode in it that cannot go on is cut off.

    Args:
        env: the environment.
        seed: where drawing begins, until ``reset(seed=...)`` says otherwise.
    """

    def __init__(self, env: Env, seed: int | None = None) -> None:
        super().__init__(env)
        self.failed: dict[int, str] = {}
        """What the environment raised, by layout."""
        self._random = np.random.default_rng(seed)
        self._layout = -1
        self._seen: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in a layout that is drawn."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        for _ in range(MOST_FAILURES):
            self._layout = int(self._random.integers(FIRST_TEST))
            try:
                self._seen, info = self.env.reset(seed=self._layout, options=options)
            except Exception as error:
                self.failed[self._layout] = str(error)
            else:
                return self._seen, {**info, "layout": self._layout}
        raise EnvironmentFailureError(
            f"the environment raised in {MOST_FAILURES} layouts one after the other; in the last, of seed "
            f"{self._layout}: {self.failed[self._layout]}. Look at it by reset(seed={self._layout})"
        )

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action."""
        try:
            self._seen, reward, terminated, truncated, info = self.env.step(action)
        except gymnasium.error.ResetNeeded:
            raise
        except Exception as error:
            self.failed[self._layout] = str(error)
            return self._seen, 0.0, False, True, {}
        return self._seen, reward, terminated, truncated, info
