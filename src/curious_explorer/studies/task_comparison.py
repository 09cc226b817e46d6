"""What is compared on Gymnasium tasks, and one run of it: a method on an environment with a seed and a budget.

A method is worth what its agent earns in `EPISODES` fresh episodes from the environment's own start: the mean return,
not discounted. They measure only, and are no samples. So that environments share a scale, a score says how far that is
from what random actions earn (0) to the best mean return of any run there (1). That is a matter of the whole
comparison, so runs keep returns, and `scored` makes scores of them.

Where every reset draws another layout, run s has layout s in every episode, for all methods alike.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np

from curious_explorer import __version__
from curious_explorer.gym.agents import LONGEST_EPISODE, Agent, play_episodes
from curious_explorer.gym.cells import Env
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.optional_packages import require
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, check_size
from curious_explorer.studies.comparison_run import (
    TARGET,
    TIME,
    ComparisonRun,
    Measure,
    budgets_of,
    check_grid,
    curve_in,
    grid_command,
    repr_of,
    run_path,
)
from curious_explorer.studies.run_files import RunFiles
from curious_explorer.studies.task_look import layouts_change
from curious_explorer.studies.task_methods import DEFAULT_TASK_METHODS, Task, longest_episode, make_task_method

FILES = RunFiles(Format("curious-explorer/task-comparison-run", 1), TIME)
EPISODES = 50
"""By which an agent is measured in the end."""
RANDOM_EPISODES = 20
RETURNS = "returns"
"""Such a comparison's settings say that this is what it compares by."""


class TaskJob(NamedTuple):
    """A run on a Gymnasium environment."""

    method: str
    environment: str
    seed: int
    budget: int

    @property
    def key(self) -> TaskJob:
        """What tells this run from the others."""
        return self


@dataclass(frozen=True, kw_only=True)
class TaskComparison:
    """What to compare on Gymnasium environments, by their ids."""

    methods: tuple[str, ...] = DEFAULT_TASK_METHODS
    environments: tuple[str, ...]
    """Ids, with arguments after a question mark, and with ``@`` and a budget of its own where the common one does not
    suit."""
    seeds: int = 5
    """How many; they are 0, 1, 2, ..."""
    budget: int = 100_000
    measure: ClassVar[Measure] = Measure(
        "return",
        f"A method is worth the mean return of its agent, not discounted: in the end that of {EPISODES} fresh "
        "episodes from the environment's own start, which are no samples; on the way that of the few episodes of an "
        "evaluation, which are samples. 0% stands for what random actions earn, and 100% "
        "for the best agent of any run on that environment. The curve of a method that is not evaluated on the way, "
        "such as a plan on counts, has two ends alone.",
        "decide the layout, too, where every reset draws another",
        coverage=False,
    )

    def __post_init__(self) -> None:
        check_grid(self.methods, self.environments, self.seeds, self.budget)
        methods = {name: make_task_method(name) for name in self.methods}
        if any(method.learns for method in methods.values()):
            require("stable_baselines3", "sb3")
        for environment, budget in self.budgets.items():
            longest = longest_episode(_made(environment))
            for name, method in methods.items():
                least = method.least_samples(longest)
                if budget < least:
                    raise ValueError(
                        f"the budget of {environment} is {budget:,} samples, too few for {name}, which needs at least "
                        f"{least:,}, since an episode may last {longest:,} steps; raise --samples"
                    )

    @property
    def budgets(self) -> dict[str, int]:
        """The environments and the samples that each method may take in them."""
        return budgets_of(self.environments, self.budget)

    @property
    def jobs(self) -> list[TaskJob]:
        """All runs, in the order of environments, methods and seeds."""
        return [
            TaskJob(method, environment, seed, budget)
            for environment, budget in self.budgets.items()
            for method in self.methods
            for seed in range(self.seeds)
        ]

    def described(self) -> dict[str, Any]:
        """Everything that the results depend on, as plain data."""
        return {
            "by": RETURNS,
            "library": __version__,
            "methods": {name: repr_of(make_task_method(name)) for name in self.methods},
            "environments": self.budgets,
            "seeds": self.seeds,
            "episodes": EPISODES,
            "target": TARGET,
        }

    @property
    def command(self) -> str:
        """The command that does this comparison again."""
        return grid_command(self.methods, DEFAULT_TASK_METHODS, self.budgets, self.seeds)


