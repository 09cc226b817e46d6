"""Counts of a world whose states are met as they come: what was tried, what it led to, and what leads to where.

States are numbered in the order in which they were met, so that memory grows with what was seen and not with what there
might be. A pair is ``index * A + action``; each of its outcomes (the state that it led to, how often, and what that
paid in all) is an entry in two linked lists, that of the pair and that of the state, so that plans can look ahead and
back. An outcome that ended the episode has the complement ``~index`` of its state, which is negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.compile import compiled, inlined, int64
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.worlds.world import TransitionCounts

NONE = -1
FAR = 1 << 30
"""The distance where there is no way."""
FIRST_CAPACITY = 1 << 10
ROUNDING = 1e-9
"""A variance below this part of the mean square may be rounding."""


class Graph(NamedTuple):
    """The counts as arrays, for compiled functions; longer than what they hold, which `GrowingModel` knows."""

    tries: Indices  # (S * A,): how often each pair was tried
    first_outcome: Indices  # (S * A,): its first outcome, or NONE
    outcome_pair: Indices  # (E,)
    outcome_state: Indices  # (E,): ~state where the episode ended there
    outcome_times: Indices  # (E,)
    outcome_paid: Floats  # (E,): the sum of what it paid
    next_outcome: Indices  # (E,): the next outcome of the same pair, or NONE
    first_into: Indices  # (S,): an outcome that leads to this state and goes on there, or NONE
    next_into: Indices  # (E,): the next outcome that leads to the same state, or NONE
    start_times: Indices  # (S,): how many episodes began there
    end_paid: Floats  # (S,): what a state in which an episode ended goes on paying
    numbers: Integers  # (S,): the world's numbers of the states
    tally: Integers  # (4,): how many states, outcomes, repeats and surprises there are
    outcome_squares: Floats  # (E,): the sum of the squares of what it paid


_OF_STATES = ("first_into", "start_times", "end_paid", "numbers")
_NOT_LINKED = (
    "start_times",
    "end_paid",
    "numbers",
    "tally",
    "outcome_squares",
)  # what does not follow from the outcomes
STATES, OUTCOMES, REPEATS, SURPRISES = range(4)
"""Places in `Graph.tally`. A repeat is a pair that was tried again, a surprise one that led elsewhere than at first."""


class GrowingModel:
    """What was seen of a world so far."""

    def __init__(self, num_actions: int) -> None:
        self.num_actions = num_actions
        self.graph = _room_for(FIRST_CAPACITY, num_actions)
        self._index: dict[int, int] = {}

    # Adding what was seen -------------------------------------------------------------------------------------------

    def meet(self, state: int) -> int:
        """The index of a state of the world; the next free one if it was never met."""
        index = self.index_of.get(state)
        if index is None:
            index = self._index[state] = meet_next(self.graph, state)
            if index + 1 == len(self.graph.first_into):
                self.make_room()
        return index

    def start(self, index: int) -> None:
        """An episode began here."""
        self.graph.start_times[index] += 1

    def add(self, index: int, action: int, following: int, reward: float) -> bool:
        """Count a step to ``following`` (the complement of the index where the episode ended).

        Returns whether it tells anything but that the pair did again what it has always done.
        """
        self.make_room()
        return add_step(self.graph, index * self.num_actions + action, following, float(reward))

    def end(self, index: int, reward: float) -> None:
        """An episode ended here, and the state goes on paying this at every step."""
        self.graph.end_paid[index] = reward

    def make_room(self) -> bool:
        """Widen the arrays, if there is not room for another state and another outcome; whether that was so."""
        states, outcomes = len(self.graph.first_into), len(self.graph.outcome_pair)
        if self.graph.tally[STATES] < states and self.graph.tally[OUTCOMES] < outcomes:
            return False
        wider = _room_for(
            states * (1 + int(self.graph.tally[STATES] == states)),
            self.num_actions,
            outcomes * (1 + int(self.graph.tally[OUTCOMES] == outcomes)),
        )
        held = self.graph._asdict()
        for name, array in wider._asdict().items():
            array[: len(held[name])] = held[name]
        self.graph = wider
        return True

    # What it says ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many states were met."""
        return int(self.graph.tally[STATES])

    @property
    def repeats(self) -> int:
        """How often a pair was tried again."""
        return int(self.graph.tally[REPEATS])

    @property
    def surprises(self) -> int:
        """How often a pair that was tried again led elsewhere than at first."""
        return int(self.graph.tally[SURPRISES])

    @property
    def states(self) -> Integers:
        """The world's numbers of the states, in the order in which they were met, shape (M,)."""
        return self.graph.numbers[: len(self)].copy()

    def state(self, index: int) -> int:
        """The world's number of one state."""
        return int(self.graph.numbers[index])

    @property
    def starts(self) -> dict[int, int]:
        """How many episodes began at each index that is a start."""
        times = self.graph.start_times[: len(self)]
        return {int(index): int(times[index]) for index in np.flatnonzero(times)}

    @property
    def index_of(self) -> dict[int, int]:
        """The index of every state that was met."""
        known = len(self._index)
        if known < len(self):  # a kernel has met more
            self._index.update(
                zip(self.graph.numbers[known : len(self)].tolist(), range(known, len(self)), strict=True)
            )
        return self._index

    def index(self, state: int) -> int | None:
        """The index of a state of the world; None if it was never met."""
        return self.index_of.get(int(state))

    @property
    def tries(self) -> Indices:
        """How often each pair was tried, shape (M, A), by index."""
        return self.graph.tries[: len(self) * self.num_actions].reshape(len(self), self.num_actions)

    def first_tries(self) -> tuple[Integers, Integers]:
        """Of each action, how many pairs were tried, and of how many the first try led nowhere, shapes (A,)."""
        index, action = np.nonzero(self.tries)
        entry = self.graph.first_outcome[index * self.num_actions + action]
        stayed = action[self.graph.outcome_state[entry] == index]
        tried, led_nowhere = (np.bincount(actions, minlength=self.num_actions) for actions in (action, stayed))
        return tried.astype(np.int64), led_nowhere.astype(np.int64)

    def payments_vary(self) -> float:
        """The largest standard deviation of what an outcome paid; zero where each has always paid the same."""
        count = int(self.graph.tally[OUTCOMES])
        times = self.graph.outcome_times[:count]
        mean, squares = self.graph.outcome_paid[:count] / times, self.graph.outcome_squares[:count] / times
        variance = squares - mean**2
        return float(np.sqrt(variance[variance > ROUNDING * squares].max(initial=0.0)))

    def outcomes(self) -> TransitionCounts:
        """Every transition once, by index, with the mean of what it paid; ends of episodes among them."""
        count = int(self.graph.tally[OUTCOMES])
        index, action = np.divmod(self.graph.outcome_pair[:count].astype(np.int64), self.num_actions)
        following = self.graph.outcome_state[:count].astype(np.int64)
        times = self.graph.outcome_times[:count].astype(np.int64)
        return TransitionCounts(
            index,
            action,
            np.where(following < 0, ~following, following),
            times,
            self.graph.outcome_paid[:count] / times,
        )

    def ended(self) -> NDArray[np.bool_]:
        """Which of `outcomes` ended the episode."""
        return self.graph.outcome_state[: int(self.graph.tally[OUTCOMES])] < 0

    def distances(self, goal: int) -> Indices:
        """The steps from each index to ``goal`` by transitions that were seen, shape (M,); `FAR` where no way is known.

        A step that leads there once in k tries counts for k.
        """
        return distances_to(self.graph, len(self), self.num_actions, goal)

    def counted(self, num_states: int | None = None) -> CountedModel:
        """The same counts as a table: by index, or by the numbers of a world with so many states."""
        seen, ended, numbers = self.outcomes(), self.ended(), self.states
        if num_states is not None:
            seen = seen._replace(state=numbers[seen.state], next_state=numbers[seen.next_state])
        model = CountedModel(len(self) if num_states is None else num_states, self.num_actions)
        order = np.lexsort((seen.next_state, seen.action, seen.state))
        seen, ended = TransitionCounts._make(column[order] for column in seen), ended[order]
        ends = np.bincount(seen.next_state[ended], minlength=model.num_states)
        end_rewards = np.zeros(model.num_states)
        place = slice(0, len(self)) if num_states is None else numbers
        end_rewards[place] = self.graph.end_paid[: len(self)]
        model.add(seen, ends, end_rewards, ended=np.where(ended, seen.times, 0))
        model.starts[place] = self.graph.start_times[: len(self)]
        return model

    def visits(self) -> Integers:
        """How often each index was stood in, shape (M,)."""
        seen = self.outcomes()
        visits = np.bincount(seen.next_state, weights=seen.times, minlength=len(self)).astype(np.int64)
        visits += self.graph.start_times[: len(self)]
        return visits

    def way_to(self, goal: int) -> Floats:
        """A policy that takes the shortest known way to ``goal``, shape (M, A); all actions alike where none is known.

        A step that fails now and then is as long as the tries that it takes.
        """
        return shortest_way(self.graph, len(self), self.num_actions, goal)

    def merged(self, now: Integers) -> GrowingModel:
        """The same counts where each state of the world is now another one, several of them the same perhaps."""
        model = GrowingModel(self.num_actions)
        places = np.array([model.meet(int(now[state])) for state in self.states], dtype=np.int64)
        np.add.at(model.graph.start_times, places, self.graph.start_times[: len(self)])
        paying = np.flatnonzero(self.graph.end_paid[: len(self)])
        model.graph.end_paid[places[paying]] = self.graph.end_paid[paying]
        seen, ended = self.outcomes(), self.ended()
        following = np.where(ended, ~places[seen.next_state], places[seen.next_state])
        pairs = places[seen.state] * self.num_actions + seen.action
        squares = self.graph.outcome_squares[: len(pairs)]
        paid_in_all = seen.reward * seen.times
        for pair, state, times, paid, square in zip(pairs, following, seen.times, paid_in_all, squares, strict=True):
            model.make_room()
            add_outcome(model.graph, int(pair), int(state), 0.0)
            entry = find_outcome(model.graph, int(pair), int(state))
            model.graph.tries[pair] += times - 1
            model.graph.outcome_times[entry] += times - 1
            model.graph.outcome_paid[entry] += paid
            model.graph.outcome_squares[entry] += square
        tried = np.flatnonzero(model.graph.tries)
        first = model.graph.outcome_times[model.graph.first_outcome[tried]]
        model.graph.tally[REPEATS] = (model.graph.tries[tried] - 1).sum()
        model.graph.tally[SURPRISES] = (model.graph.tries[tried] - first).sum()
        return model

    # Storing --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds, as plain arrays."""
        states, count = len(self), int(self.graph.tally[OUTCOMES])
        sizes = dict.fromkeys(_OF_STATES, states)
        sizes |= {"tries": self.tries.size, "first_outcome": self.tries.size, "tally": len(self.graph.tally)}
        return {name: array[: sizes.get(name, count)] for name, array in self.graph._asdict().items()}

    @staticmethod
    def from_arrays(arrays: dict[str, NDArray[Any]], num_actions: int, num_states: int | None = None) -> GrowingModel:
        """The model that `arrays` gave, of a world with so many states; the arrays are copied, once they are checked.

        Compiled code follows the links between them, so links that lead out of them are refused, and so are those that
        do not belong to the counts.
        """
        if "outcome_squares" not in arrays and {"outcome_paid", "outcome_times"} <= arrays.keys():  # of 0.2.0
            with np.errstate(all="ignore"):
                arrays = arrays | {"outcome_squares": arrays["outcome_paid"] ** 2 / arrays["outcome_times"]}
        _check_arrays(arrays, num_actions, num_states)
        model = GrowingModel(num_actions)
        states, outcomes = int(arrays["tally"][STATES]), int(arrays["tally"][OUTCOMES])
        model.graph = _room_for(2 * states, num_actions, 2 * outcomes)
        for name, array in model.graph._asdict().items():
            array[: len(arrays[name])] = arrays[name]
        linked = _room_for(states, num_actions, outcomes)
        link(linked, arrays["outcome_pair"], arrays["outcome_state"], arrays["outcome_times"], arrays["outcome_paid"])
        for name, array in linked._asdict().items():
            if name not in _NOT_LINKED and not np.array_equal(array[: len(arrays[name])], arrays[name]):
                raise ValueError(f"the counts have {name} that do not belong to their outcomes")
        return model


