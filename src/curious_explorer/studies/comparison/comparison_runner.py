"""Conduct a comparison in a folder that survives being killed.

The folder holds ``comparison.json`` (the settings) and the runs. A run depends on its job alone, so whatever was
finished before an interruption is used as it is, and the rest is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from curious_explorer.errors import StudyError
from curious_explorer.storage import Format, check_header, holds_files, parse_strictly, write_atomically
from curious_explorer.studies.comparison.comparison_files import RUNS, load_run, run_path, save_run
from curious_explorer.studies.comparison.comparison_grid import Comparison
from curious_explorer.studies.comparison.comparison_run import ComparisonRun, Job, run_job
from curious_explorer.studies.executors.choosing import make_executor
from curious_explorer.studies.executors.executor import Executor
from curious_explorer.studies.study import explaining_full_disks, first_difference

SETTINGS = Format("curious-explorer/comparison", 1)
SETTINGS_FILE = "comparison.json"


def conduct(
    comparison: Comparison,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: Callable[[ComparisonRun, bool], None] | None = None,
) -> list[ComparisonRun]:
    """Do all runs that the folder does not hold yet, and return all, in the order of environments, methods and seeds.

    Args:
        comparison: what to run.
        folder: where runs are kept.
        resume: whether the folder may hold runs of the same comparison already.
        executor: where to run: ``inline``, ``processes``, ``ray`` or an `Executor`; results do not depend on it.
        workers: how many runs at once; more than one without an executor means ``processes``.
        on_run: called for each run as soon as it is there, and whether it was there before.
    """
    chosen = make_executor(executor, workers=workers)
    target = Path(folder)
    if not all(run_path(target, job).exists() for job in comparison.jobs):
        chosen.check()  # before anything is written
    prepare_folder(comparison, target, resume=resume)
    report = on_run or (lambda run, was_there: None)
    runs: dict[Job, ComparisonRun] = {}
    missing = []
    for job in comparison.jobs:
        if run_path(target, job).exists():
            runs[job] = load_run(target, job)
            report(runs[job], True)
        else:
            missing.append(job)
    missing.sort(key=lambda job: -job.budget)  # the long ones first, so that none is left alone at the end
    with explaining_full_disks(target), closing(chosen.run(run_job, missing)) as finished:
        for run in finished:
            save_run(target, run)
            runs[run.job] = run
            report(run, False)
    return [runs[job] for job in comparison.jobs]


def prepare_folder(comparison: Comparison, folder: Path, *, resume: bool) -> None:
    """Make the folder this comparison's own, or refuse it; nothing that is there is overwritten or removed."""
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"{folder} is a file, expected a folder for the results; choose another --out")
    settings = folder / SETTINGS_FILE
    wanted = json.loads(json.dumps(comparison.described()))
    if settings.exists():
        if not resume:
            raise StudyError(
                f"{folder} holds a comparison already; add --resume to go on with it, or choose another --out"
            )
        difference = first_difference(read_settings(settings), wanted)
        if difference is not None:
            name, there, here = difference
            raise StudyError(
                f"{folder} holds another comparison: {name} is {there} there and {here} here; choose another --out, or "
                "the settings it was made with"
            )
        for leftover in [*folder.glob(".*.tmp"), *folder.glob(f"{RUNS}/*/*/.*.tmp")]:
            leftover.unlink(missing_ok=True)  # half-written when an earlier process was killed
        return
    # A process may be killed between making the folder and writing the settings.
    if folder.exists() and holds_files(folder):
        raise StudyError(f"{folder} is not empty and holds no comparison; choose another --out")
    described = {"format": SETTINGS.name, "version": SETTINGS.version, "settings": wanted}
    try:
        with explaining_full_disks(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(settings, json.dumps(described, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise StudyError(
            f"{folder} cannot be written ({error.strerror or error}); choose another --out, or change its permissions"
        ) from error


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of the comparison that a folder holds."""
    try:
        header = check_header(parse_strictly(path.read_bytes()), SETTINGS, {"settings"})
        if not isinstance(header["settings"], dict):
            raise ValueError("settings is no object")
        return header["settings"]
    except (ValueError, OSError, RecursionError) as error:
        raise StudyError(f"{path} cannot be read: {error}; choose another --out") from error
