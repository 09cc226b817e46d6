"""A finite set of actions: action number i of the agent is the environment's action ``action_set.choices[i]``.

A `Discrete` space is its own set. A box is explored through a few values along each dimension: not for what can be
achieved in the end, which a learner of continuous actions decides, but for where the agent gets to.
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
"""Full strength in either direction, and nothing: enough to get anywhere (bang-bang control)."""
MOST_CHOICES = 1_000


class ActionSet:
    """The environment's actions that an agent chooses from.

    Args:
        choices: actions of the environment, in the order of their numbers.
    """

    def __init__(self, choices: Sequence[Any]) -> None:
        if len(choices) < 1:
            raise ActionError("the action_set of actions is empty; expected at least one action")
        self.choices = list(choices)

    def __len__(self) -> int:
        return len(self.choices)

    @staticmethod
    def of(space: spaces.Space[Any], actions: int | Sequence[Any] | None = None) -> ActionSet:
        """The action_set for an action space.

        Args:
            space: the environment's action space.
            actions: how many values along each dimension of a box, or the choices themselves; None is the default.
        """
        if actions is not None and not isinstance(actions, int):
            return ActionSet([_checked(space, number, choice) for number, choice in enumerate(actions)])
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
            return ActionSet(_bins_of(space, DEFAULT_BINS if actions is None else actions))
        else:
            raise ActionError(
                f"the action space is {space}, which no finite set stands for; give actions=[...], a list of actions"
            )
        _check_number(int(np.prod([len(size) for size in sizes])), space)
        return ActionSet([_as_action(space, choice) for choice in itertools.product(*sizes)])

    def description(self) -> list[Any]:
        """The choices as plain data."""
        return [np.asarray(choice).tolist() for choice in self.choices]

    @staticmethod
    def from_description(choices: Sequence[Any], space: spaces.Space[Any] | None = None) -> ActionSet:
        """A action_set from its description; with the action space, arrays get the space's type."""
        return ActionSet([choice if space is None else _as_action(space, choice) for choice in choices])


def _bins_of(space: spaces.Box, bins: int) -> list[Any]:
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


def _checked(space: spaces.Space[Any], number: int, choice: Any) -> Any:
    """One of the user's actions in the form the space has it."""
    try:
        action = _as_action(space, choice)
    except (TypeError, ValueError):
        action = None
    if action is None or not space.contains(action):
        raise ActionError(f"action {number} of the set is {choice!r}, which is not in {space}; give actions that are")
    return action


def _as_action(space: spaces.Space[Any], choice: Any) -> Any:
    """A plain number or list in the form the space has it."""
    if isinstance(space, spaces.Discrete):
        return operator.index(choice)
    if isinstance(space, (spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)):
        return np.array(choice, dtype=space.dtype).reshape(space.shape)
    return choice


def _check_number(number: int, space: spaces.Space[Any]) -> None:
    if number > MOST_CHOICES:
        raise ActionError(
            f"an action set for {space} would have {number:,} actions, more than {MOST_CHOICES:,}; give actions=[...], "
            "a list of the actions to explore by"
        )
