"""What a run tells the outside while it goes on: a learning curve, and the current policy for whoever watches.

``watch`` is called with the uniform policy before the first step, then whenever a hundredth more samples have been used
since the last call and the method has a new policy to show, and once more at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Reward, Task, Watch, check_task, learning_curve
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import World

WATCH_GROWTH = 0.01
"""A hundredth more samples between two calls: about a thousand of them in a million steps."""


@dataclass(frozen=True, kw_only=True)
class ExplorerSettings:
    """What every method can be told."""

    steps: int = 100_000
    """How many steps to take where no budget is given."""
    horizon: int | None = None
    """After how many steps an episode is given up for another; by default where gamma**horizon is 0.01."""

    def __post_init__(self) -> None:
        check_count(self.steps, "steps", least=1)
        if self.horizon is not None:
            check_count(self.horizon, "horizon", least=1)

    def horizon_for(self, gamma: float) -> int:
        """The horizon at a discount."""
        return self.horizon or default_horizon(gamma)


def check_unit_task(
    world: World, reset: Reset | RollIn | None, *, gamma: float, reward: Reward | None, budget: int | None
) -> Task:
    """A task whose rewards lie in [0, 1]: optimism needs to know the most that can be earned."""
    task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
    if task.reward is not None:
        outside = np.argwhere((task.reward.table < 0.0) | (task.reward.table > 1.0))
        if len(outside):
            state, action = (int(index) for index in outside[0])
            raise ValueError(
                f"the reward of state {state}, action {action} is {task.reward.table[state, action]}, expected a "
                "number in [0, 1]; scale the table, because this method takes one for the most that can be earned"
            )
    return task


class RunLog:
    """The curve of one run, and its ``watch``."""

    def __init__(self, world: World, watch: Watch | None) -> None:
        self._watch = watch
        self._next_call = 0
        self._curve: list[tuple[int, float, int]] = []
        self._episodes, self._new_episodes, self._returned = 0, 0, 0.0
        self.samples = 0
        """Steps taken so far."""
        self.show(lambda: np.full((world.num_states, world.num_actions), 1.0 / world.num_actions))

    def note(self, samples: int, episodes: int, returned: float) -> None:
        """A stretch of life: its steps, and the number and summed discounted return of its whole episodes."""
        self.samples += samples
        self._new_episodes += episodes
        self._returned += returned

    def show(self, policy: Callable[[], Floats], *, always: bool = False) -> None:
        """Call ``watch`` if it is time; the policy is worked out only then."""
        if not always and self.samples < self._next_call:
            return
        self._next_call = self.samples + max(1, int(WATCH_GROWTH * self.samples))
        if self._new_episodes:
            self._episodes += self._new_episodes
            self._curve.append((self.samples, self._returned / self._new_episodes, self._episodes))
            self._new_episodes, self._returned = 0, 0.0
        if self._watch is not None:
            self._watch(policy(), self.samples)

    def close(self, policy: Floats) -> OptimizerResult:
        """The result of the run; whoever watches sees it too."""
        self.show(lambda: policy, always=True)
        return OptimizerResult(
            policy=frozen(policy), samples=self.samples, curve=learning_curve(self._curve), accepted=len(self._curve)
        )
