"""The finite set of actions that an agent chooses from: its action number i is the action ``choices[i]``.

All actions of a discrete space are in its set. A box is explored by a few values along each dimension: full strength in
either direction, and none. That is enough to reach states, if not to act best in them, which is up to a learner of
continuous actions. Where all combinations would be too many, each dimension is moved alone, and all of them together in
a few directions. A set may *hold* its actions: each is then taken so many times in a row.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.errors import ActionError
from curious_explorer.validation import as_list, check_count

MAX_CHOICES = 1_000
MOST_COMBINED = 81
"""Unless said otherwise, all combinations are taken of four dimensions of a box with three values, not of more."""
DIRECTIONS = 16
"""In so many directions all dimensions are moved together where they are too many to be combined."""
FAR = 1e6
"""Bounds beyond this are none."""


class ActionSet:
    """Actions of an environment, by number.

    Args:
        choices: actions of the environment, in the order of their numbers.
        hold: how many times in a row each is taken.
    """

    def __init__(self, choices: Sequence[Any], *, hold: int = 1) -> None:
        if len(choices) < 1:
            raise ActionError("the set of actions is empty; expected at least one action")
        self.choices = list(choices)
        self.hold = check_count(hold, "hold", least=1)

    def __len__(self) -> int:
        return len(self.choices)

    @staticmethod
    def of(space: spaces.Space[Any], actions: int | Sequence[Any] | ActionSet | None = None) -> ActionSet:
        """The set for an action space.

        Args:
            space: the action space.
            actions: how many values along each dimension of a box; or a list of actions, or a set of them; None: a
                small set that includes the extremes and nothing.
        """
        if isinstance(actions, ActionSet):
            return ActionSet(ActionSet.of(space, actions.choices).choices, hold=actions.hold)
        if actions is not None and not isinstance(actions, int):
            choices = as_list(actions, "actions", "actions")
            return ActionSet([_checked_action(space, number, choice) for number, choice in enumerate(choices)])
        if actions is not None and not isinstance(space, spaces.Box):
            raise ActionError(
                f"actions is {actions}, a number of values along each dimension of a box, but the action space is "
                f"{space}; leave it out, or give a list of actions"
            )
        if isinstance(space, spaces.Box) and actions is not None:
            return ActionSet(_values_of(space, actions))
        return ActionSet(_small_set(space))

    def held(self, hold: int) -> ActionSet:
        """The same actions, each taken so many times in a row."""
        return ActionSet(self.choices, hold=hold)

    def description(self) -> list[Any] | dict[str, Any]:
        """As plain data: the choices, and for how long they are held if they are."""
        choices = [plain_action(choice) for choice in self.choices]
        return choices if self.hold == 1 else {"choices": choices, "hold": self.hold}

    @staticmethod
    def from_description(
        described: Sequence[Any] | Mapping[str, Any], space: spaces.Space[Any] | None = None
    ) -> ActionSet:
        """A set from its description; with the action space, actions have the space's type."""
        choices = described["choices"] if isinstance(described, Mapping) else described
        hold = described["hold"] if isinstance(described, Mapping) else 1
        return ActionSet([choice if space is None else _as_action(space, choice) for choice in choices], hold=hold)

    def in_space(self, space: spaces.Space[Any]) -> ActionSet:
        """The same set in a space, whose types its actions take."""
        try:
            return ActionSet([_as_action(space, choice) for choice in self.choices], hold=self.hold)
        except (TypeError, ValueError, KeyError, IndexError):
            raise ActionError(
                f"actions are {self.choices[0]!r} and such, but those of the environment are {space}; use the "
                "environment under the wrappers under which it was explored"
            ) from None

    def describe(self) -> str:
        """The set in words."""
        held = f", each held for {self.hold} steps, since one step alone changes next to nothing" * (self.hold > 1)
        first = self.choices[0]
        if isinstance(first, np.ndarray) and first.dtype.kind == "f":
            values = np.unique(np.array(self.choices))
            shown = ", ".join(f"{value:.3g}" for value in values[:6])
            return f"{len(self)} of values {shown}{', ...' if len(values) > 6 else ''}{held}"
        return f"{len(self)} of them{held}"


