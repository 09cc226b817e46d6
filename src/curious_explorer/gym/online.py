"""One life in one environment, episode after episode, as `follow` and `learn_q` of a world lead it.

The compiled twin for finite MDPs is `curious_explorer.worlds.online_kernels`, which says more about what both do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.gym.actors import Actor, RandomStream
from curious_explorer.gym.rollouts import RollInSampler, reset_by_roll_in
from curious_explorer.gym.stepped_environments import EnvironmentStep, SingleEnvironment, SteppedEnvironments
from curious_explorer.worlds.episode_accumulator import RewardRule, TransitionCounter, refuse_reward
from curious_explorer.worlds.online_kernels import update_q
from curious_explorer.worlds.world import Followed, QProgress, QRule, QTable

Choose = Callable[[], tuple[int, Any]]
Notice = Callable[[int, int, float, EnvironmentStep], bool]


class Outcome(NamedTuple):
    """How a stretch of life went."""

    episodes: int
    returned: float
    samples: int
    done: bool


class OnlineAgent:
    """An agent in one environment: where it stands, and how it goes on.

    ``standing`` is whether an episode is in progress.
    """

    def __init__(self, lanes: SteppedEnvironments, stream: RandomStream, seeds: Iterator[int]) -> None:
        if not isinstance(lanes, SingleEnvironment):
            raise ValueError(
                f"this world steps {lanes.count} environments together, but one life is led in one; make the world "
                "with num_envs=1 for single steps and for optimizers that learn at every step"
            )
        self._lane, self._stream, self._seeds = lanes, stream, seeds
        self._seeded = self.standing = False
        self._age = 0

    @property
    def cell(self) -> int:
        """Where the agent stands."""
        return self._lane.cells[0]

    def renew(self, stream: RandomStream) -> None:
        """Go on with other random numbers."""
        self._stream = stream

    def restart(self, sampler: RollInSampler, most_steps: int | None = None) -> int:
        """Begin an episode; returns the cell. Where the steps do not suffice, nothing is standing afterwards."""
        self.standing = False
        seed = None if self._seeded else next(self._seeds)
        self._seeded = True
        begun = reset_by_roll_in(self._lane, sampler, self._stream, seed=seed, max_steps=most_steps)
        self.standing, self._age = begun is not None, 0
        return self.cell

    def step(self, number: int) -> EnvironmentStep:
        """Take the action of this number."""
        return self._act(self._lane.discretisation.action_set.choices[number])

    def _act(self, action: Any) -> EnvironmentStep:
        event = self._lane.step(action)
        self._age += 1
        if event.terminated or event.truncated:
            self.standing = False
        return event

    def follow(
        self,
        actor: Actor,
        *,
        gamma: float,
        horizon: int,
        max_samples: int,
        quota: NDArray[np.int64] | None,
        max_episodes: int | None,
        reset: RollInSampler,
        pay: RewardRule,
    ) -> Followed:
        """Act by one policy until a quota is met; see `World.follow`."""
        left = None if quota is None else np.array(quota, dtype=np.int64)
        notes = TransitionCounter()
        ends: NDArray[np.int64] = np.zeros(len(pay.for_ever), dtype=np.int64)

        def choose() -> tuple[int, Any]:
            return actor.choose(self._lane.observations[0], self.cell, self._stream)

        def notice(cell: int, number: int, earned: float, event: EnvironmentStep) -> bool:
            notes.add(cell, number, event.cell, event.reward)
            ends[event.cell] += event.terminated
            if left is None or number < 0:
                return False
            left[cell, number] -= 1
            return bool(left[cell, number] <= 0)

        outcome = self._live(choose, notice, gamma, horizon, max_samples, max_episodes, reset, pay)
        end_rewards: Floats = np.zeros(len(ends))  # an environment pays nothing after its end
        return Followed(notes.counts(), ends, end_rewards, *outcome)

    def learn_q(
        self,
        table: QTable,
        rule: QRule,
        *,
        gamma: float,
        horizon: int,
        max_samples: int,
        reset: RollInSampler,
        pay: RewardRule,
    ) -> QProgress:
        """Q-learning; see `World.learn_q`."""
        choices = self._lane.discretisation.action_set.choices

        def choose() -> tuple[int, Any]:
            if rule.epsilon > 0.0 and self._stream.uniform() < rule.epsilon:
                number = int(self._stream.uniform() * len(choices))
            else:
                row = table.bounds[self.cell]
                best = np.flatnonzero(row == row.max())
                number = int(best[int(self._stream.uniform() * len(best))])
            return number, choices[number]

        def notice(cell: int, number: int, earned: float, event: EnvironmentStep) -> bool:
            ahead = pay.terminated(event.cell, 0.0) if event.terminated else float(table.bounds[event.cell].max())
            learning = (*map(float, rule[1:5]), bool(rule.falling))  # `epsilon` is for choosing
            update_q(cell, number, earned, ahead, gamma, *learning, *table)  # type: ignore[arg-type, call-arg]
            return False

        outcome = self._live(choose, notice, gamma, horizon, max_samples, None, reset, pay)
        return QProgress(*outcome[:3])

    def _live(
        self,
        choose: Choose,
        notice: Notice,
        gamma: float,
        horizon: int,
        max_samples: int,
        max_episodes: int | None,
        reset: RollInSampler,
        pay: RewardRule,
    ) -> Outcome:
        """Act, notice, begin again, until told to stop or out of steps."""
        whole = ended = 0
        returned = earned = 0.0
        discount, begun_here = 1.0, False
        lane = self._lane
        first, last = lane.steps, lane.steps + max_samples
        while lane.steps < last:
            if not self.standing:
                if max_episodes is not None and ended >= max_episodes:
                    return Outcome(whole, returned, lane.steps - first, True)
                self.restart(reset, last - lane.steps)
                earned, discount, begun_here = 0.0, 1.0, True
                if not self.standing or lane.steps >= last:
                    self.standing = False
                    break
            cell = self.cell
            number, action = choose()
            event = self._act(action)
            if not math.isfinite(event.reward):
                refuse_reward(event.reward, f"the environment {lane.discretisation.environment}")
            pays = pay.of_step(cell, number, event.reward)
            earned += discount * pays
            discount *= gamma
            if event.terminated:
                earned += discount * pay.terminated(event.cell, 0.0) / (1.0 - gamma)
            if not self.standing or self._age >= horizon:
                self.standing = False
                ended += 1
                if begun_here:
                    whole += 1
                    returned += earned
            if notice(cell, number, pays, event):
                return Outcome(whole, returned, lane.steps - first, True)
        return Outcome(whole, returned, lane.steps - first, False)


def check_quota(quota: NDArray[np.int64], shape: tuple[int, int]) -> None:
    """Refuse a quota that does not say for each pair how often it may be tried."""
    left = np.array(quota, dtype=np.int64)
    if left.shape != shape or (left < 1).any():
        raise ValueError(
            f"quota has shape {left.shape} and least entry {left.min(initial=1)}, expected shape {shape} and at least "
            "one try for each pair"
        )
