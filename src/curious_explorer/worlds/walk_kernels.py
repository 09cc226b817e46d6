"""Compiled walks through composed tables: Algorithm 1, and the roll-in of a reset model.

A walk draws, in this order: its chain, its start, and for each policy of the chain the number of steps before the
walk stops (geometric) followed by the steps themselves. All draws come from the walk's own key, so a walk depends on
nothing but its number. A terminal state ends the walk at once: it would stay there, and no step is taken or counted.
Indices are unsigned on purpose: Numba then leaves out its test for negative ones.

A single walk waits for memory at every step. `walk_in_pairs` therefore advances two walks in turn, which doubles
the pace while the tables fit the cache; `walk_in_lanes` advances 32, and prefetches each lane's next entry one turn
ahead, which hides the latency of main memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Indices, Words
from curious_explorer.compile import compiled, inlined, int64, prefetch
from curious_explorer.worlds.random_streams import GOLDEN, ONE, mix64, walk_key

LANES = 32
IDLE = int64(1 << 62)
NO_LANE = (int64(-1), int64(-1), int64(0), int64(0), np.uint64(0), int64(0))
TWO, THREE, FOUR = np.uint64(2), np.uint64(3), np.uint64(4)


class Chains(NamedTuple):
    """The part of a roll-in that the kernels share: which policies to walk, from where, and for how long."""

    chain_words: Words
    chain_outcomes: Indices
    ranges: NDArray[np.int64]  # (C, 3): first and stop of the policies, and the target to go to before, or -1
    tail_start: int
    num_policies: int
    start_words: Words
    start_outcomes: Indices  # complemented (negative) where the start is terminal
    stop_words: Words  # a geometric table for each discount, all of one size
    stop_outcomes: Indices
    stop_offset: NDArray[np.int64]  # (N,): where the table of each policy's discount begins
    stop_size: int
    targets: NDArray[np.int64]  # (T, 3): state, limit, tries in a row; only `roll_in` looks at these, see `Targets`
    actions: NDArray[np.int16]  # (T, S)
    tally: NDArray[np.int64]  # (T + 1, 3), written to; the last row counts how often all tries failed


@inlined
def draw(
    words: Words, outcomes: Indices, mask: np.uint64, offset: np.uint64, counter: np.uint64
) -> tuple[int, np.uint64]:
    """One outcome of the alias row that starts at entry ``offset``, and the counter after the draw."""
    counter += GOLDEN
    u = mix64(counter)
    entry = offset + (u & mask)
    chosen, other = outcomes[FOUR * entry + TWO], outcomes[FOUR * entry + THREE]
    return (chosen if (u >> ONE) < words[TWO * entry] else other), counter


@inlined
def choose(words: Words, outcomes: Indices, counter: np.uint64) -> tuple[int, np.uint64]:
    """One outcome of a table with a single row; where there is no choice, nothing is drawn."""
    if len(words) == 2:
        return outcomes[2], counter
    return draw(words, outcomes, np.uint64(len(words) // 2 - 1), np.uint64(0), counter)


@inlined
def stopping_time(chains: Chains, policy: int, counter: np.uint64) -> tuple[int, np.uint64]:
    """How many steps the walk of a policy takes."""
    mask, offset = np.uint64(chains.stop_size - 1), np.uint64(chains.stop_offset[policy])
    drawn, counter = draw(chains.stop_words, chains.stop_outcomes, mask, offset, counter)
    total = int64(drawn)
    while drawn == chains.stop_size - 1:  # the table's end stands for "at least this many"
        drawn, counter = draw(chains.stop_words, chains.stop_outcomes, mask, offset, counter)
        total += drawn
    return total, counter


@inlined
def begin(chains: Chains, counter: np.uint64) -> tuple[int, int, int, np.uint64]:
    """A walk's start state, the policy before its first one, the end of its own range, and its counter."""
    chain, counter = choose(chains.chain_words, chains.chain_outcomes, counter)
    state, counter = choose(chains.start_words, chains.start_outcomes, counter)
    return state, chains.ranges[chain, 0] - 1, chains.ranges[chain, 1], counter


@inlined
def next_policy(chains: Chains, policy: int, stop: int) -> int:
    """The policy to walk after ``policy``: the next of the chain's range, then the tail; -1 when all are walked."""
    policy += 1
    if policy >= stop and policy < chains.tail_start:
        policy = chains.tail_start
    return policy if policy < chains.num_policies else -1


