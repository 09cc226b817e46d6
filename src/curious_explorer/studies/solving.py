"""`solve_task`: from an environment and a number of samples to an agent, or to a clear account of why not.

    look       random actions: what is paid, how long episodes last, whether layouts change
    plain      a learner at the environment's own start, for a while: where that is enough, that is all
    explore    by counts, until a reward and a good while more; the plan on the counts is measured
    halving    what is left is shared among learning plainly, learning from starts that move back from the reward to
               the environment's own start, and counting on; the worst is given up, until one has the rest
    choose     the best of what was learned, and the plan on the counts, by fresh episodes
    evaluate   fifty fresh episodes

One number of samples is shared out as it goes, and every step counts that anything was learned or chosen by; the fifty
episodes of the end only measure, and are told apart. Settings follow from what was measured on the way, never from the
name of the task. Each stage keeps its result in ``stages.json``, and goes on where it stood when it was interrupted.

RUN/solve.json        what was asked for
RUN/stages.json       the results of the stages so far
RUN/plain, learning   trainings, see `sb3.training`
RUN/exploration       the counts, and RUN/reset_model to train from them
RUN/agent.json        which of them acts: see `playing.load_policy`
RUN/summary.json      what came of it
RUN/report.html       the same for people
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from curious_explorer.callbacks.events import Callback, Callbacks
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import COUNTS_FILE
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.agents import Agent
from curious_explorer.gym.cell_names import named_cells
from curious_explorer.gym.flat_actions import with_flat_actions
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.network_inputs import num_inputs
from curious_explorer.gym.network_policy import num_outputs
from curious_explorer.gym.time_limits import time_limit_of
from curious_explorer.optional_packages import require
from curious_explorer.sb3.algorithms import check_actions
from curious_explorer.storage import check_types, read_json, reading
from curious_explorer.studies.solve_choice import choose, evaluate
from curious_explorer.studies.solve_files import (
    EXPLORATION,
    SUMMARY,
    SUMMARY_FILE,
    chosen_agent,
    open_agent,
    solve_folder,
)
from curious_explorer.studies.solve_halving import share_out
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.solve_settings import LEAST_SAMPLES, SolveSettings
from curious_explorer.studies.solve_stages import explore, look_at, try_plainly
from curious_explorer.studies.solving_words import SUMMARY_TYPES
from curious_explorer.studies.task_look import LEAST_LONGEST

__all__ = ["LEAST_SAMPLES", "Progress", "SolveSettings", "Solved", "default_folder", "solve_task"]

LEAST_EPISODES = 20
"""So many episodes of full length must fit, those of evaluations among them."""
BEGINNING, BEGINNING_EPISODES = 4_400, 6
"""What it takes to begin: a look, an update of a plain learner, a look for cells, a few steps of exploring; and
evaluations."""


@dataclass(frozen=True)
class Solved:
    """What came of it."""

    folder: Path
    summary: dict[str, Any]
    stages: dict[str, Any] = field(repr=False)

    @cached_property
    def policy(self) -> Agent:
        """The best of what was measured: ``policy(observation)`` is an action."""
        return open_agent(self.folder, chosen_agent(self.folder))

    @cached_property
    def exploration(self) -> Exploration | None:
        """What exploring left behind; None where it was not needed."""
        found = self.folder / EXPLORATION
        return Exploration.load(found) if (found / COUNTS_FILE).is_file() else None

    def __str__(self) -> str:
        return str(self.summary["verdict"])


def solve_task(
    environment: str,
    *,
    samples: int,
    out: str | Path | None = None,
    seed: int = 0,
    algorithm: str | None = None,
    success_return: float | None = None,
    cells: str | None = None,
    layout: int | None = None,
    callback: Any = None,
    watch: Callback | None = None,
    tell: Callable[[str], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solved:
    """Bring a task to an agent, or say why not; a call that was interrupted goes on where it stood.

    Args:
        environment: a Gymnasium id: ``my_package:MyEnv-v0``, ``FrozenLake-v1?map_name=8x8``.
        samples: the most steps to take, those of roll-ins and of evaluations on the way included.
        out: the folder of the run; by default ``results/solve`` and the id.
        seed: where everything random comes from.
        algorithm: one of `TRAINABLE`.
        success_return: an episode succeeds above this return; see `SolveSettings`.
        cells: by name; chosen by themselves by default.
        layout: the layout of every episode, where resets draw layouts; the seed's by default.
        callback: of Stable-Baselines3, told of every step of learning.
        watch: told of every stretch of exploring and learning, and of every evaluation.
        tell: told in a sentence what was found and what comes next.
        progress: told how far it is.
    """
    settings = SolveSettings(
        environment=environment,
        samples=samples,
        seed=seed,
        algorithm=algorithm,
        success_return=success_return,
        cells=cells,
        layout=layout,
    )
    folder = default_folder(environment) if out is None else Path(out)
    require("stable_baselines3", "sb3")
    _check(settings)
    run = SolveRun(
        folder=folder,
        settings=settings,
        callback=callback,
        watch=watch or Callbacks(),
        tell=tell or (lambda text: None),
        progress=progress or (lambda now: None),
    )
    with solve_folder(folder).claim(asdict(settings)), warnings.catch_warnings():
        # Told once, when the environment was checked, and not for every one of a vector.
        warnings.filterwarnings("ignore", message=".*is out of date.*", category=DeprecationWarning)
        return _solve(run)


def default_folder(environment: str) -> Path:
    """Where a run goes that was not told where."""
    return Path("results") / "solve" / re.sub(r"[^A-Za-z0-9._-]+", "-", environment).strip(".-")


def _solve(run: SolveRun) -> Solved:
    """All stages; those that are done are not done again."""
    settings, folder = run.settings, run.folder
    run.tell(
        f"Solving {settings.environment} within {settings.samples:,} samples, into {folder}; interrupted, the same "
        "command goes on."
    )
    if run.read_stages():
        if (folder / SUMMARY_FILE).is_file():
            run.tell(f"{folder} holds this run already, finished.")
            return read_solved(run)
        run.tell(f"Going on in {folder} after: {', '.join(run.stages)}.")
    look = look_at(run)
    if not try_plainly(run, look):
        explore(run, look)
        share_out(run, look)
    choose(run, look)
    evaluate(run, look)
    return read_solved(run)


def read_solved(run: SolveRun) -> Solved:
    """What a run that has come to its end came to."""
    path = run.folder / SUMMARY_FILE
    with reading(path, CheckpointError, "the summary of a run of solve", "delete it, and it is written again"):
        summary = read_json(path, SUMMARY, set(SUMMARY_TYPES))
        check_types(summary, SUMMARY_TYPES)
        if summary["settings"].get("asked") != solve_folder(run.folder).settings():
            raise ValueError("it was made with other settings than the run has")
    return Solved(run.folder, {name: summary[name] for name in summary if name in SUMMARY_TYPES}, run.stages)


def _check(settings: SolveSettings) -> None:
    """Refuse now what would fail later."""
    env = with_flat_actions(make_by_id(settings.environment))
    try:
        num_inputs(env.observation_space)
        num_outputs(env.action_space)
        check_actions(settings.algorithm, env.action_space, settings.environment)
        longest = time_limit_of(env) or LEAST_LONGEST
        least = max(LEAST_EPISODES * longest, BEGINNING + BEGINNING_EPISODES * longest)
        if settings.samples < least:
            raise ValueError(
                f"samples is {settings.samples:,}, too few to look, to learn and to explore in "
                f"episodes that may last {longest:,} steps; the least is {least:,}"
            )
        if settings.cells is not None:
            named_cells(settings.cells, env)
    finally:
        env.close()
