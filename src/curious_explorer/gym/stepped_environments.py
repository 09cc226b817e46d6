"""Environments that are reset and stepped, one or several together, with their steps counted.

This is the one place where a Gymnasium environment is touched. So it is here that steps are counted, and that faults of
an environment are found: errors raised in the middle of a walk, and observations of another shape.
"""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate

from curious_explorer.errors import EnvironmentFailureError, ObservationError
from curious_explorer.gym.actors import Actor, ObservationActor, RandomStream, TargetActor
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.time_limits import TimeLimits, WithoutTimeLimit
from curious_explorer.worlds.episode_accumulator import Trajectory, refuse_reward
from curious_explorer.worlds.world import Step

VECTORIZATIONS = ("sync", "async")


class SteppedEnvironments(ABC):
    """``count`` environments that are reset one by one and stepped together.

    ``steps`` counts every step ever taken in them; ``observations`` and ``cells`` are the current ones.
    """

    count: int

    def __init__(self, discretisation: Discretisation, space: gymnasium.Space[Any], count: int) -> None:
        self.discretisation, self.count, self.observation_space = discretisation, count, space
        self.steps = 0
        self.observations: list[Any] = [None] * count
        self.cells = [0] * count
        self._shape = space.shape if isinstance(space, gymnasium.spaces.Box) else None

    @abstractmethod
    def reset(self, index: int, seed: int | None = None) -> None:
        """Begin an episode in one environment."""

    @abstractmethod
    def restart_time_limits(self, index: int) -> None:
        """Let the time limits of one environment count from here."""

    @abstractmethod
    def close(self) -> None:
        """Close all environments."""

    def _observe(self, index: int, observation: Any, env: Env | None) -> int:
        """Take in an observation of one environment; returns its cell."""
        if self._shape is not None and getattr(observation, "shape", None) != self._shape:
            self._refuse_shape(observation)
        self.observations[index] = observation
        cell = self.cells[index] = self.discretisation.cells.index(observation, env)
        return cell

    def _refuse_shape(self, observation: Any) -> NoReturn:
        found = getattr(observation, "shape", f"none: it is {type(observation).__name__}")
        raise ObservationError(
            f"{self.discretisation.environment} returned an observation of shape {found}, but its observation space "
            f"says {self._shape}; repair the environment (gymnasium.utils.env_checker.check_env finds such faults)"
        )

    def _failure(self, event: str, error: Exception) -> EnvironmentFailureError:
        """The error to raise when the environment raised one."""
        return EnvironmentFailureError(
            f"the environment {self.discretisation.environment} raised {type(error).__name__} when {event}: {error}; "
            "repair it and run the same again: what was saved in a checkpoint folder is kept"
        )


