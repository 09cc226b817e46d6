"""What the paper says about each cell, and whether these runs say the same.

The paper has plots only, of returns by learning episode, 2,400 of them. So a finding is judged there: by the means
over seeds with and without CE after 2,400 learning episodes. Where the paper saw no reward at all, the end of learning
counts too: that is where these runs may go past it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import CellRun
from curious_explorer.studies.paper_summary import by_cell, value_at
from curious_explorer.studies.presets import PAPER_EPISODES

NO_GAIN, MODERATE, CLEAR, BIG, NO_REWARD = "no gain", "moderate gain", "clear gain", "big gain", "no reward at all"
REPRODUCED, NOT_REPRODUCED, PAST = "reproduced", "not reproduced", "past the paper"
VISIBLE = 0.05
"""A difference of means, in fractions of the optimum, that a reader of the paper's plots would see."""


@dataclass(frozen=True)
class Finding:
    """What the paper reports for a cell and what was found here."""

    cell: Cell
    paper: str
    """What the paper reports; empty if it has no such cell."""
    with_ce: float
    """After 2,400 learning episodes, as a fraction of the optimum, mean over seeds."""
    without_ce: float
    end_with_ce: float
    """The same at the end of learning."""
    end_without_ce: float
    """Without CE, at all the steps."""
    verdict: str
    """One of the three words above, or empty."""

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        return (
            f"{self.without_ce:.0%} without and {self.with_ce:.0%} with CE after {PAPER_EPISODES:,} episodes; "
            f"{self.end_without_ce:.0%} and {self.end_with_ce:.0%} at the end"
        )


def paper_says(cell: Cell) -> str:
    """The paper's finding for a cell, read off its text; empty where it has none."""
    if cell.depth == 5:
        return NO_GAIN
    if cell.depth == 10:
        return MODERATE if (cell.environment, cell.optimizer) == ("cct", "reinforce") else CLEAR
    if cell.depth == 20:
        return BIG if cell.optimizer == "trpo" else NO_REWARD
    return ""


def judge(paper: str, at_paper: tuple[float, float], at_end: tuple[float, float]) -> str:
    """Whether means agree with what the paper reports; each pair is with CE and without it."""
    gain, end_gain = at_paper[0] - at_paper[1], at_end[0] - at_end[1]
    if paper == "":
        return ""
    if paper == NO_REWARD:
        if max(*at_paper, *at_end) <= VISIBLE:
            return REPRODUCED
        return PAST if max(gain, end_gain) > VISIBLE else NOT_REPRODUCED
    agrees = abs(gain) <= VISIBLE if paper == NO_GAIN else gain > VISIBLE
    return REPRODUCED if agrees else NOT_REPRODUCED


def findings(runs: Sequence[CellRun]) -> list[Finding]:
    """The finding of every cell."""
    result = []
    for cell, group in by_cell(runs):
        arms = ("with_ce", "without_ce_total_budget")
        at_paper = [float(value_at(group, arm, PAPER_EPISODES).mean()) for arm in arms]
        at_end = [float(np.mean([run.values[arm] for run in group])) for arm in arms]
        paper = paper_says(cell)
        verdict = judge(paper, (at_paper[0], at_paper[1]), (at_end[0], at_end[1]))
        result.append(Finding(cell, paper, at_paper[0], at_paper[1], at_end[0], at_end[1], verdict))
    return result
