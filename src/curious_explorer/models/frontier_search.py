"""The shortest known way to what is worth trying next, kept up to date as the world is seen (adaptive A*).

With the counts of a `GrowingModel`, the distance of a state to the frontier is

    d(s) = min over a of  min(e(s,a), min over outcomes s' of  c(s,a,s') + d(s')),

where e(s,a) is zero for a pair that counts as new, infinite for one that is known, and where pairs were seen to have
several outcomes, price * ln(n(s,a)), so that they are never written off; c(s,a,s') = n(s,a) / n(s,a,s') rounded up is
the number of tries that an outcome takes.

**Why it is cheap.** h(s) <= d(s) is kept for every state. Trying a pair makes its e(s,a) grow from zero and adds an
outcome, so distances only grow, and a lower bound stays one: a search (A* with h) lifts the bounds of all states that
it expanded to what it learned about them, h(s) = d(start) - g(s) (Koenig and Likhachev 2005). A state is expanded only
if its bound is too low, or on the way, so that all searches together expand no more states than the sum of their final
distances and the steps that were walked: a few for each step, however many states there are. Where a distance does
fall, because a step was more likely than thought or because a pair was tried for the sake of another level, `lower`
passes that on to the states before it.

**Levels.** A `Level` gives every state a key; a pair counts as new on a level if no state of the same key has tried the
same action, or not often enough where steps may fail: then each try makes it seem `AGAIN` steps further away, until it
is known. On the finest level keys are the states themselves. Each level has bounds of its own.

**Doubt.** Where any pair was seen to have two outcomes, one that always did the same may have failed its only tries: a
step that fails once in fifty, at the one place where it matters, would hide what lies behind it for ever. So e(s,a) is
not infinite there but price * (ln(n(s,a)) + ln(1/p)), with p the share of repeated tries that led elsewhere than at
first: the rarer that is, the further away a second try. The same holds of what pairs pay: one that pays now this, now
that, or that was tried only once and then paid (where others were seen to vary, or while there was hardly any that was
tried again), is worth price * (1 + ln(n(s,a))) until its mean is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Indices, Integers
from curious_explorer.compile import compiled, inlined, int64
from curious_explorer.models.growing_model import (
    FAR,
    NONE,
    ROUNDING,
    SURPRISES,
    Graph,
    GrowingModel,
    outcome_cost,
    pop,
    push,
)

PAY_KNOWN, FEWEST_PAID, MOST_PAID = 0.1, 10, 100
"""What a pair pays that pays now this, now that is known when the standard error is less than this part of it, but not
before so many tries, and always after so many."""
LEAST_PAID, ENOUGH_ALIKE = 0.01, 10
"""Where there are such pairs, one that was tried once is in doubt if it paid more than this part of their noise. Where
there are none, one that paid a reward is, until so many tries of pairs that pay were all alike."""
AGAIN = 10
"""How much further away, in steps, each try makes a pair seem where one is not enough. With sticky actions the first
reward of MultiRoom-N4 takes 39,000 samples with 0, 25,000 with 10 and 52,000 with 100, DoorKey-8x8 4,000 with all."""
G_BITS = 24
"""Ties between states of equal g + h are broken in favour of the larger g, which is kept in so many bits of a key."""


class Level(NamedTuple):
    """What counts as new, and bounds on the distance to it."""

    bounds: Indices  # (S,): h
    keys: Indices  # (S,): NONE in every place on the finest level
    tries: Indices  # (K * A,): how often each action was tried in the states of each key; empty on the finest level
    price: float
    """What one more try costs where outcomes vary, in steps for each factor e of tries; zero: it is never worth it."""
    enough: int = 1
    """After how many tries a pair is no longer new."""
    rarity: float = np.inf
    """How many factors e of tries a pair that has always led to the same state is behind one that varies."""
    noise: float = 0.0
    """By how much pairs were seen to pay otherwise than before."""
    alike: int = 0
    """How often a pair that pays was tried again and paid the same."""


class Scratch(NamedTuple):
    """Arrays that a search works with; nothing in them is kept between two searches but ``number``."""

    number: Integers  # (1,): of the search
    seen_in: Integers  # (S,): the last search that reached each state
    closed_in: Integers  # (S,): the last search that expanded it
    g: Indices  # (S,)
    via: Indices  # (S,): the outcome by which a state was reached
    closed: Indices  # (S,): the states that this search expanded
    path: Indices  # (S,): the outcomes on the way, in order
    heap_keys: Integers  # (2 E + 2 S,)
    heap_states: Indices  # the same; ~state stands for the frontier at that state


class Way(NamedTuple):
    """A way to the frontier."""

    distance: int
    pairs: list[int]  # index * A + action of each step
    states: list[int]  # where each of them is hoped to lead
    goal: int  # where it ends


class FrontierSearch:
    """The levels of a model that grows."""

    def __init__(self, model: GrowingModel, levels: int, price: float) -> None:
        self._model, self._num_actions = model, model.num_actions
        self.work = scratch_for(*_capacity(model))
        self._actions = np.zeros(model.num_actions, dtype=np.int32)
        self.levels = [self._new_level(coarse=True, price=0.0) for _ in range(levels - 1)]
        self.levels.append(self._new_level(coarse=False, price=price))

    def _new_level(self, *, coarse: bool, price: float) -> Level:
        states = _capacity(self._model)[0]
        bounds, keys = np.zeros(states, dtype=np.int32), np.full(states, NONE, dtype=np.int32)
        return Level(bounds, keys, np.zeros(states * self._num_actions if coarse else 0, dtype=np.int32), price)

    def meet(self, index: int, keys: Sequence[int] = ()) -> None:
        """A state was added to the model; with its keys on all levels but the last.

        Where nothing is left to try in it on a level, its distance there is not zero: it would pass on to all states
        before it that they are close to something new, and the next search would have to find out that they are not.
        """
        self.make_room()
        graph = self._model.graph
        for level, key in zip(self.levels, keys, strict=False):
            level.keys[index] = key
            if graph.tally[SURPRISES] == 0:  # else there are prices, and more than one try may be needed
                level.bounds[index] = exit_cost(graph, level, self._num_actions, index)

    def make_room(self) -> None:
        """Make the arrays as long as the model's are."""
        states, outcomes = _capacity(self._model)
        if states > len(self.work.g) or 2 * (states + outcomes) > len(self.work.heap_keys):
            number = self.work.number[0]
            self.work = scratch_for(states, outcomes)
            self.work.number[0] = number
        if states > len(self.levels[0].bounds):
            wider = [self._new_level(coarse=len(level.tries) > 0, price=level.price) for level in self.levels]
            for old, new in zip(self.levels, wider, strict=True):
                for name in ("bounds", "keys", "tries"):
                    getattr(new, name)[: len(getattr(old, name))] = getattr(old, name)
            self.levels = wider

    def begin_anew(self, keys: Indices | None = None) -> None:
        """Forget all bounds; with keys on all levels but the last, shape (levels - 1, M), tries follow."""
        self.make_room()
        for level in self.levels:
            level.bounds[:] = 0
        if keys is not None:
            index, action = np.nonzero(self._model.tries)
            times = self._model.tries[index, action]
            for level, row in zip(self.levels, keys, strict=False):
                level.keys[: len(row)] = row
                level.tries[:] = 0
                np.add.at(level.tries, row[index] * self._num_actions + action, times)

    def changed(self, index: int, action: int) -> None:
        """A pair was tried, and that told something."""
        self.make_room()
        for level in self.levels:
            key = level.keys[index]
            if key != NONE:
                level.tries[key * self._num_actions + action] += 1
            lower(self._model.graph, level, self.work, self._num_actions, index)

    def way(self, level: int, start: int, most: int = FAR, room: int = FAR) -> Way | None:
        """The shortest way to the frontier of a level, if there is one of this distance and these steps at most."""
        graph, work = self._model.graph, self.work
        distance, goal, length = search(graph, self.levels[level], work, self._num_actions, start, most, room)
        if goal == NONE:
            return None
        path = work.path[:length]
        return Way(distance, graph.outcome_pair[path].tolist(), graph.outcome_state[path].tolist(), goal)

    def exits(self, level: int, state: int) -> list[int]:
        """The actions that are worth most to try in a state at the frontier."""
        count = best_exits(self._model.graph, self.levels[level], self._num_actions, state, self._actions)
        return list(map(int, self._actions[:count]))


