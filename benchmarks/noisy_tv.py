"""``python -m benchmarks.noisy_tv``: which methods a noisy TV catches, Curious Explorer included.

The grid is 10 x 10, gamma 0.95, with a TV of one picture (the control) and one of fifty. First, for every method, the
samples to 0.95 V*, as ``curious-explorer compare`` counts them. Then how much of Curious Explorer's reset model ends up
in front of the TV, exactly, after twenty rounds of TRPO with 50,000 learning steps each. The runs are kept in
``--out``, so that a study that was interrupted goes on. With ``--pictures 1,50,200`` MBIE, MBIE-EB and BEB take most
of a minute a run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from curious_explorer import TRPO, TabularWorld, explore, visitation
from curious_explorer.environments import noisy_tv
from curious_explorer.studies.comparison_results import ComparisonResults
from curious_explorer.studies.comparison_run import TARGET, Comparison
from curious_explorer.studies.comparison_study import compare

GAMMA, ROUNDS, STEPS = 0.95, 20, 50_000
BUDGET = 100_000
RESET_SCREENS = (1, 50, 200, 500)
HEIGHT = WIDTH = 10
TV_CELL = 1 * WIDTH + 1  # row 1, column 1, as in the environment


def samples_table(results: ComparisonResults) -> Table:
    """Median samples to the target, with the interval, and the factor that the pictures cost."""
    names = list(results.budgets)
    table = Table(
        title=f"Samples to {TARGET:.0%} of the best value, budget {BUDGET:,}, {results.comparison.seeds} seeds"
    )
    table.add_column("method", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for name in names[1:]:
        table.add_column(f"{name} over {names[0]}", justify="right", no_wrap=True)
    for method in results.methods:
        cells = [results.summary["environments"][name][method] for name in names]
        medians = [cell["samples_to_target"] for cell in cells]
        ratios = [f"{median / medians[0]:.1f}" if median and medians[0] else "" for median in medians[1:]]
        table.add_row(method, *(_samples(cell) for cell in cells), *ratios)
    return table


def _samples(cell: dict[str, Any]) -> str:
    median, reached = cell["samples_to_target"], cell["reached_target"]
    share = "" if reached in (0.0, 1.0) else f" ({reached:.0%})"
    return f"-{share}" if median is None else f"{median:,.0f}{share}"


def share_at_the_tv(screens: int, seed: int) -> tuple[float, float]:
    """Of the reset model, and of a uniform policy."""
    mdp = noisy_tv(screens, permute_actions=seed)
    pictures = np.array([TV_CELL, *range(HEIGHT * WIDTH, mdp.num_states)])
    world = TabularWorld(mdp, seed=seed)
    optimizer = TRPO(updates=10**6)
    exploration = explore(world, optimizer, gamma=GAMMA, rounds=ROUNDS, budget=STEPS, progress=False)
    at_random = visitation(mdp, mdp.uniform_policy(), gamma=GAMMA)
    return float(exploration.reset_model.distribution(mdp)[pictures].sum()), float(at_random[pictures].sum())


def resets_table(seeds: int) -> Table:
    """The share of resets in front of the TV."""
    table = Table("pictures", "share of resets at the TV, mean", "least", "most", "share under a uniform policy")
    for screens in RESET_SCREENS:
        shares, at_random = zip(*(share_at_the_tv(screens, seed) for seed in range(seeds)), strict=True)
        figures = (np.mean(shares), min(shares), max(shares), np.mean(at_random))
        table.add_row(str(screens), *(f"{figure:.1%}" for figure in figures))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--pictures", default="1,50", help="how many, separated by commas; the first is the control")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/noisy-tv"))
    given = parser.parse_args()
    environments = tuple(f"tv/{screens.strip()}" for screens in given.pictures.split(","))
    comparison = Comparison(environments=environments, seeds=given.seeds, budget=BUDGET, gamma=GAMMA)
    console = Console(width=130)
    results = compare(comparison, given.out, resume=(given.out / "comparison.json").exists(), workers=given.workers)
    console.print(samples_table(results))
    console.print(resets_table(given.seeds))


if __name__ == "__main__":
    main()
