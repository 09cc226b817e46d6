"""``python -m benchmarks.crashes``: every command stopped at every file operation, resumed, and compared byte by byte.

A command runs in a forked process whose audit hook counts what it does to files in its folder: opening for writing,
renaming, removing, making folders. At operation k it is

- **killed**: the process ends there, without a word or a cleanup;
- **failed**: the operation raises "no space left on the disk", as every one after it does;
- **torn**: half of what was written to a temporary file is lost, and the process ends before its rename;
- **unsynced**: the power is cut. Files that were written and not flushed are empty, and of what was renamed and removed
  since its folder was flushed, the latest is on the disk and what came before it is not.

Then the same command runs again, undisturbed, and every file that it promises must be the same bytes as those of a run
that nothing happened to. Times of the clock are not promised. Where jobs run in processes of their own, or with Ray, it
is the process which writes the files that is stopped; `benchmarks.random_kills` kills the others, too.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import os
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.stopped_commands import COMMANDS, Command, different, files_of

KINDS = ("killed", "failed", "torn", "unsynced")
WRITING = os.O_WRONLY | os.O_RDWR
STARTS_A_CLUSTER = tuple(name for name in COMMANDS if name.endswith("ray"))
"""What is connected to a cluster cannot be forked, so a process that forks must never have run these itself."""
TELL = 5
"""After so many crashes it says how far it is."""
DONE, STOPPED, REFUSED = 0, 77, 78
"""Exit codes of the process: to its end; stopped by us; ended by an error of its own, as a full disk makes it."""


class Change(NamedTuple):
    """A name that was given or taken away, and what had it before."""

    path: str
    before: str | None
    """A second name of what was there."""
    source: str | None
    """What was renamed to it; None if it was removed."""


class PowerCut:
    """Keeps what a folder would be without all that was not flushed.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._kept = folder, tempfile.mkdtemp(dir=os.path.dirname(folder))
        self._numbers = itertools.count()
        self._unflushed: set[str] = set()
        self._changes: list[Change] = []
        self._fsync = os.fsync
        os.fsync = self._flush  # type: ignore[assignment]  # audit hooks are not told of it

    def _flush(self, descriptor: Any) -> None:
        self._fsync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self._unflushed.discard(path)
        self._changes = [change for change in self._changes if os.path.dirname(change.path) != path]

    def note(self, event: str, path: str, target: str) -> None:
        """What is about to be done."""
        if event == "open":
            self._unflushed.add(path)
        elif event == "os.rename":
            self._changes.append(Change(target, self._second_name(target), path))
            if path in self._unflushed:
                self._unflushed = self._unflushed - {path} | {target}
        elif event == "os.remove":
            self._changes.append(Change(path, self._second_name(path), None))

    def _second_name(self, path: str) -> str | None:
        kept = os.path.join(self._kept, str(next(self._numbers)))
        try:
            os.link(path, kept)
        except OSError:  # nothing is there
            return None
        return kept

    def lose(self) -> None:
        """Make the folder what it would be."""
        for path in self._unflushed:
            with suppress(OSError):
                os.truncate(path, 0)
        for path, before, source in reversed(self._changes[:-1]):
            with suppress(OSError):
                if source is not None:
                    os.rename(path, source)
                if before is not None:
                    os.link(before, path)
        shutil.rmtree(self._kept)


class Disturbance:
    """Counts operations on files of a folder, and stops the process at one of them."""

    def __init__(self, folder: Path, at: int | None, kind: str) -> None:
        self._folder, self._at, self._kind = os.path.realpath(folder), at, kind
        self._power = PowerCut(self._folder) if kind == "unsynced" else None
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
        inside = self._folder + os.sep
        if not isinstance(path, str | os.PathLike) or not (os.fspath(path) + os.sep).startswith(inside):
            return
        self.count += 1
        if self._at is None or self.count < self._at:
            if self._power is not None:
                self._power.note(event, os.fspath(path), os.fspath(arguments[1]) if event == "os.rename" else "")
            return
        if self._kind == "failed":
            raise OSError(errno.ENOSPC, "no space left on device")
        self._at, self._power, power = None, None, self._power  # what is done now is no operation of the command
        if self._kind == "torn" and event == "os.rename":
            os.truncate(path, os.path.getsize(path) // 2)
        if power is not None:
            power.lose()
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
    command: Command,
    place: Path,
    *,
    stride: int = 1,
    offset: int = 0,
    kinds: tuple[str, ...] = KINDS,
    here: bool = True,
    seconds: float = float("inf"),
) -> tuple[int, list[str]]:
    """Stop a command at every operation, or every ``stride``-th: how many were tried, and what went wrong.

    ``offset`` is where to begin, so that several machines can try different ones, or one can go on; ``seconds`` are
    those after which no other is begun. ``here`` says that the command may run once in this process, where it compiles
    and imports what forked ones then need not.
    """
    began = time.monotonic()
    if here:
        command(place / "first")
    else:
        in_process(command, place / "first")
    whole = files_of(place / "first")
    code, operations, raised = in_process(command, place / "whole")
    wrong = [f"without a crash: {raised}"] if code != DONE else []
    if names := different(files_of(place / "whole"), whole):
        wrong.append(f"two runs without a crash differ in {', '.join(names)}")
    points = [(kind, at) for kind in kinds for at in range(1, operations + 1)][offset::stride]
    for tried, (kind, at) in enumerate(points):
        if time.monotonic() - began > seconds:
            return tried, wrong
        if tried and tried % TELL == 0:
            print(f"  {tried} of {len(points)} tried, {len(wrong)} wrong", file=sys.stderr, flush=True)
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
    parser.add_argument("--commands", nargs="*", choices=sorted(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--stride", type=int, default=1, help="try only every so many operations")
    parser.add_argument("--offset", type=int, default=0, help="which of them is the first, from 0 on")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each command; then say how far it came")
    options = parser.parse_args()
    failed = 0
    for name in options.commands:
        with tempfile.TemporaryDirectory() as place:
            tried, wrong = crash_everywhere(
                COMMANDS[name],
                Path(place),
                stride=options.stride,
                offset=options.offset,
                kinds=tuple(options.kinds),
                here=name not in STARTS_A_CLUSTER,
                seconds=options.seconds,
            )
        further = f"; the next is --offset {options.offset + tried * options.stride}"
        print(f"{name:20} {tried:5} crashes, {len(wrong)} not resumed to the same bytes{further}", flush=True)
        for each in wrong:
            print(f"  {each}")
        failed += len(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
