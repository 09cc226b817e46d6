"""A finished comparison read back from its folder, for pages that show it beside something else."""

from __future__ import annotations

from pathlib import Path

from curious_explorer.errors import StudyError
from curious_explorer.studies.comparison.comparison_files import load_run, run_path
from curious_explorer.studies.comparison.comparison_grid import OWN_BUDGET, Comparison
from curious_explorer.studies.comparison.comparison_runner import SETTINGS_FILE, read_settings
from curious_explorer.studies.comparison.comparison_summary import Results


def load_results(folder: str | Path) -> Results:
    """The results of the comparison that a folder holds; raises ``StudyError`` if it holds none, or not all of it."""
    target = Path(folder)
    path = target / SETTINGS_FILE
    if not path.is_file():
        raise StudyError(f"{target} holds no comparison; expected a folder that curious-explorer compare has written")
    settings = read_settings(path)
    try:
        comparison = Comparison(
            methods=tuple(settings["methods"]),
            environments=tuple(f"{name}{OWN_BUDGET}{budget}" for name, budget in settings["environments"].items()),
            seeds=settings["seeds"],
            gamma=settings["gamma"],
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StudyError(f"{path} cannot be used: {error}; conduct the comparison again, with another --out") from error
    missing = [job for job in comparison.jobs if not run_path(target, job).exists()]
    if missing:
        raise StudyError(
            f"{target} holds {len(comparison.jobs) - len(missing)} of {len(comparison.jobs)} runs; finish it with "
            "curious-explorer compare --resume, with the settings it was begun with"
        )
    return Results(comparison, [load_run(target, job) for job in comparison.jobs])
