"""One writer a folder: a lock that names its holder, and that no killed process leaves behind.

The lock is a record lock of the operating system on the file ``.lock``, which ends with the process that holds it,
however that ends; the file says who it is, for whoever is refused. Such locks exclude other processes and, on network
file systems that pass them on, other machines; threads of one process are told apart here. Where the system has no
record locks (Windows), or the file system none, only the writers within one process exclude each other.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from curious_explorer.errors import FolderInUseError
from curious_explorer.storage import LOCK_FILE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PAUSE = 0.02
"""Seconds between two tries of who waits."""
MOST_HOLDER_BYTES = 1_000
_held: set[str] = set()
"""The lock files that this process holds."""
_registry = threading.Lock()


@contextmanager
def folder_lock(folder: str | Path, *, name: str = LOCK_FILE, patience: float = 0.0) -> Iterator[None]:
    """Hold a folder that exists, so that nobody else writes in it.

    Args:
        folder: the folder.
        name: of the lock file, for locks that do not exclude each other.
        patience: seconds to wait for whoever holds it.

    Raises:
        FolderInUseError: if someone else holds it, and goes on holding it.
    """
    path = os.path.join(os.path.realpath(folder), name)
    deadline = time.monotonic() + patience
    while (descriptor := _acquire(path)) is None:
        if time.monotonic() >= deadline:
            raise FolderInUseError(f"{folder} is in use by {_holder(path)}")
        time.sleep(PAUSE)
    try:
        yield
    finally:
        _release(path, descriptor)


def is_held(folder: str | Path, name: str = LOCK_FILE) -> bool:
    """Whether anybody holds a folder."""
    path = os.path.join(os.path.realpath(folder), name)
    if not os.path.exists(path):
        return False
    descriptor = _acquire(path)
    if descriptor is None:
        return True
    _release(path, descriptor)
    return False


def _acquire(path: str) -> int | None:
    """An open lock file that is ours now; None if it is someone else's."""
    with _registry:
        # A process loses its record lock when it closes the file anywhere, so one that holds it never opens it again.
        if path in _held:
            return None
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            if not _lock(descriptor):
                os.close(descriptor)
                return None
            if _is_still_there(path, descriptor):  # and was not removed by its last holder after it was opened
                break
            os.close(descriptor)
        _held.add(path)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now}).encode(), 0)
    return descriptor


def _lock(descriptor: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # the file system has no locks
        return True
    return True


def _is_still_there(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(path: str, descriptor: int) -> None:
    with _registry:
        with suppress(OSError):  # the folder was removed, or nothing may be removed from it
            os.unlink(path)
        os.close(descriptor)
        _held.discard(path)


def _holder(path: str) -> str:
    """Who holds a lock, in words."""
    if path in _held:
        return "another exploration, training or study of this very process"
    try:
        with open(path, "rb") as stream:
            found = json.loads(stream.read(MOST_HOLDER_BYTES))
        return f"process {int(found['pid'])} on {found['host']!s:.100}, since {found['since']!s:.40}"
    except (OSError, ValueError, KeyError, TypeError):  # it has only just begun, or just ended
        return "another process"