def _capacity(model: GrowingModel) -> tuple[int, int]:
    return len(model.graph.first_into), len(model.graph.outcome_pair)


def scratch_for(states: int, outcomes: int) -> Scratch:
    """Room for a search among so many states and outcomes."""
    number, seen, closed = (np.zeros(size, dtype=np.int64) for size in (1, states, states))
    g, via, order, path = (np.zeros(states, dtype=np.int32) for _ in range(4))
    size = 2 * outcomes + 2 * states
    keys, heap = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int32)
    return Scratch(number, seen, closed, g, via, order, path, keys, heap)


@inlined
def _pay_in_doubt(graph: Graph, level: Level, entry: int) -> bool:
    """Whether what an outcome pays on average is not known yet."""
    times, paid = graph.outcome_times[entry], graph.outcome_paid[entry]
    if times == 1:
        if level.noise > 0.0:
            return bool(abs(paid) > LEAST_PAID * level.noise)
        return bool(paid > 0.0 and level.alike < ENOUGH_ALIKE)
    squares = times * graph.outcome_squares[entry]
    varies = squares - paid * paid  # the variance, in units of 1 / times squared
    if varies <= ROUNDING * squares or times >= MOST_PAID:
        return False
    return bool(times < FEWEST_PAID or varies > PAY_KNOWN * PAY_KNOWN * times * paid * paid)


