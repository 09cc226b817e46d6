"""Environments side by side: what is reset and stepped, whether it is one environment or a vector of them.

This, with `solo`, is the one place where a Gymnasium environment is touched. So it is here that its steps are counted,
and that whatever it may do wrong is noticed: raising in the middle of a walk, observations of another shape, numbers
that are none.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate

from curious_explorer.errors import EnvironmentFailureError, ObservationError
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.time_limits import Env, TimeLimits, WithoutTimeLimit

VECTORIZATIONS = ("sync", "async")


class EnvironmentStep(NamedTuple):
    """What one step shows in one lane."""

    cell: int
    reward: float
    terminated: bool
    stuck: bool
    """Cut off by the environment itself, other than by a time limit: the walk cannot go on from here."""


class SteppedEnvironments(ABC):
    """Environments that are reset one by one and stepped together; ``steps`` counts every step ever taken in them."""

    count: int
    observations: list[Any]
    cells: list[int]

    def __init__(self, discretisation: Discretisation, space: gymnasium.Space[Any]) -> None:
        self.discretisation = discretisation
        self.steps = 0
        self._shape = space.shape if isinstance(space, gymnasium.spaces.Box) else None

    @abstractmethod
    def reset(self, lane: int, seed: int | None = None) -> None:
        """Begin an episode in one lane."""

    @abstractmethod
    def turn_back_time_limits(self, lane: int) -> None:
        """Give whoever acts from here on all of the environment's time."""

    @abstractmethod
    def close(self) -> None:
        """Give the environments back."""

    def look(self, lane: int, observation: Any, env: Env | None) -> int:
        """Notice an observation; returns its cell."""
        if self._shape is not None and getattr(observation, "shape", None) != self._shape:
            self.refuse_shape(observation)
        self.observations[lane] = observation
        cell = self.cells[lane] = self.discretisation.cells.index(observation, env)
        return cell

    def refuse_shape(self, observation: Any) -> NoReturn:
        """Say that an observation does not have the shape that its space promises."""
        found = getattr(observation, "shape", f"none: it is {type(observation).__name__}")
        raise ObservationError(
            f"{self.discretisation.environment} returned an observation of shape {found}, but its observation space "
            f"says {self._shape}; repair the environment (gymnasium.utils.env_checker.check_env finds such faults)"
        )

    def failure(self, doing: str, error: Exception) -> EnvironmentFailureError:
        """What to raise when the environment did."""
        return EnvironmentFailureError(
            f"the environment {self.discretisation.environment} raised {type(error).__name__} when {doing}: {error}; "
            "repair it and run the same again: what was saved in a checkpoint folder is kept"
        )


class VectorEnvironment(SteppedEnvironments):
    """A Gymnasium vector environment whose lanes are reset by us, not by themselves.

    Time limits inside other processes cannot be turned back after a roll-in. That matters only where an environment
    pays by its own clock, as MiniGrid does; use one environment, or "sync", there. Nor do we see the time limits
    of a vector environment that somebody else made in other processes: make it without, or walks end where time does.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], discretisation: Discretisation) -> None:
        super().__init__(discretisation, envs.single_observation_space)
        mode = envs.metadata.get("autoreset_mode")
        if mode != AutoresetMode.DISABLED:
            raise ValueError(
                f"the vector environment resets by itself ({mode}), so that the last observation of an episode would "
                "be missed; make it with autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED, or give GymWorld an "
                "id and num_envs"
            )
        self.envs = envs
        self.count = envs.num_envs
        if isinstance(envs, SyncVectorEnv):  # it would not let anybody step on after the time is out
            envs.envs = [env if isinstance(env, WithoutTimeLimit) else WithoutTimeLimit(env) for env in envs.envs]
        self._alone: Sequence[Env | None] = getattr(envs, "envs", [None] * self.count)
        self._time_limits = [None if env is None else TimeLimits(env) for env in self._alone]
        self.observations, self.cells = [None] * self.count, [0] * self.count
        self._stands = False

    def reset(self, lane: int, seed: int | None = None) -> None:
        """Begin an episode in one lane."""
        mask = np.arange(self.count) == lane
        seeds = [seed if chosen else None for chosen in mask]
        try:
            if not self._stands:  # lanes cannot be reset one by one until all have been
                self.envs.reset()
                self._stands = True
            observations, _ = self.envs.reset(seed=seeds, options={"reset_mask": mask})  # type: ignore[arg-type]
        except Exception as error:
            raise self.failure("reset", error) from error
        self.look(lane, self._split(observations)[lane], self._alone[lane])

    def step(self, actions: Sequence[Any]) -> list[EnvironmentStep]:
        """Take one step in every lane."""
        joined = np.stack([np.asarray(action) for action in actions])
        try:
            observations, rewards, terminated, truncated, _ = self.envs.step(joined)
        except Exception as error:
            raise self.failure(f"stepped with actions {joined.tolist()} in cells {self.cells}", error) from error
        self.steps += self.count
        split = self._split(observations)
        cells = [self.look(lane, split[lane], self._alone[lane]) for lane in range(self.count)]
        ends = zip(cells, rewards.tolist(), terminated.tolist(), truncated.tolist(), strict=True)
        return [EnvironmentStep(*end) for end in ends]

    def _split(self, observations: Any) -> list[Any]:
        # A copy: the vector environment may write its next observations into the same array.
        return [np.copy(one) for one in iterate(self.envs.observation_space, observations)]

    def turn_back_time_limits(self, lane: int) -> None:
        """Give whoever acts from here on all of the environment's time."""
        time_limits = self._time_limits[lane]
        if time_limits is not None:
            time_limits.turn_back()

    def close(self) -> None:
        """Give the environments back."""
        self.envs.close()


def make_vector_environment(
    makers: Sequence[Any], vectorization: str, discretisation: Discretisation
) -> VectorEnvironment:
    """A vector environment from one maker of an environment for each, in this process or in one process for each."""
    kind = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}[vectorization]
    timeless = [_Maker(maker) for maker in makers]
    try:
        return VectorEnvironment(kind(timeless, autoreset_mode=AutoresetMode.DISABLED), discretisation)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if vectorization == "sync" or "pickle" not in str(error):
            raise
        raise ValueError(
            f"the function that makes the environment cannot be sent to another process ({error}); give an id or a "
            "function of a module that holds nothing of this process, or use vectorization='sync'"
        ) from error


class _Maker:
    """Makes an environment without time limits; an object with a name, so that it can be sent to a process."""

    def __init__(self, maker: Any) -> None:
        self._maker = maker

    def __call__(self) -> Env:
        return WithoutTimeLimit(self._maker())
