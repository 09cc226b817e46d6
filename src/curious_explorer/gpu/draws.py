# mypy: ignore-errors
# Triton's language has no types that a checker of Python would know.
"""The random numbers of `worlds.random_streams` and the tables of `worlds.alias_tables`, read by Triton.

Every function here is one that the CPU kernels have too, written for a block of lanes; on the same key they give the
same bits. An alias entry is read as one 16-byte load: its threshold, then its two outcomes.
"""

from __future__ import annotations

import triton
import triton.language as tl

GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
_M1 = tl.constexpr(0xBF58476D1CE4E5B9)
_M2 = tl.constexpr(0x94D049BB133111EB)
ALWAYS = tl.constexpr(1 << 63)
SCALE = tl.constexpr(9223372036854775808.0)


@triton.jit
def almost_mixed(z):
    """SplitMix64's finaliser of unsigned 64-bit lanes, but for its last shift."""
    z = (z ^ (z >> 30)) * _M1
    return (z ^ (z >> 27)) * _M2


@triton.jit
def mix64(z):
    """SplitMix64's finaliser of unsigned 64-bit lanes."""
    z = almost_mixed(z)
    return z ^ (z >> 31)


@triton.jit
def walk_key(key, walk):
    """The key of each lane's walk within its stream."""
    return mix64(key + walk.to(tl.uint32).to(tl.uint64) * GOLDEN)


@triton.jit
def read_alias(table, entry, u):
    """The outcome that draw ``u`` picks from each lane's alias entry."""
    pair = tl.load(table + (entry * 2)[:, None] + tl.arange(0, 2)[None, :])
    share, outcomes = tl.split(pair)
    chosen = outcomes.to(tl.int32)
    other = (outcomes >> 32).to(tl.int32)
    return tl.where((u >> 1) < share.to(tl.uint64, bitcast=True), chosen, other)


@triton.jit
def choose(table, size, counter):
    """An outcome of a table with a single row of ``size`` entries, more than one, and the counter after the draw."""
    counter += GOLDEN
    u = mix64(counter)
    return read_alias(table, (u & (size - 1).to(tl.uint64)).to(tl.int32), u), counter


@triton.jit
def begin(
    chain, chain_size, ranges, start, start_size, counter, sole, MANY_CHAINS: tl.constexpr, MANY_STARTS: tl.constexpr
):
    """A walk's start state, the policy before its first one, the end of its own range, and its counter.

    Where there is one chain, or one start, nothing is drawn: it is in ``sole``, as `sole_beginning` gives it. All lanes
    draw; those that begin no walk may forget it.
    """
    sole_first, sole_stop, sole_start = sole
    if MANY_CHAINS:
        which, counter = choose(chain, chain_size, counter)
        first = tl.load(ranges + 2 * which)
        stop = tl.load(ranges + 2 * which + 1)
    else:
        first = tl.zeros(counter.shape, tl.int32) + sole_first
        stop = tl.zeros(counter.shape, tl.int32) + sole_stop
    if MANY_STARTS:
        state, counter = choose(start, start_size, counter)
    else:
        state = tl.zeros(counter.shape, tl.int32) + sole_start
    return state, first - 1, stop, counter


@triton.jit
def sole_beginning(ranges, start):
    """The first chain's range and the first start state: loaded once, not for each walk that begins."""
    return tl.load(ranges), tl.load(ranges + 1), tl.load(start + 1).to(tl.int32)


@triton.jit
def next_policy(policy, stop, tail_start, num_policies):
    """The policy to walk after ``policy``: the next of the chain's range, then the tail; -1 when all are walked."""
    policy += 1
    policy = tl.where((policy >= stop) & (policy < tail_start), tail_start, policy)
    return tl.where(policy < num_policies, policy, -1)


@triton.jit
def _draw_stop(stops, offset, stop_size, counter):
    """One draw from the table of stopping times that begins at each lane's offset."""
    u = mix64(counter)
    return read_alias(stops, offset + (u & (stop_size - 1).to(tl.uint64)).to(tl.int32), u)


@triton.jit
def stopping_time(stops, offset, stop_size, counter, mask):
    """How many steps a policy is walked, by the table at ``offset``, and the counter; anything where the mask says no.

    The table's last entry stands for "at least this many".
    """
    counter += GOLDEN
    total = _draw_stop(stops, offset, stop_size, counter)
    drawing = mask & (total == stop_size - 1)
    while tl.max(drawing.to(tl.int32), axis=0) > 0:  # seldom, so that the draw above is nearly always the only one
        counter = tl.where(drawing, counter + GOLDEN, counter)
        drawn = _draw_stop(stops, offset, stop_size, counter)
        total = tl.where(drawing, total + drawn, total)
        drawing = drawing & (drawn == stop_size - 1)
    return total, counter


@triton.jit
def pick(thresholds, first, last, u, mask, STEPS: tl.constexpr, LONG: tl.constexpr):
    """The first place from ``first`` to ``last`` whose cumulative threshold is above the draw ``u``.

    ``STEPS`` is how often to look: the length of the longest row less one, or its logarithm where rows are ``LONG``.
    """
    if LONG:
        for _ in range(STEPS):
            searching = mask & (first < last)
            middle = (first + last) >> 1
            above = u >= tl.load(thresholds + middle, mask=searching, other=0).to(tl.uint64, bitcast=True)
            first = tl.where(searching & above, middle + 1, first)
            last = tl.where(searching & (above == 0), middle, last)
        place = first
    else:
        place = first
        for index in tl.static_range(STEPS):
            there = mask & (first + index < last)
            share = tl.load(thresholds + first + index, mask=there, other=-1).to(tl.uint64, bitcast=True)
            place += (u >= share).to(place.dtype)
    return place


@triton.jit
def take_step(
    policy_thresholds,
    row_start,
    thresholds,
    state,
    counter,
    mask,
    num_actions,
    ACTION_STEPS: tl.constexpr,
    ACTIONS_LONG: tl.constexpr,
    ROW_STEPS: tl.constexpr,
    ROWS_LONG: tl.constexpr,
):
    """Draw an action, then a transition: each lane's row ``s * A + a``, the transition's entry, and the counter.

    ``policy_thresholds`` points, lane by lane, at the table of the lane's own policy.
    """
    counter = tl.where(mask, counter + GOLDEN, counter)
    first = state * num_actions
    row = pick(policy_thresholds, first, first + num_actions - 1, mix64(counter) >> 1, mask, ACTION_STEPS, ACTIONS_LONG)
    counter = tl.where(mask, counter + GOLDEN, counter)
    here = tl.load(row_start + row, mask=mask, other=0)
    if ROW_STEPS > 0:
        last = tl.load(row_start + row + 1, mask=mask, other=1) - 1
        entry = pick(thresholds, here, last, mix64(counter) >> 1, mask, ROW_STEPS, ROWS_LONG)
    else:  # every transition is certain: the draw is passed over
        entry = here
    return row, entry, counter


@triton.jit(do_not_specialize=["rows"])
def threshold_kernel(policy, thresholds, rows, num_actions, BLOCK: tl.constexpr):
    """Cumulative action probabilities as integers; see `alias_tables.fill_policy_thresholds`.

    One lane for each state of each run adds up its row in the CPU's order, so that sums round alike.
    """
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
