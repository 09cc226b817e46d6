"""Exploring and learning at the same time (`learn`), beside learning alone and exploring first: samples to 0.95 of V*.

    python -m benchmarks.anytime --seeds 10
    python -m benchmarks.anytime --seeds 10 --measured-alike
    python -m benchmarks.anytime --problems dcl/20,river/6 --optimizers trpo --seeds 3

A method counts as there when the policy that it would hand out is first worth 0.95 of the best value from the start,
exactly. Plain learning and exploring first hand out the best policy that they measured after a cycle, and before the
first one is over the policy as it is: what a call with a budget would hand out. With ``--measured-alike`` they are
measured between cycles as often as `learn` measures, and hand out what it would. Every step is counted. The factor is
the median of `learn` over the better of the other two's medians. Nobody is waited for longer than `--most` steps, plain
learning no longer than twice what exploring first took.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.robustness import FIRST_SEED, GAMMA, GRADIENTS, SOLVED
from benchmarks.robustness_problems import problem
from curious_explorer import FiniteMDP, TabularWorld, evaluate, learn, solve
from curious_explorer.explorers.anytime import EXPLORE_FIRST, PLAIN, InTurns
from curious_explorer.explorers.curious_explorer import CuriousExplorer
from curious_explorer.explorers.rounds import Round
from curious_explorer.learners.actor_critic import ActorCritic
from curious_explorer.learners.optimizer import OptimizerResult, Pieces
from curious_explorer.studies.runner import make_executor
from curious_explorer.worlds.policies import KnownPolicy

PROBLEMS = (
    *("dcl/5", "cct/5", "dcl/10", "cct/10", "dcl/20", "cct/20", "river/6", "sea/10", "sea/20", "FrozenLake-v1"),
    "garnet/100",
)
MOST = 20_000_000
ANYTIME = "anytime"


class DoneError(Exception):
    """The policy is good enough, or nobody waits for it any longer."""


class Watching:
    """Raises `DoneError` with the first policy that is worth enough, and after so many samples in any case."""

    def __init__(self, mdp: FiniteMDP, most: float) -> None:
        self._mdp, self._most = mdp, most
        self._target = SOLVED * float(mdp.start @ solve(mdp, gamma=GAMMA).values)
        self.samples = math.inf

    def __call__(self, policy: KnownPolicy, samples: int) -> None:
        if samples > self._most:
            raise DoneError
        assert isinstance(policy, np.ndarray)
        if float(self._mdp.start @ evaluate(self._mdp, policy, gamma=GAMMA)) >= self._target:
            self.samples = samples
            raise DoneError


def handed_out(pieces: Pieces[OptimizerResult]) -> Iterator[KnownPolicy | None]:
    """What a learner would hand out at each pause, where that changed."""
    best = None
    for pause in pieces:
        new = pause.policy if best is None else None
        if pause.measured is not None and (best is None or pause.measured.evaluation.value > best):
            best, new = pause.measured.evaluation.value, pause.measured.policy
        yield new


def run_alone(
    world: TabularWorld, optimizer: ActorCritic, watching: Watching, most: float, *, explore_first: bool
) -> None:
    """Plain learning, or Algorithm 2 and then learning from its resets."""
    resets = None
    if explore_first:
        explorer, rounds = CuriousExplorer(optimizer), list[Round]()
        for _ in explorer.explore_in_pieces(world, rounds, gamma=GAMMA):
            if world.samples > most:
                return
        resets = explorer.exploration(world, rounds, gamma=GAMMA).reset_model
    for policy in handed_out(optimizer.learn_in_pieces(world, resets, gamma=GAMMA)):
        if policy is not None:
            watching(policy, world.samples)
        if world.samples > most:
            return


@dataclass(frozen=True)
class Trial:
    """Samples to the target for one seed; infinite where it was not reached in time."""

    problem: str
    optimizer: str
    seed: int
    plain: float
    explore_first: float
    anytime: float


def run(job: tuple[str, str, int, int, bool]) -> Trial:
    """All three for one seed; a function of the module, so that worker processes can find it."""
    name, optimizer_name, seed, most, alike = job
    mdp = problem(name, seed)

    def samples_of(method: str, limit: float) -> float:
        world, watching, optimizer = TabularWorld(mdp, seed=seed), Watching(mdp, limit), GRADIENTS[optimizer_name]()
        try:
            if method == ANYTIME:
                learn(world, optimizer, gamma=GAMMA, samples=int(limit), watch=watching)
            elif alike:
                InTurns(world, optimizer, GAMMA, int(limit), watching, processes=(method,)).run()
            else:
                run_alone(world, optimizer, watching, limit, explore_first=method == EXPLORE_FIRST)
        except DoneError:
            pass
        return watching.samples

    explore_first = samples_of(EXPLORE_FIRST, most)
    plain = samples_of(PLAIN, min(most, 2 * explore_first))
    return Trial(name, optimizer_name, seed, plain, explore_first, samples_of(ANYTIME, most))


def table_of(trials: list[Trial], names: list[str], optimizers: list[str]) -> Table:
    """Medians, and how many seeds got there."""
    table = Table(title=f"thousands of samples until {SOLVED} of the best value is handed out, median (seeds)")
    for column in ("problem", "optimizer", "plain", "explore first", "anytime", "factor"):
        table.add_column(column, justify="left" if column in ("problem", "optimizer") else "right")
    for name in names:
        for optimizer in optimizers:
            group = [one for one in trials if (one.problem, one.optimizer) == (name, optimizer)]
            medians, cells = [], []
            for method in ("plain", "explore_first", "anytime"):
                samples = sorted(getattr(one, method) for one in group)
                medians.append(samples[(len(samples) - 1) // 2] / 2 + samples[len(samples) // 2] / 2)
                there = sum(math.isfinite(one) for one in samples)
                median = f"{medians[-1] / 1e3:,.0f}" if math.isfinite(medians[-1]) else "-"
                cells.append(f"{median} ({there})")
            better = min(medians[:2])
            table.add_row(name, optimizer, *cells, f"{medians[2] / better:.2f}" if math.isfinite(better) else "-")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="names with commas")
    parser.add_argument("--optimizers", default="trpo,reinforce")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--most", type=int, default=MOST, help="samples after which nobody is waited for")
    parser.add_argument("--measured-alike", action="store_true", help="measure the others as often as learn does")
    parser.add_argument("--workers", type=int, default=None, help="processes; one for each core by default")
    parser.add_argument("--out", type=Path, default=None, help="a file for all trials, as JSON lines")
    asked = parser.parse_args()
    names, optimizers = asked.problems.split(","), asked.optimizers.split(",")
    jobs = [
        (name, optimizer, asked.first_seed + seed, asked.most, asked.measured_alike)
        for name in names
        for optimizer in optimizers
        for seed in range(asked.seeds)
    ]
    for optimizer in optimizers:
        run(("dcl/5", optimizer, 0, MOST, False))  # compiled once, before workers share the cache
    trials = list(make_executor("processes", workers=asked.workers).run(run, jobs))
    if asked.out is not None:
        asked.out.write_text("".join(json.dumps(asdict(one)) + "\n" for one in trials))
    Console(width=110).print(table_of(trials, names, optimizers))


if __name__ == "__main__":
    main()
