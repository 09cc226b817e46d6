"""A comparison from settings to results, in one call and one folder.

The folder holds ``comparison.json`` (the settings), the runs,
``summary.json``, the tables as ``.csv``, figures and a page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from curious_explorer.errors import StudyError
from curious_explorer.settings_description import RunFolder
from curious_explorer.storage import Format, write_atomically
from curious_explorer.studies.comparison_figures import draw_all
from curious_explorer.studies.comparison_methods import METHODS
from curious_explorer.studies.comparison_results import ComparisonResults, results_csv, summary_text, times_csv
from curious_explorer.studies.comparison_run import (
    OWN_BUDGET,
    Comparison,
    ComparisonRun,
    budgets_of,
    load_run,
    run_job,
    run_path,
    save_run,
)
from curious_explorer.studies.executors import Executor
from curious_explorer.studies.named_tables import is_gymnasium_id, table_behind
from curious_explorer.studies.runner import OnRun, Runs
from curious_explorer.studies.task_comparison import (
    RETURNS,
    TaskComparison,
    load_task_run,
    run_task,
    save_task_run,
    scored,
)
from curious_explorer.studies.task_methods import TASK_METHODS

PAGE = "report.html"
SETTINGS_FILE, SETTINGS = "comparison.json", Format("curious-explorer/comparison", 2)
RUNS = Runs(
    what="comparison", file=SETTINGS_FILE, format=SETTINGS, do=run_job, path=run_path, load=load_run, save=save_run
)
"""On tables."""
TASK_RUNS = Runs(
    what="comparison",
    file=SETTINGS_FILE,
    format=SETTINGS,
    do=run_task,
    path=run_path,
    load=load_task_run,
    save=save_task_run,
)
"""On Gymnasium tasks."""


def comparison_of(
    methods: Sequence[str] | None,
    environments: Sequence[str],
    *,
    seeds: int | None = None,
    budget: int | None = None,
    gamma: float | None = None,
) -> Comparison | TaskComparison:
    """A comparison on tables, or on Gymnasium tasks where an environment has no table or a method needs none.

    None is the default of whichever it comes to.
    """
    names = tuple(budgets_of(environments, 1))
    given = {"methods": None if methods is None else tuple(methods), "seeds": seeds, "budget": budget}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    without_table = [name for name in names if is_gymnasium_id(name) and table_behind(name) is None]
    for_tasks = [name for name in methods or () if name in TASK_METHODS and name not in METHODS]
    if not without_table and not for_tasks:
        return Comparison(environments=tuple(environments), **chosen | ({} if gamma is None else {"gamma": gamma}))
    why = f"{without_table[0]} shows no table of transitions" if without_table else f"{for_tasks[0]} steps in them"
    for name in methods or ():
        if name not in TASK_METHODS and name in METHODS:
            raise ValueError(
                f"{name} needs a table of transitions, but environments are compared on by stepping here ({why}); "
                f"methods for that are {', '.join(TASK_METHODS)}"
            )
    if gamma is not None:
        raise ValueError(
            f"gamma is {gamma:g}, but what is compared by stepping is the return, not discounted; leave it out"
        )
    return TaskComparison(environments=tuple(environments), **chosen)


def compare(
    comparison: Comparison | TaskComparison,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: OnRun[ComparisonRun] | None = None,
) -> ComparisonResults:
    """Run a comparison in a folder (see `Runs.run`) and write what came out of it."""
    target = Path(folder)
    kind: Runs[Any, ComparisonRun] = TASK_RUNS if isinstance(comparison, TaskComparison) else RUNS
    long_first = sorted(comparison.jobs, key=lambda job: -job.budget)
    chosen = kind.executor(long_first, target, executor, workers)
    with kind.claim(comparison.described(), target, resume=resume) as claimed:
        runs = kind.finish(long_first, claimed, chosen, on_run)
        results = _results(comparison, [runs[job] for job in comparison.jobs])
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
        grid = {"methods": tuple(settings["methods"]), "seeds": settings["seeds"]}
        grid["environments"] = tuple(f"{name}{OWN_BUDGET}{budget}" for name, budget in settings["environments"].items())
        by_steps = settings.get("by") == RETURNS
        comparison = TaskComparison(**grid) if by_steps else Comparison(**grid, gamma=settings["gamma"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StudyError(
            f"{target / claimed.file} cannot be used: {error}; run the comparison again, with another --out"
        ) from error
    many = len(comparison.methods) * len(comparison.budgets) * comparison.seeds
    held = sum(1 for _ in target.rglob("*.npz"))  # before a list is made of what a damaged file may ask for
    if held >= many:
        held = sum(run_path(target, job).exists() for job in comparison.jobs)
    if held < many:
        raise StudyError(
            f"{target} holds {held} of {many} runs; finish it with curious-explorer compare --resume, with the "
            "settings it was begun with"
        )
    load: Callable[[RunFolder, Any], ComparisonRun] = load_task_run if by_steps else load_run
    return _results(comparison, [load(claimed, job) for job in comparison.jobs])


def _results(comparison: Comparison | TaskComparison, runs: list[ComparisonRun]) -> ComparisonResults:
    return ComparisonResults(comparison, scored(runs) if isinstance(comparison, TaskComparison) else runs)
