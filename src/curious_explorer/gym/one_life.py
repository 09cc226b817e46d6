"""An environment of which exploring sees one life at a time.

Games of the Arcade Learning Environment say in ``info["lives"]`` how many lives are left. An episode that goes on after
one is lost shows the same places once more for every life, and a plan that dies on its way looks no worse than others
(Mnih et al. 2015 end episodes of learning there). So exploring ends them; the agent that comes of it plays on.
"""

from __future__ import annotations

from typing import Any

import gymnasium

from curious_explorer.gym.cells import Env

LIVES = "lives"


def lives_in(info: dict[str, Any]) -> int | None:
    """How many lives are left; None where an environment does not say."""
    lives = info.get(LIVES)
    return int(lives) if isinstance(lives, int) and not isinstance(lives, bool) and lives > 0 else None


class OneLife(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Ends an episode for good when a life is lost."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._lives: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode with all lives."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._lives = lives_in(info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action; the episode has ended if it cost a life."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._lives is not None:
            left = lives_in(info) or 0
            terminated = bool(terminated) or left < self._lives
            self._lives = left
        return observation, reward, terminated, truncated, info
