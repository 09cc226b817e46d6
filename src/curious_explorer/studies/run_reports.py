"""``report.html`` of a run of `explore` and of `train`: the same kind of page that `solve` leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curious_explorer.explorers.exploration import Exploration
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.storage import write_atomically
from curious_explorer.studies.page.page_assembly import text_table
from curious_explorer.studies.page.run_page import Section, picture, run_page, words
from curious_explorer.studies.run_figures import draw_between, draw_growth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT_FILE = "report.html"


def write_exploration_report(
    folder: Path,
    environment: str,
    exploration: Exploration,
    *,
    samples: int,
    first_reward: int | None,
    rows: dict[str, str],
    visited: Figure | None,
    growth: Sequence[Sequence[int]] = (),
) -> Path:
    """The page of an exploration.

    Args:
        folder: of the run.
        environment: what was explored.
        exploration: what is left of it.
        samples: every step of it.
        first_reward: after how many of them a reward was first seen.
        rows: what else there is to say, by name.
        visited: where it went.
        growth: samples and states met, as it went.
    """
    first = first_reward
    seen = {} if exploration.rounds else {"first reward": "never seen" if first is None else f"after {first:,} samples"}
    facts = {"samples": f"{samples:,}", **seen, **rows}
    if exploration.rounds:
        last = exploration.rounds[-1]
        facts["rounds"] = (
            f"{len(exploration.rounds)}; poorly visited after the last: {int(last.poorly_visited.sum()):,}"
        )
    if exploration.complete:
        facts["ended"] = "by itself: nothing is left to which it knows a way"
    sections = [Section("result", "Result", text_table(("what", "how much"), facts, "Result"))]
    drawn = [] if visited is None else [picture(visited, "Where the exploration went")]
    if growth:
        drawn.append(picture(draw_growth(growth, first), "Cells met against samples"))
    if isinstance(exploration.model, GrowingModel):
        drawn.append(words("Every cell between the start and the reward; the shortest way is the diagonal."))
        drawn.append(picture(draw_between(exploration.model), "Cells by their steps from the start and to the reward"))
    if drawn:
        sections.append(Section("visited", "Where it went", "\n".join(drawn)))
    lead = f"{samples:,} samples of exploring, by restart and step alone."
    return write_atomically(folder / REPORT_FILE, run_page(f"{environment}: explore", lead, sections))


def write_training_report(
    folder: Path, title: str, facts: dict[str, str], settings: dict[str, str], curve: Figure
) -> Path:
    """The page of a training: what came of it, its curve, and what was asked for."""
    sections = [
        Section("result", "Result", text_table(("what", "how much"), facts, "Result")),
        Section("learning", "Learning", picture(curve, "Returns from the environment's own start against samples")),
        Section("settings", "Settings", text_table(("what", "chosen"), settings, "Settings")),
    ]
    lead = f"Mean return {facts['mean return']} from the environment's own start."
    return write_atomically(folder / REPORT_FILE, run_page(title, lead, sections))
