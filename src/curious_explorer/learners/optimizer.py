"""What an optimizer is: a function of a world, a reset model and a reward that returns a policy.

The object holds hyperparameters only; what it learned, what it cost and how it went come back in an `OptimizerResult`.
An optimizer touches the world through `World` alone: it restarts (by the reset model), steps and looks.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.episodes import Reward, check_reward
from curious_explorer.worlds.policies import KnownPolicy, ObservationPolicy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset, as_roll_in
from curious_explorer.worlds.world import World

Result = TypeVar("Result")
Watch = Callable[[KnownPolicy, int], None]
"""Sees a policy and the samples used so far; a `Callback` is one, and sees more."""


@dataclass(frozen=True)
class LearningCurve:
    """How learning went, one entry for each update."""

    samples: NDArray[np.int64]
    """Steps used by this optimizer up to and with the update."""
    returns: Floats
    """The mean discounted return of the update's episodes (not normalised), from the resets it trained on."""
    episodes: NDArray[np.int64]
    """Episodes run up to and with the update."""


@dataclass(frozen=True)
class Evaluation:
    """The value of a policy from the world's own start, measured by running it."""

    value: float
    """Normalised, in [0, 1] for rewards in [0, 1]."""
    standard_error: float
    episodes: int
    samples: int


@dataclass(frozen=True, eq=False)
class OptimizerResult:
    """A learned policy and the account of how it was learned."""

    policy: KnownPolicy
    """Action probabilities, shape (S, A), which cannot be changed; or a policy that sees observations."""
    samples: int
    """Every step taken, roll-ins included."""
    curve: LearningCurve
    accepted: int = 0
    """Updates that changed the policy."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Updates that did not, by reason."""
    occupancy: Floats | None = None
    """Discounted visits of the last episodes from the resets they began in, shape (S,), summing to one."""
    evaluation: Evaluation | None = None
    """What the policy is worth from the world's own start, where that was measured."""

    def __repr__(self) -> str:
        value = None if self.evaluation is None else self.evaluation.value
        updates = f"accepted={self.accepted}, rejected={sum(self.rejected.values())}"
        return f"OptimizerResult(samples={self.samples:,}, {updates}, value={value})"


@runtime_checkable
class Optimizer(Protocol):
    """Anything that learns a policy for a reward from a reset model."""

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
        """Learn a policy.

        Args:
            reset: where episodes begin; the world's own start if None.
            reward: what to learn for; the world's own reward if None.
            budget: the most steps that may be taken, roll-ins included; the optimizer's own default if None.
            watch: called with the policy and the steps so far, whenever there is a new policy. Whoever calls an
                optimizer leaves it out unless it is wanted, so that a function without it is an optimizer, too.
        """


@runtime_checkable
class RoundOptimizer(Protocol):
    """An optimizer that can go on from the last round's policy, and work harder where that reached nothing new."""

    def for_round(self, start: KnownPolicy, effort: int) -> Optimizer:
        """The optimizer for one round of Algorithm 2.

        ``start`` is the policy of the round before, and ``effort`` (1, 2, 4, ...) says how many times as much to sample
        as usual, because the rounds before brought nothing.
        """


class Measured(NamedTuple):
    """A policy that was measured from the world's own start."""

    policy: Floats
    evaluation: Evaluation


class Pause(NamedTuple):
    """Where work that is done in pieces can be left for a while: between two calls of the world."""

    next_steps: float
    """About how many steps the next piece takes; zero where that is not known."""
    policy: KnownPolicy | None = None
    """The policy that is being learned, as it is now; it goes on changing in place. None while nothing is learned."""
    measured: Measured | None = None
    """What was measured in the piece before, if anything."""


Pieces = Generator[Pause, None, Result]
"""Work that is done whenever somebody asks for the next `Pause`; what comes of it is returned at the end."""


def complete(pieces: Pieces[Result]) -> Result:
    """Do all of the work, and return what comes of it."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: Result = end.value
            return result


@runtime_checkable
class ResumableOptimizer(Optimizer, Protocol):
    """An optimizer whose learning can be left after each batch of episodes, and gone on with later."""

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
        """What a call of the optimizer does, in pieces."""


def check_budget(budget: int | None) -> int | None:
    """A budget of at least one step, or None."""
    return None if budget is None else check_count(budget, "budget", least=1)


class Task(NamedTuple):
    """What an optimizer was asked to do, checked."""

    gamma: float
    roll_in: RollIn
    reward: Reward | None
    budget: int | None


def check_task(
    world: World, reset: Reset | RollIn | None, *, gamma: float, reward: Reward | None, budget: int | None
) -> Task:
    """Refuse what cannot be learned, before a step is taken; every optimizer begins with this."""
    shape = (world.num_states, world.num_actions)
    task = Task(check_gamma(gamma), as_roll_in(reset), check_reward(reward, shape), check_budget(budget))
    for policy in task.roll_in.policies:
        if not isinstance(policy, ObservationPolicy) and policy.shape != shape:
            raise ValueError(
                f"the reset model was made for {policy.shape[0]} states and {policy.shape[1]} actions, but the world "
                f"has {shape[0]} and {shape[1]}; explore this world to get a reset model for it"
            )
    return task


class TaskOptimizer(ABC):
    """An `Optimizer` whose task is checked before it begins; a subclass says in `learn` what it does then."""

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
        """Learn a policy; see `Optimizer`."""
        task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        return self.learn(world, task, watch or _unwatched)

    @abstractmethod
    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Learn a policy for a task that was checked, and show every new one to ``watch``."""


def _unwatched(policy: KnownPolicy, samples: int) -> None:
    pass


def learning_curve(entries: Sequence[tuple[int, float, int]]) -> LearningCurve:
    """A curve from (samples, mean return, episodes) after each update."""
    samples, returns, episodes = list(zip(*entries, strict=True)) or [(), (), ()]
    return LearningCurve(
        np.array(samples, dtype=np.int64), np.array(returns, dtype=np.float64), np.array(episodes, dtype=np.int64)
    )


def tally(verdicts: Mapping[str | None, int]) -> dict[str, Any]:
    """How often an update changed the policy (verdict None) and why it did not, as `OptimizerResult` has them."""
    rejected = {reason: times for reason, times in sorted(verdicts.items(), key=str) if reason is not None}
    return {"accepted": verdicts.get(None, 0), "rejected": rejected}


def check_optimizer(optimizer: object) -> None:
    """Refuse what cannot be called as an optimizer, before anything is sampled."""
    if isinstance(optimizer, type):
        raise ValueError(f"optimizer is the class {optimizer.__name__}, expected an object: {optimizer.__name__}(...)")
    if not callable(optimizer):
        raise ValueError(f"optimizer is {optimizer!r}, expected TRPO(), Reinforce() or a function with their signature")


def can_be_watched(optimizer: Optimizer) -> bool:
    """Whether an optimizer takes ``watch``, which a function need not."""
    try:
        taken = inspect.signature(optimizer).parameters
    except (TypeError, ValueError):
        return False
    return "watch" in taken or any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values())


def check_learned(learned: object, samples: int, budget: int | None) -> None:
    """Refuse what an optimizer may not do: return something else than a result, or spend more than its budget."""
    if not isinstance(learned, OptimizerResult):
        raise ValueError(f"the optimizer returned {type(learned).__name__}, expected an OptimizerResult")
    if budget is not None and samples > budget:
        raise ValueError(f"the optimizer took {samples:,} steps, but its budget was {budget:,}; it must keep to it")
