"""Files changed as someone would change them who knows about checksums, so that what is behind these is tested."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.storage import checksum_of


def sealed(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header with the checksum that belongs to it."""
    return {**header, "checksum": checksum_of(header)}


def change_json(path: Path, **changes: Any) -> None:
    """Change members of a file's header."""
    path.write_text(json.dumps(sealed(json.loads(path.read_text()) | changes)))


def change_settings(path: Path, **changes: Any) -> None:
    """Change settings in the file of a run's folder."""
    settings = json.loads(path.read_text())["settings"]
    change_json(path, settings=settings | changes)


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of an archive, its header as a dictionary."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    return arrays | {"header": json.loads(arrays["header"].tobytes())}


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an archive with all checksums in order; the header is a dictionary, or bytes as they are."""
    header = arrays["header"]
    if isinstance(header, dict):
        checksums = {name: _checksum(array) for name, array in arrays.items() if name != "header"}
        text = json.dumps(sealed(header | {"arrays": checksums}))
        header = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez(path, **(dict(arrays) | {"header": header}))


def _checksum(array: Any) -> int:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array))
    return zlib.crc32(buffer.getvalue())
