"""Ways to chosen states on a counted model: what to do in every state to get there, how likely, in how many steps.

**The plan** to a target g maximises E[gamma**T] over the counted model, with T the step of arrival (never: zero) and
gamma = `DISCOUNT`: the most likely way, where a step more is worth a thousandth of arrival. It is the fixed point of

    v(g) = 1,    v(s) = max_a gamma sum_{s' != s} p(s'|s,a) v(s') / (1 - gamma p(s|s,a)),

found from below, by updating states whose successors have changed, backwards from g: where nothing is random that is a
breadth-first search. Pairs that were never tried lead nowhere.

**Doubt.** What was tried once is no certainty where the world is random, and a plan that takes the best of many
estimates takes those that err upwards. So the plan (not the probability that is stated) sees a pair that was tried n
times with all frequencies times n / (n + doubt), where doubt is the probability that two tries of a pair differ,
averaged over all pairs tried twice or more: zero where nothing is random, so that one try is then enough.

**Arrival** is computed for the plan, on the frequencies: the start's mass is moved step by step until it arrives, is in
a terminal state or where no way is known, or the limit is reached. Unless a limit is given it is twice the step at
which 95% of what is still on its way or has arrived has arrived, and ten more. Where nothing that was seen is random a
plan is a shortest way, so that one search from each start has the arrivals in all states.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.compile import compiled, int64
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import predecessors

DISCOUNT = 0.999
ACCURACY = 1e-7
"""Values that change by less than this share of themselves are not passed on."""
MOST_UPDATES = 10_000
"""How often each state is updated at most, on average, in one plan."""
MOST_STARTS = 64
"""From more starts no shortest ways are kept."""
MOST_LIMIT = 100_000
"""The largest limit that is chosen where none is given."""
LATE_SHARE, SPARE_FACTOR, SPARE_STEPS = 0.05, 2, 10


class Arrival(NamedTuple):
    """How the plan to a state fares from the start, on the counted model."""

    probability: float
    """Of arriving within the limit."""
    steps: float
    """How many, on average, where it arrives."""
    limit: int
    """After how many steps it gives up."""


class Reaching:
    """Plans to states, and their arrivals, on one counted model from its starts.

    Only states that were met take part, so that a world of a million states costs no more than what was seen of it.
    """

    def __init__(self, model: CountedModel) -> None:
        self.model = model
        self.met: Integers = np.flatnonzero(model.met() | (model.starts > 0))
        self._part = part = model.within(self.met)
        self._place = np.full(model.num_states, -1, dtype=np.int64)
        self._place[self.met] = np.arange(len(self.met))
        # Who is where the episode has ended has not arrived, unless it always ends there.
        chances = part.chances()
        self._leads = leads = chances > 0.0
        pairs, next_states = part.rows.pairs[leads], part.rows.next_states[leads]
        row_start = np.searchsorted(pairs, np.arange(part.tries.size + 1))
        self._rows = (row_start, next_states, chances[leads])
        self._before = predecessors(row_start, next_states, max(len(self.met), 1))
        self._starts = np.flatnonzero(part.starts)
        self._start_mass = part.starts[self._starts] / max(int(part.starts.sum()), 1)
        self._arrivals: dict[tuple[int, int | None], Arrival] = {}

    @cached_property
    def doubt(self) -> float:
        """See `CountedModel.doubt`."""
        return self._part.doubt()

    @cached_property
    def _doubted(self) -> Floats:
        trust = self._part.trust().reshape(-1)[self._part.rows.pairs[self._leads]]
        chances: Floats = self._rows[2] * trust
        return chances

    @property
    def deterministic(self) -> bool:
        """Whether every pair that was tried always led to the same state, and went on there or never did."""
        return bool((self._rows[2] == 1.0).all())

    @cached_property
    def _distances(self) -> Integers | None:
        """Shortest ways from each start, shape (starts, met), -1 for none; None where that says less than a plan."""
        if not self.deterministic or len(self._starts) > MOST_STARTS:
            return None
        found = np.full((len(self._starts), len(self.met)), -1, dtype=np.int64)
        forward = self._rows[0][:: self.model.num_actions], self._rows[1]  # of states, in place of pairs
        for start, distance in zip(self._starts, found, strict=True):
            walk_breadth_first(*forward, np.array([start]), distance)
        return found

    @cached_property
    def reachable(self) -> Mask:
        """The states to which transitions that were seen lead from the starts, shape (S,)."""
        return self.distances_from_starts() >= 0

    def distances_from_starts(self) -> Integers:
        """The least number of transitions from a start to each state, shape (S,); -1 where none leads."""
        found = np.full(len(self.met), -1, dtype=np.int64)
        walk_breadth_first(self._rows[0][:: self.model.num_actions], self._rows[1], self._starts, found)
        return self._of_states(found)

    def plan(self, target: int) -> NDArray[np.int16]:
        """What to do in every state to get to the target, shape (S,); -1 where no way is known."""
        actions = np.full(self.model.num_states, -1, dtype=np.int16)
        actions[self.met] = self._plan(target)
        return actions

    def _plan(self, target: int) -> NDArray[np.int16]:
        row_start, next_states, _ = self._rows
        tries = self._part.tries.reshape(-1)
        return plan_to(row_start, next_states, self._doubted, tries, *self._before, self._place[target], DISCOUNT)

    def arrival(self, target: int, limit: int | None = None) -> Arrival:
        """How the plan to a target fares from the starts."""
        known = self._arrivals.get((target, limit))
        if known is None and self._distances is not None:
            known = self._arrivals[target, limit] = self._shortest(self._distances[:, self._place[target]], limit)
        if known is None:
            found = arrival_of(
                *self._rows,
                self._plan(target),
                self._starts,
                self._start_mass,
                self._place[target],
                -1 if limit is None else limit,
            )
            known = self._arrivals[target, limit] = Arrival(float(found[0]), float(found[1]), int(found[2]))
        return known

    def _shortest(self, distance: Integers, limit: int | None) -> Arrival:
        """The arrival by ways of these lengths from the starts."""
        leads = distance >= 0
        mass, length = self._start_mass[leads], distance[leads]
        if limit is None:
            order = np.argsort(length)
            late = int(np.searchsorted(np.cumsum(mass[order]), (1.0 - LATE_SHARE) * mass.sum() - 1e-12))
            last = int(length[order[late]]) if len(length) else 0
            limit = min(MOST_LIMIT, SPARE_FACTOR * last + SPARE_STEPS)
        within = length <= limit
        arrived = float(mass[within].sum())
        steps = float((mass * length)[within].sum()) / arrived if arrived > 0.0 else np.inf
        return Arrival(arrived, steps, limit)

    def distances(self, targets: Mask) -> Integers:
        """The least number of transitions from each state to one of the targets, shape (S,); -1 where none leads."""
        found = np.full(len(self.met), -1, dtype=np.int64)
        walk_breadth_first(*self._before, np.flatnonzero(targets[self.met]), found)
        return self._of_states(found)

    def _of_states(self, distance: Integers) -> Integers:
        distances = np.full(self.model.num_states, -1, dtype=np.int64)
        distances[self.met] = distance
        return distances

    def nearest(self, state: int, count: int) -> list[int]:
        """The reachable states nearest to one that is not: by transitions in either direction, then by number."""
        reachable = np.flatnonzero(self.reachable)
        if len(reachable) == 0:
            return []
        by_number: list[int] = reachable[np.argsort(np.abs(reachable - state), kind="stable")].tolist()
        if self._place[state] < 0:
            return by_number[:count]
        row_start, next_states, _ = self._rows
        seen, ring = {int(self._place[state])}, [int(self._place[state])]
        found: list[int] = []
        actions = self.model.num_actions
        while ring and len(found) < count:
            beyond: list[int] = []
            for place in ring:
                ahead = next_states[row_start[place * actions] : row_start[(place + 1) * actions]].tolist()
                behind = self._before[1][self._before[0][place] : self._before[0][place + 1]].tolist()
                beyond += [other for other in dict.fromkeys(ahead + behind) if other not in seen]
                seen.update(beyond)
            found += [int(self.met[place]) for place in dict.fromkeys(beyond) if self.reachable[self.met[place]]]
            ring = beyond
        return [*found, *(other for other in by_number if other not in found)][:count]


@compiled
def plan_to(
    row_start: Integers,
    next_states: Integers,
    chances: Floats,
    tries: Integers,
    before_start: Integers,
    before: Integers,
    target: int,
    gamma: float,
) -> NDArray[np.int16]:
    """The plan to a target, shape (S,); of equally good actions the one that was tried most."""
    num_states = len(before_start) - 1
    num_actions = (len(row_start) - 1) // num_states
    actions = np.full(num_states, -1, dtype=np.int16)
    values, told = np.zeros(num_states), np.zeros(num_states)
    values[target] = 1.0
    queue, queued = np.empty(num_states, dtype=np.int64), np.zeros(num_states, dtype=np.bool_)
    queue[0] = target
    head, waiting = 0, 1
    for _ in range(MOST_UPDATES * num_states):
        if waiting == 0:
            break
        state = queue[head]
        head = (head + 1) % num_states
        waiting -= 1
        queued[state] = False
        if state != target:
            best, chosen = 0.0, -1
            for action in range(num_actions):
                row = state * num_actions + action
                ahead, stay = 0.0, 0.0
                for entry in range(row_start[row], row_start[row + 1]):
                    if next_states[entry] == state:
                        stay = chances[entry]
                    else:
                        ahead += chances[entry] * values[next_states[entry]]
                worth = gamma * ahead / (1.0 - gamma * stay)
                close = chosen >= 0 and abs(worth - best) <= 1e-9 * best
                if (close and tries[row] > tries[state * num_actions + chosen]) or (not close and worth > best):
                    best, chosen = worth, action
            values[state], actions[state] = best, chosen
        if values[state] > told[state] * (1.0 + ACCURACY):
            told[state] = values[state]
            for place in range(before_start[state], before_start[state + 1]):
                other = before[place]
                if other != target and not queued[other]:
                    queued[other] = True
                    queue[(head + waiting) % num_states] = other
                    waiting += 1
    return actions


@compiled
def arrival_of(
    row_start: Integers,
    next_states: Integers,
    chances: Floats,
    actions: NDArray[np.int16],
    starts: Integers,
    start_mass: Floats,
    target: int,
    limit: int,
) -> tuple[float, float, int]:
    """Probability of arrival within the limit (negative: choose one), mean steps of what arrives, and the limit."""
    num_states = len(actions)
    num_actions = (len(row_start) - 1) // num_states
    mass, moved = np.zeros(num_states), np.zeros(num_states)
    here, there = np.empty(num_states, dtype=np.int64), np.empty(num_states, dtype=np.int64)
    listed = np.zeros(num_states, dtype=np.bool_)
    arrived, weighted = 0.0, 0.0
    count = 0
    for place in range(len(starts)):
        if starts[place] == target:
            arrived += start_mass[place]
        elif actions[starts[place]] >= 0:
            mass[starts[place]] = start_mass[place]
            here[count] = starts[place]
            count += 1
    step = int64(0)
    last = int64(limit) if limit >= 0 else int64(MOST_LIMIT)
    chosen = limit >= 0
    while True:
        live = 0.0
        for place in range(count):
            live += mass[here[place]]
        if not chosen and arrived >= (1.0 - LATE_SHARE) * (arrived + live):
            last = min(int64(MOST_LIMIT), SPARE_FACTOR * step + SPARE_STEPS)
            chosen = True
        if step >= last or live == 0.0:
            break
        step += 1
        following = 0
        for place in range(count):
            state = here[place]
            row = state * num_actions + actions[state]
            for entry in range(row_start[row], row_start[row + 1]):
                other = next_states[entry]
                part = mass[state] * chances[entry]
                if other == target:
                    arrived += part
                    weighted += part * step
                elif actions[other] >= 0 and part > 1e-15:
                    if not listed[other]:
                        listed[other] = True
                        there[following] = other
                        following += 1
                    moved[other] += part
        for place in range(count):
            mass[here[place]] = 0.0
        for place in range(following):
            listed[there[place]] = False
        mass, moved = moved, mass
        here, there = there, here
        count = following
    return arrived, (weighted / arrived if arrived > 0.0 else np.inf), last


@compiled
def walk_breadth_first(row_start: Integers, neighbours: Integers, sources: Integers, distance: Integers) -> None:
    """Fill in how many steps along rows of neighbours it takes to each state from the sources; -1 where none leads."""
    queue = np.empty(len(distance), dtype=np.int64)
    head, stop = 0, 0
    for source in sources:
        distance[source] = 0
        queue[stop] = source
        stop += 1
    while head < stop:
        state = queue[head]
        head += 1
        for place in range(row_start[state], row_start[state + 1]):
            other = neighbours[place]
            if distance[other] < 0:
                distance[other] = distance[state] + 1
                queue[stop] = other
                stop += 1
