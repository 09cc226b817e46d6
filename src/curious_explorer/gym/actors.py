"""Who acts: a table over cells, or a policy that sees observations, behind one small interface.

Random numbers come from one generator for each call of a world, seeded by the world's seed and the number of the call,
so that a call's result depends on nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.gym.cells import UNKNOWN
from curious_explorer.worlds.policies import ObservationPolicy, Policy, check_any_policy

DRAWN_AT_ONCE = 4_096
ACTORS_KEPT = 1_024


class RandomStream:
    """Uniform draws, one at a time but made in blocks, because a draw by itself costs a microsecond.

    ``block`` holds those that are drawn already, the next one last.
    """

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self.block: list[float] = []

    def uniform(self) -> float:
        """A number in [0, 1)."""
        if not self.block:
            self.block = self.generator.random(DRAWN_AT_ONCE).tolist()
        return self.block.pop()

    def stopping_time(self, gamma: float) -> int:
        """How many steps a walk takes that stops with probability ``1 - gamma`` before each."""
        return int(self.generator.geometric(1.0 - gamma)) - 1

    def pick(self, thresholds: list[float]) -> int:
        """A place, given what `cumulative` says of the probabilities of all places."""
        return bisect_right(thresholds, self.uniform())


def cumulative(probabilities: Floats) -> list[float]:
    """Cumulative probabilities of all places but the last possible one, so that no rounding picks an impossible one."""
    last = int(np.flatnonzero(probabilities)[-1])
    thresholds: list[float] = np.cumsum(probabilities[:last]).tolist()
    return thresholds


class TableActor:
    """Acts by the row of a table that belongs to the cell; by no preference in a cell that was never met.

    Rows are made ready when they are first needed: there may be many more cells than a walk ever sees.
    """

    def __init__(self, table: Floats, choices: list[Any]) -> None:
        self._table, self._choices = table, choices
        self._rows: dict[int, list[float]] = {UNKNOWN: cumulative(np.full(len(choices), 1.0 / len(choices)))}

    def choose(self, observation: Any, cell: int, draws: RandomStream) -> tuple[int, Any]:
        """The action's number, and the action."""
        try:
            row = self._rows[cell]
        except KeyError:
            row = self._rows[cell] = cumulative(self._table[cell])
        block = draws.block  # `draws.uniform()`, without the call
        number = bisect_right(row, block.pop() if block else draws.uniform())
        return number, self._choices[number]


class ObservationActor:
    """Acts by a policy that sees the observation; its actions have no numbers."""

    def __init__(self, policy: ObservationPolicy) -> None:
        self.policy = policy

    def choose(self, observation: Any, cell: int, draws: RandomStream) -> tuple[int, Any]:
        """No number, and the action."""
        return -1, self.policy.act([observation], draws.generator)[0]


Actor = TableActor | ObservationActor


class ActorCache:
    """Who acts by which policy.

    Args:
        num_states: how many rows a table must have.
        choices: the actions behind their numbers.
    """

    def __init__(self, num_states: int, choices: list[Any]) -> None:
        self._num_states, self._choices = num_states, choices
        self._known: OrderedDict[int, tuple[Policy, Actor]] = OrderedDict()  # policies are held, or ids would be reused

    def act_by(self, policy: Policy, name: str = "policy") -> Actor:
        """Who acts by this policy, checked."""
        checked = check_any_policy(policy, self._num_states, len(self._choices), name=name)
        return (
            ObservationActor(checked) if isinstance(checked, ObservationPolicy) else TableActor(checked, self._choices)
        )

    def roll_in_by(self, policies: Sequence[Policy]) -> list[Actor]:
        """Who acts by each policy of a roll-in, known again by identity: they are the same in every call."""
        actors = []
        for place, policy in enumerate(policies):
            if id(policy) not in self._known:
                self._known[id(policy)] = (policy, self.act_by(policy, f"policy {place} of the roll-in"))
                if len(self._known) > ACTORS_KEPT:
                    self._known.popitem(last=False)
            actors.append(self._known[id(policy)][1])
        return actors
