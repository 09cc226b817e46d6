# mypy: ignore-errors
# Triton's language has no types that a checker of Python would know.
"""Walks of many runs at once: Algorithm 1 and the roll-in of reset models, on the GPU.

A program has a stretch of its run's walks to do and a block of lanes to do them; a lane that has finished a walk takes
the next one, so no lane waits for the longest walk. The block looks for finished lanes every ``STRIDE`` steps (see
`strides`): looking costs about three steps, and waiting costs a lane half a stride, so a few steps are best. Where a
walk ends is counted by atomic additions, in several copies of the counts that stand side by side, so that lanes that
end in one state do not wait for each other.
"""

from __future__ import annotations

import triton
import triton.language as tl

from curious_explorer.gpu.draws import GOLDEN, begin, next_policy, sole_beginning, stopping_time, walk_key
from curious_explorer.gpu.strides import code_of, composed_stride, packed_stride, state_of, threshold_stride

_UNSPECIALISED = ["count", "chain_size", "start_size", "stop_size", "num_policies", "tail_start", "programs", "portion"]


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
