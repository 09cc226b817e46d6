"""``curious-explorer explore``: explore a finite environment and keep the reset model."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, TypeVar

import typer

Named = TypeVar("Named")
Environment = Annotated[
    str,
    typer.Argument(
        help="Such as dcl/20, FrozenLake-v1, an MDP file (.json, .npz); compare --list has more.", show_default=False
    ),
]
Gamma = Annotated[float, typer.Option(help="The discount.")]


def explore(
    environment: Environment,
    out: Annotated[Path, typer.Option(help="Folder for the run; an interrupted one goes on.")] = Path("results/run"),
    optimizer: Annotated[str, typer.Option(help="trpo, reinforce or model-based.")] = "trpo",
    gamma: Gamma = 0.95,
    rounds: Annotated[int, typer.Option(help="How many policies to learn.")] = 20,
    beta: Annotated[
        float | None, typer.Option(help="The threshold's number; 1 / (2 |S|) by default.", show_default=False)
    ] = None,
    schedule: Annotated[str, typer.Option(help="linear: beta (n + 1); constant: beta; paper: beta n.")] = "linear",
    visits: Annotated[int, typer.Option(help="Walks that measure where each policy goes.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    record: Annotated[bool, typer.Option(help="Keep the transitions seen, for certificates from counts.")] = True,
) -> None:
    """Explore a finite environment from its start, and save the reset model."""
    from rich.console import Console

    from curious_explorer.environments.naming import find_environment
    from curious_explorer.experiments.exploration_run import OPTIMIZERS, RESETS, SCHEDULES, explore_into
    from curious_explorer.explorer.thresholds import default_beta

    make_optimizer, make_schedule = _named(optimizer, OPTIMIZERS, "optimizer"), _named(schedule, SCHEDULES, "schedule")
    mdp = find_environment(environment)
    console = Console()
    console.print(f"Exploring into {out}; interrupted, the same command goes on. The first run ever compiles a while.")
    exploration = explore_into(
        out,
        mdp,
        make_optimizer(),
        gamma=gamma,
        rounds=rounds,
        thresholds=make_schedule(default_beta(mdp.num_states) if beta is None else beta),
        visits=visits,
        seed=seed,
        record=record,
    )
    seen = int((exploration.total_visited > 0).sum())
    states = exploration.total_visited.size
    console.print(f"{exploration.samples:,} samples, {seen} of {states} states seen in visits.")
    console.print(f"Reset model: {out / RESETS}   (ResetModel.load; curious-explorer certify {out})")


def _named(name: str, known: dict[str, Named], kind: str) -> Named:
    """What a name stands for; the nearest name is suggested for one that is unknown."""
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"unknown {kind} {name!r}; {hint}expected one of {', '.join(known)}")
    return known[name]
