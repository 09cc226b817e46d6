"""Exploring one layout for a while: a piece of work that can be done in any process, and gone on with.

A slice is given what the last slice of its layout has found, and returns what there is now; nothing stays where it ran.
So a layout is explored alike in this process and in others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from curious_explorer.arrays import Floats
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


class Labelled(NamedTuple):
    """What the agent saw in states of one layout, and what is best to do there."""

    observations: list[Any]
    probabilities: Floats  # (N, A)
    states: list[int]  # the numbers of the states in the layout's own world


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
    most_labels: int
    guess: Guess | None = None


class _Watched(WorldWrapper):
    """Keeps what the agent sees in each state that it had not met before."""

    def __init__(self, world: World, views: dict[int, Any]) -> None:
        super().__init__(world)
        self.seed, self.views = world.seed, views

    def restart(self) -> int:
        """Begin an episode."""
        state = self.world.restart()
        if state not in self.views:
            self.views[state] = copy.deepcopy(self.world.observation())
        return state

    def step(self, action: int) -> Step:
        """Take one action."""
        step = self.world.step(action)
        if step.state not in self.views:
            self.views[step.state] = copy.deepcopy(self.world.observation())
        return step


def explore_slice(work: Slice) -> Found:
    """Do the work; an error of the environment is part of what was found."""
    before = work.found
    views = dict(before.views)
    run, error = None, None
    try:
        world = _Watched(work.open(), views)
        run = work.explorer.begin(world, before.counts, prefer=_preference(work.guess, views))
        last = before.samples + work.samples
        while run.taken < last and not run.done:
            if run.first_reward is not None and run.taken >= run.first_reward + work.after:
                break
            run.keep_goals(last)
            run.step()
    except EnvironmentFailureError as raised:
        error = str(raised)
    if run is None:
        return Found(before.layout, before.counts, before.samples, error=error)
    counts = run.counts(work.gamma)
    found = Found(before.layout, counts, run.taken, run.first_reward, run.done, error, views)
    finished = run.done or (run.first_reward is not None and run.taken >= run.first_reward + work.after)
    return labelled(found, work.gamma, work.most_labels) if finished else found


def _preference(guess: Guess | None, views: dict[int, Any]) -> Callable[[int, list[int]], list[int]] | None:
    if guess is None:
        return None

    def prefer(state: int, actions: list[int]) -> list[int]:
        likely = guess.probabilities([views[state]])[0][actions]
        return [actions[int(np.argmax(likely))]]

    return prefer


def labelled(found: Found, gamma: float, most: int) -> Found:
    """The same with labels of at most so many states in place of views, where a reward was seen."""
    if found.counts is None or found.first_reward is None or found.labels is not None:
        return found
    model = found.counts.model
    best = best_actions(model, gamma)
    chosen = np.arange(len(best.states))
    if len(chosen) > most:
        generator = np.random.default_rng([found.layout or 0, len(chosen)])
        chosen = np.sort(generator.choice(len(chosen), most, replace=False))
    states = [model.state(int(best.states[place])) for place in chosen]
    labels = Labelled([found.views[state] for state in states], best.probabilities[chosen], states)
    return replace(found, views={}, labels=labels)
