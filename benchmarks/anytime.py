"""Exploring and learning at the same time (`learn`), beside learning alone and exploring first: samples to 0.95 of V*.

    python -m benchmarks.anytime --seeds 10
    python -m benchmarks.anytime --seeds 10 --measured-alike
    python -m benchmarks.anytime --problems dcl/20,river/6 --optimizers trpo --seeds 3
    python -m benchmarks.anytime --problems suite --most 50000000 --out trials.jsonl   # goes on where it was stopped
    python -m benchmarks.anytime --from trials.jsonl --markdown                        # runs nothing

A method counts as there when the policy that it would hand out is first worth 0.95 of the best value from the start,
exactly. Plain learning and exploring first hand out the best policy that they measured after a cycle, and before the
first one is over the policy as it is: what a call with a budget would hand out. With ``--measured-alike`` they are
measured between cycles as often as `learn` measures, and hand out what it would. Every step is counted. The factor is
the median of `learn` over the better of the other two's medians. Nobody is waited for longer than `--most` steps, plain
learning no longer than twice what exploring first took.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.json_lines import read_lines, run_all
from benchmarks.robustness import FIRST_SEED, GAMMA, GRADIENTS, LISTS
from benchmarks.robustness_problems import problem
from benchmarks.robustness_tables import SOLVED, WORDS
from curious_explorer import FiniteMDP, TabularWorld, evaluate, learn, solve
from curious_explorer.explorers.anytime import EXPLORE_FIRST, PLAIN, InTurns
from curious_explorer.explorers.curious_explorer import CuriousExplorer
from curious_explorer.explorers.rounds import Round
from curious_explorer.learners.actor_critic import ActorCritic
from curious_explorer.learners.optimizer import OptimizerResult, Pieces
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
    measured_alike: bool


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
    return Trial(name, optimizer_name, seed, plain, explore_first, samples_of(ANYTIME, most), alike)


METHODS = ("anytime", "plain", "explore_first")


@dataclass(frozen=True)
class Summary:
    """Medians over seeds, and the factor of `learn` over the better of the other two."""

    medians: dict[str, float]
    there: dict[str, int]
    many: int

    @property
    def factor(self) -> float:
        """Not a number where neither of the others gets there."""
        better = min(self.medians["plain"], self.medians["explore_first"])
        return self.medians["anytime"] / better if math.isfinite(better) else math.nan

    def cell(self, method: str) -> str:
        """Thousands of samples, and how many seeds got there where not all did."""
        median, there = self.medians[method], self.there[method]
        number = f"{median / 1e3:,.0f}" if math.isfinite(median) else "-"
        return number if there == self.many else f"{number} ({there})"


def summary_of(trials: list[Trial]) -> Summary:
    """What the seeds of one problem and one optimizer gave."""
    medians, there = {}, {}
    for method in METHODS:
        samples = sorted(float(getattr(one, method)) for one in trials)
        medians[method] = samples[(len(samples) - 1) // 2] / 2 + samples[len(samples) // 2] / 2
        there[method] = sum(math.isfinite(one) for one in samples)
    return Summary(medians, there, len(trials))


def groups_of(trials: list[Trial]) -> dict[tuple[str, str, bool], list[Trial]]:
    """By problem, optimizer, and whether the others were measured as often as `learn`."""
    groups: dict[tuple[str, str, bool], list[Trial]] = {}
    for one in trials:
        groups.setdefault((one.problem, one.optimizer, one.measured_alike), []).append(one)
    return groups


def table_of(trials: list[Trial]) -> Table:
    """Medians, and how many seeds got there."""
    table = Table(title=f"thousands of samples until {SOLVED} of the best value is handed out, median (seeds)")
    for column in ("problem", "optimizer", "seeds", *METHODS, "factor", "measured alike"):
        table.add_column(column, justify="left" if column in ("problem", "optimizer") else "right")
    for (name, optimizer, alike), group in groups_of(trials).items():
        of = summary_of(group)
        cells = (*map(of.cell, METHODS), f"{of.factor:.2f}", "yes" if alike else "")
        table.add_row(name, optimizer, str(of.many), *cells)
    return table


def markdown_of(trials: list[Trial]) -> str:
    """The table of docs/results.md: the others as they are, and measured alike, where both were run."""
    groups = groups_of(trials)
    others = METHODS[1:]
    head = ["", "`learn`", "plain", "explore first", "factor"]
    if any(one.measured_alike for one in trials):
        head += ["plain, measured alike", "explore first, measured alike", "factor"]
    rows = [head, ["---"] * len(head)]
    for name, optimizer in dict.fromkeys((one.problem, one.optimizer) for one in trials):
        row = [f"{WORDS[optimizer]} on `{name}`"]
        for alike in (False, True):
            if (name, optimizer, alike) in groups:
                of = summary_of(groups[name, optimizer, alike])
                row += [] if alike else [of.cell(METHODS[0])]
                row += [*map(of.cell, others), f"{of.factor:.2f}"]
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="names with commas; 'suite' is robustness's")
    parser.add_argument("--optimizers", default="trpo,reinforce")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--most", type=int, default=MOST, help="samples after which nobody is waited for")
    parser.add_argument("--measured-alike", action="store_true", help="measure the others as often as learn does")
    parser.add_argument("--workers", type=int, default=None, help="processes; one for each core by default")
    parser.add_argument(
        "--out", type=Path, default=None, help="a file for all trials, as JSON lines; those it has are not run again"
    )
    parser.add_argument("--from", type=Path, default=None, dest="read", help="show such a file, run nothing")
    parser.add_argument("--markdown", action="store_true", help="show the table as the page has it")
    asked = parser.parse_args()
    trials = trials_of(asked) if asked.read is None else read_lines(asked.read, Trial)
    if asked.markdown:
        print(markdown_of(trials))
    else:
        Console(width=120).print(table_of(trials))


def trials_of(asked: argparse.Namespace) -> list[Trial]:
    """Run what a file does not hold yet."""
    names = [name for given in asked.problems.split(",") for name in LISTS.get(given, (given,))]
    trials = read_lines(asked.out, Trial)
    done = {(one.problem, one.optimizer, one.seed, one.measured_alike) for one in trials}
    jobs = [
        (name, optimizer, seed, asked.most, asked.measured_alike)
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds)
        for name in names
        for optimizer in asked.optimizers.split(",")
        if (name, optimizer, seed, asked.measured_alike) not in done
    ]
    for optimizer in asked.optimizers.split(","):
        run(("dcl/5", optimizer, 0, MOST, False))  # compiled once, before workers share the cache
    return [*trials, *run_all(run, jobs, asked.workers, asked.out)]


if __name__ == "__main__":
    main()
