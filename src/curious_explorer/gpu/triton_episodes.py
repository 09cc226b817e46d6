# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, unused-ignore"
"""Policy-gradient statistics of B runs in one launch; see `worlds.episode_kernels` for what they are.

One lane runs one episode: it rolls in, then steps forward and notes its path, then goes back over the path and adds up
advantages. A program takes one group of lanes after the other and writes all their paths to the same scratch memory,
which therefore stays in the cache. Sums are atomic additions to several copies of the tables: copies of one entry
stand side by side, so lanes that are in one state at one time write one stretch of memory.

Of the four tables only two are added up step by step: the sum of targets follows from them, because a target is an
advantage plus the critic's value of the state.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from curious_explorer.gpu.device import EPISODES, Launch, check_memory, copies_of, programs_that_fill
from curious_explorer.gpu.device_tables import (
    Model,
    Policies,
    RollIns,
    chain_arguments,
    check_runs,
    constants,
    step_arguments,
    zeros,
)
from curious_explorer.gpu.draws import begin, next_policy, sole_beginning, stopping_time, take_step, walk_key
from curious_explorer.worlds import episode_kernels as stepping

SCRATCH_BYTES = 1 << 30
"""Paths of the episodes that are under way may take this much; with very long horizons fewer are under way."""
ARRIVED, CUT_OFF, NOWHERE = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
"""How a roll-in ended: in a state, by the end of its budget, or without finding a state that is not terminal."""

_UNSPECIALISED = [
    "total",
    "episodes",
    "horizon",
    "credited",
    "chain_size",
    "start_size",
    "stop_size",
    "num_policies",
    "tail_start",
    "most_attempts",
]


class BatchStatistics(NamedTuple):
    """`EpisodeStatistics` of B runs."""

    advantage_sum: torch.Tensor  # (B, S, A) float64
    weight: torch.Tensor  # (B, S, A) float64
    target_sum: torch.Tensor  # (B, S) float64
    occupancy: torch.Tensor  # (B, S) float64
    returns: torch.Tensor  # (B, E) float64; zero past `run`
    lengths: torch.Tensor  # (B, E) int64; zero past `run`
    run: torch.Tensor  # (B,) int64: how many of the E episodes were run; fewer only where max_samples cut in
    samples: torch.Tensor  # (B,) int64: every step, roll-ins included
    nowhere_to_start: torch.Tensor  # (B,) bool: the run drew 100,000 terminal starts in a row and gave up
    entry_counts: torch.Tensor | None  # (B, entries) int64: how often each transition was taken; None if not asked for

    @property
    def mean_return(self) -> torch.Tensor:
        """Of the episodes that were run, discounted, not normalised, shape (B,); zero where there were none."""
        return self.returns.sum(dim=1) / self.run.clamp(min=1)


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
    record: bool = False,
    launch: Launch | None = None,
) -> BatchStatistics:
    """Run ``episodes`` episodes of each run and add up their statistics; arguments as in `EpisodeBatch`.

    Policies, roll-ins, rewards (B, S, A) and critics (B, S) are those of B runs, or one that all share; ``keys`` (B,)
    has a stream for each run (see `stream_keys`). ``max_samples`` is one for all, or (B,) int64: with a limit the call
    looks once at the device's results, and runs again if a limit was passed.
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
            "factors": constants((gamma, 1.0 - gamma, gamma * trace), model.device),
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
    record: bool
    launch: Launch
    arguments: dict[str, Any]

    def run_within(self, max_samples: int | torch.Tensor) -> BatchStatistics:
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

    def run(self) -> BatchStatistics:
        """Run all episodes to their ends."""
        return self._launch(None)[0]

    def _launch(self, limits: torch.Tensor | None) -> tuple[BatchStatistics, torch.Tensor]:
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
        visits = zeros((self.runs, groups, states, copies), torch.float64, device)
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
        batch = BatchStatistics(
            advantage_sum=advantage,
            weight=weight,
            target_sum=advantage.sum(dim=2) + self.arguments["critic"] * weight.sum(dim=2),
            occupancy=visits.sum(dim=(1, 3)),
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


@lru_cache(maxsize=8)
def _weights(decay: float, horizon: int, device: torch.device) -> torch.Tensor:
    """The weight of each step, ``decay ** t``."""
    return torch.tensor([decay**step for step in range(horizon)], dtype=torch.float64, device=device)


@triton.jit(do_not_specialize=_UNSPECIALISED)
def episode_kernel(
    keys,
    limits,  # (B * E,): the most steps of each episode, its roll-in included
    roll_in_policies,  # thresholds, (B or 1, N, S * A)
    roll_in_stride,
    policy_thresholds,  # (B or 1, S * A)
    policy_table,
    policy_stride,
    rewards,  # (B or 1, S * A)
    reward_stride,
    critic,  # (B or 1, S)
    critic_stride,
    row_start,
    thresholds,
    next_state,
    entry_rewards,
    chain,
    chain_size,
    ranges,
    start,
    start_size,
    stops,
    stop_offset,
    stop_size,
    num_policies,
    tail_start,
    total,  # B * E
    episodes,
    horizon,
    credited,
    most_attempts,
    factors,  # gamma, 1 - gamma, gamma * trace: Triton would round floating-point arguments to 32 bits
    weight_decay,  # (horizon,): the weight of each step
    num_states,
    num_actions,
    num_entries,
    path,  # scratch: (programs, horizon, BLOCK) int32, entries of transitions
    pairs,  # scratch of the same shape: rows
    advantage_sum,  # (B, groups, S * A, COPIES)
    weight,
    occupancy,  # (B, groups, S, COPIES)
    groups,
    entry_counts,
    returns,
    lengths,
    rolled,  # (B * E,): steps of the roll-in
    endings,
    MANY_CHAINS: tl.constexpr,
    MANY_STARTS: tl.constexpr,
    ACTION_STEPS: tl.constexpr,
    ACTIONS_LONG: tl.constexpr,
    ROW_STEPS: tl.constexpr,
    ROWS_LONG: tl.constexpr,
    LIMITED: tl.constexpr,
    OWN: tl.constexpr,  # the world's own rewards
    LARGER: tl.constexpr,  # the larger of own and given
    WEIGHT_DECAYS: tl.constexpr,
    RECORD: tl.constexpr,
    COPIES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """See the module."""
    program = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    pair_count = num_states * num_actions
    gamma, rest, decay = tl.load(factors), tl.load(factors + 1), tl.load(factors + 2)
    path += program.to(tl.int64) * horizon * BLOCK + lane
    pairs += program.to(tl.int64) * horizon * BLOCK + lane
    sole = sole_beginning(ranges, start)
    for group in range(program, tl.cdiv(total, BLOCK), tl.num_programs(0)):
        episode = (group + tl.zeros([BLOCK], tl.int64)) * BLOCK + lane
        real = episode < total
        run = episode // episodes
        counter = walk_key(tl.load(keys + run, mask=real, other=0).to(tl.uint64, bitcast=True), episode % episodes)
        if LIMITED:  # noqa: SIM108
            limit = tl.load(limits + episode, mask=real, other=0)
        else:
            limit = tl.full([BLOCK], 1 << 62, tl.int64)

        # Roll in until the state is not terminal.
        rolling = real & (limit > 0)
        ending = tl.where(real & (limit <= 0), CUT_OFF, ARRIVED)
        taken = tl.zeros([BLOCK], tl.int64)
        attempts = tl.zeros([BLOCK], tl.int32)
        left = tl.zeros([BLOCK], tl.int32)
        state, policy, stop, counter = begin(
            chain, chain_size, ranges, start, start_size, counter, sole, MANY_CHAINS, MANY_STARTS
        )
        while tl.max(rolling.to(tl.int32), axis=0) > 0:
            need = rolling & ((left == 0) | (state < 0))
            following = next_policy(policy, stop, tail_start, num_policies)
            over = need & ((state < 0) | (following < 0))
            attempts += (over & (state < 0)).to(tl.int32)
            ending = tl.where(over & (state < 0) & (attempts == most_attempts), NOWHERE, ending)
            rolling = rolling & (over == 0) | (over & (state < 0) & (attempts < most_attempts))
            again = over & rolling
            at, before, end_of_range, fresh = begin(
                chain, chain_size, ranges, start, start_size, counter, sole, MANY_CHAINS, MANY_STARTS
            )
            counter = tl.where(again, fresh, counter)
            state = tl.where(again, at, state)
            policy = tl.where(again, before, policy)
            stop = tl.where(again, end_of_range, stop)
            drawing = need & (over == 0)
            offset = tl.load(stop_offset + following, mask=drawing, other=0)
            steps, drawn = stopping_time(stops, offset, stop_size, counter, drawing)
            counter = tl.where(drawing, drawn, counter)
            policy = tl.where(drawing, following, policy)
            left = tl.where(drawing, steps, tl.where(again, 0, left))
            go = rolling & (left > 0) & (state >= 0)
            table = roll_in_policies + run * roll_in_stride + policy.to(tl.int64) * pair_count
            _, entry, counter = take_step(
                table, row_start, thresholds, state, counter, go, num_actions,
                ACTION_STEPS, ACTIONS_LONG, ROW_STEPS, ROWS_LONG,
            )  # fmt: skip
            state = tl.where(go, tl.load(next_state + entry, mask=go, other=0), state)
            left -= go.to(tl.int32)
            taken += go.to(tl.int64)
            if LIMITED:
                cut = rolling & (taken >= limit)
                ending = tl.where(cut, CUT_OFF, ending)
                rolling = rolling & (cut == 0)
        tl.store(rolled + episode, taken, mask=real)
        tl.store(endings + episode, ending, mask=real)

        # Step forward.
        begun = real & (ending == ARRIVED)
        place = run * groups + program % groups
        length = tl.zeros([BLOCK], tl.int32)
        discount = tl.full([BLOCK], 1.0, tl.float64)
        step = tl.full([], 0, tl.int32)
        going = begun
        own_policy = policy_thresholds + run * policy_stride
        while tl.max(going.to(tl.int32), axis=0) > 0:
            row, entry, counter = take_step(
                own_policy, row_start, thresholds, state, counter, going, num_actions,
                ACTION_STEPS, ACTIONS_LONG, ROW_STEPS, ROWS_LONG,
            )  # fmt: skip
            tl.store(pairs + step * BLOCK, row, mask=going)
            if OWN or LARGER:
                tl.store(path + step * BLOCK, entry, mask=going)
            if RECORD:
                tl.atomic_add(
                    entry_counts + run * num_entries + entry, tl.full([BLOCK], 1, tl.int64), mask=going, sem="relaxed"
                )
            spot = (place * num_states + state) * COPIES + lane % COPIES
            tl.atomic_add(occupancy + spot, rest * discount, mask=going, sem="relaxed")
            discount = tl.where(going, discount * gamma, discount)
            state = tl.where(going, tl.load(next_state + entry, mask=going, other=0), state)
            length += going.to(tl.int32)
            step += 1
            going = going & (state >= 0) & (length < horizon)
            if LIMITED:
                going = going & (taken + length < limit)

        # Go back.
        tl.debug_barrier()
        stands = tl.where(state < 0, ~state, state)
        spot = (place * num_states + stands) * COPIES + lane % COPIES
        tl.atomic_add(occupancy + spot, discount, mask=begun, sem="relaxed")
        ended = begun & (state < 0)
        for_ever = tl.zeros([BLOCK], tl.float64)
        for action in range(num_actions):
            row = stands * num_actions + action
            chosen = tl.load(policy_table + run * policy_stride + row, mask=ended, other=0.0)
            for_ever += chosen * tl.load(rewards + run * reward_stride + row, mask=ended, other=0.0)
        for_ever = for_ever / rest
        predicted = tl.load(critic + run * critic_stride + stands, mask=begun & (state >= 0), other=0.0)
        ahead = tl.where(ended, for_ever, predicted)
        earned_ahead = for_ever
        advantage = tl.zeros([BLOCK], tl.float64)
        while step > 0:
            step -= 1
            now = tl.zeros([BLOCK], tl.int32) + step
            here = begun & (now < length)
            row = tl.load(pairs + step * BLOCK, mask=here, other=0)
            if OWN:
                entry = tl.load(path + step * BLOCK, mask=here, other=0)
                earned = tl.load(entry_rewards + entry, mask=here, other=0.0)
            else:
                earned = tl.load(rewards + run * reward_stride + row, mask=here, other=0.0)
                if LARGER:
                    entry = tl.load(path + step * BLOCK, mask=here, other=0)
                    earned = tl.maximum(earned, tl.load(entry_rewards + entry, mask=here, other=0.0))
            value = tl.load(critic + run * critic_stride + row // num_actions, mask=here, other=0.0)
            advantage = tl.where(here, earned + gamma * ahead - value + decay * advantage, advantage)
            earned_ahead = tl.where(here, earned + gamma * earned_ahead, earned_ahead)
            ahead = tl.where(here, value, ahead)
            credit = here & (now < credited)
            spot = (place * pair_count + row) * COPIES + lane % COPIES
            if WEIGHT_DECAYS:
                scale = tl.load(weight_decay + step)
                tl.atomic_add(advantage_sum + spot, scale * advantage, mask=credit, sem="relaxed")
                tl.atomic_add(weight + spot, tl.zeros([BLOCK], tl.float64) + scale, mask=credit, sem="relaxed")
            else:
                tl.atomic_add(advantage_sum + spot, advantage, mask=credit, sem="relaxed")
                tl.atomic_add(weight + spot, tl.full([BLOCK], 1.0, tl.float64), mask=credit, sem="relaxed")
        tl.store(returns + episode, earned_ahead, mask=begun)
        tl.store(lengths + episode, length.to(tl.int64), mask=begun)
        tl.debug_barrier()
