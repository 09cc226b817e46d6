"""What both policy-gradient optimizers share: run a batch, learn a critic, take a step.

The actor is a table of logits, the critic a table of values. After each batch the critic moves towards the mean of the
value targets seen in a state, as if its old value had been seen `critic_memory` times. What distinguishes one
optimizer from another is only the step it takes from the batch's statistics.

Whoever says how many ``updates`` there are gets exactly those, in batches of as many ``episodes``. Where nobody does,
learning goes on until it stops paying; `annealed` says how.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats, Mask
from curious_explorer.callbacks.events import BATCH, LEARN, tell
from curious_explorer.compile import compiled
from curious_explorer.learners.annealed import learn_for_a_round, learn_while_it_pays
from curious_explorer.learners.moving_starts_world import MovingStartsWorld
from curious_explorer.learners.optimizer import (
    Evaluation,
    Measured,
    Optimizer,
    OptimizerResult,
    Pause,
    Pieces,
    Task,
    Watch,
    check_task,
    complete,
    learning_curve,
    tally,
)
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.validation import check_count, check_number
from curious_explorer.worlds.policies import KnownPolicy, frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, Reward, World

HORIZON_LEFT = 0.01
"""By default an episode is cut off when only this share of the discounted future is left."""
LEAST_LOGIT = -700.0
"""Below this a probability would underflow to zero, and with zero there is no way back."""
FIXED_EPISODES = 50
"""Episodes in a batch, where the number of updates is given and that of episodes is not."""

Step = Callable[[EpisodeStatistics], str | None]
"""Changes the actor by a batch; returns None, or the reason why nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class ActorCritic(ABC):
    """What every optimizer of this kind can be told; a subclass says which step to take."""

    updates: int | None = None
    """How many times the policy is changed, if the budget allows; None: as long as it pays (see `annealed`)."""
    episodes: int | None = None
    """Episodes in a batch; None: enough to try every pair about ten times, or 50 where the updates are given."""
    trace: float = 0.95
    """lambda of generalised advantage estimation (Schulman et al. 2016); with plain returns (1.0) depth 20 fails."""
    horizon: int | None = None
    """When an episode is cut off; by default where gamma**horizon is 0.01."""
    critic_memory: float = 20.0
    """How many visits the critic's old value is worth when a batch brings new ones."""

    def __post_init__(self) -> None:
        for name in ("updates", "episodes", "horizon"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, least=1)
        check_number(self.trace, "trace", high=1.0)
        check_number(self.critic_memory, "critic_memory")

    @abstractmethod
    def take_step(self, logits: Floats, policy: Floats, batch: EpisodeStatistics) -> str | None:
        """Change logits and policy in place; return None, or the reason why nothing was changed."""

    @abstractmethod
    def take_measured_step(
        self, logits: Floats, policy: Floats, batch: EpisodeStatistics, *, largest: float, caution: float
    ) -> tuple[str | None, float]:
        """Like `take_step`, no longer than its signal deserves; also returns the size of the signal.

        ``largest`` is the size of the largest recent signal, and ``caution`` (at most 1) shortens every step.
        """

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> OptimizerResult:
        """Learn a policy; see `Optimizer`.

        ``watch`` is called with the policy and the samples used before the first update and after each one.
        """
        return complete(self.learn_in_pieces(world, reset, gamma=gamma, reward=reward, budget=budget, watch=watch))

    def learn_in_pieces(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> Pieces[OptimizerResult]:
        """Learn a policy with a pause after each batch; see `ResumableOptimizer`."""
        run = LearningRun(
            self, world, check_task(world, reset, gamma=gamma, reward=reward, budget=budget), watch, reset
        )
        if self.updates is not None:
            for _ in range(self.updates):
                if run.update(self.episodes or FIXED_EPISODES, self.trace, self._step_of(run)) is None:
                    break
                yield run.pause()
            return run.result()
        if reward is None:
            return (yield from learn_while_it_pays(self, run))
        return (yield from learn_for_a_round(self, run, None, effort=1))

    def for_round(self, start: KnownPolicy, effort: int) -> Optimizer:
        """The optimizer in a round of Algorithm 2; see `RoundOptimizer`. Given updates are kept to as they are."""
        return self if self.updates is not None else _Round(self, start, effort)

    def _step_of(self, run: LearningRun) -> Step:
        return lambda batch: self.take_step(run.logits, run.policy, batch)


@dataclass(frozen=True, eq=False)
class _Round:
    """An actor-critic that begins a round with an earlier policy, with so many times the usual episodes."""

    optimizer: ActorCritic
    start: KnownPolicy
    effort: int

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> OptimizerResult:
        """Learn a policy; see `Optimizer`."""
        return complete(self.learn_in_pieces(world, reset, gamma=gamma, reward=reward, budget=budget, watch=watch))

    def learn_in_pieces(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> Pieces[OptimizerResult]:
        """Learn a policy with a pause after each batch; see `ResumableOptimizer`."""
        task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        run = LearningRun(self.optimizer, world, task, watch)
        return (yield from learn_for_a_round(self.optimizer, run, self.start, effort=self.effort))


class LearningRun:
    """One call of an optimizer in progress: actor and critic, and the account of what was done."""

    def __init__(
        self,
        optimizer: ActorCritic,
        world: World,
        task: Task,
        watch: Watch | None,
        reset: Reset | RollIn | None = None,
    ) -> None:
        shape = (world.num_states, world.num_actions)
        self.world, self.task = world, task
        self.logits, self.policy = np.zeros(shape), np.full(shape, 1.0 / shape[1])
        self.critic = np.zeros(shape[0])
        self.used = 0
        """Steps taken so far, roll-ins and evaluations included."""
        self.last_batch_ends: int | None = None
        """After how many steps no batch goes on, where no budget says so; evaluations may."""
        self._memory = optimizer.critic_memory
        self._horizon = optimizer.horizon or default_horizon(task.gamma)
        self._watch = watch
        self._reset = reset
        self._episodes = 0
        self._batch_steps = 0
        self._curve: list[tuple[int, float, int]] = []
        self._verdicts: Counter[str | None] = Counter()
        self._occupancy: Floats | None = None
        tell(watch, BATCH, LEARN, 0, find_policy=lambda: self.policy)

    @property
    def left(self) -> int | None:
        """How many steps may still be taken; None if there is no limit."""
        return None if self.task.budget is None else self.task.budget - self.used

    @property
    def left_for_batches(self) -> int | None:
        """How many steps batches may still take; None if there is no limit."""
        return self.left if self.last_batch_ends is None else max(self.last_batch_ends - self.used, 0)

    @property
    def level(self) -> float:
        """How far starts have moved from the reward, where they do."""
        return self.world.starts.progress.level if isinstance(self.world, MovingStartsWorld) else 0.0

    def share_starts(self, terminal: Mask) -> None:
        """Let half of the episodes begin at rho, where the resets say how often they end in which state.

        Roll-ins that end in a terminal state are drawn again, and rho with them, so with gamma 0.99 and episodes of
        fifteen steps nine in ten episodes would begin there.
        """
        resets = self._reset
        if not isinstance(resets, ResetModel) or isinstance(self.world, MovingStartsWorld):
            return
        if resets.choice is None and len(resets.visited) > 0:
            lost = float((resets.shares[: len(resets.visited)] @ resets.visited)[terminal].sum())
            share = (1.0 - lost) / (2.0 - lost)  # which of all draws, so that of those that are kept it is half
            self.task = self.task._replace(roll_in=self.task.roll_in.with_start_share(share))

    def update(self, episodes: int, trace: float, step: Step) -> EpisodeStatistics | None:
        """Run a batch, take a step, and move the critic; returns the batch, or None where the budget is spent."""
        left = self.left_for_batches
        if left == 0:
            return None
        batch = self.world.episodes(
            self.policy,
            EpisodeBatch(
                episodes=episodes,
                horizon=self._horizon,
                gamma=self.task.gamma,
                reset=self.task.roll_in,
                reward=self.task.reward,
                critic=self.critic,
                trace=trace,
                max_samples=left,
            ),
        )
        self.used += batch.samples
        self._batch_steps = batch.samples
        if len(batch.returns) == 0:
            return None
        self._episodes += len(batch.returns)
        self._verdicts[step(batch)] += 1
        improve_critic(self.critic, batch, self._memory)
        self._occupancy = batch.occupancy / batch.occupancy.sum()
        self._curve.append((self.used, float(batch.returns.mean()), self._episodes))
        numbers = {"return": self._curve[-1][1], "episodes": self._episodes}
        tell(self._watch, BATCH, LEARN, self.used, numbers, lambda: self.policy)
        return batch

    def pause(self, measured: Measured | None = None) -> Pause:
        """A pause after a batch; the next one is about as large as the last."""
        return Pause(self._batch_steps, self.policy, measured)

    def measure(self, policy: Floats, episodes: int, most_steps: int) -> Evaluation:
        """The value of a policy from the world's own start; minus infinity where no step is left to measure it.

        The steps that this takes are counted here, too.
        """
        left = most_steps if self.left is None else min(self.left, most_steps)
        if left == 0:
            return Evaluation(-math.inf, 0.0, 0, 0)
        batch = self.world.episodes(
            policy, EpisodeBatch(episodes=episodes, horizon=2 * self._horizon, gamma=self.task.gamma, max_samples=left)
        )
        self.used += batch.samples
        if len(batch.returns) == 0:
            return Evaluation(-math.inf, 0.0, 0, batch.samples)
        values = (1.0 - self.task.gamma) * batch.returns
        error = float(values.std() / math.sqrt(len(values)))
        return Evaluation(float(values.mean()), error, len(values), batch.samples)

    def result(self, policy: Floats | None = None) -> OptimizerResult:
        """The account, with the policy as it is now or with a better one."""
        if policy is not None:
            tell(self._watch, BATCH, LEARN, self.used, find_policy=lambda: policy)
        return OptimizerResult(
            policy=frozen(self.policy if policy is None else policy),
            samples=self.used,
            curve=learning_curve(self._curve),
            occupancy=self._occupancy,
            **tally(self._verdicts),
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