@inlined
def exit_cost_of(graph: Graph, level: Level, num_actions: int, state: int, action: int) -> int:
    """e(s,a)."""
    pair, key = state * num_actions + action, level.keys[state]
    tries = graph.tries[pair]
    alike = tries if key == NONE else level.tries[key * num_actions + action]
    if alike < level.enough:
        return int64(alike * AGAIN)
    if tries > 0 and level.price > 0.0:
        if graph.next_outcome[graph.first_outcome[pair]] != NONE:
            return int64(min(level.price * np.log(tries) + 1.0, FAR))  # a price may be as large as anybody says
        if _pay_in_doubt(graph, level, graph.first_outcome[pair]):
            return int64(min(level.price * (np.log(tries) + 1.0) + 1.0, FAR))
        if level.rarity < np.inf:
            return int64(min(level.price * (np.log(tries) + level.rarity) + 1.0, FAR))
    return int64(FAR)


@inlined
def exit_cost(graph: Graph, level: Level, num_actions: int, state: int) -> int:
    """The least e(s,a) of a state."""
    least = int64(FAR)
    for action in range(num_actions):
        least = min(least, exit_cost_of(graph, level, num_actions, state, action))
    return least


@compiled
def best_exits(graph: Graph, level: Level, num_actions: int, state: int, actions: Indices) -> int:
    """The actions of least e(s,a), written to ``actions``; returns how many there are."""
    least, count = exit_cost(graph, level, num_actions, state), int64(0)
    for action in range(num_actions):
        if exit_cost_of(graph, level, num_actions, state, action) == least:
            actions[count] = action
            count += 1
    return count


