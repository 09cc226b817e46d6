"""Ways kept as actions: first return, then explore (Ecoffet et al. 2021), by restart and step alone.

    draw two states that were met, one that was chosen n times with weight 1 / sqrt(n + 1); choose the one whose way
    returned more
    restart, and take the actions by which it was reached
    go on with random actions, each held for twenty steps on average, until nothing was new for a while
    keep the way to every state that is new, or that was reached with a larger return, or sooner

Where cells mix states (a small picture shows no speed, and not how far a jump has come), the plan on their counts leads
nowhere. But in a world that repeats the same actions from the start lead to the same place, whatever cells say. That it
repeats is seen in every return: it arrives in the state that it should, with the return that it should, or it is
counted as failed; where returns fail, ways are given up.

Every step of every return is one of the world's, and is counted.

A way is a node of a tree of actions: its last action, and the way before that. When the world's states change
(`World.refit`), ways stay what they are, and what their ends are now is seen when they are next gone.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CHANGE = 0.05
"""How often another action is drawn: Ecoffet et al. repeat the last one with 0.95."""
STEPS = 100
"""So many random steps follow a return, as published; those after the last new state, so that none is cut off there."""
FEWEST_RETURNS, MOST_FAILED = 10, 0.2
"""Ways are given up if more than this share of so many returns or more failed."""
ROOT = -1
"""The way of no actions."""
NOWHERE = -1
"""The state of a way's end that is not known since states have changed."""
SAME = 1e-6
"""Returns that differ by less, relative to what they are, are the same."""
ARRAYS = ("way_parents", "way_actions", "way_states", "way_ends", "way_times", "way_returns")
"""What `arrays` gives."""


class Best(NamedTuple):
    """The way with the largest return."""

    returned: float
    node: int
    samples: int
    """After how many samples it was found."""


