"""Moving starts that several processes agree about: their tally lies in a file that all of them map into memory.

Whoever tells how an episode went holds a lock on that file meanwhile, which takes some microseconds. A copy that is
sent to another process, however that is started, takes the file's name along and sees the same numbers. Which episode
is told first then depends on which process was faster: runs are not repeatable to the bit, as they are in one process.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.resets.moving_starts import MovingStarts


class SharedTally:
    """A tally in a file, and the lock that goes with it; made once, in the process that owns the file."""

    def __init__(self, tally: Floats) -> None:
        handle, name = tempfile.mkstemp(prefix="curious-explorer-starts-")
        with os.fdopen(handle, "wb") as stream:
            stream.write(tally.astype("<f8").tobytes())
        self.path = Path(name)
        self._open()
        weakref.finalize(self, _remove, name, os.getpid())

    def _open(self) -> None:
        self.tally: Floats = np.memmap(self.path, dtype="<f8", mode="r+")
        self._open_lock()

    def _open_lock(self) -> None:
        self._file, self._process, self._depth = os.open(self.path, os.O_RDWR), os.getpid(), 0
        weakref.finalize(self, os.close, self._file)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._open()

    def __enter__(self) -> SharedTally:
        if self._process != os.getpid():  # a forked child, whose parent's lock would be its own
            self._open_lock()
        if self._depth == 0:
            _lock(self._file, True)
        self._depth += 1
        return self

    def __exit__(self, *failure: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            _lock(self._file, False)


def share_between_processes(starts: MovingStarts) -> MovingStarts:
    """The same starts, which copies in other processes tell and see too.

    Give them to every `RestartWrapper` of a vector environment: ``RestartWrapper(env, reset_model, starts=shared)``.
    """
    board = SharedTally(starts.tally)
    starts.hold(board, board.tally)
    return starts


def _remove(name: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends with the same finalisers
        with contextlib.suppress(OSError):
            Path(name).unlink()


def _lock(file: int, held: bool) -> None:
    """Hold or release the lock of a file."""
    try:
        import fcntl
    except ModuleNotFoundError as error:  # Windows
        raise RuntimeError(
            "starts can be shared between processes where files have POSIX locks; step the environments in one process"
        ) from error
    fcntl.flock(file, fcntl.LOCK_EX if held else fcntl.LOCK_UN)