@compiled
def search(
    graph: Graph, level: Level, work: Scratch, num_actions: int, start: int, most: int, room: int
) -> tuple[int, int, int]:
    """The way from ``start`` to the frontier, of a distance of ``most`` and of so many steps as there is ``room`` for.

    A distance may be more than the steps, because the price of tries is part of it, which takes no time.
    Returns the distance (more than ``most``, or `FAR`: there is none), the state at the frontier, and how many outcomes
    ``work.path`` has.
    """
    if graph.tally[SURPRISES] == 0:  # nothing has a price: what is further away need not be looked at
        most = min(most, room)
    bounds, tries, first_outcome, next_outcome = level.bounds, graph.tries, graph.first_outcome, graph.next_outcome
    outcome_state, outcome_times = graph.outcome_state, graph.outcome_times
    number = work.number[0] + 1
    work.number[0] = number
    keys, heap, g = work.heap_keys, work.heap_states, work.g
    if bounds[start] >= FAR or room < 0:
        return int64(bounds[start]), int64(NONE), int64(0)
    g[start], work.seen_in[start], work.via[start] = 0, number, NONE
    size = push(keys, heap, 0, state_key(bounds[start], 0), start)
    leave = exit_cost(graph, level, num_actions, start)
    if leave < FAR:
        size = push(keys, heap, size, leave << G_BITS, ~start)
    closed, distance, goal, beyond = 0, int64(FAR), int64(NONE), int64(FAR)
    while size > 0:
        least = keys[0] >> G_BITS
        if least > most:
            distance = least
            break
        state = int64(heap[0])
        size = pop(keys, heap, size)
        if state < 0:
            distance, goal = least, ~state
            break
        if work.closed_in[state] == number:
            continue
        work.closed_in[state] = number
        work.closed[closed] = state
        closed += 1
        for pair in range(state * num_actions, (state + 1) * num_actions):
            entry = first_outcome[pair]
            while entry != NONE:
                following = outcome_state[entry]
                if following >= 0 and bounds[following] < FAR:
                    times = outcome_times[entry]
                    reached = g[state] + (1 if times == tries[pair] else (tries[pair] + times - 1) // times)
                    if reached > room:
                        beyond = min(beyond, int64(reached + bounds[following]))
                    elif work.seen_in[following] != number or reached < g[following]:
                        g[following], work.seen_in[following], work.via[following] = reached, number, entry
                        size = push(keys, heap, size, state_key(reached + bounds[following], reached), following)
                        leave = exit_cost(graph, level, num_actions, following)
                        if leave < FAR:
                            size = push(keys, heap, size, (reached + leave) << G_BITS, ~following)
                entry = next_outcome[entry]
    bound = min(distance, beyond)
    for place in range(closed):
        state = work.closed[place]
        better = FAR if bound >= FAR else bound - g[state]
        bounds[state] = max(bounds[state], better)
    if goal == NONE:
        return bound, goal, int64(0)
    length = 0
    state = goal
    while work.via[state] != NONE:
        work.path[length] = work.via[state]
        length += 1
        state = graph.outcome_pair[work.via[state]] // num_actions
    for place in range(length // 2):
        work.path[place], work.path[length - 1 - place] = work.path[length - 1 - place], work.path[place]
    return distance, goal, int64(length)


@inlined
def bound_of(graph: Graph, level: Level, num_actions: int, state: int) -> int:
    """The bound on the distance of a state that follows from those after it."""
    least = exit_cost(graph, level, num_actions, state)
    for pair in range(state * num_actions, (state + 1) * num_actions):
        entry = graph.first_outcome[pair]
        while entry != NONE:
            following = graph.outcome_state[entry]
            if following >= 0:
                least = min(least, outcome_cost(graph, entry) + level.bounds[following])
            entry = graph.next_outcome[entry]
    return least


@compiled
def lower(graph: Graph, level: Level, work: Scratch, num_actions: int, changed: int) -> None:
    """Lower the bound of a state from which a way may have become shorter, and those of the states before it."""
    bounds = level.bounds
    least = bound_of(graph, level, num_actions, changed)
    if least >= bounds[changed]:
        return
    bounds[changed] = least
    size = push(work.heap_keys, work.heap_states, 0, least, changed)
    while size > 0:  # nearest first, so that each state is lowered once
        bound, state = work.heap_keys[0], work.heap_states[0]
        size = pop(work.heap_keys, work.heap_states, size)
        if bound > bounds[state]:
            continue
        entry = graph.first_into[state]
        while entry != NONE:
            before = graph.outcome_pair[entry] // num_actions
            better = bounds[state] + outcome_cost(graph, entry)
            if better < bounds[before]:
                bounds[before] = better
                size = push(work.heap_keys, work.heap_states, size, better, before)
            entry = graph.next_into[entry]


@compiled
def state_key(f: int, g: int) -> int:
    """Smaller for a smaller f, and for a larger g among equal ones; never the smallest of its f."""
    return (int64(f) << G_BITS) + ((int64(1) << G_BITS) - 1 - min(int64(g), (int64(1) << G_BITS) - 2))
