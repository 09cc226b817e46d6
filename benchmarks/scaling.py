"""``python -m benchmarks.scaling``: what grows how: time, memory and samples against |S|, depth, rounds and seeds.

Every case runs in a process of its own, so that its peak memory is its own; what it measured goes to ``scaling.json``,
case by case, and into one figure. Times are processor time; on a GPU, time on the clock. ``--backend triton`` walks on
the GPU and goes on to 10^7 states; ``--large`` does so on the CPU.

Coverage compares what Curious Explorer has visited with uniform random walks that take as many steps in all, at the
best of three walk lengths: on a large maze that is a rival to be taken seriously, and it often wins.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies import fraction_of_optimum
from curious_explorer import TRPO, FiniteMDP, TabularWorld, explore, improve, visit
from curious_explorer.environments import combination_lock, deep_sea, garnet, one_way_maze
from curious_explorer.explorers.thresholds import constant, default_beta
from curious_explorer.storage import write_atomically

Measured = dict[str, Any]


def peak_bytes() -> int:
    """The most memory that this process has held, mapped files included where they were touched."""
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Clock(dict[str, float]):
    """Seconds by name: processor time of all threads, which neighbours change little; with a GPU, by the clock."""

    def __init__(self, backend: str) -> None:
        self._now = time.process_time if backend == "numba" else time.perf_counter

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        """Measure a block."""
        began = self._now()
        yield
        self[name] = self._now() - began


def model(states: int, backend: str) -> Measured:
    """Build, save, load and walk a Garnet of this size."""
    seconds, empty = Clock(backend), peak_bytes()
    with seconds.timing("build"):
        mdp = garnet(states)
    rows = mdp.transitions
    arrays = (rows.data, rows.indices, rows.indptr, mdp.rewards, mdp.start, mdp.terminal)
    built = peak_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        with seconds.timing("save"):
            mdp.save(path)
        saved = peak_bytes()
        with seconds.timing("load"):
            del mdp, rows
            mdp = FiniteMDP.load(path)
        with seconds.timing("load mapped"):
            mdp = FiniteMDP.load(path, mmap=True)
        on_disk = path.stat().st_size
        TabularWorld(garnet(10), backend=backend)  # compiles
        with seconds.timing("world"):
            world = TabularWorld(mdp, backend=backend)
        policy = mdp.uniform_policy()
        policy.flags.writeable = False
        walks = 2_000_000 if world.backend == "numba" else 200_000_000  # a second or so
        visit(world, policy, gamma=0.95, count=walks)
        before = world.samples
        with seconds.timing("visit"):
            visit(world, policy, gamma=0.95, count=walks)
    return {
        "states": states,
        "seconds": seconds,
        "array_bytes": sum(array.nbytes for array in arrays),
        "file_bytes": on_disk,
        "build_bytes": built - empty,
        "save_bytes": saved - empty,
        "steps_a_second": (world.samples - before) / seconds["visit"],
    }


def exploration(states: int, rounds: int, backend: str) -> Measured:
    """Curious Explorer on a maze: what a round costs, whatever it achieves."""
    mdp = one_way_maze(round(states**0.5))
    explore(TabularWorld(one_way_maze(4), backend=backend), TRPO(updates=2), gamma=0.99, rounds=2, progress=False)
    world, seconds = TabularWorld(mdp, backend=backend), Clock(backend)
    with seconds.timing("explore"), tempfile.TemporaryDirectory() as folder:
        done = explore(
            world, TRPO(updates=20), gamma=0.99, rounds=rounds, visits=50_000, checkpoint=folder, progress=False
        )
        stored = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {
        "states": mdp.num_states,
        "rounds": rounds,
        "seconds": seconds,
        "samples": world.samples,
        "visit_samples": sum(done_round.visit_samples for done_round in done.rounds),
        "checkpoint_bytes": stored,
    }


def depth(levels: int, backend: str) -> Measured:
    """Exploration and learning on a combination lock."""
    mdp, seconds = combination_lock(levels), Clock(backend)
    world = TabularWorld(mdp, backend=backend)
    if levels <= 20:
        gamma, exploring, learning = 0.95, TRPO(updates=60), TRPO()
    else:  # as in `benchmarks.depth`: longer walks, and small steps on shrunken advantages
        small_steps = TRPO(episodes=100, max_kl=0.02, advantage_memory=20, trace=0.98)
        gamma, exploring, learning = 0.98, small_steps, replace(small_steps, updates=600, episodes=300)
    with seconds.timing("all"):
        explored = explore(world, exploring, gamma=gamma, rounds=20, progress=False)
        learned = improve(world, learning, explored.reset_model, gamma=gamma, evaluation_episodes=0)
    fraction = fraction_of_optimum(mdp, learned.policy, gamma)
    return {"depth": levels, "seconds": seconds, "samples": world.samples, "fraction": fraction}


def seeds(count: int, backend: str) -> Measured:
    """The same small exploration with many seeds, one after the other."""
    mdp, seconds, samples = combination_lock(20), Clock(backend), 0
    explore(TabularWorld(mdp, backend=backend), TRPO(updates=2), gamma=0.95, rounds=2, progress=False)
    with seconds.timing("all"):
        for seed in range(count):
            world = TabularWorld(mdp, seed=seed, backend=backend)
            explore(world, TRPO(updates=60), gamma=0.95, rounds=20, progress=False)
            samples += world.samples
    return {"seeds": count, "seconds": seconds, "samples": samples}


def coverage(problem: str, states: int, backend: str) -> Measured:
    """How many states Curious Explorer has visited, against random walks with as many steps in all."""
    if problem == "maze":
        mdp, gamma = one_way_maze(round(states**0.5)), 0.99
    else:
        mdp, gamma = deep_sea(round((2 * states) ** 0.5)), 0.999
    world, seconds = TabularWorld(mdp, backend=backend), Clock(backend)
    with seconds.timing("explore"):
        explored = explore(
            world,
            TRPO(updates=40, episodes=100),
            gamma=gamma,
            rounds=10,
            visits=100_000 if problem == "maze" else 20_000,
            thresholds=constant(default_beta(mdp.num_states)),
            progress=False,
        )
    seen = np.zeros(mdp.num_states, dtype=np.bool_)
    for done in explored.rounds:
        seen |= done.visited > 0.0
    visited = sum(done.visit_samples for done in explored.rounds)
    by_chance = {}
    for factor in (0.1, 1.0, 10.0):
        length = factor / (1.0 - gamma)
        discount = length / (1.0 + length)
        ends = visit(world, mdp.uniform_policy(), gamma=discount, count=max(1, int(explored.samples / length)))
        by_chance[f"{length:.0f}"] = int((ends > 0).sum())
    return {
        "problem": problem,
        "states": mdp.num_states,
        "gamma": gamma,
        "seconds": seconds,
        "samples": explored.samples,
        "visit_samples": visited,
        "seen": int(seen.sum()),
        "seen_at_first": int((explored.rounds[0].visited > 0.0).sum()),
        "seen_by_random_walks_of": by_chance,
    }


STUDIES: dict[str, Callable[..., Measured]] = {
    "model": model,
    "exploration": exploration,
    "depth": depth,
    "seeds": seeds,
    "coverage": coverage,
}


def cases(*, large: bool) -> list[Measured]:
    """What to run; the largest sizes only where asked for."""
    sizes = [10**4, 10**5, 10**6] + [10**7] * large
    listed: list[Measured] = [{"study": "model", "states": size} for size in sizes]
    listed += [{"study": "exploration", "states": size, "rounds": 4} for size in sizes]
    listed += [{"study": "exploration", "states": 10**5, "rounds": rounds} for rounds in (1, 2, 8, 16)]
    listed += [{"study": "depth", "levels": levels} for levels in (5, 10, 20, 40)]
    listed += [{"study": "seeds", "count": count} for count in (1, 4, 16)]
    listed += [{"study": "coverage", "problem": "maze", "states": size} for size in (10**4, 10**6)]
    listed += [{"study": "coverage", "problem": "deep sea", "states": size} for size in (10**4, 10**6)]
    if large:
        listed.append({"study": "coverage", "problem": "maze", "states": 10**7})
    return listed


def run_alone(case: Measured) -> Measured:
    """One case in a process of its own; a case that fails says why and spoils no other."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--case", json.dumps(case)]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {**case, "error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}
    return {**case, **json.loads(done.stdout), "process_seconds": time.perf_counter() - began}


def run_case(case: Measured) -> Measured:
    """One case, here."""
    arguments = dict(case)
    measured = STUDIES[arguments.pop("study")](**arguments)
    return {**measured, "peak_bytes": peak_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numba", help="numba, triton or auto (numba)")
    parser.add_argument("--out", type=Path, default=Path("results/scaling"), help="a folder (results/scaling)")
    parser.add_argument("--large", action="store_true", help="up to 10^7 states; always so with --backend triton")
    parser.add_argument("--studies", nargs="*", choices=STUDIES, default=list(STUDIES), help="only these")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        print(json.dumps(run_case(json.loads(given.case))))
        return
    given.out.mkdir(parents=True, exist_ok=True)
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    report: Measured = {"backend": given.backend, "machine": machine, "cases": []}
    for case in cases(large=given.large or given.backend == "triton"):
        if case["study"] in given.studies:
            measured = run_alone({**case, "backend": given.backend})
            print(json.dumps(measured), flush=True)
            report["cases"].append(measured)
            write_atomically(given.out / "scaling.json", json.dumps(report, indent=1) + "\n")
    from benchmarks import scaling_figure  # here, because a machine that measures need not have Matplotlib

    scaling_figure.draw(report, given.out / "scaling.png")


if __name__ == "__main__":
    main()
