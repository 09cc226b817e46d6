"""Values of a counted model with a bonus for what was seldom tried, kept up to date by sweeps where something changed.

For worlds in which the same pair leads now here, now there. Normalised, with n tries of a pair,

    Q(s,a) = (1 - gamma) / sqrt(n(s,a)) + gamma sum over s' of n(s,a,s') / n(s,a) V(s'),      V(s) = max_a Q(s,a),

and Q(s,a) = 1 for a pair that was never tried: the bonus of MBIE-EB (Strehl and Littman 2008) and no other reward.
After every step the state that was left is put into a queue. Every so many steps, each state in it is backed up, and
where its value has moved by more than ``least`` those that lead to it follow. Only so many are backed up at a time, so
that a step costs the same however many states there are; the others wait. Actions are chosen by the values of the last
time and by the counts of now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Mask
from curious_explorer.compile import compiled, int64
from curious_explorer.models.growing_model import NONE, Graph, GrowingModel

FIRST_BACKUPS = 10_000_000


class Sweeps(NamedTuple):
    """Values, and the states that wait for a backup."""

    values: Floats  # (S,)
    told: Floats  # (S,): the values of which the states before them know
    waiting: Mask  # (S,)
    queue: Indices  # (S,): a ring
    ends: Integers  # (2,): where the queue begins, and its length


class BonusValues:
    """Values of a model that grows."""

    def __init__(self, model: GrowingModel, *, gamma: float, least: float, backups: int, every: int) -> None:
        self._model, self._gamma, self._least = model, gamma, least
        self._backups, self._every, self._asked = backups * every, every, 0
        self._actions = np.zeros(model.num_actions, dtype=np.int32)
        self.sweeps = sweeps_for(len(model.graph.first_into))
        for index in range(len(model)):
            wait(self.sweeps, index)
        sweep(model.graph, self.sweeps, model.num_actions, gamma, least, FIRST_BACKUPS)

    def best_actions(self, left: int, index: int) -> list[int]:
        """The best actions now, after a step out of ``left`` (`NONE`: none was taken)."""
        self.make_room()
        self._asked += 1
        backups = 0 if self._asked % self._every else self._backups
        settings = (self._model.num_actions, self._gamma, self._least, backups)
        count = choose(self._model.graph, self.sweeps, *settings, left, index, self._actions)
        return list(map(int, self._actions[:count]))

    def make_room(self) -> None:
        """Make the arrays as long as the model's are."""
        states = len(self._model.graph.first_into)
        if states > len(self.sweeps.values):
            wider = sweeps_for(states)
            old, count = self.sweeps, int(self.sweeps.ends[1])
            for name in ("values", "told", "waiting"):
                getattr(wider, name)[: len(old.values)] = getattr(old, name)
            wider.queue[:count] = np.roll(old.queue, -int(old.ends[0]))[:count]
            wider.ends[1] = count
            self.sweeps = wider

    def value(self, index: int) -> float:
        """V of a state."""
        return float(self.sweeps.values[index])


def sweeps_for(states: int) -> Sweeps:
    """Room for so many states, none of which was ever left: each is worth the most."""
    waiting, queue = np.zeros(states, dtype=np.bool_), np.zeros(states, dtype=np.int32)
    return Sweeps(np.ones(states), np.ones(states), waiting, queue, np.zeros(2, dtype=np.int64))


@compiled
def pair_value(graph: Graph, values: Floats, gamma: float, pair: int) -> float:
    """Q(s,a)."""
    tries = graph.tries[pair]
    if tries == 0:
        return 1.0
    ahead = 0.0
    entry = graph.first_outcome[pair]
    while entry != NONE:
        following = graph.outcome_state[entry]
        if following >= 0:
            ahead += graph.outcome_times[entry] * values[following]
        entry = graph.next_outcome[entry]
    return float((1.0 - gamma) / np.sqrt(tries) + gamma * ahead / tries)


@compiled
def wait(sweeps: Sweeps, state: int) -> None:
    """Put a state into the queue, unless it is there."""
    if not sweeps.waiting[state]:
        sweeps.waiting[state] = True
        sweeps.queue[(sweeps.ends[0] + sweeps.ends[1]) % len(sweeps.queue)] = state
        sweeps.ends[1] += 1


@compiled
def sweep(graph: Graph, sweeps: Sweeps, num_actions: int, gamma: float, least: float, backups: int) -> int:
    """Back up the states that wait, at most so many; returns how many it were."""
    done = 0
    values, told, ends, capacity = sweeps.values, sweeps.told, sweeps.ends, len(sweeps.queue)
    while done < backups and ends[1] > 0:
        state = sweeps.queue[ends[0]]
        ends[0] = (ends[0] + 1) % capacity
        ends[1] -= 1
        sweeps.waiting[state] = False
        done += 1
        value = 0.0
        for pair in range(state * num_actions, (state + 1) * num_actions):
            value = max(value, pair_value(graph, values, gamma, pair))
        values[state] = value
        if abs(value - told[state]) > least:
            told[state] = value
            entry = graph.first_into[state]
            while entry != NONE:
                wait(sweeps, graph.outcome_pair[entry] // num_actions)
                entry = graph.next_into[entry]
    return done


@compiled
def choose(
    graph: Graph,
    sweeps: Sweeps,
    num_actions: int,
    gamma: float,
    least: float,
    backups: int,
    left: int,
    state: int,
    actions: Indices,
) -> int:
    """Sweep after a step out of ``left`` (NONE: none), then write the best actions of ``state``; how many there are."""
    if left != NONE:
        wait(sweeps, left)
    sweep(graph, sweeps, num_actions, gamma, least, backups)
    best, count = -1.0, int64(0)
    for action in range(num_actions):
        value = pair_value(graph, sweeps.values, gamma, state * num_actions + action)
        if value > best + 1e-12:
            best, count = value, int64(0)
        if value >= best - 1e-12:
            actions[count] = action
            count += 1
    return count
