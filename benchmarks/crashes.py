"""``python -m benchmarks.crashes``: every command stopped at every file operation, resumed, and compared byte by byte.

A command runs in a forked process whose audit hook counts what it does to files in its folder: opening for writing,
renaming, removing, making folders. At operation k it is

- **killed**: the process ends there, without a word or a cleanup;
- **failed**: the operation raises "no space left on the disk", as every one after it does;
- **torn**: half of what was written to a temporary file is lost, and the process ends before its rename.

Then the same command runs again, undisturbed, and every file that it promises must be the same bytes as those of a run
that nothing happened to. Times of the clock are not promised.
"""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from benchmarks.stopped_commands import COMMANDS, Command, different, files_of

KINDS = ("killed", "failed", "torn")
WRITING = os.O_WRONLY | os.O_RDWR
HERE = [name for name in COMMANDS if not name.endswith("ray")]
"""A cluster's processes do not survive a fork; `benchmarks.random_kills` stops it."""
DONE, STOPPED, REFUSED = 0, 77, 78
"""Exit codes of the process: to its end; stopped by us; ended by an error of its own, as a full disk makes it."""


class Disturbance:
    """Counts operations on files of a folder, and stops the process at one of them."""

    def __init__(self, folder: Path, at: int | None, kind: str) -> None:
        self._folder, self._at, self._kind = os.path.realpath(folder), at, kind
        self.count = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & WRITING:
                return
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.truncate"):
            path = arguments[0]
        else:
            return
        if not isinstance(path, str | os.PathLike) or not os.fspath(path).startswith(self._folder):
            return
        self.count += 1
        if self._at is None or self.count < self._at:
            return
        if self._kind == "failed":
            raise OSError(errno.ENOSPC, "no space left on device")
        if self._kind == "torn" and event == "os.rename":
            with open(path, "rb") as stream:
                half = stream.read()
            os.truncate(path, len(half) // 2)
        os._exit(STOPPED)


def in_process(command: Command, folder: Path, at: int | None = None, kind: str = "killed") -> tuple[int, int, str]:
    """Run a command in a forked process: its exit code, how many operations it came to, and what it raised."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no other thread of ours holds a lock here
        child = os.fork()
    if child == 0:
        code, raised = REFUSED, ""
        try:
            os.close(reading)
            for stream in (sys.stdout, sys.stderr):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno() if hasattr(stream, "fileno") else 1)
            disturbance = Disturbance(folder, at, kind)
            sys.addaudithook(disturbance)
            command(folder)
            code = DONE
        except BaseException as error:  # whatever it is, it is told by the process that waits for this one
            raised = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, f"{disturbance.count} {raised[:500]}".encode())
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        counted = stream.read()
    _, status = os.waitpid(child, 0)
    operations, _, raised = counted.partition(" ")
    return os.waitstatus_to_exitcode(status), int(operations or 0), raised


def crash_everywhere(
    command: Command, place: Path, *, stride: int = 1, offset: int = 0, kinds: tuple[str, ...] = KINDS
) -> tuple[int, list[str]]:
    """Stop a command at every operation, or every ``stride``-th: how many were tried, and what went wrong.

    ``offset``, which is less than the stride, is where those begin that one of several machines tries.
    """
    command(place / "first")  # compiles, and imports, in this process, so that forked ones need not
    whole = files_of(place / "first")
    code, operations, raised = in_process(command, place / "whole")
    wrong = [f"without a crash: {raised}"] if code != DONE else []
    if names := different(files_of(place / "whole"), whole):
        wrong.append(f"two runs without a crash differ in {', '.join(names)}")
    points = [(kind, at) for kind in kinds for at in range(1, operations + 1)][offset::stride]
    for kind, at in points:
        folder = place / f"{kind}-{at}"
        in_process(command, folder, at, kind)
        code, _, raised = in_process(command, folder)
        if code != DONE:
            wrong.append(f"{kind} at {at} of {operations}: it could not be resumed: {raised}")
        elif names := different(files_of(folder), whole):
            wrong.append(f"{kind} at {at} of {operations}: other bytes in {', '.join(names)}")
        shutil.rmtree(folder, ignore_errors=True)
    return len(points), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", nargs="*", choices=sorted(COMMANDS), default=HERE)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--stride", type=int, default=1, help="try only every so many operations")
    parser.add_argument("--offset", type=int, default=0, help="which of them is the first, from 0 on")
    options = parser.parse_args()
    failed = 0
    for name in options.commands:
        with tempfile.TemporaryDirectory() as place:
            tried, wrong = crash_everywhere(
                COMMANDS[name], Path(place), stride=options.stride, offset=options.offset, kinds=tuple(options.kinds)
            )
        print(f"{name:20} {tried:5} crashes, {len(wrong)} not resumed to the same bytes", flush=True)
        for each in wrong:
            print(f"  {each}")
        failed += len(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
