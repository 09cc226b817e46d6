"""A study: a grid of cells with their seeds, conducted in a folder that survives being killed.

The folder holds ``study.json`` (the settings) and ``runs/<cell>/<seed>.npz``. A run depends on its cell, its seed and
the preset alone, so whatever was finished before an interruption is used as it is, and the rest is run.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curious_explorer import __version__
from curious_explorer.errors import StudyError
from curious_explorer.storage import Format, check_header, holds_files, parse_strictly, write_atomically
from curious_explorer.studies.executors.choosing import make_executor
from curious_explorer.studies.executors.executor import Executor
from curious_explorer.studies.paper_grid import DEPTHS, ENVIRONMENTS, OPTIMIZERS, Cell, check_name, grid
from curious_explorer.studies.paper_run import CellRun, run_cell
from curious_explorer.studies.paper_run_files import load_run, run_path, save_run
from curious_explorer.studies.presets import PRESETS, settings_of
from curious_explorer.validation import check_count

STUDY = Format("curious-explorer/study", 1)
STUDY_FILE = "study.json"

Job = tuple[Cell, int, str]
"""A cell, a seed and a preset."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What to run."""

    preset: str = "tuned"
    environments: tuple[str, ...] = tuple(ENVIRONMENTS)
    depths: tuple[int, ...] = DEPTHS
    optimizers: tuple[str, ...] = tuple(OPTIMIZERS)
    seeds: int = 10
    """How many; they are 0, 1, 2, ..."""

    def __post_init__(self) -> None:
        check_name(self.preset, PRESETS, "preset")
        check_count(self.seeds, "seeds", least=1)
        for name in ("environments", "depths", "optimizers"):
            given = getattr(self, name)
            if not given:
                raise ValueError(f"{name} is empty, expected at least one")
            if len(set(given)) != len(given):
                raise ValueError(f"{name} is {', '.join(map(str, given))}, expected each only once")
        list(grid(self.environments, self.depths, self.optimizers))  # every cell checks its own name

    @property
    def cells(self) -> list[Cell]:
        """All cells, in the order of the paper."""
        return list(grid(self.environments, self.depths, self.optimizers))

    @property
    def jobs(self) -> list[Job]:
        """All runs, the long ones first, so that none is left alone at the end."""
        cells = sorted(self.cells, key=lambda cell: -cell.depth)
        return [(cell, seed, self.preset) for cell in cells for seed in range(self.seeds)]

    def described(self) -> dict[str, Any]:
        """Everything that the results depend on, as plain data."""
        return {
            "library": __version__,
            "preset": self.preset,
            "seeds": list(range(self.seeds)),
            "cells": {cell.name: settings_of(self.preset, cell).described() for cell in self.cells},
        }


def conduct(
    study: Study,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: Callable[[CellRun, bool], None] | None = None,
) -> list[CellRun]:
    """Do all runs that the folder does not hold yet, and return all of them in the order of cells and seeds.

    Args:
        study: what to run.
        folder: where runs are kept.
        resume: whether the folder may hold runs of the same study already.
        executor: where to run: ``inline``, ``processes``, ``ray`` or an `Executor`; results do not depend on it.
        workers: how many runs at once; more than one without an executor means ``processes``.
        on_run: called for each run as soon as it is there, and whether it was there before.
    """
    chosen = make_executor(executor, workers=workers)
    target = Path(folder)
    if not all(run_path(target, cell, seed).exists() for cell, seed, _ in study.jobs):
        chosen.check()  # before anything is written
    prepare_folder(study, target, resume=resume)
    report = on_run or (lambda run, was_there: None)
    runs: dict[tuple[Cell, int], CellRun] = {}
    missing = []
    for job in study.jobs:
        cell, seed, _ = job
        if run_path(target, cell, seed).exists():
            runs[cell, seed] = load_run(target, cell, seed)
            report(runs[cell, seed], True)
        else:
            missing.append(job)
    with explaining_full_disks(target), closing(chosen.run(run_job, missing)) as finished:
        for run in finished:
            save_run(target, run)
            runs[run.cell, run.seed] = run
            report(run, False)
    return [runs[cell, seed] for cell in study.cells for seed in range(study.seeds)]


def run_job(job: Job) -> CellRun:
    """Do one run; a function of the module, so that worker processes can find it."""
    cell, seed, preset = job
    return run_cell(cell, seed, settings_of(preset, cell))


def prepare_folder(study: Study, folder: Path, *, resume: bool) -> None:
    """Make the folder this study's own, or refuse it; nothing that is there is ever overwritten or removed."""
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"{folder} is a file, expected a folder for the results; choose another --out")
    settings = folder / STUDY_FILE
    wanted = json.loads(json.dumps(study.described()))
    if settings.exists():
        if not resume:
            raise StudyError(f"{folder} holds a study already; add --resume to go on with it, or choose another --out")
        _check_same(_read_settings(settings), wanted, folder)
        for leftover in folder.rglob(".*.tmp"):
            leftover.unlink(missing_ok=True)  # half-written when an earlier process was killed
        return
    # A process may be killed between making the folder and writing the settings.
    if folder.exists() and holds_files(folder):
        raise StudyError(f"{folder} is not empty and holds no study; choose another --out")
    text = json.dumps({"format": STUDY.name, "version": STUDY.version, "settings": wanted}, indent=2, allow_nan=False)
    try:
        with explaining_full_disks(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(settings, text + "\n")
    except OSError as error:
        raise StudyError(
            f"{folder} cannot be written ({error.strerror or error}); choose another --out, or change its permissions"
        ) from error


@contextmanager
def explaining_full_disks(folder: Path) -> Iterator[None]:
    """Say what a full disk means for the results."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StudyError(
            f"{folder}: no space left on the disk; everything finished so far is kept, so free some space and run the "
            "same command with --resume"
        ) from error


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        header = check_header(parse_strictly(path.read_bytes()), STUDY, {"settings"})
        if not isinstance(header["settings"], dict):
            raise ValueError("settings is no object")
        return header["settings"]
    except (ValueError, OSError, RecursionError) as error:
        raise StudyError(f"{path} cannot be read: {error}; choose another --out") from error


def _check_same(found: dict[str, Any], wanted: dict[str, Any], folder: Path) -> None:
    difference = first_difference(found, wanted)
    if difference is not None:
        name, there, here = difference
        raise StudyError(
            f"{folder} holds a study with other settings: {name} is {there} there and {here} here; choose another "
            "--out, or the settings it was made with"
        )


def first_difference(found: Any, wanted: Any, name: str = "the whole") -> tuple[str, str, str] | None:
    """Where two pieces of plain data first differ, and what stands there in each."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            below = str(key) if name == "the whole" else f"{name}, {key}"
            difference = first_difference(found.get(key, "nothing"), wanted.get(key, "nothing"), below)
            if difference is not None:
                return difference
        return None
    return None if found == wanted else (name, _shortened(found), _shortened(wanted))


def _shortened(value: Any) -> str:
    text = value if value == "nothing" else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
