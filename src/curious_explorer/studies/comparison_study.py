"""A comparison from settings to results, in one call and one folder.

The folder holds ``comparison.json`` (the settings), the runs,
``summary.json``, the tables as ``.csv``, figures and a page.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from curious_explorer.errors import StudyError
from curious_explorer.storage import Format, write_atomically
from curious_explorer.studies.comparison_figures import draw_all
from curious_explorer.studies.comparison_results import ComparisonResults, results_csv, summary_text, times_csv
from curious_explorer.studies.comparison_run import (
    OWN_BUDGET,
    Comparison,
    ComparisonRun,
    load_run,
    run_job,
    run_path,
    save_run,
)
from curious_explorer.studies.executors import Executor
from curious_explorer.studies.runner import OnRun, Runs

PAGE = "report.html"
RUNS = Runs(
    what="comparison",
    file="comparison.json",
    format=Format("curious-explorer/comparison", 2),
    do=run_job,
    path=run_path,
    load=load_run,
    save=save_run,
)


def compare(
    comparison: Comparison,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: OnRun[ComparisonRun] | None = None,
) -> ComparisonResults:
    """Run a comparison in a folder (see `Runs.run`) and write what came out of it."""
    target = Path(folder)
    long_first = sorted(comparison.jobs, key=lambda job: -job.budget)
    chosen = RUNS.executor(long_first, target, executor, workers)
    with RUNS.claim(comparison.described(), target, resume=resume) as claimed:
        runs = RUNS.finish(long_first, claimed, chosen, on_run)
        results = ComparisonResults(comparison, [runs[job] for job in comparison.jobs])
        write_atomically(target / "results.csv", results_csv(results))
        write_atomically(target / "times.csv", times_csv(results))
        write_atomically(target / "summary.json", summary_text(results))
        draw_all(results, target / "figures")
        if find_spec("plotly") is not None:  # an extra; everything else is there without it
            from curious_explorer.studies.page.study_pages import comparison_html

            write_atomically(target / PAGE, comparison_html(results))
    return results


def load_results(folder: str | Path) -> ComparisonResults:
    """The results of the comparison that a folder holds; raises ``StudyError`` if it holds none, or not all of it."""
    target = Path(folder)
    claimed = RUNS.folder(target)
    if not claimed.claimed:
        raise StudyError(f"{target} holds no comparison; expected a folder that curious-explorer compare has written")
    settings = claimed.settings()
    try:
        comparison = Comparison(
            methods=tuple(settings["methods"]),
            environments=tuple(f"{name}{OWN_BUDGET}{budget}" for name, budget in settings["environments"].items()),
            seeds=settings["seeds"],
            gamma=settings["gamma"],
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StudyError(
            f"{target / claimed.file} cannot be used: {error}; run the comparison again, with another --out"
        ) from error
    missing = [job for job in comparison.jobs if not run_path(target, job).exists()]
    if missing:
        raise StudyError(
            f"{target} holds {len(comparison.jobs) - len(missing)} of {len(comparison.jobs)} runs; finish it with "
            "curious-explorer compare --resume, with the settings it was begun with"
        )
    return ComparisonResults(comparison, [load_run(claimed, job) for job in comparison.jobs])
