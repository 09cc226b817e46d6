"""Actions of any kind as a network can choose them: one whole number, a row of them, or a box with bounds.

    Dict, Tuple of whole numbers and bits     a row of whole numbers
    Dict, Tuple of boxes                      one box
    both together                             a row of whole numbers, of a box's numbers one of three each
    a box without bounds                      a box from -1 to 1, where a bound is missing
    any other                                 one whole number, which chooses from a list of actions that is given

`solve` does this by itself; what it hands out acts on the environment in this wrapper. For your own:
``FlatActions(env, actions=[...])`` in the function that you register under an id.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.errors import ActionError
from curious_explorer.gym.action_set import FAR, ActionSet, extremes
from curious_explorer.gym.cells import Env
from curious_explorer.gym.network_inputs import parts_of

WITHOUT_BOUND = 1.0
"""How far a number of an action goes, in either direction, where nothing bounds it."""


class FlatActions(gymnasium.ActionWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """An environment whose actions are one whole number, a row of them, or a box with bounds.

    Args:
        env: the environment.
        actions: a list of its actions to choose from; needed where an action is text, a graph or a sequence.
    """

    def __init__(self, env: Env, actions: Sequence[Any] | None = None) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, actions=actions)
        super().__init__(env)
        space, parts = env.action_space, list(parts_of(env.action_space))
        self._space, self._choices = space, list[Any]()
        kinds = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
        if actions is not None or not parts or not all(isinstance(part.space, kinds) for part in parts):
            self._choices = ActionSet.of(space, actions).choices
            self.action_space = spaces.Discrete(len(self._choices))
            return
        self._leaves: list[Any] = [part.space for part in parts]
        self._sizes = [math.prod(leaf.shape) for leaf in self._leaves]
        self._boxes = all(isinstance(leaf, spaces.Box) for leaf in self._leaves)
        if self._boxes:
            bounds = [_bounds(leaf) for leaf in self._leaves]
            low, high = (np.concatenate([pair[side] for pair in bounds]).astype(np.float32) for side in (0, 1))
            self.action_space = spaces.Box(low, high, dtype=np.float32)
        else:
            self._values = [values for leaf in self._leaves for values in _values(leaf)]
            self.action_space = spaces.MultiDiscrete([len(values) for values in self._values])

    def action(self, action: Any) -> Any:
        """The environment's action for one of this wrapper's."""
        if self._choices:
            return self._choices[int(action)]
        row = np.asarray(action).ravel()
        if not self._boxes:
            row = np.array([values[int(number)] for values, number in zip(self._values, row, strict=True)])
        pieces = iter(np.split(row, np.cumsum(self._sizes)[:-1]))
        return _put_together(self._space, pieces)


def with_flat_actions(env: Env) -> Env:
    """The environment, with flat actions where a network could not choose them as they are."""
    if is_flat(env.action_space):
        return env
    try:
        return FlatActions(env)
    except ActionError:  # whoever needs a network refuses it, and says what to do
        return env


def is_flat(space: spaces.Space[Any]) -> bool:
    """Whether a network can choose actions in a space as they are."""
    row = isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)) and len(space.shape) == 1
    bounded = isinstance(space, spaces.Box) and space.is_bounded("both")
    return isinstance(space, spaces.Discrete) or row or bounded


def _bounds(box: spaces.Box) -> tuple[Any, Any]:
    """Least and most of a box, -1 and 1 where there is none."""
    low, high = box.low.ravel().astype(np.float64), box.high.ravel().astype(np.float64)
    low = np.where(low > -FAR, low, np.minimum(-WITHOUT_BOUND, np.where(high < FAR, high - 2.0 * WITHOUT_BOUND, 0.0)))
    return low, np.where(high < FAR, high, np.maximum(WITHOUT_BOUND, low + 2.0 * WITHOUT_BOUND))


def _values(leaf: Any) -> list[list[Any]]:
    """What each number of a part may be."""
    if isinstance(leaf, spaces.Discrete):
        return [list(range(int(leaf.start), int(leaf.start + leaf.n)))]
    if isinstance(leaf, spaces.MultiBinary):
        return [[0, 1]] * math.prod(leaf.shape)
    if isinstance(leaf, spaces.MultiDiscrete):
        sizes = zip(leaf.start.ravel().tolist(), leaf.nvec.ravel().tolist(), strict=True)
        return [list(range(start, start + size)) for start, size in sizes]
    low, high = _bounds(leaf)
    return [extremes(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]


def _put_together(space: Any, pieces: Any) -> Any:
    """An action of the space, of one piece for each of its parts."""
    if isinstance(space, spaces.Dict):
        return {key: _put_together(below, pieces) for key, below in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_put_together(below, pieces) for below in space.spaces)
    piece = next(pieces)
    return int(piece[0]) if isinstance(space, spaces.Discrete) else piece.reshape(space.shape).astype(space.dtype)
