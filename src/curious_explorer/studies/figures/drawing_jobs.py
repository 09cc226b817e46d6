"""Which figures a study has, as jobs that worker processes can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from curious_explorer.studies.figures.canvas import save_figure
from curious_explorer.studies.paper_grid import OPTIMIZER_TITLES, TITLES, Cell
from curious_explorer.studies.paper_run import CellRun
from curious_explorer.studies.paper_run_files import safe_name
from curious_explorer.studies.paper_summary import by_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Group = list[tuple[Cell, list[CellRun]]]

FAMILIES = ("evolution", "scatter", "episodes", "samples", "graph")
"""(a), (b), (c) by episodes, (c) by samples, and (d)."""


@dataclass(frozen=True, eq=False)
class FigureJob:
    """One figure to draw and save."""

    family: str
    """One of `FAMILIES`."""
    name: str
    """Of the file, without its ending."""
    cells: Group
    folder: Path


def figure_jobs(runs: Sequence[CellRun], folder: Path) -> list[FigureJob]:
    """All figures of a study; those that take long come first."""
    cells = by_cell(runs)
    jobs = [
        FigureJob("evolution", f"evolution-{safe_name(cell.name)}", [(cell, group)], folder) for cell, group in cells
    ]
    jobs.sort(key=lambda job: -job.cells[0][0].depth)
    # As in the paper, the depths of one optimizer on one environment share a page.
    for (optimizer, environment), pages in groupby(cells, key=lambda item: (item[0].optimizer, item[0].environment)):
        page = list(pages)
        shared = ("scatter", "episodes", "samples")
        jobs += [FigureJob(family, f"{family}-{optimizer}-{environment}", page, folder) for family in shared]
    drawn: dict[str, tuple[Cell, list[CellRun]]] = {}
    for cell, group in cells:
        if cell.environment not in drawn or cell.depth < drawn[cell.environment][0].depth:
            drawn[cell.environment] = (cell, group)
    jobs += [FigureJob("graph", f"graph-{name}{item[0].depth}", [item], folder) for name, item in drawn.items()]
    return jobs


def draw_figure(job: FigureJob) -> str:
    """Draw and save a figure; returns its name."""
    save_figure(make_figure(job), job.folder / job.name)
    return job.name


def make_figure(job: FigureJob) -> Figure:
    """The figure of a job."""
    from curious_explorer.mdp.drawing import draw_mdp
    from curious_explorer.studies.figures.evolution import draw_evolution, rounds_shown
    from curious_explorer.studies.figures.learning_curves import draw_comparison
    from curious_explorer.studies.figures.scatter import draw_scatter

    cell, runs = job.cells[0]
    if job.family == "scatter":
        return draw_scatter(job.cells)
    if job.family in ("episodes", "samples"):
        return draw_comparison(job.cells, job.family)
    mdp = cell.mdp(runs[0].seed)
    if job.family == "graph":
        axes = draw_mdp(mdp, title=f"{TITLES[cell.environment]}, depth {cell.depth}")
        figure: Figure = axes.figure  # type: ignore[assignment]
        return figure
    run = runs[0]
    title = f"Curious Explorer with {OPTIMIZER_TITLES[cell.optimizer]} on {cell.environment.upper()}{cell.depth}"
    shown = rounds_shown(cell, len(run.thresholds))
    return draw_evolution(mdp, run.visited, run.poorly_visited, run.thresholds, shown, title=title)