def _small_set(space: spaces.Space[Any]) -> list[Any]:
    """The choices for a space of which nothing was said."""
    if isinstance(space, spaces.Discrete):
        return [int(space.start) + number for number in range(int(space.n))]
    if isinstance(space, spaces.Box):
        low, high = (np.asarray(bound, dtype=np.float64).ravel() for bound in (space.low, space.high))
        columns = [extremes(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
        if space.dtype is not None and space.dtype.kind in "iu":
            columns = [[float(value) for value in dict.fromkeys(map(round, column))] for column in columns]
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = zip(space.start.ravel().tolist(), space.nvec.ravel().tolist(), strict=True)
        columns = [list(range(start, start + size)) for start, size in sizes]
    elif isinstance(space, spaces.MultiBinary):
        columns = [[0, 1] for _ in range(int(np.prod(space.shape)))]
    elif isinstance(space, (spaces.Dict, spaces.Tuple)):
        members = list(space.spaces.values()) if isinstance(space, spaces.Dict) else list(space.spaces)
        combined = _combined([_small_set(member) for member in members], MOST_COMBINED)
        names = list(space.spaces) if isinstance(space, spaces.Dict) else None
        return [tuple(choice) if names is None else dict(zip(names, choice, strict=True)) for choice in combined]
    elif isinstance(space, spaces.OneOf):
        return [(place, choice) for place, member in enumerate(space.spaces) for choice in _small_set(member)]
    else:
        raise ActionError(
            f"the action space is {space}, which no finite set stands for; give actions=[...], a list of actions"
        )
    if not columns:
        raise ActionError(f"the action space {space} has no dimensions; give actions=[...], a list of actions")
    most = MOST_COMBINED if isinstance(space, spaces.Box) else MAX_CHOICES
    different = dict.fromkeys(_combined(columns, most))
    return [_as_action(space, np.reshape(choice, space.shape)) for choice in different]


def extremes(low: float, high: float) -> list[float]:
    """The least, none (or the middle, if none is not between the two), and the most."""
    low, high = low if low > -FAR else -1.0, high if high < FAR else 1.0
    if low >= high:
        return [low]
    return [low, 0.0 if low < 0.0 < high else (low + high) / 2.0, high]


def _combined(columns: list[list[Any]], most: int) -> list[tuple[Any, ...]]:
    """All combinations if they are few; otherwise the middles, each column moved alone, and some moved together."""
    if int(np.prod([float(len(column)) for column in columns])) <= most:
        return list(itertools.product(*columns))
    middle = [column[len(column) // 2] if len(column) == 3 else column[0] for column in columns]
    chosen = [tuple(middle)]
    for place, column in enumerate(columns):
        others = [value for value in column if value is not middle[place]]
        chosen.extend((*middle[:place], value, *middle[place + 1 :]) for value in others)
    draws = np.random.Generator(np.random.PCG64(len(columns))).random((DIRECTIONS, len(columns)))
    ends = [[column[0], column[-1]] for column in columns]
    chosen.extend(tuple(end[int(2 * x)] for end, x in zip(ends, row, strict=True)) for row in draws.tolist())
    if len(chosen) > MAX_CHOICES:
        raise ActionError(
            f"a set of actions for {len(columns)} dimensions would have {len(chosen):,} actions, more than "
            f"{MAX_CHOICES:,}; give actions=[...], a list of the actions to explore by"
        )
    return chosen


def plain_action(choice: Any) -> Any:
    """An action as plain data."""
    if isinstance(choice, dict):
        return {key: plain_action(value) for key, value in choice.items()}
    if isinstance(choice, list | tuple):
        return [plain_action(value) for value in choice]
    return np.asarray(choice).tolist()


def _values_of(space: spaces.Box, bins: int) -> list[Any]:
    if not space.is_bounded("both"):
        raise ActionError(
            f"the action space {space} has no bounds; give actions=[...], a list of actions to explore by"
        )
    if bins < 2:
        raise ActionError(f"{bins} bins along each dimension of {space}; expected at least 2")
    _check_number(bins ** int(np.prod(space.shape)), space)
    low, high = space.low.ravel(), space.high.ravel()
    values = [np.linspace(first, last, bins) for first, last in zip(low, high, strict=True)]
    return [_as_action(space, np.array(choice).reshape(space.shape)) for choice in itertools.product(*values)]


def _checked_action(space: spaces.Space[Any], number: int, choice: Any) -> Any:
    """One of the user's actions as the space would give it."""
    try:
        action = _as_action(space, choice)
    except (TypeError, ValueError):
        action = None
    if action is None or not space.contains(action):
        raise ActionError(f"action {number} of the set is {choice!r}, which is not in {space}; give actions that are")
    return action


def _as_action(space: spaces.Space[Any], choice: Any) -> Any:
    """A plain number, list or dict as the space would give it: arrays have its type and shape."""
    if isinstance(space, spaces.Discrete):
        return operator.index(choice)
    if isinstance(space, (spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)):
        return np.array(choice, dtype=space.dtype).reshape(space.shape)
    if isinstance(space, spaces.Dict):
        return {key: _as_action(member, choice[key]) for key, member in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_as_action(member, value) for member, value in zip(space.spaces, choice, strict=True))
    if isinstance(space, spaces.OneOf):
        return int(choice[0]), _as_action(space.spaces[int(choice[0])], choice[1])
    return choice


def _check_number(number: int, space: spaces.Space[Any]) -> None:
    if number > MAX_CHOICES:
        raise ActionError(
            f"an action set for {space} would have {number:,} actions, more than {MAX_CHOICES:,}; give actions=[...], "
            "a list of the actions to explore by"
        )
