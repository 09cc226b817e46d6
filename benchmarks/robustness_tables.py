"""The tables of ``benchmarks.robustness``: for a terminal, and the Markdown of docs/robustness.md and the README."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from scipy import stats

SOLVED = 0.95
CONFIDENCE = 0.95
WORDS = {"trpo": "TRPO", "reinforce": "REINFORCE", "model-based": "model-based"}
TITLES = {
    "dcl/20": "combination lock 20",
    "cct/20": "crossroads 20",
    "comb/15": "one-way tree of depth 15",
    "tree/12": "branching tree of depth 12",
    "river/6": "RiverSwim(6)",
    "river/20": "RiverSwim(20)",
    "key-door/7": "key and door, two rooms of 7 x 7",
    "FrozenLake-v1?map_name=8x8": "FrozenLake 8 x 8",
    "sea/20": "DeepSea(20)",
    "sea/40": "DeepSea(40)",
    "bilock/10": "bidirectional lock",
    "CliffWalking-v1": "CliffWalking",
    "Taxi-v4": "Taxi",
    "tv/50": "noisy TV",
    "maze/20": "one-way maze of 400 cells",
    "garnet/100": "Garnet, 100 states",
    "garnet/300": "Garnet, 300 states",
}
"""What the suite's problems are called in the README."""


@dataclass(frozen=True)
class Run:
    """What one seed gave."""

    problem: str
    optimizer: str
    seed: int
    fraction: float
    """The policy's value from the start, of the best possible one: of the MDP, whose rewards lie in [0, 1]."""
    own_fraction: float
    """The same before rewards were moved into [0, 1], which is another number where some of them are costs."""
    explored: int
    samples: int
    seconds: float
    """Of the processor."""
    rounds: int
    poorly_visited: int
    ended: str | None


class Group:
    """The runs of one optimizer on one problem."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.many = len(runs)
        self.fractions = np.array([one.fraction for one in runs])
        self.solved = int((self.fractions >= SOLVED).sum())
        self.own_solved = sum(one.own_fraction >= SOLVED for one in runs)
        self.explored = float(np.mean([one.explored / 1e6 for one in runs]))
        self.samples = np.array([one.samples / 1e6 for one in runs])
        self.seconds = np.array([one.seconds for one in runs])
        proportion = stats.binomtest(self.solved, self.many).proportion_ci(CONFIDENCE, method="exact")
        self.interval = f"{proportion.low:.2f} to {proportion.high:.2f}"

    @property
    def share(self) -> str:
        """How many are solved; of how many, where that is not what the table's head says."""
        return f"{self.solved} of {self.many}"


def groups_of(runs: Iterable[Run]) -> dict[tuple[str, str], Group]:
    """The runs by problem and optimizer."""
    found: dict[tuple[str, str], list[Run]] = {}
    for one in runs:
        found.setdefault((one.problem, one.optimizer), []).append(one)
    return {key: Group(group) for key, group in found.items()}


def table_of(runs: list[Run], names: Sequence[str], optimizers: Sequence[str]) -> Table:
    """Solved shares with intervals, samples and seconds."""
    table = Table(title=f"defaults, solved: {SOLVED} of the best value")
    columns: dict[str, Callable[[Group], str]] = {
        "solved": lambda group: group.share,
        "95% interval": lambda group: group.interval,
        "mean": lambda group: f"{group.fractions.mean():.3f}",
        "worst": lambda group: f"{group.fractions.min():.3f}",
        "own units": lambda group: f"{group.own_solved} of {group.many}",
        "explored, M": lambda group: f"{group.explored:.2f}",
        "all, M (max)": lambda group: f"{group.samples.mean():.2f} ({group.samples.max():.1f})",
        "s (max)": lambda group: f"{group.seconds.mean():.1f} ({group.seconds.max():.1f})",
    }
    for name in ("problem", "optimizer"):
        table.add_column(name)
    for name in columns:
        table.add_column(name, justify="right")
    groups = groups_of(runs)
    for name in names:
        for optimizer in optimizers:
            if (name, optimizer) in groups:
                table.add_row(name, optimizer, *(cell(groups[name, optimizer]) for cell in columns.values()))
    return table


