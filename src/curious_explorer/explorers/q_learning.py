"""Model-free methods: Q-learning with optimistic bonuses, and with random actions now and then."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.optimizing_explorer import FinishedRun, OptimizingExplorer
from curious_explorer.explorers.run_log import WATCH_GROWTH, RunLog
from curious_explorer.learners.online import OnlineAgent, QRule, QTable
from curious_explorer.learners.optimizer import Task, Watch
from curious_explorer.models.planning import even_greedy
from curious_explorer.worlds.world import World

LEAST_STEPS = 100
"""Steps between two looks at the table: this many, or a hundredth of all steps so far."""


@dataclass(frozen=True, kw_only=True)
class UCBQLearning(OptimizingExplorer):
    """Q-learning with upper confidence bounds (Jin et al. 2018), for discounted worlds (Dong et al. 2019).

    Learning rate (H + 1) / (H + n) for the n-th try, bonus c sqrt(H ln(S A (n+1)(n+2) / delta) / n) on normalised
    action values, which start at one; the agent acts by the least that each has ever been.
    """

    rate_horizon: float | None = None
    """H of the learning rate; None takes 1 / (1 - gamma), the effective horizon (published up to a logarithm)."""
    bonus: float = 0.001
    """c. Published: 4 sqrt(2) (from memory), with which nothing is below one until a pair was tried 18,000 times.
    Practical: a thousandth, of the order of how much the values of actions differ here."""
    delta: float = 0.05
    """The risk that any bound misses."""

    def rule(self, world: World, gamma: float) -> QRule:
        """What happens at every step."""
        horizon = 1.0 / (1.0 - gamma) if self.rate_horizon is None else self.rate_horizon
        pairs = world.num_states * world.num_actions
        return QRule(
            rate_horizon=horizon,
            bonus=self.bonus * math.sqrt(horizon),
            log_term=math.log(pairs / self.delta),
            falling=True,
        )

    def run(self, world: World, task: Task, samples: int, watch: Watch | None) -> FinishedRun:
        """Learn for the whole budget and hand out the greedy policy."""
        rule = self.rule(world, task.gamma)
        return _learn(self, world, task, samples, watch, initial=1.0, rule=lambda done: rule)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedyQ(OptimizingExplorer):
    """Q-learning (Watkins 1989) that takes a random action now and then: what most people try first.

    Values start at zero; the chance of a random action falls linearly from `first_epsilon` to `last_epsilon`.
    """

    ZERO_TOO: ClassVar[tuple[str, ...]] = ("first_epsilon", "last_epsilon", "decay", "least_rate")
    first_epsilon: float = 1.0
    last_epsilon: float = 0.1
    decay: float = 0.5
    """The share of the budget over which it falls (in the manner of Mnih et al. 2015)."""
    rate_horizon: float = 10.0
    """The n-th try of a pair moves its value by (h + 1) / (h + n)."""
    least_rate: float = 0.02
    """But by no less than this."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.ZERO_TOO:
            if getattr(self, name) > 1.0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a number in [0, 1]")

    def rule(self, done: float) -> QRule:
        """What happens at every step, when this share of the budget is used."""
        fallen = 1.0 if done >= self.decay else done / self.decay
        epsilon = self.first_epsilon + fallen * (self.last_epsilon - self.first_epsilon)
        return QRule(epsilon=epsilon, rate_horizon=self.rate_horizon, least_rate=self.least_rate)

    def run(self, world: World, task: Task, samples: int, watch: Watch | None) -> FinishedRun:
        """Learn for the whole budget and hand out the greedy policy."""
        return _learn(self, world, task, samples, watch, initial=0.0, rule=self.rule)


def _learn(
    settings: OptimizingExplorer,
    world: World,
    task: Task,
    samples: int,
    watch: Watch | None,
    *,
    initial: float,
    rule: Callable[[float], QRule],
) -> FinishedRun:
    """Q-learning in stretches, each under the rule for the share of the budget that is used by then."""
    shape = (world.num_states, world.num_actions)
    table = QTable(np.full(shape, initial), np.full(shape, initial), np.zeros(shape, dtype=np.int64))
    log = RunLog(world, samples, watch)
    horizon = settings.horizon_for(task.gamma)
    agent = OnlineAgent(world, gamma=task.gamma, horizon=horizon, reset=task.roll_in, reward=task.reward)

    def greedy() -> Floats:
        return even_greedy(table.bounds, 0.0)

    while log.samples < samples:
        now = rule(log.samples / samples)
        if log.wants_policy():
            log.policies.append((1.0 - now.epsilon) * greedy() + now.epsilon / shape[1])
        stretch = min(samples - log.samples, max(LEAST_STEPS, int(WATCH_GROWTH * log.samples)))
        progress = agent.learn_q(table, now, max_samples=stretch)
        log.note(progress.samples, progress.episodes, progress.returned)
        if log.samples < samples:
            log.show(greedy)
    return FinishedRun(log.close(greedy()), log.policies)
