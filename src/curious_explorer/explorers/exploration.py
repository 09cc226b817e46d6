"""What an exploration leaves behind: its rounds, and the reset model made of their policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.worlds.policies import KnownPolicy
from curious_explorer.worlds.world import TransitionCounts


@dataclass(frozen=True, eq=False)
class Round:
    """Round n of Algorithm 2."""

    number: int
    """n."""
    threshold: float
    """beta_n."""
    policy: KnownPolicy
    """pi_n, the policy whose visits were measured, shape (S, A) where it is a table."""
    visited: Floats
    """D_n, the share of visits of each state, shape (S,)."""
    poorly_visited: NDArray[np.bool_]
    """K_n, shape (S,)."""
    learned_policy: KnownPolicy
    """pi_{n+1}, learned for the reward 1 on K_n from mu_n."""
    visit_samples: int
    """Steps taken to measure D_n."""
    learning_samples: int
    """Steps taken to learn pi_{n+1}."""
    accepted: int = 0
    """The optimizer's updates that changed the policy."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """The optimizer's updates that did not, by reason."""
    occupancy: Floats | None = None
    """Where the optimizer's last episodes went, discounted, shape (S,)."""
    seen: TransitionCounts | None = None
    """What was seen while learning, if it was recorded."""

    @property
    def samples(self) -> int:
        """All steps of the round."""
        return self.visit_samples + self.learning_samples

    @property
    def curiosity_reward(self) -> Floats:
        """r_n, 1 on the poorly visited states, shape (S,)."""
        return self.poorly_visited.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Exploration:
    """A finished exploration."""

    rounds: tuple[Round, ...]
    gamma: float
    planned_rounds: int | None = None
    """How many rounds it was to have, where it was read from a folder; more than there are if it was interrupted."""
    discretisation: Discretisation | None = None
    """Cells and actions, for an exploration of observations."""

    @cached_property
    def policies(self) -> tuple[KnownPolicy, ...]:
        """pi_0, ..., pi_N."""
        return (*(round_.policy for round_ in self.rounds), self.rounds[-1].learned_policy)

    @cached_property
    def reset_model(self) -> ResetModel:
        """The reset model of all policies, weighed by average.

        ``reset_model.weighted("last")`` is the paper's; ``reset_model.weighted("spread")`` spreads starts as widely as
        the policies allow, which is the one to train a learner from.
        """
        visited = [round_.visited for round_ in self.rounds]
        return ResetModel(self.policies, gamma=self.gamma, visited=visited, discretisation=self.discretisation)

    def __repr__(self) -> str:
        return f"Exploration({len(self.rounds)} rounds, gamma={self.gamma}, samples={self.samples:,})"

    @property
    def finished(self) -> bool:
        """Whether all planned rounds are done."""
        return self.planned_rounds is None or len(self.rounds) >= self.planned_rounds

    @property
    def samples(self) -> int:
        """All steps of all rounds: visits, roll-ins and learning."""
        return sum(round_.samples for round_ in self.rounds)

    @cached_property
    def total_visited(self) -> Floats:
        """D_0 + ... + D_{N-1}, shape (S,)."""
        total: Floats = np.sum([round_.visited for round_ in self.rounds], axis=0)
        return total

    @staticmethod
    def load(folder: str | Path, *, cell_function: Callable[[Any], Any] | None = None) -> Exploration:
        """Read an exploration, finished or not, from its checkpoint folder.

        ``cell_function`` is the function that made the cells, where one did: code is not stored.
        """
        from curious_explorer.explorers.checkpoint import load_exploration

        return load_exploration(folder, cell_function)
