"""The loop that both policy-gradient optimizers share: run a batch, learn a critic, take a step.

The actor is a table of logits, the critic a table of values. After each batch the critic moves towards the mean of the
value targets seen in a state, as if its old value had been seen `critic_memory` times. What distinguishes one
optimizer from another is only the step it takes from the batch's statistics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.compile import compiled
from curious_explorer.learners.optimizer import OptimizerResult, check_task, learning_curve, tally
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, Reward, World

HORIZON_LEFT = 0.01
"""By default an episode is cut off when only this share of the discounted future is left."""
LEAST_LOGIT = -700.0
"""Below this a probability would underflow to zero, and with zero there is no way back."""


@dataclass(frozen=True, kw_only=True)
class ActorCritic(ABC):
    """The loop, and what every optimizer that uses it can be told; a subclass says which step to take."""

    updates: int = 100
    """How many times the policy is changed, if the budget allows."""
    episodes: int = 50
    """Episodes in a batch."""
    trace: float = 0.95
    """lambda of generalised advantage estimation (Schulman et al. 2016); with plain returns (1.0) depth 20 fails."""
    horizon: int | None = None
    """When an episode is cut off; by default where gamma**horizon is 0.01."""
    critic_memory: float = 20.0
    """How many visits the critic's old value is worth when a batch brings new ones."""

    def __post_init__(self) -> None:
        check_count(self.updates, "updates", least=1)
        check_count(self.episodes, "episodes", least=1)
        if self.horizon is not None:
            check_count(self.horizon, "horizon", least=1)
        for name, value, most in (("trace", self.trace, 1.0), ("critic_memory", self.critic_memory, math.inf)):
            if not 0.0 <= value <= most or not math.isfinite(value):
                raise ValueError(f"{name} is {value!r}, expected a finite number from 0 to {most:g}")

    @abstractmethod
    def take_step(self, logits: Floats, policy: Floats, batch: EpisodeStatistics) -> str | None:
        """Change logits and policy in place; return None, or the reason why nothing was changed."""

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Callable[[Floats, int], None] | None = None,
    ) -> OptimizerResult:
        """Alternate batches and steps until the updates are done or the budget is spent; see `Optimizer`.

        ``watch`` is called with the policy and the samples used before the first update and after each one.
        """
        task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        shape = (world.num_states, world.num_actions)
        logits, policy, critic = np.zeros(shape), np.full(shape, 1.0 / shape[1]), np.zeros(shape[0])
        asked = EpisodeBatch(
            episodes=self.episodes,
            horizon=self.horizon or default_horizon(task.gamma),
            gamma=task.gamma,
            reset=task.roll_in,
            reward=task.reward,
            trace=self.trace,
        )
        used, run = 0, 0
        curve: list[tuple[int, float, int]] = []
        verdicts: Counter[str | None] = Counter()
        occupancy = None
        if watch is not None:
            watch(policy, used)
        for _ in range(self.updates):
            left = None if task.budget is None else task.budget - used
            if left == 0:
                break
            batch = world.episodes(policy, replace(asked, critic=critic, max_samples=left))
            used += batch.samples
            if len(batch.returns) == 0:
                break
            run += len(batch.returns)
            verdicts[self.take_step(logits, policy, batch)] += 1
            improve_critic(critic, batch, self.critic_memory)
            occupancy = batch.occupancy / batch.occupancy.sum()
            curve.append((used, float(batch.returns.mean()), run))
            if watch is not None:
                watch(policy, used)
        return OptimizerResult(
            policy=frozen(policy),
            samples=used,
            curve=learning_curve(curve),
            occupancy=occupancy,
            **tally(verdicts),
        )


def default_horizon(gamma: float) -> int:
    """The number of steps after which `HORIZON_LEFT` of the discounted future is left."""
    return max(1, math.ceil(math.log(HORIZON_LEFT) / math.log(gamma))) if gamma > 0.0 else 1


def improve_critic(critic: Floats, batch: EpisodeStatistics, memory: float) -> None:
    """Move the critic towards the mean target of each state, its old value counting as ``memory`` visits."""
    _move_critic(critic, batch.weight, batch.target_sum, float(memory))


@compiled
def _move_critic(critic: Floats, weight: Floats, target_sum: Floats, memory: float) -> None:
    for state in range(len(critic)):
        seen = 0.0
        for action in range(weight.shape[1]):
            seen += weight[state, action]
        if seen > 0.0:
            critic[state] = (memory * critic[state] + target_sum[state]) / (memory + seen)


@compiled
def softmax_row(logits: Floats, policy: Floats, state: int) -> None:
    """Recompute the policy of one state from its logits, which are shifted so that the largest is zero."""
    largest = logits[state, 0]
    for action in range(1, logits.shape[1]):
        largest = max(largest, logits[state, action])
    total = 0.0
    for action in range(logits.shape[1]):
        logits[state, action] = max(logits[state, action] - largest, LEAST_LOGIT)
        policy[state, action] = np.exp(logits[state, action])
        total += policy[state, action]
    for action in range(logits.shape[1]):
        policy[state, action] /= total
