"""Runs of a comparison on disk: one file for each, written whole or not at all, and checked before it is believed.

A run's ``.npz`` holds what depends on its job alone, so it is the same bytes wherever and whenever it is made. How long
it took does depend on that, and stands in a small file beside it, written first.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from curious_explorer.errors import StudyError
from curious_explorer.storage import Format, check_size, decode, encode, read_json, write_atomically, write_json
from curious_explorer.studies.comparison.comparison_run import ComparisonRun, Job
from curious_explorer.studies.paper_run_files import safe_name

RUN = Format("curious-explorer/comparison-run", 1)
TIME = Format("curious-explorer/comparison-time", 1)
RUNS = "runs"


def run_path(folder: Path, job: Job) -> Path:
    """Where a run is kept."""
    return folder / RUNS / safe_name(job.environment) / job.method / f"{job.seed:04d}.npz"


def time_path(folder: Path, job: Job) -> Path:
    """Where the time of a run is kept."""
    return run_path(folder, job).with_suffix(".time.json")


def save_run(folder: Path, run: ComparisonRun) -> Path:
    """Write a run's files."""
    path = run_path(folder, run.job)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(time_path(folder, run.job), TIME, {"seconds": run.seconds})
    header = {**run.job._asdict(), "coverage": run.coverage, "used": run.used}
    return write_atomically(path, encode(RUN, header, {"samples": run.samples, "scores": run.scores}))


def load_run(folder: Path, job: Job) -> ComparisonRun:
    """Read a run's files; a damaged one is named, and left where it is."""
    path = run_path(folder, job)
    try:
        archive = decode(path.read_bytes(), RUN, {*Job._fields, "coverage", "used"}, {"samples", "scores"})
        header = archive.header
        found = {key: header[key] for key in Job._fields}
        if found != job._asdict():
            raise ValueError(f"it is the run {found}, expected {job._asdict()}")
        samples, scores = archive.array("samples", "<i8", None), archive.array("scores", "<f8", None)
        if not len(samples) == len(scores) > 0 or samples[0] != 0 or (np.diff(samples) < 0).any():
            raise ValueError("its curve does not begin at 0 samples, or runs backwards")
        if not np.isfinite(scores).all():
            raise ValueError("its scores are not finite")
        coverage = _number(header["coverage"], "coverage")
        used = check_size(header, "used", least=0)
        path = time_path(folder, job)
        seconds = _number(read_json(path, TIME, {"seconds"})["seconds"], "seconds")
    except (ValueError, TypeError, KeyError, OSError, MemoryError, RecursionError) as error:
        raise StudyError(
            f"{path} cannot be read: {error}; delete {run_path(folder, job).name} and its .time.json there and use "
            "--resume to do only this run again"
        ) from error
    return ComparisonRun(job, samples, scores, coverage, used, seconds)


def _number(value: object, name: str) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise ValueError(f"{name} is {value!r}, expected a finite number")
    return float(value)  # type: ignore[arg-type]
