"""``python -m benchmarks.visits_error``: how far each way to measure D_n is from the truth, on the lock of depth 20.

Curious Explorer with TRPO, fifteen rounds, six seeds. After each round but the first, the total variation distance to
D_n, computed exactly, of

- fresh: where 2,000 walks stop;
- occupancy: 100 walks, and 10,000, counted along their way;
- learning: the optimizer's last episodes, which `LearningVisits` takes for D_n;
- other resets: where the policy goes from the resets that it was learned from, exactly;
- no terminal starts: where it goes from mu_{n-1} without the terminal states in it, exactly.

The last two have no error but bias, which no number of episodes reduces. D_n starts from mu_{n-1}; a policy was learned
from that only with ``learn_from="last"``, and episodes draw a terminal start again.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.studies import asked_for, run_all
from curious_explorer import TRPO, TabularWorld, explore, visitation
from curious_explorer.environments import combination_lock
from curious_explorer.explorers.exact_visits import ExactVisits
from curious_explorer.explorers.visits import FreshVisits, LearningVisits, OccupancyVisits, Visits
from curious_explorer.resets.reset_model import ResetModel

GAMMA, DEPTH, ROUNDS, SEEDS, UPDATES = 0.95, 20, 15, 6, 60
WAYS: dict[str, Visits] = {
    "fresh": FreshVisits(2_000),
    "occupancy, 100": OccupancyVisits(100),
    "occupancy, 10,000": OccupancyVisits(10_000),
    "learning": LearningVisits(),
}


def run(job: tuple[str, int]) -> list[list[float]]:
    """Distances by round and way."""
    learn_from, seed = job
    mdp = combination_lock(DEPTH, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    exploration = explore(
        world, TRPO(updates=UPDATES), gamma=GAMMA, rounds=ROUNDS, learn_from=learn_from, progress=False
    )
    rounds, exactly, distances = exploration.rounds, ExactVisits(mdp), []
    for before, now in pairwise(rounds):
        policies = [each.policy for each in rounds[: now.number]]
        mu = ResetModel(policies, gamma=GAMMA, weighting="last")
        truth = exactly(world, now.policy, mu, None, GAMMA)
        found = [way(world, now.policy, mu, before.occupancy, GAMMA) for way in WAYS.values()]
        learned_from = ResetModel(policies, gamma=GAMMA, weighting=learn_from)
        found.append(exactly(world, now.policy, learned_from, None, GAMMA))
        going_on = np.where(mdp.terminal, 0.0, mu.distribution(mdp))
        found.append(visitation(mdp, now.policy, gamma=GAMMA, start=going_on / going_on.sum()))
        distances.append([0.5 * float(np.abs(visited - truth).sum()) for visited in found])
    return distances


def main() -> None:
    executor = asked_for(__doc__)
    title = "Total variation to D_n, mean over rounds and seeds (largest)"
    table = Table("learn_from", *WAYS, "other resets", "no terminal starts", title=title)
    for learn_from in ("average", "last"):
        found = np.array(run_all(run, [(learn_from, seed) for seed in range(SEEDS)], learn_from, executor))
        table.add_row(learn_from, *(f"{each.mean():.3f} ({each.max():.3f})" for each in found.transpose(2, 0, 1)))
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
