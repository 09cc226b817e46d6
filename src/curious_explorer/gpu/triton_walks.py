# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, unused-ignore"
"""Walks of B runs in one launch: Algorithm 1 and the roll-in of reset models, on the GPU.

A program has a stretch of its run's walks to do and a block of lanes to do them; a lane that has finished a walk takes
the next one, so no lane waits for the longest walk. The block looks for finished lanes every ``STRIDE`` steps: looking
costs about three steps, and waiting costs a lane half a stride, so a few steps are best. Where a walk ends is counted
by atomic additions, in several copies of the counts that stand side by side, so that lanes that end in one state do not
wait for each other.

A lane's state is kept as a *code* of 32 bits: the top bit says that the state is terminal, the next ``BITS - 1`` bits
are its number, and those below mean nothing. ``BITS`` is 32 but for packed tables.

*Packed tables* (`device_tables`) hold the upper bits of an entry's threshold, then its two outcomes, as the top
``BITS`` bits of their codes. The upper bits of draw and threshold decide the comparison unless they are equal. Where
they are, for any lane of a block at any step, the block takes the stride again by the full table, so packing changes no
result.

The integer units are what limits walks on small models, so every instruction of a packed step counts. A lane is stopped
where its steps are used up, but not in a terminal state: such states lead to themselves. How many steps it took is
known from how often it was found in a state that is not terminal.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from curious_explorer.gpu.device import WALKS, Launch, check_memory, copies_of, programs_per_run
from curious_explorer.gpu.device_tables import (
    UNPACKED,
    Model,
    RollIns,
    chain_arguments,
    check_runs,
    packed_bits,
    step_arguments,
    zeros,
)
from curious_explorer.gpu.draws import (
    GOLDEN,
    almost_mixed,
    begin,
    mix64,
    next_policy,
    read_alias,
    sole_beginning,
    stopping_time,
    take_step,
    walk_key,
)
from curious_explorer.worlds import numba_backend

_UNSPECIALISED = ["count", "chain_size", "start_size", "stop_size", "num_policies", "tail_start", "programs", "portion"]


class BatchWalks(NamedTuple):
    """Where walks ended, and what they cost."""

    samples: torch.Tensor  # (B,) int64: steps taken
    counts: torch.Tensor | None  # (B, S) int64: how many walks ended in each state; (S,) where runs are added up
    ends: torch.Tensor | None  # (B, count) int32: where each walk ended


def pays_to_compose(model: Model, roll_ins: RollIns, count: int) -> bool:
    """Whether `TabularWorld` would walk ``count`` such walks by composed tables."""
    entries = roll_ins.num_policies * model.num_states << model.log2_size
    return numba_backend.composing_pays(roll_ins.expected_steps, count, entries)


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
) -> BatchWalks:
    """Walk numbers 0 to ``count - 1`` of each run, in one launch.

    Roll-ins are of B runs, or of one that all share; ``keys`` (B,) has a stream for each run (see `stream_keys`).
    ``composed`` says whether to walk by composed tables, None where `pays_to_compose` says so: the two ways use other
    draws, so they end in other states. Asked for are ``ends``, where each walk ended, and ``counts``, how many ended in
    each state, with ``add_runs`` those of all runs together.
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
    return BatchWalks(samples, total[0] if add_runs and total is not None else total, ended if ends else None)


@triton.jit
def code_of(state, BITS: tl.constexpr):
    """The code of each lane's state, which is given complemented where it is terminal."""
    number = tl.where(state < 0, ~state, state)
    return (number << (32 - BITS)) | (state & -(1 << 31))


@triton.jit
def state_of(code, BITS: tl.constexpr):
    """The state that a code stands for, terminal or not."""
    number = code.to(tl.uint32, bitcast=True) >> (32 - BITS)
    return (number & ((1 << (BITS - 1)) - 1)).to(tl.int32)


