"""Many layouts explored side by side, within one number of samples that goes where it pays.

    repeat until every layout is settled, or the samples are used up:
        take a few layouts: first those that have not used up an even share of the samples, then a second one, ...
        explore each of them for as long again as it was
        a reward was seen:           explore a little further, label every state by the best actions, done
        nothing is left to explore:  set aside
        the environment raised:      left alone, with what it said
        learn from all labels so far what to try first in those to come

So a layout that pays early leaves the rest of its share to those that need more, and one that never pays takes nothing
from the others before all of them have had as much. Layouts are opened a few at a time, and not all at once, because
those to come profit from what was learned.

**What is learned in one helps the next.** A `Teacher` makes a policy on what the agent sees from the labels so far.
Where a layout has several new pairs equally near, the action that it thinks likeliest is tried first: in a state just
met all actions are new, so that exploring follows this policy for as long as it leads to new states, and searches where
it does not.

**Restarts must repeat.** Two restarts by one seed are compared first. Where they differ there is no layout to come back
to: then all are explored as one, in turns, and what carries over is the policy on what the agent sees, which is learned
from the labels between two turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from curious_explorer.callbacks import events
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.explorers.layout_exploration import LayoutExploration
from curious_explorer.explorers.layout_slice import (
    Found,
    Guess,
    Labelled,
    RememberingGuess,
    Slice,
    explore_slice,
    labelled,
)
from curious_explorer.learners.optimizer import Watch
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.world import World, check_world

COMPARED = 5
"""In how many layouts two restarts are compared."""
FIRST_LESSON, NEXT_LESSON = 4, 1.5
"""From how many labelled layouts the first guess is learned, and from how many times as many the next."""

Teacher = Callable[[list[Labelled]], Guess | RememberingGuess]
"""Learns from the labels of layouts a guess for others."""


class Jobs(Protocol):
    """Where slices are explored; the executors of `studies.executors` are such."""

    def run(self, function: Callable[[Slice], Found], jobs: Iterable[Slice]) -> Iterable[Found]:
        """The result of each job, in no particular order."""


class InThisProcess:
    """One slice after the other."""

    def run(self, function: Callable[[Slice], Found], jobs: Iterable[Slice]) -> Iterable[Found]:
        """The result of each job, in order."""
        return map(function, jobs)


@dataclass(frozen=True, kw_only=True)
class ManyLayouts:
    """Exploration of every layout of a world that has many."""

    explorer: Frontier = field(default_factory=Frontier)
    """How each of them is explored."""
    first_share: int = 2_000
    """How many samples a layout has at first; after that as many again as it had."""
    after: int = 300
    """How many more, once a reward was seen, so that there are labels off the first way, too. Of 300 and 1,000, tried
    on MultiRoom-N4 alone, 300 took a third of the samples to the same success."""
    follow: int = 2
    """In how many episodes after that the guess acts alone, if there is a teacher: so the states that it gets into and
    what its actions lead to are known, and labelled."""
    longest: int = 200
    """Steps of such an episode."""
    at_once: int = 8
    """How many layouts are explored side by side, knowing the same; with a teacher as many as are missing for its next
    lesson, if these are more. It matters for what is found, and for how many processes can help; where they run does
    not matter for what is found."""
    most_labels: int = 4_000
    """How many states of a layout are labelled; where there are more, those nearest to the best ways."""
    teacher: Teacher | None = None
    """What makes a guess of labels; None: layouts are explored without."""
    first_guess: Guess | RememberingGuess | None = None
    """What is thought before the first lesson, such as a policy of an easier task that shows and does the same."""
    jobs: Jobs = field(default_factory=InThisProcess)
    """Where: in this process, or an executor such as ``Processes(workers=8)``."""

    def __post_init__(self) -> None:
        for name in ("first_share", "longest", "at_once", "most_labels"):
            check_count(getattr(self, name), name, least=1)
        check_count(self.after, "after")
        check_count(self.follow, "follow")
        if not isinstance(self.explorer, Frontier):
            raise ValueError(
                f"explorer is {self.explorer!r}, expected a Frontier: others cannot be left and gone on with"
            )

    def explore(
        self,
        world: World,
        *,
        gamma: float,
        samples: int | None = None,
        watch: Watch | None = None,
        known: Sequence[Labelled] = (),
        tell: Callable[[list[Found]], None] | None = None,
    ) -> LayoutExploration:
        """Explore all layouts of a world.

        Args:
            world: one that has `layouts`, such as ``GymWorld(env, layouts=range(45))``.
            gamma: the discount of labels and of resets.
            samples: the most steps to take, in all layouts together; the explorer's own for each layout if None.
            watch: a `Callback` is told whenever some were explored further; a function is not called, since there is no
                policy for a world of many tables.
            known: labels of other layouts that were explored before, for the teacher.
            tell: called with what is known of the layouts, whenever some were explored further.
        """
        check_world(world)
        gamma = check_gamma(gamma)
        if not world.layouts:
            raise ValueError("the world has no layouts; give it some: GymWorld(env, layouts=range(45))")
        samples = self.explorer.steps * len(world.layouts) if samples is None else samples
        schedule = _Schedule(self, world, gamma, check_count(samples, "samples", least=1), list(known), tell)
        return schedule.run(watch)


class _Schedule:
    """Which layouts are explored next, and for how long."""

    def __init__(
        self,
        settings: ManyLayouts,
        world: World,
        gamma: float,
        samples: int,
        known: list[Labelled],
        tell: Callable[[list[Found]], None] | None,
    ) -> None:
        self._settings, self._world, self._gamma, self._limit = settings, world, gamma, samples
        self._tell = tell or (lambda found: None)
        self._even = max(settings.first_share, samples // len(world.layouts))
        self._spent = 0
        self._first_reward: int | None = None
        self._guess = settings.first_guess
        self._learned_from = 0
        self._labelled = 0  # how many layouts, or turns where no layout can be come back to
        self._known = known

    def run(self, watch: Watch | None) -> LayoutExploration:
        """Explore until nothing is open or nothing is left to spend."""
        wrong = {layout: error for layout in self._world.layouts[:COMPARED] if (error := self._compare(layout))}
        self._learn([])
        repeatable = DIFFERENT not in wrong.values()
        found = self._apart(wrong, watch) if repeatable else [self._as_one(watch)]
        return LayoutExploration(
            [labelled(each, self._gamma, self._settings.most_labels) for each in found],
            self._gamma,
            samples=self._spent,
            first_reward=self._first_reward,
            repeatable=repeatable,
        )

    def _apart(self, wrong: dict[int, str], watch: Watch | None) -> list[Found]:
        """Every layout by itself, but for those in which something is wrong."""
        found = {layout: Found(layout, error=wrong.get(layout)) for layout in self._world.layouts}
        while self._spent < self._limit:
            still_open = [each for each in found.values() if not each.finished and each.error is None]
            if not still_open:
                break
            still_open.sort(key=lambda each: each.samples // self._even)  # in order within each share
            for each in self._explore(still_open[: self._at_once()]):
                assert each.layout is not None
                found[each.layout] = each
            self._told(list(found.values()), watch)
            labels = [each.labels for each in found.values() if each.labels is not None]
            self._labelled = len(labels)
            self._learn(labels)
        return list(found.values())

    def _as_one(self, watch: Watch | None) -> Found:
        """All layouts together, since none can be come back to; as many turns as there are layouts.

        The first turn goes on until a reward was seen, and a little further; the others are as long as what comes after
        a reward. A lesson counts a turn as it counts a layout elsewhere.
        """
        found, settings = Found(None), self._settings
        for turn in range(1, len(self._world.layouts) + 1):
            begun, before = found.samples, found.followed
            while self._spent < self._limit and not found.finished and found.error is None:
                after = settings.after + (0 if found.first_reward is None else max(begun - found.first_reward, 0))
                (found,) = self._explore([found], after=after, follow=before + settings.follow)
                self._told([found], watch)
            if not found.finished or found.complete:
                break
            self._labelled = turn
            if settings.teacher is not None and self._missing <= 0:
                labels = labelled(found, self._gamma, settings.most_labels * turn).labels
                self._learn([] if labels is None else [labels])
            found = replace(found, finished=False)
        return labelled(found, self._gamma, settings.most_labels * len(self._world.layouts))

    def _told(self, found: list[Found], watch: Watch | None) -> None:
        """Tell who asked how far it has come."""
        self._tell(found)
        rewarded = sum(each.first_reward is not None for each in found)
        numbers = {"layouts": len(found), "layouts_rewarded": rewarded}
        events.tell(watch, events.BATCH, events.EXPLORE, self._spent, numbers)

    def _at_once(self) -> int:
        """How many layouts are explored side by side: before the first lesson as few as it takes."""
        settings = self._settings
        if settings.teacher is None:
            return settings.at_once
        if self._guess is None:
            return min(settings.at_once, FIRST_LESSON)
        return max(settings.at_once, self._missing)

    def _compare(self, layout: int) -> str | None:
        """What is wrong with two restarts in a layout, if anything is."""
        try:
            world = self._world.opener(layout)()
            seen: list[tuple[int, Any, Any]] = []
            for _ in range(2):
                state = world.restart()
                seen.append((state, world.parts(), _plain(world.observation())))
        except EnvironmentFailureError as error:
            return str(error)
        return None if seen[0] == seen[1] else DIFFERENT

    def _explore(self, chosen: list[Found], *, after: int | None = None, follow: int | None = None) -> list[Found]:
        """A slice of each, with the settings' samples after a first reward, and episodes of the guess, or others."""
        settings, left = self._settings, self._limit - self._spent
        chosen = chosen[: max(1, min(len(chosen), left // settings.first_share))]
        work = []
        for place, each in enumerate(chosen):
            to_even = self._even - each.samples % self._even
            share = min(max(settings.first_share, each.samples), to_even, left // (len(chosen) - place))
            left -= share
            opener = self._world.opener(each.layout)
            work.append(
                Slice(
                    each,
                    opener,
                    settings.explorer,
                    self._gamma,
                    share,
                    settings.after if after is None else after,
                    settings.follow if follow is None else follow,
                    settings.longest,
                    settings.most_labels,
                    self._guess,
                )
            )
        done = {each.layout: each for each in settings.jobs.run(explore_slice, work)}
        for before in chosen:
            now = done[before.layout]
            if self._first_reward is None and now.first_reward is not None:
                self._first_reward = self._spent + now.first_reward - before.samples
            self._spent += now.samples - before.samples
            self._world.count_samples(now.samples - before.samples)
        return [done[each.layout] for each in chosen]

    @property
    def _missing(self) -> int:
        """How many more labelled layouts the next lesson takes."""
        wanted = max(FIRST_LESSON, NEXT_LESSON * self._learned_from)
        return math.ceil(wanted) - self._labelled - len(self._known)

    def _learn(self, labels: list[Labelled]) -> None:
        """Learn a new guess, if there is enough to learn from."""
        if self._settings.teacher is not None and self._missing <= 0:
            self._guess = self._settings.teacher([*self._known, *labels])
            self._learned_from = self._labelled + len(self._known)


DIFFERENT = "two restarts by its seed did not agree"


def _plain(observation: Any) -> Any:
    """An observation as what can be compared."""
    if isinstance(observation, dict):
        return {name: _plain(part) for name, part in observation.items()}
    if isinstance(observation, tuple):
        return tuple(_plain(part) for part in observation)
    return np.asarray(observation).tolist()
