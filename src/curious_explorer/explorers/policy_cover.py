"""PC-PG and MaxEnt: a cover of policies that together go everywhere, found by policy gradients, and used as resets.

Both grow a set of policies pi_0 (uniform), pi_1, ... with their discounted visitations d_0, d_1, ..., each estimated by
running the policy from the start. Each round makes up a reward that is large where the cover has hardly been, and
learns the next policy for it. In the end a policy for the reward that counts is learned from resets that are drawn
half from the start and half from the cover. They differ in that reward, in where a round's episodes begin, and in how
the cover is weighed. Nothing is known of the model; the policies are learned by `TRPO`, a natural policy gradient.

Nobody should use what they learn while they explore, so ``watch`` sees the uniform policy until the last phase, and
then the policy after each update.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import MOST_POLICIES, uniform_policy
from curious_explorer.explorers.optimizing_explorer import FinishedRun, OptimizingExplorer
from curious_explorer.learners.optimizer import LearningCurve, OptimizerResult, Task, Watch
from curious_explorer.learners.trpo import TRPO
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward, World

UNTIL_SPENT = 1 << 40
"""More updates, or episodes, than any budget pays for."""
EPISODES_AT_ONCE = 1_000


@dataclass
class Cover:
    """Policies, and where they go."""

    gamma: float
    policies: list[Floats] = field(default_factory=list)
    visited: list[Floats] = field(default_factory=list)
    """d_i as it was measured, shape (S,) each, summing to one."""
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    """How much each policy counts, summing to one."""

    def pair_visitation(self) -> Floats:
        """d_0(s, a) + d_1(s, a) + ..., shape (S, A)."""
        parts = [d[:, None] * policy for d, policy in zip(self.visited, self.policies, strict=True)]
        total: Floats = np.sum(parts, axis=0)
        return total

    def state_visitation(self) -> Floats:
        """The visitation of the weighted mixture, shape (S,)."""
        mixed: Floats = self.weights @ np.array(self.visited)
        return mixed

    def roll_in(self, start: float) -> RollIn:
        """The start itself with probability ``start``, otherwise where a policy of the cover stops."""
        if not self.policies:
            return RollIn.from_start()
        chains = [(0, 0), *((index, index + 1) for index in range(len(self.policies)))]
        return RollIn.mixture(self.policies, self.gamma, [start, *((1.0 - start) * self.weights)], chains)


@dataclass(frozen=True, kw_only=True)
class CoverExplorer(OptimizingExplorer):
    """What both methods share: rounds that grow the cover, then a phase that uses it."""

    rounds: int = 10
    """How many policies join the cover."""
    explore_share: float = 0.6
    """How much of the budget goes into the cover, the rest into the policy that is handed out."""
    visit_share: float = 0.1
    """How much of a round goes into measuring where its policy goes; 0.05 and 0.2 are no better."""
    optimizer: TRPO = field(default_factory=lambda: TRPO(trace=0.98, advantage_memory=20.0))
    """How policies are learned; its number of updates follows from the budget instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.optimizer, TRPO):
            raise ValueError(f"optimizer is {self.optimizer!r}, expected TRPO(...)")
        for name in ("explore_share", "visit_share"):
            if getattr(self, name) >= 1.0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a number between 0 and 1")

    @abstractmethod
    def round_reward(self, cover: Cover, task: Task) -> Reward:
        """What the next policy is to learn for."""

    @abstractmethod
    def round_reset(self, cover: Cover) -> RollIn:
        """Where the episodes begin from which it learns."""

    @abstractmethod
    def new_weights(self, cover: Cover) -> Floats:
        """How much each policy counts, now that one has joined."""

    def run(self, world: World, task: Task, samples: int, watch: Watch | None) -> FinishedRun:
        """Grow a cover, then learn from it."""
        if task.roll_in.policies:
            raise ValueError(f"{type(self).__name__} makes its own resets; expected reset=None")
        before = world.samples
        cover = self.grow_cover(world, task, int(self.explore_share * samples), watch)
        spent = world.samples - before
        later = None if watch is None else lambda policy, used: watch(policy, spent + used)
        trained = self._learn(world, task, task.reward, cover.roll_in(0.5), samples - spent, later)
        curve = LearningCurve(trained.curve.samples + spent, trained.curve.returns, trained.curve.episodes)
        result = replace(trained, samples=spent + trained.samples, curve=curve)
        kept = np.unique(np.linspace(0, len(cover.policies) - 1, min(len(cover.policies), MOST_POLICIES)).astype(int))
        policies = [cover.policies[place] for place in kept] or [uniform_policy(world)]
        return FinishedRun(result, policies, [cover.visited[place] for place in kept])

    def grow_cover(self, world: World, task: Task, budget: int, watch: Watch | None = None) -> Cover:
        """The cover after all rounds, or after those that the budget paid for."""
        uniform = uniform_policy(world)
        if watch is not None:
            watch(uniform, 0)
        cover = Cover(task.gamma)
        left = budget
        policy = uniform
        for done in range(self.rounds + 1):
            share = left // (self.rounds + 1 - done)
            if done > 0:
                learning = int((1.0 - self.visit_share) * share)
                if learning == 0:
                    break
                reward, reset = self.round_reward(cover, task), self.round_reset(cover)
                learned = self._learn(world, task, reward, reset, learning, None)
                policy = learned.policy
                share, left = share - learned.samples, left - learned.samples
            measuring = share if done > 0 else max(int(self.visit_share * share), min(left, 1))
            if measuring == 0:
                break
            visited, used = self._visit(world, task.gamma, policy, measuring)
            left -= used
            cover.policies.append(policy)
            cover.visited.append(visited)
            cover.weights = self.new_weights(cover)
        return cover

    def _learn(
        self, world: World, task: Task, reward: Reward | None, reset: RollIn, budget: int, watch: Watch | None
    ) -> OptimizerResult:
        optimizer = replace(self.optimizer, updates=UNTIL_SPENT, horizon=self.horizon_for(task.gamma))
        return optimizer(world, reset, gamma=task.gamma, reward=reward, budget=budget, watch=watch)

    def _visit(self, world: World, gamma: float, policy: Floats, budget: int) -> tuple[Floats, int]:
        """Where a policy goes from the start, measured for a budget, and the steps that it took."""
        total, used = np.zeros(world.num_states), 0
        while used < budget:
            horizon, left = self.horizon_for(gamma), budget - used
            asked = EpisodeBatch(episodes=EPISODES_AT_ONCE, horizon=horizon, gamma=gamma, max_samples=left)
            batch = world.episodes(policy, asked)
            total += batch.occupancy
            used += batch.samples
        return total / total.sum(), used
