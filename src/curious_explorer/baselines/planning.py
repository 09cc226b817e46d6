"""The one planning kernel: value iteration on a learned model, with bonuses and with the best model that counts allow.

For normalised values v, each sweep sets for every pair that is not settled already

    Q(s,a) = min(cap, (1 - gamma) r(s,a) + gamma ((1 - u(s,a)) max_p p v + u(s,a) mean(v))),      v(s) = max_a Q(s,a),

with the maximum over distributions p within ``radius(s,a)`` (L1) of the frequencies (Strehl and Littman 2008; Jaksch,
Ortner and Auer 2010): zero for the frequencies themselves. u is the share of a prior that knows nothing (BEB). Bonuses
are part of r. States are updated in place, from the values of the last plan: a contraction converges from anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.baselines.model import EmpiricalModel, Integers
from curious_explorer.compile import compiled
from curious_explorer.optimizers.protocol import Floats, Reward
from curious_explorer.theory.counts_kernels import best_in_ball

TOLERANCE = 1e-7
"""How exact values are, normalised; actions closer than twice this count as equally good."""
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


class Plan(NamedTuple):
    """What is best to do, and what it is thought to be worth."""

    policy: Floats  # (S, A), ties split evenly
    q: Floats  # (S, A), normalised


def problem(
    model: EmpiricalModel,
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
        model.row_start,
        model.next_states,
        model.chances(),
        rewards,
        settled,
        nothing if radius is None else radius,
        nothing if prior is None else prior,
        np.ones(model.shape) if cap is None else cap,
    )


def plan(task: Problem, gamma: float, values: Floats) -> Plan:
    """The best policy; ``values`` (S,) are where to start from, and are changed to the values of the plan."""
    q = np.zeros(task.rewards.shape)
    iterate(task, gamma, TOLERANCE, values, q)
    return Plan(even_greedy(q, 2.0 * TOLERANCE), q)


def exploitation(model: EmpiricalModel, reward: Reward | None, gamma: float, values: Floats) -> Floats:
    """The policy to use now, if there is nothing more to learn: best for what was seen, the rest being worth nothing.

    This is what every model-based method here hands out, so that they differ in how they explore and nothing else.
    """
    settled = model.settled(reward, unknown=model.tries == 0)
    return plan(problem(model, model.rewards(reward), settled), gamma, values).policy


@compiled
def iterate(task: Problem, gamma: float, tolerance: float, values: Floats, q: Floats) -> int:
    """Sweep until the values are right to the tolerance; returns how many sweeps that took.

    Sweeps go backwards and forwards in turn: where states are numbered along the way, which is usual, values travel
    the whole way in one of the two.
    """
    num_states, num_actions = q.shape
    order = np.arange(len(task.next_states))
    for sweep in range(MOST_SWEEPS):
        best = int(np.argmax(values))
        mean = values.mean()
        change = 0.0
        for place in range(num_states):
            state = place if sweep % 2 else num_states - 1 - place
            most = -np.inf
            for action in range(num_actions):
                worth = task.settled[state, action]
                if np.isnan(worth):
                    row = state * num_actions + action
                    first, stop = task.row_start[row], task.row_start[row + 1]
                    ahead = 0.0
                    if task.radius[state, action] > 0.0:
                        ahead = values[best]  # a pair never tried may lead anywhere
                        if first < stop:
                            radius = task.radius[state, action]
                            ahead = best_in_ball(
                                order, task.next_states, task.chances, first, stop, radius, values, best
                            )
                    else:
                        for entry in range(first, stop):
                            ahead += task.chances[entry] * values[task.next_states[entry]]
                    share = task.prior[state, action]
                    ahead = (1.0 - share) * ahead + share * mean
                    worth = min(task.cap[state, action], (1.0 - gamma) * task.rewards[state, action] + gamma * ahead)
                q[state, action] = worth
                most = max(most, worth)
            change = max(change, abs(most - values[state]))
            values[state] = most
        if gamma * change <= tolerance * (1.0 - gamma):
            return sweep + 1
    return MOST_SWEEPS


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
