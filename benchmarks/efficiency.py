"""``python -m benchmarks.efficiency``: samples to 0.95 of the best value on the lock of depth 20, all steps counted.

The count stops at the first update of the improvement phase whose policy is worth 0.95 of the best one from the start;
policies are evaluated exactly, at no cost in samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.studies import fraction_of_optimum, samples_to
from curious_explorer import TRPO, ModelBased, TabularWorld, explore, improve
from curious_explorer.environments import combination_lock

GAMMA, DEPTH, SEEDS, TARGET = 0.95, 20, 10, 0.95


def with_trpo(seed: int) -> tuple[int | None, int, float]:
    """Ten short rounds of exploration, then TRPO; few visits are enough to see which lane is poorly visited."""
    mdp = combination_lock(DEPTH, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    settings: dict[str, Any] = {"trace": 0.98, "advantage_memory": 20}
    exploration = explore(world, TRPO(updates=40, **settings), gamma=GAMMA, rounds=10, visits=500, progress=False)
    watch, reached = samples_to(mdp, world, TARGET, GAMMA)
    learner = TRPO(updates=80, **settings)
    trained = learner(world, exploration.reset_model, gamma=GAMMA, watch=watch)
    return (reached[0] if reached else None), world.samples, fraction_of_optimum(mdp, trained.policy, GAMMA)


def with_model_based(seed: int) -> tuple[int | None, int, float]:
    """The learned counts are kept from round to round and into the improvement phase."""
    mdp = combination_lock(DEPTH, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    learner = ModelBased()
    exploration = explore(world, learner, gamma=GAMMA, rounds=2, visits=50, progress=False)
    trained = improve(world, learner, exploration.reset_model, gamma=GAMMA, evaluation_episodes=0)
    fraction = fraction_of_optimum(mdp, trained.policy, GAMMA)
    return (world.samples if fraction >= TARGET else None), world.samples, fraction


METHODS: dict[str, Callable[[int], tuple[int | None, int, float]]] = {
    "Curious Explorer with TRPO": with_trpo,
    "Curious Explorer with ModelBased": with_model_based,
}


def main() -> None:
    table = Table(title=f"Samples to {TARGET} V* on DCL({DEPTH}), exploration included, {SEEDS} seeds")
    for name in ("method", "median", "worst", "reached", "samples of a whole run", "final fraction, worst", "s/run"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for name, method in METHODS.items():
        began = time.perf_counter()
        runs = [method(seed) for seed in range(SEEDS)]
        seconds = (time.perf_counter() - began) / SEEDS
        reached = [samples for samples, _, _ in runs if samples is not None]
        table.add_row(
            name,
            f"{np.median(reached):,.0f}",
            f"{max(reached):,}" if len(reached) == SEEDS else "not reached",
            f"{len(reached)} of {SEEDS}",
            f"{np.mean([total for _, total, _ in runs]):,.0f}",
            f"{min(fraction for _, _, fraction in runs):.3f}",
            f"{seconds:.2f}",
        )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
