"""One learner across many layouts: in which of them the next episode begins, and where in it.

Each layout that was explored has starts that move back from its reward (`resets.moving_starts`). Which layout is next
is drawn by what is learned there: by how much its standing (how far its starts have moved, and how often episodes from
its own start succeed) has changed lately, and by how far it is from never and from always. A layout in which nothing
changes keeps a small share, so that what is forgotten is noticed.

Some episodes may begin in new layouts, at the start that the environment gives, so that what is learned is not about
those explored alone. That takes no exploring, and teaches a policy that already succeeds now and then.

Everything is reached by restart and step: a layout by its seed, a start in it by going there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.layout_exploration import LayoutExploration
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.fixed_layout import FixedLayout
from curious_explorer.gym.new_layouts import NewLayouts
from curious_explorer.gym.restart_wrapper import ROLL_IN_STEPS, RollInWrapper
from curious_explorer.resets.moving_starts import MovingStarts, StartsProgress

LEAST_WEIGHT = 0.05
"""What a layout weighs in which nothing is learned, beside 1/4 for one that stands half way."""
FAST, SLOW = 0.8, 0.95
"""What is left of a layout's earlier standings at each episode, in two averages; their difference is its progress."""


class StartsIn(NamedTuple):
    """The starts of one layout."""

    moving: MovingStarts
    discretisation: Discretisation


class LayoutStarts:
    """Starts in several layouts, shared by all environments of one process.

    Args:
        layouts: the starts of each, by the layout's seed.
        new: the share of episodes that begin in a layout that is drawn anew, see `NewLayouts`.
    """

    def __init__(self, layouts: Mapping[int, StartsIn], *, new: float = 0.0) -> None:
        if not 0.0 <= new <= 1.0:
            raise ValueError(f"new is {new!r}, expected a share of the episodes, from 0 to 1")
        if not layouts:
            raise ValueError("there are no layouts to start in: no reward was seen in any of those explored")
        self.layouts, self.new = dict(layouts), new
        self.failed: dict[int, str] = {}
        """What the environment raised in new layouts, by their seeds; they were left."""
        self.seeds = list(self.layouts)
        self._place = {seed: place for place, seed in enumerate(self.seeds)}
        self._fast = np.array([standing(starts.moving.progress) for starts in self.layouts.values()])
        self._slow = self._fast.copy()

    @staticmethod
    def of(exploration: LayoutExploration, *, gamma: float | None = None, new: float = 0.0) -> LayoutStarts:
        """Starts in all explored layouts in which a reward was seen."""
        found = {}
        for each in exploration.found:
            counts = each.counts
            if each.layout is None or counts is None or counts.discretisation is None:
                continue
            numbers = counts.model.states
            if not np.array_equal(numbers, np.arange(len(numbers))):
                raise ValueError(f"the states of layout {each.layout} were not met in the order of their numbers")
            moving = MovingStarts(counts.model.counted(), gamma=exploration.gamma if gamma is None else gamma)
            found[each.layout] = StartsIn(moving, Discretisation.from_stored(counts.discretisation))
        return LayoutStarts(found, new=new)

    def weights(self) -> Floats:
        """How much each layout weighs, in the order of `seeds`."""
        progress: Floats = np.abs(self._fast - self._slow)
        weights: Floats = LEAST_WEIGHT + self._fast * (1.0 - self._fast) + progress
        return weights

    def draw(self, uniform: float) -> int:
        """The seed of the next layout, by a random number in [0, 1)."""
        cumulative = np.cumsum(self.weights())
        place = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
        return self.seeds[min(place, len(self.seeds) - 1)]

    def ended(self, seed: int) -> None:
        """An episode in this layout has ended, and its starts were told."""
        place, now = self._place[seed], standing(self.layouts[seed].moving.progress)
        self._fast[place] = FAST * self._fast[place] + (1.0 - FAST) * now
        self._slow[place] = SLOW * self._slow[place] + (1.0 - SLOW) * now

    @property
    def standing(self) -> float:
        """The mean standing of all layouts: 1 where episodes from all their own starts succeed."""
        return float(np.mean([standing(starts.moving.progress) for starts in self.layouts.values()]))


def standing(progress: StartsProgress) -> float:
    """How far a layout is learned, from 0 to 1."""
    if progress.finished:
        return 1.0
    return 0.5 * min(progress.level / max(progress.farthest, 1.0), 1.0) + 0.5 * progress.own_success


class LayoutStartsWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose episodes begin in explored layouts, at starts that move with what is learned.

    ``info`` of a reset says how many steps the roll-in took, as that of `RestartWrapper`, and which ``layout`` it is.

    Args:
        env: the environment that was explored.
        starts: shared by all environments that learn together.
    """

    def __init__(self, env: Env, starts: LayoutStarts) -> None:
        super().__init__(env)
        self.starts = starts
        self._members: dict[int, RollInWrapper] = {}
        self._random = np.random.default_rng()
        self._layout: int | None = None
        self._new, self._begun = NewLayouts(env), False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in one of the layouts."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._begun = True
        if self.starts.new and self._random.random() < self.starts.new:
            self._layout = None
            observation, info = self._new.reset(seed=int(self._random.integers(1 << 31)), options=options)
            self.starts.failed |= self._new.failed
            return observation, {**info, ROLL_IN_STEPS: 0}
        layout = self._layout = self.starts.draw(self._random.random())
        member = self._members.get(layout)
        first = member is None
        if member is None:
            inside = self.starts.layouts[layout]
            member = RollInWrapper(FixedLayout(self.env, layout), inside.moving, inside.discretisation)
            self._members[layout] = member
        own = int(self._random.integers(1 << 31)) if first or seed is not None else None
        observation, info = member.reset(seed=own, options=options)
        return observation, {**info, "layout": layout}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action."""
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if self._layout is None:
            return self._new.step(action)
        observation, reward, terminated, truncated, info = self._members[self._layout].step(action)
        if terminated or truncated:
            self.starts.ended(self._layout)
        return observation, reward, terminated, truncated, info
