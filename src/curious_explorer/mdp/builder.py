"""Describe a finite MDP in words.

    builder = MDPBuilder()
    builder.state("A").action("left").to("B", 0.8).to("A", 0.2)
    builder.state("A").action("right", reward=0.5).to("A")
    mdp = builder.terminal("B").start("A").build()

States and actions are numbered in the order in which they are first mentioned, unless `MDPBuilder.states` and
`MDPBuilder.actions` fix the order. Naming the same next state twice adds the probabilities up.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from curious_explorer.mdp.assembly import UNSCALED, RewardScale, merge_outcomes
from curious_explorer.mdp.finite_mdp import FiniteMDP

_Outcome = tuple[int, int, int, float, float]
"""State, action, next state, probability, reward."""
NO_REWARD_OF_ITS_OWN = math.nan
"""The reward of an outcome that was given none: that of its pair holds."""
MOST_NAMES_COMPARED = 1000
"""Looking for a name that was meant takes time; among more names than these it is not worth it."""


class MDPBuilder:
    """Collects states, actions and outcomes by name; `build` turns them into a `FiniteMDP`."""

    def __init__(self) -> None:
        self._states = _Names("state")
        self._actions = _Names("action")
        self._outcomes: list[_Outcome] = []
        self._pair_rewards: dict[tuple[int, int], float] = {}
        self._pairs_with_outcome_rewards: set[tuple[int, int]] = set()
        self._terminal: set[int] = set()
        self._start: dict[int, float] | None = None
        self._missing_stay = False

    def states(self, *names: str) -> MDPBuilder:
        """Fix the order of the states; after that, any other name is an error."""
        self._states.fix(names)
        return self

    def actions(self, *names: str) -> MDPBuilder:
        """Fix the order of the actions; after that, any other name is an error."""
        self._actions.fix(names)
        return self

    def state(self, name: str) -> StateHandle:
        """Go on with a state, new or already known."""
        return StateHandle(self, self._states.index(name))

    def terminal(self, *names: str) -> MDPBuilder:
        """Say which states end an episode; they need no actions."""
        self._terminal.update(self._states.index(name) for name in names)
        return self

    def start(self, where: str | Mapping[str, float]) -> MDPBuilder:
        """Say where episodes start: one state, or a probability for each of several."""
        chances = where if isinstance(where, Mapping) else {where: 1.0}
        self._start = {
            self._states.index(name): _number(chance, f"start: the probability of state {name!r}")
            for name, chance in chances.items()
        }
        return self

    def missing_actions_stay(self) -> MDPBuilder:
        """Let every action that a state does not describe leave it where it is; without this they are an error."""
        self._missing_stay = True
        return self

    def build(self, *, reward_scale: RewardScale = UNSCALED) -> FiniteMDP:
        """Validate the description and return the MDP; ``reward_scale`` is how its rewards were scaled, if they were.

        Raises:
            ValueError: naming the state and the action, if an action is missing in a state, probabilities do not sum
                to one, or a reward lies outside [0, 1].
        """
        num_states, num_actions = len(self._states), len(self._actions)
        if num_states == 0 or num_actions == 0:
            raise ValueError(
                f"the description has {num_states} states and {num_actions} actions, expected at least one of each; "
                'begin with builder.state("A").action("left").to("B")'
            )
        if self._start is None:
            raise ValueError('no start was given; call builder.start("A") or builder.start({"A": 0.5, "B": 0.5})')
        start = np.zeros(num_states)
        start[list(self._start)] = list(self._start.values())

        outcomes = [*self._outcomes, *self._loops_for_missing_pairs()]
        state, action, column = np.array([outcome[:3] for outcome in outcomes], dtype=np.int64).T
        probability, own_reward = np.array([outcome[3:] for outcome in outcomes]).T
        pair_reward = np.array([self._pair_rewards.get(outcome[:2], 0.0) for outcome in outcomes])
        rows, rewards = merge_outcomes(
            state * num_actions + action,
            column,
            probability,
            np.where(np.isnan(own_reward), pair_reward, own_reward),
            (num_states * num_actions, num_states),
        )
        return FiniteMDP.from_rows(
            rows,
            rewards,
            start,
            terminal=sorted(self._terminal),
            state_names=self._states.in_order,
            action_names=self._actions.in_order,
            reward_scale=reward_scale,
        )

    def _loops_for_missing_pairs(self) -> list[_Outcome]:
        """Self-loops for the pairs without outcomes, where that is allowed; the first of the others is named."""
        described = {outcome[:2] for outcome in self._outcomes}
        loops: list[_Outcome] = []
        for state in range(len(self._states)):
            may_stay = self._missing_stay or state in self._terminal
            for action in range(len(self._actions)):
                if (state, action) in described:
                    continue
                if not may_stay:
                    raise ValueError(
                        f"{self._words((state, action))}: leads nowhere, expected at least one .to(...); describe it, "
                        "mark the state with builder.terminal(...), or call builder.missing_actions_stay()"
                    )
                loops.append((state, action, state, 1.0, NO_REWARD_OF_ITS_OWN))
        return loops

    def _words(self, pair: tuple[int, int]) -> str:
        return f"state {self._states.in_order[pair[0]]!r}, action {self._actions.in_order[pair[1]]!r}"

    def _open_pair(self, state: int, name: str, reward: float | None) -> ActionHandle:
        pair = (state, self._actions.index(name))
        if reward is not None:
            place = self._words(pair)
            value = _number(reward, f"{place}: the reward")
            if self._pair_rewards.setdefault(pair, value) != value:
                raise ValueError(
                    f"{place}: the reward is given as {self._pair_rewards[pair]} and as {value}; give it once"
                )
            self._check_rewards_given_one_way(pair)
        return ActionHandle(self, pair)

    def _add_outcome(self, pair: tuple[int, int], name: str, probability: float, reward: float | None) -> None:
        place = f"{self._words(pair)}, next state {name!r}"
        chance = _number(probability, f"{place}: the probability")
        if not 0.0 <= chance <= 1.0:
            raise ValueError(f"{place}: the probability is {chance}, expected a number in [0, 1]")
        own_reward = NO_REWARD_OF_ITS_OWN
        if reward is not None:
            own_reward = _number(reward, f"{place}: the reward")
            self._pairs_with_outcome_rewards.add(pair)
            self._check_rewards_given_one_way(pair)
        self._outcomes.append((*pair, self._states.index(name), chance, own_reward))

    def _check_rewards_given_one_way(self, pair: tuple[int, int]) -> None:
        if pair in self._pair_rewards and pair in self._pairs_with_outcome_rewards:
            raise ValueError(
                f"{self._words(pair)}: the reward is given both for the pair, action(..., reward=...), and for a "
                "transition, to(..., reward=...); choose one of the two"
            )


class _GoingOn:
    """What every handle can go on with: another state, the ends, the start, and the MDP itself."""

    _builder: MDPBuilder

    def state(self, name: str) -> StateHandle:
        """Go on with another state."""
        return self._builder.state(name)

    def terminal(self, *names: str) -> MDPBuilder:
        """Say which states end an episode."""
        return self._builder.terminal(*names)

    def start(self, where: str | Mapping[str, float]) -> MDPBuilder:
        """Say where episodes start."""
        return self._builder.start(where)

    def build(self) -> FiniteMDP:
        """The MDP described."""
        return self._builder.build()


class StateHandle(_GoingOn):
    """One state of a description: go on with `action`."""

    def __init__(self, builder: MDPBuilder, state: int) -> None:
        self._builder = builder
        self._state = state

    def action(self, name: str, reward: float | None = None) -> ActionHandle:
        """Go on with an action of this state, new or already known.

        ``reward`` is what the pair pays wherever it leads (0 if never given); or give rewards in `ActionHandle.to`.
        """
        return self._builder._open_pair(self._state, name, reward)


class ActionHandle(_GoingOn):
    """One pair of a state and an action: go on with `to`, with another `action` of the state, or another `state`."""

    def __init__(self, builder: MDPBuilder, pair: tuple[int, int]) -> None:
        self._builder = builder
        self._pair = pair

    def to(self, name: str, probability: float = 1.0, *, reward: float | None = None) -> ActionHandle:
        """Add an outcome: the next state, how likely it is, and what it pays if rewards depend on the next state."""
        self._builder._add_outcome(self._pair, name, probability, reward)
        return self

    def action(self, name: str, reward: float | None = None) -> ActionHandle:
        """Go on with another action of the same state."""
        return self._builder._open_pair(self._pair[0], name, reward)


class _Names:
    """Names of one kind, numbered in order of first mention until an order is fixed."""

    def __init__(self, kind: str) -> None:
        self.in_order: list[str] = []
        self._kind = kind
        self._index: dict[str, int] = {}
        self._fixed = False

    def __len__(self) -> int:
        return len(self.in_order)

    def fix(self, names: tuple[str, ...]) -> None:
        if self._fixed or self.in_order:
            raise ValueError(
                f"the order of the {self._kind}s is settled already ({self.in_order[0]!r} is the first); call "
                f"builder.{self._kind}s(...) once, before any {self._kind} is mentioned"
            )
        for name in names:
            if name in self._index:
                raise ValueError(f"{self._kind} {name!r} is listed twice in builder.{self._kind}s(...)")
            self.index(name)
        self._fixed = bool(names)

    def index(self, name: str) -> int:
        if not isinstance(name, str):
            raise ValueError(f"a {self._kind} is called {name!r}, expected a string")
        known = self._index.get(name)
        if known is not None:
            return known
        if self._fixed:
            near = difflib.get_close_matches(name, self.in_order[:MOST_NAMES_COMPARED], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{self._kind} {name!r} is not among those of builder.{self._kind}s(...){hint}")
        self._index[name] = len(self.in_order)
        self.in_order.append(name)
        return self._index[name]


def _number(value: Any, what: str) -> float:
    """A finite number as a float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{what} is {value!r}, expected a number")
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value}, expected a finite number")
    return float(value)


FiniteMDP.builder = MDPBuilder