def _check_arrays(arrays: dict[str, NDArray[Any]], num_actions: int, num_states: int | None) -> None:
    """Refuse arrays that are not those of a model: of other types and shapes, or with numbers out of range."""
    if arrays.keys() != set(Graph._fields):
        raise ValueError(f"the counts have {sorted(arrays)}, expected {sorted(Graph._fields)}")
    tally = arrays["tally"]
    if tally.shape != (4,) or tally.dtype.kind != "i" or (tally < 0).any():
        raise ValueError(f"the counts have the tally {tally!r}, expected four numbers that are not negative")
    met, count = int(tally[STATES]), int(tally[OUTCOMES])
    lengths = dict.fromkeys(_OF_STATES, met)
    lengths |= {"tries": met * num_actions, "first_outcome": met * num_actions, "tally": 4}
    for name, array in arrays.items():
        shape = (lengths.get(name, count),)
        kind = "f" if name in ("outcome_paid", "outcome_squares", "end_paid") else "i"
        if array.shape != shape or array.dtype.kind != kind:
            raise ValueError(f"the counts have {name} of {array.dtype} and shape {array.shape}, expected {shape}")
    most = np.iinfo(np.int64).max if num_states is None else num_states
    _check_range("states", arrays["numbers"], 0, most)
    if len(np.unique(arrays["numbers"])) != met:
        raise ValueError("the counts have a state twice")
    _check_range("outcome_pair", arrays["outcome_pair"], 0, met * num_actions)
    _check_range("outcome_state", arrays["outcome_state"], -met, met)
    _check_range("outcome_times", arrays["outcome_times"], 1, np.iinfo(np.int64).max)
    _check_range("start_times", arrays["start_times"], 0, np.iinfo(np.int64).max)
    if not all(np.isfinite(arrays[name]).all() for name in ("outcome_paid", "outcome_squares", "end_paid")):
        raise ValueError("the counts have rewards that are not finite")


