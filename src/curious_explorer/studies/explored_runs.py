"""What `explore_into` has left in a folder, and reading it again: to certify it, to train from it, to go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from curious_explorer.environments.environment_names import find_environment
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import explored_digest, explored_seed
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.gym.cell_names import named_function
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format
from curious_explorer.worlds.tabular_world import TabularWorld

MDP_FILE, ROUNDS, RESETS = "mdp.npz", "exploration", "reset_model"
ENVIRONMENT_FILE = "environment.json"
ENVIRONMENT = Format("curious-explorer/explored-environment", 3)
TABLE = "table"
"""The key under which ``environment.json`` has the digest of a table."""
LAYOUT = "layout"
"""The key under which it has the layout of every episode, if there was one."""
LOOK_STEPS = "look"
"""The key under which it has the most steps that the look for cells might take, if there was a look."""


def run_folder(path: Path) -> RunFolder:
    """The folder as one that belongs to one run."""
    return RunFolder(path, ENVIRONMENT_FILE, ENVIRONMENT, "run", CheckpointError)


def load_explored(folder: str | Path, mdp: FiniteMDP | None = None) -> tuple[FiniteMDP, Exploration]:
    """A finished run on a table, or a bare checkpoint folder together with the MDP that was explored."""
    source = Path(folder)
    if not source.is_dir():
        raise CheckpointError(f"there is no folder {source}; expected a run written by curious-explorer explore")
    if mdp is None:
        if not (source / MDP_FILE).is_file():
            raise CheckpointError(
                f"{source} holds no {MDP_FILE}, as curious-explorer explore writes it; name what was explored "
                "with --environment"
            )
        mdp = FiniteMDP.load(source / MDP_FILE)
    rounds = source / ROUNDS if (source / ROUNDS).is_dir() else source
    exploration = Exploration.load(rounds)
    if explored_digest(rounds) != mdp.fingerprint:
        raise CheckpointError(f"{source} is an exploration of another MDP than the one given")
    if not exploration.finished:
        raise CheckpointError(
            f"{source} is unfinished: {len(exploration.rounds)} of {exploration.planned_rounds} rounds; the command "
            "that began it goes on with it"
        )
    return mdp, exploration


class Reopened(NamedTuple):
    """A finished run, to be looked at with fresh samples."""

    world: TabularWorld | GymWorld
    """A fresh world of what was explored."""
    reset_model: ResetModel
    exploration: Exploration
    known: dict[str, Any]
    """What is known of the world besides: of a table, its start and which states are terminal."""


def open_explored(
    folder: str | Path, environment: str | None = None, cell_function: str | None = None, seed: int = 0
) -> Reopened:
    """A run of `explore_into`, or a bare checkpoint folder together with the name of the table that was explored.

    ``cell_function`` is ``module:function``, where the cells were made by one.
    """
    source = Path(folder)
    run = run_folder(source)
    if not run.claimed or TABLE in run.settings():
        mdp, exploration = load_explored(source, None if environment is None else find_environment(environment))
        _check_fresh(source / ROUNDS if (source / ROUNDS).is_dir() else source, seed)
        _check_function(cell_function, exploration.reset_model)
        known = {"start": mdp.start, "terminal": mdp.terminal}
        return Reopened(TabularWorld(mdp, seed=seed), exploration.reset_model, exploration, known)
    resets = load_resets(source / RESETS, cell_function)
    made = Discretisation.of_reset_model(resets)
    name = run.settings().get("environment") if environment is None else environment
    if not isinstance(name, str):
        raise CheckpointError(f"{source / ENVIRONMENT_FILE} names no environment; it is of another run")
    layout = run.settings().get(LAYOUT)
    world = GymWorld(name, cells=made.cells, actions=made.action_set, seed=seed, layout=layout)
    resets.check_world(world)
    _check_fresh(source / ROUNDS, seed)
    function = None if cell_function is None else named_function(cell_function)
    return Reopened(world, resets, Exploration.load(source / ROUNDS, cell_function=function), {})


def load_resets(folder: Path, cell_function: str | None) -> ResetModel:
    """The reset model in a folder, whose cells may have been made by ``module:function``."""
    function = None if cell_function is None else named_function(cell_function)
    resets = ResetModel.load(folder, cell_function=function)
    _check_function(cell_function, resets)
    return resets


def _check_function(cell_function: str | None, resets: ResetModel) -> None:
    """Refuse a function that made no cells of a run, instead of leaving it aside."""
    cells = None if resets.discretisation is None else Discretisation.of_reset_model(resets).cells
    if cell_function is not None and (cells is None or cells.function is None):
        what = "states of a table" if cells is None else f"cells of the kind {cells.description()['kind']}"
        raise ValueError(f"cell_function is {cell_function}, but the run has {what}, made by no function; leave it out")


def _check_fresh(folder: Path, seed: int) -> None:
    """Refuse the exploration's own seed: its walks would be drawn again, and samples would not be fresh."""
    if explored_seed(folder) == seed:
        raise ValueError(
            f"seed is {seed}, which is the exploration's own, and samples have to be fresh; choose another seed"
        )


def layout_explored(folder: str | Path) -> int | None:
    """The layout that a run explored, or the run in whose folder a reset model lies; None if it was not told any."""
    for path in (Path(folder), Path(folder).parent):
        run = run_folder(path)
        if run.claimed:
            layout: int | None = run.settings().get(LAYOUT)
            return layout
    return None


def reset_model_folder(folder: str | Path) -> Path:
    """The reset model's folder, for those who name the run that it lies in."""
    inside = Path(folder) / RESETS
    return inside if inside.is_dir() else Path(folder)
