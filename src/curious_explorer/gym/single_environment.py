"""One environment, walked as fast as Python can: the inner loop of every walk, episode and roll-in."""

from __future__ import annotations

from typing import Any

from curious_explorer.gym.actors import Actor, RandomStream
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.time_limits import Env, TimeLimits
from curious_explorer.gym.vector_environment import EnvironmentStep, SteppedEnvironments
from curious_explorer.worlds.episode_accumulator import Trajectory


class SingleEnvironment(SteppedEnvironments):
    """One environment; ``terminated`` and ``stuck`` say whether and how its episode has ended.

    ``info`` is what the environment had to say last.
    """

    count = 1

    def __init__(self, env: Env, discretisation: Discretisation) -> None:
        super().__init__(discretisation, env.observation_space)
        self.env = env
        self._time_limits = TimeLimits(env)
        self.observations, self.cells = [None], [0]
        self.info: dict[str, Any] = {}
        self.terminated = self.stuck = False

    def reset(self, lane: int = 0, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode."""
        try:
            observation, self.info = self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise self.failure("reset", error) from error
        self.terminated = self.stuck = False
        self.look(0, observation, self.env)

    def step(self, action: Any) -> EnvironmentStep:
        """Take one step."""
        try:
            observation, reward, terminated, truncated, self.info = self.env.step(action)
            paid = float(reward)
        except Exception as error:
            raise self._step_failure(action, error) from error
        self.steps += 1
        cell = self.look(0, observation, self.env)
        if terminated or truncated:
            self._end(bool(terminated))
        return EnvironmentStep(cell, paid, self.terminated, self.stuck)

    def walk(self, actor: Actor, most: int, draws: RandomStream, trajectory: Trajectory | None = None) -> int:
        """Act for ``most`` steps or to the end of the episode; returns how many steps it took.

        The same as `step` again and again, written out, because this loop is where all of the time goes.
        """
        env, choose, shape = self.env, actor.choose, self._shape
        step, index = env.step, self.discretisation.cells.index
        observation, cell, info = self.observations[0], self.cells[0], self.info
        note = None if trajectory is None else trajectory.append
        taken = 0
        try:
            while taken < most:
                number, action = choose(observation, cell, draws)
                try:
                    observation, reward, terminated, truncated, info = step(action)
                    if note is not None:
                        note((cell, number, float(reward)))
                except Exception as error:
                    self.cells[0] = cell
                    raise self._step_failure(action, error) from error
                taken += 1
                if shape is not None and getattr(observation, "shape", None) != shape:
                    self.refuse_shape(observation)
                cell = index(observation, env)
                if terminated or truncated:
                    self._end(bool(terminated))
                    if terminated or self.stuck:
                        break
        finally:
            self.steps += taken
        self.observations[0], self.cells[0], self.info = observation, cell, info
        return taken

    def turn_back_time_limits(self, lane: int = 0) -> None:
        """Give whoever acts from here on all of the environment's time."""
        self._time_limits.turn_back()

    def close(self) -> None:
        """Give the environment back."""
        self.env.close()

    def _end(self, terminated: bool) -> None:
        """Take in that an episode ended, unless it was only the clock that ran out."""
        self.terminated = terminated
        if not terminated:
            self.stuck = not self._time_limits.ran_out
            if not self.stuck:
                self._time_limits.turn_back()

    def _step_failure(self, action: Any, error: Exception) -> Exception:
        return self.failure(f"stepped with action {action!r} in cell {self.cells[0]}", error)
