"""Policy-gradient statistics of B runs in one launch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from curious_explorer.gpu.device import check_memory
from curious_explorer.gpu.device_model import Model, Policies, RollIns
from curious_explorer.gpu.launch import (
    EPISODES,
    Launch,
    chain_arguments,
    check_runs,
    copies_of,
    programs_that_fill,
    step_arguments,
    zeros,
)
from curious_explorer.gpu.triton_episode_kernel import episode_kernel
from curious_explorer.worlds import episode_kernels as stepping

SCRATCH_BYTES = 1 << 30
"""Paths of the episodes that are under way may take this much; with very long horizons fewer are under way."""


class EpisodeBatch(NamedTuple):
    """`EpisodeStatistics` of B runs."""

    advantage_sum: torch.Tensor  # (B, S, A) float64
    weight: torch.Tensor  # (B, S, A) float64
    target_sum: torch.Tensor  # (B, S) float64
    occupancy: torch.Tensor | None  # (B, S) float64; None where not asked for
    returns: torch.Tensor  # (B, E) float64; zero past `run`
    lengths: torch.Tensor  # (B, E) int64; zero past `run`
    run: torch.Tensor  # (B,) int64: how many of the E episodes were run; fewer only where max_samples cut in
    samples: torch.Tensor  # (B,) int64: every step, roll-ins included
    nowhere_to_start: torch.Tensor  # (B,) bool: the run drew 100,000 terminal starts in a row and gave up
    entry_counts: torch.Tensor | None  # (B, entries) int64: how often each transition was taken; None if not asked for


def episode_statistics_batch(
    model: Model,
    policy: Policies,
    roll_ins: RollIns,
    keys: torch.Tensor,
    *,
    episodes: int,
    horizon: int,
    gamma: float,
    rewards: torch.Tensor | None = None,
    combine: str = "replace",
    critic: torch.Tensor | None = None,
    trace: float = 1.0,
    weight_decay: float = 1.0,
    credited: int | None = None,
    max_samples: int | torch.Tensor | None = None,
    occupancy: bool = True,
    record: bool = False,
    launch: Launch | None = None,
) -> EpisodeBatch:
    """Run ``episodes`` episodes of each run and add up their statistics; see `World.episodes` for what they mean.

    Args:
        model: where to act.
        policy: what to follow, B policies (or one, shared).
        roll_ins: where episodes begin, of B runs (or one, shared).
        keys: shape (B,), one stream for each run; see `stream_keys`.
        episodes: E, how many for each run.
        horizon: after how many steps an episode is cut off.
        gamma: the discount of returns and advantages.
        rewards: (B, S, A) or (1, S, A) float64, in place of the world's own; None for the world's own.
        combine: "replace" pays ``rewards``, "max" the larger of ``rewards`` and the world's own.
        critic: (B, S) or (1, S) float64, predicted values; zero if None.
        trace: lambda of generalised advantage estimation.
        weight_decay: step t of an episode enters the sums with this factor to the power t.
        credited: how many steps of an episode enter the sums; all if None.
        max_samples: the number of steps, roll-ins included, that a run may not exceed: one for all, or (B,) int64.
            With a limit the call looks once at the device's results, and runs again if a limit was passed.
        occupancy: whether to add up discounted visits; a little faster without.
        record: whether to count how often each transition was taken.
        launch: how to lay out the kernel.
    """
    if combine not in ("replace", "max"):
        raise ValueError(f"combine is {combine!r}, expected 'replace' or 'max'")
    states, actions = model.num_states, model.num_actions
    paid = model.rewards.unsqueeze(0) if rewards is None else _as_floats(rewards, (states, actions), "rewards")
    if rewards is not None and combine == "max":
        paid = torch.where(model.terminal[:, None], torch.maximum(paid, model.rewards), paid)
    values = (
        zeros((1, states), torch.float64, model.device) if critic is None else _as_floats(critic, (states,), "critic")
    )
    tensors = {"policy": policy.table, "roll_ins": roll_ins.policies, "rewards": paid, "critic": values}
    task = _Episodes(
        model=model,
        runs=check_runs(keys, **tensors),
        episodes=episodes,
        horizon=horizon,
        occupancy=occupancy,
        record=record,
        launch=launch or EPISODES,
        arguments={
            "keys": keys,
            "roll_in_policies": roll_ins.policies,
            "roll_in_stride": _run_stride(roll_ins.policies),
            "policy_thresholds": policy.thresholds,
            "policy_table": policy.table,
            "policy_stride": _run_stride(policy.table),
            "rewards": paid,
            "reward_stride": _run_stride(paid),
            "critic": values,
            "critic_stride": _run_stride(values),
            **chain_arguments(model, roll_ins),
            **step_arguments(model),
            "credited": horizon if credited is None else min(credited, horizon),
            "factors": _floats((gamma, 1.0 - gamma, gamma * trace), model.device),
            "weight_decay": _weights(weight_decay, horizon if weight_decay != 1.0 else 1, model.device),
            "OWN": rewards is None,
            "LARGER": rewards is not None and combine == "max",
            "WEIGHT_DECAYS": weight_decay != 1.0,
        },
    )
    return task.run() if max_samples is None else task.run_within(max_samples)


class _Episodes(NamedTuple):
    """One call of `episode_statistics_batch`, checked and ready to run."""

    model: Model
    runs: int
    episodes: int
    horizon: int
    occupancy: bool
    record: bool
    launch: Launch
    arguments: dict[str, Any]

    def run_within(self, max_samples: int | torch.Tensor) -> EpisodeBatch:
        """Run so that no run exceeds its budget, as if its episodes were run one after the other.

        First every episode may spend the whole budget. Where their sum is too large, the episodes are run again, each
        with what those before it leave; what they draw is the same, so they take the same steps up to there.
        """
        budget = torch.as_tensor(max_samples, device=self.model.device, dtype=torch.int64).expand(self.runs)[:, None]
        limits = budget.expand(self.runs, self.episodes).contiguous()
        batch, spent = self._launch(limits)
        before = spent.cumsum(dim=1) - spent
        if not bool((before + spent > budget).any()):
            return batch
        return self._launch((budget - before).contiguous())[0]

    def run(self) -> EpisodeBatch:
        """Run all episodes to their ends."""
        return self._launch(None)[0]

    def _launch(self, limits: torch.Tensor | None) -> tuple[EpisodeBatch, torch.Tensor]:
        """The statistics, and the steps of each episode with its roll-in, (B, E)."""
        model, layout = self.model, self.launch
        device, states, pairs = model.device, model.num_states, model.num_states * model.num_actions
        block = 32 * layout.warps  # one lane to a thread, so that each reads back the path that it wrote itself
        shape = (self.runs, self.episodes)
        total = self.runs * self.episodes
        programs = max(1, min(-(-total // block), programs_that_fill(device, layout)))
        programs = max(1, min(programs, SCRATCH_BYTES // (8 * self.horizon * block)))
        copies, groups = copies_of(layout, self.runs, pairs, programs)
        table_bytes = (
            8 * self.runs * groups * copies * (2 * pairs + states) + 8 * self.runs * len(model.next_state) * self.record
        )
        check_memory(8 * programs * self.horizon * block + table_bytes + 32 * total, device, f"{total:,} episodes")
        path = torch.empty((2, programs * self.horizon * block), dtype=torch.int32, device=device)
        sums = zeros((2, self.runs, groups, pairs, copies), torch.float64, device)
        visits = zeros((self.runs, groups, states, copies) if self.occupancy else (1,), torch.float64, device)
        seen = zeros((self.runs, len(model.next_state)) if self.record else (1, 1), torch.int64, device)
        returns = zeros(shape, torch.float64, device)
        lengths, rolled = zeros(shape, torch.int64, device), zeros(shape, torch.int64, device)
        endings = zeros(shape, torch.int32, device)
        if total > 0:
            episode_kernel[(programs,)](
                **self.arguments,
                limits=lengths if limits is None else limits,
                row_start=model.row_start,
                thresholds=model.thresholds,
                next_state=model.next_state,
                entry_rewards=model.entry_rewards,
                total=total,
                episodes=self.episodes,
                horizon=self.horizon,
                most_attempts=stepping.TERMINAL_STARTS_IN_A_ROW,
                num_states=states,
                num_actions=model.num_actions,
                num_entries=len(model.next_state),
                path=path[0],
                pairs=path[1],
                advantage_sum=sums[0],
                weight=sums[1],
                occupancy=visits,
                groups=groups,
                entry_counts=seen,
                returns=returns,
                lengths=lengths,
                rolled=rolled,
                endings=endings,
                LIMITED=limits is not None,
                OCCUPANCY=self.occupancy,
                RECORD=self.record,
                COPIES=copies,
                BLOCK=block,
                num_warps=layout.warps,
                enable_fp_fusion=False,  # round as the CPU does
            )
        advantage, weight = sums.sum(dim=(2, 4)).view(2, self.runs, states, model.num_actions)
        stuck = endings == stepping.NOWHERE_TO_START
        spent = lengths + rolled
        counted = stuck.cumsum(dim=1) - stuck.to(torch.int64) == 0  # up to the first episode that found no start
        batch = EpisodeBatch(
            advantage_sum=advantage,
            weight=weight,
            target_sum=advantage.sum(dim=2) + self.arguments["critic"] * weight.sum(dim=2),
            occupancy=visits.sum(dim=(1, 3)) if self.occupancy else None,
            returns=returns,
            lengths=lengths,
            run=(lengths > 0).sum(dim=1),
            samples=(spent * counted).sum(dim=1),
            nowhere_to_start=stuck.any(dim=1),
            entry_counts=seen if self.record else None,
        )
        return batch, spent


def _as_floats(given: torch.Tensor, shape: tuple[int, ...], name: str) -> torch.Tensor:
    if tuple(given.shape[1:]) != shape or given.dtype != torch.float64:
        raise ValueError(f"{name} has shape {tuple(given.shape)} and type {given.dtype}, expected float64 (B, {shape})")
    return given.contiguous()


def _run_stride(tensor: torch.Tensor) -> int:
    return 0 if len(tensor) == 1 else tensor.stride(0)


@lru_cache(maxsize=64)
def _floats(values: tuple[float, ...], device: torch.device) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, device=device)


@lru_cache(maxsize=8)
def _weights(decay: float, horizon: int, device: torch.device) -> torch.Tensor:
    """The weight of each step, ``decay ** t``."""
    return torch.tensor([decay**step for step in range(horizon)], dtype=torch.float64, device=device)