def _made(environment: str) -> Env:
    try:
        return make_by_id(environment)
    except ValueError as error:
        raise ValueError(f"environment {environment!r} cannot be compared on: {error}") from error


class RandomAgent(Agent):
    """Draws every action from the space of all.

    Args:
        actions: the space, which is seeded.
        seed: where draws come from.
    """

    def __init__(self, actions: gymnasium.Space[Any], seed: int) -> None:
        self._actions = actions
        actions.seed(seed)

    def act(self, observation: Any, env: Env | None = None) -> Any:
        """Any action."""
        return self._actions.sample()


def run_task(job: TaskJob) -> ComparisonRun:
    """Do one run; a function of the module, so that worker processes can find it. Its scores are returns still."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were told once, when the grid was checked
        layout = job.seed if layouts_change(lambda: make_by_id(job.environment)) else None
        task = Task(job.environment, job.budget, Path(folder), job.seed, layout)
        at_random = _mean_return(task, None, RANDOM_EPISODES)
        began = time.perf_counter()
        result = make_task_method(job.method)(task)
        seconds = time.perf_counter() - began
        if result.samples > job.budget:
            raise RuntimeError(
                f"{job.method} on {job.environment} took {result.samples:,} samples, with a budget of {job.budget:,}"
            )
        final = _mean_return(task, result.agent, EPISODES)
    # What is handed out at the end is what was best on the way; the curve ends with what it is worth.
    points = [(0, at_random), *(point for point in result.points if point[0] < result.samples), (result.samples, final)]
    samples, returns = zip(*points, strict=True)
    return ComparisonRun(
        job,
        np.array(samples, dtype=np.int64),
        np.array(returns, dtype=np.float64),
        None,
        result.samples,
        seconds,
        final_return=final,
    )


def _mean_return(task: Task, agent: Agent | None, episodes: int) -> float:
    """What an agent earns, or random actions do."""
    env = task.make()
    acting = RandomAgent(env.action_space, spawned_seed(task.seed, 11)) if agent is None else agent
    played = play_episodes(env, acting, episodes, seed=spawned_seed(task.seed, 12), longest=LONGEST_EPISODE)
    env.close()
    return played.mean_return


def scored(runs: Iterable[ComparisonRun]) -> list[ComparisonRun]:
    """The runs with scores instead of returns; see the top of this module."""
    together: dict[str, list[ComparisonRun]] = {}
    for run in runs:
        together.setdefault(run.job.environment, []).append(run)
    found = []
    for of_one in together.values():
        nothing = float(np.mean([run.scores[0] for run in of_one]))
        best = max(run.scores[-1] for run in of_one)
        scale = best - nothing if best > nothing else np.inf  # nobody earned more than random actions
        found += [replace(run, scores=(run.scores - nothing) / scale) for run in of_one]
    return found


def save_task_run(folder: RunFolder, run: ComparisonRun) -> Path:
    """Write a run's files."""
    arrays = {"samples": run.samples, "returns": run.scores}
    return FILES.write(
        folder, run_path(folder.path, run.job), run.job._asdict() | {"used": run.used}, arrays, run.seconds
    )


def load_task_run(folder: RunFolder, job: TaskJob) -> ComparisonRun:
    """Read a run's files; a damaged one is named, and left where it is."""
    stored = FILES.open(folder, run_path(folder.path, job), job._asdict(), {"used"}, {"samples", "returns"})
    with stored as (archive, seconds):
        samples, returns = curve_in(archive, "returns")
        used = check_size(archive.header, "used", least=0)
        return ComparisonRun(job, samples, returns, None, used, seconds, final_return=float(returns[-1]))
