"""Files changed as someone would change them who knows about checksums, so that what is behind these is tested."""

from __future__ import annotations

import io
import json
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def frames_of(film):
    """Every frame of a film, decoded, shape (height, width, 3)."""
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra report is not installed")
    decode = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", str(film), "-f", "image2pipe"]
    pictures = subprocess.run([*decode, "-vcodec", "ppm", "-"], capture_output=True, check=True).stdout
    frames, at = [], 0
    while at < len(pictures):
        kind, width, height, most = pictures[at : at + 40].split(maxsplit=4)[:4]
        assert (kind, most) == (b"P6", b"255")
        at += len(b"\n".join((kind, width + b" " + height, most))) + 1
        shape = (int(height), int(width), 3)
        frames.append(np.frombuffer(pictures, dtype=np.uint8, count=np.prod(shape), offset=at).reshape(shape))
        at += frames[-1].size
    return frames
