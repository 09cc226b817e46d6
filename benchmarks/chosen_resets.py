"""``python -m benchmarks.chosen_resets``: whether resets to chosen states arrive as often, and as fast, as they state.

Each task is explored once, by R-MAX, which tries every pair as often as it is told: what is stated is an estimate from
counts, and a plan takes the best of many, so that it is no better than they are. Then cells are drawn at random among
those that can be reached, and each is gone to until it was reached ``--arrivals`` times. The table has, over all cells,
the stated and the measured probability that a try arrives, the p-value of a chi-square test of one against the other
(cells whose expected number of arrivals or misses is below five are pooled), the stated and the measured number of
steps, and the fewest transitions that were ever seen to lead there. MountainCar's cells merge states, so that its
counted model is not Markov: the statement is an approximation there, and the test may say so.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from curious_explorer import FiniteMDP, GymWorld, MiniGridCells, ResetModel, TabularWorld, World, explore
from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.baselines import RMax
from curious_explorer.environments import deep_sea, garnet
from curious_explorer.errors import ArrivalError
from curious_explorer.resets.chosen_states import Arrivals, reaching_of

CELLS, ARRIVALS = 200, 100
LEAST_EXPECTED = 5.0
TRIES = 100
WIDTH = 130


class Task(NamedTuple):
    """What is explored, and for how many samples."""

    world: Callable[[int], World]
    samples: int
    known_after: int | None  # of R-MAX; None explores as `explore` does by itself
    gamma: float = 0.98


class Outcome(NamedTuple):
    """What became of the resets of one task; arrays have an entry for each cell."""

    met: int
    stated: Floats
    tried: Integers
    arrived: Integers
    stated_steps: Floats
    measured_steps: Floats
    shortest: Integers
    given_up: int


class FixedLayout(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Every episode in the layout of one seed."""

    def __init__(self, env: gymnasium.Env[Any, Any], layout: int) -> None:
        super().__init__(env)
        self._layout = layout

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, whatever the seed."""
        return self.env.reset(seed=self._layout, options=options)


def minigrid(name: str, seed: int) -> GymWorld:
    """A MiniGrid of one layout."""
    import minigrid  # noqa: F401

    cells = MiniGridCells(20_000, things=True)  # the whole state; without things the counted model is not Markov
    return GymWorld(lambda: FixedLayout(gymnasium.make(name), seed), cells=cells, seed=seed)


TASKS = {
    "FrozenLake8x8": Task(
        lambda seed: TabularWorld(FiniteMDP.from_gymnasium("FrozenLake8x8-v1"), seed=seed), 2_000_000, 1_000
    ),
    "garnet(300)": Task(lambda seed: TabularWorld(garnet(300, 4, 3, seed=1), seed=seed), 4_000_000, 1_000),
    "deep sea 30": Task(lambda seed: TabularWorld(deep_sea(30), seed=seed), 100_000, 1),
    "Taxi": Task(lambda seed: TabularWorld(FiniteMDP.from_gymnasium("Taxi-v4"), seed=seed), 300_000, 1),
    "DoorKey-5x5": Task(lambda seed: minigrid("MiniGrid-DoorKey-5x5-v0", seed), 10_000, 1, 0.95),
    "MountainCar 20x20": Task(lambda seed: GymWorld("MountainCar-v0", seed=seed), 60_000, None, 0.99),
}


def measure(task: Task, seed: int, cells: int, arrivals: int) -> Outcome:
    """Explore, draw cells, go to each of them."""
    world = task.world(seed)
    explorer = None if task.known_after is None else RMax(known_after=task.known_after)
    resets = explore(world, explorer, gamma=task.gamma, samples=task.samples).reset_model
    assert resets.model is not None
    reaching = reaching_of(resets.model)
    reachable = np.flatnonzero(reaching.reachable)
    random = np.random.default_rng(seed)
    drawn = random.choice(reachable, size=min(cells, len(reachable)), replace=False)
    tables = [go_to(world, resets, int(state), arrivals) for state in np.sort(drawn)]
    arrived = np.concatenate([table.arrived for table in tables])
    return Outcome(
        len(reachable),
        stated=np.concatenate([table.probability for table in tables]),
        tried=np.concatenate([table.tried for table in tables]),
        arrived=arrived,
        stated_steps=np.concatenate([table.steps for table in tables]),
        measured_steps=np.concatenate([table.measured_steps for table in tables]),
        shortest=reaching.distances_from_starts()[np.sort(drawn)],
        given_up=int((arrived < arrivals).sum()),
    )


def go_to(world: World, resets: ResetModel, state: int, arrivals: int) -> Arrivals:
    """Go to one cell until it was reached so often, or too many tries in a row failed."""
    to = resets.to(state, tries=TRIES)
    with contextlib.suppress(ArrivalError):
        to.sample(world, arrivals)
    return to.arrivals


def p_value(outcome: Outcome) -> float:
    """Of a chi-square test of arrivals and misses against what was stated, rare ones pooled over all cells."""
    expected = np.stack([outcome.tried * outcome.stated, outcome.tried * (1.0 - outcome.stated)], axis=1)
    observed = np.stack([outcome.arrived, outcome.tried - outcome.arrived], axis=1)
    often: Mask = np.all(expected >= LEAST_EXPECTED, axis=1)
    statistic = float((((observed - expected) ** 2 / np.where(often[:, None], expected, 1.0))[often]).sum())
    freedom = int(often.sum())
    pooled, wanted = observed[~often].sum(axis=0), expected[~often].sum(axis=0)
    if wanted[1] >= LEAST_EXPECTED:
        statistic, freedom = statistic + float(((pooled - wanted) ** 2 / wanted).sum()), freedom + 1
    elif pooled[1] > 0:  # too few to be expected at all: their exact probability
        return float(min(stats.poisson.sf(pooled[1] - 1, max(wanted[1], 1e-300)), stats.chi2.sf(statistic, freedom)))
    return float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tasks", default=",".join(TASKS), help="names, separated by commas")
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--arrivals", type=int, default=ARRIVALS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table = Table(title=f"Resets to {arguments.cells} cells drawn at random, {arguments.arrivals} arrivals in each")
    for name in ("task", "cells met", "tries", "stated", "measured", "p-value", "steps stated", "measured", "shortest"):
        table.add_column(name, justify="left" if name == "task" else "right")
    table.add_column("given up", justify="right")
    console = Console(width=WIDTH)
    for name in arguments.tasks.split(","):
        outcome = measure(TASKS[name], arguments.seed, arguments.cells, arguments.arrivals)
        seen = outcome.arrived > 0
        table.add_row(
            name,
            f"{outcome.met:,}",
            f"{outcome.tried.sum():,}",
            f"{(outcome.tried * outcome.stated).sum() / outcome.tried.sum():.4f}",
            f"{outcome.arrived.sum() / outcome.tried.sum():.4f}",
            f"{p_value(outcome):.3g}",
            f"{outcome.stated_steps[seen].mean():.2f}",
            f"{outcome.measured_steps[seen].mean():.2f}",
            f"{outcome.shortest[seen].mean():.2f}",
            str(outcome.given_up),
        )
        console.print(f"{name}: done", style="dim")
    console.print(table)


if __name__ == "__main__":
    main()
