"""The arms, each from an id, a number of samples and a seed; every step of the environment is counted.

ours       `solve_task` with nothing else said: look, explore by counts, PPO from starts that move back from the reward
plain      PPO from the environment's own start
rnd        PPO with random network distillation, as published
noveld     PPO with NovelD
counts     PPO with a bonus of counts
planning   `Frontier` and the plan on its counts: no network
archive    back to a stored cell by its stored actions, then random steps; the way to the reward is done again, blindly

And parts of ours, to see what does the work: `Frontier` as in planning, then PPO from its counts,

warm       from starts that move, after a warm start (the defaults of `train`)
cold       from starts that move, and nothing else
spread     from starts that are spread over all that was counted; no warm start
far 0.3, ...  as cold, with one setting of the starts (`StartSettings`) changed

All that learn by PPO have its settings of `sb3.training_settings`. A run ends when three evaluations in a row reach 0.9
of the best return, or with its samples; evaluations on the way are counted, in all arms alike. What is reported comes
from fifty further episodes from the environment's own start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks.frontier import ArchiveOfWays
from benchmarks.gym_studies.tasks import Task
from curious_explorer import Exploration, Frontier, GymWorld, explore, load_policy, solve_task
from curious_explorer.callbacks import Callback, Event, on_events
from curious_explorer.gym.agents import Agent, CellAgent, play_episodes
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.resets.moving_starts import MovingStarts, StartSettings
from curious_explorer.sb3.training import Evaluated, Until, load_progress, train_into
from curious_explorer.sb3.training_settings import TrainingSettings
from curious_explorer.studies import solve_choice
from curious_explorer.studies.solve_measuring import COUNTING, PLANNED, STAGE_OF
from curious_explorer.studies.task_methods import points_of

ARMS = {
    "ours": "ours",
    "plain": "plain PPO",
    "rnd": "RND",
    "noveld": "NovelD",
    "counts": "counts",
    "planning": "planning alone",
    "archive": "archive",
    "warm": "moving starts, warm start",
    "cold": "moving starts",
    "spread": "spread starts",
}
CHANGED = {
    "far-share-0.2": StartSettings(far_share=0.2),
    "far-share-1": StartSettings(far_share=1.0),
    "cut-factor-1.5": StartSettings(cut_factor=1.5),
    "cut-factor-10": StartSettings(cut_factor=10.0),
    "own-share-0.4": StartSettings(own_share=0.4),
    "growth-1.5": StartSettings(growth=1.5),
}
"""Settings of starts, one changed at a time; the defaults are 0.6, 3, 0.1 and 1.15."""
ARMS |= {name: f"moving starts, {name}" for name in CHANGED}


class Parts(NamedTuple):
    """Which starts there are after exploring, and what comes first."""

    starts: str = "adaptive"
    warm_start: bool = False
    settings: StartSettings = StartSettings()


BONUSES = ("rnd", "noveld", "counts")
SOLVED = 0.9
"""Of the best return."""
IN_A_ROW = 3
EPISODES = 50
GAMMA = 0.99

Run = dict[str, Any]
Note = Callable[[int], None]
"""Told how many samples were taken so far, for runs that are stopped."""


def run_ours(task: Task, seed: int, samples: int, folder: Path, note: Note) -> Run:
    """`solve_task`, without its page."""
    with mock.patch.object(solve_choice, "write_report"):  # its pictures and films take longer than many a run
        solved = solve_task(
            task.environment, samples=samples, seed=seed, out=folder, progress=lambda now: note(now.samples)
        )
    summary, stages = solved.summary, solved.stages
    agent = stages["choose"]["agent"]
    return {
        "return": summary["return_mean"],
        "samples": summary["samples"],
        "curve": curve_of(stages, summary["samples"], folder),
        "agent": agent.get("folder", agent["kind"]),
        "stages": {name: int(kept["samples"]) for name, kept in stages.items() if "samples" in kept},
        "first_reward": summary["first_reward"],
        "explored": summary["explored"],
        "verdict": summary["verdict"],
    }


def curve_of(stages: dict[str, Any], samples: int, folder: Path) -> list[tuple[int, float]]:
    """What the agent that is handed out was worth on the way, by all samples that the run had taken by then.

    At most: what other stages took before and after an evaluation is not told apart, but for choosing in the end.
    """
    agent = stages["choose"]["agent"]
    samples -= stages["choose"]["samples"]
    if agent["kind"] == "network":
        saved = load_progress(folder / agent["folder"])
        assert saved is not None
        return points_of(saved[1], samples - stages[STAGE_OF[agent["folder"]]]["samples"])
    way = PLANNED if agent["kind"] == "plan" and stages["explore"].get("way") is not None else COUNTING
    measured: list[list[float]] = stages.get("measure", {}).get(way, [])
    samples -= stages["explore"]["samples"]
    if len(measured) == 1:  # at the end of exploring, before anything else went on
        plain = stages["plain"]
        samples -= sum(stages[name]["samples"] for name in ("learn", "replay") if name in stages)
        samples -= plain["samples"] - plain["trial"]
    return [(samples + int(taken), worth) for taken, worth, _ in measured]


def run_ppo(algorithm: str, task: Task, seed: int, samples: int, folder: Path, note: Note) -> Run:
    """PPO, with a bonus or without."""
    settings = TrainingSettings(
        environment=task.environment,
        algorithm=algorithm,
        samples=samples,
        seed=seed,
        layout=_layout(task, seed),
        deterministic=False,
    )

    training = train_into(folder, settings, until=_solved(task), watch=_noted(note, 0))
    evaluated = sum(each.evaluation_steps for each in training.evaluations)
    return {
        "return": _played(task, seed, load_policy(folder)),
        "samples": training.samples + evaluated,
        "curve": points_of(training.evaluations),
    }


def run_parts(parts: Parts, task: Task, seed: int, samples: int, folder: Path, note: Note) -> Run:
    """Explore by counts as `run_planning` does, then learn from starts of a kind."""
    world, exploration = _explored(task, seed, samples, note)
    settings = TrainingSettings(
        environment=task.environment,
        samples=samples - world.samples,
        seed=seed,
        layout=_layout(task, seed),
        deterministic=False,
        starts=parts.starts,
        warm_start=parts.warm_start,
    )
    defaults = partial(replace, parts.settings)
    with mock.patch.object(import_module(MovingStarts.__module__), "StartSettings", defaults):
        training = train_into(
            folder, settings, exploration.reset_model, until=_solved(task), watch=_noted(note, world.samples)
        )
    evaluated = sum(each.evaluation_steps for each in training.evaluations)
    return {
        "return": _played(task, seed, load_policy(folder)),
        "samples": world.samples + training.samples + evaluated,
        "curve": points_of(training.evaluations, world.samples),
        "explored": world.samples,
        "roll_ins": training.samples - training.learning_steps,
        "starts": None if training.starts is None else training.starts._asdict(),
        "first_reward": exploration.first_reward,
    }


def _explored(task: Task, seed: int, samples: int, note: Note) -> tuple[GymWorld, Exploration]:
    """`Frontier` until nothing is left or a reward was met and as much again, and the world it was in."""
    world = GymWorld(task.environment, seed=seed, layout=_layout(task, seed), time_limits=True)
    explorer = Frontier(after_reward=1.0, least_after_reward=samples // 20)
    watch = _noted(note, world.samples)
    return world, explore(world, explorer, gamma=GAMMA, samples=samples - world.samples, watch=watch)


def _noted(note: Note, before: int) -> Callback:
    """Tells of the samples so far."""

    def tell(event: Event) -> None:
        note(before + event.samples)

    return on_events(tell)


def _solved(task: Task) -> Until:
    """Whether the last evaluations were all good enough."""

    def solved(evaluations: Sequence[Evaluated]) -> bool:
        last = evaluations[-IN_A_ROW:]
        return len(last) == IN_A_ROW and all(each.mean_return >= SOLVED * task.best for each in last)

    return solved


def run_planning(task: Task, seed: int, samples: int, folder: Path, note: Note) -> Run:
    """Explore by counts until nothing is left or a reward was met and as much again; then act by the plan."""
    world, exploration = _explored(task, seed, samples, note)
    policy = exploration.policy
    assert policy is not None
    agent = CellAgent(np.asarray(policy), world.discretisation, seed=seed)
    return {
        "return": _played(task, seed, agent),
        "samples": world.samples,
        "first_reward": exploration.first_reward,
    }


def run_archive(task: Task, seed: int, samples: int, folder: Path, note: Note) -> Run:
    """Go back by stored actions and on at random until the best return was met; then do the same again."""
    world = GymWorld(task.environment, seed=seed, layout=_layout(task, seed), time_limits=True)
    archive = ArchiveOfWays(world, np.random.default_rng(seed))
    while world.samples < samples and archive.best_return < SOLVED * task.best:
        archive.advance(samples)
        note(world.samples)
    choices = world.discretisation.action_set.choices
    hold = world.discretisation.action_set.hold
    way = [choices[number] for number in archive.best_way for _ in range(hold)]
    found: Run = {"return": _played(task, seed, Repeated(way)), "samples": world.samples}
    return found | {"first_reward": archive.first_reward}


class Repeated(Agent):
    """Does the same actions in every episode, whatever it sees, and the last one of them when none is left."""

    def __init__(self, way: list[Any]) -> None:
        self._way, self._done = way, 0

    def begin(self) -> None:
        self._done = 0

    def act(self, observation: Any, env: Any = None) -> Any:
        self._done += 1
        if not self._way:
            return env.action_space.sample()
        return self._way[min(self._done, len(self._way)) - 1]


ARM_FUNCTIONS: dict[str, Callable[[Task, int, int, Path, Note], Run]] = {
    "ours": run_ours,
    "plain": partial(run_ppo, "ppo"),
    "planning": run_planning,
    "archive": run_archive,
    **{name: partial(run_ppo, name) for name in BONUSES},
    "warm": partial(run_parts, Parts(warm_start=True)),
    "cold": partial(run_parts, Parts()),
    "spread": partial(run_parts, Parts("spread")),
    **{name: partial(run_parts, Parts(settings=changed)) for name, changed in CHANGED.items()},
}


def run_arm(task: Task, arm: str, seed: int, samples: int, folder: Path, note: Note) -> Run:
    """One run: its return as a share of the best, whether that is solved, and after how many samples it was."""
    found = ARM_FUNCTIONS[arm](task, seed, samples, folder, note)
    curve = [(taken, returned / task.best) for taken, returned in found.get("curve", [])]
    fraction = found["return"] / task.best
    solved = fraction >= SOLVED
    at = solved_at(curve, found["samples"]) if solved else None
    return found | {"fraction": fraction, "solved": solved, "solved_at": at, "curve": curve}


def solved_at(curve: Sequence[tuple[int, float]], samples: int) -> int:
    """Samples at the first of the good evaluations that a solved run ended with; all samples where it has none."""
    found = samples
    for taken, fraction in reversed(curve):
        if fraction < SOLVED:
            break
        found = min(found, taken)
    return found


def _played(task: Task, seed: int, agent: Agent) -> float:
    """The mean return of fresh episodes."""
    env = with_layout(make_by_id(task.environment), _layout(task, seed))
    played = play_episodes(env, agent, EPISODES, seed=1_000_000 + seed)
    env.close()
    return played.mean_return


def _layout(task: Task, seed: int) -> int | None:
    return seed if task.layouts else None
