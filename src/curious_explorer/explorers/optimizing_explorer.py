"""Explorers that are optimizers, too: one run that learns for a reward gives a policy, and resets to where it went.

Called as an optimizer, an explorer hands out the policy. As an explorer it learns for the world's own reward and hands
out a reset model as well: half the start, half where the policies stop that it acted with, each walked from the start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration, count_starts
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Task, Watch, check_task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.validation import check_count, check_number, check_seed
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import Reward, World, check_world


class FinishedRun(NamedTuple):
    """What one run leaves behind."""

    result: OptimizerResult
    policies: Sequence[Floats]  # that it acted with, (S, A) each
    visited: Sequence[Floats] = ()  # where those go from the start, (S,) each, where that was measured
    model: CountedModel | None = None  # what was counted, where anything was


@dataclass(frozen=True, kw_only=True)
class OptimizingExplorer(ABC):
    """What every explorer of this kind can be told, and its two ways to be called.

    Settings are checked by their types: whole numbers are at least one and others positive. Those that `ZERO_TOO` names
    may be zero as well, those that `AT_MOST_ONE` names are no larger, and those whose type says so may be None.
    """

    SMALLEST, LARGEST = 1e-300, 1e15
    """Constants beyond these are beyond what can be computed with, too."""
    ZERO_TOO: ClassVar[tuple[str, ...]] = ("growth",)
    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ()

    steps: int = 100_000
    """How many steps to take where no budget is given."""
    horizon: int | None = None
    """After how many steps an episode is given up for another; by default where gamma**horizon is 0.01."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            name, kind, value = setting.name, str(setting.type), getattr(self, setting.name)
            if value is None and "None" in kind:
                continue
            if name == "seed":
                check_seed(value)
            elif kind.startswith("int"):
                check_count(value, name, least=1)
            elif kind.startswith("float"):
                most = 1.0 if name in self.AT_MOST_ONE else self.LARGEST
                check_number(value, name, low=0.0 if name in self.ZERO_TOO else self.SMALLEST, high=most)

    @abstractmethod
    def run(self, world: World, task: Task, samples: int, watch: Watch | None) -> FinishedRun:
        """Explore and learn for exactly so many samples."""

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None = None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> OptimizerResult:
        """Learn for the whole budget; see `Optimizer`."""
        task = check_unit_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        return self.run(world, task, task.budget or self.steps, watch).result

    def explore(
        self, world: World, *, gamma: float, samples: int | None = None, watch: Watch | None = None
    ) -> Exploration:
        """Explore for the world's own reward; see `Explorer`."""
        check_world(world)
        samples = check_count(self.steps if samples is None else samples, "samples", least=1)
        task = check_unit_task(world, None, gamma=gamma, reward=None, budget=samples)
        run = self.run(world, task, samples, watch)
        if run.model is not None and not run.model.starts.any():
            count_starts(world, run.model)
        discretisation = world.stored_discretisation()
        resets = ResetModel(
            run.policies,
            gamma=task.gamma,
            visited=run.visited,
            chained=False,
            discretisation=discretisation,
            model=run.model,
        )
        return Exploration(
            (),
            task.gamma,
            reset_model=resets,
            samples=run.result.samples,
            policy=run.result.policy,
            model=run.model,
            discretisation=discretisation,
        )

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
