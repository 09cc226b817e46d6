"""``curious-explorer explore``: explore an environment and keep the reset model."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from curious_explorer.mdp.finite_mdp import FiniteMDP
    from curious_explorer.studies.gym_exploration import GymRun

Named = TypeVar("Named")
Environment = Annotated[
    str,
    typer.Argument(
        help="Such as dcl/20, FrozenLake-v1, an MDP file (.json, .npz); compare --list has more.", show_default=False
    ),
]
AnyEnvironment = Annotated[
    str,
    typer.Argument(
        help="Any Gymnasium id (MountainCar-v0, package:Id-v0, 'FrozenLake-v1?map_name=8x8'), dcl/20, or an MDP file.",
        show_default=False,
    ),
]
Gamma = Annotated[float, typer.Option(help="The discount.")]
STEPPING = "Stepping in a Gymnasium environment"
CELLS_HELP = (
    "20, 20x20, 20x20:-1.2,-0.07:0.6,0.07 (grid: bins, low, high), quantiles:10, hash, hash:0.1, minigrid, identity or "
    "module:function:COUNT. By default what is obvious."
)
DEFAULT_SAMPLES = 1_200_000
WELL_BELOW = 0.8
"""An exploration that takes less than this part of its samples has stopped by itself."""


def explore(
    environment: AnyEnvironment,
    out: Annotated[Path, typer.Option(help="Folder for the run; an interrupted one goes on.")] = Path("results/run"),
    optimizer: Annotated[
        str | None,
        typer.Option(
            help="On cells: model-based (the default when stepping), trpo (on a table), reinforce. On observations: "
            "ppo, a2c, sb3-trpo.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help=f"Steps in all, never exceeded; {DEFAULT_SAMPLES:,} when stepping.", show_default=False),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help="The discount; 0.99 when stepping, 0.95 on a table.", show_default=False)
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="How many policies to learn; by the samples, 20 on a table.", show_default=False),
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="The threshold's number; 1 / (2 |S|) by default.", show_default=False)
    ] = None,
    schedule: Annotated[str, typer.Option(help="linear: beta (n + 1); constant: beta; paper: beta n.")] = "linear",
    visits: Annotated[
        int | None,
        typer.Option(
            help="Walks that measure where each policy goes; by the samples, 2,000 on a table.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    record: Annotated[
        bool | None,
        typer.Option(
            "--record/--no-record",
            help="Keep the transitions seen, for certificates from counts; on a table, yes.",
            show_default=False,
        ),
    ] = None,
    cells: Annotated[str | None, typer.Option(help=CELLS_HELP, show_default=False, rich_help_panel=STEPPING)] = None,
    max_cells: Annotated[
        int | None,
        typer.Option(help="How many cells may be discovered (hash, minigrid).", rich_help_panel=STEPPING),
    ] = None,
    actions: Annotated[
        int | None,
        typer.Option(
            help="For continuous actions: values along each dimension, 3 by default.",
            show_default=False,
            rich_help_panel=STEPPING,
        ),
    ] = None,
    num_envs: Annotated[int, typer.Option(help="Environments stepped together.", rich_help_panel=STEPPING)] = 1,
) -> None:
    """Explore an environment from its own start, and save the reset model."""
    from rich.console import Console

    from curious_explorer.studies.environment_ids import is_gymnasium_id, table_behind
    from curious_explorer.studies.gym_exploration import NEURAL, TABULAR
    from curious_explorer.studies.table_exploration import SCHEDULES

    if optimizer is not None:
        named(optimizer, dict.fromkeys((*TABULAR, *NEURAL), True), "optimizer")
    named(schedule, SCHEDULES, "schedule")
    see_own_modules(environment, cells or "")
    stepping: dict[str, Any] = {"cells": cells, "max_cells": max_cells, "actions": actions, "num_envs": num_envs}
    for_stepping = optimizer in NEURAL or any(value != default for value, default in _with_defaults(stepping))
    if for_stepping and not is_gymnasium_id(environment) and (mdp := table_behind(environment)) is not None:
        raise ValueError(
            f"{environment} is a table of transitions with {mdp.num_states} states, so it needs no cells and has no "
            "observations; leave out --cells, --max-cells, --actions and --num-envs, and choose the optimizer among "
            f"{', '.join(TABULAR)}"
        )
    console = Console()
    common: dict[str, Any] = {
        "out": out,
        "samples": samples,
        "gamma": gamma,
        "rounds": rounds,
        "beta": beta,
        "schedule": schedule,
        "visits": visits,
        "seed": seed,
        "record": record,
    }
    mdp = None if for_stepping else table_behind(environment)
    if mdp is not None:
        _explore_table(console, environment, mdp, optimizer=optimizer or "trpo", **common)
    else:
        _explore_by_steps(console, environment, stepping, optimizer=optimizer or "model-based", **common)


def _explore_table(
    console: Console,
    environment: str,
    mdp: FiniteMDP,
    *,
    out: Path,
    optimizer: str,
    samples: int | None,
    gamma: float | None,
    rounds: int | None,
    beta: float | None,
    schedule: str,
    visits: int | None,
    seed: int,
    record: bool | None,
) -> None:
    from curious_explorer.explorers.sample_budget import SampleBudget
    from curious_explorer.explorers.thresholds import default_beta
    from curious_explorer.studies.environment_ids import is_gymnasium_id
    from curious_explorer.studies.table_exploration import OPTIMIZERS, RESETS, SCHEDULES, explore_into

    discount = 0.95 if gamma is None else gamma
    if samples is not None:
        shared = SampleBudget.plan(samples, discount, rounds=rounds, visits=visits)
        rounds, visits = shared.rounds, shared.visits
    if is_gymnasium_id(environment):
        console.print(
            f"{environment} shows its table of transitions ({mdp.num_states} states): samples are drawn from it, which "
            "is fast; --cells identity steps in the environment instead.",
            markup=False,
        )
    with kept(console, out):
        say_where(console, "Exploring", out)
        exploration = explore_into(
            out,
            mdp,
            OPTIMIZERS[optimizer](),
            gamma=discount,
            rounds=20 if rounds is None else rounds,
            thresholds=SCHEDULES[schedule](default_beta(mdp.num_states) if beta is None else beta),
            visits=2_000 if visits is None else visits,
            seed=seed,
            record=True if record is None else record,
            samples=samples,
        )
    seen = int((exploration.total_visited > 0).sum())
    states = exploration.total_visited.size
    console.print(f"{exploration.samples:,} samples, {seen} of {states} states seen in visits.")
    words = f"Reset model: {out / RESETS}   (ResetModel.load; curious-explorer certify {out})"
    console.print(words, soft_wrap=True, markup=False)


def _explore_by_steps(
    console: Console,
    environment: str,
    stepping: dict[str, Any],
    *,
    out: Path,
    optimizer: str,
    samples: int | None,
    gamma: float | None,
    rounds: int | None,
    beta: float | None,
    schedule: str,
    visits: int | None,
    seed: int,
    record: bool | None,
) -> None:
    from curious_explorer.explorers.sample_budget import SampleBudget
    from curious_explorer.explorers.thresholds import default_beta
    from curious_explorer.studies.gym_exploration import NEURAL, explore_gym_into, make_optimizer, open_world
    from curious_explorer.studies.table_exploration import SCHEDULES

    if record and optimizer in NEURAL:
        raise ValueError(f"--record keeps the transitions of cells, which {optimizer} does not see; leave it out")
    budget = SampleBudget.plan(
        DEFAULT_SAMPLES if samples is None else samples,
        0.99 if gamma is None else gamma,
        rounds=rounds,
        visits=visits,
        num_envs=stepping["num_envs"],
    )
    learner = make_optimizer(optimizer, budget)
    world = open_world(environment, seed=seed, **stepping)
    kind = world.discretisation.cells.description()["kind"]
    console.print(
        f"{environment}: stepping in the environment, {world.num_states:,} cells ({kind}), {world.num_actions} "
        f"actions; {budget.samples:,} samples in {budget.rounds} rounds.",
        markup=False,
    )
    with kept(console, out):
        say_where(console, "Exploring", out)
        run = explore_gym_into(
            out,
            world,
            learner,
            budget,
            thresholds=SCHEDULES[schedule](default_beta(world.num_states) if beta is None else beta),
            record=bool(record),
        )
    world.close()
    _tell(console, environment, run, budget.samples, out)


def _tell(console: Console, environment: str, run: GymRun, samples: int, out: Path) -> None:
    """What came of it, and how to go on."""
    from curious_explorer.studies.table_exploration import RESETS

    exploration = run.exploration
    visited = exploration.total_visited > 0
    reached = visited.copy()
    for round_ in exploration.rounds:  # cells that the last episodes of learning passed through were reached, too
        reached |= False if round_.occupancy is None else round_.occupancy > 0
    assert exploration.discretisation is not None
    cells = len(exploration.discretisation.discovered) or len(visited)
    learned = sum(round_.learning_samples for round_ in exploration.rounds)
    console.print(
        f"{run.samples:,} samples ({learned:,} of them to learn); {reached.sum():,} of {cells:,} cells reached, "
        f"{visited.sum():,} of them in visits."
    )
    if run.samples < WELL_BELOW * samples:
        console.print(f"It took fewer samples than the {samples:,} it was given: it found nothing new within reach.")
    console.print(f"Picture: {run.picture}", soft_wrap=True, markup=False)
    command = f"curious-explorer train {shlex.quote(environment)} --reset-model {shlex.quote(str(out))}"
    described = exploration.discretisation.description["cells"]
    if described["kind"] == "function":  # which is not stored with the model, so it must be named again
        command += f" --cell-function {described['function']}"
    console.print(f"Reset model: {out / RESETS}   (ResetModel.load; {command})", soft_wrap=True, markup=False)


def say_where(console: Console, doing: str, out: Path) -> None:
    """Where the run goes."""
    words = f"{doing} into {out}; interrupted, the same command goes on. The first run ever compiles a while."
    console.print(words, soft_wrap=True, markup=False)


@contextmanager
def kept(console: Console, out: Path) -> Iterator[None]:
    """Turns Ctrl-C into a word about what is kept, and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(
            f"Interrupted. What was finished is kept in {out}; the same command goes on from there.",
            soft_wrap=True,
            markup=False,
        )
        raise typer.Exit(130) from None


def see_own_modules(*names: str) -> None:
    """Let 'module:...' name a module in the folder that the command is given in."""
    if any(":" in name for name in names) and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def named(name: str, known: dict[str, Named], kind: str) -> Named:
    """What a name stands for; the nearest name is suggested for one that is unknown."""
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"unknown {kind} {name!r}; {hint}expected one of {', '.join(known)}")
    return known[name]


def _with_defaults(stepping: dict[str, Any]) -> Iterable[tuple[Any, Any]]:
    return ((value, 1 if name == "num_envs" else None) for name, value in stepping.items())
