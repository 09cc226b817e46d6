"""Actors: policies made ready to choose one action at a time, and the random numbers that they use.

Each call of a world has one random stream, seeded by the world's seed and the number of the call, so that a call's
result depends on nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.gym.cells import UNKNOWN
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.worlds.policies import ObservationPolicy, Policy, StoredPolicy, check_any_policy
from curious_explorer.worlds.targets import NO_WAY, Targets

BLOCK_SIZE = 4_096
CACHED_ACTORS = 1_024


class RandomStream:
    """Uniform random numbers, generated in blocks because generating a single one costs a microsecond.

    ``block`` holds those that are generated already, the next one last.
    """

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self.block: list[float] = []

    def uniform(self) -> float:
        """A number in [0, 1)."""
        if not self.block:
            self.block = self.generator.random(BLOCK_SIZE).tolist()
        return self.block.pop()

    def stopping_time(self, gamma: float) -> int:
        """The number of steps of a walk that stops with probability ``1 - gamma`` before each."""
        return int(self.generator.geometric(1.0 - gamma)) - 1

    def choice(self, cumulative: list[float]) -> int:
        """An index drawn by probabilities that `cumulate` has summed."""
        return bisect_right(cumulative, self.uniform())


def cumulate(probabilities: Floats) -> list[float]:
    """Cumulative probabilities before the last possible index, so that no rounding picks an impossible one."""
    last = int(np.flatnonzero(probabilities)[-1])
    cumulative: list[float] = np.cumsum(probabilities[:last]).tolist()
    return cumulative


class TableActor:
    """Acts by the row of a table that belongs to the cell, and uniformly in a cell that was never met.

    Rows are cumulated when they are first needed: there may be many more cells than a walk ever sees.
    """

    def __init__(self, table: Floats, choices: list[Any]) -> None:
        self._table, self._choices = table, choices
        self._rows: dict[int, list[float]] = {UNKNOWN: cumulate(np.full(len(choices), 1.0 / len(choices)))}

    def choose(self, observation: Any, cell: int, stream: RandomStream) -> tuple[int, Any]:
        """The action's number, and the action."""
        try:
            row = self._rows[cell]
        except KeyError:
            row = self._rows[cell] = cumulate(self._table[cell])
        block = stream.block  # `stream.uniform()`, without the call
        number = bisect_right(row, block.pop() if block else stream.uniform())
        return number, self._choices[number]


class TargetActor:
    """Goes to a cell by a plan that has an action, or none, for every cell.

    Args:
        targets: the cells of a roll-in.
        goal: the number of this one among them.
        choices: the actions, in the order of their numbers.
    """

    def __init__(self, targets: Targets, goal: int, choices: list[Any]) -> None:
        self.target, self.limit = int(targets.states[goal]), int(targets.limits[goal])
        self.arrival = float(targets.arrival[goal])
        self._action = targets.actions(goal).item
        self._targets, self._goal, self._choices = targets, goal, choices

    def choose(self, observation: Any, cell: int, stream: RandomStream) -> tuple[int, Any]:
        """The action's number, and the action; nothing is drawn."""
        number = self._action(cell)
        return number, self._choices[number]

    def knows_way(self, cell: int) -> bool:
        """Whether there is a way from this cell that is known."""
        return cell != UNKNOWN and self._action(cell) != NO_WAY

    def note(self, arrived: bool, steps: int) -> None:
        """Count one try."""
        self._targets.note(self._goal, arrived, steps)


class ObservationActor:
    """Acts by a policy that sees observations; its actions have no numbers."""

    def __init__(self, policy: ObservationPolicy) -> None:
        self.policy = policy

    def choose(self, observation: Any, cell: int, stream: RandomStream) -> tuple[int, Any]:
        """-1, and the action."""
        return -1, self.policy.act([observation], stream.generator)[0]


Actor: TypeAlias = TableActor | TargetActor | ObservationActor


class ActorCache:
    """Makes actors of policies, and keeps those of roll-ins, whose policies are the same in every call.

    Args:
        num_states: how many rows a table must have.
        choices: the actions, in the order of their numbers.
        hold: how many steps of the environment an action by number takes.
    """

    def __init__(self, num_states: int, choices: list[Any], hold: int = 1) -> None:
        self.num_states, self._choices, self._hold = num_states, choices, hold
        self._kept: OrderedDict[int, tuple[Policy, Actor]] = OrderedDict()  # by id; policies held, or ids would recur

    def actor(self, policy: Policy, name: str = "policy") -> Actor:
        """An actor for this policy, which is checked."""
        checked = check_any_policy(policy, self.num_states, len(self._choices), name=name)
        if isinstance(checked, StoredPolicy):
            return ObservationActor(NetworkPolicy.decode(checked.encode()))
        if isinstance(checked, ObservationPolicy):
            return ObservationActor(checked)
        return TableActor(checked, self._choices)

    def target_actor(self, targets: Targets, goal: int) -> TargetActor:
        """An actor that goes to a target, by its number."""
        return TargetActor(targets, goal, self._choices)

    def steps(self, actor: Actor, choices: int) -> int:
        """How many steps of the environment it takes an actor to choose so many actions."""
        return choices if isinstance(actor, ObservationActor) else choices * self._hold

    def roll_in_actors(self, policies: Sequence[Policy]) -> list[Actor]:
        """An actor for each policy of a roll-in."""
        actors = []
        for place, policy in enumerate(policies):
            if id(policy) not in self._kept:
                self._kept[id(policy)] = (policy, self.actor(policy, f"policy {place} of the roll-in"))
                if len(self._kept) > CACHED_ACTORS:
                    self._kept.popitem(last=False)
            actors.append(self._kept[id(policy)][1])
        return actors
