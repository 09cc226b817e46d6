"""Labels of layouts as files: what the agent saw, and what is best to do there, without pickle.

Observations are arrays, numbers, text, or dicts and tuples of them. Parts of one name are stacked, text is JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.storage import Format, decode, encode, read_plain, reading, write_atomically

LABELS = Format("curious-explorer/layout-labels", 2)
_KEYS = {"seen", "lengths", "states", "steps", "starts"}


def write_labels(path: str | Path, labels: Sequence[Labelled]) -> Path:
    """Write the labels of some layouts to one file."""
    arrays: dict[str, NDArray[Any]] = {}
    observations = [observation for each in labels for observation in each.observations]
    header = {
        "seen": _take_apart(observations, "seen", arrays) if observations else None,
        "lengths": [len(each.observations) for each in labels],
        "states": [list(map(int, each.states)) for each in labels],
        "steps": [len(each.steps) for each in labels],
        "starts": [each.starts.tolist() for each in labels],
    }
    if observations:
        arrays["probabilities"] = np.concatenate([each.probabilities for each in labels if len(each.observations)])
        arrays["steps"] = np.concatenate([each.steps for each in labels])
    return write_atomically(path, encode(LABELS, header, arrays))


def read_labels(path: str | Path) -> list[Labelled]:
    """The labels that were written."""
    with reading(path, CheckpointError, "labels of layouts", "delete it to explore anew"):
        header, arrays = decode(read_plain(path), LABELS, _KEYS, None)
        lengths = header["lengths"]
        observations = [] if header["seen"] is None else _put_together(header["seen"], arrays, sum(lengths))
        labels, first, first_step = [], 0, 0
        described = zip(lengths, header["states"], header["steps"], header["starts"], strict=True)
        for length, states, count, starts in described:
            part, taken = slice(first, first + length), slice(first_step, first_step + count)
            likely = arrays["probabilities"][part] if length else np.zeros((0, 0))
            steps = arrays["steps"][taken] if count else np.zeros((0, 4), dtype=np.int64)
            labels.append(Labelled(observations[part], likely, states, steps, np.array(starts, dtype=np.int64)))
            first, first_step = first + length, first_step + count
        return labels


def _take_apart(observations: Sequence[Any], name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Add the observations to the arrays; returns how to put them together."""
    first = observations[0]
    if isinstance(first, dict):
        parts = {key: _take_apart([each[key] for each in observations], f"{name}.{key}", arrays) for key in first}
        return {"kind": "dict", "parts": parts}
    if isinstance(first, tuple):
        columns = zip(*observations, strict=True)
        return {
            "kind": "tuple",
            "parts": [_take_apart(column, f"{name}.{place}", arrays) for place, column in enumerate(columns)],
        }
    if isinstance(first, str):
        different = sorted(set(observations))
        number = {text: place for place, text in enumerate(different)}
        return {"kind": "text", "texts": different, "of": [number[text] for text in observations]}
    stacked = np.stack([np.asarray(observation) for observation in observations])
    if stacked.dtype.kind not in "biuf":
        raise CheckpointError(
            f"an observation is {first!r}, expected arrays, numbers, text, or dicts and tuples of them; others cannot "
            "be stored"
        )
    arrays[name] = stacked
    return {"kind": "array", "name": name}


def _put_together(described: dict[str, Any], arrays: dict[str, NDArray[Any]], count: int) -> list[Any]:
    kind = described["kind"]
    if kind == "dict":
        parts = {key: _put_together(below, arrays, count) for key, below in described["parts"].items()}
        return [{key: column[place] for key, column in parts.items()} for place in range(count)]
    if kind == "tuple":
        columns = [_put_together(below, arrays, count) for below in described["parts"]]
        return [tuple(column[place] for column in columns) for place in range(count)]
    if kind == "text":
        return [described["texts"][number] for number in described["of"]]
    return list(arrays[described["name"]])