class StoredWays:
    """The way to every state that was met, and episodes that go back along them and on.

    Args:
        num_actions: of the world.
        seed: where its random choices come from.
    """

    def __init__(self, num_actions: int, seed: int) -> None:
        self._num_actions, self._seed = num_actions, seed
        self._parents: list[int] = []  # of every node
        self._actions: list[int] = []
        self._depths: list[int] = []
        self._states: list[int] = []  # of every place that it may return to
        self._ends: list[int] = []  # its node
        self._times: list[int] = []  # how often it was chosen
        self._returns: list[float] = []
        self._place: dict[int, int] = {}
        self.best = Best(0.0, ROOT, 0)
        self.episodes = self.arrived = self.failed = 0
        self._generator = np.random.default_rng()
        self._target, self._path, self._done = 0, list[int](), 0
        self._node, self._pending, self._returned = ROOT, list[int](), 0.0
        self._held, self._left = 0, 0

    def __len__(self) -> int:
        """To how many places there is a way."""
        return len(self._states)

    @property
    def given_up(self) -> bool:
        """Whether the world does not repeat."""
        returns = self.arrived + self.failed
        return returns >= FEWEST_RETURNS and self.failed > MOST_FAILED * returns

    # One episode ----------------------------------------------------------------------------------------------------

    def begin(self, state: int, *, returning: bool) -> None:
        """An episode begins in this state: choose where to return to, unless somebody else acts."""
        self._node, self._pending, self._returned = ROOT, [], 0.0
        self._path, self._done = [], 0
        self._note(state)
        if not returning:
            return
        self.episodes += 1
        self._generator = np.random.default_rng([self._seed, 31, self.episodes])
        self._target = self._choose()
        self._times[self._target] += 1
        self._path = self._nodes_to(self._ends[self._target])
        if not self._path and self._states[self._target] == NOWHERE:
            self._drop(self._target)
        self._held, self._left = int(self._generator.integers(self._num_actions)), STEPS

    def action(self) -> int:
        """The next action: the way's, or a random one, held for a while."""
        if self._done < len(self._path):
            return self._actions[self._path[self._done]]
        if self._generator.random() < CHANGE:
            self._held = int(self._generator.integers(self._num_actions))
        return self._held

    def took(self, action: int, state: int, reward: float, ended: bool, samples: int) -> bool:
        """Take in what an action led to, its own or another's; returns whether there is more to do in the episode."""
        self._returned += reward
        if self._done < len(self._path):
            self._node = self._path[self._done]
            self._done += 1
            if self._done == len(self._path) or ended:
                self._arrive(state, ended)
        else:
            self._pending.append(action)
            self._left -= 1
        if self._returned > self.best.returned + SAME * abs(self.best.returned):
            self.best = Best(self._returned, self._keep(), samples)
        if ended:
            return False
        if self._note(state):
            self._left = STEPS
        return self._left > 0

    def _arrive(self, state: int, ended: bool) -> None:
        """A return is over: whether it came to where it should."""
        target, short = self._target, self._done < len(self._path)
        expected = self._states[target]
        same = abs(self._returned - self._returns[target]) <= SAME * max(1.0, abs(self._returns[target]))
        if short or ended or not same or expected not in (NOWHERE, state):
            self.failed += 1
            self._drop(target)
        else:
            self.arrived += 1
            if expected == NOWHERE:  # its state is known by another place from now on
                self._drop(target)
        self._path = self._path[: self._done]

    def _note(self, state: int) -> bool:
        """Keep the way to this state if it is the first, a better or a shorter one; whether the state is new."""
        place = self._place.get(state)
        if place is None:
            self._place[state] = len(self._states)
            self._states.append(state)
            self._ends.append(self._keep())
            self._times.append(0)
            self._returns.append(self._returned)
            return True
        before = self._returns[place]
        steps = self._depth(self._node) + len(self._pending)
        shorter = self._returned == before and steps < self._depth(self._ends[place])
        if self._returned > before or shorter:
            self._ends[place], self._returns[place], self._times[place] = self._keep(), self._returned, 0
        return False

    def _keep(self) -> int:
        """The node of the way that the episode has gone."""
        for action in self._pending:
            self._parents.append(self._node)
            self._actions.append(action)
            self._depths.append(self._depth(self._node) + 1)
            self._node = len(self._parents) - 1
        self._pending = []
        return self._node

    def _depth(self, node: int) -> int:
        return 0 if node == ROOT else self._depths[node]

    def _choose(self) -> int:
        """Of two places the one that returned more."""
        first, second = self._draw(), self._draw()
        return second if self._returns[second] > self._returns[first] else first

    def _draw(self) -> int:
        """A place, by how seldom it was chosen."""
        while True:
            place = int(self._generator.integers(len(self._states)))
            if self._generator.random() < (self._times[place] + 1) ** -0.5:
                return place

    def _nodes_to(self, node: int) -> list[int]:
        nodes = []
        while node != ROOT:
            nodes.append(node)
            node = self._parents[node]
        return nodes[::-1]

    def _drop(self, place: int) -> None:
        """Forget a place; the last one takes its number."""
        self._place.pop(self._states[place], None)
        for column in (self._states, self._ends, self._times):
            column[place] = column[-1]
            column.pop()
        self._returns[place] = self._returns[-1]
        self._returns.pop()
        if place < len(self._states) and self._states[place] != NOWHERE:
            self._place[self._states[place]] = place

    # All ways -------------------------------------------------------------------------------------------------------

    def best_way(self) -> list[int]:
        """The actions that returned most."""
        return [self._actions[node] for node in self._nodes_to(self.best.node)]

    def forget_states(self) -> None:
        """The world's states have changed."""
        self._states, self._place = [NOWHERE] * len(self._states), {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All ways, as plain arrays."""
        columns = (self._parents, self._actions, self._states, self._ends, self._times)
        found: dict[str, NDArray[Any]] = {
            name: np.array(column, dtype=np.int32) for name, column in zip(ARRAYS, columns, strict=False)
        }
        return found | {"way_returns": np.array(self._returns, dtype=np.float64)}

    def numbers(self) -> dict[str, Any]:
        """What else there is to store, as plain data."""
        names = ("episodes", "arrived", "failed")
        return {"best": list(self.best), **{name: getattr(self, name) for name in names}}

    @staticmethod
    def from_stored(
        arrays: dict[str, NDArray[Any]], numbers: dict[str, Any], num_actions: int, seed: int
    ) -> StoredWays:
        """The ways that `arrays` and `numbers` gave, once they are checked."""
        _check(arrays, num_actions)
        ways = StoredWays(num_actions, seed)
        ways._parents, ways._actions, ways._states, ways._ends, ways._times, ways._returns = (
            arrays[name].tolist() for name in ARRAYS
        )
        for parent in ways._parents:
            ways._depths.append(ways._depth(parent) + 1)
        ways._place = {state: place for place, state in enumerate(ways._states) if state != NOWHERE}
        ways.episodes, ways.arrived, ways.failed = (int(numbers[name]) for name in ("episodes", "arrived", "failed"))
        returned, node, samples = numbers["best"]
        ways.best = Best(float(returned), int(node), int(samples))
        good = min(ways.episodes, ways.arrived, ways.failed) >= 0 and math.isfinite(ways.best.returned)
        if not good or not ROOT <= ways.best.node < len(ways._parents):
            raise ValueError(f"its ways have {numbers!r:.200}, out of range")
        return ways


def _check(arrays: dict[str, NDArray[Any]], num_actions: int) -> None:
    """Refuse arrays that are no ways: a way before each must come before it, or following them would not end."""
    if set(arrays) != set(ARRAYS):
        raise ValueError(f"the ways have {sorted(arrays)}, expected {sorted(ARRAYS)}")
    nodes, places = len(arrays["way_parents"]), len(arrays["way_states"])
    for name, array in arrays.items():
        size, kind = nodes if name in ARRAYS[:2] else places, "f" if name == "way_returns" else "i"
        if array.shape != (size,) or array.dtype.kind != kind:
            raise ValueError(f"the ways have {name} of {array.dtype} and shape {array.shape}, expected {size} numbers")
    known = arrays["way_states"][arrays["way_states"] != NOWHERE]
    good = (
        (arrays["way_parents"] >= ROOT).all()
        and (arrays["way_parents"] < np.arange(nodes)).all()
        and ((arrays["way_actions"] >= 0) & (arrays["way_actions"] < num_actions)).all()
        and (arrays["way_states"] >= NOWHERE).all()
        and len(np.unique(known)) == len(known)
        and ((arrays["way_ends"] >= ROOT) & (arrays["way_ends"] < nodes)).all()
        and (arrays["way_times"] >= 0).all()
        and np.isfinite(arrays["way_returns"]).all()
    )
    if not good:
        raise ValueError("the ways have numbers that are out of range")
