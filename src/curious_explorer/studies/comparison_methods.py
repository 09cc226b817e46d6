"""The methods that can be compared, by id: Curious Explorer, its optimizers from the start alone, and the rivals.

Curious Explorer explores with a share of the budget, then improves with all that is left.
The rivals answer one question, how good the policy is after so many samples, so Curious Explorer answers it too. Half
of the budget goes to Algorithm 2, divided evenly among its rounds, a quarter of it to the walks that measure D_n; until
that is over the policy it would act with is the uniform one, and that is what a curve shows. The rest trains the same
optimizer for the world's own reward from the reset model. Where a method is not told how deep a world is, neither is
this one: it runs the same number of rounds everywhere, or as many as a small budget pays for. D_n is measured by fresh
walks, as in the paper: visits counted while learning would cost nothing, but they are not D_n (see `LearningVisits`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.exploration import uniform_policy
from curious_explorer.explorers.methods import METHODS as RIVALS
from curious_explorer.explorers.visits import DEFAULT_VISITS, FreshVisits
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.improve import improve
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.optimizer import OptimizerResult, Task, TaskOptimizer, Watch
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.validation import check_count, check_gamma, check_name
from curious_explorer.worlds.world import World

AS_MANY_AS_THE_BUDGET_ALLOWS = 10**9
DEFAULT_BUDGET = 1_000_000
FEWEST_ROUNDS, FEWEST_WALKS = 3, 5
"""What the smallest budget must pay for: so many rounds, and in each so many walks."""
VISITS_SHARE = 0.25
"""About this share of the exploration pays for the walks that measure D_n."""
LEGS = 2
"""A walk from mu_{n-1} follows two policies on average, the one it measures included, 1 / (1 - gamma) steps each."""


@dataclass(frozen=True, kw_only=True)
class ExploreThenImprove(TaskOptimizer):
    """Algorithm 2 and the improvement phase, in one budget."""

    make_optimizer: Callable[[], Any]
    """Makes ``opt``, which explores and then improves; made anew for every run, since it may remember."""
    share: float = 0.5
    """The share of the budget that explores. The paper says nothing about it."""
    rounds: int = 20
    """N; the paper's deepest problems take as many. Small budgets pay for fewer."""

    def __post_init__(self) -> None:
        check_count(self.rounds, "rounds", least=1)
        if not 0.0 < self.share < 1.0:
            raise ValueError(f"share is {self.share!r}, expected a number between 0 and 1")

    def least_budget(self, gamma: float) -> int:
        """The smallest budget that pays for `FEWEST_ROUNDS` rounds, or for all of them if they are fewer."""
        return math.ceil(min(FEWEST_ROUNDS, self.rounds) * _least_of_a_round(gamma) / self.share)

    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Explore and learn for the world's own reward."""
        gamma, budget = task.gamma, DEFAULT_BUDGET if task.budget is None else task.budget
        if task.roll_in.policies or task.roll_in.targets is not None or task.reward is not None:
            raise ValueError(
                "Curious Explorer finds its own resets and learns for the world's own reward; reset and reward must be "
                "None here (use explore and improve for anything else)"
            )
        if budget < self.least_budget(gamma):
            raise ValueError(
                f"budget is {budget:,} steps, expected at least {self.least_budget(gamma):,} at gamma {gamma:g}: what "
                f"{min(FEWEST_ROUNDS, self.rounds)} rounds of Curious Explorer need"
            )
        began = world.samples
        optimizer = self.make_optimizer()
        watch(uniform_policy(world), 0)
        for_exploring = int(self.share * budget)
        rounds = min(self.rounds, int(for_exploring / _least_of_a_round(gamma)))
        for_round = for_exploring // rounds
        walks = int(VISITS_SHARE * for_round * (1.0 - gamma) / LEGS)
        exploration = explore(
            world,
            optimizer,
            gamma=gamma,
            rounds=rounds,
            visits=FreshVisits(min(max(walks, FEWEST_WALKS), DEFAULT_VISITS)),
            budget=max(int((1.0 - VISITS_SHARE) * for_round), 1),
            progress=False,
        )
        spent = world.samples - began
        improved = improve(
            world,
            optimizer,
            exploration.reset_model,
            gamma=gamma,
            budget=budget - spent,
            evaluation_episodes=0,
            watch=lambda policy, samples: watch(policy, spent + samples),
        )
        return replace(improved, samples=world.samples - began)


def _least_of_a_round(gamma: float) -> float:
    """About what a round takes that affords `FEWEST_WALKS` walks."""
    return FEWEST_WALKS * LEGS / (1.0 - check_gamma(gamma)) / VISITS_SHARE


def patient_trpo() -> TRPO:
    """TRPO that stops only when its budget is spent."""
    return TRPO(updates=AS_MANY_AS_THE_BUDGET_ALLOWS)


def patient_reinforce() -> Reinforce:
    """REINFORCE that stops only when its budget is spent."""
    return Reinforce(updates=AS_MANY_AS_THE_BUDGET_ALLOWS)


CE_METHODS: dict[str, Callable[[], Any]] = {
    "ce-trpo": lambda: ExploreThenImprove(make_optimizer=patient_trpo),
    "ce-reinforce": lambda: ExploreThenImprove(make_optimizer=patient_reinforce),
    "ce-model-based": lambda: ExploreThenImprove(make_optimizer=ModelBased),
    "trpo": patient_trpo,
    "reinforce": patient_reinforce,
    "model-based": ModelBased,
}
"""Curious Explorer with each optimizer, and the same optimizers from the start alone."""
METHODS: dict[str, Callable[[], Any]] = {**CE_METHODS, **RIVALS}
"""Each makes a fresh `Optimizer`: ``METHODS[id]()(world, gamma=..., budget=..., watch=...)``."""
PUBLISHED = "-published"
"""Ends the ids of variants with the constants of their papers, 15 to 1,000 times slower; compared only when named.
Those that would be random walks have none; see `WITHOUT_PUBLISHED`."""
DEFAULT_METHODS = tuple(name for name in METHODS if not name.endswith(PUBLISHED))


def make_method(name: str) -> Any:
    """A fresh optimizer; raises ``ValueError`` with the nearest match for a name that is not known."""
    return METHODS[check_name(name, METHODS, "method")]()


def least_budget(name: str, gamma: float) -> int:
    """The fewest samples that a method can do anything with: an episode, or what it says itself."""
    episode = default_horizon(gamma)
    own = getattr(make_method(name), "least_budget", None)
    return episode if own is None else max(episode, int(own(gamma)))
