"""The methods that can be compared on any Gymnasium environment, by id: `solve`, plans on counts, and plain learners.

solve      `solve_task` with nothing else said: look, explore by counts, learn from starts that move back from rewards
frontier   `Frontier`, and the plan on its counts: no network
rnd        PPO with random network distillation, as published
noveld     PPO with NovelD
counts     PPO with a bonus of counts
ppo, ...   what `train` knows, from the environment's own start

Each is a function of a `Task` that returns a `TaskResult`. Every step counts that anything was learned or chosen by,
those of evaluations on the way included, and none takes more than the task allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from curious_explorer.explorers.frontier import Frontier
from curious_explorer.gym.agents import LONGEST_EPISODE, Agent, CellAgent
from curious_explorer.gym.cells import Env
from curious_explorer.gym.fixed_layout import with_layout
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.time_limits import time_limit_of
from curious_explorer.sb3.algorithms import OFF_POLICY, TRAINABLE, WITH_BONUS
from curious_explorer.sb3.training import Evaluated, Until, load_progress, load_trained, train_into
from curious_explorer.sb3.training_settings import EVALUATION_SHARE, FEWEST_EPISODES, TrainingSettings
from curious_explorer.studies.solve_files import LEARNING, PLAIN
from curious_explorer.studies.solve_settings import LEAST_SAMPLES
from curious_explorer.studies.solving import LEAST_EPISODES, solve_task
from curious_explorer.validation import check_name

Points = list[tuple[int, float]]


class Task(NamedTuple):
    """An environment by its id, and what a method may take in it."""

    environment: str
    samples: int
    """Steps in all, those of evaluations on the way included."""
    folder: Path
    """Where a method may keep things; empty."""
    seed: int = 0
    layout: int | None = None
    """The layout of every episode; as the environment likes if None."""

    def make(self) -> Env:
        """The environment."""
        return with_layout(make_by_id(self.environment), self.layout)


class TaskResult(NamedTuple):
    """What a method made of a task."""

    agent: Agent
    samples: int
    """Every step that was taken for it."""
    points: Points
    """After how many samples which mean return was met when it was evaluated on the way."""


class TaskMethod(Protocol):
    """Anything that makes an agent of a task."""

    learns: ClassVar[bool]
    """Whether it trains networks, by Stable-Baselines3."""

    def __call__(self, task: Task) -> TaskResult:
        """Learn."""

    def least_samples(self, longest: int) -> int:
        """The fewest samples that it can do anything with, where episodes may last so long."""


@dataclass(frozen=True, kw_only=True)
class Solve:
    """`solve_task`, which chooses everything else from what it measures."""

    learns: ClassVar[bool] = True

    def __call__(self, task: Task) -> TaskResult:
        """Solve."""
        solved = solve_task(
            task.environment, samples=task.samples, seed=task.seed, layout=task.layout, out=task.folder / "solve"
        )
        stages, points = solved.stages, list[tuple[int, float]]()
        before = int(stages["look"]["samples"])
        for name, stage in ((PLAIN, "plain"), (LEARNING, "learn")):
            if stage == "learn":
                before += int(stages.get("plain", {}).get("samples", 0))
                before += int(stages.get("explore", {}).get("samples", 0))
            saved = load_progress(solved.folder / name)
            points += [] if saved is None else points_of(saved[1], before)
        return TaskResult(solved.policy, solved.summary["samples"], points)

    def least_samples(self, longest: int) -> int:
        """As many as `solve_task` asks for."""
        return max(LEAST_SAMPLES, LEAST_EPISODES * longest)


@dataclass(frozen=True, kw_only=True)
class ExploreAndPlan:
    """`Frontier` until nothing is left, or a reward was met and as much again; then the plan on its counts."""

    learns: ClassVar[bool] = False
    gamma: float = 0.99
    """The discount of the plan."""
    after_reward: float = 1.0
    least_after_share: float = 0.05
    """It goes on after a reward for at least this share of all samples."""

    def __call__(self, task: Task) -> TaskResult:
        """Explore, and plan."""
        world = GymWorld(
            task.environment, seed=task.seed, layout=task.layout, time_limits=True, look=max(1, task.samples // 5)
        )
        after = int(self.least_after_share * task.samples)
        explorer = Frontier(after_reward=self.after_reward, least_after_reward=after)
        exploration = explorer.explore(world, gamma=self.gamma, samples=task.samples - world.samples)
        agent = CellAgent(np.asarray(exploration.policy), world.discretisation, seed=task.seed)
        world.close()
        return TaskResult(agent, world.samples, [])

    def least_samples(self, longest: int) -> int:
        """An episode."""
        return longest


@dataclass(frozen=True, kw_only=True)
class Learn:
    """An algorithm of `train`, from the environment's own start; the best that it was evaluated at is what counts."""

    learns: ClassVar[bool] = True
    algorithm: str
    enough: Until | None = None
    """Asked after every evaluation whether that is enough."""

    def __call__(self, task: Task) -> TaskResult:
        """Train with what evaluations leave, should all their episodes last as long as they may."""
        settings = TrainingSettings(
            environment=task.environment,
            algorithm=self.algorithm,
            samples=task.samples,
            seed=task.seed,
            layout=task.layout,
            deterministic=self.algorithm in OFF_POLICY,
        ).with_evaluations()
        interval, episodes = settings.evaluate_every, settings.evaluation_episodes
        assert interval is not None
        assert episodes is not None
        evaluation = episodes * longest_episode(task.make())
        left = task.samples - evaluation  # that of the beginning
        learned_from = max(1, left - -(-left // (interval + evaluation)) * evaluation)
        folder = task.folder / "training"
        training = train_into(folder, replace(settings, samples=learned_from), until=self.enough)
        points = points_of(training.evaluations)
        return TaskResult(load_trained(folder)[0], points[-1][0], points)

    def least_samples(self, longest: int) -> int:
        """An evaluation, a stretch of learning, and another evaluation."""
        return (2 + EVALUATION_SHARE) * FEWEST_EPISODES * longest


def longest_episode(env: Env) -> int:
    """The most steps of an episode that is evaluated; closes the environment."""
    limit = time_limit_of(env)
    env.close()
    return LONGEST_EPISODE if limit is None else limit


def points_of(evaluations: Sequence[Evaluated], before: int = 0) -> Points:
    """The mean returns of evaluations, each after all steps up to its own end; ``before`` were taken earlier."""
    taken = np.cumsum([each.evaluation_steps for each in evaluations]) + before
    return [(int(more) + each.samples, each.mean_return) for each, more in zip(evaluations, taken, strict=True)]


TASK_METHODS: dict[str, Callable[[], TaskMethod]] = {
    "solve": Solve,
    "frontier": ExploreAndPlan,
    **{name: partial(Learn, algorithm=name) for name in ("ppo", *WITH_BONUS)},
    **{name: partial(Learn, algorithm=name) for name in TRAINABLE if name not in ("ppo", *WITH_BONUS)},
}
"""Each makes a `TaskMethod`."""
DEFAULT_TASK_METHODS = ("solve", "frontier", "ppo", *WITH_BONUS)
"""Those of the studies; the other algorithms of `train` are compared when they are named."""


def make_task_method(name: str) -> TaskMethod:
    """A method by its id; raises ``ValueError`` with the nearest match for one that is not known."""
    return TASK_METHODS[check_name(name, TASK_METHODS, "method")]()
