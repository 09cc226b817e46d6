"""An exploration of a Gymnasium environment as a folder that speaks for itself.

RUN/environment.json     what was explored: the id, the spaces, the cells and the action_set of actions
RUN/exploration/         the checkpoint: settings and one file a round
RUN/reset_model/         what to train from
RUN/visited.png, .pdf    a picture of where the exploration went
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import SETTINGS_FILE
from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.sample_budget import SampleBudget
from curious_explorer.explorers.thresholds import Schedule
from curious_explorer.gym.cell_names import named_cells
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.optimizer import Optimizer
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.settings_description import first_difference
from curious_explorer.storage import Format, holds_files, read_json, write_json
from curious_explorer.studies.table_exploration import MDP_FILE, RESETS, ROUNDS

ENVIRONMENT_FILE, PICTURE = "environment.json", "visited"
ENVIRONMENT = Format("curious-explorer/explored-environment", 1)
FULL_BATCH = 50
"""Episodes in a batch of a tabular optimizer, where a round can afford several such batches."""
BATCHES_A_ROUND = 4
AS_LONG_AS_PAID = 1_000_000
"""Updates of a tabular optimizer: what it may spend is what stops it."""

NEURAL = {"ppo": "ppo", "a2c": "a2c", "sb3-trpo": "trpo"}
"""Names of optimizers that see observations, and what Stable-Baselines3 calls them."""
TABULAR = ("trpo", "reinforce", "model-based")


class GymRun(NamedTuple):
    """What there is to say about a run."""

    exploration: Exploration
    samples: int
    """Every step of it, those that found the quantiles included."""
    picture: Path


def open_world(
    environment: str,
    *,
    cells: str | None,
    max_cells: int | None = None,
    actions: int | None = None,
    num_envs: int = 1,
    seed: int = 0,
) -> GymWorld:
    """The world of a Gymnasium id, with its cells by name; see `named_cells`."""
    made = make_by_id(environment)
    try:
        chosen = named_cells(cells, made, max_cells=max_cells)
    finally:
        made.close()
    return GymWorld(environment, cells=chosen, actions=actions, seed=seed, num_envs=num_envs)


def make_optimizer(name: str, budget: SampleBudget) -> Optimizer:
    """An optimizer by its name, with batches that fit what a round can spend."""
    if name in NEURAL:
        from curious_explorer.sb3.sb3_optimizer import SB3

        return SB3(NEURAL[name])
    if name == "model-based":
        return ModelBased()
    episode = default_horizon(budget.gamma) + 1.5 / (1.0 - budget.gamma)
    affordable = int(budget.learning_of_a_round / (BATCHES_A_ROUND * episode))
    kind = TRPO if name == "trpo" else Reinforce
    return kind(updates=AS_LONG_AS_PAID, episodes=min(max(affordable, 5), FULL_BATCH))


def explore_gym_into(
    folder: str | Path,
    world: GymWorld,
    optimizer: Optimizer,
    budget: SampleBudget,
    *,
    thresholds: Schedule | float | None = None,
    record: bool = False,
    progress: bool = True,
) -> GymRun:
    """Explore an environment and keep everything; a run that was interrupted goes on where it stood."""
    target = Path(folder)
    _claim(target, world)
    exploration = explore(
        world,
        optimizer,
        gamma=budget.gamma,
        rounds=budget.rounds,
        thresholds=thresholds,
        visits=budget.visits,
        samples=budget.samples - world.samples,  # less what finding the cells took
        record=record,
        checkpoint=target / ROUNDS,
        progress=progress,
    )
    exploration.reset_model.save(target / RESETS)
    return GymRun(exploration, world.samples, _draw(exploration, world, target / PICTURE))


def _claim(target: Path, world: GymWorld) -> None:
    """Make the folder this world's, or refuse one that is something else's."""
    described = json.loads(json.dumps(world.discretisation.description(), allow_nan=False))
    stored = target / ENVIRONMENT_FILE
    if stored.is_file():
        if any((target / ROUNDS).glob("round-*")):
            difference = first_difference(read_environment(target), described)
            if difference is not None:
                raise CheckpointError(
                    f"{target} holds a run on another environment, or one seen in another way: {difference}; choose "
                    "another folder"
                )
            return
        # Nothing was finished there, so that whoever was told to try other cells may do so in the same folder.
        (target / ROUNDS / SETTINGS_FILE).unlink(missing_ok=True)
    elif (target / MDP_FILE).is_file():
        raise CheckpointError(
            f"{target} holds a run on the environment's table of transitions; choose another folder, or leave --cells "
            "out to go on with it"
        )
    elif target.exists() and (not target.is_dir() or holds_files(target)):
        raise CheckpointError(f"{target} is not empty and holds no run; choose a new folder")
    target.mkdir(parents=True, exist_ok=True)
    write_json(stored, ENVIRONMENT, {"discretisation": described})


def read_environment(folder: str | Path) -> dict[str, Any]:
    """What a run explored, as `Discretisation.description` says it."""
    path = Path(folder) / ENVIRONMENT_FILE
    try:
        header = read_json(path, ENVIRONMENT, {"discretisation"})
        if not isinstance(header["discretisation"], dict):
            raise ValueError(f"discretisation is {header['discretisation']!r}, expected what tells cells and actions")
        return header["discretisation"]
    except (ValueError, OSError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def _draw(exploration: Exploration, world: GymWorld, stem: Path) -> Path:
    from curious_explorer.studies.figures.canvas import save_figure
    from curious_explorer.studies.figures.visited_cells import draw_visited_cells

    figure = draw_visited_cells(exploration, world.discretisation)
    return next(path for path in save_figure(figure, stem) if path.suffix == ".png")