class SingleEnvironment(SteppedEnvironments):
    """One environment; ``terminated`` and ``truncated`` say whether and how its episode has ended.

    ``info`` is what the environment returned last under that name.

    Args:
        env: the environment.
        discretisation: its cells and actions.
        layouts: seeds, one of which every reset draws; the environment's random numbers go on from where they were.
            None: the environment resets as it likes.
        time_limits: whether single steps end where the environment's time does.
    """

    def __init__(
        self,
        env: Env,
        discretisation: Discretisation,
        *,
        layouts: Sequence[int] = (),
        time_limits: bool = False,
    ) -> None:
        super().__init__(discretisation, env.observation_space, 1)
        self.env = env
        self.layouts, self._limited = tuple(layouts), time_limits
        self._generator: np.random.Generator | None = None  # the environment's, where layouts are given
        self._drawing: np.random.Generator | None = None  # of layouts
        self._time_limits = TimeLimits(env)
        self.info: dict[str, Any] = {}
        self.terminated = self.truncated = False

    def reset(self, index: int = 0, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode."""
        layout = None if not self.layouts else self._draw_layout(seed)
        try:
            observation, self.info = self.env.reset(seed=seed if layout is None else layout, options=options)
        except Exception as error:
            event = "reset" if layout is None else f"reset with the seed of layout {layout}"
            raise self._failure(event, error) from error
        if layout is not None:
            if seed is not None or self._generator is None:
                self._generator = np.random.default_rng(layout if seed is None else seed)
            self.env.unwrapped.np_random = self._generator
            self.discretisation.cells.enter(layout)
        self.terminated = self.truncated = False
        self._observe(0, observation, self.env)

    def _draw_layout(self, seed: int | None) -> int:
        if len(self.layouts) == 1:
            return self.layouts[0]
        if seed is not None or self._drawing is None:
            self._drawing = np.random.default_rng([18, 0 if seed is None else seed])
        return self.layouts[int(self._drawing.integers(len(self.layouts)))]

    def step(self, action: Any, most: int | None = None) -> Step:
        """Take one step, or as many as actions are held for, if not more than ``most``."""
        hold = self.discretisation.action_set.hold
        if most is not None and most < hold:
            hold = most
        env, paid = self.env, 0.0
        for _ in range(hold):
            try:
                observation, reward, terminated, truncated, self.info = env.step(action)
                paid += float(reward)
            except Exception as error:
                raise self._step_failure(action, error) from error
            self.steps += 1
            if terminated or truncated:
                self._end(bool(terminated))
                if self._limited and not terminated:
                    self.truncated = True
                if self.terminated or self.truncated:
                    break
        if not math.isfinite(paid):
            refuse_reward(paid, f"the environment {self.discretisation.environment}")
        if self._shape is not None and getattr(observation, "shape", None) != self._shape:
            self._refuse_shape(observation)
        self.observations[0] = observation
        cell = self.cells[0] = self.discretisation.cells.index(observation, env)
        return Step(cell, paid, self.terminated, 0.0, self.truncated)

    def run(self, actor: Actor, max_steps: int, stream: RandomStream, trajectory: Trajectory | None = None) -> int:
        """Act for ``max_steps`` steps or to the end of the episode; returns how many steps were taken.

        The same as `step` again and again, written out, because this loop is where all of the time goes.
        """
        if self.discretisation.action_set.hold > 1 and not isinstance(actor, ObservationActor):
            return self._run_held(actor, max_steps, stream, trajectory)
        env, choose, shape = self.env, actor.choose, self._shape
        step, index = env.step, self.discretisation.cells.index
        observation, cell, info = self.observations[0], self.cells[0], self.info
        record = None if trajectory is None else trajectory.append
        taken = 0
        try:
            while taken < max_steps:
                number, action = choose(observation, cell, stream)
                try:
                    observation, reward, terminated, truncated, info = step(action)
                    if record is not None:
                        record((cell, number, float(reward)))
                except Exception as error:
                    self.cells[0] = cell
                    raise self._step_failure(action, error) from error
                taken += 1
                if shape is not None and getattr(observation, "shape", None) != shape:
                    self._refuse_shape(observation)
                cell = index(observation, env)
                if terminated or truncated:
                    self._end(bool(terminated))
                    if terminated or self.truncated:
                        break
        finally:
            self.steps += taken
        self.observations[0], self.cells[0], self.info = observation, cell, info
        return taken

    def _run_held(
        self, actor: Actor, max_steps: int, stream: RandomStream, trajectory: Trajectory | None = None
    ) -> int:
        """`run` where actions are held: a trajectory has one entry for each action that was chosen."""
        before = self.steps
        while self.steps - before < max_steps:
            cell = self.cells[0]
            number, action = actor.choose(self.observations[0], cell, stream)
            taken = self.step(action, max_steps - (self.steps - before))
            if trajectory is not None:
                trajectory.append((cell, number, taken.reward))
            if self.terminated or self.truncated:
                break
        return self.steps - before

    def go_to(self, actor: TargetActor, max_steps: int, stream: RandomStream) -> tuple[int, bool]:
        """Act until the actor's target is reached, it knows no way, or the episode ends; the steps, and arrival."""
        taken = 0
        while self.cells[0] != actor.target and taken < max_steps and not (self.terminated or self.truncated):
            if not actor.knows_way(self.cells[0]):
                break
            before = self.steps
            self.step(actor.choose(None, self.cells[0], stream)[1], max_steps - taken)
            taken += self.steps - before
        return taken, self.cells[0] == actor.target

    def put_back(self, cell: int, observation: Any, info: dict[str, Any]) -> None:
        """Take in what was seen in a state of the past, which the environment was brought back to."""
        self.cells[0], self.observations[0], self.info = cell, observation, info
        self.terminated = self.truncated = False

    def restart_time_limits(self, index: int = 0) -> None:
        """Let the time limits count from here."""
        self._time_limits.restart()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _end(self, terminated: bool) -> None:
        """Note that the episode ended; one that only ran out of time goes on."""
        self.terminated = terminated
        if not terminated:
            self.truncated = not self._time_limits.expired
            if not self.truncated:
                self._time_limits.restart()

    def _step_failure(self, action: Any, error: Exception) -> Exception:
        return self._failure(f"stepped with action {action!r} in cell {self.cells[0]}", error)


class VectorEnvironment(SteppedEnvironments):
    """A Gymnasium vector environment that does not reset by itself.

    Time limits in other processes cannot be restarted after a roll-in. That matters only where an environment pays by
    its own clock, as MiniGrid does; use one environment, or "sync", there. Nor do we see the time limits of a vector
    environment that somebody else made in other processes: make it without, or walks end where time does.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], discretisation: Discretisation) -> None:
        super().__init__(discretisation, envs.single_observation_space, envs.num_envs)
        mode = envs.metadata.get("autoreset_mode")
        if mode != AutoresetMode.DISABLED:
            raise ValueError(
                f"the vector environment resets by itself ({mode}), so that the last observation of an episode would "
                "be missed; make it with autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED, or give GymWorld an "
                "id and num_envs"
            )
        self.envs = envs
        if isinstance(envs, SyncVectorEnv):  # it would refuse to be stepped on after the time limit
            envs.envs = [env if isinstance(env, WithoutTimeLimit) else WithoutTimeLimit(env) for env in envs.envs]
        self._members: Sequence[Env | None] = getattr(envs, "envs", [None] * self.count)
        self._time_limits = [None if env is None else TimeLimits(env) for env in self._members]
        self._was_reset = False

    def reset(self, index: int, seed: int | None = None) -> None:
        """Begin an episode in one environment."""
        mask = np.arange(self.count) == index
        seeds = [seed if chosen else None for chosen in mask]
        try:
            if not self._was_reset:  # environments cannot be reset one by one until all have been
                self.envs.reset()
                self._was_reset = True
            observations, _ = self.envs.reset(seed=seeds, options={"reset_mask": mask})  # type: ignore[arg-type]
        except Exception as error:
            raise self._failure("reset", error) from error
        self._observe(index, self._split(observations)[index], self._members[index])

    def step(self, actions: Sequence[Any]) -> list[Step]:
        """Take one step in every environment."""
        joined = np.stack([np.asarray(action) for action in actions])
        try:
            observations, rewards, terminated, truncated, _ = self.envs.step(joined)
        except Exception as error:
            raise self._failure(f"stepped with actions {joined.tolist()} in cells {self.cells}", error) from error
        self.steps += self.count
        split = self._split(observations)
        cells = [self._observe(index, split[index], self._members[index]) for index in range(self.count)]
        columns = zip(cells, rewards.tolist(), terminated.tolist(), truncated.tolist(), strict=True)
        return [Step(cell, reward, ends, truncated=cut) for cell, reward, ends, cut in columns]

    def _split(self, observations: Any) -> list[Any]:
        # A copy: the vector environment may write its next observations into the same array.
        return [np.copy(one) for one in iterate(self.envs.observation_space, observations)]

    def restart_time_limits(self, index: int) -> None:
        """Let the time limits of one environment count from here, if they are in this process."""
        time_limits = self._time_limits[index]
        if time_limits is not None:
            time_limits.restart()

    def close(self) -> None:
        """Close all environments; once the process of one has died, those of the others are ended."""
        processes = getattr(self.envs, "processes", ())
        if all(process.is_alive() for process in processes):
            with suppress(OSError, EOFError):  # it dies while it is asked to close
                self.envs.close()
                return
        for process in processes:
            process.kill()
            process.join()
        self.envs.closed = True


def make_vector_environment(
    make: Callable[[], Env], count: int, vectorization: str, discretisation: Discretisation
) -> VectorEnvironment:
    """``count`` environments stepped together: in this process ("sync"), or in one process for each ("async")."""
    kind = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}[vectorization]
    try:
        return VectorEnvironment(
            kind([_MakeWithoutTimeLimit(make)] * count, autoreset_mode=AutoresetMode.DISABLED), discretisation
        )
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        if vectorization == "sync" or "pickle" not in str(error):
            raise
        raise ValueError(
            f"the function that makes the environment cannot be sent to another process ({error}); give an id or a "
            "function of a module that holds nothing of this process, or use vectorization='sync'"
        ) from error


class _MakeWithoutTimeLimit:
    """Makes an environment without its time limits; a class rather than a lambda, so that it can be pickled."""

    def __init__(self, make: Callable[[], Env]) -> None:
        self._make = make

    def __call__(self) -> Env:
        return WithoutTimeLimit(self._make())
