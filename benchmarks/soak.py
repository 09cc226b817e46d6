"""``python -m benchmarks.soak``: many millions of steps in one process, with kills, and whether anything grows.

A lap takes about four million steps in tables (rounds of Algorithm 2, learning, walks) and 200,000 in Gymnasium
environments (explorations by counts, with checkpoints in a folder). Laps are done by a process of their own:

- with **kills**: the process is killed at a random moment of every lap (SIGKILL), and the next one goes on in the same
  folder; in the end such a lap must have come to the same bytes as one in a fresh folder that nothing happened to;
- then **undisturbed**, in one process: its memory, open files and threads after the second lap and after the last.

50 laps of each kind are 2 x 10^8 and 10^7 steps twice.
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
from collections.abc import Iterator
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

    def laps(self, first: int, count: int, folder: Path) -> Iterator[Lap]:
        """Laps that nothing happens to, in one process."""
        process = self.start(first, count, folder)
        assert process.stdout is not None
        for line in process.stdout:
            yield Lap(*json.loads(line))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--laps", type=int, default=50, help="undisturbed ones, in one process")
    parser.add_argument("--killed", type=int, default=50, help="laps that are killed on the way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", nargs=3, metavar=("FIRST", "COUNT", "FOLDER"), help="do laps, in this process")
    options = parser.parse_args()
    if options.alone:
        first, count, folder = options.alone
        for number in range(int(first), int(first) + int(count)):
            print(json.dumps(lap(number, Path(folder))), flush=True)
        return
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        driver, began = Driver(place, options.seed), time.monotonic()
        laps: list[Lap] = []
        for done in driver.laps(0, options.laps, place / "undisturbed"):
            laps.append(done)
            if done.number % 10 == 0:
                print(words(done), flush=True)
        before, after = laps[min(WARM, len(laps)) - 1], laps[-1]
        print(f"after lap {before.number}: {words(before)}\nafter lap {after.number}: {words(after)}")
        if after.memory > GROWTH * before.memory + MORE:
            wrong.append(f"memory grew from {before.memory:,} to {after.memory:,} bytes")
        if (after.files, after.threads) > (before.files, before.threads):
            wrong.append(f"open files grew from {before.files} to {after.files}")
        longest = max(each.seconds for each in laps) + 3.0  # what is imported takes time, too
        killed = [driver.killed_lap(number, place / "killed", longest) for number in range(options.killed)]
        expected = {each.number: each.digest for each in laps}
        others = [each.number for each in killed if expected.get(each.number, each.digest) != each.digest]
        wrong += [f"lap {number} came to other bytes after it was killed" for number in others]
        every = [*laps, *killed]
        print(
            f"{sum(each.tabular for each in every):,} steps in tables and {sum(each.gym for each in every):,} in "
            f"environments, {driver.kills} kills, {time.monotonic() - began:,.0f} seconds, {len(wrong)} wrong"
        )
    for problem in wrong:
        print(f"  {problem}")
    sys.exit(1 if wrong else 0)


def words(done: Lap) -> str:
    """How the process stood after a lap."""
    return f"{done.memory / 2**20:.1f} MiB, {done.files} open files, {done.threads} threads, {done.seconds:.1f} s"


if __name__ == "__main__":
    main()
