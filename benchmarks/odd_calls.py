"""``python -m benchmarks.odd_calls --calls N``: public functions with arguments that nobody should give.

A call begins with arguments that are right. One or two of them are replaced by something odd: another type, a number
that is negative, not finite, huge or next to nothing, an array of another shape. It may work, or be refused by a
``ValueError`` (all errors of the library about arguments are, see `curious_explorer.errors`). Anything else is a
*finding*: another exception, more than twenty seconds.

Calls are numbered: the same number is the same call.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fuzz import TooLongError
from curious_explorer import (
    TRPO,
    FiniteMDP,
    GridCells,
    GymWorld,
    ModelBased,
    Reinforce,
    ResetModel,
    TabularWorld,
    evaluate,
    explore,
    improve,
    max_visitation,
    solve,
    theory,
    visit,
    visitation,
)
from curious_explorer.environments import combination_lock, crossroad_traps, garnet, river_swim

ODD: tuple[Any, ...] = (
    *(None, True, "x", "", b"x", (), [], {}, [[]], {1}, object(), complex(0, 1)),
    *(0, -1, 1, 2, 0.5, 1.5, -0.0, 1e-320, 1e-300, 1e300, 1e308, float("inf"), float("-inf"), float("nan")),
    *(2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**40, np.float32(0.5), np.int64(3), np.nan, np.bool_(True)),
    *(np.zeros(0), np.zeros(3), np.ones((3, 2)), np.full((10, 3), np.nan), np.array("x"), np.array([None])),
)
MDP = combination_lock(2)
UNIFORM = np.full((MDP.num_states, MDP.num_actions), 1.0 / MDP.num_actions)
STEPS = 400
OBJECTS = (FiniteMDP, TabularWorld, ResetModel, ModelBased, TRPO)
"""What is given as it is: something else in their place has not their methods, and Python says so."""


def _world() -> TabularWorld:
    return TabularWorld(MDP, seed=1)


def _model() -> ResetModel:
    return ResetModel([UNIFORM, UNIFORM], gamma=0.9)


class Kind(NamedTuple):
    """A function, and arguments that are right."""

    call: Callable[..., Any]
    arguments: Callable[[], dict[str, Any]]


CALLS: dict[str, Kind] = {
    "explore": Kind(
        explore,
        lambda: {"world": _world(), "optimizer": ModelBased(), "gamma": 0.9, "rounds": 1, "visits": 5, "samples": 900},
    ),
    "explore by counts": Kind(explore, lambda: {"world": _world(), "gamma": 0.9, "samples": STEPS}),
    "improve": Kind(
        improve,
        lambda: {
            "world": _world(),
            "optimizer": TRPO(episodes=5, horizon=10),
            "reset_model": _model(),
            "gamma": 0.9,
            "budget": STEPS,
        },
    ),
    "visit": Kind(visit, lambda: {"world": _world(), "policy": UNIFORM, "gamma": 0.9, "count": 5, "reset": _model()}),
    "visitation": Kind(visitation, lambda: {"mdp": MDP, "policy": UNIFORM, "gamma": 0.9}),
    "evaluate": Kind(evaluate, lambda: {"mdp": MDP, "policy": UNIFORM, "gamma": 0.9}),
    "solve": Kind(solve, lambda: {"mdp": MDP, "gamma": 0.9}),
    "max_visitation": Kind(max_visitation, lambda: {"mdp": MDP, "targets": [1], "gamma": 0.9}),
    "FiniteMDP": Kind(
        FiniteMDP,
        lambda: {
            "transitions": np.full((2, 2, 2), 0.5),
            "rewards": np.zeros((2, 2)),
            "start": np.array([1.0, 0.0]),
            "terminal": np.array([False, True]),
            "state_names": ["a", "b"],
        },
    ),
    "TabularWorld": Kind(TabularWorld, lambda: {"mdp": MDP, "seed": 1, "backend": "numba", "threads": 1}),
    "GymWorld": Kind(GymWorld, lambda: {"env": "FrozenLake-v1", "cells": None, "actions": None, "seed": 1}),
    "GridCells": Kind(GridCells, lambda: {"bins": [3, 3], "low": [0.0, 0.0], "high": [1.0, 1.0]}),
    "ResetModel": Kind(ResetModel, lambda: {"policies": [UNIFORM], "gamma": 0.9}),
    "ResetModel.sample": Kind(_model().sample, lambda: {"world": _world(), "count": 3}),
    "ResetModel.weighted": Kind(_model().weighted, lambda: {"weighting": "last"}),
    "TRPO": Kind(TRPO, lambda: {"updates": 2, "episodes": 5, "horizon": 5, "max_kl": 0.01}),
    "Reinforce": Kind(Reinforce, lambda: {"updates": 2, "episodes": 5, "horizon": 5, "learning_rate": 0.1}),
    "ModelBased": Kind(ModelBased, lambda: {"known_after": 5}),
    "combination_lock": Kind(combination_lock, lambda: {"depth": 3, "permute_actions": 1}),
    "crossroad_traps": Kind(crossroad_traps, lambda: {"depth": 3, "permute_actions": 1}),
    "garnet": Kind(garnet, lambda: {"num_states": 5, "seed": 1}),
    "river_swim": Kind(river_swim, lambda: {"num_states": 5}),
    "theory.exploitative_factor": Kind(theory.exploitative_factor, lambda: {"mdp": MDP, "gamma": 0.9}),
    "theory.hardness": Kind(theory.hardness, lambda: {"mdp": MDP, "gamma": 0.9}),
}
WORK, MOST_WORK = ("samples", "budget", "visits", "rounds", "count"), 2**20
"""Arguments that say how much is to be done."""
LONGEST = 20.0
"""Seconds that a call may take; `improve` without a budget, at a discount of zero, takes four on an idle machine."""
OUTCOMES = ("worked", "refused", "foreign", "hang")


def run(number: int) -> tuple[str, str, str]:
    """One call: its name, the outcome, and what happened."""
    rng = random.Random(number)
    name = sorted(CALLS)[number % len(CALLS)]
    kind = CALLS[name]
    arguments = kind.arguments()
    plain = sorted(argument for argument, value in arguments.items() if not isinstance(value, OBJECTS))
    changed = rng.sample(plain, rng.choice([1, 1, min(2, len(plain))]))
    for argument in changed:
        arguments[argument] = rng.choice(ODD)
        if argument in WORK and isinstance(arguments[argument], int) and arguments[argument] > MOST_WORK:
            arguments[argument] = -1  # so much would be done, for years
    told = f"{', '.join(f'{argument}={arguments[argument]!r:.60}' for argument in changed)}"
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        try:
            kind.call(**arguments)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except TooLongError:
        return name, "hang", told
    except (ValueError, MemoryError):
        return name, "refused", told
    except Exception as error:
        return name, "foreign", f"{told}: {type(error).__name__}: {error!s:.200}"
    return name, "worked", told


def _stop(*_: object) -> None:
    raise TooLongError


def run_all(first: int, count: int, seconds: float = float("inf")) -> tuple[Counter[tuple[str, str]], list[str]]:
    """The calls ``first`` to ``first + count - 1``: how many had each outcome, and what was found."""
    signal.signal(signal.SIGALRM, _stop)
    tally: Counter[tuple[str, str]] = Counter()
    found, deadline = [], time.monotonic() + seconds
    with warnings.catch_warnings(), tempfile.TemporaryDirectory():
        warnings.simplefilter("ignore")
        for number in range(first, first + count):
            name, outcome, told = run(number)
            tally[name, outcome] += 1
            if outcome in OUTCOMES[2:]:
                found.append(f"{outcome}: call {number}, {name}({told})")
            if time.monotonic() > deadline:
                break
    return tally, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    tally, found = run_all(options.first, options.calls, options.seconds)
    print(f"{'':28}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
    for name in [*sorted(CALLS), "all"]:
        rows = [sum(tally[each, outcome] for each in (CALLS if name == "all" else [name])) for outcome in OUTCOMES]
        print(f"{name:28}" + "".join(f"{count:>10,}" for count in rows))
    for each in found:
        print(each)
    if options.report is not None:
        counts = [[*key, count] for key, count in sorted(tally.items())]
        options.report.write_text(json.dumps({"counts": counts, "findings": found}) + "\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