# Markdown -------------------------------------------------------------------------------------------------------------


def markdown_of(runs: list[Run], lists: Mapping[str, Sequence[str]], optimizers: Sequence[str]) -> str:
    """A table for each list of problems, the README's, and what is below 29 of 30 or above the limits."""
    groups = groups_of(runs)
    parts = []
    for title, names in lists.items():
        there = [name for name in names if any((name, optimizer) in groups for optimizer in optimizers)]
        if there:
            parts += [f"## {title}", _page_table(groups, there, optimizers), _own_units(groups, there, optimizers)]
    parts += ["## For the README", _readme_table(groups, optimizers), "## In all", _in_all(runs, groups)]
    return "\n\n".join(part for part in parts if part)


def _page_table(groups: Mapping[tuple[str, str], Group], names: Sequence[str], optimizers: Sequence[str]) -> str:
    head = ["problem"]
    for optimizer in optimizers:
        head += [f"{WORDS[optimizer]}: solved (95% interval)", "mean, worst", "explored", "all (most)", "s (most)"]
    rows = []
    for name in names:
        row = [f"`{name}`"]
        for optimizer in optimizers:
            group = groups.get((name, optimizer))
            row += [""] * 5 if group is None else _page_cells(group)
        rows.append(row)
    return _markdown(head, rows)


def _page_cells(group: Group) -> list[str]:
    return [
        f"{group.share} ({group.interval})",
        f"{group.fractions.mean():.3f}, {group.fractions.min():.3f}",
        f"{group.explored:.2f}",
        f"{group.samples.mean():.2f} ({group.samples.max():.1f})",
        f"{group.seconds.mean():.1f} ({group.seconds.max():.1f})",
    ]


def _own_units(groups: Mapping[tuple[str, str], Group], names: Sequence[str], optimizers: Sequence[str]) -> str:
    """Where another number of runs is solved before rewards are moved into [0, 1]."""
    said = [
        f"`{name}` {WORDS[optimizer]} {group.own_solved} of {group.many}"
        for name in names
        for optimizer in optimizers
        if (group := groups.get((name, optimizer))) is not None and group.own_solved != group.solved
    ]
    return f"Solved in the problem's own units, where that is another number: {'; '.join(said)}." if said else ""


def _readme_table(groups: Mapping[tuple[str, str], Group], optimizers: Sequence[str]) -> str:
    head = ["problem", *(f"{WORDS[optimizer]}: solved" for optimizer in optimizers), "steps in all (mean)"]
    rows = []
    for name, title in TITLES.items():
        found = [groups.get((name, optimizer)) for optimizer in optimizers]
        if all(found):
            of = [group for group in found if group is not None]
            rows.append(
                [title, *(group.share for group in of), ", ".join(f"{group.samples.mean():.1f} M" for group in of)]
            )
    return _markdown(head, rows)


def _in_all(runs: list[Run], groups: Mapping[tuple[str, str], Group]) -> str:
    missed = [
        f"- `{name}`, {WORDS[optimizer]}: {group.share}, the worst at {group.fractions.min():.3f}"
        for (name, optimizer), group in groups.items()
        if group.solved < group.many - group.many // 30
    ]
    dear = [one for one in runs if one.samples > 5e7 or one.seconds > 10.0]
    lines = [
        f"- {len(runs):,} runs, {sum(one.seconds for one in runs):,.0f} seconds of one core; the longest took "
        f"{max(one.seconds for one in runs):.1f} s, the most steps were {max(one.samples for one in runs) / 1e6:.1f} M",
        f"- {len(groups) - len(missed)} of {len(groups)} pairs of a problem and an optimizer solved 29 of 30 times or "
        "more; the others:",
        *missed,
        f"- above 5 x 10^7 steps or 10 s: {len(dear)} runs",
        *(
            f"- `{one.problem}`, {one.optimizer}, seed {one.seed}: {one.samples:,} steps, {one.seconds:.1f} s"
            for one in dear
        ),
    ]
    return "\n".join(lines)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
