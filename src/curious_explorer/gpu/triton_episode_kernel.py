# mypy: ignore-errors
# Triton's language has no types that a checker of Python would know.
"""Policy-gradient statistics of many runs at once, on the GPU; see `stepping.episode_statistics` for what they are.

One lane runs one episode: it rolls in, then steps forward and notes its path, then goes back over the path and adds up
advantages. A program takes one group of lanes after the other and writes all their paths to the same scratch memory,
which therefore stays in the cache. Sums are atomic additions to several copies of the tables: copies of one entry
stand side by side, so lanes that are in one state at one time write one stretch of memory.

Of the four tables only two are added up step by step: the sum of targets follows from them, because a target is an
advantage plus the critic's value of the state.
"""

from __future__ import annotations

import triton
import triton.language as tl

from curious_explorer.gpu.draws import begin, next_policy, sole_beginning, stopping_time, take_step, walk_key

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
    OCCUPANCY: tl.constexpr,
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
            if OCCUPANCY:
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
        if OCCUPANCY:
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
