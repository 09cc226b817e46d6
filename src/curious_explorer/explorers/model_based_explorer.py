"""The life that all model-based explorers lead: think, act by what was thought until it is worth thinking again.

What distinguishes one method from another is its `Strategy`: from the model so far, by which policy to act, and how
often a pair may be tried before thinking again. Everything else is here and the same for all: the budget to the step,
the counts, and what is handed out, the best policy for what was seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.explorers.run_log import ExplorerSettings, RunLog, check_unit_task
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.learners.optimizer import OptimizerResult, Reward, Task, Watch
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import exploitation
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import World

STRETCH, STRETCH_SHARE = 100, 0.05
"""The most steps in a row without a look at the counts: this many, or this share of all steps so far."""
NEVER = np.int64(1 << 62)
"""A quota that is never met."""


class Directions(NamedTuple):
    """What a strategy wants to be done next."""

    policy: Floats  # (S, A)
    quota: Integers  # (S, A): think again when a pair has been tried so often from now on
    to_the_end: bool = False  # whether the episode in which that happens is finished first


class Strategy(Protocol):
    """How a method explores: one object for each run, which may remember what it likes."""

    def directions(self, model: CountedModel, samples: int) -> Directions:
        """What to do next, after so many samples."""


@dataclass(frozen=True, kw_only=True)
class ModelBasedExplorer(ExplorerSettings, ABC):
    """A method that learns a model, plans on it with some optimism, and acts by the plan."""

    @abstractmethod
    def strategy(self, world: World, task: Task) -> Strategy:
        """How to explore this world in one run."""

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
        """Explore for the whole budget and return the best policy for what was seen; see `Optimizer`."""
        task = check_unit_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        most = task.budget or self.steps
        strategy = self.strategy(world, task)
        model = CountedModel(world.num_states, world.num_actions)
        values = np.zeros(world.num_states)
        run_log = RunLog(world, watch)
        horizon = self.horizon_for(task.gamma)
        agent = OnlineAgent(world, gamma=task.gamma, horizon=horizon, reset=task.roll_in, reward=task.reward)

        def use() -> Floats:
            return exploitation(model, task.reward, task.gamma, values)

        while run_log.samples < most:
            now = strategy.directions(model, run_log.samples)
            left = now.quota.copy()
            finishing, thinking = False, False
            while run_log.samples < most and not thinking:
                followed = agent.follow(
                    now.policy,
                    max_samples=min(most - run_log.samples, max(STRETCH, int(STRETCH_SHARE * run_log.samples))),
                    quota=None if finishing else left,
                    max_episodes=1 if finishing else None,
                )
                run_log.note(followed.samples, followed.episodes, followed.returned)
                left -= model.add(followed.seen, followed.ends, followed.end_rewards)
                if run_log.samples < most:  # the end has a policy of its own
                    run_log.show(use)
                thinking = followed.done and (finishing or not now.to_the_end)
                finishing = finishing or followed.done
        return run_log.close(use())


def growth_quota(model: CountedModel, growth: float) -> Integers:
    """Think again when some pair has been tried ``growth`` times more often than now, and once more at least."""
    quota: Integers = np.maximum(1, np.ceil(growth * model.tries)).astype(np.int64)
    return quota


def check_positive(settings: object, *names: str) -> None:
    """Refuse settings that are not positive, finite numbers."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < float("inf"):
            raise ValueError(f"{name} is {value!r}, expected a positive number")


def check_growth(growth: float) -> None:
    """Refuse a growth that is negative."""
    if not 0.0 <= growth < float("inf"):
        raise ValueError(f"growth is {growth!r}, expected zero (think again after every try) or a positive number")
