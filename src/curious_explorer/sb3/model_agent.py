"""`ModelAgent`: what Stable-Baselines3 has learned, acting on the environment's own observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from curious_explorer.gym.agents import Agent
from curious_explorer.gym.cells import Env
from curious_explorer.sb3.network_view import SpaceView


class ModelAgent(Agent):
    """A model of Stable-Baselines3 as an agent; recurrent ones remember the episode.

    Args:
        model: of any of its algorithms.
        view: how the model sees observations.
        normalizer: the `VecNormalize` that it learned behind; None if it saw observations as they are.
        deterministic: whether it takes the likeliest action instead of drawing one.
    """

    def __init__(self, model: Any, view: SpaceView, normalizer: Any, *, deterministic: bool = True) -> None:
        self.model, self.view, self.normalizer, self.deterministic = model, view, normalizer, deterministic
        self.begin()

    def begin(self) -> None:
        """Forget the last episode."""
        self._state: Any = None
        self._first = np.ones(1, dtype=bool)

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """An action of the environment."""
        seen = self.view.see(observation)
        seen = seen if self.normalizer is None else self.normalizer.normalize_obs(seen)
        action, self._state = self.model.predict(
            seen, state=self._state, episode_start=self._first, deterministic=self.deterministic
        )
        self._first = np.zeros(1, dtype=bool)
        return self.view.act(action)
