"""A first look at an environment: what its observations are like under random actions, and which parts are noise.

Random actions are held for 1, 2, 4, ... steps at random, so that more is seen than by dithering. Then a few sequences
of actions are walked three times from the same seed: twice alike, and once with other random numbers behind the same
start (see ``layout`` of `GymWorld`). An element of the observations is *noise* if it differs between walks of the same
actions time and again, and its value says nothing about its next: the mean square of its changes is that of independent
draws. It is a *clock* if it goes up, or down, in every single step. Both would make every observation new. What an
environment does at random to its state is neither, since a state stays what it is until something happens.

Every step is counted. Where layouts are given, nothing else is looked at, and one in which the environment raises is
passed over; exploring names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.gym.cells import Env, FunctionCells
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.network_inputs import Part, parts_of
from curious_explorer.gym.one_life import lives_in
from curious_explorer.gym.stepped_environments import SingleEnvironment

HOLDS = (1, 1, 2, 4, 8, 16)
"""For how many steps an action is held, each as likely."""
SEQUENCES, LENGTH = 3, 32
"""How many sequences of actions are repeated, and of how many steps each at most."""
OFTEN_DIFFERENT = 0.25
"""In which share of the comparisons noise must differ: a die shows another number than before in five of six."""
WHITE = 0.7
"""The mean square of changes from step to step, divided by twice the variance: 1 for independent draws."""
FEWEST_CHANGES = 50
"""From fewer steps of differing walks nothing is called noise: a hand of cards lasts two of them, and is no noise."""
TRIES = 20
"""How often in a row the environment may raise in some of many layouts."""
CLOCK_STEPS = 50
"""How many steps in a row must all go up before it is called a clock."""


class Look(NamedTuple):
    """What was seen: episodes one after the other, as observations and as the actions between them."""

    observations: list[Any]
    actions: list[int]
    """The action that followed each observation; -1 after the last of an episode."""
    steps: int
    lives: bool = False
    """Whether the environment says how many lives are left; see `one_life`."""

    @property
    def pairs(self) -> list[int]:
        """The places of observations that were followed by another one."""
        return [place for place, action in enumerate(self.actions) if action >= 0]


class LeftOut(NamedTuple):
    """Elements of a part that are not worth looking at."""

    noise: tuple[int, ...] = ()
    clocks: tuple[int, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        """Both kinds, in order."""
        return tuple(sorted({*self.noise, *self.clocks}))


def look_around(
    env: Env,
    discretisation: Discretisation,
    steps: int,
    seed: int,
    layouts: tuple[int, ...],
    *,
    most_bytes: int = 1 << 28,
) -> Look:
    """Act at random for so many steps; fewer where observations are so large that they would fill the memory."""
    observer = _Observer(env, discretisation, layouts)
    generator = np.random.default_rng(seed)
    observer.begin(seed)
    size = sum(part.space.dtype.itemsize * math.prod(part.space.shape) for part in _arrays(env.observation_space))
    steps = min(steps, max(LENGTH, most_bytes // max(1, size)))
    observations, actions = [observer.seen], []
    while observer.steps < steps:
        if observer.over:
            actions.append(-1)
            observer.begin()
            observations.append(observer.seen)
        action = int(generator.integers(len(discretisation.action_set)))
        for _ in range(HOLDS[int(generator.integers(len(HOLDS)))]):
            if observer.over or observer.steps == steps:
                break
            if not observer.took(action):
                break
            actions.append(action)
            observations.append(observer.seen)
    actions.append(-1)
    return Look(observations, actions, observer.steps, observer.lives)


def repeat_walks(
    env: Env, discretisation: Discretisation, seed: int, most: int, layouts: tuple[int, ...] = ()
) -> tuple[list[tuple[list[Any], list[Any]]], int]:
    """Pairs of walks by the same actions from the same start, and how many steps they took, at most so many."""
    generator = np.random.default_rng([seed, 1])
    pairs, steps, length = [], 0, min(LENGTH, most // (3 * SEQUENCES))
    many = len(layouts) > 1
    starts = layouts if many else range(seed, seed + SEQUENCES)
    for number in range(SEQUENCES):
        start = starts[number % len(starts)]
        again = _Observer(env, discretisation, ())
        fresh = _Observer(env, discretisation, (start,))
        actions: list[int] = []
        while len(actions) < length:
            action = int(generator.integers(len(discretisation.action_set)))
            actions.extend([action] * HOLDS[int(generator.integers(len(HOLDS)))])
        try:
            first = again.walk(actions[:length], start)
            pairs.append((first, again.walk(actions[:length], start)))
            pairs.append((first, fresh.walk(actions[:length], seed + number + 10_000)))
        except EnvironmentFailureError:
            if not many:
                raise
        steps += again.steps + fresh.steps
    return pairs, steps


def _arrays(space: spaces.Space[Any]) -> list[Any]:
    """The parts of a space that are arrays of one shape."""
    return [part for part in parts_of(space) if part.space.shape is not None and part.space.dtype is not None]


class _Observer:
    """Steps an environment for its observations alone."""

    def __init__(self, env: Env, discretisation: Discretisation, layouts: tuple[int, ...]) -> None:
        bare = discretisation._replace(cells=FunctionCells(lambda observation: 0, 1))
        self._env = SingleEnvironment(env, bare, layouts=layouts)
        self._choices, self._many = discretisation.action_set.choices, len(layouts) > 1
        self._given_up, self._failures = False, 0

    @property
    def steps(self) -> int:
        return self._env.steps

    @property
    def over(self) -> bool:
        return self._given_up or self._env.terminated or self._env.truncated

    @property
    def lives(self) -> bool:
        return lives_in(self._env.info) is not None

    @property
    def seen(self) -> Any:
        return copied(self._env.observations[0])

    def reset(self, seed: int | None = None) -> None:
        self._env.reset(seed=seed)
        self._given_up = False

    def step(self, action: int) -> None:
        self._env.step(self._choices[action])

    def begin(self, seed: int | None = None) -> None:
        """Begin an episode; where the environment raises in one of many layouts, in another."""
        while True:
            try:
                return self.reset(seed)
            except EnvironmentFailureError as error:
                self._pass_over(error)
                seed = None

    def took(self, action: int) -> bool:
        """Take a step; False where the environment raises in one of many layouts, and the episode is given up."""
        try:
            self.step(action)
            self._failures = 0
        except EnvironmentFailureError as error:
            self._pass_over(error)
            self._given_up = True
        return not self._given_up

    def _pass_over(self, error: EnvironmentFailureError) -> None:
        """Count a failure, and raise it if there are no other layouts, or too many failed in a row."""
        self._failures += 1
        if not self._many or self._failures > TRIES:
            raise error

    def walk(self, actions: Sequence[int], seed: int) -> list[Any]:
        """The observations of a walk."""
        self.reset(seed)
        observations = [self.seen]
        for action in actions:
            if self.over:
                break
            self.step(action)
            observations.append(self.seen)
        return observations


def copied(observation: Any) -> Any:
    """An observation that the environment cannot write into."""
    if isinstance(observation, np.ndarray):
        return observation.copy()
    if isinstance(observation, dict):
        return {key: copied(value) for key, value in observation.items()}
    if type(observation) in (tuple, list):
        return type(observation)(copied(value) for value in observation)
    return observation


def table(part: Part, observations: Sequence[Any]) -> NDArray[Any]:
    """A part of all observations as rows of numbers, in its own type, shape (N, elements)."""
    return np.array([np.asarray(part.of(observation)).reshape(-1) for observation in observations])


def left_out(part: Part, look: Look, repeated: Sequence[tuple[list[Any], list[Any]]]) -> LeftOut:
    """Which elements of a part are noise or clocks."""
    if not part.space.shape and not isinstance(part.space.sample(), (int, np.integer, np.ndarray)):
        return LeftOut()
    return LeftOut(_noise(part, repeated), _clocks(part, look))


def _noise(part: Part, repeated: Sequence[tuple[list[Any], list[Any]]]) -> tuple[int, ...]:
    size = max(1, math.prod(part.space.shape or ()))
    different, compared = np.zeros(size), 0
    changes, products, total, squares, count = (np.zeros(size) for _ in range(5))
    for first, second in repeated:
        length = min(len(first), len(second))
        one, two = (table(part, walk[:length]) for walk in (first, second))
        apart = one != two
        if apart.mean() == 0.0:
            continue
        if one.dtype.kind == "f":
            apart &= ~(np.isnan(one) & np.isnan(two))
        different += apart[1:].sum(axis=0)
        compared += length - 1
        values = np.where(np.isfinite(two), two, 0.0).astype(np.float64) if two.dtype.kind == "f" else two.astype(float)
        changes += (np.diff(values, axis=0) ** 2).sum(axis=0)
        products += length - 1
        total += values.sum(axis=0)
        squares += (values**2).sum(axis=0)
        count += length
    if products.max() < FEWEST_CHANGES:
        return ()
    variance = squares / count - (total / count) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        whiteness = changes / products / (2.0 * variance)
    found = (different >= OFTEN_DIFFERENT * compared) & (variance > 0.0) & (whiteness >= WHITE)
    return tuple(np.flatnonzero(found).tolist())


def _clocks(part: Part, look: Look) -> tuple[int, ...]:
    places = np.array(look.pairs, dtype=np.int64)
    if len(places) < CLOCK_STEPS or math.prod(part.space.shape or ()) > 4_096:
        return ()
    values = table(part, look.observations)
    if values.dtype.kind not in "fiu":
        return ()
    before, after = values[places], values[places + 1]
    return tuple(np.flatnonzero((after > before).all(axis=0) | (after < before).all(axis=0)).tolist())
