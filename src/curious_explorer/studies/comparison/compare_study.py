"""From settings to results in one call: runs, ``summary.json``, the tables as ``.csv``, figures and a page."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from curious_explorer.storage import write_atomically
from curious_explorer.studies.comparison.comparison_figures import draw_all
from curious_explorer.studies.comparison.comparison_grid import Comparison
from curious_explorer.studies.comparison.comparison_run import ComparisonRun
from curious_explorer.studies.comparison.comparison_runner import conduct
from curious_explorer.studies.comparison.comparison_summary import Results, results_csv, summary_text, times_csv
from curious_explorer.studies.executors.executor import Executor
from curious_explorer.studies.study import explaining_full_disks

FIGURES, PAGE = "figures", "report.html"


def compare(
    comparison: Comparison,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: Callable[[ComparisonRun, bool], None] | None = None,
) -> Results:
    """Conduct a comparison in a folder (see `conduct`) and write what came out of it."""
    target = Path(folder)
    runs = conduct(comparison, target, resume=resume, executor=executor, workers=workers, on_run=on_run)
    results = Results(comparison, runs)
    with explaining_full_disks(target):
        write_atomically(target / "results.csv", results_csv(results))
        write_atomically(target / "times.csv", times_csv(results))
        write_atomically(target / "summary.json", summary_text(results))
        draw_all(results, target / FIGURES)
        if find_spec("plotly") is not None:  # an extra; everything else is there without it
            from curious_explorer.studies.page.comparison_page import comparison_html

            write_atomically(target / PAGE, comparison_html(results))
    return results
