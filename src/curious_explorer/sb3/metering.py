"""Counting what training costs, at the one place where a step is taken: below the wrapper that rolls in.

So a step of a roll-in and a step of an episode are counted alike, and training stops at its budget to the step.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from curious_explorer.errors import EnvironmentFailureError, ObservationError


class BudgetSpent(BaseException):
    """No step is left; not an error, so that nobody who handles errors on the way takes it for one."""


class Meter:
    """How many steps all environments of a training have taken, and how many they may take."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.taken = 0

    def charge(self) -> None:
        """Pay for the next step."""
        if self.taken >= self._budget:
            raise BudgetSpent
        self.taken += 1


class Metered(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose every step is paid for; raises `BudgetSpent` in front of the first that cannot be."""

    def __init__(self, env: gymnasium.Env[Any, Any], meter: Meter) -> None:
        super().__init__(env)
        self._meter = meter

    def step(self, action: Any) -> Any:
        """Pay, then step."""
        self._meter.charge()
        return self.env.step(action)


class Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose faults are told as what they are, before they reach a learner that cannot know."""

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        self._name = name
        space = env.observation_space
        self._numbers = isinstance(space, gymnasium.spaces.Box) and np.issubdtype(space.dtype, np.floating)

    def step(self, action: Any) -> Any:
        """Step, and look whether what came back can be learned from."""
        try:
            event = self.env.step(action)
        except (EnvironmentFailureError, ObservationError):
            raise
        except Exception as error:
            raise EnvironmentFailureError(
                f"the environment {self._name} raised {type(error).__name__} when stepped with action {action!r}: "
                f"{error}; repair it and run the same command again: what was learned until the last evaluation is kept"
            ) from error
        if self._numbers and not np.isfinite(event[0]).all():
            raise ObservationError(
                f"{self._name} returned the observation {event[0]}, expected finite numbers; repair the environment"
            )
        return event
