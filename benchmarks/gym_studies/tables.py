"""The tables of docs/gymnasium-studies.md, as Markdown, from the runs that are there; `curves` draws its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.gym_studies.arms import ARMS, BONUSES, CHANGED
from benchmarks.gym_studies.runs import FAILED, FINISHED, STOPPED, Run
from benchmarks.gym_studies.tasks import CHOSE_SETTINGS, TASKS
from curious_explorer.arrays import Floats
from curious_explorer.studies.statistics import improvement_interval, probability_of_improvement, step_values

OURS, PLAIN = "ours", "plain"
RIVALS = (OURS, PLAIN, *BONUSES, "planning", "archive")
PARTS = ("warm", "cold", "spread", *CHANGED)
GRID = (10_000, 25_000, 50_000, 100_000, 200_000, 500_000)
"""Samples at which learning curves are shown."""
HARD = 0.1
"""A task is one that plain PPO does not learn if its runs come to less than this on average."""
FEWEST_RUNS = 2
"""Of each arm, below which resampling says nothing about how far runs differ."""

Problem = tuple[str, int]
"""A task, and the samples that were given."""


class Runs:
    """Finished runs, by what they are of."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.finished = [run for run in runs if run["state"] == FINISHED]
        self.others = [run for run in runs if run["state"] in (STOPPED, FAILED)]
        order = {name: number for number, name in enumerate(TASKS)}
        problems = {(run["task"], run["given"]) for run in self.finished}
        self.problems: list[Problem] = sorted(problems, key=lambda each: (order[each[0]], each[1]))

    def of(self, problem: Problem, arm: str) -> list[Run]:
        """Those of a problem and an arm, by seed."""
        named = (*problem, arm)
        found = [run for run in self.finished if (run["task"], run["given"], run["arm"]) == named]
        return sorted(found, key=lambda run: run["seed"])

    def arms(self) -> list[str]:
        """Those that there are runs of."""
        there = {run["arm"] for run in self.finished}
        return [arm for arm in ARMS if arm in there]


def tables(runs: Sequence[Run]) -> Iterator[str]:
    """The lines of all tables."""
    found = Runs(runs)
    yield from _ours(found)
    yield from _arms(found, RIVALS)
    yield from _arms(found, PARTS)
    yield from _improvement(found)
    yield from _curves(found)
    yield from _costs(found)
    if found.others:
        yield ""
        yield "In no table:"
        yield ""
        yield from (f"- {told(run)}" for run in found.others)


def told(run: Run) -> str:
    """What became of a run that is not finished."""
    named = f"{run['task']}, {ARMS[run['arm']]}, seed {run['seed']}, {run['given']:,} given: {run['state']}"
    return (
        named + (f" after {run['samples']:,} samples" if "samples" in run else "") + f" {run.get('error', '')}".rstrip()
    )


def _ours(runs: Runs) -> Iterator[str]:
    """How our arm fares."""
    yield "| task | solved | worth | samples until solved: median (range) | samples in all | first reward | acts |"
    yield "|---|---|---|---|---|---|---|"
    solved_on_all = tried = 0
    for problem in runs.problems:
        found = runs.of(problem, OURS)
        if not found:
            continue
        tried += 1
        solved_on_all += all(run["solved"] for run in found)
        worth = ", ".join(f"{run['fraction']:.2f}" for run in found)
        first = [run["first_reward"] for run in found]
        acts = [run["agent"] for run in found]
        agents = ", ".join(f"{name} {acts.count(name)}" for name in dict.fromkeys(acts))
        shown = (
            _label(problem),
            _share(found),
            worth,
            _until_solved(found),
            _spread([run["samples"] for run in found]),
            _spread([one for one in first if one is not None]) if any(first) else "never",
            agents,
        )
        yield f"| {' | '.join(shown)} |"
    yield ""
    yield f"Solved on every seed: {solved_on_all} of {tried} tasks."
    yield ""


def _arms(runs: Runs, among: Sequence[str]) -> Iterator[str]:
    """Arms on what they were run on: seeds solved, and samples until then."""
    arms = [arm for arm in runs.arms() if arm in among]
    if len(arms) < 2:
        return
    yield f"| task | {' | '.join(ARMS[arm] for arm in arms)} |"
    yield f"|---|{'---|' * len(arms)}"
    for problem in runs.problems:
        cells = []
        for arm in arms:
            found = runs.of(problem, arm)
            cells.append(f"{_share(found)}; {_until_solved(found)}" if found else "")
        if sum(map(bool, cells)) > 1:
            yield f"| {_label(problem)} | {' | '.join(cells)} |"
    yield ""


def _improvement(runs: Runs) -> Iterator[str]:
    """How likely a run of ours takes fewer samples than one of another arm; never solved is more than all."""
    rivals = [arm for arm in runs.arms() if arm in RIVALS and arm != OURS]
    yield "| ours against | tasks | runs of each | fewer in the median | probability of fewer samples | 95% interval |"
    yield "|---|---|---|---|---|---|"
    for rival in rivals:
        both = [each for each in runs.problems if runs.of(each, OURS) and runs.of(each, rival)]
        hard = [each for each in both if _is_hard(runs, each)]
        for problem in both:
            yield _compared(runs, rival, [problem], _label(problem))
        if len(both) > 1:
            yield _compared(runs, rival, both, f"all {len(both)}")
        if 0 < len(hard) < len(both):
            yield _compared(runs, rival, hard, f"the {len(hard)} on which plain PPO stays under {HARD:.0%}")
    yield ""


