"""``python -m benchmarks.options``: the paper's future work, measured against the default on the d = 20 problems.

- default: fresh visits after each round, then an improvement phase.
- visits while learning: D_n is where the optimizer's last episodes went, at no further cost.
- off-policy: no improvement phase; a policy is planned on the transitions recorded while exploring.
- combined: no improvement phase; opt learns for max(curiosity, reward) and its last policy is the result.
"""

from __future__ import annotations

import time

from rich.console import Console

from benchmarks.studies import Outcome, asked_for, fraction_of_optimum, run_all, table_of
from curious_explorer import TRPO, OffPolicy, TabularWorld, explore, improve
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.explorers.visits import FreshVisits, LearningVisits

GAMMA, DEPTH, SEEDS = 0.95, 20, 10
OPTIONS = ("default", "visits while learning", "off-policy", "combined")


def run(job: tuple[str, str, int]) -> Outcome:
    environment, option, seed = job
    began = time.perf_counter()
    mdp = (crossroad_traps if environment == "CCT(20)" else combination_lock)(DEPTH, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    exploration = explore(
        world,
        TRPO(updates=60),
        gamma=GAMMA,
        rounds=DEPTH,
        visits=LearningVisits(FreshVisits()) if option == "visits while learning" else FreshVisits(),
        reward="combined" if option == "combined" else "curiosity",
        record=option == "off-policy",
        progress=False,
    )
    learning = 0
    if option == "off-policy":
        planned = OffPolicy([round_.seen for round_ in exploration.rounds])
        policy = improve(world, planned, None, gamma=GAMMA, evaluation_episodes=0).policy
    elif option == "combined":
        policy = exploration.policies[-1]
    else:
        trained = improve(world, TRPO(updates=100), exploration.reset_model, gamma=GAMMA, evaluation_episodes=0)
        policy, learning = trained.policy, trained.samples
    fraction = fraction_of_optimum(mdp, policy, GAMMA)
    return Outcome(f"{environment}, {option}", fraction, exploration.samples, learning, time.perf_counter() - began)


def main() -> None:
    jobs = [(e, option, seed) for e in ("CCT(20)", "DCL(20)") for option in OPTIONS for seed in range(SEEDS)]
    title = "Options of explore, TRPO, gamma 0.95: fraction of the best value from the start"
    Console(width=130).print(table_of(run_all(run, jobs, "options", asked_for(__doc__)), title))


if __name__ == "__main__":
    main()
