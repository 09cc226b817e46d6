"""A reset model on disk: a folder with ``reset_model.json`` for people and ``policies-<digest>.npz`` for the tables.

Policies that see observations lie beside them, each in a ``network-<digest>.safetensors``. Cells and actions are in the
JSON file; the cells that were discovered, what was counted and the weights of chosen states, in the one with the
tables. Plans are made again from counts. Nothing of it is code, and nothing is unpickled.

The tables are written first, under a name made of their content; then the JSON file, which names them, is replaced in
one step; then the old tables are removed. So whenever the writer is stopped, there is the old model or the new one,
whole. A reader that finds the tables gone which the JSON file named reads that again. Writers wait for each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.errors import ResetModelError
from curious_explorer.folder_lock import folder_lock
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.resets.chosen_states import StateChoice
from curious_explorer.storage import (
    Archive,
    Format,
    check_inside,
    check_size,
    decode,
    encode,
    parse_strictly,
    read_json,
    read_plain,
    reading,
    write_atomically,
    write_json,
)
from curious_explorer.worlds.policies import ObservationPolicy, Policy, StoredPolicy, as_table
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation

FORMAT = Format("curious-explorer/reset-model", 7, oldest=6)
ENDS_SINCE = 7
"""Older versions do not say which transitions ended an episode."""
TABLES = Format("curious-explorer/policies", 3)
FILE = "reset_model.json"
FOLDER = "reset_model"
"""Where a run of ``curious-explorer explore`` has its reset model."""
_KEYS = {"num_states", "num_actions", "policies", "gamma", "weighting", "tables", "sha256", "discretisation"}
_KEYS |= {"measured", "chained"}  # how many rounds' visits are with the tables; see `ResetModel`
_KEYS |= {"transitions", "choice"}  # how many were counted, and what is chosen of `StateChoice`; null for neither
COUNTED = {"state": "<i8", "action": "<i8", "next_state": "<i8", "times": "<i8", "paid": "<f8", "ended": "<i8"}
"""The columns of a counted model, one entry for each transition."""
COUNTED_STATES = {"terminal": "|b1", "end_times": "<i8", "end_paid": "<f8", "starts": "<i8"}
"""What it holds of each state."""
_CHOICE = ("name", "start_share", "limit", "tries")
LOCK = ".reset_model.lock"
"""Held while a model is written; another than that of the folder's run, which may write several."""
PATIENCE = 60.0
"""Seconds that a writer waits for another."""
TRIES, PAUSE = 50, 0.02
"""How often a reader looks again for a model that is being replaced, and after how many seconds."""
MOST_ACTIONS = 1 << 16
"""Of a model without tables, whose file says how many actions there are by a number alone."""
TABLE = "table"
"""Stands for a policy that is the next of the tables; any other entry is the name of a network's file."""


