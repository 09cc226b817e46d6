"""Time limits, kept outside: a limit on episodes belongs to whoever learns, not to the world.

A roll-in may be longer than an episode may last, and a learner that starts where a roll-in ended is owed all of its
time. So while a world walks, its time_limits are turned back whenever they run out, and once more after a roll-in.
"""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

Env = gymnasium.Env[Any, Any]
Transition = tuple[Any, float, bool, bool, dict[str, Any]]


class TimeLimits:
    """What counts an environment's steps: `TimeLimit` wrappers, and ``step_count`` where the environment counts itself.

    The second is MiniGrid's way; any environment with ``step_count`` and ``max_steps`` is understood.
    """

    def __init__(self, env: Env) -> None:
        self._limits: list[Any] = []
        layer: Any = env
        while isinstance(layer, gymnasium.Wrapper):
            if isinstance(layer, TimeLimit):
                self._limits.append(layer)
            layer = layer.env
        self._base = layer

    @property
    def _counts_itself(self) -> bool:
        # Asked anew every time: MiniGrid has no step_count before its first reset.
        return hasattr(self._base, "step_count") and hasattr(self._base, "max_steps")

    @property
    def ran_out(self) -> bool:
        """Whether a clock stands at its limit."""
        if self._counts_itself and self._base.step_count >= self._base.max_steps:
            return True
        return any((limit._elapsed_steps or 0) >= limit._max_episode_steps for limit in self._limits)

    def turn_back(self) -> None:
        """Let all the time be there again."""
        for limit in self._limits:
            limit._elapsed_steps = 0
        if self._counts_itself:
            self._base.step_count = 0


class WithoutTimeLimit(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment without its time limit: truncations by the clock never show, all others do."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._time_limits = TimeLimits(env)

    def step(self, action: Any) -> Transition:
        """Step, and turn the clock back if it ran out."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and self._time_limits.ran_out:
            self._time_limits.turn_back()
            truncated = False
        return observation, reward, terminated, truncated, info  # type: ignore[return-value]
