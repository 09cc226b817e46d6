"""The page's tables, as HTML; whatever comes from data is text and stays text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from curious_explorer.studies.findings import Finding
from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import ARMS, CellRun
from curious_explorer.studies.paper_summary import by_cell, spread

THEORY_COLUMNS = {
    "theorem_1_left": "sum of max d(K)",
    "theorem_1_a_posteriori": "a posteriori",
    "theorem_1_repaired": "repaired",
    "theorem_1_printed": "as printed",
    "exploitative_factor": "e",
    "mismatch": "mismatch",
    "mismatch_ideal": "ideal",
    "certificate": "certified max d(K)",
    "certificate_truth": "its truth",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], label: str, *, sortable: bool = False) -> str:
    """A table in a box that scrolls sideways on a narrow screen; its cells are HTML already.

    Cells of a sortable one say by ``data-sort`` where they belong.
    """
    words = ("the paper: CE brings", "here", "version", "constants")
    columns = "".join(f'<th scope="col"{" class=words" if name in words else ""}>{escape(name)}</th>' for name in head)
    lines = []
    for first, *rest in rows:
        name = first if first.startswith("<th") else f'<th scope="row">{first}</th>'
        cells = "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in rest)
        lines.append(f"<tr>{name}{cells}</tr>")
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table{kind}><thead><tr>{columns}'
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def results_table(runs: Sequence[CellRun], found: Sequence[Finding]) -> str:
    """Values beside what the paper says."""
    judged = {finding.cell: finding for finding in found}
    rows = []
    for cell, group in by_cell(runs):
        values = [_spread_cell([run.values[arm] for run in group]) for arm in ARMS]
        rows.append([escape(cell.title), *values, *_finding_cells(judged[cell])])
    head = ["cell", "with CE", "without, same learning", "without, all steps", "the paper: CE brings", "here"]
    return table(head, rows, "Results")


def _spread_cell(values: list[float]) -> str:
    summary = spread(values)
    return f"{summary['mean']:.3f} ± {summary['std']:.3f} <small>worst {summary['min']:.3f}</small>"


def _finding_cells(finding: Finding) -> list[str]:
    kind = finding.verdict.replace(" ", "-")
    verdict = f'<span class="verdict {kind}">{finding.verdict}</span>: ' if finding.verdict else ""
    paper = finding.paper or "no such cell"
    return [f'<td class="words">{paper}</td>', f'<td class="words">{verdict}{escape(finding.sentence)}</td>']


def samples_table(runs: Sequence[CellRun]) -> str:
    """Where the steps went."""
    rows = []
    for cell, group in by_cell(runs):
        exploration = float(np.mean([run.exploration_samples for run in group]))
        learning = float(np.mean([run.learning_samples for run in group]))
        share = exploration / (exploration + learning)
        counts = [f"{count:,.0f}" for count in (exploration, learning, exploration + learning)]
        rows.append([escape(cell.title), *counts, f"{share:.0%}"])
    return table(["cell", "exploration", "learning", "together", "exploration's share"], rows, "Samples")


def theory_table(runs: Sequence[CellRun]) -> str:
    """Both sides of Theorem 1, and mismatch coefficients."""
    rows = []
    for cell, group in by_cell(runs):
        rounds = len(group[0].thresholds)
        figures = [_bound_cell(group, key, rounds) for key in THEORY_COLUMNS]
        rows.append([escape(cell.title), str(rounds), *figures])
    return table(["cell", "rounds", *THEORY_COLUMNS.values()], rows, "Theory")


def _bound_cell(runs: Sequence[CellRun], key: str, rounds: int) -> str:
    known = [value for run in runs if (value := run.bounds.get(key)) is not None]
    if len(known) < len(runs):
        return "none" if key == "certificate" else "infinite"
    mean = float(np.mean(known))
    vacuous = key.startswith("theorem_1") and key != "theorem_1_left" and mean >= rounds
    return f"{mean:,.3g}" + (" <small>vacuous</small>" if vacuous else "")


def settings_list(cells: Sequence[Cell], versions: dict[str, str], seeds: Sequence[int], text: str) -> str:
    """Versions, seeds and the exact settings of every cell."""
    rows = [[escape(name), f'<td class="words">{escape(version)}</td>'] for name, version in versions.items()]
    return (
        f"<p>Seeds: {escape(', '.join(map(str, seeds)))}. Action labels are permuted from the seed.</p>"
        + table(["what", "version"], rows, "Versions")
        + f"<details><summary>The exact settings of all {len(cells)} cells</summary><pre>{escape(text)}</pre></details>"
    )
