"""Explore some layouts, clone what was found best in them, test on layouts never seen; with ever more layouts.

FOLDER/study.json            what was asked for
FOLDER/0008/standing.json    how far exploring them has come
FOLDER/0008/explored.json    what exploring the layouts up to the eighth took, and the report
FOLDER/0008/labels.npz       what was found best in those that this stage added
FOLDER/0008/lesson/          what was cloned last while exploring, from which the policy begins
FOLDER/0008/policy/          the policy cloned from all labels so far
FOLDER/0008/tested.json      how it did on unseen layouts

A stage explores the layouts that the one before it did not have. With lessons, what was learned in those before tells
what to try first in these. A study that is killed goes on at the stage, or the part of one, that it was in. No network
is trained by reward here.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from curious_explorer.errors import StudyError
from curious_explorer.explorers.layout_exploration import LayoutExploration
from curious_explorer.explorers.layout_files import read_labels, write_labels
from curious_explorer.explorers.layout_slice import Found, Labelled
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cells import Cells, Env
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import (
    Format,
    check_inside,
    check_size,
    check_types,
    read_json,
    read_plain,
    reading,
    write_json,
)
from curious_explorer.studies.executors import Executor, Inline, kept
from curious_explorer.studies.runner import finite_number
from curious_explorer.studies.unseen_layouts import LEAST_TESTS, LayoutSplit, play_unseen, split_layouts
from curious_explorer.validation import check_count, check_gamma, check_seed

STUDY = Format("curious-explorer/layouts-study", 1)
EXPLORED = Format("curious-explorer/layouts-explored", 2, oldest=1)
TESTED = Format("curious-explorer/layouts-tested", 2, oldest=1)
STANDING = Format("curious-explorer/layouts-standing", 2, oldest=1)
_EXPLORED_KEYS = {"layouts", "samples", "found", "set_aside", "failed", "labels", "first_rewards", "report", "seconds"}
_TESTED_KEYS = {"solved", "tested", "low", "high", "steps", "failed", "seconds"}
_STANDING_TYPES: dict[str, tuple[type, ...]] = dict.fromkeys(("layouts", "found", "done", "samples"), (int,))
_STANDING_TYPES |= {"seconds": (int, float)}
_EXPLORED_KEYS |= {"repeatable"}
_SINCE = {"settings": 2, "labels_digest": 2, "repeatable": 2}
"""Of which study a file is, and by which labels it was made; version 1 does not say."""


class Stage(NamedTuple):
    """How a policy cloned from some layouts does."""

    layouts: int
    """How many were explored."""
    found: int
    """In how many of them a reward was seen."""
    samples: int
    """Every step taken in all of them."""
    labels: int
    first_rewards: tuple[int | None, ...]
    """Of the layouts that this stage added, the samples to the first reward."""
    solved: int
    tested: int
    low: float
    high: float
    test_steps: int
    seconds: float
    """Of this process; others that explored or tested are not in it."""
    set_aside: int = 0
    """How many could not be explored to a reward."""
    failed: int = 0
    """In how many of those to explore the environment raised."""
    tests_failed: tuple[int, ...] = ()
    """The layouts tested in which it raised; they count as not solved."""
    report: str = ""
    """What is to be said of the layouts that this stage added, see `LayoutExploration.report`."""
    repeatable: bool = True
    """Whether two restarts by one seed agreed; if not, they were explored as one, which ``found`` counts once."""


def _ignore(*_: Any) -> None:
    """Nobody is told."""


class _Run(NamedTuple):
    """Where a study runs, and who is told; see `LayoutsStudy.run`."""

    study: RunFolder
    executor: Executor
    on_stage: Callable[[Stage], None]
    tell: Callable[[str], None]
    progress: Callable[[int, str], None]


@dataclass(frozen=True, kw_only=True)
class LayoutsStudy:
    """What to explore, and how."""

    name: str
    """What the study is about, for its folder."""
    make: Callable[[], Env]
    """Makes the environment; a function of a module, where processes are to help."""
    cells: Cells | None = None
    """None: chosen by a first look, whose steps are counted."""
    actions: Sequence[Any] | None = None
    stages: tuple[int, ...] = (8, 16, 32, 64)
    """After how many layouts to clone and to test."""
    share: int = 100_000
    """Samples for each layout, on average."""
    after: int = 300
    """Samples in a layout after its first reward."""
    follow: int = 2
    """Episodes in which what was learned acts alone after that."""
    lessons: bool = True
    """Whether what was learned in some layouts helps in the next."""
    lesson_updates: int = 150
    """Of the network, each time."""
    tests: int = LEAST_TESTS
    gamma: float = 0.99
    threshold: float = 0.0
    """A test layout is solved if its episode returns more."""
    seed: int = 0
    begin: str | Path | None = None
    """The folder of a `RecurrentPolicy` of another task that shows and does the same, from which lessons go on: what it
    thinks is tried first in the first layouts, too. None: they begin from nothing."""
    cloning: Any = field(default=None)
    """A `sb3.recurrent_cloning.RecurrentCloning`, or a `sb3.label_cloning.Cloning` for a network without memory; the
    first with its defaults if None."""
    device: str = "cpu"
    """Where PyTorch learns, if ``cloning`` is None."""

    def __post_init__(self) -> None:
        if not self.stages or list(self.stages) != sorted(set(self.stages)):
            raise ValueError(f"stages is {self.stages}, expected numbers of layouts that grow")
        check_count(self.stages[0], "the first of stages", least=1)
        check_count(self.share, "share", least=1)
        check_count(self.after, "after")
        check_count(self.follow, "follow")
        check_count(self.lesson_updates, "lesson_updates", least=1)
        check_count(self.tests, "tests", least=1)
        check_gamma(self.gamma)
        check_seed(self.seed)
        if self.begin is not None and not (self.lessons and self._remembers):
            raise ValueError("begin is a network that remembers, but there are no lessons, or they are of one without")

    @property
    def split(self) -> LayoutSplit:
        """The layouts to explore, in order, and those to test on."""
        return split_layouts(self.stages[-1], self.tests, seed=self.seed)

    def settings(self) -> dict[str, Any]:
        """What results depend on, as plain data; more stages may be added later."""
        actions = None if self.actions is None else [str(action) for action in self.actions]
        plain = ("name", "share", "after", "follow", "lessons", "lesson_updates", "tests", "gamma", "threshold", "seed")
        begun = {} if self.begin is None else {"begin": hashlib.sha256(self._begin().encode()).hexdigest()}
        return {
            **{name: getattr(self, name) for name in plain},
            **begun,
            "actions": actions,
            "cells": "automatic" if self.cells is None else self.cells.description(),
            "cloning": asdict(self._cloning()),
        }

    def _begin(self) -> RecurrentPolicy:
        assert self.begin is not None
        space, choices = self._spaces()
        policy, cloning = RecurrentPolicy.load(self.begin, space), self._cloning()
        given = {
            "actions": len(policy.choices),
            "memory": policy.memory_size,
            "width": policy.weights["see"].shape[1],
        }
        wanted = {"actions": len(choices), "memory": cloning.memory, "width": cloning.width}
        if given != wanted:
            raise ValueError(f"begin is a policy with {given}, expected {wanted}; take one cloned by the same settings")
        return policy

    def _cloning(self) -> Any:
        from curious_explorer.sb3.recurrent_cloning import RecurrentCloning

        return RecurrentCloning(seed=self.seed, device=self.device) if self.cloning is None else self.cloning

    @property
    def _remembers(self) -> bool:
        return hasattr(self._cloning(), "memory")

    def run(
        self,
        folder: str | Path,
        *,
        executor: Executor | None = None,
        on_stage: Callable[[Stage], None] | None = None,
        tell: Callable[[str], None] | None = None,
        progress: Callable[[int, str], None] | None = None,
    ) -> list[Stage]:
        """Do all stages that the folder does not hold yet; returns all of them.

        Args:
            folder: where everything is kept.
            executor: where layouts are explored and tested; in this process if None.
            on_stage: called with each stage.
            tell: told in words what is being done.
            progress: while a stage explores, called with its samples so far, and words on how far it is.
        """
        claimed = study_folder(Path(folder))
        with claimed.claim(self.settings()), kept(executor or Inline()) as workers:
            return self._stages(_Run(claimed, workers, on_stage or _ignore, tell or _ignore, progress or _ignore))

    def _stages(self, run: _Run) -> list[Stage]:
        path = run.study.path
        labels: list[Labelled] = []
        stages: list[Stage] = []
        for place, count in enumerate(self.stages):
            place_of = path / f"{count:04d}"
            place_of.mkdir(exist_ok=True)
            before = 0 if place == 0 else self.stages[place - 1]
            earlier = path / f"{before:04d}" / "policy"
            new = self.split.train[before:count]
            if not (place_of / "explored.json").is_file():
                run.tell(f"exploring layouts {before + 1} to {count}")
                self._explore(run, place_of, new, labels, earlier)
            labels += read_labels(place_of / "labels.npz")
            if not (place_of / "tested.json").is_file():
                run.tell(f"cloning and testing after {count} layouts")
                self._test(run, place_of, labels)
            stages.append(read_stage(run.study, count, stages[-1] if stages else None))
            run.on_stage(stages[-1])
        return stages

    def _explore(self, run: _Run, folder: Path, layouts: Sequence[int], known: list[Labelled], earlier: Path) -> None:
        began = time.process_time()
        world = GymWorld(self.make, cells=self.cells, actions=self._spaces()[1], seed=self.seed, layouts=layouts)
        teacher = self._teacher(earlier) if self.lessons else None
        guess = teacher.policy if teacher is not None and self._remembers else None
        explorer = ManyLayouts(
            after=self.after, follow=self.follow, teacher=teacher, first_guess=guess, jobs=run.executor
        )
        left = max(self.share * len(layouts) - world.samples, 1)  # what a first look took is gone
        looked, own = world.samples, {"settings": run.study.digest()}

        def tell(found: list[Found]) -> None:
            paid = sum(each.first_reward is not None for each in found)
            done = sum(each.finished or each.error is not None for each in found)
            samples, seconds = looked + sum(each.samples for each in found), time.process_time() - began
            numbers = {"layouts": len(found), "found": paid, "done": done, "samples": samples, "seconds": seconds}
            write_json(folder / "standing.json", STANDING, numbers | own)
            run.progress(samples, f"{paid} of {len(found)} layouts paid, {done} done")

        exploration = explorer.explore(world, gamma=self.gamma, samples=left, known=known, tell=tell)
        if self._remembers and teacher is not None and teacher.policy is not None:
            teacher.policy.save(folder / "lesson")
        write_labels(folder / "labels.npz", exploration.labels)
        summary = _summary(exploration, world.samples, time.process_time() - began)
        write_json(folder / "explored.json", EXPLORED, summary | owner(run.study, folder))

    def _teacher(self, earlier: Path) -> Any:
        """Who learns from some layouts what to try in the next, and what it knows from the stage before."""
        from curious_explorer.sb3.label_cloning import CloningTeacher
        from curious_explorer.sb3.recurrent_cloning import RecurrentTeacher

        space, choices = self._spaces()
        if not self._remembers:
            lesson = replace(self._cloning(), most_updates=self.lesson_updates)
            return CloningTeacher(space, tuple(choices), lesson)
        lesson = replace(self._cloning(), updates=self.lesson_updates, updates_a_layout=0)
        known = _policy_in(earlier, space)
        if known is None and self.begin is not None:
            known = self._begin()
        return RecurrentTeacher(space, choices, lesson, begin=known)

    def _spaces(self) -> tuple[Any, list[Any]]:
        """The observation space, and the actions by number."""
        env = self.make()
        try:
            return env.observation_space, ActionSet.of(env.action_space, self.actions).choices
        finally:
            env.close()

    def _test(self, run: _Run, folder: Path, labels: list[Labelled]) -> None:
        began = time.process_time()
        if any(len(each.observations) for each in labels):
            space, choices = self._spaces()
            begin = {"begin": _policy_in(folder / "lesson", space)} if self._remembers else {}
            policy = self._cloning().clone(labels, space, choices, **begin)
            policy.save(folder / "policy")
            split = self.split
            result = play_unseen(
                self.make,
                policy,
                split.test,
                explored=split.train,
                seed=self.seed,
                threshold=self.threshold,
                executor=run.executor,
            )
            numbers = {name: getattr(result, name) for name in ("solved", "tested", "low", "high", "steps", "failed")}
        else:
            numbers = {"solved": 0, "tested": self.tests, "low": 0.0, "high": 1.0, "steps": 0, "failed": ()}
        numbers["seconds"] = time.process_time() - began
        write_json(folder / "tested.json", TESTED, numbers | owner(run.study, folder))


def study_folder(path: Path) -> RunFolder:
    """The folder of a study."""
    return RunFolder(path, "study.json", STUDY, "study of layouts", StudyError, "choose another folder")


def owner(study: RunFolder, folder: Path) -> dict[str, str]:
    """What says that the files of a stage belong together."""
    labels = read_plain(folder / "labels.npz", within=study.path)
    return {"settings": study.digest(), "labels_digest": hashlib.sha256(labels).hexdigest()}


def read_stage(study: RunFolder, count: int, before: Stage | None) -> Stage:
    """What a stage came to, with the stages before it."""
    folder = study.path / f"{count:04d}"
    labels = sum(len(each.observations) for each in read_labels(folder / "labels.npz"))
    with reading(folder, StudyError, advice="delete it and run the same again"):
        explored = _read_own(study, folder / "explored.json", EXPLORED, _EXPLORED_KEYS)
        tested = _read_own(study, folder / "tested.json", TESTED, _TESTED_KEYS)
        first = [None if each is None else check_count(each, "first_rewards") for each in explored["first_rewards"]]
        return Stage(
            layouts=count,
            found=check_size(explored, "found", least=0) + (before.found if before else 0),
            samples=check_size(explored, "samples", least=0) + (before.samples if before else 0),
            labels=labels + (before.labels if before else 0),
            first_rewards=tuple(first),
            solved=check_size(tested, "solved", least=0),
            tested=check_size(tested, "tested"),
            low=finite_number(tested["low"], "low"),
            high=finite_number(tested["high"], "high"),
            test_steps=check_size(tested, "steps", least=0),
            seconds=finite_number(explored["seconds"], "seconds") + finite_number(tested["seconds"], "seconds"),
            set_aside=check_size(explored, "set_aside", least=0) + (before.set_aside if before else 0),
            failed=check_size(explored, "failed", least=0) + (before.failed if before else 0),
            tests_failed=tuple(check_count(each, "failed") for each in tested["failed"]),
            report=str(explored["report"]),
            repeatable=explored.get("repeatable", True) is True,
        )


def _read_own(study: RunFolder, path: Path, kind: Format, keys: set[str]) -> dict[str, Any]:
    check_inside(path, study.path)
    found = read_json(path, kind, keys | {"settings", "labels_digest"}, since=_SINCE)
    if "settings" in found:
        study.check_digest(found["settings"])
        if found["labels_digest"] != owner(study, path.parent)["labels_digest"]:
            raise ValueError(f"the labels beside {path.name} are not those that it was made with")
    return found


def where_it_stands(folder: str | Path) -> str:
    """In words, how far a study has come that was stopped."""
    stages = sorted(path for path in Path(folder).iterdir() if path.is_dir())
    if not stages:
        return "nothing was explored"
    last = stages[-1]
    if (last / "tested.json").is_file():
        return f"after the stage of {int(last.name)} layouts"
    if (last / "explored.json").is_file():
        return f"in cloning or testing after {int(last.name)} layouts"
    if not os.path.lexists(last / "standing.json"):
        return f"at the beginning of the stage of {int(last.name)} layouts"
    path = last / "standing.json"
    with reading(path, StudyError, advice=f"delete the folder {last.name} and run the same again"):
        now = read_json(path, STANDING, {*_STANDING_TYPES, "settings"}, since=_SINCE)
        check_types(now, _STANDING_TYPES)
        if "settings" in now:
            study_folder(Path(folder)).check_digest(now["settings"])
    return (
        f"in exploring for the stage of {int(last.name)} layouts: of the {now['layouts']} that it adds {now['found']} "
        f"had paid and {now['done']} were done, with {now['samples']:,} samples"
    )


def _policy_in(folder: Path, space: Any) -> RecurrentPolicy | None:
    return RecurrentPolicy.load(folder, space) if folder.is_dir() else None


def _summary(exploration: LayoutExploration, samples: int, seconds: float) -> dict[str, Any]:
    return {
        **exploration.summary._asdict(),
        "samples": samples,
        "first_rewards": [each.first_reward for each in exploration.layouts.values()],
        "report": exploration.report(),
        "repeatable": exploration.repeatable,
        "seconds": seconds,
    }


def study_of_minigrid(name: str, *, max_cells: int = 1_000_000, **settings: Any) -> LayoutsStudy:
    """A study of a MiniGrid by its id: its symbolic state as cells, and the actions that do anything."""
    from curious_explorer.gym.discovered_cells import MiniGridCells

    return LayoutsStudy(
        name=name,
        make=functools.partial(make_by_id, name),
        cells=MiniGridCells(max_cells, things=True),
        actions=list(range(6)),
        **settings,
    )