@triton.jit
def packed_stride(
    packed,
    base,
    code,
    left,
    counter,
    LOG2_SIZE: tl.constexpr,
    BITS: tl.constexpr,
    WIDE: tl.constexpr,
    STRIDE: tl.constexpr,
):
    """Up to ``left`` of ``STRIDE`` steps by packed tables.

    Returns the codes, how often each was not terminal before a step, and whether all that must be done again.
    """
    ended = tl.zeros(code.shape, tl.uint32)
    nearest = tl.full(code.shape, 0xFFFFFFFF, tl.uint32)
    for step in tl.static_range(STRIDE):
        counter += GOLDEN
        almost = almost_mixed(counter)
        slot = (almost ^ (almost >> 31)).to(tl.uint32) & ((1 << LOG2_SIZE) - 1)
        number = state_of(code, BITS).to(tl.uint64 if WIDE else tl.uint32)
        halves = (packed + (base + ((number << LOG2_SIZE) | slot))).to(tl.pointer_type(tl.uint32))
        lower, upper = tl.split(tl.load(halves[:, None] + tl.arange(0, 2)[None, :]))
        # The last shift of the mixing, left out here, would change only the lowest bit of the draw's upper half.
        draw = (almost >> 32).to(tl.uint32)
        nearest = tl.minimum(nearest, draw ^ upper)
        chosen = lower if BITS == 16 else (lower >> (2 * BITS - 32)) | (upper << (64 - 2 * BITS))
        other = lower << (32 - BITS)
        ended += code.to(tl.uint32, bitcast=True) >> 31
        code = tl.where(left > step, tl.where(draw < upper, chosen, other).to(tl.int32, bitcast=True), code)
    # An upper half ends in bits of an outcome, which do not count; with 16 it does not, and its lowest bit is left out.
    EQUAL: tl.constexpr = 2 if BITS == 16 else 1 << (2 * BITS - 32)
    return code, STRIDE - ended.to(tl.int32), tl.min(nearest, axis=0) < EQUAL


@triton.jit
def composed_stride(
    table,
    base,
    code,
    left,
    counter,
    LOG2_SIZE: tl.constexpr,
    BITS: tl.constexpr,
    WIDE: tl.constexpr,
    STRIDE: tl.constexpr,
):
    """The same by full tables: the codes, and how often each was not terminal before a step."""
    lived = tl.zeros(code.shape, tl.int32)
    for step in range(STRIDE):
        counter += GOLDEN
        u = mix64(counter)
        number = state_of(code, BITS).to(tl.int64 if WIDE else tl.int32)
        entry = base + ((number << LOG2_SIZE) | (u.to(tl.int32) & ((1 << LOG2_SIZE) - 1)))
        lived += (code >= 0).to(tl.int32)
        code = tl.where(left > step, code_of(read_alias(table, entry, u), BITS), code)
    return code, lived


@triton.jit
def threshold_stride(
    policy_thresholds,
    row_start,
    thresholds,
    next_state,
    code,
    left,
    counter,
    num_actions,
    ACTION_STEPS: tl.constexpr,
    ACTIONS_LONG: tl.constexpr,
    ROW_STEPS: tl.constexpr,
    ROWS_LONG: tl.constexpr,
    STRIDE: tl.constexpr,
):
    """The same by cumulative thresholds, two draws to a step, with codes of 32 bits."""
    lived = tl.zeros(code.shape, tl.int32)
    for step in tl.static_range(STRIDE):
        go = (left > step) & (code >= 0)
        _, entry, counter = take_step(
            policy_thresholds, row_start, thresholds, code, counter, go, num_actions,
            ACTION_STEPS, ACTIONS_LONG, ROW_STEPS, ROWS_LONG,
        )  # fmt: skip
        lived += (code >= 0).to(tl.int32)
        code = tl.where(go, code_of(tl.load(next_state + entry, mask=go, other=0), 32), code)
    return code, lived


