"""Compiled walks that choose an action and then a next state: two draws a step, nothing to rebuild but the policy.

`walk_kernels` merges policy and transitions into one table, which pays off over millions of steps. Here the policy is
a table of cumulative thresholds (rebuilt in about a microsecond for 64 states) and the transitions are the MDP's own,
so this is the way when the policy changes often, when tables for every policy would not fit the memory, and when
actions matter.

`episode_statistics` gathers what a tabular policy-gradient step needs and nothing more: for each state and action the
sum of advantages and how often it was tried, and for each state the sum of value targets. Advantages are generalised
ones (Schulman et al. 2016): with critic v and delta_t = r_t + gamma v(s_{t+1}) - v(s_t),

    A_t = sum_k (gamma lambda)**k delta_{t+k},      target_t = A_t + v(s_t).

An episode that enters a terminal state earns that state's own reward for ever after; one that is cut off is worth what
the critic says of the state it was cut off in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Words
from curious_explorer.compile import compiled, inlined, int64
from curious_explorer.worlds.alias_tables import Dynamics
from curious_explorer.worlds.random_streams import GOLDEN, ONE, mix64, walk_key
from curious_explorer.worlds.walk_kernels import Chains, choose, next_policy, stopping_time

LONG_ROW = 16
"""Rows longer than this are searched by bisection."""
TERMINAL_STARTS_IN_A_ROW = 100_000
"""After so many starts in terminal states we say that there is nowhere to start, instead of drawing for ever."""
GAVE_UP = -(1 << 40)
"""What `roll_in` returns in place of a state."""
FINISHED, BUDGET_SPENT, NOWHERE_TO_START = 0, 1, 2
OWN_REWARDS, GIVEN_REWARDS, LARGER_REWARDS = 0, 1, 2
"""Which reward a step earns: the world's own, the table's, or the larger of the two."""


@inlined
def pick(thresholds: Words, first: int, last: int, u: np.uint64) -> int:
    """The first place from ``first`` to ``last`` whose cumulative threshold is above the draw.

    Short rows are counted through without branches, because a branch on a random number is mispredicted half the time.
    """
    if last - first > LONG_ROW:
        while first < last:
            middle = (first + last) >> 1
            if u >= thresholds[middle]:
                first = middle + 1
            else:
                last = middle
        return first
    place = first
    for index in range(first, last):
        place += int64(u >= thresholds[index])
    return place


@inlined
def take_step(dynamics: Dynamics, thresholds: Words, state: int, counter: np.uint64) -> tuple[int, int, np.uint64]:
    """Draw an action by the flat (S, A) table of thresholds, then a transition; returns action, entry and counter."""
    counter += GOLDEN
    first = state * dynamics.num_actions
    row = pick(thresholds, first, first + dynamics.num_actions - 1, mix64(counter) >> ONE)
    counter += GOLDEN
    entry = pick(dynamics.thresholds, dynamics.row_start[row], dynamics.row_start[row + 1] - 1, mix64(counter) >> ONE)
    return row - first, entry, counter


@compiled
def go_to(
    dynamics: Dynamics, chains: Chains, goal: int, state: int, counter: np.uint64, most_steps: int
) -> tuple[int, int, bool, np.uint64]:
    """Go to a target from a state (negative if terminal): the state, the steps taken, whether it arrived, the counter.

    Arrives in the target whether that is terminal or not. A try that is cut off by ``most_steps`` is not counted.
    """
    target, limit = chains.targets[goal, 0], chains.targets[goal, 1]
    steps = int64(0)
    while state >= 0 and state != target and steps < limit and steps < most_steps:
        action = int64(chains.actions[goal, state])
        if action < 0:
            break
        row = state * dynamics.num_actions + action
        counter += GOLDEN
        entry = pick(
            dynamics.thresholds, dynamics.row_start[row], dynamics.row_start[row + 1] - 1, mix64(counter) >> ONE
        )
        state = int64(dynamics.next_state[entry])
        steps += 1
    arrived = state == target or ~state == target
    if arrived or steps < most_steps:
        chains.tally[goal, 0] += 1
    if arrived:
        chains.tally[goal, 1] += 1
        chains.tally[goal, 2] += steps
    return state, steps, arrived, counter


@inlined
def roll_in(
    dynamics: Dynamics, chains: Chains, policies: Words, counter: np.uint64, most_steps: int
) -> tuple[int, int, np.uint64]:
    """Walk one chain from its start; returns the state (negative if terminal), the steps taken and the counter.

    ``policies`` holds the thresholds of every policy, shape (N, S * A). Stops when ``most_steps`` steps are taken. The
    state is `GAVE_UP` if as many tries as are allowed in a row did not arrive where they were to go.
    """
    taken = int64(0)
    failed = int64(0)
    while True:
        chain, counter = choose(chains.chain_words, chains.chain_outcomes, counter)
        first, counter = choose(chains.start_words, chains.start_outcomes, counter)
        state = int64(first)
        goal = chains.ranges[chain, 2]
        if goal < 0:
            break
        state, steps, arrived, counter = go_to(dynamics, chains, goal, state, counter, most_steps - taken)
        taken += steps
        if arrived or taken >= most_steps:
            break
        failed += 1
        if failed >= chains.targets[goal, 2]:
            chains.tally[-1, 0] += 1
            state = int64(GAVE_UP)
            break
    policy, stop = chains.ranges[chain, 0] - 1, chains.ranges[chain, 1]
    while state >= 0 and taken < most_steps:
        policy = next_policy(chains, policy, stop)
        if policy < 0:
            break
        steps, counter = stopping_time(chains, policy, counter)
        while steps > 0 and state >= 0 and taken < most_steps:
            _, entry, counter = take_step(dynamics, policies[policy], state, counter)
            state = int64(dynamics.next_state[entry])
            steps -= 1
            taken += 1
    return state, taken, counter


@compiled
def step_once(dynamics: Dynamics, row: int, counter: np.uint64) -> int:
    """The transition (its entry) that one draw picks from row ``state * A + action``."""
    return pick(dynamics.thresholds, dynamics.row_start[row], dynamics.row_start[row + 1] - 1, mix64(counter) >> ONE)


@compiled
def walk_by_steps(
    dynamics: Dynamics, chains: Chains, policies: Words, key: np.uint64, first_walk: int, ends: Indices
) -> int:
    """Walk numbers ``first_walk`` and on, one for each place of ``ends``; returns how many steps were taken."""
    taken = int64(0)
    for place in range(len(ends)):
        counter = walk_key(key, first_walk + place)
        state, steps, counter = roll_in(dynamics, chains, policies, counter, int64(1 << 62))
        taken += steps
        if state == GAVE_UP:
            ends[place:] = -1
            break
        ends[place] = state if state >= 0 else ~state
    return taken


class CreditTables(NamedTuple):
    """How the steps of episodes are credited (see the top of this module), and the sums that they are added to."""

    policy: Floats  # (S, A)
    rewards: Floats  # (S, A): what a terminal state goes on paying
    critic: Floats  # (S,)
    gamma: float
    trace: float  # lambda
    weight_decay: float  # step t enters the sums with this to the power t
    credited: int  # how many steps of an episode enter the sums
    advantage_sum: Floats  # (S, A)
    weight: Floats  # (S, A)
    target_sum: Floats  # (S,)
    occupancy: Floats  # (S,)


@inlined
def credit(states: Integers, actions: Integers, earned: Floats, end: int, terminated: bool, to: CreditTables) -> float:
    """Add one episode, which led to ``end``, to the sums of advantages and targets; returns its discounted return."""
    policy, rewards, critic, gamma, trace, weight_decay, credited, advantage_sum, weight, target_sum, _ = to
    if terminated:
        ahead = 0.0
        for action in range(policy.shape[1]):
            ahead += policy[end, action] * rewards[end, action]
        ahead /= 1.0 - gamma
        returned = ahead
    else:
        ahead = critic[end]
        returned = 0.0
    advantage = 0.0
    for step in range(len(states) - 1, -1, -1):
        here = critic[states[step]]
        advantage = earned[step] + gamma * ahead - here + gamma * trace * advantage
        returned = earned[step] + gamma * returned
        ahead = here
        if step < credited:
            scale = 1.0 if weight_decay == 1.0 else weight_decay**step
            advantage_sum[states[step], actions[step]] += scale * advantage
            weight[states[step], actions[step]] += scale
            target_sum[states[step]] += scale * (advantage + here)
    return returned


@compiled
def episode_statistics(
    dynamics: Dynamics,
    chains: Chains,
    chain_policies: Words,
    thresholds: Words,
    reward_mode: int,
    horizon: int,
    most_steps: int,
    key: np.uint64,
    first: int,
    policy: Floats,
    rewards: Floats,
    critic: Floats,
    gamma: float,
    trace: float,
    weight_decay: float,
    credited: int,
    advantage_sum: Floats,
    weight: Floats,
    target_sum: Floats,
    occupancy: Floats,
    returns: Floats,
    lengths: Integers,
    entry_counts: Integers,
) -> tuple[int, int, int]:
    """Run one episode for each place of ``returns`` and add up its statistics.

    The episodes are those from number ``first`` on, each with random numbers of its own. Each rolls in, again and again
    until it stands in a state that is not terminal, then follows the policy until a terminal state, ``horizon`` steps,
    or the end of the budget ``most_steps``, which counts every step of both.
    ``thresholds`` are the policy's. From ``policy`` to ``occupancy`` see `CreditTables` (one by one here: a tuple costs
    two microseconds a call). ``entry_counts`` counts transitions unless it is empty.

    Returns the steps taken, the episodes run (the last may be cut off by the budget) and how it ended.
    """
    sums = (advantage_sum, weight, target_sum, occupancy)
    to = CreditTables(policy, rewards, critic, gamma, trace, weight_decay, credited, *sums)
    states, actions = np.empty(horizon, dtype=np.int64), np.empty(horizon, dtype=np.int64)
    earned = np.empty(horizon)
    taken = int64(0)
    for episode in range(len(returns)):
        counter = walk_key(key, first + episode)
        state = int64(-1)
        attempts = 0
        while state < 0:
            if taken >= most_steps:
                return taken, episode, BUDGET_SPENT
            if attempts == TERMINAL_STARTS_IN_A_ROW or state == GAVE_UP:
                return taken, episode, NOWHERE_TO_START
            state, steps, counter = roll_in(dynamics, chains, chain_policies, counter, most_steps - taken)
            taken += steps
            attempts += 1
        if taken >= most_steps:  # spent on the way
            return taken, episode, BUDGET_SPENT
        length = 0
        discount = 1.0
        while state >= 0 and length < horizon and taken < most_steps:
            action, entry, counter = take_step(dynamics, thresholds, state, counter)
            states[length], actions[length] = state, action
            earned[length] = dynamics.rewards[entry] if reward_mode == OWN_REWARDS else rewards[state, action]
            if reward_mode == LARGER_REWARDS:
                earned[length] = max(earned[length], dynamics.rewards[entry])
            if len(entry_counts) > 0:
                entry_counts[entry] += 1
            occupancy[state] += (1.0 - gamma) * discount
            discount *= gamma
            state = int64(dynamics.next_state[entry])
            length += 1
            taken += 1
        end = state if state >= 0 else ~state
        occupancy[end] += discount  # it stays there, or we say so for want of knowing
        returns[episode] = credit(states[:length], actions[:length], earned[:length], end, state < 0, to)
        lengths[episode] = length
        if taken >= most_steps:
            return taken, episode + 1, BUDGET_SPENT
    return taken, len(returns), FINISHED
