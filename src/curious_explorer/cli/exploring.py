"""``curious-explorer explore``: explore a finite environment and keep the reset model."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

Environment = Annotated[
    str, typer.Argument(help="Such as dcl/20, cct/10, FrozenLake-v1, or an MDP file (.json, .npz).", show_default=False)
]
Gamma = Annotated[float, typer.Option(help="The discount.")]


def explore(
    environment: Environment,
    out: Annotated[Path, typer.Option(help="Folder for the run; an interrupted one goes on.")] = Path("results/run"),
    optimizer: Annotated[str, typer.Option(help="trpo, reinforce or model-based.")] = "trpo",
    gamma: Gamma = 0.95,
    rounds: Annotated[int, typer.Option(help="How many policies to learn.")] = 20,
    visits: Annotated[int, typer.Option(help="Walks that measure where each policy goes.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    record: Annotated[bool, typer.Option(help="Keep the transitions seen, for certificates from counts.")] = True,
) -> None:
    """Explore a finite environment from its start, and save the reset model."""
    from rich.console import Console

    from curious_explorer.environments.naming import find_environment
    from curious_explorer.experiments.exploration_run import OPTIMIZERS, RESETS, explore_into

    if optimizer not in OPTIMIZERS:
        close = difflib.get_close_matches(optimizer, OPTIMIZERS, n=1, cutoff=0.3)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"unknown optimizer {optimizer!r}; {hint}expected one of {', '.join(OPTIMIZERS)}")
    exploration = explore_into(
        out,
        find_environment(environment),
        OPTIMIZERS[optimizer](),
        gamma=gamma,
        rounds=rounds,
        visits=visits,
        seed=seed,
        record=record,
    )
    seen = int((exploration.total_visited > 0).sum())
    states = exploration.total_visited.size
    console = Console()
    console.print(f"{exploration.samples:,} samples, {seen} of {states} states seen in visits.")
    console.print(f"Reset model: {out / RESETS}   (ResetModel.load; curious-explorer certify {out})")
