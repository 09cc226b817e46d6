"""From settings to results in one call: runs, ``summary.json``, ``results.csv``, ``times.csv`` and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from curious_explorer.experiments.comparison.conduct import conduct
from curious_explorer.experiments.comparison.figures import draw_all
from curious_explorer.experiments.comparison.grid import Comparison
from curious_explorer.experiments.comparison.running import ComparisonRun
from curious_explorer.experiments.comparison.summary import Results, results_csv, summary_text, times_csv
from curious_explorer.experiments.study import explaining_full_disks
from curious_explorer.files import write_atomically

FIGURES = "figures"


def compare(
    comparison: Comparison,
    folder: str | Path,
    *,
    resume: bool = False,
    workers: int = 1,
    on_run: Callable[[ComparisonRun, bool], None] | None = None,
) -> Results:
    """Conduct a comparison in a folder (see `conduct`) and write what came out of it."""
    target = Path(folder)
    results = Results(comparison, conduct(comparison, target, resume=resume, workers=workers, on_run=on_run))
    with explaining_full_disks(target):
        write_atomically(target / "results.csv", results_csv(results))
        write_atomically(target / "times.csv", times_csv(results))
        write_atomically(target / "summary.json", summary_text(results))
        draw_all(results, target / FIGURES)
    return results
