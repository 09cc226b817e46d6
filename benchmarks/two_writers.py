"""``python -m benchmarks.two_writers``: two processes that write into one folder, and one that reads there meanwhile.

- **Races**: two processes begin at nearly the same moment with the same folder and different seeds. One comes to its
  end, the other is refused by the command's own error, and the folder holds, byte by byte, what the first leaves when
  it is alone. Anything else is *mixed*, *lost* where both are refused, and *foreign* where one ends with another error.
- **Reads**: two processes replace one reset model again and again, and a third loads it. Every load must succeed and be
  one of the models that were written.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stopped_commands import files_of
from curious_explorer import ResetModel
from curious_explorer.errors import CheckpointError, StudyError
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare
from curious_explorer.studies.exploration_study import ExploreSettings, explore_into

Writer = Callable[[Path, int], None]
REFUSALS = (CheckpointError, StudyError)
GOOD = "one done, one refused"
STATES = 300


def explore_table(folder: Path, seed: int) -> None:
    """Two rounds of Algorithm 2 on a table."""
    settings = ExploreSettings(environment="dcl/2", rounds=2, visits=20, samples=4_000, seed=seed)
    explore_into(folder, settings, progress=False)


def explore_steps(folder: Path, seed: int) -> None:
    """`Frontier` in an environment."""
    settings = ExploreSettings(environment="CliffWalking-v1", cells="identity", samples=300, seed=seed)
    explore_into(folder, settings, progress=False)


def compare_two(folder: Path, seed: int) -> None:
    """A comparison of two runs; another seed is another budget."""
    given = Comparison(methods=("r-max",), environments=("dcl/2",), seeds=2, budget=300 + seed)
    compare(given, folder, resume=(folder / "comparison.json").exists())


WRITERS: dict[str, Writer] = {
    "explore, a table": explore_table,
    "explore, steps": explore_steps,
    "compare": compare_two,
}


def _write(writer: Writer, folder: Path, seed: int, start: Any, delay: float, told: Any) -> None:
    """One of two processes."""
    start.wait()
    time.sleep(delay)
    try:
        writer(folder, seed)
    except REFUSALS:
        told.put((seed, "refused"))
    except BaseException as error:  # whatever it is, the process that waits tells it
        told.put((seed, f"{type(error).__name__}: {error}"))
    else:
        told.put((seed, "done"))


def _start(processes: Iterable[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no other thread of ours holds a lock here
        for process in processes:
            process.start()


def race(writer: Writer, folder: Path, alone: list[dict[str, bytes]], longest: float, rng: random.Random) -> str:
    """Two processes, one folder, seeds 0 and 1: how it ended, in a word."""
    context = multiprocessing.get_context("fork")
    start, told = context.Barrier(2), context.SimpleQueue()
    # Half of the races are neck and neck, in the others one begins while the other is at its work.
    delays = [0.0, rng.uniform(0.0, rng.choice((0.01, longest)))]
    rng.shuffle(delays)
    racers = [
        context.Process(target=_write, args=(writer, folder, seed, start, delay, told))
        for seed, delay in enumerate(delays)
    ]
    _start(racers)
    ends = dict(told.get() for _ in racers)
    for racer in racers:
        racer.join()
    done = [seed for seed, end in ends.items() if end == "done"]
    if not set(ends.values()) <= {"done", "refused"}:
        return f"foreign: {ends}"
    if not done:
        return "lost: both were refused"
    return GOOD if len(done) == 1 and files_of(folder) == alone[done[0]] else f"mixed: {ends}"


def races(name: str, count: int, seed: int = 0) -> Counter[str]:
    """So many races of one command, and how often they ended in which way."""
    writer, ends, rng = WRITERS[name], Counter[str](), random.Random(f"{name} {seed}")
    with tempfile.TemporaryDirectory() as place:
        writer(Path(place) / "compiles", 0)
        alone = []
        began = time.monotonic()
        for own in (0, 1):
            writer(Path(place) / f"alone-{own}", own)
            alone.append(files_of(Path(place) / f"alone-{own}"))
        longest = (time.monotonic() - began) / 2
        for number in range(count):
            folder = Path(place) / f"race-{number}"
            ends[race(writer, folder, alone, longest, rng)] += 1
            shutil.rmtree(folder, ignore_errors=True)
    return ends


def _replace(folder: Path, number: int, until: float) -> None:
    turn = 0
    while time.time() < until:
        table = np.full((STATES, 2), 0.5)
        table[turn % STATES] = [number / 10, 1.0 - number / 10]
        ResetModel([table, table], gamma=0.9).save(folder)
        turn += 1


def reads(seconds: float) -> tuple[int, list[str]]:
    """How often a model was loaded that two processes replace meanwhile, and what went wrong."""
    context, wrong, loads = multiprocessing.get_context("fork"), [], 0
    with tempfile.TemporaryDirectory() as folder:
        _replace(Path(folder), 1, time.time() + 0.01)
        until = time.time() + seconds
        writers = [context.Process(target=_replace, args=(Path(folder), number, until)) for number in (1, 2)]
        _start(writers)
        while time.time() < until:
            loads += 1
            try:
                found = np.asarray(ResetModel.load(folder).policies[0])
            except Exception as error:  # whatever it is, it is counted
                wrong.append(f"{type(error).__name__}: {error}")
                continue
            if (found != 0.5).sum() != 2 or not np.isin(found, (0.1, 0.2, 0.5, 0.8, 0.9)).all():
                wrong.append("a model that nobody wrote")
        for writer in writers:
            writer.join()
        wrong += [f"a writer ended with {writer.exitcode}" for writer in writers if writer.exitcode]
    return loads, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", nargs="*", choices=sorted(WRITERS), default=list(WRITERS))
    parser.add_argument("--races", type=int, default=100, help="of each command")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to read what is replaced")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which they begin")
    options = parser.parse_args()
    failed = 0
    for name in options.commands:
        ends = races(name, options.races, options.seed)
        failed += sum(count for end, count in ends.items() if end != GOOD)
        print(f"{name:20} " + "; ".join(f"{count} {end}" for end, count in sorted(ends.items())), flush=True)
    loads, wrong = reads(options.seconds)
    print(f"{'reads':20} {loads} loads, {len(wrong)} wrong")
    for each in wrong[:20]:
        print(f"  {each}")
    sys.exit(1 if failed or wrong else 0)


if __name__ == "__main__":
    main()
