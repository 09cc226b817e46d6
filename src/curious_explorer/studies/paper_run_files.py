"""Runs on disk: one file for each, written whole or not at all, and checked before it is believed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.errors import StudyError
from curious_explorer.storage import Archive, Format, check_size, decode, encode, write_atomically
from curious_explorer.studies.paper_grid import Cell
from curious_explorer.studies.paper_run import ARMS, CellRun, Curve

RUN = Format("curious-explorer/cell-run", 1)
_NUMBERS = ("gamma", "beta", "optimal", "seconds")
_COUNTS = ("exploration_samples", "learning_samples")
_KEYS = {"environment", "depth", "optimizer", "seed", "values", "bounds", *_NUMBERS, *_COUNTS}
_CURVE_ARRAYS = {"episodes": "<i8", "samples": "<i8", "fractions": "<f8"}
_ARRAYS = {"thresholds", "visited", "poorly_visited"} | {f"{arm}_{name}" for arm in ARMS for name in _CURVE_ARRAYS}


def safe_name(text: str) -> str:
    """A file name that stands for any text: readable, harmless in a shell, and different for different texts."""
    harmless = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:80]
    # A name with slashes between plain words, as cells have, needs no digest to stay unique.
    if re.fullmatch(r"[A-Za-z0-9]+(/[A-Za-z0-9]+)*", text) and len(text) <= 80:
        return harmless
    return f"{harmless or 'name'}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def run_path(folder: Path, cell: Cell, seed: int) -> Path:
    """Where a run is kept."""
    return folder / "runs" / safe_name(cell.name) / f"{seed:04d}.npz"


def save_run(folder: Path, run: CellRun) -> Path:
    """Write a run's file."""
    header: dict[str, Any] = {
        "environment": run.cell.environment,
        "depth": run.cell.depth,
        "optimizer": run.cell.optimizer,
        "seed": run.seed,
        "values": run.values,
        "bounds": run.bounds,
        **{key: getattr(run, key) for key in (*_NUMBERS, *_COUNTS)},
    }
    arrays: dict[str, NDArray[Any]] = {
        "thresholds": run.thresholds,
        "visited": run.visited,
        "poorly_visited": run.poorly_visited,
    }
    for arm, curve in run.curves.items():
        arrays |= {f"{arm}_{name}": getattr(curve, name) for name in _CURVE_ARRAYS}
    path = run_path(folder, run.cell, run.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_atomically(path, encode(RUN, header, arrays))


def load_run(folder: Path, cell: Cell, seed: int) -> CellRun:
    """Read a run's file; a damaged one is named, and left where it is."""
    path = run_path(folder, cell, seed)
    try:
        return _decode(decode(path.read_bytes(), RUN, _KEYS, _ARRAYS), cell, seed)
    except (ValueError, TypeError, KeyError, OSError, MemoryError, RecursionError) as error:
        raise StudyError(
            f"{path} cannot be read: {error}; delete this file and use --resume to do only this run again"
        ) from error


def _decode(archive: Archive, cell: Cell, seed: int) -> CellRun:
    header = archive.header
    found = (header["environment"], header["depth"], header["optimizer"], header["seed"])
    if found != (cell.environment, cell.depth, cell.optimizer, seed):
        raise ValueError(f"it is the run {found}, expected {cell.name} with seed {seed}")
    values, bounds = header["values"], header["bounds"]
    if not isinstance(values, dict) or values.keys() != set(ARMS):
        raise ValueError(f"values is {values!r}, expected numbers for {', '.join(ARMS)}")
    if not isinstance(bounds, dict):
        raise ValueError(f"bounds is {bounds!r}, expected numbers by name")
    thresholds = archive.array("thresholds", "<f8", None)
    states = archive.array("visited", "<f8", (len(thresholds), cell.mdp(seed).num_states))
    curves = {
        arm: Curve(**{name: archive.array(f"{arm}_{name}", kind, None) for name, kind in _CURVE_ARRAYS.items()})
        for arm in ARMS
    }
    for arm, curve in curves.items():
        if not len(curve.episodes) == len(curve.samples) == len(curve.fractions) > 0:
            raise ValueError(f"the curve {arm} has parts of different lengths, or none")
    if not all(np.isfinite(array).all() for array in (thresholds, states, *(c.fractions for c in curves.values()))):
        raise ValueError("it holds numbers that are not finite")
    numbers: dict[str, Any] = {key: _number(header[key], key) for key in _NUMBERS}
    counts: dict[str, Any] = {key: check_size(header, key, least=0) for key in _COUNTS}
    return CellRun(
        cell=cell,
        seed=seed,
        values={arm: _number(values[arm], arm) for arm in ARMS},
        bounds={str(key): None if value is None else _number(value, str(key)) for key, value in bounds.items()},
        curves=curves,
        thresholds=thresholds,
        visited=states,
        poorly_visited=archive.array("poorly_visited", "|b1", states.shape),
        **numbers,
        **counts,
    )


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{name} is {value!r}, expected a number")
    return float(value)
