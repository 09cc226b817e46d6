# mypy: ignore-errors
# Triton's language has no types that a checker of Python would know.
"""Walks of many runs at once: Algorithm 1 and the roll-in of reset models, on the GPU.

A program has a stretch of its run's walks to do and a block of lanes to do them; a lane that has finished a walk takes
the next one, so no lane waits for the longest walk. The block looks for finished lanes every ``STRIDE`` steps: looking
costs about two steps, and waiting costs a lane half a stride, so a few steps are best. Where a walk ends is counted by
atomic additions, in several copies of the counts that stand side by side, so that lanes that end in one state do not
wait for each other.
"""

from __future__ import annotations

import triton
import triton.language as tl

from curious_explorer.sampling.gpu.draws import (
    GOLDEN,
    begin,
    mix64,
    next_policy,
    read_alias,
    stopping_time,
    take_step,
    walk_key,
)

_UNSPECIALISED = ["count", "chain_size", "start_size", "stop_size", "num_policies", "tail_start", "programs", "portion"]


@triton.jit(do_not_specialize=_UNSPECIALISED)
def walk_kernel(
    keys,
    table,  # composed alias entries, or policy thresholds, of all runs
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
    row = (program if SHARED_COUNTS else program % programs) % count_rows
    if not SHARED_COUNTS:
        row += run * count_rows
    counts += row.to(tl.int64) * num_states * COPIES

    first = (program % programs).to(tl.int64) * portion
    last = tl.minimum(count - first, portion).to(tl.int32)  # walks are numbered from `first` on, in 32 bits
    key += first.to(tl.uint64) * GOLDEN
    ends += run * count + first
    walk = lane
    unbegun = tl.full([], BLOCK, tl.int32)
    live = walk < last
    counter = walk_key(key, walk)
    state, policy, stop, counter = begin(
        chain, chain_size, ranges, start, start_size, counter, live, MANY_CHAINS, MANY_STARTS
    )
    left = tl.zeros([BLOCK], tl.int32)
    if ONE_POLICY:
        policy = tl.zeros([BLOCK], tl.int32)
        left, counter = stopping_time(stops, stop_offset, stop_size, policy, counter, live & (state >= 0))
    taken = left.to(tl.int64)
    # Each walk that ends makes a lane take the next number, so numbers tell when all have ended: a reduction the less.
    while unbegun < last + BLOCK:
        need = live & ((left == 0) | (state < 0))
        taken -= tl.where(need, left, 0)
        left = tl.where(need, 0, left)
        if ONE_POLICY:
            following = policy
            finished = need
        else:
            following = next_policy(policy, stop, tail_start, num_policies)
            finished = need & ((state < 0) | (following < 0))
        end = tl.where(state < 0, ~state, state)
        if ENDS:
            tl.store(ends + walk, end, mask=finished)
        if COUNTS:
            place = end.to(tl.int64) * COPIES + lane % COPIES
            tl.atomic_add(counts + place, tl.full([BLOCK], 1, tl.int64), mask=finished, sem="relaxed")
        walk = tl.where(finished, unbegun - 1 + tl.cumsum(finished.to(tl.int32), axis=0), walk)
        unbegun += tl.sum(finished.to(tl.int32), axis=0)
        live = walk < last
        beginning = finished & live
        fresh = walk_key(key, walk)
        at, before, end_of_range, fresh = begin(
            chain, chain_size, ranges, start, start_size, fresh, beginning, MANY_CHAINS, MANY_STARTS
        )
        state = tl.where(beginning, at, state)
        counter = tl.where(beginning, fresh, counter)
        drawing = need & live & (state >= 0)
        if not ONE_POLICY:
            stop = tl.where(beginning, end_of_range, stop)
            after = next_policy(before, stop, tail_start, num_policies)
            following = tl.where(beginning, after, following)
            drawing = drawing & (following >= 0)
            policy = tl.where(drawing, following, tl.where(beginning, before, policy))
        steps, counter = stopping_time(stops, stop_offset, stop_size, following, counter, drawing)
        left = tl.where(drawing, steps, left)
        taken += tl.where(drawing, steps, 0)
        if ONE_POLICY:
            base = 0
        elif WIDE:
            base = policy.to(tl.int64) * policy_stride
        else:
            base = policy * policy_stride
        for _ in tl.static_range(STRIDE):
            go = (left > 0) & (state >= 0)
            if COMPOSED:
                # With one policy a lane that stops takes another key, and nobody minds what it drew while it waited.
                counter = counter + GOLDEN if ONE_POLICY else tl.where(go, counter + GOLDEN, counter)
                u = mix64(counter)
                slot = u.to(tl.int32) & ((1 << LOG2_SIZE) - 1)
                here = state.to(tl.int64) if WIDE else state
                entry = base + ((here << LOG2_SIZE) | slot)
                state = tl.where(go, read_alias(table, entry, u, go), state)
            else:
                _, entry, counter = take_step(
                    table + base,
                    row_start,
                    thresholds,
                    state,
                    counter,
                    go,
                    num_actions,
                    ACTION_STEPS,
                    ACTIONS_LONG,
                    ROW_STEPS,
                    ROWS_LONG,
                )
                state = tl.where(go, tl.load(next_state + entry, mask=go, other=0), state)
            left -= go.to(tl.int32)
    tl.atomic_add(samples + run, tl.sum(taken, axis=0), sem="relaxed")
