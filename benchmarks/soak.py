"""``python -m benchmarks.soak``: many millions of steps in one process, with kills, and whether anything grows.

A lap takes about ten million steps in tables (rounds of Algorithm 2, learning, walks) and 150,000 in Gymnasium
environments (explorations by counts, with checkpoints in a folder). Laps are done by processes of their own:

- **undisturbed**, in one process: its memory, open files and threads after the second lap and after the last;
- then with **kills**: the process is killed at a random moment of every lap (SIGKILL), and the next one goes on in the
  same folder; in the end such a lap must have come to the same bytes as the one that nothing happened to.

67 laps are 7 x 10^8 and 10^7 steps. ``--seconds`` ends a run when its time is over, ``--report FILE`` keeps what was
found, and ``--first`` begins with another lap, so that several machines, or processes, can do different ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.fuzz import peak_memory, reset_peak
from curious_explorer import TRPO, GymWorld, ModelBased, TabularWorld, explore, improve, visit
from curious_explorer.environments import combination_lock, garnet, river_swim
from curious_explorer.gym.cells import GridCells

WALKS = 200_000
STEPS_IN_ENVIRONMENTS = 50_000
WARM = 2
"""After so many laps caches are full, and nothing may grow any more."""
GROWTH, MORE = 1.02, 8 << 20
"""What memory may grow by: pools of the allocator that fill up."""
CAR = GridCells(20, low=[-1.2, -0.07], high=[0.6, 0.07])


class Lap(NamedTuple):
    """What a lap came to, and how the process stood after it."""

    number: int
    tabular: int
    gym: int
    digest: str
    seconds: float
    memory: int
    files: int
    threads: int


def lap(number: int, folder: Path) -> Lap:
    """One lap; what it comes to depends on its number alone."""
    began, digest = time.perf_counter(), hashlib.sha256()
    tabular = gym = 0
    for mdp, learner in ((combination_lock(15), TRPO()), (river_swim(12), ModelBased()), (garnet(60), TRPO())):
        world = TabularWorld(mdp, seed=number)
        found = explore(world, learner, gamma=0.95, rounds=3, visits=20_000, budget=200_000, progress=False)
        learned = improve(world, TRPO(), found.reset_model, gamma=0.95, budget=200_000)
        uniform = np.full((world.num_states, world.num_actions), 1.0 / world.num_actions)
        for array in (learned.policy, visit(world, uniform, gamma=0.9, count=WALKS)):
            digest.update(np.ascontiguousarray(array).tobytes())
        tabular += world.samples
    for name, cells in (("FrozenLake-v1", None), ("CliffWalking-v1", None), ("MountainCar-v0", CAR)):
        kept = folder / f"{number}-{name}"
        samples = STEPS_IN_ENVIRONMENTS * (1 if cells is None else 2)
        explored = explore(GymWorld(name, cells=cells, seed=number), gamma=0.95, samples=samples, checkpoint=kept)
        digest.update((kept / "counts.npz").read_bytes())
        gym += explored.samples
    seconds = time.perf_counter() - began
    return Lap(number, tabular, gym, digest.hexdigest(), seconds, resident(), open_files(), threading.active_count())


def resident() -> int:
    """The memory that this process has now, in bytes."""
    reset_peak()
    return peak_memory()


def open_files() -> int:
    """How many files this process holds open; 0 where the system does not say."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


class Driver:
    """Has laps done by other processes, and kills those."""

    def __init__(self, place: Path, seed: int) -> None:
        self._place, self._rng = place, random.Random(seed)
        self.kills = 0

    def start(self, first: int, count: int, folder: Path) -> subprocess.Popen[str]:
        """Begin some laps in a process of their own."""
        words = [sys.executable, "-m", "benchmarks.soak", "--alone", str(first), str(count), str(folder)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def laps(self, first: int, count: int, folder: Path) -> Generator[Lap, None, None]:
        """Laps that nothing happens to, in one process, which ends when nobody asks for more."""
        process = self.start(first, count, folder)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield Lap(*json.loads(line))
        except GeneratorExit:
            process.kill()
            process.wait()
            return
        if process.wait():
            raise RuntimeError(f"laps from {first} on ended with {process.returncode}")

    def killed_lap(self, number: int, folder: Path, longest: float) -> Lap:
        """A lap whose process is killed at a random moment, twice at most, and which then goes on."""
        for _ in range(2):
            process = self.start(number, 1, folder)
            try:
                said, _ = process.communicate(timeout=self._rng.uniform(0.2, 1.0) * longest)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                self.kills += 1
            else:
                return Lap(*json.loads(said))
        (done,) = self.laps(number, 1, folder)
        return done


def soak(options: argparse.Namespace, place: Path) -> list[str]:
    """All laps that were asked for; what was wrong with them."""
    driver, began = Driver(place, options.seed + options.first), time.monotonic()
    laps: list[Lap] = []
    killed: list[Lap] = []
    wrong: list[str] = []

    def tell() -> None:
        every = [*laps, *killed]
        counts = {"tabular": sum(each.tabular for each in every), "gym": sum(each.gym for each in every)}
        counts |= {"laps": len(laps), "killed_laps": len(killed), "kills": driver.kills}
        told = {**counts, "seconds": time.monotonic() - began, "wrong": wrong}
        if options.report is not None:
            options.report.write_text(json.dumps({**told, "undisturbed": [each._asdict() for each in laps]}) + "\n")
        print(json.dumps(told), flush=True)

    with closing(driver.laps(options.first, options.laps, place / "undisturbed")) as undisturbed:
        for done in undisturbed:
            laps.append(done)
            if done.number % 10 == 0:
                print(words(done), flush=True)
                tell()
            if time.monotonic() - began > options.seconds:
                break
    if laps:
        before, after = laps[min(WARM, len(laps)) - 1], laps[-1]
        print(f"after lap {before.number}: {words(before)}\nafter lap {after.number}: {words(after)}")
        if after.memory > GROWTH * before.memory + MORE:
            wrong.append(f"memory grew from {before.memory:,} to {after.memory:,} bytes")
        if (after.files, after.threads) > (before.files, before.threads):
            wrong.append(f"open files grew from {before.files} to {after.files}")
    longest = max((each.seconds for each in laps), default=0.0) + 3.0  # what is imported takes time, too
    for lap_before in laps[: options.killed]:
        if time.monotonic() - began > options.seconds:
            break
        again = driver.killed_lap(lap_before.number, place / "killed", longest)
        killed.append(again)
        if again.digest != lap_before.digest:
            wrong.append(f"lap {again.number} came to other bytes after it was killed")
        tell()
    tell()
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--laps", type=int, default=67, help="undisturbed ones, in one process")
    parser.add_argument("--killed", type=int, default=20, help="laps, of these, that are done again and killed")
    parser.add_argument("--first", type=int, default=0, help="the number of the first lap")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other lap after so many")
    parser.add_argument("--report", type=Path, help="keep what was found in this file, as it goes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", nargs=3, metavar=("FIRST", "COUNT", "FOLDER"), help="do laps, in this process")
    options = parser.parse_args()
    if options.alone:
        first, count, folder = options.alone
        for number in range(int(first), int(first) + int(count)):
            print(json.dumps(lap(number, Path(folder))), flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        wrong = soak(options, Path(name))
    for problem in wrong:
        print(f"  {problem}")
    sys.exit(1 if wrong else 0)


def words(done: Lap) -> str:
    """How the process stood after a lap."""
    return f"{done.memory / 2**20:.1f} MiB, {done.files} open files, {done.threads} threads, {done.seconds:.1f} s"


if __name__ == "__main__":
    main()