def _check_range(name: str, numbers: NDArray[Any], least: int, stop: int) -> None:
    if numbers.size and not (numbers.min() >= least and numbers.max() < stop):
        raise ValueError(f"the counts have {name} outside {least} to {stop - 1}")


def _room_for(states: int, num_actions: int, outcomes: int = 0) -> Graph:
    states = max(states, FIRST_CAPACITY)
    outcomes = max(outcomes, 2 * states)

    def integers(size: int, value: int = 0) -> Indices:
        return np.full(size, value, dtype=np.int32)

    return Graph(
        tries=integers(states * num_actions),
        first_outcome=integers(states * num_actions, NONE),
        outcome_pair=integers(outcomes),
        outcome_state=integers(outcomes),
        outcome_times=integers(outcomes),
        outcome_paid=np.zeros(outcomes),
        outcome_squares=np.zeros(outcomes),
        next_outcome=integers(outcomes, NONE),
        first_into=integers(states, NONE),
        next_into=integers(outcomes, NONE),
        start_times=integers(states),
        end_paid=np.zeros(states),
        numbers=np.zeros(states, dtype=np.int64),
        tally=np.zeros(4, dtype=np.int64),
    )


# Compiled -------------------------------------------------------------------------------------------------------------


@compiled
def meet_next(graph: Graph, number: int) -> int:
    """The index of a state of the world that was never met; there must be room for it."""
    index = graph.tally[STATES]
    graph.tally[STATES] += 1
    graph.numbers[index] = number
    return int64(index)


