"""The paper's cells: an optimizer on an environment at a depth, with Curious Explorer and without it.

A run of a cell explores, learns from the reset model, and trains two rivals from the environment's own start: one with
as many learning steps, and one with all the steps, the exploration's included. Every policy is evaluated exactly, from
the start, as a fraction of the best possible value; that costs no samples and hides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.exact import evaluate, solve
from curious_explorer.explorer import explore, improve
from curious_explorer.mdp import FiniteMDP
from curious_explorer.optimizers import TRPO, Reinforce
from curious_explorer.optimizers.protocol import Floats
from curious_explorer.sampling import TabularWorld

ENVIRONMENTS: dict[str, Callable[..., FiniteMDP]] = {"cct": crossroad_traps, "dcl": combination_lock}
OPTIMIZERS: dict[str, type[TRPO] | type[Reinforce]] = {"reinforce": Reinforce, "trpo": TRPO}
DEPTHS = (5, 10, 20)
AS_MANY_AS_THE_BUDGET_ALLOWS = 10**9


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; its name, such as ``dcl/20/trpo``, is how results call it."""

    environment: str
    depth: int
    optimizer: str

    @property
    def name(self) -> str:
        """The cell as a string id."""
        return f"{self.environment}/{self.depth}/{self.optimizer}"


@dataclass(frozen=True)
class CellSettings:
    """How a cell is run."""

    gamma: float
    rounds: int
    exploring: TRPO | Reinforce
    learning: TRPO | Reinforce
    visits: int
    beta: float | None = None
    """None is the paper's 1 / (2 |S|)."""


@dataclass(frozen=True)
class CellRun:
    """What one seed gave; values are fractions of the best possible one, from the start."""

    cell: Cell
    seed: int
    with_ce: float
    without_ce: float
    """At the same number of learning steps."""
    without_ce_total: float
    """At the total number of steps, the exploration's included."""
    exploration_samples: int
    learning_samples: int
    seconds: float


def grid() -> Iterator[Cell]:
    """The paper's twelve cells."""
    for optimizer in OPTIMIZERS:
        for environment in ENVIRONMENTS:
            for depth in DEPTHS:
                yield Cell(environment, depth, optimizer)


def tuned_settings(cell: Cell) -> CellSettings:
    """Our settings: the text's gamma and beta, d rounds, and enough updates for the optimizer to converge.

    REINFORCE learns for longer than TRPO because its steps shrink with the probability of the states it improves.
    """
    kind: dict[str, dict[str, Any]] = {
        "trpo": {"exploring": TRPO(updates=60), "learning": TRPO(updates=100)},
        "reinforce": {"exploring": Reinforce(updates=60), "learning": Reinforce(updates=400)},
    }
    return CellSettings(gamma=0.95, rounds=cell.depth, visits=2_000, **kind[cell.optimizer])


def run_cell(cell: Cell, seed: int, settings: CellSettings) -> CellRun:
    """Explore, learn, and let the rivals learn; action labels are permuted from the seed."""
    began = time.perf_counter()
    mdp = ENVIRONMENTS[cell.environment](cell.depth, permute_actions=seed)
    gamma = settings.gamma
    best = float(mdp.start @ solve(mdp, gamma=gamma).values)

    def fraction(policy: Floats) -> float:
        return float(mdp.start @ evaluate(mdp, policy, gamma=gamma)) / best

    world = TabularWorld(mdp, seed=seed)
    exploration = explore(
        world,
        settings.exploring,
        gamma=gamma,
        rounds=settings.rounds,
        thresholds=settings.beta,
        visits=settings.visits,
        progress=False,
    )
    trained = improve(world, settings.learning, exploration.reset_model, gamma=gamma, evaluation_episodes=0)
    patient = replace(settings.learning, updates=AS_MANY_AS_THE_BUDGET_ALLOWS)

    def alone(budget: int) -> float:
        rival = TabularWorld(mdp, seed=seed)
        return fraction(improve(rival, patient, None, gamma=gamma, budget=budget, evaluation_episodes=0).policy)

    return CellRun(
        cell=cell,
        seed=seed,
        with_ce=fraction(trained.policy),
        without_ce=alone(trained.samples),
        without_ce_total=alone(exploration.samples + trained.samples),
        exploration_samples=exploration.samples,
        learning_samples=trained.samples,
        seconds=time.perf_counter() - began,
    )
