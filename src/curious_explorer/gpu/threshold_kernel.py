# mypy: ignore-errors
# Triton's language has no types that a checker of Python would know.
"""Cumulative action probabilities as integers, on the GPU; see `tables.fill_policy_thresholds`."""

from __future__ import annotations

import triton
import triton.language as tl

ALWAYS = tl.constexpr(1 << 63)
SCALE = tl.constexpr(9223372036854775808.0)


@triton.jit(do_not_specialize=["rows"])
def threshold_kernel(policy, thresholds, rows, num_actions, BLOCK: tl.constexpr):
    """One lane for each state of each run: add up its row in the CPU's order, so that sums round alike."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = row < rows
    total = tl.zeros([BLOCK], tl.float64)
    last = tl.zeros([BLOCK], tl.int32)
    for action in range(num_actions):
        probability = tl.load(policy + row * num_actions + action, mask=real, other=0.0)
        total += probability
        share = tl.minimum(tl.maximum(total, 0.0), 1.0) * SCALE
        word = tl.where(share >= SCALE, ALWAYS, tl.where(share < SCALE, share, 0.0).to(tl.uint64))
        tl.store(thresholds + row * num_actions + action, word.to(tl.int64, bitcast=True), mask=real)
        last = tl.where(probability > 0.0, action, last)
    # Rounding may leave the sum just below one; the last action that is possible takes what is left.
    for action in range(num_actions):
        always = tl.full([BLOCK], ALWAYS, tl.uint64).to(tl.int64, bitcast=True)
        tl.store(thresholds + row * num_actions + action, always, mask=real & (action >= last))
