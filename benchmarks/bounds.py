"""Bounds against the truth on DCL(20), what certificates cost there, and the exploitative factor of a million states.

``python -m benchmarks.bounds`` prints three tables. Gamma is 0.9 on DCL(20) and 0.95 on the million-state garnet.

- Theorem 1 with exact visits and the exact planner: the sum over rounds of max_pi d(K_n), its bounds in three forms,
  and how many times tighter the repaired one is than the printed one.
- A run of TRPO from samples: what is guaranteed about the last K_n, at confidence 0.95, by which means, at what cost.
  The certificate's epsilon is an assumption; here it is set to the exact one, which only somebody with the model knows.
- garnet(10^6, 4, 2): a certain interval for e from a few sparse products, and a 95% one from exact sampled targets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

from curious_explorer import TRPO, TabularWorld, explore, theory
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.explorers.exact_visits import ExactVisits
from curious_explorer.explorers.thresholds import Schedule, constant, default_beta, linear, paper_linear
from curious_explorer.learners.exact_planner import Planner
from curious_explorer.mdp.finite_mdp import FiniteMDP

DEPTH = 20
GAMMA = 0.9
LARGE, LARGE_GAMMA = 10**6, 0.95
DELTA = 0.05


class Setting(NamedTuple):
    """Thresholds and rounds under a name."""

    name: str
    schedule: Callable[[float], Schedule]
    beta: float
    rounds: int


def settings(mdp: FiniteMDP) -> list[Setting]:
    plan = theory.plan(mdp, gamma=GAMMA, eta=0.1, delta=DELTA)
    averaged = theory.plan(mdp, gamma=GAMMA, eta=0.1, delta=DELTA, schedule="linear")
    half = default_beta(mdp.num_states)
    return [
        Setting("paper text: beta n, 1/(2|S|)", paper_linear, half, DEPTH),
        Setting("default: beta (n+1), 1/(2|S|)", linear, half, DEPTH),
        Setting("paper figures: beta (n+1), 1/(12d)", linear, 1 / (12 * DEPTH), DEPTH),
        Setting("constant, 1/(2|S|)", constant, half, DEPTH),
        Setting("planned for 0.1, linear", linear, averaged.beta, averaged.rounds),
        Setting("planned for 0.1, constant", constant, plan.beta, plan.rounds),
    ]


def theorem_rows(mdp: FiniteMDP) -> list[tuple[Setting, theory.Theorem1, theory.Assessment]]:
    """Theorem 1 under each setting, and what it promised before the run."""
    rows = []
    for setting in settings(mdp):
        run = explore(
            TabularWorld(mdp),
            Planner(mdp),
            gamma=GAMMA,
            rounds=setting.rounds,
            thresholds=setting.schedule(setting.beta),
            visits=ExactVisits(mdp),
            progress=False,
        )
        before = theory.assess(
            mdp, gamma=GAMMA, beta=setting.beta, rounds=setting.rounds, schedule=setting.schedule.__name__
        )
        rows.append((setting, theory.theorem_1(mdp, run), before))
    return rows


def certificate_rows(mdp: FiniteMDP, seed: int = 1) -> list[tuple[str, str, str]]:
    """What can be guaranteed about the last K_n of a TRPO run, from samples and from the model."""
    world = TabularWorld(mdp, seed=seed)
    run = explore(
        world, TRPO(), gamma=GAMMA, rounds=DEPTH, thresholds=linear(1 / (12 * DEPTH)), record=True, progress=False
    )
    explored = world.samples
    exact = theory.theorem_1(mdp, run)
    epsilon = float(exact.epsilons[-1])
    rows = [
        ("truth: max_pi d(K_last)", f"{exact.round_left[-1]:.4f}", "needs the model"),
        ("round bound, exact visitation", f"{exact.round_right[-1]:.4f}", "needs the model"),
    ]
    for visits in (1_000, 10_000, 100_000):
        certificate = theory.certify(world, run, delta=DELTA, epsilon=epsilon, visits=visits)
        cost = f"{certificate.samples:,} steps; assumes epsilon = {epsilon:.4f}"
        rows.append((f"certificate, {visits:,} visits", f"{certificate.limit:.4f}", cost))
    for region in ("l1", "entries", "both"):
        counted = theory.certify_counts(world, run, delta=DELTA, terminal=mdp.terminal, start=mdp.start, region=region)
        cost = f"{counted.samples:,} transitions of the run itself; assumes nothing on opt"
        rows.append((f"certificate from counts, {region}", f"{counted.limit:.4f}", cost))
    counted = theory.certify_counts(world, run, delta=DELTA, terminal=mdp.terminal)
    rows.append(("certificate from counts, both", f"{counted.limit:.4f}", "the same, with the start sampled as well"))
    kept = int(run.rounds[-1].poorly_visited.sum())
    rows.append(("states in K_last", str(kept), f"the exploration took {explored:,} steps"))
    forms = " / ".join(f"{getattr(exact, form)[-1]:.2f}" for form in ("printed", "repaired", "a_posteriori"))
    rows.append(
        ("Theorem 1: printed / repaired / a posteriori", forms, f"truth {exact.left[-1]:.2f} over {DEPTH} rounds")
    )
    return rows


def million_states(targets: int) -> theory.ExploitativeFactorBound:
    mdp = garnet(LARGE, 4, 2)
    theory.exploitative_factor_bound(garnet(100, 4, 2), gamma=LARGE_GAMMA, targets=1)  # compiles
    return theory.exploitative_factor_bound(mdp, gamma=LARGE_GAMMA, targets=targets)


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description="Bounds and certificates against the truth.")
    parser.add_argument("--targets", type=int, default=32, help="exact targets at a million states; about 2 s each")
    targets = parser.parse_args().targets
    console = Console(width=150)
    mdp = combination_lock(DEPTH)
    columns = (
        "setting",
        "rounds",
        "truth",
        "a posteriori",
        "repaired",
        "printed",
        "printed/repaired",
        "before the run",
    )
    table = Table(*columns, title=f"Theorem 1 on DCL({DEPTH}), gamma {GAMMA}: sum over rounds of max d(K_n)")
    for setting, report, before in theorem_rows(mdp):
        figures = (report.left[-1], report.a_posteriori[-1], report.repaired[-1], report.printed[-1])
        ratio = f"{report.printed[-1] / report.repaired[-1]:.2f}"
        promise = f"vacuous ({before.bound:.2f})" if before.vacuous else f"{before.bound:.3f} a round"
        table.add_row(setting.name, str(setting.rounds), *(f"{value:.3f}" for value in figures), ratio, promise)
    console.print(table)
    table = Table("means", "limit", "cost and assumption", title=f"The last K_n of a TRPO run, confidence {1 - DELTA}")
    for row in certificate_rows(mdp):
        table.add_row(*row)
    console.print(table)
    begin = time.perf_counter()
    console.print(million_states(targets))
    console.print(f"in all {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
