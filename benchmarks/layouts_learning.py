"""``python -m benchmarks.layouts_learning``: one learner across layouts by reward, from starts that move in each.

For each task and seed ``--layouts`` layouts are explored, what was found best is cloned into a network that sees the
last view alone, or with ``--memory`` into one that remembers, and PPO goes on from it (arm cloned) or begins from
nothing (arm nothing), from starts that move back from the reward in every layout; a share ``--new`` of the episodes
begins at the own start of layouts that were not explored, either. Before and after, one episode is played in each of
500 layouts that were neither explored nor learned from. Every step of exploring and learning is a sample, those of
roll-ins included.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.layouts import TASKS, TimeIsUpError, stopped_after
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.gym.discovered_cells import MiniGridCells
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.layout_starts import LayoutStarts
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.sb3.label_cloning import Cloning, CloningTeacher
from curious_explorer.sb3.layout_training import LayoutTraining, train_in_layouts
from curious_explorer.sb3.recurrent_cloning import RecurrentCloning, RecurrentTeacher
from curious_explorer.storage import Format, write_json
from curious_explorer.studies.executors import kept
from curious_explorer.studies.runner import make_executor
from curious_explorer.studies.unseen_layouts import UnseenSuccess, play_unseen, split_layouts

ARMS = ("cloned", "nothing")
ACTIONS = tuple(range(6))
"""All but the one that does nothing."""
RESULTS = Format("curious-explorer/layouts-learning", 1)


def run(task: str, seed: int, asked: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    """Explore, clone, learn, and test before and after."""
    make = functools.partial(make_by_id, TASKS[task])
    split = split_layouts(asked.layouts, asked.tests, seed=seed)
    world = GymWorld(make, cells=MiniGridCells(1_000_000, things=True), actions=ACTIONS, seed=seed, layouts=split.train)
    space = world.observation_space
    cloning: Any = RecurrentCloning(seed=seed, device=asked.device) if asked.memory else Cloning(seed=seed)
    teacher: Any = CloningTeacher(space, ACTIONS, Cloning(seed=seed, most_updates=600))
    if asked.memory:
        teacher = RecurrentTeacher(space, ACTIONS, replace(cloning, updates=150, updates_a_layout=0))
    with kept(make_executor(None, workers=asked.workers)) as workers:
        explorer = ManyLayouts(teacher=teacher, jobs=workers)
        exploration = explorer.explore(world, gamma=0.99, samples=100_000 * asked.layouts)
    begin = {"begin": teacher.policy} if asked.memory else {}
    cloned = cloning.clone(exploration.labels, space, ACTIONS, **begin)

    def tell(arm: str, samples: int, standing: float, policy: Any) -> None:
        told: UnseenSuccess = play_unseen(make, policy, split.test, explored=split.train, seed=seed)
        words = f"{told.share:.3f} ({told.low:.3f} to {told.high:.3f})"
        print(
            f"| {task} | {'memory' if asked.memory else 'view'} | {seed} | {asked.layouts} | {asked.new} | {arm} | "
            f"{exploration.samples:,} | {samples:,} | {standing:.2f} | {words} | {time.process_time():,.0f} |",
            flush=True,
        )
        about = {"task": task, "seed": seed, "layouts": asked.layouts, "arm": arm, "explored": exploration.samples}
        about |= {"memory": asked.memory, "new": asked.new}
        numbers = {"learned": samples, "standing": standing, "solved": told.solved, "tested": told.tested}
        results.append(about | numbers)
        write_json(Path(asked.out) / "results.json", RESULTS, {"asked": vars(asked), "runs": results})

    tell("cloning alone", 0, 0.0, cloned)
    for arm in asked.arms.split(","):
        settings = LayoutTraining(samples=asked.samples, seed=seed, recurrent=asked.memory and arm == "nothing")
        starts = LayoutStarts.of(exploration, new=asked.new)
        trained = train_in_layouts(make, starts, settings, cloned=cloned if arm == "cloned" else None)
        tell(arm, trained.samples, trained.standing, trained.policy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="MultiRoom-N4", help="some of: " + ", ".join(TASKS))
    parser.add_argument("--arms", default="cloned", help="some of: " + ", ".join(ARMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--layouts", type=int, default=16)
    parser.add_argument("--memory", action="store_true", help="the network remembers the episode")
    parser.add_argument("--new", type=float, default=0.0, help="the share of episodes in layouts that are new")
    parser.add_argument("--workers", type=int, default=1, help="processes that explore")
    parser.add_argument("--device", default="cpu", help="where the network that remembers is cloned")
    parser.add_argument("--samples", type=int, default=300_000, help="of learning")
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--minutes", type=float, help="how long at most; without limit if left out")
    parser.add_argument("--out", default="results/layouts-learning")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    Path(asked.out).mkdir(parents=True, exist_ok=True)
    print(
        "| task | network | seed | layouts | new | arm | samples of exploring | of learning | standing | unseen "
        "solved | CPU seconds |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    results: list[dict[str, Any]] = []
    try:
        with stopped_after(asked.minutes):
            for task in asked.tasks.split(","):
                for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
                    run(task, seed, asked, results)
    except TimeIsUpError:
        print("stopped when the time was up", flush=True)


if __name__ == "__main__":
    main()
