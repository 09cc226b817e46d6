"""Files that are either the old one or the new one, whole, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_writer(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that appears under its name, complete and on disk, when the block ends without an error.

    What is written goes to a temporary name in the same folder, since a rename is atomic only within one file system.
    If the block raises, the temporary file is removed and whatever was at ``path`` stays as it was.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing to the file; the file is what is replaced
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it before writing {target.name}")
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def write_atomically(path: str | Path, content: bytes | str) -> Path:
    """Write a whole file at once, text as UTF-8; see `atomic_writer`."""
    with atomic_writer(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)
    return Path(path)


def holds_files(folder: str | Path) -> bool:
    """Whether a folder holds anything but what a write that was killed left behind."""
    return any(not (path.name.startswith(".") and path.suffix == ".tmp") for path in Path(folder).iterdir())


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can do that for folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
