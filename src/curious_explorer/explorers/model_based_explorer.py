"""The loop of all model-based explorers: plan, act by the plan until it is worth planning again.

What distinguishes one method from another is its `Strategy`: from the model so far, by which policy to act, and how
often a pair may be tried before planning again. Everything else is here and the same for all: the budget to the step,
the counts, and what is handed out, the best policy for what was seen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.explorers.optimizing_explorer import FinishedRun, OptimizingExplorer
from curious_explorer.explorers.run_log import RunLog
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.learners.optimizer import Task, Watch
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import exploitation
from curious_explorer.worlds.world import World

LEAST_STEPS, SHARE_OF_STEPS = 100, 0.05
"""The most steps in a row without a look at the counts: this many, or this share of all steps so far."""
NEVER = np.int64(1 << 62)
"""A quota that is never met."""
MOST_TRIES = 1 << 40
"""Theory may ask for more tries than fit an integer; this many are as good as never."""


class NextPolicy(NamedTuple):
    """What a strategy wants to be done next."""

    policy: Floats  # (S, A)
    quota: Integers  # (S, A): plan again when a pair has been tried so often from now on
    finish_episode: bool = False  # whether the episode in which that happens is finished first


Strategy = Callable[[CountedModel, int], NextPolicy]
"""How a method explores: what to do next, by the model and the samples so far; one for each run, with a memory."""


@dataclass(frozen=True, kw_only=True)
class ModelBasedExplorer(OptimizingExplorer):
    """A method that learns a model, plans on it with some optimism, and acts by the plan."""

    @abstractmethod
    def strategy(self, world: World, task: Task) -> Strategy:
        """How to explore this world in one run."""

    def run(self, world: World, task: Task, samples: int, watch: Watch | None) -> FinishedRun:
        """Explore for the whole budget and hand out the best policy for what was seen."""
        strategy = self.strategy(world, task)
        model = CountedModel(world.num_states, world.num_actions)
        values = np.zeros(world.num_states)
        log = RunLog(world, samples, watch)
        horizon = self.horizon_for(task.gamma)
        agent = OnlineAgent(world, gamma=task.gamma, horizon=horizon, reset=task.roll_in, reward=task.reward)

        def best() -> Floats:
            return exploitation(model, task.reward, task.gamma, values)

        while log.samples < samples:
            now = strategy(model, log.samples)
            left = now.quota.copy()
            finishing, done = False, False
            while log.samples < samples and not done:
                if log.wants_policy():
                    log.policies.append(now.policy)
                followed = agent.follow(
                    now.policy,
                    max_samples=min(samples - log.samples, max(LEAST_STEPS, int(SHARE_OF_STEPS * log.samples))),
                    quota=None if finishing else left,
                    max_episodes=1 if finishing else None,
                )
                log.note(followed.samples, followed.episodes, followed.returned)
                left -= model.add(followed.seen, followed.ends, followed.end_rewards, ended=followed.ended)
                if log.samples < samples:  # the end has a policy of its own
                    log.show(best)
                done = followed.done and (finishing or not now.finish_episode)
                finishing = finishing or followed.done
        return FinishedRun(log.close(best()), log.policies, model=model)


def growth_quota(model: CountedModel, growth: float) -> Integers:
    """Plan again when some pair has been tried ``growth`` times more often than now, and once more at least."""
    quota: Integers = np.clip(np.ceil(growth * model.tries), 1.0, 2.0**62).astype(np.int64)
    return quota
