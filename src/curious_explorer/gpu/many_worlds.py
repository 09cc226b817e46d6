"""What many runs ask of their worlds: B copies of one world, each with a seed of its own, walked by one call.

Everything has a leading dimension B, and run b draws the random numbers that a `TabularWorld` with its seed would
draw in its place: same seed, same stream, same index. So a run gives the same states alone or among a thousand.
`SeededWorlds` are such worlds on a GPU, where every call is one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from curious_explorer.gpu.device_tables import (
    Policies,
    RollIns,
    load_model,
    prepare_policies,
    roll_in_batch,
    stream_keys,
)
from curious_explorer.gpu.triton_episodes import BatchStatistics, episode_statistics_batch
from curious_explorer.gpu.triton_walks import walk_batch
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_count, check_seed
from curious_explorer.worlds.episode_kernels import TERMINAL_STARTS_IN_A_ROW

KEYS_AHEAD = 64
"""Keys are a few dozen small operations; while no run waits, those of so many calls are made at once."""


WeightedChain = tuple[float, tuple[int, int]]
"""The probability of a chain, and the half-open range of policies it walks."""


@dataclass(frozen=True, eq=False)
class ManyRollIns:
    """How B runs reach a state by steps alone: the same mixture of chains, each run with policies of its own.

    Args:
        policies: pi_0, ..., pi_N, each of shape (B, S, A) and never changed afterwards.
        gamma: the discount of the walks.
        chains: the probability of each chain and the range of policies it walks; see `resets.reset_model`.
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


class SeededWorlds:
    """B copies of a finite MDP as agents see them, on a GPU (or on the CPU, where Triton interprets).

    Args:
        mdp: the model, shared by all runs. Learners never get to see it.
        seeds: one for each run.
        device: where to walk; the GPU if None.
    """

    def __init__(self, mdp: FiniteMDP, seeds: Sequence[int], *, device: str | torch.device | None = None) -> None:
        if len(seeds) == 0:
            raise ValueError("seeds is empty, expected at least one")
        checked = [check_seed(seed) for seed in seeds]
        self._model = load_model(mdp, device)
        words = [seed - (1 << 64) if seed >= 1 << 63 else seed for seed in checked]
        self._seeds = torch.tensor(words, dtype=torch.int64, device=self._model.device)
        self._calls = torch.zeros_like(self._seeds)
        self._samples = torch.zeros_like(self._seeds)
        self._stuck = torch.zeros_like(self._seeds, dtype=torch.bool)
        self._keys_ahead: list[Tensor] = []  # of the next streams, the last one first
        self._policies: dict[int, tuple[Tensor, Policies]] = {}
        self._roll_ins: tuple[ManyRollIns, RollIns] | None = None

    @property
    def num_runs(self) -> int:
        """B."""
        return len(self._seeds)

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return self._model.num_states

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state."""
        return self._model.num_actions

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self._model.device

    @property
    def samples(self) -> Tensor:
        """How many steps each run has taken so far, shape (B,), int64."""
        return self._samples

    def walk_counts(self, roll_in: ManyRollIns, count: int) -> Tensor:
        """How many of ``count`` walks of every run end in each state, shape (B, S), int64."""
        check_count(count, "count", least=1)
        walked = walk_batch(self._model, self._prepared(roll_in), self._next_keys(None), count)
        self._samples = self._samples + walked.samples
        assert walked.counts is not None, "counts were asked for"
        return walked.counts

    def episodes(
        self, policy: Tensor, *, reset: ManyRollIns, max_samples: Tensor | None, **asked: Any
    ) -> BatchStatistics:
        """Run a batch of episodes in every run; what is asked for is as in `episode_statistics_batch`.

        ``max_samples`` has shape (B,), int64. A run that may take no step takes none, and uses up no stream.
        """
        acted = prepare_policies(self._model, policy, composed=False)
        rolled, keys = self._prepared(reset), self._next_keys(max_samples)
        batch = episode_statistics_batch(self._model, acted, rolled, keys, max_samples=max_samples, **asked)
        self._samples = self._samples + batch.samples
        self._stuck = self._stuck | batch.nowhere_to_start
        return batch

    def check(self) -> None:
        """Raise if a run found nowhere to start; to ask is to wait for the device."""
        if self._stuck.any():
            run = int(self._stuck.nonzero()[0, 0])
            raise ValueError(
                f"{TERMINAL_STARTS_IN_A_ROW} starts in a row of run {run} fell on terminal states; an episode needs a "
                "start, or a reset model, that reaches states that are not terminal"
            )

    def _next_keys(self, max_samples: Tensor | None) -> Tensor:
        """The key of each run's next stream; a run that may take no step uses none up."""
        if max_samples is not None:
            keys = stream_keys(self._seeds, self._calls, self.device)
            self._calls = self._calls + (max_samples > 0).to(torch.int64)
            self._keys_ahead = []
            return keys
        if not self._keys_ahead:
            calls = self._calls + torch.arange(KEYS_AHEAD, device=self.device).flip(0)[:, None]
            keys = stream_keys(self._seeds.repeat(KEYS_AHEAD), calls.flatten(), self.device)
            self._keys_ahead = list(keys.view(KEYS_AHEAD, -1).unbind())
        self._calls = self._calls + 1
        return self._keys_ahead.pop()

    def _prepared(self, roll_in: ManyRollIns) -> RollIns:
        """The roll-in's tables, built now or found again: learning rolls in by the same ones at every update."""
        if self._roll_ins is not None and self._roll_ins[0] is roll_in:
            return self._roll_ins[1]
        policies = [self._prepared_policy(policy) for policy in roll_in.policies]
        built = roll_in_batch(
            self._model,
            policies,
            [roll_in.gamma] * len(policies),
            [weight for weight, _ in roll_in.chains],
            [chain for _, chain in roll_in.chains],
            tail=roll_in.tail,
        )
        self._roll_ins = (roll_in, built)
        return built

    def _prepared_policy(self, policy: Tensor) -> Policies:
        """A policy's tables, known again by identity: nobody changes a policy that is part of a roll-in."""
        known = self._policies.get(id(policy))
        if known is None:
            known = self._policies[id(policy)] = (policy, prepare_policies(self._model, policy))
        return known[1]
