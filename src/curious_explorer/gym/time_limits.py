"""Time limits of environments, which end episodes of a learner but must not end walks.

A roll-in may be longer than an episode may last, and a learner that starts where a roll-in ended has all of its time
ahead. So a world restarts the time limits whenever they run out, and once more after a roll-in.
"""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

from curious_explorer.gym.cells import Env


class TimeLimits:
    """All time limits of an environment: `TimeLimit` wrappers, and ``step_count`` where it counts its steps itself.

    The second is MiniGrid's way; any environment with ``step_count`` and ``max_steps`` is understood.
    """

    def __init__(self, env: Env) -> None:
        self._wrappers: list[Any] = []
        layer: Any = env
        while isinstance(layer, gymnasium.Wrapper):
            if isinstance(layer, TimeLimit):
                self._wrappers.append(layer)
            layer = layer.env
        self._base = layer

    @property
    def _base_counts(self) -> bool:
        # Asked anew every time: MiniGrid has no step_count before its first reset.
        return hasattr(self._base, "step_count") and hasattr(self._base, "max_steps")

    @property
    def expired(self) -> bool:
        """Whether one of the limits is reached."""
        if self._base_counts and self._base.step_count >= self._base.max_steps:
            return True
        return any((limit._elapsed_steps or 0) >= limit._max_episode_steps for limit in self._wrappers)

    @property
    def least(self) -> int | None:
        """The shortest of the limits; None where there is none."""
        limits = [int(limit._max_episode_steps) for limit in self._wrappers]
        if hasattr(self._base, "max_steps"):
            limits.append(int(self._base.max_steps))
        return min(limits, default=None)

    def restart(self) -> None:
        """Count from zero again."""
        for limit in self._wrappers:
            limit._elapsed_steps = 0
        if self._base_counts:
            self._base.step_count = 0


def time_limit_of(env: Env) -> int | None:
    """After how many steps episodes of this environment end, if it says so."""
    return TimeLimits(env).least


class WithoutTimeLimit(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that is never truncated by a time limit; all other truncations remain."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._time_limits = TimeLimits(env)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and restart a time limit that ran out."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and self._time_limits.expired:
            self._time_limits.restart()
            truncated = False
        return observation, reward, terminated, truncated, info