def write_reset_files(
    folder: str | Path,
    *,
    policies: Sequence[Policy],
    gamma: float,
    weighting: str,
    visited: Floats,
    discretisation: StoredDiscretisation | None,
    chained: bool,
    model: CountedModel | None = None,
    choice: StateChoice | None = None,
) -> Path:
    """Write a reset model, given as the arguments of `ResetModel`, to a folder, created if need be; returns it."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target} is a file, expected the name of a folder to save the reset model in")
    target.mkdir(parents=True, exist_ok=True)
    networks = {
        place: policy.encode() for place, policy in enumerate(policies) if isinstance(policy, ObservationPolicy)
    }
    names = {place: f"network-{_digest(content)[:16]}.safetensors" for place, content in networks.items()}
    tables = [as_table(policy, "saving") for place, policy in enumerate(policies) if place not in networks]
    discovered = () if discretisation is None else discretisation.discovered
    shape = model.shape if model is not None else tables[0].shape
    stacked = np.stack(tables) if tables else np.zeros((0, *shape))
    arrays: dict[str, NDArray[Any]] = {"policies": stacked.astype("<f8"), "discovered": _as_bytes(list(discovered))}
    arrays["visited"] = visited.astype("<f8")
    if model is not None:
        counted = model.arrays()
        columns = {**COUNTED, **COUNTED_STATES}
        arrays |= {f"counted_{name}": counted[name].astype(dtype) for name, dtype in columns.items()}
    if choice is not None:
        arrays["weights"] = choice.weights.astype("<f8")
    content = encode(TABLES, {}, arrays)
    name = f"policies-{_digest(content)[:16]}.npz"
    header = {
        "num_states": shape[0],
        "num_actions": shape[1],
        "policies": [names.get(place, TABLE) for place in range(len(policies))],
        "gamma": gamma,
        "weighting": weighting,
        "tables": name,
        "sha256": _digest(content),
        "discretisation": None if discretisation is None else discretisation.description,
        "measured": len(visited),
        "chained": chained,
        "transitions": None if model is None else len(model.times),
        "choice": None if choice is None else {name: getattr(choice, name) for name in _CHOICE},
    }
    for file in (FILE, name, *names.values()):
        check_inside(target / file, target)
    with folder_lock(target, name=LOCK, patience=PATIENCE):
        for place, network in networks.items():
            write_atomically(target / names[place], network)
        write_atomically(target / name, content)
        write_json(target / FILE, FORMAT, header)
        _remove_stale(target, {name, *names.values()})
    return target


def read_reset_files(folder: str | Path, cell_function: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """Read what `write_reset_files` wrote: the arguments of `ResetModel`.

    Raises:
        ResetModelError: if the folder holds no reset model, or one that is damaged, truncated or of a newer version.
    """
    source = Path(folder)
    if not (source / FILE).is_file() and (source / FOLDER / FILE).is_file():
        source = source / FOLDER  # the folder of a whole run
    if not (source / FILE).is_file():
        raise ResetModelError(f"{source} holds no reset model: there is no {FILE} in it; save one with ResetModel.save")
    with reading(source, ResetModelError, "a reset model"):
        check_inside(source / FILE, source)
        for _ in range(TRIES):
            header = read_json(source / FILE, FORMAT, _KEYS)
            try:
                return _read(source, header, cell_function)
            except FileNotFoundError:
                time.sleep(PAUSE)
                if read_json(source / FILE, FORMAT, _KEYS) == header:
                    raise  # it was not replaced meanwhile: something is missing
        raise ValueError("it is being written again and again; read it when that is done")


def _read(source: Path, header: dict[str, Any], cell_function: Callable[[Any], Any] | None) -> dict[str, Any]:
    places = header["policies"]
    if not isinstance(places, list) or not all(isinstance(name, str) for name in places):
        raise ValueError(f"policies is {places!r}, expected names, {TABLE!r} among them")
    if TABLE not in places and (places or header["choice"] is None):
        raise ValueError(f"policies is {places!r}, expected names, {TABLE!r} among them")
    shape = (places.count(TABLE), check_size(header, "num_states"), check_size(header, "num_actions"))
    if shape[2] > MOST_ACTIONS and shape[0] == 0:
        raise ValueError(f"num_actions is {shape[2]}, expected at most {MOST_ACTIONS} where there are no tables")
    measured = check_size(header, "measured", least=0)
    names = {"policies", "discovered", "visited"} | ({"weights"} if header["choice"] is not None else set())
    if header["transitions"] is not None:
        names |= {f"counted_{name}" for name in (*_columns(header), *COUNTED_STATES)}
    archive = decode(_tables(source, header), TABLES, set(), names)
    tables = iter(archive.array("policies", "<f8", shape))
    policies = [next(tables) if name == TABLE else StoredPolicy(_network(source, name)) for name in places]
    discretisation = None
    if header["discretisation"] is not None:
        discovered = parse_strictly(archive.array("discovered", "|u1", None).tobytes() or b"[]")
        if not isinstance(discovered, list) or not all(isinstance(key, str) for key in discovered):
            raise ValueError("the discovered cells are no list of names")
        if not isinstance(header["discretisation"], dict):
            raise ValueError(f"discretisation is {header['discretisation']!r}, expected cells and actions")
        discretisation = StoredDiscretisation(header["discretisation"], discovered, cell_function)
    visited = archive.array("visited", "<f8", (measured, shape[1])) if measured else ()
    if not isinstance(header["chained"], bool):
        raise ValueError(f"chained is {header['chained']!r}, expected true or false")
    rest = {name: header[name] for name in ("gamma", "weighting", "chained")}
    rest |= {"model": _model(archive, header, shape[1:]), "choice": _choice(archive, header, shape[1])}
    return {"policies": policies, "visited": visited, "discretisation": discretisation, **rest}


def _columns(header: dict[str, Any]) -> dict[str, str]:
    """The columns of the counted model in a file."""
    return {name: dtype for name, dtype in COUNTED.items() if name != "ended" or header["version"] >= ENDS_SINCE}


def _model(archive: Archive, header: dict[str, Any], shape: tuple[int, int]) -> CountedModel | None:
    if header["transitions"] is None:
        return None
    count = check_size(header, "transitions", least=0)
    arrays = {name: archive.array(f"counted_{name}", dtype, (count,)) for name, dtype in _columns(header).items()}
    arrays.setdefault("ended", np.zeros(count, dtype=np.int64))
    arrays |= {name: archive.array(f"counted_{name}", dtype, shape[:1]) for name, dtype in COUNTED_STATES.items()}
    return CountedModel.from_arrays({**arrays, "num_actions": np.array([shape[1]], dtype=np.int64)})


def _choice(archive: Archive, header: dict[str, Any], num_states: int) -> StateChoice | None:
    choice = header["choice"]
    if choice is None:
        return None
    if not isinstance(choice, dict) or set(choice) != set(_CHOICE):
        raise ValueError(f"choice is {choice!r}, expected {', '.join(_CHOICE)}")
    limit = None if choice["limit"] is None else check_size(choice, "limit")
    weights = archive.array("weights", "<f8", (num_states,))
    return StateChoice(str(choice["name"]), weights, float(choice["start_share"]), limit, check_size(choice, "tries"))


def _tables(source: Path, header: dict[str, Any]) -> bytes:
    content = read_plain(_named(source, header["tables"]), within=source)
    if _digest(content) != header["sha256"]:
        raise ValueError(f"{header['tables']} is not the file that was saved: it is truncated or was changed")
    return content


def _network(source: Path, name: str) -> bytes:
    content = read_plain(_named(source, name), within=source)
    if name != f"network-{_digest(content)[:16]}.safetensors":
        raise ValueError(f"{name} is not the file that was saved: it is truncated or was changed")
    return content


def _named(source: Path, name: object) -> Path:
    """A file that the model names, in its own folder and nowhere else."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"it names {name!r}, expected the name of a file in the same folder")
    return source / name


def _as_bytes(names: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _remove_stale(target: Path, kept: set[str]) -> None:
    """Files of the model that was here before."""
    for stale in (*target.glob("policies-*.npz"), *target.glob("network-*.safetensors")):
        if stale.name not in kept:
            with contextlib.suppress(OSError):
                stale.unlink()
