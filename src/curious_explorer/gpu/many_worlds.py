"""What many runs ask of their worlds: B copies of one world, each with a seed of its own, walked by one call.

Everything has a leading dimension B, and run b draws the random numbers that a `TabularWorld` with its seed would
draw in its place: same seed, same stream, same index. So a run gives the same states alone or among a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from curious_explorer.resets.reset_model import WeightedChain


@dataclass(frozen=True, eq=False)
class ManyRollIns:
    """How B runs reach a state by steps alone: the same mixture of chains, each run with policies of its own.

    Args:
        policies: pi_0, ..., pi_N, each of shape (B, S, A) and never changed afterwards.
        gamma: the discount of the walks.
        chains: the probability of each chain and the range of policies it walks; see `reset.model`.
        tail: how many policies at the end every chain walks after its own range.
    """

    policies: tuple[Tensor, ...]
    gamma: float
    chains: tuple[WeightedChain, ...]
    tail: int = 0

    def then(self, policy: Tensor) -> ManyRollIns:
        """Sample this, then walk ``policy`` with geometric stopping: the paper's visit(policy, mu)."""
        return ManyRollIns((*self.policies, policy), self.gamma, self.chains, self.tail + 1)


FROM_START: tuple[WeightedChain, ...] = ((1.0, (0, 0)),)
"""The chains of rho itself."""


class ManyStatistics(NamedTuple):
    """What one batch of episodes of every run leaves behind; see `sampling.EpisodeStatistics`."""

    advantage_sum: Tensor  # (B, S, A)
    weight: Tensor  # (B, S, A)
    target_sum: Tensor  # (B, S)
    occupancy: Tensor  # (B, S)
    mean_return: Tensor  # (B,): of the episodes run, discounted, not normalised; zero where there were none
    episodes: Tensor  # (B,), int64: how many were run; fewer than asked for where the budget ended
    samples: Tensor  # (B,), int64: every step taken, roll-ins included


class ManyWorlds(Protocol):
    """B worlds that can be restarted and stepped, all at once."""

    @property
    def num_runs(self) -> int:
        """B."""

    @property
    def num_states(self) -> int:
        """How many states there are."""

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state."""

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""

    @property
    def samples(self) -> Tensor:
        """How many steps each run has taken so far, shape (B,), int64."""

    def walk_counts(self, roll_in: ManyRollIns, count: int) -> Tensor:
        """How many of ``count`` walks of every run end in each state, shape (B, S), int64."""

    def episodes(
        self,
        policy: Tensor,
        *,
        episodes: int,
        horizon: int,
        gamma: float,
        reset: ManyRollIns,
        rewards: Tensor | None,
        combine: str,
        critic: Tensor,
        trace: float,
        max_samples: Tensor | None,
    ) -> ManyStatistics:
        """Run a batch of episodes in every run; arguments as in `World.episodes`, with a leading dimension B.

        ``max_samples`` has shape (B,), int64. A run that may take no step takes none, and uses up no stream.
        """

    def check(self) -> None:
        """Raise if a run found nowhere to start; to ask is to wait for the device."""
