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

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.explorers.model_based_explorer import check_positive
from curious_explorer.explorers.run_log import ExplorerSettings, check_unit_task
from curious_explorer.learners.optimizer import LearningCurve, OptimizerResult, Reward, Task, Watch
from curious_explorer.learners.trpo import TRPO
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import EpisodeBatch, World

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
class CoverExplorer(ExplorerSettings, ABC):
    """What both methods share: rounds that grow the cover, then a phase that uses it."""

    rounds: int = 10
    """How many policies join the cover. On a lock of depth d about d of them are needed."""
    explore_share: float = 0.6
    """How much of the budget goes into the cover, the rest into the policy that is handed out."""
    visit_share: float = 0.1
    """How much of a round goes into measuring where its policy goes."""
    optimizer: TRPO = field(default_factory=lambda: TRPO(trace=0.98, advantage_memory=20.0))
    """How policies are learned; its number of updates follows from the budget instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.rounds, "rounds", least=1)
        for name in ("explore_share", "visit_share"):
            if not 0.0 < getattr(self, name) < 1.0:
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
        """Grow a cover, then learn from it, for the whole budget; see `Optimizer`."""
        task = check_unit_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        if reset is not None:
            raise ValueError(f"{type(self).__name__} makes its own resets; expected reset=None")
        most = task.budget or self.steps
        before = world.samples
        cover = self.explore(world, task, int(self.explore_share * most), watch)
        spent = world.samples - before
        later = None if watch is None else lambda policy, used: watch(policy, spent + used)
        trained = self._learn(world, task, task.reward, cover.roll_in(0.5), most - spent, later)
        curve = LearningCurve(trained.curve.samples + spent, trained.curve.returns, trained.curve.episodes)
        return OptimizerResult(
            policy=trained.policy,
            samples=spent + trained.samples,
            curve=curve,
            accepted=trained.accepted,
            rejected=trained.rejected,
            occupancy=trained.occupancy,
        )

    def explore(self, world: World, task: Task, budget: int, watch: Watch | None = None) -> Cover:
        """The cover after all rounds, or after those that the budget paid for."""
        uniform = frozen(np.full((world.num_states, world.num_actions), 1.0 / world.num_actions))
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
            batch = world.episodes(
                policy,
                EpisodeBatch(
                    episodes=EPISODES_AT_ONCE,
                    horizon=self.horizon_for(gamma),
                    gamma=gamma,
                    max_samples=budget - used,
                ),
            )
            total += batch.occupancy
            used += batch.samples
        return total / total.sum(), used


@dataclass(frozen=True, kw_only=True)
class PCPG(CoverExplorer):
    """Policy cover guided policy gradient (Agarwal, Henaff, Kakade and Sun 2020), tabular.

    With one feature for each pair their elliptical bonus is a matter of counting: a pair is known when the cover's
    visitation d_0(s,a) + d_1(s,a) + ... exceeds 1 / beta - lambda. Unknown pairs pay the most, one, in place of their
    own reward where that is less (published: a bonus of 1 / (1 - gamma) added to it), all others their own, and
    episodes begin where the policies of the cover stop, each as likely as any other.
    """

    known_mass: float | None = None
    """1 / beta - lambda, the visitation that makes a pair known. None takes 1 / (4 S A): a quarter of an even share of
    one policy's visitation (practical; published only as a power of the accuracy, far smaller)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.known_mass is not None:
            check_positive(self, "known_mass")

    def known(self, cover: Cover) -> NDArray[np.bool_]:
        """Which pairs are known, shape (S, A)."""
        mass = cover.pair_visitation()
        return mass > (1.0 / (4.0 * mass.size) if self.known_mass is None else self.known_mass)

    def round_reward(self, cover: Cover, task: Task) -> Reward:
        """One for an unknown pair, and the extrinsic reward for a known one."""
        bonus = np.where(self.known(cover), 0.0, 1.0)
        if task.reward is None:
            return Reward(bonus, "max")
        return Reward(np.maximum(bonus, task.reward.table), task.reward.combine)

    def round_reset(self, cover: Cover) -> RollIn:
        """Where the policies of the cover stop."""
        return cover.roll_in(0.0)

    def new_weights(self, cover: Cover) -> Floats:
        """All alike."""
        return np.full(len(cover.policies), 1.0 / len(cover.policies))


@dataclass(frozen=True, kw_only=True)
class MaxEnt(CoverExplorer):
    """Provably efficient maximum entropy exploration (Hazan, Kakade, Singh and Van Soest 2019).

    Frank-Wolfe steps towards the mixture of policies whose visitation has the largest entropy: the next policy learns,
    from the start, for the reward -ln(d(s) + sigma), d being the mixture's visitation, and joins with weight `rate`.
    """

    sigma: float = 0.001
    """What is added to visitation before the logarithm (published: of the order of the accuracy; ours)."""
    rate: float | None = None
    """The weight of a policy when it joins, as published; None makes all count alike: 1 / (t + 1) in round t."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "sigma", *([] if self.rate is None else ["rate"]))
        if self.rate is not None and self.rate > 1.0:
            raise ValueError(f"rate is {self.rate!r}, expected at most 1")

    def entropy_reward(self, visitation: Floats) -> Floats:
        """-ln(d + sigma), shifted and scaled so that zero visitation pays one and all of it zero, shape (S,)."""
        most, least = -np.log(self.sigma), -np.log(1.0 + self.sigma)
        reward: Floats = np.clip((-np.log(visitation + self.sigma) - least) / (most - least), 0.0, 1.0)
        return reward

    def round_reward(self, cover: Cover, task: Task) -> Reward:
        """More for a state the less the mixture goes there."""
        return Reward.of_states(self.entropy_reward(cover.state_visitation()), cover.policies[0].shape[1])

    def round_reset(self, cover: Cover) -> RollIn:
        """The start, as published."""
        return RollIn.from_start()

    def new_weights(self, cover: Cover) -> Floats:
        """The new policy takes its share from all others."""
        count = len(cover.policies)
        rate = 1.0 / count if self.rate is None or count == 1 else self.rate
        return np.append((1.0 - rate) * cover.weights, rate)
