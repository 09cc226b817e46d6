# mypy: ignore-errors
# Triton's language has no types that a checker of Python would know.
"""The steps that a block of lanes takes between two looks for lanes that have finished, by each kind of table.

A lane's state is kept as a *code* of 32 bits: the top bit says that the state is terminal, the next ``BITS - 1`` bits
are its number, and those below mean nothing. ``BITS`` is 32 but for packed tables.

*Packed tables* (`packing`) hold the upper bits of an entry's threshold, then its two outcomes, as the top ``BITS`` bits
of their codes. The upper bits of draw and threshold decide the comparison unless they are equal. Where they are, for
any lane of a block at any step, the block takes the stride again by the full table, so packing changes no result.

The integer units are what limits walks on small models, so every instruction of a packed step counts. A lane is stopped
where its steps are used up, but not in a terminal state: such states lead to themselves. How many steps it took is
known from how often it was found in a state that is not terminal.
"""

from __future__ import annotations

import triton
import triton.language as tl

from curious_explorer.gpu.draws import GOLDEN, almost_mixed, mix64, read_alias, take_step


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
