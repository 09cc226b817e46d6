"""Walks of B runs in one launch: where they end, or how many end in each state."""

from __future__ import annotations

from typing import NamedTuple

import torch

from curious_explorer.gpu.device import check_memory
from curious_explorer.gpu.device_model import Model, RollIns
from curious_explorer.gpu.launch import (
    WALKS,
    Launch,
    chain_arguments,
    check_runs,
    copies_of,
    programs_per_run,
    step_arguments,
    zeros,
)
from curious_explorer.gpu.packing import UNPACKED, packed_bits
from curious_explorer.gpu.triton_walk_kernel import walk_kernel
from curious_explorer.worlds import prepared


class WalkBatch(NamedTuple):
    """Where walks ended, and what they cost."""

    samples: torch.Tensor  # (B,) int64: steps taken
    counts: torch.Tensor | None  # (B, S) int64: how many walks ended in each state; (S,) where runs are added up
    ends: torch.Tensor | None  # (B, count) int32: where each walk ended


def pays_to_compose(model: Model, roll_ins: RollIns, count: int) -> bool:
    """Whether `TabularWorld` would walk ``count`` such walks by composed tables."""
    entries = roll_ins.num_policies * model.num_states << model.log2_size
    return prepared.composing_pays(roll_ins.expected_steps, count, entries)


def walk_batch(
    model: Model,
    roll_ins: RollIns,
    keys: torch.Tensor,
    count: int,
    *,
    composed: bool | None = None,
    ends: bool = False,
    counts: bool = True,
    add_runs: bool = False,
    launch: Launch | None = None,
) -> WalkBatch:
    """Walk numbers 0 to ``count - 1`` of each run, in one launch.

    Args:
        model: where to walk.
        roll_ins: what to walk; of B runs, or of one that all keys share.
        keys: shape (B,), one stream for each run; see `stream_keys`.
        count: how many walks for each run.
        composed: whether to walk by composed tables; None means where `pays_to_compose` says so. The two ways use
            other draws, so they end in other states.
        ends: whether to return where each walk ended, (B, count) int32.
        counts: whether to return how many ended in each state, (B, S) int64.
        add_runs: whether the counts of all runs are added up, to shape (S,).
        launch: how to lay out the kernel.
    """
    runs = check_runs(keys, roll_ins=roll_ins.policies)
    if composed is None:
        composed = pays_to_compose(model, roll_ins, count)
    if composed and roll_ins.composed is None:
        raise ValueError(
            "the roll-ins have no composed tables; build their policies by prepare_policies(composed=True)"
        )
    layout = launch or WALKS
    table = roll_ins.composed if composed and roll_ins.composed is not None else roll_ins.policies
    packed = composed and roll_ins.packed is not None
    policy_entries = model.num_states << model.log2_size if composed else model.num_states * model.num_actions
    programs = programs_per_run(model.device, layout, runs, count)
    states = model.num_states
    copies, rows = copies_of(layout, 1 if add_runs else runs, states, runs * programs if add_runs else programs)
    needed = 4 * runs * count * ends + 8 * (1 if add_runs else runs) * rows * states * copies * counts
    check_memory(needed, model.device, f"{runs * count:,} walks")
    counted = zeros((1 if add_runs else runs, rows, states, copies) if counts else (1,), torch.int64, model.device)
    ended = torch.empty((runs, count) if ends else (1, 1), dtype=torch.int32, device=model.device)
    samples = zeros((runs,), torch.int64, model.device)
    if count > 0 and runs > 0:
        walk_kernel[(runs * programs,)](
            keys,
            table,
            roll_ins.packed if packed else table,
            0 if len(table) == 1 else roll_ins.num_policies * policy_entries,
            policy_entries,
            model.row_start,
            model.thresholds,
            model.next_state,
            **chain_arguments(model, roll_ins),
            count=count,
            programs=programs,
            portion=-(-count // programs),
            num_actions=model.num_actions,
            num_states=states,
            ends=ended,
            counts=counted,
            count_rows=rows,
            samples=samples,
            LOG2_SIZE=model.log2_size,
            COMPOSED=composed,
            BITS=packed_bits(states) if packed else UNPACKED,
            WIDE=roll_ins.num_policies * policy_entries * 2 >= 1 << 31,
            ONE_POLICY=roll_ins.one_policy,
            **step_arguments(model),
            ENDS=ends,
            COUNTS=counts,
            COPIES=copies,
            SHARED_COUNTS=add_runs,
            STRIDE=layout.stride,
            BLOCK=layout.block,
            num_warps=layout.warps,
            enable_fp_fusion=False,
        )
    total = counted.sum(dim=(1, 3)) if counts else None
    return WalkBatch(samples, total[0] if add_runs and total is not None else total, ended if ends else None)
