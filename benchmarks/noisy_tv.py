"""``python -m benchmarks.noisy_tv``: how much of Curious Explorer's reset model ends up in front of a noisy TV.

Twenty rounds of TRPO, 50,000 learning steps each, three seeds; the share of starts in front of the TV is exact.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from curious_explorer import TRPO, TabularWorld, explore, visitation
from curious_explorer.environments import noisy_tv

GAMMA, ROUNDS, STEPS, SEEDS = 0.95, 20, 50_000, 3
HEIGHT = WIDTH = 10
TV_CELL = 1 * WIDTH + 1  # row 1, column 1, as in the environment


def share_at_the_tv(screens: int, seed: int) -> tuple[float, float]:
    """Of the reset model, and of a uniform policy."""
    mdp = noisy_tv(screens, permute_actions=seed)
    pictures = np.array([TV_CELL, *range(HEIGHT * WIDTH, mdp.num_states)])
    world = TabularWorld(mdp, seed=seed)
    optimizer = TRPO(updates=10**6)
    exploration = explore(world, optimizer, gamma=GAMMA, rounds=ROUNDS, budget=STEPS, progress=False)
    at_random = visitation(mdp, mdp.uniform_policy(), gamma=GAMMA)
    return float(exploration.reset_model.distribution(mdp)[pictures].sum()), float(at_random[pictures].sum())


def main() -> None:
    table = Table("pictures", "share of resets at the TV, mean", "least", "most", "share under a uniform policy")
    for screens in (1, 50, 200, 500):
        shares, at_random = zip(*(share_at_the_tv(screens, seed) for seed in range(SEEDS)), strict=True)
        figures = (np.mean(shares), min(shares), max(shares), np.mean(at_random))
        table.add_row(str(screens), *(f"{figure:.1%}" for figure in figures))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
