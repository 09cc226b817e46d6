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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curious_explorer.storage import LOCK_FILE
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare
from curious_explorer.studies.exploration_study import ExploreSettings, explore_into

KINDS = ("killed", "failed", "torn")
WRITING = os.O_WRONLY | os.O_RDWR
DONE, STOPPED, REFUSED = 0, 77, 78
"""Exit codes of the process: to its end; stopped by us; ended by an error of its own, as a full disk makes it."""
CLOCK = ("times.csv", ".time.json", "timings.json", "report.html", "comparison-speed")
"""What holds seconds."""
THEIRS = ("model.zip", "vecnormalize.pkl")
"""What Stable-Baselines3 writes in formats of its own, with the time of day in them."""


def explore_table(folder: Path) -> None:
    """Two rounds of Algorithm 2 on a table."""
    explore_into(folder, ExploreSettings(environment="dcl/2", rounds=2, visits=20, samples=4_000), progress=False)


def explore_steps(folder: Path) -> None:
    """`Frontier` in an environment."""
    explore_into(folder, ExploreSettings(environment="CliffWalking-v1", cells="identity", samples=300), progress=False)


def train(folder: Path) -> None:
    """PPO with three evaluations."""
    from curious_explorer.sb3.training import train_into
    from curious_explorer.sb3.training_settings import TrainingSettings

    settings = TrainingSettings(
        environment="CartPole-v1",
        samples=96,
        num_envs=1,
        evaluate_every=32,
        evaluation_episodes=1,
        hyperparameters={"n_steps": 16, "batch_size": 16},
    )
    train_into(folder, settings)


def compare_two(folder: Path) -> None:
    """A comparison of two runs, with its tables."""
    given = Comparison(methods=("r-max",), environments=("dcl/2",), seeds=2, budget=300)
    compare(given, folder, resume=(folder / "comparison.json").exists())


COMMANDS: dict[str, Callable[[Path], None]] = {
    "explore, a table": explore_table,
    "explore, steps": explore_steps,
    "train": train,
    "compare": compare_two,
}


def files_of(folder: Path) -> dict[str, bytes]:
    """What a folder holds, but for seconds and locks."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        name: content
        for name, content in found.items()
        if not name.endswith((*CLOCK, *THEIRS)) and Path(name).name != LOCK_FILE
    }


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


def in_process(
    command: Callable[[Path], None], folder: Path, at: int | None = None, kind: str = "killed"
) -> tuple[int, int]:
    """Run a command in a forked process: its exit code, and how many operations it came to."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no other thread of ours holds a lock here
        child = os.fork()
    if child == 0:
        code = REFUSED
        try:
            os.close(reading)
            for stream in (sys.stdout, sys.stderr):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno() if hasattr(stream, "fileno") else 1)
            disturbance = Disturbance(folder, at, kind)
            sys.addaudithook(disturbance)
            command(folder)
            code = DONE
        except (OSError, ValueError):
            pass
        finally:
            if code != STOPPED:
                os.write(writing, str(disturbance.count).encode())
                os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        counted = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(counted or 0)


def crash_everywhere(
    command: Callable[[Path], None], place: Path, *, stride: int = 1, kinds: tuple[str, ...] = KINDS
) -> tuple[int, list[str]]:
    """Stop a command at every operation, or every ``stride``-th: how many were tried, and what went wrong."""
    command(place / "first")  # compiles, and imports, in this process, so that forked ones need not
    whole = files_of(place / "first")
    code, operations = in_process(command, place / "whole")
    wrong = [] if code == DONE and files_of(place / "whole") == whole else ["two runs without a crash differ"]
    tried = 0
    for kind in kinds:
        for at in range(1 + tried % stride, operations + 1, stride):
            folder = place / f"{kind}-{at}"
            tried += 1
            in_process(command, folder, at, kind)
            code, _ = in_process(command, folder)
            if code != DONE:
                wrong.append(f"{kind} at {at} of {operations}: it could not be resumed")
            elif (left := files_of(folder)) != whole:
                names = sorted(name for name in left.keys() | whole.keys() if left.get(name) != whole.get(name))
                wrong.append(f"{kind} at {at} of {operations}: other bytes in {', '.join(names)}")
            shutil.rmtree(folder, ignore_errors=True)
    return tried, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", nargs="*", choices=sorted(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--stride", type=int, default=1, help="try only every so many operations")
    options = parser.parse_args()
    failed = 0
    for name in options.commands:
        with tempfile.TemporaryDirectory() as place:
            tried, wrong = crash_everywhere(COMMANDS[name], Path(place), stride=options.stride)
        print(f"{name:20} {tried:5} crashes, {len(wrong)} not resumed to the same bytes", flush=True)
        for each in wrong:
            print(f"  {each}")
        failed += len(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
