"""``python -m benchmarks.depth``: how deep Curious Explorer with TRPO goes within 10^8 steps, exploration included.

Five seeds a depth; a depth counts as solved when the mean fraction of the best value is at least 0.95.

The discount follows the depth. It sets how far a walk goes before it stops, 1 / (1 - gamma) steps on average: much
shorter than the problem is deep, and the end is out of reach of a round; much longer, and nearly every walk through
the lock stops in a terminal state, so that the levels between get no visits (DCL(40) at gamma 0.99: 3 of 8 seeds).
"""

from __future__ import annotations

import time

from rich.console import Console

from benchmarks.studies import Outcome, asked_for, fraction_of_optimum, run_all, table_of
from curious_explorer import TRPO, TabularWorld, explore, improve
from curious_explorer.environments import combination_lock, crossroad_traps

DEEP = 70
SEEDS = 5
CASES = [("cct", 40), ("cct", 60), ("cct", 80), ("dcl", 40), ("dcl", 60), ("dcl", 80), ("dcl", 100)]
BUDGET = 10**8


def run(job: tuple[str, int, int]) -> Outcome:
    """Deep problems want small steps on shrunken advantages: an action that is wrong and certain is lost for good."""
    environment, depth, seed = job
    began = time.perf_counter()
    gamma = 0.99 if environment == "dcl" and depth > DEEP else 0.98
    mdp = (crossroad_traps if environment == "cct" else combination_lock)(depth, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    if environment == "cct":
        # Wandering costs samples here: episodes are cut off early, and each round moves the frontier on a little.
        exploring = TRPO(updates=60, episodes=100, max_kl=0.02, advantage_memory=20, horizon=80)
        learning = TRPO(updates=400, episodes=100, max_kl=0.02, advantage_memory=20)
        rounds = depth
    else:
        exploring = TRPO(updates=100, episodes=100, max_kl=0.02, advantage_memory=20, trace=0.98)
        learning = TRPO(updates=600, episodes=300, max_kl=0.02, advantage_memory=20, trace=0.98)
        rounds = 20
    exploration = explore(world, exploring, gamma=gamma, rounds=rounds, progress=False)
    left = max(BUDGET - world.samples, 1)
    trained = improve(world, learning, exploration.reset_model, gamma=gamma, budget=left, evaluation_episodes=0)
    return Outcome(
        f"{environment.upper()}({depth}), gamma {gamma}",
        fraction_of_optimum(mdp, trained.policy, gamma),
        exploration.samples,
        trained.samples,
        time.perf_counter() - began,
    )


def main() -> None:
    jobs = [(environment, depth, seed) for environment, depth in CASES for seed in range(SEEDS)]
    outcomes = run_all(run, jobs, "depths", asked_for(__doc__))
    Console(width=130).print(
        table_of(outcomes, "Curious Explorer with TRPO, fraction of the best value from the start")
    )


if __name__ == "__main__":
    main()
