"""``solve ID --layouts N``: explore N layouts, clone what was found best, test on layouts never seen.

Seeds of training and test layouts are drawn apart (see `unseen_layouts`). The folder is that of a `LayoutsStudy` with
one stage, and ``summary.json`` beside it; `load_policy` and ``play`` take it. No network is trained by reward here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from curious_explorer.errors import StudyError
from curious_explorer.gym.agents import Agent, RememberingAgent
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.optional_packages import require
from curious_explorer.storage import Format, check_types, read_json, reading, write_json
from curious_explorer.studies.executors import Executor
from curious_explorer.studies.layouts_study import LayoutsStudy, Stage, study_folder
from curious_explorer.studies.unseen_layouts import LEAST_TESTS
from curious_explorer.validation import check_count, check_seed

SUMMARY = Format("curious-explorer/layouts-summary", 1)
SUMMARY_FILE = "summary.json"
_SUMMARY_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("environment", "report", "verdict"), (str,)),
    **dict.fromkeys(("tested", "layouts", "found", "samples", "evaluation_samples", "labels"), (int,)),
    **dict.fromkeys(("set_aside", "failed"), (int,)),
    **dict.fromkeys(("interval", "tests_failed"), (list,)),
    "success": (int, float),
    "repeatable": (bool,),
    "settings": (dict,),
}
LEAST_SHARE = 50
"""Samples for each layout below which nothing can be explored."""


def solve_layouts(
    environment: str,
    *,
    layouts: int,
    samples: int,
    out: str | Path,
    seed: int = 0,
    tests: int = LEAST_TESTS,
    success_return: float = 0.0,
    device: str = "cpu",
    executor: Executor | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> dict[str, Any]:
    """Explore layouts of an environment by its id, and learn what solves others; returns the summary.

    Args:
        environment: any Gymnasium id.
        layouts: how many to explore.
        samples: the most steps of exploring, in all of them together.
        out: a folder; a run that was interrupted goes on.
        seed: of everything random, and of which layouts are drawn.
        tests: on how many other layouts to test.
        success_return: a test layout is solved if its episode returns more.
        device: where PyTorch clones; layouts are explored and tested without it.
        executor: where layouts are explored and tested.
        tell: told in words what is being done.
        progress: called with the samples of exploring so far, and words on how far it is.
    """
    check_count(layouts, "layouts", least=1)
    if check_count(samples, "samples", least=1) < LEAST_SHARE * layouts:
        raise ValueError(
            f"samples is {samples:,}, expected at least {LEAST_SHARE * layouts:,} for {layouts} layouts ({LEAST_SHARE} "
            "each); give more, or explore fewer layouts"
        )
    require("torch", "sb3")  # before an hour of exploring, not after it
    make = functools.partial(make_by_id, environment)
    make().close()  # a misspelt id is refused before anything is written
    study = LayoutsStudy(
        name=environment,
        make=make,
        stages=(layouts,),
        share=samples // layouts,
        tests=tests,
        threshold=success_return,
        seed=check_seed(seed),
        device=device,
    )
    (stage,) = study.run(out, executor=executor, tell=tell, progress=progress)
    summary = {
        "environment": environment,
        "success": stage.solved / stage.tested,
        "interval": [stage.low, stage.high],
        "tested": stage.tested,
        "layouts": stage.layouts,
        "found": stage.found,
        "set_aside": stage.set_aside,
        "failed": stage.failed,
        "report": stage.report,
        "repeatable": stage.repeatable,
        "tests_failed": list(stage.tests_failed),
        "samples": stage.samples,
        "evaluation_samples": stage.test_steps,
        "labels": stage.labels,
        "settings": study.settings(),
        "verdict": verdict(stage),
    }
    write_json(Path(out) / SUMMARY_FILE, SUMMARY, summary)
    return summary


def verdict(stage: Stage) -> str:
    """What came of it, in words."""
    if stage.found == 0:
        return (
            f"no reward was seen in any of {stage.layouts} layouts within {stage.samples:,} samples; give more samples"
        )
    share, limits = stage.solved / stage.tested, f"{stage.low:.3f} to {stage.high:.3f}"
    words = f"{share:.3f} of {stage.tested} layouts never seen are solved ({limits}), after exploring "
    if stage.repeatable:
        words += f"{stage.layouts} others, {stage.found} of which paid, with {stage.samples:,} samples"
    else:
        words += (
            f"all layouts as one with {stage.samples:,} samples: two restarts by one seed did not agree, so that "
            "no layout can be come back to"
        )
    if stage.tests_failed:
        words += (
            f"; in {len(stage.tests_failed)} of those tested the environment raised ({_few(stage.tests_failed)}), and "
            "they count as not solved"
        )
    if share >= 0.9:
        return words
    return f"{words}; more layouts help most, then more samples for each"


def _few(layouts: Sequence[int]) -> str:
    return ", ".join(map(str, layouts[:5])) + (", ..." if len(layouts) > 5 else "")


def layouts_summary(folder: Path) -> dict[str, Any] | None:
    """What a run has left in its folder; None if that is of another kind."""
    path = folder / SUMMARY_FILE
    if not all(map(os.path.lexists, (path, folder / "study.json"))):
        return None
    with reading(path, StudyError, "a summary of layouts", "run the same command again"):
        summary = read_json(path, SUMMARY, set(_SUMMARY_TYPES))
        check_types(summary, _SUMMARY_TYPES)
        if summary["settings"] != study_folder(folder).settings():
            raise ValueError("it was made with other settings than the study has")
        return summary


def layouts_agent(folder: Path, *, deterministic: bool | None, seed: int) -> Agent:
    """Who acts by what a run has learned; actions are drawn, as they were in its test, unless it is told otherwise."""
    summary = layouts_summary(folder)
    assert summary is not None
    policy = folder / f"{summary['layouts']:04d}" / "policy"
    if not policy.is_dir():
        raise StudyError(f"{folder} has learned nothing: {summary['verdict']}")
    env = make_by_id(summary["environment"])
    try:
        loaded = RecurrentPolicy.load(policy, env.observation_space)
    finally:
        env.close()
    return RememberingAgent(loaded, deterministic=bool(deterministic), seed=seed)
