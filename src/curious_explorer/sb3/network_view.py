"""What a network of Stable-Baselines3 sees and does: observations and actions in the form that it takes.

One picture that is large enough for convolutions is seen as it is, or by the means of blocks of pixels if it is much
larger than `USUAL_PICTURE`; pictures beside other parts are a dict of pictures and one row of numbers; everything else
is a row of numbers, or whole numbers counted from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.errors import ObservationError
from curious_explorer.gym.cells import Env
from curious_explorer.gym.network_inputs import NetworkInputs, Part, by_digits, is_picture
from curious_explorer.gym.network_policy import num_outputs
from curious_explorer.gym.picture_cells import channels_first

LEAST_PICTURE = 36
"""Pixels in height and width below which the convolutions of Stable-Baselines3 do not fit."""
USUAL_PICTURE = 84
"""Pixels in height and width for which those convolutions were made; on a console's 210 x 160 they take four times as
long as on half of it."""
PERCEPTRON, CONVOLUTIONS, BOTH = "Mlp", "Cnn", "MultiInput"
"""Kinds of networks, as Stable-Baselines3 begins their names."""
NUMBERS = "numbers"
"""The part of a dict that is a row of numbers."""


class SpaceView:
    """Observations and actions of an environment as a network takes them.

    Args:
        observation_space: the environment's own.
        action_space: the environment's own; refused if no network can act in it.
        perceptron: whether a multilayer perceptron is to see pictures too, however large they are.
    """

    def __init__(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], *, perceptron: bool = False
    ) -> None:
        num_outputs(action_space)
        self.inputs = NetworkInputs(observation_space)
        pictures = [] if perceptron else [part for part in self.inputs.parts if _for_convolutions(part.space)]
        self.observation_space: spaces.Space[Any]
        self.see: Callable[[Any], Any]
        """What a network sees of an observation."""
        if pictures:
            self._see_pictures(pictures)
        else:
            self._see_numbers()
        self._first_action: Any = getattr(action_space, "start", None)  # None in boxes and bits, which have none
        self.action_space = action_space if self._first_action is None else _from_zero(action_space)
        self._one = isinstance(action_space, spaces.Discrete)

    def _see_numbers(self) -> None:
        self.kind = PERCEPTRON
        (part, *others), inputs = self.inputs.parts, self.inputs
        space: Any = part.space
        self.observation_space = spaces.Box(-np.inf, np.inf, (inputs.width,), dtype=np.float32)
        if not others and not part.path and isinstance(space, (spaces.Box, spaces.MultiBinary)):
            divisor = np.float32(255.0 if is_picture(space) else 1.0)  # the same as rows, at a third of the time
            self.see = lambda seen: np.asarray(seen, dtype=np.float32).ravel() / divisor
        elif not others and not by_digits(space) and _whole(space) and len(space.shape) < 2:
            self.observation_space = _from_zero(space)
            self.see = lambda seen: part.of(seen) - space.start
        else:
            self.see = lambda seen: _finite(inputs.rows([seen])[0].astype(np.float32))

    def _see_pictures(self, pictures: list[Part]) -> None:
        rest = [part for part in self.inputs.parts if part not in pictures]
        if not rest and len(pictures) == 1:
            self.kind, (part,) = CONVOLUTIONS, pictures
            view = _PictureView(part)
            self.observation_space, self.see = view.space, view.see
            return
        self.kind = BOTH
        views = {f"picture{place}": _PictureView(part) for place, part in enumerate(pictures)}
        seen_as: dict[str, spaces.Space[Any]] = {name: view.space for name, view in views.items()}
        numbers = None
        if rest:
            numbers = NetworkInputs(spaces.Tuple([part.space for part in rest]))
            seen_as[NUMBERS] = spaces.Box(-np.inf, np.inf, (numbers.width,), dtype=np.float32)
        self.observation_space = spaces.Dict(seen_as)

        def see(seen: Any) -> dict[str, Any]:
            found = {name: view.see(seen) for name, view in views.items()}
            if numbers is not None:
                row = numbers.rows([[part.of(seen) for part in rest]])[0]
                found[NUMBERS] = _finite(row.astype(np.float32))
            return found

        self.see = see

    def act(self, action: Any) -> Any:
        """The environment's action for one of the network."""
        if self._first_action is not None:
            action = action + self._first_action
        return int(action) if self._one else action

    def action_seen(self, action: Any) -> Any:
        """The network's action for one of the environment."""
        return action if self._first_action is None else action - self._first_action


class NetworkView(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment as `SpaceView` shows it."""

    def __init__(self, env: Env, *, perceptron: bool = False) -> None:
        super().__init__(env)
        view = SpaceView(env.observation_space, env.action_space, perceptron=perceptron)
        self.observation_space, self.action_space = view.observation_space, view.action_space
        self._see, self._act = view.see, view.act

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._see(observation), info

    def step(self, action: Any) -> Any:
        """Take one action."""
        observation, reward, terminated, truncated, info = self.env.step(self._act(action))
        return self._see(observation), reward, terminated, truncated, info


class _PictureView:
    """A picture as convolutions take it: with channels, and not much larger than they were made for."""

    def __init__(self, part: Part) -> None:
        whole: Any = _with_channels(part.space)
        self._part, self._shape = part, whole.shape
        self._rows = 1 if channels_first(whole.shape) else 0
        height, width = whole.shape[self._rows : self._rows + 2]
        self._block = max(1, round(min(height, width) / USUAL_PICTURE))
        small = list(whole.shape)
        small[self._rows : self._rows + 2] = height // self._block, width // self._block
        self.space = whole if self._block == 1 else spaces.Box(0, 255, tuple(small), np.uint8)

    def see(self, seen: Any) -> Any:
        """What a network sees of an observation."""
        picture = np.asarray(self._part.of(seen)).reshape(self._shape)
        if self._block == 1:
            return picture
        shape: Any = self.space.shape
        total = np.zeros(shape, dtype=np.uint32)
        for row in range(self._block):
            for column in range(self._block):
                rows, columns = (slice(first, None, self._block) for first in (row, column))
                part = picture[(slice(None),) * self._rows + (rows, columns)]
                total += part[tuple(slice(length) for length in shape)]
        return (total // self._block**2).astype(np.uint8)


def _whole(space: spaces.Space[Any]) -> bool:
    return isinstance(space, (spaces.Discrete, spaces.MultiDiscrete))


def _for_convolutions(space: spaces.Space[Any]) -> bool:
    """Whether this is a picture, with channels or without, large enough for convolutions."""
    return is_picture(_with_channels(space)) and sorted(space.shape or ())[-2] >= LEAST_PICTURE


def _with_channels(space: Any) -> spaces.Space[Any]:
    """A picture without channels as one with a single channel; any other space as it is."""
    if isinstance(space, spaces.Box) and len(space.shape) == 2:
        return spaces.Box(space.low[..., None], space.high[..., None], dtype=space.dtype.type)
    return space  # type: ignore[no-any-return]


def _finite(row: Any) -> Any:
    # A sum is finite if all of its numbers are, unless they are huge; it takes less time than to look at each.
    if not math.isfinite(np.add.reduce(row)) and not np.isfinite(row).all():
        raise ObservationError(f"the environment returned an observation with the numbers {row}; expected finite ones")
    return row


def _from_zero(space: Any) -> spaces.Space[Any]:
    """The same space of whole numbers, counted from zero."""
    return spaces.Discrete(space.n) if isinstance(space, spaces.Discrete) else spaces.MultiDiscrete(space.nvec)
