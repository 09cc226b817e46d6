"""``curious-explorer hardness``, ``plan`` and ``certify``: the theory, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curious_explorer.cli.terminal import option, see_own_modules
from curious_explorer.errors import CertificateError

if TYPE_CHECKING:
    from curious_explorer.theory.reports import Report

ENVIRONMENT_HELP = "Such as dcl/20, FrozenLake-v1, an MDP file (.json, .npz); compare --list has more."
Environment = Annotated[str, typer.Argument(help=ENVIRONMENT_HELP, show_default=False)]
Gamma = Annotated[float, typer.Option(help="The discount.")]
AsJson = Annotated[bool, typer.Option("--json", help="Plain data for programs instead of a table.")]
Delta = Annotated[float, typer.Option(help="The probability with which samples may mislead.")]


def hardness(environment: Environment, gamma: Gamma = 0.95, as_json: AsJson = False) -> None:
    """How hard a finite environment is to explore."""
    from curious_explorer import theory
    from curious_explorer.environments.environment_names import find_environment

    see_own_modules(environment)
    _show(as_json, theory.hardness(find_environment(environment), gamma=gamma))


def plan(
    environment: Annotated[
        str, typer.Argument(help="An environment as for hardness, or just its number of states.", show_default=False)
    ],
    eta: Annotated[float, typer.Option(help="The mass that poorly visited states may have at the end.")] = 0.1,
    delta: Delta = 0.05,
    gamma: Gamma = 0.95,
    epsilon: Annotated[float, typer.Option(help="How far from optimal the optimizer may be.")] = 0.0,
    schedule: Annotated[
        str, typer.Option(help="constant or linear; or chosen: tries and arrivals for resets to chosen states.")
    ] = "constant",
    as_json: AsJson = False,
) -> None:
    """Which thresholds, rounds and visits suffice to be sure of something."""
    from curious_explorer import theory
    from curious_explorer.environments.environment_names import find_environment
    from curious_explorer.validation import check_count

    see_own_modules(environment)
    number = environment.isdecimal()
    subject = check_count(int(environment), "states", least=1) if number else find_environment(environment)
    if schedule == "chosen":
        if isinstance(subject, int):
            raise ValueError("a plan for chosen states needs an environment, or theory.plan_chosen_resets in Python")
        _show(as_json, theory.plan_chosen_resets(subject, gamma=gamma, eta=eta, delta=delta))
        return
    _show(as_json, theory.plan(subject, gamma=gamma, eta=eta, delta=delta, epsilon=epsilon, schedule=schedule))


def certify(
    run: Annotated[Path, typer.Argument(help="A run of curious-explorer explore.", show_default=False)],
    environment: Annotated[
        str | None,
        typer.Option(help="What was explored, for a folder that does not say, or with arguments after a ?."),
    ] = None,
    delta: Delta = 0.05,
    walks: Annotated[
        int, typer.Option(help="Fresh roll-ins to count arrivals in; on a table, 100 times as many for training.")
    ] = 10_000,
    max_steps: Annotated[
        int | None, option(help="Arrivals within so many steps; by default of whole roll-ins.")
    ] = None,
    arrivals: Annotated[
        int | None, option(help="Certify resets to chosen states, too, from so many arrivals in each; needs counts.")
    ] = None,
    barrier: Annotated[float, typer.Option(help="Weight of the log-barrier that one would train with.")] = 0.001,
    cell_function: Annotated[str | None, option(help="module:function that made the cells, where one did.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the fresh samples; not the exploration's.")] = 1_000_003,
    as_json: AsJson = False,
) -> None:
    """What a finished run guarantees, with what confidence, from samples alone.

    How likely roll-ins reach each state or cell: for any world. And where states are Markov: how often any policy can
    visit what was poorly visited (from the transitions that the run recorded), and how much a policy can lose that is
    trained from the resets, spread as train spreads them. Nothing is assumed about the optimizer. Each holds with the
    stated confidence by itself.
    """
    from curious_explorer import theory
    from curious_explorer.studies.explored_runs import open_explored
    from curious_explorer.validation import check_count

    see_own_modules(environment or "", cell_function or "")
    check_count(walks, "walks", least=1)
    if not 0.0 <= barrier < float("inf"):
        raise ValueError(f"barrier is {barrier}, expected a number that is not negative")
    world, resets, exploration, known = open_explored(run, environment, cell_function, seed)
    # As `train` starts from them, and as many as compiled walks make cheap.
    spread = resets.weighted("spread") if len(resets.visited) else resets
    resets_drawn = 100 * walks if known else walks
    recorded = None
    if exploration is not None and exploration.rounds and all(round_.seen is not None for round_ in exploration.rounds):
        recorded = exploration

    def poorly_visited() -> Report:
        if recorded is None:
            raise CertificateError(
                "no transitions were recorded; explore into another folder with --optimizer model-based --record"
            )
        return theory.certify_counts(world, recorded, delta=delta, **known)

    certificates: dict[str, Callable[[], Report]] = {
        "arrivals": lambda: theory.certify_arrivals(
            world, resets, count=walks, delta=delta, max_steps=max_steps, terminal=known.get("terminal"), seed=seed
        ),
        "poorly_visited": poorly_visited,
        "training": lambda: theory.certify_training(
            world, spread, recorded, count=resets_drawn, delta=delta, barrier=barrier, **known
        ),
    }
    if arrivals is not None:
        chosen = resets.weighted("uniform")  # refused at once where nothing was counted
        certificates["chosen_resets"] = lambda: theory.certify_chosen_resets(
            world, chosen, delta=delta, arrivals=arrivals
        )
    given: dict[str, Report | str] = {}
    for name, certificate in certificates.items():
        try:
            given[name] = certificate()
        except CertificateError as error:
            given[name] = str(error)
    if as_json:
        plain = {
            name: {"refused": report} if isinstance(report, str) else report.to_dict() for name, report in given.items()
        }
        typer.echo(json.dumps(plain, indent=2, allow_nan=False))
        return
    from rich.console import Console

    for name, report in given.items():
        words = f"No certificate of {name.replace('_', ' ')}: {report}." if isinstance(report, str) else report
        Console().print(words, markup=False, highlight=False)


def _show(as_json: bool, report: Report) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2, allow_nan=False))
    else:
        Console().print(report)