@compiled
def add_step(graph: Graph, pair: int, following: int, reward: float) -> bool:
    """Count one step; there must be room for one more outcome. Returns what `GrowingModel.add` does."""
    entry = graph.first_outcome[pair]
    if entry != NONE:
        graph.tally[REPEATS] += 1
        if graph.outcome_state[entry] == following:  # by far the most frequent case
            graph.tries[pair] += 1
            graph.outcome_times[entry] += 1
            graph.outcome_paid[entry] += reward
            graph.outcome_squares[entry] += reward * reward
            return bool(graph.next_outcome[entry] != NONE)
        graph.tally[SURPRISES] += 1
    add_outcome(graph, pair, following, reward)
    return True


@compiled
def add_outcome(graph: Graph, pair: int, following: int, reward: float) -> bool:
    """Count one step; there must be room for one more outcome. Returns whether the pair had never led there."""
    graph.tries[pair] += 1
    entry, last = graph.first_outcome[pair], NONE
    while entry != NONE:
        if graph.outcome_state[entry] == following:
            graph.outcome_times[entry] += 1
            graph.outcome_paid[entry] += reward
            graph.outcome_squares[entry] += reward * reward
            return False
        last, entry = entry, graph.next_outcome[entry]
    entry = graph.tally[OUTCOMES]
    graph.tally[OUTCOMES] += 1
    graph.outcome_pair[entry], graph.outcome_state[entry] = pair, following
    graph.outcome_times[entry], graph.outcome_paid[entry] = 1, reward
    graph.outcome_squares[entry] = reward * reward
    graph.next_outcome[entry] = NONE
    if last == NONE:
        graph.first_outcome[pair] = entry
    else:
        graph.next_outcome[last] = entry
    if following >= 0:
        graph.next_into[entry] = graph.first_into[following]
        graph.first_into[following] = entry
    return True


