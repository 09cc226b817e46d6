"""Alias entries in one 64-bit word instead of two, so that twice as many fit the GPU's caches.

A word holds the upper bits of the entry's threshold, its first outcome and its second, of `packed_bits` each: a state
below a bit that is set where the state is terminal. Draws of which the upper bits equal those of the threshold are left
to the full table, so packing changes no result; `strides` says how.
"""

from __future__ import annotations

import torch

from curious_explorer.gpu.device import check_memory

LEAST_BITS, MOST_BITS = 16, 26
"""Of an outcome. With fewer than 16 the threshold would have more than half of the word, and kernels compare one half;
with more than 26 it would have so few bits that draws would often equal it."""
UNPACKED = 32
WORDS_FOR_A_MOMENT = 6
"""How many words an entry takes while it is packed: its own, and those of intermediate results."""


def packed_bits(num_states: int) -> int:
    """The bits of an outcome in a packed entry; `UNPACKED` where states are too many."""
    bits = max(LEAST_BITS, 1 + (num_states - 1).bit_length())
    return bits if bits <= MOST_BITS else UNPACKED


def pack(composed: torch.Tensor, num_states: int) -> torch.Tensor | None:
    """Alias entries (..., 2) as words (...); None where states are too many.

    The threshold of a certain outcome, 2**63, is one more than its bits hold; the most that they hold will do, because
    draws that equal it are left to the full table.
    """
    bits = packed_bits(num_states)
    if bits == UNPACKED:
        return None
    check_memory(8 * WORDS_FOR_A_MOMENT * (composed.numel() // 2), composed.device, "packing the tables of a roll-in")
    share, outcomes = composed.unbind(-1)
    upper_bits = 64 - 2 * bits
    certain = share < 0  # 2**63, in signed words
    packed = torch.where(certain, (1 << upper_bits) - 1, share >> (63 - upper_bits))
    for outcome in ((outcomes << 32) >> 32, outcomes >> 32):
        packed <<= bits
        packed |= torch.where(outcome < 0, ~outcome | (1 << (bits - 1)), outcome)
    return packed
