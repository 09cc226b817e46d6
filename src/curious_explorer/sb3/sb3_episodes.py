"""Episodes that a neural learner runs, one in each lane: where they begin, what they earn, where they went.

The world's rules hold here as in `World.episodes`: an episode begins where a roll-in ends, time limits are the
learner's own, a terminated episode goes on earning what its last state pays, and every step is counted, those of
roll-ins included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from curious_explorer.gym.actors import ActorCache, RandomStream
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.rollouts import MAX_FAILED_ROLL_INS, RollInSampler, refuse_roll_in, reset_by_roll_in
from curious_explorer.gym.stepped_environments import SingleEnvironment
from curious_explorer.learners.optimizer import Reward, Task
from curious_explorer.worlds.world import World


class BudgetSpent(Exception):  # noqa: N818 (it is no error)
    """No step is left."""


class Meter:
    """Counts the steps of a learner, and stops it in front of the first one that it may not take."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.taken = 0

    @property
    def left(self) -> int:
        """How many steps may still be taken."""
        return self._budget - self.taken

    def charge(self, steps: int) -> None:
        """Pay for steps that are about to be taken, or that were taken within what is left."""
        if self.taken + steps > self._budget:
            raise BudgetSpent
        self.taken += steps


class Pay:
    """What a step earns, by the state it was taken in and the action's number (-1 where it has none)."""

    def __init__(self, reward: Reward | None, gamma: float) -> None:
        self._larger = reward is not None and reward.combine == "max"
        # The last column, -1, is for actions without a number: the mean of the state's row.
        self._rows: list[list[float]] | None = None
        self.for_ever: dict[int, float] = {}
        """What a terminated episode goes on earning in the world's own reward, where the world says so."""
        self._perpetuity = gamma / (1.0 - gamma)
        if reward is not None:
            self._rows = np.column_stack([reward.table, reward.table.mean(axis=1)]).tolist()

    def of_step(self, state: int, number: int, own: float) -> float:
        """What one step earns."""
        if self._rows is None:
            return own
        given = self._rows[state][number]
        return max(own, given) if self._larger else given

    def after_the_end(self, state: int) -> float:
        """What all steps after a terminated one earn together, as worth at that step."""
        own = self.for_ever.get(state, 0.0)
        given = own if self._rows is None else self._rows[state][-1]
        return self._perpetuity * (max(own, given) if self._larger else given)


class Ended(NamedTuple):
    """An episode that is over, or that was looked at before its end."""

    states: list[int]  # in which its steps were taken, and in which it ended
    returned: float  # discounted


class Outcome(NamedTuple):
    """What one step brings a learner."""

    reward: float
    terminated: bool
    cut_off: bool


class Lane(ABC):
    """One episode after another."""

    observation: Any
    state: int

    def __init__(self, pay: Pay, gamma: float, horizon: int) -> None:
        self._pay, self._gamma, self._horizon = pay, gamma, horizon
        self._states: list[int] = []
        self._returned, self._discount = 0.0, 1.0

    @abstractmethod
    def restart(self) -> None:
        """Stand where a roll-in ends: set observation and state."""

    @abstractmethod
    def move(self, action: Any) -> tuple[int, float, bool, bool]:
        """Take a step: set observation and state; returns the action's number, reward, terminated, truncated."""

    def close(self) -> None:  # noqa: B027 (most have nothing to give back)
        """Give back what was opened."""

    def begin(self) -> None:
        """Begin an episode."""
        self.restart()
        self._states, self._returned, self._discount = [self.state], 0.0, 1.0

    def step(self, action: Any) -> Outcome:
        """Take one action."""
        before = self.state
        number, own, terminated, truncated = self.move(action)
        earned = self._pay.of_step(before, number, own)
        if terminated:
            earned += self._pay.after_the_end(self.state)
        self._states.append(self.state)
        self._returned += self._discount * earned
        self._discount *= self._gamma
        return Outcome(earned, terminated, truncated or len(self._states) > self._horizon)

    def so_far(self) -> Ended:
        """The episode up to now."""
        return Ended(self._states, self._returned)


class GymLane(Lane):
    """Episodes in an environment of a `GymWorld`, on its raw observations.

    Cells that are met for the first time become known to the world.
    """

    def __init__(self, world: GymWorld, task: Task, meter: Meter, pay: Pay, horizon: int, seed: int) -> None:
        super().__init__(pay, task.gamma, horizon)
        self._meter, self._stream = meter, RandomStream(seed)
        self._seed: int | None = seed
        self._solo = SingleEnvironment(world.make_environment(), world.discretisation)
        choices = world.discretisation.action_set.choices
        self._sampler = RollInSampler(task.roll_in, ActorCache(world.num_states, choices))
        numbered = isinstance(self._solo.env.action_space, gymnasium.spaces.Discrete)
        self._number: dict[Any, int] = {choice: place for place, choice in enumerate(choices)} if numbered else {}

    def restart(self) -> None:
        """Begin an episode where a roll-in ends; the first time with this lane's seed."""
        solo, before = self._solo, self._solo.steps
        try:
            begun = reset_by_roll_in(solo, self._sampler, self._stream, seed=self._seed, max_steps=self._meter.left)
        finally:
            self._meter.charge(solo.steps - before)
        self._seed = None
        if begun is None:
            raise BudgetSpent
        self.observation, self.state = solo.observations[0], solo.cells[0]

    def move(self, action: Any) -> tuple[int, float, bool, bool]:
        """Step the environment."""
        self._meter.charge(1)
        event = self._solo.step(action)
        self.observation, self.state = self._solo.observations[0], event.cell
        return self._number.get(action, -1) if self._number else -1, event.reward, event.terminated, event.truncated

    def close(self) -> None:
        """Close the environment."""
        self._solo.close()


class WorldLane(Lane):
    """Episodes in a world of states, by its own `restart` and `step`; an observation is the state's number."""

    def __init__(self, world: World, task: Task, meter: Meter, pay: Pay, horizon: int, seed: int) -> None:
        super().__init__(pay, task.gamma, horizon)
        self._world, self._meter, self._roll_in = world, meter, task.roll_in
        self._sampler = RollInSampler(task.roll_in, ActorCache(world.num_states, list(range(world.num_actions))))
        self._stream = RandomStream(seed)

    def restart(self) -> None:
        """Roll in; again and again until the episode stands in a state that is not terminal."""
        for _ in range(MAX_FAILED_ROLL_INS):
            self.observation = self.state = int(self._world.restart())
            if self._roll_in_once():
                return
        refuse_roll_in()

    def _roll_in_once(self) -> bool:
        for actor, steps in reversed(self._sampler.sample(self._stream)):
            for _ in range(steps):
                number, _ = actor.choose(self.state, self.state, self._stream)
                if self.move(number)[2]:
                    return False
        return True

    def move(self, action: Any) -> tuple[int, float, bool, bool]:
        """Step the world."""
        self._meter.charge(1)
        step = self._world.step(action)
        self.observation = self.state = step.state
        if step.terminated:
            self._pay.for_ever[step.state] = step.end_reward
        return action, step.reward, step.terminated, False
