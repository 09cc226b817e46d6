"""An environment whose faults are told as what they are, before they reach a learner or an agent that cannot know."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.errors import EnvironmentFailureError, MissingPackageError, ObservationError
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import environment_name
from curious_explorer.worlds.episode_accumulator import refuse_reward


class CheckedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose errors, rewards and observations are looked at.

    Args:
        env: the environment.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        space = env.observation_space
        self._shape = space.shape if isinstance(space, spaces.Box) else None
        self._numbers = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and look at what it begins with."""
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        except (EnvironmentFailureError, ObservationError):
            raise
        except Exception as error:
            raise self._failure("reset", error) from error
        self._check(observation)
        return observation, {} if info is None else info

    def step(self, action: Any) -> Any:
        """Step, and look whether what came back can be learned from."""
        try:
            event = self.env.step(action)
            reward = float(event[1])
        except (EnvironmentFailureError, ObservationError):
            raise
        except Exception as error:
            raise self._failure(f"stepped with action {action!r}", error) from error
        if not math.isfinite(reward):
            refuse_reward(reward, f"the environment {environment_name(self.env)}")
        self._check(event[0])
        if len(event) == 5 and event[4] is None:  # nothing to tell; learners write into what they are told
            return (*event[:4], {})
        return event

    def render(self) -> Any:
        """Draw; a package that this needs is named."""
        try:
            return self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            name = environment_name(self.env)
            raise MissingPackageError(f"{name} cannot be drawn, because a package is missing: {error}") from error
        except Exception as error:
            raise self._failure("drawn", error) from error

    def _check(self, observation: Any) -> None:
        found = getattr(observation, "shape", None)
        if self._shape is not None and found != self._shape:
            shape = f"of shape {found}" if found is not None else f"which is {type(observation).__name__} and no array"
            raise ObservationError(
                f"{environment_name(self.env)} returned the observation {observation!r} {shape}, but its observation "
                f"space says {self._shape}; repair the environment (gymnasium.utils.env_checker.check_env finds such "
                "faults)"
            )
        # A sum is finite if all of its numbers are, unless they are huge; it takes less time than to look at each.
        if (
            self._numbers
            and not math.isfinite(np.add.reduce(observation, axis=None))
            and not np.isfinite(observation).all()
        ):
            raise ObservationError(
                f"{environment_name(self.env)} returned the observation {observation}, expected finite numbers; repair "
                "the environment, or map NaN to a number in a wrapper"
            )

    def _failure(self, event: str, error: Exception) -> EnvironmentFailureError:
        return EnvironmentFailureError(
            f"the environment {environment_name(self.env)} raised {type(error).__name__} when {event}: {error}; repair "
            "it and run the same again: what was saved in a folder is kept"
        )
