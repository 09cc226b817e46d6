"""Compiled walks of an agent that lives in its world: one life, episode after episode, in which it keeps learning.

`follow` acts by one policy until it is worth thinking again: when some pair has been tried as often as its quota says.
`learn_q` carries the agent's own table of values along and changes it at every step (Q-learning). Both begin in the
state where the agent stands, begin a new episode (a roll-in, which is counted) whenever one ends or has lasted
``horizon`` steps, and never take more than ``most_steps`` steps. All draws of a call come from one walk's key,
in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Words
from curious_explorer.compile import compiled, inlined, int64
from curious_explorer.worlds.alias_tables import Dynamics
from curious_explorer.worlds.episode_kernels import (
    BUDGET_SPENT,
    FINISHED,
    LARGER_REWARDS,
    NOWHERE_TO_START,
    OWN_REWARDS,
    TERMINAL_STARTS_IN_A_ROW,
    pick,
    roll_in,
    take_step,
)
from curious_explorer.worlds.random_streams import GOLDEN, ONE, mix64, threshold, walk_key
from curious_explorer.worlds.walk_kernels import Chains

QUOTA_MET = 3
"""Why `follow` came back, beside those that `stepping` names."""
ELEVEN = np.uint64(11)
UNIT = 2.0**-53


@inlined
def any_of(count: int, u: np.uint64) -> int:
    """One of 0..count-1, all alike, by one draw."""
    return int64((u >> ELEVEN) * UNIT * count)


@inlined
def begin_episode(
    dynamics: Dynamics, chains: Chains, policies: Words, counter: np.uint64, most_steps: int
) -> tuple[int, int, np.uint64]:
    """Roll in until a state that is not terminal: that state, the steps taken, and the counter.

    The state is -1 where the steps ran out first, and -2 where all starts are terminal.
    """
    taken = int64(0)
    state = int64(-1)
    for _ in range(TERMINAL_STARTS_IN_A_ROW):
        state, steps, counter = roll_in(dynamics, chains, policies, counter, most_steps - taken)
        taken += steps
        if state >= 0 or taken >= most_steps:
            break
    if taken >= most_steps:
        state = int64(-1)
    elif state < 0:
        state = int64(-2)
    return state, taken, counter


@inlined
def earned_by(dynamics: Dynamics, rewards: Floats, mode: int, state: int, action: int, entry: int) -> float:
    """What a step earns: the world's own reward, the table's, or the larger of the two."""
    if mode == OWN_REWARDS:
        return float(dynamics.rewards[entry])
    given = float(rewards[state, action])
    return max(float(dynamics.rewards[entry]), given) if mode == LARGER_REWARDS else given


@compiled
def follow(
    dynamics: Dynamics,
    chains: Chains,
    chain_policies: Words,
    thresholds: Words,
    rewards: Floats,
    reward_mode: int,
    end_rewards: Floats,
    gamma: float,
    state: int,
    age: int,
    horizon: int,
    left: NDArray[np.int64],
    most_steps: int,
    most_episodes: int,
    key: np.uint64,
    entry_counts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[int, int, int, int, float, int]:
    """Act by a policy from ``state`` (negative: none), ``age`` steps into its episode, until a quota is met.

    ``left`` (S * A) counts down the tries of each pair; the walk stops with the first that gets to zero, or when
    ``most_episodes`` episodes have ended. Transitions are counted in ``entry_counts``, ends in terminal states in
    ``ends``. Returns the steps taken, the state (negative: none) and its age, the number and the summed discounted
    return of the episodes that began and ended here, and why it stopped.
    """
    counter = walk_key(key, 0)
    taken, whole, ended = int64(0), int64(0), int64(0)
    returned, earned, discount = 0.0, 0.0, 1.0
    begun_here = False
    while taken < most_steps:
        if state < 0:
            if ended >= most_episodes:
                return taken, int64(-1), int64(0), whole, returned, FINISHED
            state, steps, counter = begin_episode(dynamics, chains, chain_policies, counter, most_steps - taken)
            taken += steps
            if state < 0:
                reason = BUDGET_SPENT if state == -1 else NOWHERE_TO_START
                return taken, int64(-1), int64(0), whole, returned, reason
            age, earned, discount, begun_here = int64(0), 0.0, 1.0, True
        action, entry, counter = take_step(dynamics, thresholds, state, counter)
        taken += 1
        age += 1
        entry_counts[entry] += 1
        pair = state * dynamics.num_actions + action
        earned += discount * earned_by(dynamics, rewards, reward_mode, state, action, entry)
        discount *= gamma
        state = int64(dynamics.next_state[entry])
        if state < 0:
            ends[~state] += 1
            earned += discount * end_rewards[~state] / (1.0 - gamma)
        if state < 0 or age >= horizon:
            state = int64(-1)
            ended += 1
            if begun_here:
                whole += 1
                returned += earned
        left[pair] -= 1
        if left[pair] <= 0:
            return taken, state, age, whole, returned, QUOTA_MET
    return taken, state, age, whole, returned, BUDGET_SPENT


@inlined
def greedy(values: Floats, state: int, counter: np.uint64) -> tuple[int, np.uint64]:
    """An action of largest value, ties broken by a draw, which is taken only where there is a tie."""
    best, ties = values[state, 0], 1
    for action in range(1, values.shape[1]):
        if values[state, action] > best:
            best, ties = values[state, action], 1
        elif values[state, action] == best:
            ties += 1
    place = 0
    if ties > 1:
        counter += GOLDEN
        place = any_of(ties, mix64(counter))
    for action in range(values.shape[1]):
        if values[state, action] == best:
            if place == 0:
                return action, counter
            place -= 1
    return 0, counter


@compiled
def update_q(
    state: int,
    action: int,
    pay: float,
    ahead: float,
    gamma: float,
    rate_horizon: float,
    least_rate: float,
    bonus: float,
    log_term: float,
    falling: bool,
    values: Floats,
    bounds: Floats,
    tries: NDArray[np.int64],
) -> None:
    """One try of a pair that paid ``pay`` and led to where ``ahead`` is hoped for; `QRule` has the formula."""
    tries[state, action] += 1
    tried = tries[state, action]
    rate = max(least_rate, (rate_horizon + 1.0) / (rate_horizon + tried))
    hope = bonus * np.sqrt((log_term + np.log((tried + 1.0) * (tried + 2.0))) / tried) if bonus > 0.0 else 0.0
    target = (1.0 - gamma) * pay + gamma * ahead + hope
    values[state, action] += rate * (target - values[state, action])
    if falling:
        bounds[state, action] = min(bounds[state, action], values[state, action])
    else:
        bounds[state, action] = values[state, action]


@compiled
def learn_q(
    dynamics: Dynamics,
    chains: Chains,
    chain_policies: Words,
    rewards: Floats,
    reward_mode: int,
    end_rewards: Floats,
    gamma: float,
    state: int,
    age: int,
    horizon: int,
    most_steps: int,
    key: np.uint64,
    epsilon: float,
    rate_horizon: float,
    least_rate: float,
    bonus: float,
    log_term: float,
    falling: bool,
    values: Floats,
    bounds: Floats,
    tries: NDArray[np.int64],
) -> tuple[int, int, int, int, float, int]:
    """Q-learning for ``most_steps`` steps: act by ``bounds``, update ``values``, ``bounds`` and ``tries`` (S, A).

    See `QRule` for the update. Returns as `follow` does.
    """
    counter = walk_key(key, 0)
    explore = threshold(epsilon)
    num_actions = dynamics.num_actions
    taken, whole = int64(0), int64(0)
    returned, earned, discount = 0.0, 0.0, 1.0
    begun_here = False
    while taken < most_steps:
        if state < 0:
            state, steps, counter = begin_episode(dynamics, chains, chain_policies, counter, most_steps - taken)
            taken += steps
            if state < 0:
                reason = BUDGET_SPENT if state == -1 else NOWHERE_TO_START
                return taken, int64(-1), int64(0), whole, returned, reason
            age, earned, discount, begun_here = int64(0), 0.0, 1.0, True
        at_random = False
        if epsilon > 0.0:
            counter += GOLDEN
            at_random = bool((mix64(counter) >> ONE) < explore)
        if at_random:
            counter += GOLDEN
            action = any_of(num_actions, mix64(counter))
        else:
            action, counter = greedy(bounds, state, counter)
        row = state * num_actions + action
        counter += GOLDEN
        entry = pick(
            dynamics.thresholds, dynamics.row_start[row], dynamics.row_start[row + 1] - 1, mix64(counter) >> ONE
        )
        pay = earned_by(dynamics, rewards, reward_mode, state, action, entry)
        following = int64(dynamics.next_state[entry])
        ahead = end_rewards[~following] if following < 0 else bounds[following].max()
        update_q(
            state, action, pay, ahead, gamma, rate_horizon, least_rate, bonus, log_term, falling, values, bounds, tries
        )
        earned += discount * pay
        discount *= gamma
        taken += 1
        age += 1
        state = following
        if state < 0:
            earned += discount * ahead / (1.0 - gamma)
        if state < 0 or age >= horizon:
            state = int64(-1)
            if begun_here:
                whole += 1
                returned += earned
    return taken, state, age, whole, returned, BUDGET_SPENT
