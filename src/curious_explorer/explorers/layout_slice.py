"""Exploring one layout for a while: a piece of work that can be done in any process, and gone on with.

A slice is given what the last slice of its layout has found, and returns what there is now; nothing stays where it ran.
So a layout is explored alike in this process and in others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.explorers.frontier_files import FrontierCounts
from curious_explorer.models.best_actions import best_actions
from curious_explorer.worlds.world import Step, World
from curious_explorer.worlds.wrappers import WorldWrapper


class Guess(Protocol):
    """What was learned in other layouts: how likely each action is the right one, by what the agent sees."""

    def probabilities(self, observations: list[Any]) -> Floats:
        """Shape (N, A), by action number."""


@runtime_checkable
class RememberingGuess(Protocol):
    """A guess by all that the agent saw and did in an episode."""

    def look(self, memory: Any, action: int | None, observation: Any) -> tuple[Floats, Any]:
        """How likely each action is the right one, shape (A,), and what to remember.

        Args:
            memory: what the last call of the episode said to remember; None at its beginning.
            action: the number of the action that led here; None where none did, or it is not known.
            observation: what the agent sees.
        """


class Labelled(NamedTuple):
    """What the agent saw in states of one layout, what is best to do there, and the steps between them."""

    observations: list[Any]
    probabilities: Floats  # (N, A)
    states: list[int]  # the numbers of the states in the layout's own world
    steps: Integers = np.zeros((0, 4), dtype=np.int64)  # as in `BestActions`
    starts: Integers = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Found:
    """What is known of one layout."""

    layout: int | None
    """Its seed; None for an environment that draws layouts as it likes."""
    counts: FrontierCounts | None = None
    samples: int = 0
    """Every step that was taken in it."""
    first_reward: int | None = None
    complete: bool = False
    """Whether nothing is left to which a way is known."""
    followed: int = 0
    """Episodes in which the guess acted alone."""
    finished: bool = False
    """Whether enough is known."""
    error: str | None = None
    """What its environment raised; it is left alone then."""
    views: dict[int, Any] = field(default_factory=dict)
    """What the agent saw when it first met each state; none once there are labels."""
    labels: Labelled | None = None


@dataclass(frozen=True)
class Slice:
    """What to do next in one layout."""

    found: Found
    open: Callable[[], World]
    explorer: Frontier
    gamma: float
    samples: int
    """How many steps to take at most."""
    after: int
    """How many to take after the first reward, so that more than one way to it is known."""
    follow: int
    """In how many episodes after that the guess acts alone."""
    longest: int
    """Steps of such an episode."""
    most_labels: int
    guess: Guess | RememberingGuess | None


class _Watched(WorldWrapper):
    """Keeps what the agent sees in each state that it had not met before, and what it has seen and done in the episode.

    A guess that remembers is asked about the state at the end of the way that is planned. What is between here and
    there it is not shown, so its answer is that of an agent who finds itself there; in a layout that is new the way is
    empty, and the answer is exact.
    """

    def __init__(self, world: World, views: dict[int, Any], guess: Guess | RememberingGuess | None) -> None:
        super().__init__(world)
        self.seed, self.views, self._guess = world.seed, views, guess
        self._remembers = isinstance(guess, RememberingGuess)
        self._episode: list[tuple[int | None, Any]] = []  # what the guess was not shown yet
        self._state, self._memory = -1, None
        self._here: Floats = np.zeros(0)
        self._generator = np.random.default_rng([world.seed, len(views)])

    def restart(self) -> int:
        """Begin an episode."""
        state = self.world.restart()
        self._episode, self._memory = [], None
        return self._met(state, None)

    def step(self, action: int) -> Step:
        """Take one action."""
        step = self.world.step(action)
        self._met(step.state, action)
        return step

    def _met(self, state: int, action: int | None) -> int:
        if state not in self.views:
            self.views[state] = copy.deepcopy(self.world.observation())
        self._state = state
        if self._remembers:
            self._episode.append((action, self.views[state]))
        return state

    def likely(self, state: int) -> Floats:
        """How likely each action is the right one in a state that was met, by the guess."""
        guess, view = self._guess, self.views[state]
        if not isinstance(guess, RememberingGuess):
            assert guess is not None
            likely: Floats = guess.probabilities([view])[0]
            return likely
        for action, seen in self._episode:
            self._here, self._memory = guess.look(self._memory, action, seen)
        self._episode = []
        there: Floats = self._here if state == self._state else guess.look(self._memory, None, view)[0]
        return there

    def draw(self, state: int) -> int:
        """An action drawn by the guess in the state that the episode stands in."""
        summed = np.cumsum(self.likely(state))
        return min(int(np.searchsorted(summed, self._generator.random() * summed[-1], side="right")), len(summed) - 1)

    def prefer(self, state: int, actions: list[int]) -> list[int]:
        """Of some actions the one that is likeliest to be right."""
        return [actions[int(np.argmax(self.likely(state)[actions]))]]


def explore_slice(work: Slice) -> Found:
    """Do the work; an error of the environment is part of what was found."""
    before = work.found
    views, followed = dict(before.views), before.followed
    run, error = None, None
    try:
        world = _Watched(work.open(), views, work.guess)
        prefer = None if work.guess is None else world.prefer
        run = work.explorer.begin(world, before.counts, prefer=prefer)
        last = before.samples + work.samples
        while run.taken < last and not run.done:
            if run.first_reward is None or run.taken < run.first_reward + work.after:
                run.keep_goals(last)
                run.step()
            elif work.guess is not None and followed < work.follow:
                run.follow(world.draw, min(work.longest, last - run.taken))
                followed += 1
            else:
                break
    except EnvironmentFailureError as raised:
        error = str(raised)
    if run is None:
        return Found(before.layout, before.counts, before.samples, error=error)
    rewarded = run.first_reward is not None and run.taken >= run.first_reward + work.after
    finished = run.done or (rewarded and (work.guess is None or followed >= work.follow))
    found = Found(
        before.layout,
        run.counts(work.gamma),
        run.taken,
        run.first_reward,
        complete=run.done,
        followed=followed,
        finished=finished,
        error=error,
        views=views,
    )
    return labelled(found, work.gamma, work.most_labels) if finished and before.layout is not None else found


def labelled(found: Found, gamma: float, most: int) -> Found:
    """The same with labels of at most so many states in place of views, where a reward was seen."""
    if found.counts is None or found.first_reward is None or found.labels is not None:
        return found
    best = best_actions(found.counts.model, gamma, most)
    states = [found.counts.model.state(int(index)) for index in best.states]
    seen = [found.views[state] for state in states]
    return replace(found, views={}, labels=Labelled(seen, best.probabilities, states, best.steps, best.starts))