@compiled
def find_outcome(graph: Graph, pair: int, following: int) -> int:
    """The entry of an outcome, or NONE."""
    entry = graph.first_outcome[pair]
    while entry != NONE and graph.outcome_state[entry] != following:
        entry = graph.next_outcome[entry]
    return int64(entry)


@compiled
def link(graph: Graph, pairs: Indices, states: Indices, times: Indices, paid: Floats) -> None:
    """Add outcomes in order, each once for all the times that it was seen, to a graph without any."""
    last = np.full(len(graph.first_outcome), NONE, dtype=np.int64)
    for entry in range(len(pairs)):
        pair, following = pairs[entry], states[entry]
        graph.outcome_pair[entry], graph.outcome_state[entry] = pair, following
        graph.outcome_times[entry], graph.outcome_paid[entry] = times[entry], paid[entry]
        graph.tries[pair] += times[entry]
        graph.next_outcome[entry] = NONE
        if last[pair] == NONE:
            graph.first_outcome[pair] = entry
        else:
            graph.next_outcome[last[pair]] = entry
        last[pair] = entry
        if following >= 0:
            graph.next_into[entry] = graph.first_into[following]
            graph.first_into[following] = entry
    graph.tally[OUTCOMES] = len(pairs)


@inlined
def outcome_cost(graph: Graph, entry: int) -> int:
    """c(s,a,s'): the tries that an outcome takes, rounded up."""
    times, tries = graph.outcome_times[entry], graph.tries[graph.outcome_pair[entry]]
    return int64(1) if times == tries else int64((tries + times - 1) // times)


@compiled
def distances_to(graph: Graph, num_states: int, num_actions: int, goal: int) -> Indices:
    """Nearest first, backwards from the goal."""
    distances = np.full(num_states, FAR, dtype=np.int32)
    keys, heap = (
        np.empty(graph.tally[OUTCOMES] + 1, dtype=np.int64),
        np.empty(graph.tally[OUTCOMES] + 1, dtype=np.int32),
    )
    distances[goal] = 0
    size = push(keys, heap, 0, 0, goal)
    while size > 0:
        key, state = keys[0], heap[0]
        size = pop(keys, heap, size)
        if key > distances[state]:
            continue
        entry = graph.first_into[state]
        while entry != NONE:
            before = graph.outcome_pair[entry] // num_actions
            distance = distances[state] + outcome_cost(graph, entry)
            if distance < distances[before]:
                distances[before] = distance
                size = push(keys, heap, size, distance, before)
            entry = graph.next_into[entry]
    return distances


@compiled
def shortest_way(graph: Graph, num_states: int, num_actions: int, goal: int) -> Floats:
    """The policy of `GrowingModel.way_to`."""
    distances = distances_to(graph, num_states, num_actions, goal)
    policy = np.full((num_states, num_actions), 1.0 / num_actions)
    for state in range(num_states):
        if state == goal or distances[state] == FAR:
            continue
        policy[state] = 0.0
        ties = 0
        for action in range(num_actions):
            entry = graph.first_outcome[state * num_actions + action]
            while entry != NONE:
                following = graph.outcome_state[entry]
                if following >= 0 and outcome_cost(graph, entry) + distances[following] == distances[state]:
                    policy[state, action] = 1.0
                    ties += 1
                    break
                entry = graph.next_outcome[entry]
        policy[state] /= ties
    return policy


@compiled
def push(keys: Integers, states: Indices, size: int, key: int, state: int) -> int:
    """Add to a heap; returns its size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if keys[parent] <= key:
            break
        keys[place], states[place] = keys[parent], states[parent]
        place = parent
    keys[place], states[place] = key, state
    return size + 1


@compiled
def pop(keys: Integers, states: Indices, size: int) -> int:
    """Remove the first of a heap; returns its size."""
    size -= 1
    key, state = keys[size], states[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[place], states[place] = keys[child], states[child]
        place = child
    keys[place], states[place] = key, state
    return size
