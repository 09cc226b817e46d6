"""Slow, obvious versions of every sampling kernel, in plain Python integers.

Each class of draws is written down once more from its definition, so that on the same random numbers a kernel and its
oracle must agree exactly: states and counts bit by bit, sums of floats to rounding.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

import numpy as np

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream_key(seed, stream):
    return mix64((mix64(seed) + stream * GOLDEN) & MASK)


class RandomStream:
    """The draws of one walk, read in order."""

    def __init__(self, key, walk):
        self.counter = mix64((key + walk * GOLDEN) & MASK)

    def __call__(self):
        self.counter = (self.counter + GOLDEN) & MASK
        return mix64(self.counter)


def read_alias(table, row, u):
    """The outcome that draw ``u`` picks from a row of an alias table."""
    size = 1 << table.log2_size
    entry = row * size + u % size
    chosen, other = int(table.outcomes[4 * entry + 2]), int(table.outcomes[4 * entry + 3])
    return chosen if (u >> 1) < int(table.words[2 * entry]) else other


def choose(table, draws):
    """An outcome of a table with one row; no draw where there is no choice."""
    return int(table.outcomes[2]) if table.log2_size == 0 else read_alias(table, 0, draws())


def alias_distribution(table, row=0):
    """What a row of an alias table really draws: probability by outcome, in exact integer arithmetic."""
    size = 1 << table.log2_size
    total = {}
    for entry in range(row * size, (row + 1) * size):
        share = int(table.words[2 * entry])
        for outcome, weight in ((table.outcomes[4 * entry + 2], share), (table.outcomes[4 * entry + 3], 2**63 - share)):
            total[int(outcome)] = total.get(int(outcome), 0) + weight
    return {outcome: weight / (size * 2**63) for outcome, weight in total.items() if weight}


def stopping_time(table, draws):
    last = (1 << table.log2_size) - 1
    total = 0
    while (drawn := read_alias(table, 0, draws())) == last:
        total += drawn
    return total + drawn


def chain_policies(roll_in, chain):
    """The policies that a chain walks, by index."""
    first, stop = roll_in.chains[chain]
    count = len(roll_in.policies)
    return [*range(first, stop), *range(count - roll_in.tail, count)]


def cumulative_pick(probabilities, draw):
    """The first outcome whose cumulative probability is above the draw; never an impossible one."""
    possible = [index for index, p in enumerate(probabilities) if p > 0]
    for index, total in enumerate(accumulate(probabilities)):
        if index == possible[-1] or (draw >> 1) < int(min(total, 1.0) * 2.0**63):
            return index
    raise AssertionError


def step(mdp, policy, state, draws):
    """Action, next state and reward, by cumulative probabilities."""
    action = cumulative_pick(policy[state], draws())
    successors, probabilities = mdp.successors(state, action)
    place = cumulative_pick(probabilities, draws())
    next_state = int(successors[place])
    if mdp.transition_rewards is None:
        return action, next_state, mdp.rewards[state, action]
    entry = mdp.transitions.indptr[state * mdp.num_actions + action] + place
    return action, next_state, mdp.transition_rewards[entry]


def walk_composed(tables, mdp, roll_in, key, walk):
    """One walk through composed alias tables: (end, steps). ``tables`` as built by the library, read by hand."""
    draws = RandomStream(key, walk)
    chain = choose(tables["chains"], draws)
    state = choose(tables["start"], draws)
    steps = 0
    for index in chain_policies(roll_in, chain):
        if state < 0:
            break
        for _ in range(stopping_time(tables["stops"][index], draws)):
            state = read_alias(tables["policies"][index], state, draws())
            steps += 1
            if state < 0:
                break
    return (state if state >= 0 else ~state), steps


def roll_in_by_steps(tables, mdp, roll_in, draws):
    """One roll-in that draws actions and next states: (state, steps)."""
    chain = choose(tables["chains"], draws)
    state = choose(tables["start"], draws)
    state = state if state >= 0 else ~state
    steps = 0
    for index in chain_policies(roll_in, chain):
        if mdp.terminal[state]:
            break
        for _ in range(stopping_time(tables["stops"][index], draws)):
            _, state, _ = step(mdp, roll_in.policies[index], state, draws)
            steps += 1
            if mdp.terminal[state]:
                break
    return state, steps


def episode_statistics(
    tables,
    mdp,
    roll_in,
    policy,
    key,
    *,
    episodes,
    horizon,
    gamma,
    reward,
    critic,
    trace,
    weight_decay,
    credited,
):
    """Advantages by their definition: a sum over the rest of the episode for every step."""
    rewards, combine = (None, "replace") if reward is None else (reward.table, reward.combine)
    shape = (mdp.num_states, mdp.num_actions)
    advantage_sum, weight, target_sum, occupancy = (
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape[0]),
        np.zeros(shape[0]),
    )
    seen = Counter()
    returns, lengths, samples = [], [], 0
    for episode in range(episodes):
        draws = RandomStream(key, episode)
        while True:
            state, steps = roll_in_by_steps(tables, mdp, roll_in, draws)
            samples += steps
            if not mdp.terminal[state]:
                break
        path = []
        while not mdp.terminal[state] and len(path) < horizon:
            action, next_state, own = step(mdp, policy, state, draws)
            earned = own if rewards is None else rewards[state, action]
            path.append((state, action, max(earned, own) if combine == "max" else earned))
            seen[state, action, next_state] += 1
            state = next_state
        samples += len(path)
        paid = mdp.rewards if rewards is None else rewards
        paid = np.maximum(paid, mdp.rewards) if combine == "max" else paid
        for t, (s, _, _) in enumerate(path):
            occupancy[s] += (1 - gamma) * gamma**t
        occupancy[state] += gamma ** len(path)
        for_ever = policy[state] @ paid[state] / (1.0 - gamma)
        values = [critic[s] for s, _, _ in path] + [for_ever if mdp.terminal[state] else critic[state]]
        deltas = [r + gamma * values[t + 1] - values[t] for t, (_, _, r) in enumerate(path)]
        for t, (s, a, _) in enumerate(path[:credited]):
            advantage = sum((gamma * trace) ** (k - t) * deltas[k] for k in range(t, len(path)))
            advantage_sum[s, a] += weight_decay**t * advantage
            weight[s, a] += weight_decay**t
            target_sum[s] += weight_decay**t * (advantage + critic[s])
        earned = sum(gamma**t * r for t, (_, _, r) in enumerate(path))
        returns.append(earned + (gamma ** len(path) * for_ever if mdp.terminal[state] else 0.0))
        lengths.append(len(path))
    return advantage_sum, weight, target_sum, occupancy, np.array(returns), np.array(lengths), samples, seen
