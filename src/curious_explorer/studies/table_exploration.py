"""An exploration as a folder that speaks for itself: the MDP, the rounds, and the reset model.

RUN/mdp.npz          what was explored
RUN/exploration/     the checkpoint: settings and one file a round
RUN/reset_model/     what to train from
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import explored_digest
from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.sample_budget import SampleBudget
from curious_explorer.explorers.thresholds import Schedule, constant, linear, paper_linear
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.optimizer import Optimizer
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.storage import holds_files
from curious_explorer.validation import check_count, check_gamma, check_seed
from curious_explorer.worlds.tabular_world import TabularWorld

OPTIMIZERS: dict[str, type[TRPO] | type[Reinforce] | type[ModelBased]] = {
    "trpo": TRPO,
    "reinforce": Reinforce,
    "model-based": ModelBased,
}
SCHEDULES = {"linear": linear, "constant": constant, "paper": paper_linear}
MDP_FILE, ROUNDS, RESETS = "mdp.npz", "exploration", "reset_model"


class ExploredRun(NamedTuple):
    """A finished run, read back."""

    mdp: FiniteMDP
    exploration: Exploration


def explore_into(
    folder: str | Path,
    mdp: FiniteMDP,
    optimizer: Optimizer,
    *,
    gamma: float,
    rounds: int,
    thresholds: Schedule | float | None = None,
    visits: int,
    seed: int,
    record: bool,
    samples: int | None = None,
    progress: bool = True,
) -> Exploration:
    """Explore an MDP and keep everything; a run that was interrupted goes on where it stood.

    With ``samples``, that many steps are the most that the whole exploration takes.
    """
    check_gamma(gamma)  # everything is checked before anything is written
    for name, count in (("rounds", rounds), ("visits", visits)):
        check_count(count, name, least=1)
    check_seed(seed)
    if samples is not None:
        SampleBudget(samples, rounds, visits, gamma)
    target = Path(folder)
    stored = target / MDP_FILE
    if stored.is_file():
        if FiniteMDP.load(stored) != mdp:
            raise CheckpointError(f"{target} holds a run on another MDP; choose another folder")
    elif (target / "environment.json").is_file():
        raise CheckpointError(
            f"{target} holds a run that steps in the environment; choose another folder, or give the --cells it was "
            "made with to go on with it"
        )
    elif target.exists() and (not target.is_dir() or holds_files(target)):
        raise CheckpointError(f"{target} is not empty and holds no run; choose a new folder")
    else:
        target.mkdir(parents=True, exist_ok=True)
        mdp.save(stored)
    world = TabularWorld(mdp, seed=seed)
    exploration = explore(
        world,
        optimizer,
        gamma=gamma,
        rounds=rounds,
        thresholds=thresholds,
        visits=visits,
        samples=samples,
        record=record,
        checkpoint=target / ROUNDS,
        progress=progress,
    )
    exploration.reset_model.save(target / RESETS)
    return exploration


def load_run(folder: str | Path, mdp: FiniteMDP | None = None) -> ExploredRun:
    """A run written by `explore_into`, or a bare checkpoint folder together with the MDP that was explored."""
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
    return ExploredRun(mdp, exploration)
