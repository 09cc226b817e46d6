"""``curious-explorer hardness``, ``plan`` and ``certify``: the theory, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curious_explorer.cli.exploring import Environment, Gamma

if TYPE_CHECKING:
    from curious_explorer.theory.reports import Report

AsJson = Annotated[bool, typer.Option("--json", help="Plain data for programs instead of a table.")]
Delta = Annotated[float, typer.Option(help="The probability with which samples may mislead.")]


def hardness(environment: Environment, gamma: Gamma = 0.95, as_json: AsJson = False) -> None:
    """How hard a finite environment is to explore."""
    from curious_explorer import theory
    from curious_explorer.environments.naming import find_environment

    _show(as_json, theory.hardness(find_environment(environment), gamma=gamma))


def plan(
    environment: Annotated[
        str, typer.Argument(help="An environment as for hardness, or just its number of states.", show_default=False)
    ],
    eta: Annotated[float, typer.Option(help="The mass that poorly visited states may have at the end.")] = 0.1,
    delta: Delta = 0.05,
    gamma: Gamma = 0.95,
    epsilon: Annotated[float, typer.Option(help="How far from optimal the optimizer may be.")] = 0.0,
    schedule: Annotated[str, typer.Option(help="constant or linear.")] = "constant",
    as_json: AsJson = False,
) -> None:
    """Which thresholds, rounds and visits suffice to be sure of something."""
    from curious_explorer import theory
    from curious_explorer.environments.naming import find_environment

    subject = int(environment) if environment.isdecimal() else find_environment(environment)
    _show(as_json, theory.plan(subject, gamma=gamma, eta=eta, delta=delta, epsilon=epsilon, schedule=schedule))


def certify(
    run: Annotated[Path, typer.Argument(help="A run of curious-explorer explore.", show_default=False)],
    environment: Annotated[
        str | None, typer.Option(help="What was explored, for a checkpoint folder that does not say.")
    ] = None,
    delta: Delta = 0.05,
    epsilon: Annotated[
        float | None, typer.Option(help="How far from optimal the optimizer is assumed to be.", show_default=False)
    ] = None,
    visits: Annotated[int, typer.Option(help="Fresh walks for the certificate that assumes epsilon.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the fresh samples; not the exploration's.")] = 1_000_003,
    as_json: AsJson = False,
) -> None:
    """What a finished run guarantees, with what confidence, from samples alone.

    With --epsilon: fresh visits, under the stated assumption on the optimizer. Without: from the transitions that the
    run recorded, with no assumption on the optimizer at all.
    """
    from curious_explorer import theory
    from curious_explorer.environments.naming import find_environment
    from curious_explorer.studies.table_exploration import load_run
    from curious_explorer.worlds.tabular_world import TabularWorld

    explored = load_run(run, None if environment is None else find_environment(environment))
    world = TabularWorld(explored.mdp, seed=seed)
    if epsilon is not None:
        _show(as_json, theory.certify(world, explored.exploration, delta=delta, epsilon=epsilon, visits=visits))
        return
    certificate = theory.certify_counts(
        world, explored.exploration, delta=delta, start=explored.mdp.start, terminal=explored.mdp.terminal
    )
    _show(as_json, certificate)


def _show(as_json: bool, report: Report) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2, allow_nan=False))
    else:
        Console().print(report)
