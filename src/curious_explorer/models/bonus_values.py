"""Values of a counted model, kept up to date by sweeps where something changed.

For worlds in which the same pair leads now here, now there. With n tries of a pair, r what it paid on average, and all
values normalised, three kinds of values are kept, each in a table of its own:

    novelty   Q(s,a) = (1 - gamma) / sqrt(n(s,a))  + gamma E V(s')
    plan      Q(s,a) = (1 - gamma) r(s,a)          + gamma E V(s')
    hopes     the plan's, and  c (sqrt(Var X / n(s,a)) + (highest - lowest) / n(s,a))

with the mean E and the variance Var over what was seen, X = (1 - gamma) r + gamma V(s') of one try, and
V(s) = max_a Q(s,a).

*Novelty* is the bonus of MBIE-EB (Strehl and Littman 2008) and no reward; a pair that was never tried is worth 1. *The
plan* is what is known to be earned; what was never tried is worth its lowest value. *Hopes* are what may be earned: the
plan's with a bonus of Bernstein's form (Azar, Osband and Munos 2017, without the logarithms), in units of the plan's
own values, so that they mean the same for any reward. A pair that was never tried may be worth the highest value of the
plan, and no state more than as far above it as that is above the lowest. Who follows hopes looks again at what matters
for the plan.

After every step the state that was left is put into each table's queue. Every so many steps, each state in it is backed
up, and where its value has moved those that lead to it follow; then, because hopes depend on the plan's range, all
others in turn. Only so many are backed up at a time, so that a step costs the same however many states there are.
Actions are chosen by the values of the last time and by the counts of now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Mask
from curious_explorer.compile import compiled, int64
from curious_explorer.models.growing_model import NONE, STATES, Graph, GrowingModel

FIRST_BACKUPS = 10_000_000
HOPE = 0.3
"""How much doubt counts, c above. Chosen on FrozenLake of 4 x 4 and 8 x 8, where 1 takes twice as many samples to a
good plan, and 0.15 stays with worse ones."""
LEAST_PART = 1e-4
"""Values of the plan must move by this part of their range before those that lead there follow."""
PAYS, NOVELTY, DOUBT, NEW, CAP, LOWEST, HIGHEST, LEAST = range(8)
"""Places in `Sweeps.terms`: how much rewards, novelty and doubt count; what a pair that was never tried is worth, the
most that a state may be; the lowest and the highest value; how far a value must move before those that lead there
follow."""


class Sweeps(NamedTuple):
    """A table of values, and the states that wait for a backup."""

    values: Floats  # (S,)
    told: Floats  # (S,): the values of which the states before them know
    waiting: Mask  # (S,)
    queue: Indices  # (S,): a ring
    ends: Integers  # (3,): where the queue begins, its length, and whose turn it is when it is empty
    terms: Floats  # (8,)


def sweeps_for(states: int, terms: Floats | None = None) -> Sweeps:
    """Room for so many states, none of which was ever left."""
    terms = novelty_terms(0.0) if terms is None else terms
    waiting, queue = np.zeros(states, dtype=np.bool_), np.zeros(states, dtype=np.int32)
    new = float(terms[NEW])
    return Sweeps(np.full(states, new), np.full(states, new), waiting, queue, np.zeros(3, dtype=np.int64), terms)


def novelty_terms(least: float) -> Floats:
    """Of values of what is new."""
    return np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, least])


def plan_terms() -> Floats:
    """Of values of the plan."""
    return np.array([1.0, 0.0, 0.0, 0.0, np.inf, 0.0, 0.0, 0.0])


def hope_terms() -> Floats:
    """Of values of hopes; see `hope_for`."""
    return np.array([1.0, 0.0, HOPE, 0.0, 0.0, 0.0, 0.0, 0.0])


def widened(sweeps: Sweeps, states: int) -> Sweeps:
    """The same table with room for more states."""
    wider, known, count = sweeps_for(states, sweeps.terms), len(sweeps.values), int(sweeps.ends[1])
    for name in ("values", "told", "waiting"):
        getattr(wider, name)[:known] = getattr(sweeps, name)
    wider.queue[:count] = np.roll(sweeps.queue, -int(sweeps.ends[0]))[:count]
    wider.ends[1:] = sweeps.ends[1:]
    return wider


def settle(model: GrowingModel, sweeps: Sweeps, gamma: float) -> None:
    """Sweep a table whose values are not known yet until nothing moves."""
    for index in range(len(model)):
        wait(sweeps, index)
    sweep(model.graph, sweeps, model.num_actions, gamma, FIRST_BACKUPS)


def settle_plan(model: GrowingModel, plan: Sweeps, hopes: Sweeps, gamma: float) -> None:
    """The same for the plan and hopes, of a model that was paid for something."""
    paid = model.outcomes().reward
    plan.terms[LEAST] = LEAST_PART * (1.0 - gamma) * float(np.abs(paid).max(initial=0.0))
    settle(model, plan, gamma)
    look_at_range(plan, len(model))
    hope_for(hopes, plan)
    settle(model, hopes, gamma)


@compiled
def pair_value(graph: Graph, sweeps: Sweeps, gamma: float, pair: int) -> float:
    """Q(s,a)."""
    terms, values, tries = sweeps.terms, sweeps.values, graph.tries[pair]
    if tries == 0:
        return float(terms[NEW])
    earns = (1.0 - gamma) * terms[PAYS]
    value, squares = 0.0, 0.0
    entry = graph.first_outcome[pair]
    while entry != NONE:
        following, times, paid = (
            graph.outcome_state[entry],
            graph.outcome_times[entry],
            earns * graph.outcome_paid[entry],
        )
        ahead = gamma * (values[following] if following >= 0 else terms[PAYS] * graph.end_paid[~following])
        value += paid + times * ahead
        squares += earns * earns * graph.outcome_squares[entry] + (2.0 * paid + times * ahead) * ahead
        entry = graph.next_outcome[entry]
    value /= tries
    if terms[DOUBT] > 0.0:
        varies = np.sqrt(max(0.0, squares / tries - value * value) / tries)
        value += terms[DOUBT] * (varies + (terms[HIGHEST] - terms[LOWEST]) / tries)
    if terms[NOVELTY] > 0.0:
        value += (1.0 - gamma) * terms[NOVELTY] / np.sqrt(tries)
    return float(value)


@compiled
def wait(sweeps: Sweeps, state: int) -> None:
    """Put a state into the queue, unless it is there."""
    if not sweeps.waiting[state]:
        sweeps.waiting[state] = True
        sweeps.queue[(sweeps.ends[0] + sweeps.ends[1]) % len(sweeps.queue)] = state
        sweeps.ends[1] += 1


@compiled
def sweep(graph: Graph, sweeps: Sweeps, num_actions: int, gamma: float, backups: int) -> int:
    """Back up the states that wait, and for hopes others in turn, each once; at most so many. Returns how many."""
    done, turns, states = 0, 0, graph.tally[STATES]
    values, told, ends, terms = sweeps.values, sweeps.told, sweeps.ends, sweeps.terms
    while done < backups:
        if ends[1] > 0:
            state = int64(sweeps.queue[ends[0]])
            ends[0] = (ends[0] + 1) % len(sweeps.queue)
            ends[1] -= 1
            sweeps.waiting[state] = False
        elif turns < states and terms[DOUBT] > 0.0:
            ends[2] = (ends[2] + 1) % states
            turns += 1
            state = ends[2]
        else:
            break
        done += 1
        value = terms[LOWEST]
        for pair in range(state * num_actions, (state + 1) * num_actions):
            one = pair_value(graph, sweeps, gamma, pair)
            if pair == state * num_actions or one > value:
                value = one
        value = min(value, terms[CAP])
        values[state] = value
        if abs(value - told[state]) > terms[LEAST]:
            told[state] = value
            entry = graph.first_into[state]
            while entry != NONE:
                wait(sweeps, graph.outcome_pair[entry] // num_actions)
                entry = graph.next_into[entry]
    return done


@compiled
def look_at_range(sweeps: Sweeps, states: int) -> None:
    """Note the lowest and the highest value of a plan; zero is always among them."""
    terms = sweeps.terms
    terms[LOWEST] = min(0.0, sweeps.values[:states].min())
    terms[HIGHEST] = max(0.0, sweeps.values[:states].max())
    terms[NEW] = terms[LOWEST]
    terms[LEAST] = LEAST_PART * (terms[HIGHEST] - terms[LOWEST])


@compiled
def hope_for(hopes: Sweeps, plan: Sweeps) -> None:
    """Measure hopes in units of the plan's values."""
    hopes.terms[LOWEST:] = plan.terms[LOWEST:]
    hopes.terms[NEW] = plan.terms[HIGHEST]
    hopes.terms[CAP] = 2.0 * plan.terms[HIGHEST] - plan.terms[LOWEST]


@compiled
def choose(graph: Graph, sweeps: Sweeps, num_actions: int, gamma: float, state: int, actions: Indices) -> int:
    """Write the best actions of a state; how many there are."""
    best, count = -np.inf, int64(0)
    for action in range(num_actions):
        value = pair_value(graph, sweeps, gamma, state * num_actions + action)
        if value > best + 1e-12:
            best, count = value, int64(0)
        if value >= best - 1e-12:
            actions[count] = action
            count += 1
    return count
