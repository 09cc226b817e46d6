"""What an optimizer is: a function of a world, a reset model and a reward that returns a policy.

The object holds hyperparameters only; what it learned, what it cost and how it went come back in an `OptimizerResult`.
An optimizer touches the world through `World` alone: it restarts (by the reset model), steps and looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curious_explorer.mdp.validation import check_count
from curious_explorer.sampling import RollIn, World
from curious_explorer.sampling.visit import Reset

Floats = NDArray[np.float64]


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

    policy: Floats
    """Action probabilities, shape (S, A); cannot be changed."""
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
    ) -> OptimizerResult:
        """Learn a policy.

        Args:
            world: where to act.
            reset: where episodes begin; the world's own start if None.
            gamma: the discount.
            reward: what to learn for; the world's own reward if None.
            budget: the most steps that may be taken, roll-ins included; the optimizer's own default if None.
        """


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward to learn for in place of the world's own, or together with it.

    Args:
        table: shape (S, A).
        combine: "replace" pays the table alone, "max" the larger of the table and the world's own reward.
    """

    table: Floats
    combine: str = "replace"

    @staticmethod
    def of_states(values: ArrayLike, num_actions: int, combine: str = "replace") -> Reward:
        """A reward that depends on the state alone, shape (S,)."""
        by_state = np.asarray(values, dtype=np.float64)
        return Reward(np.repeat(by_state[:, None], num_actions, axis=1), combine)


def check_budget(budget: int | None) -> int | None:
    """A budget of at least one step, or None."""
    return None if budget is None else check_count(budget, "budget", least=1)
