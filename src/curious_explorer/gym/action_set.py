"""The finite set of actions that an agent chooses from: its action number i is the action ``choices[i]``.

All actions of a discrete space are in its set. A box is explored by a few values along each dimension: enough to reach
states, if not to act best in them, which is up to a learner of continuous actions.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.errors import ActionError

DEFAULT_BINS = 3
"""Full strength in either direction, and none: enough to get anywhere (bang-bang control)."""
MAX_CHOICES = 1_000


class ActionSet:
    """Actions of an environment, by number.

    Args:
        choices: actions of the environment, in the order of their numbers.
    """

    def __init__(self, choices: Sequence[Any]) -> None:
        if len(choices) < 1:
            raise ActionError("the set of actions is empty; expected at least one action")
        self.choices = list(choices)

    def __len__(self) -> int:
        return len(self.choices)

    @staticmethod
    def of(space: spaces.Space[Any], actions: int | Sequence[Any] | None = None) -> ActionSet:
        """The set for an action space; ``actions`` is a number of values along each dimension of a box, or a list."""
        if actions is not None and not isinstance(actions, int):
            return ActionSet([_checked_action(space, number, choice) for number, choice in enumerate(actions)])
        if actions is not None and not isinstance(space, spaces.Box):
            raise ActionError(
                f"actions is {actions}, a number of values along each dimension of a box, but the action space is "
                f"{space}; leave it out, or give a list of actions"
            )
        if isinstance(space, spaces.Discrete):
            return ActionSet([int(space.start) + number for number in range(int(space.n))])
        if isinstance(space, spaces.MultiDiscrete):
            sizes = [range(int(start), int(start + size)) for start, size in zip(space.start, space.nvec, strict=True)]
        elif isinstance(space, spaces.MultiBinary):
            sizes = [range(2)] * int(np.prod(space.shape))
        elif isinstance(space, spaces.Box):
            return ActionSet(_values_of(space, DEFAULT_BINS if actions is None else actions))
        else:
            raise ActionError(
                f"the action space is {space}, which no finite set stands for; give actions=[...], a list of actions"
            )
        _check_number(int(np.prod([len(size) for size in sizes])), space)
        return ActionSet([_as_action(space, choice) for choice in itertools.product(*sizes)])

    def description(self) -> list[Any]:
        """The choices as plain data."""
        return [np.asarray(choice).tolist() for choice in self.choices]

    def describe(self) -> str:
        """The set in words."""
        return f"{len(self)} of them" if len(self) > 1 else "a single one"

    @staticmethod
    def from_description(choices: Sequence[Any], space: spaces.Space[Any] | None = None) -> ActionSet:
        """A set from its description; with the action space, actions have the space's type."""
        return ActionSet([choice if space is None else _as_action(space, choice) for choice in choices])


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
    """A plain number or list as the space would give it: an array of its type and shape, if it gives arrays."""
    if isinstance(space, spaces.Discrete):
        return operator.index(choice)
    if isinstance(space, (spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)):
        return np.array(choice, dtype=space.dtype).reshape(space.shape)
    return choice


def _check_number(number: int, space: spaces.Space[Any]) -> None:
    if number > MAX_CHOICES:
        raise ActionError(
            f"an action set for {space} would have {number:,} actions, more than {MAX_CHOICES:,}; give actions=[...], "
            "a list of the actions to explore by"
        )
