"""A reset model on disk: a folder with ``reset_model.json`` for people and ``policies-<digest>.npz`` for the tables.

The tables are written first, under a name made of their content; then the JSON file, which names them, is replaced in
one step. So a reader finds the old model or the new one, whole, whenever the writer is stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import numpy as np

from curious_explorer.archives import Format, check_header, check_size, decode, encode, parse_strictly
from curious_explorer.errors import ResetModelError
from curious_explorer.files import write_atomically
from curious_explorer.reset.model import ResetModel

FORMAT = Format("curious-explorer/reset-model", 1)
TABLES = Format("curious-explorer/policies", 1)
FILE = "reset_model.json"
_KEYS = {"num_states", "num_actions", "num_policies", "gamma", "weighting", "tables", "sha256"}


def save_reset_model(model: ResetModel, folder: str | Path) -> Path:
    """Write a reset model to a folder, which is created if need be, and return the folder."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target} is a file, expected the name of a folder to save the reset model in")
    target.mkdir(parents=True, exist_ok=True)
    content = encode(TABLES, {}, {"policies": np.stack(model.policies).astype("<f8")})
    digest = hashlib.sha256(content).hexdigest()
    tables = f"policies-{digest[:16]}.npz"
    header = {
        "format": FORMAT.name,
        "version": FORMAT.version,
        "num_states": model.num_states,
        "num_actions": model.num_actions,
        "num_policies": len(model.policies),
        "gamma": model.gamma,
        "weighting": model.weighting,
        "tables": tables,
        "sha256": digest,
    }
    write_atomically(target / tables, content)
    write_atomically(target / FILE, json.dumps(header, indent=2, allow_nan=False) + "\n")
    for stale in target.glob("policies-*.npz"):
        if stale.name != tables:
            with contextlib.suppress(OSError):
                stale.unlink()
    return target


def load_reset_model(folder: str | Path) -> ResetModel:
    """Read what `save_reset_model` wrote.

    Raises:
        ResetModelError: if the folder holds no reset model, or one that is damaged, truncated or of a newer version.
    """
    source = Path(folder)
    if not (source / FILE).is_file():
        raise ResetModelError(f"{source} holds no reset model: there is no {FILE} in it; save one with ResetModel.save")
    try:
        header = check_header(parse_strictly((source / FILE).read_bytes()), FORMAT, _KEYS)
        shape = tuple(check_size(header, f"num_{kind}") for kind in ("policies", "states", "actions"))
        name = header["tables"]
        if not isinstance(name, str) or Path(name).name != name:
            raise ValueError(f"tables is {name!r}, expected the name of a file in the same folder")
        content = (source / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != header["sha256"]:
            raise ValueError(f"{name} is not the file that was saved: it is truncated or was changed")
        policies = decode(content, TABLES, set(), {"policies"}).array("policies", "<f8", shape)
        return ResetModel(list(policies), gamma=header["gamma"], weighting=header["weighting"])
    except (ValueError, OSError, MemoryError, OverflowError, RecursionError) as error:
        raise ResetModelError(f"{source} cannot be read as a reset model: {error}") from error
