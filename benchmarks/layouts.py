"""``python -m benchmarks.layouts``: success on layouts never seen, after exploring 8, 16, 32, 64, ... others.

For each task and seed: layouts are explored, one network is cloned from what was found best in them (no learning by
reward), and it plays one episode in each of 500 layouts that were neither explored nor learned from. Every step of
exploring is a sample, those in which the network acts included; those of tests are listed apart. ``--arms`` says how:

- memory: the network remembers the episode; what was cloned from the layouts so far tells what to try first in the
  next, and acts alone in some episodes;
- view: the same with a network that sees the last view alone;
- apart: without memory, and each layout is explored knowing nothing of the others.

With ``--ignore-seeds`` every reset draws another layout, whatever it is asked for, so that none can be come back to.

Settings were chosen on MultiRoom-N4, KeyCorridorS3R1 and KeyCorridorS3R2 with seeds below 100, and then left alone.

Everything is kept in ``--out``: run the same command again to go on, or with more ``--stages`` to go further. A line is
printed for each stage, and kept with the settings in ``results.json``. After ``--minutes``, or where it is terminated,
it stops, and says where it stood.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from curious_explorer.gym.cells import Env
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.sb3.label_cloning import Cloning
from curious_explorer.sb3.recurrent_cloning import RecurrentCloning
from curious_explorer.storage import Format, write_json
from curious_explorer.studies.layouts_study import Stage, study_of_minigrid, where_it_stands
from curious_explorer.studies.runner import make_executor

TASKS = {
    "MultiRoom-N4": "MiniGrid-MultiRoom-N4-S5-v0",
    "MultiRoom-N6": "MiniGrid-MultiRoom-N6-v0",
    # Not registered by MiniGrid, though the literature has it.
    "MultiRoom-N7-S8": "MiniGrid-MultiRoom-N6-v0?minNumRooms=7&maxNumRooms=7&maxRoomSize=8",
    "DoorKey-5x5": "MiniGrid-DoorKey-5x5-v0",
    "DoorKey-8x8": "MiniGrid-DoorKey-8x8-v0",
    "KeyCorridorS3R1": "MiniGrid-KeyCorridorS3R1-v0",
    "KeyCorridorS3R2": "MiniGrid-KeyCorridorS3R2-v0",
    "KeyCorridorS3R3": "MiniGrid-KeyCorridorS3R3-v0",
    "KeyCorridorS4R3": "MiniGrid-KeyCorridorS4R3-v0",
    "KeyCorridorS6R3": "MiniGrid-KeyCorridorS6R3-v0",
    "ObstructedMaze-1Dlh": "MiniGrid-ObstructedMaze-1Dlh-v0",
    "ObstructedMaze-2Dlh": "MiniGrid-ObstructedMaze-2Dlh-v0",
}
ARMS = ("memory", "view", "apart")
RESULTS = Format("curious-explorer/layouts-benchmark", 1)


class IgnoresSeeds(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Every reset draws another layout, even by the same seed."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._seed = self._resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        self._seed = self._seed if seed is None else seed
        self._resets += 1
        drawn = np.random.default_rng([self._seed, self._resets]).integers(1 << 30)
        return self.env.reset(seed=int(drawn), options=options)


def make_ignoring(identifier: str) -> Env:
    """An environment whose layouts cannot be come back to."""
    return IgnoresSeeds(make_by_id(identifier))


class TimeIsUpError(Exception):
    """The time that was given is over."""


@contextlib.contextmanager
def stopped_after(minutes: float | None) -> Iterator[None]:
    """Raises an error in the block after so long, or where the process is told to end."""

    def stop(*_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        raise TimeIsUpError

    for which in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(which, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.0 if minutes is None else 60.0 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def line(task: str, arm: str, seed: int, stage: Stage) -> str:
    """One stage of one run."""
    firsts = [first for first in stage.first_rewards if first is not None]
    first = f"{np.median(firsts):,.0f}" if firsts else "none"
    return (
        f"| {task} | {arm} | {seed} | {stage.layouts} | {stage.found} | {stage.samples:,} | {first} | "
        f"{stage.solved / stage.tested:.3f} ({stage.low:.3f} to {stage.high:.3f}) | {stage.test_steps:,} | "
        f"{stage.seconds:,.0f} |"
    )


def run(task: str, arm: str, seed: int, asked: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """All stages of one run, those already done included."""
    cloning: Any = Cloning(seed=seed)
    if arm == "memory":
        changed = dict(each.split("=") for each in asked.set)
        cloning = RecurrentCloning(
            seed=seed,
            device=asked.device,
            **{name: type(getattr(RecurrentCloning, name))(value) for name, value in changed.items()},
        )
    study = study_of_minigrid(
        TASKS[task],
        stages=tuple(asked.stages),
        share=asked.share,
        after=asked.after,
        follow=asked.follow,
        lessons=arm != "apart",
        lesson_updates=asked.lesson_updates if arm == "memory" else 600,
        tests=asked.tests,
        seed=seed,
        begin=asked.begin if arm == "memory" else None,
        cloning=cloning,
    )
    if asked.ignore_seeds:
        study = replace(study, name=f"{study.name}, seeds ignored", make=functools.partial(make_ignoring, TASKS[task]))
    folder, about = Path(asked.out) / f"{task}-{arm}-{seed}", {"task": task, "arm": arm, "seed": seed}

    def on_stage(stage: Stage) -> None:
        print(line(task, arm, seed, stage), flush=True)
        results.append(about | stage._asdict())
        keep(asked, results)

    try:
        study.run(folder, executor=make_executor(None, workers=asked.workers), on_stage=on_stage)
    except TimeIsUpError:
        where = where_it_stands(folder) if folder.is_dir() else "nothing was explored"
        print(f"{task}, {arm}, seed {seed}: stopped {where}", flush=True)
        results.append(about | {"stopped": where})
        keep(asked, results)
        raise


def keep(asked: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """Write what was asked for and what came of it."""
    write_json(Path(asked.out) / "results.json", RESULTS, {"asked": vars(asked), "runs": results})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = [task for task in TASKS if task != "DoorKey-5x5"]
    parser.add_argument("--tasks", default=",".join(tasks), help="some of: " + ", ".join(TASKS))
    parser.add_argument("--arms", default="memory", help="some of: " + ", ".join(ARMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100, help="settings were chosen on seeds below")
    parser.add_argument("--stages", type=lambda text: [int(part) for part in text.split(",")], default=[8, 16, 32, 64])
    parser.add_argument("--share", type=int, default=100_000, help="samples for each layout, on average")
    defaults = study_of_minigrid("")
    parser.add_argument("--after", type=int, default=defaults.after, help="samples in a layout after its first reward")
    parser.add_argument("--follow", type=int, default=defaults.follow, help="episodes of the network in a layout")
    parser.add_argument("--lesson-updates", type=int, default=defaults.lesson_updates)
    parser.add_argument("--set", action="append", default=[], help="of RecurrentCloning, such as memory=256")
    parser.add_argument("--begin", help="a policy of an easier task to begin with: FOLDER/TASK-memory-100/0064/policy")
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="where the network that remembers learns")
    parser.add_argument("--ignore-seeds", action="store_true", help="every reset draws another layout")
    parser.add_argument("--minutes", type=float, help="how long at most; without limit if left out")
    parser.add_argument("--out", default="results/layouts")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    Path(asked.out).mkdir(parents=True, exist_ok=True)
    print(
        "| task | arm | seed | layouts | paid | samples | median to first reward | unseen solved | test steps | "
        "CPU seconds |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    results: list[dict[str, Any]] = []
    try:
        with stopped_after(asked.minutes):
            for task in asked.tasks.split(","):
                for arm in asked.arms.split(","):
                    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
                        run(task, arm, seed, asked, results)
    except TimeIsUpError:
        sys.stdout.flush()
        os._exit(3)  # not waiting for what workers are doing; they end with this process


if __name__ == "__main__":
    main()
