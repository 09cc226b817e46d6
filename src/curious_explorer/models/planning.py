"""Value iteration on counts: as they are, with bonuses, with the best model that counts allow, or with gaps.

For normalised values v, each sweep sets for every pair that is not settled already

    Q(s,a) = min(cap, (1 - gamma) r(s,a) + gamma ((1 - u(s,a)) max_p p v + u(s,a) mean(v))),      v(s) = max_a Q(s,a),

with the maximum over distributions p within ``radius(s,a)`` (L1) of the frequencies (Strehl and Littman 2008; Jaksch,
Ortner and Auer 2010): zero for the frequencies themselves. u is the share of a prior that knows nothing (BEB). Bonuses
are part of r. Where p adds up to less than one the episode ended now and then, which is worth nothing; a hopeful model
takes from there first. States are updated in place, from the values of the last plan: a contraction converges from
anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.compile import compiled
from curious_explorer.models.counted_model import MOST_REWARD, CountedModel
from curious_explorer.worlds.world import Reward

TOLERANCE = 1e-7
"""How exact values are, normalised; actions closer than twice this count as equally good."""
FINE_TOLERANCE = 1e-10
"""The same for plans with unknown pairs, which may be far away: at discount 0.9 what is 100 steps off is worth 3e-5."""
HOPEFUL_EDGE = 0.01
"""How much more than the most that can be earned an unknown pair is worth, so that it wins over the known that pays as
much: a curiosity reward pays the most in every poorly visited state, and a plan content with those never looks on."""
FIRST_SWEEPS, CYCLE = 4, 7
"""Sweeps look at all actions: the first of them, and then one in so many."""
MOST_SWEEPS = 100_000
"""Where the discount is so close to one that more would be needed, a plan is what these many sweeps give."""


class Problem(NamedTuple):
    """What to plan on; tables of shape (S, A) unless said otherwise."""

    row_start: Integers  # (S * A + 1,)
    next_states: Integers  # (E,)
    chances: Floats  # (E,)
    rewards: Floats
    settled: Floats  # values of pairs that need no planning; NaN for the others
    radius: Floats
    prior: Floats
    cap: Floats


class PlannedPolicy(NamedTuple):
    """What is best to do, and what it is thought to be worth."""

    policy: Floats  # (S, A), ties split evenly
    q: Floats  # (S, A), normalised


def problem(
    model: CountedModel,
    rewards: Floats,
    settled: Floats,
    *,
    radius: Floats | None = None,
    prior: Floats | None = None,
    cap: Floats | None = None,
) -> Problem:
    """A model as it was seen, with everything else where it is not given: no radius, no prior, values up to one."""
    nothing = np.zeros(model.shape)
    return Problem(
        model.rows.row_start,
        model.rows.next_states,
        model.chances(),
        rewards,
        settled,
        nothing if radius is None else radius,
        nothing if prior is None else prior,
        np.ones(model.shape) if cap is None else cap,
    )


def plan(task: Problem, gamma: float, values: Floats, tolerance: float = TOLERANCE) -> PlannedPolicy:
    """The best policy; ``values`` (S,) are where to start from, and are changed to the values of the plan."""
    q = np.zeros(task.rewards.shape)
    iterate(task, gamma, tolerance, values, q)
    return PlannedPolicy(even_greedy(q, 2.0 * tolerance), q)


def exploitation(model: CountedModel, reward: Reward | None, gamma: float, values: Floats) -> Floats:
    """The policy to use now, if there is nothing more to learn: best for what was seen, the rest being worth nothing.

    This is what every model-based explorer here hands out, so that they differ in how they explore and nothing else.
    """
    settled = model.settled(reward, unknown=~model.known(1))
    return plan(problem(model, model.rewards(reward), settled), gamma, values).policy


class PartialPlan(NamedTuple):
    """The best policy for a model of which only some pairs are known."""

    policy: Floats  # (S, A), ties split evenly; all actions alike in states that were never met
    leads_to_unknown: bool
    """Whether it would try an unknown pair in a state that was met; never where all pay the same and none is better."""


def plan_with_unknown(
    model: CountedModel,
    *,
    gamma: float,
    reward: Reward | None,
    known_after: int,
    hopeful: bool,
    values: Floats | None = None,
) -> PartialPlan:
    """The best policy for a reward, as far as the world is known.

    Only the states that were met are planned for. In any other all actions are alike, so that a world of a million
    states costs no more than the part of it that was seen.

    Args:
        model: what was seen.
        gamma: the discount.
        reward: what to plan for; the world's own rewards, as they were seen, if None.
        known_after: how many tries make a pair known.
        hopeful: whether unknown pairs are worth the most that can be earned, or the least.
        values: where to start from, shape (S,), such as those of the last plan; changed to the values of this one.
    """
    low, high = _range(reward)
    worth = high + HOPEFUL_EDGE * (high - low) if hopeful else low
    met = np.flatnonzero(model.met())
    part = model.within(met)
    known = part.known(known_after)
    of_met = None if reward is None else Reward(reward.table[met], reward.combine)
    task = problem(
        part,
        part.rewards(of_met),
        part.settled(of_met, ~known, worth),
        cap=np.full(part.shape, max(high, worth)),
    )
    started = np.full(len(met), worth) if values is None else values[met]
    policy = np.full(model.shape, 1.0 / model.num_actions)
    if len(met) == 0:
        return PartialPlan(policy, False)
    best = plan(task, gamma, started, FINE_TOLERANCE * max(high - low, 1.0)).policy
    if values is not None:
        values[met] = started
    policy[met] = best
    tried_unknown = (best > 0.0) & ~known
    return PartialPlan(policy, bool(high > low and tried_unknown.any()))


def _range(reward: Reward | None) -> tuple[float, float]:
    """The least and the most that a step can pay."""
    if reward is None:
        return 0.0, MOST_REWARD
    low, high = float(reward.table.min()), float(reward.table.max())
    return (low, high) if reward.combine == "replace" else (max(low, 0.0), max(high, MOST_REWARD))


@compiled
def iterate(task: Problem, gamma: float, tolerance: float, values: Floats, q: Floats) -> int:
    """Sweep until the values are right to the tolerance; returns how many sweeps that took.

    Sweeps go backwards and forwards in turn: where states are numbered along the way, which is usual, values travel
    the whole way in one of the two. After the first sweep a state is looked at again only when something it depends on
    has moved by more than ``least`` since it was last told, so that no Bellman residual is left above gamma * least.
    Where that takes many sweeps, most of them look only at the action that was best last time (modified policy
    iteration); a sweep that looks at all actions has the last word.
    """
    # Names of their own, because reaching into the tuple in the inner loop costs more than the arithmetic.
    row_start, next_states, chances, rewards, settled, radius, prior, cap = task
    num_states, num_actions = q.shape
    least = tolerance * (1.0 - gamma) / gamma if gamma > 0.0 else np.inf
    order = np.arange(len(next_states))
    before_start, before = predecessors(row_start, next_states, num_states)
    hopeful, bayesian = (radius > 0.0).any(), (prior > 0.0).any()
    waiting = np.ones(num_states, dtype=np.bool_)
    told = values.copy()
    choice = np.zeros(num_states, dtype=np.int64)
    moved = True
    best, mean = int(np.argmax(values)), values.mean()
    peak = values[best]
    for sweep in range(MOST_SWEEPS):
        thorough = sweep < FIRST_SWEEPS or sweep % CYCLE == 0 or not moved
        moved = False
        for place in range(num_states):
            state = place if sweep % 2 else num_states - 1 - place
            if waiting[state]:
                most = -np.inf
                first_action = 0 if thorough else choice[state]
                for action in range(first_action, num_actions if thorough else first_action + 1):
                    worth = settled[state, action]
                    if np.isnan(worth):
                        row = state * num_actions + action
                        first, stop = row_start[row], row_start[row + 1]
                        ahead = 0.0
                        if radius[state, action] <= 0.0:
                            for entry in range(first, stop):
                                ahead += chances[entry] * values[next_states[entry]]
                        elif first < stop:
                            ahead = best_in_ball(
                                order, next_states, chances, first, stop, radius[state, action], values, best
                            )
                        else:
                            ahead = values[best]  # a pair never tried may lead anywhere
                        share = prior[state, action]
                        ahead = (1.0 - share) * ahead + share * mean
                        worth = min(cap[state, action], (1.0 - gamma) * rewards[state, action] + gamma * ahead)
                    q[state, action] = worth
                    if worth > most:
                        most = worth
                        choice[state] = action
                values[state] = most
                if thorough:
                    waiting[state] = False
                if abs(most - told[state]) > least:
                    told[state] = most
                    moved = True
                    for entry in range(before_start[state], before_start[state + 1]):
                        waiting[before[entry]] = True
        # What every state depends on: the largest value, where rows may lead to it, and the mean.
        best = int(np.argmax(values))
        if hopeful and abs(values[best] - peak) > least:
            peak = values[best]
            waiting[:] = moved = True
        if bayesian and abs(values.mean() - mean) > least:
            mean = values.mean()
            waiting[:] = moved = True
        if thorough and not waiting.any():
            return sweep + 1
    return MOST_SWEEPS


@compiled
def sort_row(order: Integers, indices: Integers, first: int, stop: int, values: Floats) -> None:
    """Put the entries of a row in order of increasing value, in place; ``order`` holds their places."""
    for place in range(first + 1, stop):
        entry = order[place]
        value = values[indices[entry]]
        slot = place
        while slot > first and values[indices[order[slot - 1]]] > value:
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = entry


@compiled
def best_in_ball(
    order: Integers, indices: Integers, data: Floats, first: int, stop: int, radius: float, values: Floats, best: int
) -> float:
    """The largest p v over distributions p within the radius (L1) of a row that is not empty."""
    sort_row(order, indices, first, stop, values)
    at_best, expected, total = 0.0, 0.0, 0.0
    for entry in range(first, stop):
        expected += data[entry] * values[indices[entry]]
        total += data[entry]
        if indices[entry] == best:
            at_best = data[entry]
    moved = min(0.5 * radius, 1.0 - at_best)
    left = max(moved - max(1.0 - total, 0.0), 0.0)
    for place in range(first, stop):
        if left <= 0.0:
            break
        entry = order[place]
        if indices[entry] != best:
            taken = min(left, data[entry])
            expected -= taken * values[indices[entry]]
            left -= taken
    return float(expected + (moved - max(left, 0.0)) * values[best])


@compiled
def predecessors(row_start: Integers, next_states: Integers, num_states: int) -> tuple[Integers, Integers]:
    """For each state, the states with a row that leads there, as in compressed columns; some stand there repeatedly."""
    num_actions = (len(row_start) - 1) // num_states
    start = np.zeros(num_states + 1, dtype=np.int64)
    for target in next_states:
        start[target + 1] += 1
    for state in range(num_states):
        start[state + 1] += start[state]
    free = start[:-1].copy()
    before = np.empty(len(next_states), dtype=np.int64)
    for state in range(num_states):
        for entry in range(row_start[state * num_actions], row_start[(state + 1) * num_actions]):
            target = next_states[entry]
            before[free[target]] = state
            free[target] += 1
    return start, before


@compiled
def even_greedy(q: Floats, margin: float) -> Floats:
    """The greedy policy; actions within ``margin`` of the best share evenly."""
    policy = np.zeros(q.shape)
    for state in range(q.shape[0]):
        least = q[state].max() - margin
        ties = 0
        for action in range(q.shape[1]):
            ties += q[state, action] >= least
        for action in range(q.shape[1]):
            if q[state, action] >= least:
                policy[state, action] = 1.0 / ties
    return policy
