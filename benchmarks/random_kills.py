"""``python -m benchmarks.random_kills``: commands killed at random moments, again and again, until one run ends.

A command runs as a process of its own. At a random moment of its work, which takes as long as the undisturbed command
took, the process is killed (SIGKILL, no cleanup), or one of those that it has started. Then it runs again in the same
folder, and is killed again; the last try is left alone. What the folder holds then must be the same bytes as after a
run that nothing happened to. In between nothing may be refused for being damaged: a try that was not killed itself must
end well, or say that a worker died.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.stopped_commands import COMMANDS, different, files_of

KILLS = 3
"""Of one history."""


class Outcome(NamedTuple):
    """What a number of histories came to."""

    histories: int
    kills: int
    """How many tries were killed before they ended."""
    wrong: list[str]


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    """Begin a command in a process of its own; returns when it has been imported."""
    words = [sys.executable, "-m", "benchmarks.random_kills", "--alone", name, str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()  # what was imported took most of the time, and is not what is tried here
    return process


def kill(process: subprocess.Popen[str], rng: random.Random) -> None:
    """Kill the process, or one of those that it has started."""
    started = _children(process.pid)
    victim = rng.choice(started) if started and rng.random() < 0.5 else process.pid
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return


def _children(pid: int) -> list[int]:
    """The processes that one has started itself; none where the system does not say."""
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def history(name: str, folder: Path, longest: float, rng: random.Random) -> tuple[int, str | None]:
    """Kill a command some times, then let it end: how many were killed, and what went wrong."""
    kills = 0
    for _ in range(KILLS):
        process = start(name, folder)
        try:
            _, said = process.communicate(timeout=rng.uniform(0.0, longest))
        except subprocess.TimeoutExpired:
            kill(process, rng)
            kills += 1
            _, said = process.communicate()
            if process.returncode not in (0, -signal.SIGKILL) and "ExecutorError" not in said:
                return kills, f"after a kill it ended with {process.returncode}: {said[-300:]}"
        else:
            if process.returncode:
                return kills, f"without a kill it ended with {process.returncode}: {said[-300:]}"
    process = start(name, folder)
    _, said = process.communicate()
    return kills, f"it could not be resumed: {said[-300:]}" if process.returncode else None


def kill_often(name: str, histories: int, seed: int) -> Outcome:
    """Histories of one command."""
    rng, kills, wrong = random.Random(f"{name} {seed}"), 0, []
    with tempfile.TemporaryDirectory() as place:
        start(name, Path(place) / "compiles").communicate()
        process, began = start(name, Path(place) / "whole"), time.monotonic()
        process.communicate()
        longest, whole = time.monotonic() - began, files_of(Path(place) / "whole")
        for number in range(histories):
            folder = Path(place) / str(number)
            killed, problem = history(name, folder, longest, rng)
            kills += killed
            if problem is None and (names := different(files_of(folder), whole)):
                problem = f"other bytes in {', '.join(names)}"
            if problem is not None:
                wrong.append(f"history {number}: {problem}")
    return Outcome(histories, kills, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", nargs="*", choices=sorted(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", nargs=2, metavar=("COMMAND", "FOLDER"), help="run one command, in this process")
    options = parser.parse_args()
    if options.alone:
        name, folder = options.alone
        print("begun", flush=True)
        COMMANDS[name](Path(folder))
        return
    failed = 0
    for name in options.commands:
        found = kill_often(name, options.histories, options.seed)
        print(f"{name:20} {found.histories:5} histories, {found.kills:5} kills, {len(found.wrong)} wrong", flush=True)
        for each in found.wrong:
            print(f"  {each}")
        failed += len(found.wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