@triton.jit(do_not_specialize=_UNSPECIALISED)
def walk_kernel(
    keys,
    table,  # composed alias entries, or policy thresholds, of all runs
    packed,  # the composed entries once more, packed; or anything
    run_stride,  # from one run's table to the next, in entries; 0 where runs share it
    policy_stride,  # from one policy's table to the next, in entries
    row_start,
    thresholds,
    next_state,
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
    count,
    programs,  # for each run
    portion,  # how many walks a program has to do
    num_actions,
    ends,
    counts,
    count_rows,  # how many rows of counts a run has, or, where runs share them, there are
    samples,
    LOG2_SIZE: tl.constexpr,
    COMPOSED: tl.constexpr,
    BITS: tl.constexpr,  # of a packed outcome; 32 where tables are not packed
    MANY_CHAINS: tl.constexpr,
    MANY_STARTS: tl.constexpr,
    ONE_POLICY: tl.constexpr,  # one chain, which walks one policy
    WIDE: tl.constexpr,  # whether entries need 64-bit indices
    ACTION_STEPS: tl.constexpr,
    ACTIONS_LONG: tl.constexpr,
    ROW_STEPS: tl.constexpr,
    ROWS_LONG: tl.constexpr,
    ENDS: tl.constexpr,
    COUNTS: tl.constexpr,
    COPIES: tl.constexpr,  # of each row's counts, side by side
    SHARED_COUNTS: tl.constexpr,
    num_states,
    STRIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """See the module; one program walks `BLOCK` lanes of one run."""
    program = tl.program_id(0)
    run = (program // programs).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    key = tl.load(keys + run).to(tl.uint64, bitcast=True)
    table += run * run_stride * (2 if COMPOSED else 1)
    packed += run * run_stride
    row = (program if SHARED_COUNTS else program % programs) % count_rows
    if not SHARED_COUNTS:
        row += run * count_rows
    # A row of counts has fewer than 2**31 places, so that they are found by 32-bit numbers.
    counts += row.to(tl.int64) * num_states * COPIES + lane % COPIES

    first = (program % programs).to(tl.int64) * portion
    last = tl.minimum(count - first, portion).to(tl.int32)  # walks are numbered from `first` on, in 32 bits
    key += first.to(tl.uint64) * GOLDEN
    ends += run * count + first
    DRAWS: tl.constexpr = 1 if COMPOSED else 2  # of a step
    sole = sole_beginning(ranges, start)
    walk = lane
    unbegun = tl.full([], BLOCK, tl.int32)
    live = walk < last
    counter = walk_key(key, walk)
    state, policy, stop, counter = begin(
        chain, chain_size, ranges, start, start_size, counter, sole, MANY_CHAINS, MANY_STARTS
    )
    code = code_of(state, BITS)
    left = tl.zeros([BLOCK], tl.int32)
    taken = tl.zeros([BLOCK], tl.int64)
    if ONE_POLICY:
        steps, counter = stopping_time(stops, 0, stop_size, counter, live)
        left = tl.where(live, steps, 0)
    # Each walk that ends makes a lane take the next number, so numbers tell when all have ended: a reduction the less.
    while unbegun < last + BLOCK:
        need = live & ((left == 0) | (code < 0))
        if ONE_POLICY:
            finished = need
        else:
            following = next_policy(policy, stop, tail_start, num_policies)
            finished = need & ((code < 0) | (following < 0))
        end = state_of(code, BITS)
        if ENDS:
            tl.store(ends + walk, end, mask=finished)
        if COUNTS:
            tl.atomic_add(counts + end * COPIES, tl.full([BLOCK], 1, tl.int64), mask=finished, sem="relaxed")
        walk = tl.where(finished, unbegun - 1 + tl.cumsum(finished.to(tl.int32), axis=0), walk)
        unbegun += tl.sum(finished.to(tl.int32), axis=0)
        live = walk < last
        beginning = finished & live
        fresh = walk_key(key, walk)
        state, before, end_of_range, fresh = begin(
            chain, chain_size, ranges, start, start_size, fresh, sole, MANY_CHAINS, MANY_STARTS
        )
        code = tl.where(beginning, code_of(state, BITS), code)
        if ONE_POLICY:
            steps, fresh = stopping_time(stops, 0, stop_size, fresh, beginning)
            counter = tl.where(beginning, fresh, counter)
            left = tl.where(beginning, steps, left)
            base = 0
        else:
            counter = tl.where(beginning, fresh, counter)
            stop = tl.where(beginning, end_of_range, stop)
            following = tl.where(beginning, next_policy(before, stop, tail_start, num_policies), following)
            drawing = need & live & (code >= 0) & (following >= 0)
            policy = tl.where(drawing, following, tl.where(beginning, before, policy))
            offset = tl.load(stop_offset + following, mask=drawing, other=0)
            steps, fresh = stopping_time(stops, offset, stop_size, counter, drawing)
            counter = tl.where(drawing, fresh, counter)
            left = tl.where(drawing, steps, tl.where(need, 0, left))
            walked = tl.maximum(policy, 0)  # a lane that has nothing to walk may read, but only what is there
            base = (walked.to(tl.int64) if WIDE else walked) * policy_stride
        if not COMPOSED:
            reached, lived = threshold_stride(
                table + base, row_start, thresholds, next_state, code, left, counter, num_actions,
                ACTION_STEPS, ACTIONS_LONG, ROW_STEPS, ROWS_LONG, STRIDE,
            )  # fmt: skip
        elif BITS == 32:
            reached, lived = composed_stride(table, base, code, left, counter, LOG2_SIZE, BITS, WIDE, STRIDE)
        else:
            reached, lived, again = packed_stride(packed, base, code, left, counter, LOG2_SIZE, BITS, WIDE, STRIDE)
            if again:
                reached, lived = composed_stride(table, base, code, left, counter, LOG2_SIZE, BITS, WIDE, STRIDE)
        code = reached
        # A lane that stands in a terminal state took a step from every other one in which it was found.
        went = tl.where(code < 0, lived, tl.minimum(left, STRIDE))
        left -= went
        taken += went
        if ONE_POLICY:  # a lane that stops takes another key, and nobody minds what it drew while it waited
            counter += (STRIDE * DRAWS * GOLDEN) % (1 << 64)
        else:
            counter += (went * DRAWS).to(tl.uint64) * GOLDEN
    tl.atomic_add(samples + run, tl.sum(taken, axis=0), sem="relaxed")