def _is_hard(runs: Runs, problem: Problem) -> bool:
    """Whether plain learning comes to next to nothing."""
    found = runs.of(problem, PLAIN)
    return bool(found) and float(np.mean([run["fraction"] for run in found])) < HARD


def _compared(runs: Runs, rival: str, problems: list[Problem], label: str) -> str:
    ours, theirs = (_scores(runs, arm, problems) for arm in (OURS, rival))
    medians = [[_median(runs.of(problem, arm)) for arm in (OURS, rival)] for problem in problems]
    fewer = sum(first < second for first, second in medians)
    chance = probability_of_improvement(ours, theirs)
    shown = "too few runs"
    if min(len(ours), len(theirs)) >= FEWEST_RUNS:
        low, high = improvement_interval(ours, theirs)
        shown = f"{low:.2f} to {high:.2f}"
    share = f"{fewer} of {len(problems)}"
    cells = (ARMS[rival], label, f"{len(ours)} and {len(theirs)}", share, f"{chance:.2f}", shown)
    return f"| {' | '.join(cells)} |"


def _scores(runs: Runs, arm: str, problems: list[Problem]) -> Floats:
    """Minus the samples until solved, shape (runs, problems): of each problem as many as there are of all."""
    rows = [[-_at(run) for run in runs.of(problem, arm)] for problem in problems]
    fewest = min(map(len, rows))
    return np.array([row[:fewest] for row in rows]).T


def _curves(runs: Runs) -> Iterator[str]:
    """The mean worth, as a share of the best, of what was learned by then; of arms that evaluate on the way."""
    yield f"| task | arm | {' | '.join(f'{samples:,}' for samples in GRID)} |"
    yield f"|---|---|{'---|' * len(GRID)}"
    for problem in runs.problems:
        for arm in runs.arms():
            found = runs.of(problem, arm)
            if any(run["curve"] for run in found):
                curves = np.mean([worth_at(run, GRID) for run in found], axis=0)
                shown = [
                    f"{worth:.2f}" if samples <= problem[1] else "" for samples, worth in zip(GRID, curves, strict=True)
                ]
                yield f"| {_label(problem)} | {ARMS[arm]} | {' | '.join(shown)} |"
    yield ""


def worth_at(run: Run, grid: Sequence[int]) -> Floats:
    """What a run has come to by these samples: nothing before it was evaluated; what it ended with after its end.

    The arms that learn nothing have no curve: what they hand out is worth something at their end.
    """
    samples, worth = zip((0, 0.0), *run["curve"], (run["samples"], run["fraction"]), strict=True)
    return step_values(samples, worth, grid)


def _costs(runs: Runs) -> Iterator[str]:
    """What our arm takes in all where plain learning is enough."""
    both = [each for each in runs.problems if runs.of(each, OURS) and runs.of(each, PLAIN)]
    rows = []
    for problem in both:
        ours, plain = (runs.of(problem, arm) for arm in (OURS, PLAIN))
        if all(run["solved"] for run in plain):
            medians = [_median(found) for found in (ours, plain)]
            rows.append(f"| {_label(problem)} | {_until_solved(ours)} | {_until_solved(plain)} | {_ratio(*medians)} |")
    if rows:
        yield "| solved by plain PPO on every seed | ours | plain PPO | ratio of medians |"
        yield "|---|---|---|---|"
        yield from rows


def _ratio(ours: float, plain: float) -> str:
    return f"{ours / plain:.2f}" if np.isfinite(ours) else "not solved"


def _at(run: Run) -> float:
    return float(run["solved_at"]) if run["solved"] else np.inf


def _median(found: list[Run]) -> float:
    """Samples until solved; the upper one of two in the middle, so that runs that are never solved need no mean."""
    return float(np.percentile([_at(run) for run in found], 50, method="higher"))


def _share(found: list[Run]) -> str:
    return f"{sum(run['solved'] for run in found)} of {len(found)}"


def _until_solved(found: list[Run]) -> str:
    """The median samples until solved and their range, if the median run is solved."""
    at, middle = sorted(map(_at, found)), _median(found)
    if not np.isfinite(middle):
        return "not solved" if not np.isfinite(at[0]) else f"{at[0]:,.0f} at best"
    return _spread([each for each in at if np.isfinite(each)], middle)


def _spread(values: Sequence[float], middle: float | None = None) -> str:
    """The median of values and their range."""
    median = float(np.median(values)) if middle is None else middle
    return f"{median:,.0f}" + (f" ({min(values):,.0f} to {max(values):,.0f})" if len(values) > 1 else "")


def _label(problem: Problem) -> str:
    task, given = problem
    star = " \\*" if task in CHOSE_SETTINGS else ""
    return task + star + ("" if given == TASKS[task].samples else f" ({given:,} given)")