@inlined
def go_on(
    chains: Chains,
    key: np.uint64,
    ends: Indices,
    first_walk: int,
    next_walk: int,
    walk: int,
    state: int,
    policy: int,
    stop: int,
    counter: np.uint64,
) -> tuple[int, int, int, int, int, np.uint64, int]:
    """What a lane does when its policy has stopped: walk the next one, or record the end and begin another walk.

    Returns the lane (next_walk, walk, state, policy, stop, counter) and how many steps are ahead of it. When no walk is
    left the lane has walk -1 and idles: it goes on drawing from a row that exists, and its steps are not counted.
    """
    while True:
        while state >= 0 and walk >= 0:
            policy = next_policy(chains, policy, stop)
            if policy < 0:
                break
            steps, counter = stopping_time(chains, policy, counter)
            if steps > 0:
                return next_walk, walk, state, policy, stop, counter, steps
        if walk >= 0:
            ends[walk - first_walk] = state if state >= 0 else ~state
        if next_walk == first_walk + len(ends):
            return next_walk, int64(-1), int64(0), int64(0), stop, counter, IDLE
        walk = next_walk
        next_walk += 1
        state, policy, stop, counter = begin(chains, walk_key(key, walk))


@compiled
def walk_in_pairs(
    chains: Chains,
    words: Words,
    outcomes: Indices,
    log2_size: int,
    stride: int,
    key: np.uint64,
    first_walk: int,
    ends: Indices,
) -> int:
    """Walk numbers ``first_walk`` and on, one for each place of ``ends``; returns how many steps were taken.

    The table of policy p starts at entry ``p * stride`` of ``words`` and ``outcomes``.
    """
    shift = np.uint64(log2_size)
    mask = (ONE << shift) - ONE
    following = int64(first_walk)
    walk_a, state_a, policy_a, stop_a, counter_a, left_a = NO_LANE
    walk_b, state_b, policy_b, stop_b, counter_b, left_b = NO_LANE
    table_a = table_b = np.uint64(0)
    steps = int64(0)
    while True:
        if (left_a == 0) | (state_a < 0):
            if walk_a >= 0:
                steps -= left_a
            following, walk_a, state_a, policy_a, stop_a, counter_a, left_a = go_on(
                chains, key, ends, first_walk, following, walk_a, state_a, policy_a, stop_a, counter_a
            )
            if walk_a >= 0:
                steps += left_a
            elif walk_b < 0:
                return steps
            table_a = np.uint64(policy_a) * np.uint64(stride)
        if (left_b == 0) | (state_b < 0):
            if walk_b >= 0:
                steps -= left_b
            following, walk_b, state_b, policy_b, stop_b, counter_b, left_b = go_on(
                chains, key, ends, first_walk, following, walk_b, state_b, policy_b, stop_b, counter_b
            )
            if walk_b >= 0:
                steps += left_b
            elif walk_a < 0:
                return steps
            table_b = np.uint64(policy_b) * np.uint64(stride)
        next_a, counter_a = draw(words, outcomes, mask, table_a + (np.uint64(state_a) << shift), counter_a)
        next_b, counter_b = draw(words, outcomes, mask, table_b + (np.uint64(state_b) << shift), counter_b)
        state_a, state_b = int64(next_a), int64(next_b)
        left_a -= 1
        left_b -= 1


@compiled
def walk_in_lanes(
    chains: Chains,
    words: Words,
    outcomes: Indices,
    log2_size: int,
    stride: int,
    key: np.uint64,
    first_walk: int,
    ends: Indices,
) -> int:
    """The same as `walk_in_pairs`, with many walks in flight and the next look-up of each prefetched."""
    shift = np.uint64(log2_size)
    mask = (ONE << shift) - ONE
    walk, state = np.full(LANES, -1, dtype=np.int64), np.full(LANES, -1, dtype=np.int64)
    policy, stop = np.empty(LANES, dtype=np.int64), np.empty(LANES, dtype=np.int64)
    left, counter = np.zeros(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.uint64)
    drawn, entry = np.zeros(LANES, dtype=np.uint64), np.zeros(LANES, dtype=np.uint64)
    following = int64(first_walk)
    steps = int64(0)
    waiting = True  # the first turn only begins the walks
    walking = LANES
    while walking > 0:
        for lane in range(LANES):
            at = np.uint64(lane)
            here, count = state[at], counter[at]
            if not waiting:
                place = entry[at]
                chosen, other = outcomes[FOUR * place + TWO], outcomes[FOUR * place + THREE]
                here = int64(chosen if (drawn[at] >> ONE) < words[TWO * place] else other)
                left[at] -= 1
            if (left[at] == 0) | (here < 0):
                if walk[at] >= 0:
                    steps -= left[at]
                was_walking = waiting or walk[at] >= 0
                following, walk[at], here, policy[at], stop[at], count, left[at] = go_on(
                    chains, key, ends, first_walk, following, walk[at], here, policy[at], stop[at], count
                )
                if walk[at] >= 0:
                    steps += left[at]
                elif was_walking:
                    walking -= 1
            count += GOLDEN
            u = mix64(count)
            place = np.uint64(policy[at]) * np.uint64(stride) + (np.uint64(here) << shift) + (u & mask)
            prefetch(words, TWO * place)
            counter[at], drawn[at], entry[at] = count, u, place
        waiting = False
    return steps
