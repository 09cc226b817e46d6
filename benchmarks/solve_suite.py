"""``python -m benchmarks.solve_suite``: `curious-explorer solve` with nothing but an id, samples and a seed.

    python -m benchmarks.solve_suite --seeds 3 --workers 16 --minutes 5 --out results/solve_suite

Each run is a process with one thread. What came of it is a line of ``OUT/runs.jsonl``; the same command makes what is
missing, and goes on with what was stopped at the time limit. ``OUT/table.md`` is what docs/solve.md shows. Samples are
stated here, before anything is run. A run counts as solved if the program itself says so; where rewards come nearly
everywhere and no registration says how much is enough, this table says it (`SuiteTask.enough`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress

from curious_explorer import solve_task
from curious_explorer.studies.executors import available_cores
from curious_explorer.studies.solve_files import kept_stages

Run = dict[str, Any]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
RUNS_FILE, TABLE_FILE = "runs.jsonl", "table.md"
WAIT = 0.2
"""Seconds between two looks at the processes."""


class SuiteTask(NamedTuple):
    """One task: an id, and how many samples."""

    environment: str
    samples: int
    enough: float | None = None
    """The mean return that counts as solved, where the program cannot know."""
    needs: str | None = None
    """The module of a package of its own, without which it is left out."""


def _grid(name: str, samples: int, version: int = 0) -> SuiteTask:
    return SuiteTask(f"MiniGrid-{name}-v{version}", samples)


def _small(name: str, samples: int, enough: float | None = None) -> SuiteTask:
    return SuiteTask(f"benchmarks.solve_tasks:solve/{name}-v0", samples, enough)


def _outside(name: str, samples: int, needs: str, enough: float | None = None) -> SuiteTask:
    return SuiteTask(f"benchmarks.outside_tasks:outside/{name}-v0", samples, enough, needs)


def _fresh(name: str, samples: int, enough: float | None = None) -> SuiteTask:
    return SuiteTask(f"benchmarks.fresh_tasks:fresh/{name}-v0", samples, enough)


STUDIES = "benchmarks.gym_studies.tasks:studies"
TASKS: dict[str, SuiteTask] = {
    "CartPole": SuiteTask("CartPole-v1", 60_000),
    "FrozenLake": SuiteTask("FrozenLake-v1", 50_000),
    "FrozenLake8x8": SuiteTask("FrozenLake8x8-v1", 100_000),
    "Taxi": SuiteTask("Taxi-v4", 100_000, enough=7.0),
    "MountainCar": SuiteTask("MountainCar-v0", 100_000),
    "MountainCarGoal": SuiteTask(f"{STUDIES}/MountainCarGoal-v0", 100_000),
    "MountainCarContinuous": SuiteTask("MountainCarContinuous-v0", 100_000),
    "AcrobotGoal": SuiteTask(f"{STUDIES}/AcrobotGoal-v0", 100_000),
    **{f"KeyCorridor{name}": _grid(f"KeyCorridor{name}", 300_000) for name in ("S3R1", "S3R3", "S4R3")},
    "MultiRoom-N4-S5": _grid("MultiRoom-N4-S5", 150_000, version=1),
    "MultiRoom-N6": _grid("MultiRoom-N6", 300_000),
    "DoorKey-8x8": _grid("DoorKey-8x8", 150_000),
    "DoorKey-16x16": _grid("DoorKey-16x16", 300_000),
    "UnlockPickup": _grid("UnlockPickup", 150_000),
    "BlockedUnlockPickup": _grid("BlockedUnlockPickup", 300_000),
    **{f"ObstructedMaze-{name}": _grid(f"ObstructedMaze-{name}", 300_000) for name in ("1Dlh", "1Dlhb", "2Dlh")},
    "DoorKeyPixels": _small("DoorKeyPixels", 100_000),
    "MultiRoomPixels": _small("MultiRoomPixels", 100_000),
    "PendulumUp": _small("PendulumUp", 100_000, enough=100.0),
    "SwingUp": _small("SwingUp", 300_000, enough=300.0),
    "SwingUpHard": _small("SwingUpHard", 300_000, enough=300.0),
    "Reach": _small("Reach", 100_000, enough=-15.0),
    **{
        name: _small(name, 100_000)
        for name in ("KeyRoom", "SlipperyKeyRoom", "PointMaze", "SetBits", "Dials", "TwoGoals", "BlinkingRoom")
    },
    "SoftLanding": _small("SoftLanding", 100_000),
    "NearSight": _small("NearSight", 100_000),
    "Current": _small("Current", 200_000),
    "StickyCar": _small("StickyCar", 100_000),
    **{name: _fresh(name, 100_000) for name in ("PricedMaze", "NumberLock", "WindyCliff", "ToldOnce")},
    "PictureRooms": _fresh("PictureRooms", 150_000),
    "PaidAtHome": _fresh("PaidAtHome", 150_000, enough=0.99),
    "CartpoleSwingupSparse": _outside("CartpoleSwingupSparse", 500_000, "dm_control", enough=300.0),
    "BsuiteSwingup": _outside("BsuiteSwingup", 300_000, "bsuite", enough=300.0),
    "PointMazeLarge": _outside("PointMazeLarge", 500_000, "gymnasium_robotics"),
    **{name: _fresh(name, 200_000) for name in ("FourRooms", "AmongNoise", "TwoControls", "FreeForce")},
}


HERE = [name for name, task in TASKS.items() if task.needs is None or importlib.util.find_spec(task.needs)]
"""Tasks whose packages are there."""


def solved(run: Run) -> bool:
    """Whether a run that was finished has solved its task: by what is stated here, if anything is."""
    enough = TASKS[run["task"]].enough
    return bool(run["return_mean"] >= enough) if enough is not None else str(run["verdict"]).startswith("Solved")


def run_one(name: str, seed: int, folder: Path) -> Run:
    """One run, in this process; goes on where it stood."""
    warnings.simplefilter("ignore")
    task, began = TASKS[name], time.process_time()
    summary = solve_task(task.environment, samples=task.samples, seed=seed, out=folder).summary
    agent = summary["settings"]["agent"]
    shown = ("success", "success_return", "return_mean", "samples", "explored", "first_reward", "verdict")
    return {
        "task": name,
        "seed": seed,
        "given": task.samples,
        **{key: summary[key] for key in shown},
        "acts": f"network, {agent['folder']}" if agent["kind"] == "network" else agent["kind"],
        "seconds": round(time.process_time() - began, 1),
    }


def read(path: Path) -> list[Run]:
    """The runs that are there; a line that was cut off by a kill is no run."""
    runs = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return runs


def make_runs(jobs: list[tuple[str, int]], out: Path, workers: int, seconds: float) -> list[str]:
    """Run what is missing, so many at once; returns what was not finished in time, and what failed."""
    ends, waiting, running, unfinished = time.monotonic() + seconds, list(jobs), list[Any](), list[str]()
    try:
        with Progress(console=Console(stderr=True)) as progress:
            bar = progress.add_task("Runs", total=len(jobs))
            while waiting or running:
                late = time.monotonic() > ends
                while waiting and not late and len(running) < workers:
                    running.append(_begin(*waiting.pop(0), out))
                if late:
                    for *_, process in running:
                        process.terminate()
                    unfinished += [f"{name}, seed {seed}: not begun in time" for name, seed in waiting]
                    waiting = []
                for name, seed, log, process in [each for each in running if late or each[-1].poll() is not None]:
                    code = process.wait()
                    log.close()
                    if code:
                        unfinished.append(f"{name}, seed {seed}: {_how_far(name, seed, out, late=late)}")
                    running = [each for each in running if each[-1] is not process]
                    progress.advance(bar)
                time.sleep(WAIT)
    finally:
        for *_, process in running:
            process.kill()
    return unfinished


def _begin(name: str, seed: int, out: Path) -> tuple[str, int, Any, subprocess.Popen[bytes]]:
    """Begin a run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.solve_suite", "--one", name, str(seed), "--out", str(out)]
    log = (out / "runs" / f"{name}-{seed}.log").open("w")
    return name, seed, log, subprocess.Popen(command, env=os.environ | ONE_THREAD, stderr=log)


def _how_far(name: str, seed: int, out: Path, *, late: bool) -> str:
    """Why a run has no line."""
    if late:
        stages = kept_stages(_folder(name, seed, out)) or {}
        return f"stopped at the time limit, after the stages {', '.join(stages) or 'none'}"
    lines = (out / "runs" / f"{name}-{seed}.log").read_text().strip().splitlines()
    return f"failed: {lines[-1] if lines else 'without a word'}"


def _folder(name: str, seed: int, out: Path) -> Path:
    return out / "runs" / f"{name}-{seed}"


def table(runs: list[Run], unfinished: list[str]) -> str:
    """The table of docs/solve.md: a line a task, and the verdicts of those that failed."""
    lines = [
        "| task | samples given | solved | success by seed | mean return | used | first reward after | acts |",
        "|---|---|---|---|---|---|---|---|",
    ]
    found = {name: sorted((run for run in runs if run["task"] == name), key=lambda run: run["seed"]) for name in TASKS}
    there = {name: of_task for name, of_task in found.items() if of_task}
    for name, of_task in there.items():
        good = sum(map(solved, of_task))
        success = ", ".join(f"{run['success']:.0%}" for run in of_task)
        returns = ", ".join(f"{run['return_mean']:.3g}" for run in of_task)
        firsts = [run["first_reward"] for run in of_task if run["first_reward"] is not None]
        first = f"{np.median(firsts):,.0f}" if len(firsts) == len(of_task) else f"seen by {len(firsts)}"
        used = f"{np.median([run['samples'] for run in of_task]):,.0f}"
        acts = ", ".join(dict.fromkeys(run["acts"] for run in of_task))
        given = f"{of_task[0]['given']:,}"
        lines.append(
            f"| {name} | {given} | {good} of {len(of_task)} | {success} | {returns} | {used} | {first} | {acts} |"
        )
    by_all = sum(all(map(solved, of_task)) for of_task in there.values())
    by_most = sum(2 * sum(map(solved, of_task)) > len(of_task) for of_task in there.values())
    seconds = sum(run["seconds"] for run in runs)
    made = f"{len(there)} tasks, {len(runs)} runs, {seconds:,.0f} core-seconds"
    lines += ["", f"{made}: {by_most} solved with most seeds, {by_all} with all."]
    failed = [run for of_task in there.values() for run in of_task if not solved(run)]
    if failed:
        lines += ["", "| not solved | the program's own verdict |", "|---|---|"]
        lines += [f"| {run['task']}, seed {run['seed']} | {_in_a_cell(run['verdict'])} |" for run in failed]
    if unfinished:
        lines += ["", "Not finished:", "", *(f"- {each}" for each in unfinished)]
    return "\n".join(lines) + "\n"


def _in_a_cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def main() -> None:
    """Make what is missing, within the time; then show everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=HERE)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--minutes", type=float, default=60.0, help="after which runs that are not done are stopped")
    parser.add_argument("--out", type=Path, default=Path("results/solve_suite"))
    parser.add_argument("--one", nargs=2, metavar=("TASK", "SEED"), help="only this run, here; what workers are told")
    given = parser.parse_args()
    (given.out / "runs").mkdir(parents=True, exist_ok=True)
    path = given.out / RUNS_FILE
    if given.one is not None:
        name, seed = given.one[0], int(given.one[1])
        line = json.dumps(run_one(name, seed, _folder(name, seed, given.out)))
        with path.open("a") as stream:
            stream.write(line + "\n")
        return
    done = {(run["task"], run["seed"], run["given"]) for run in read(path)}
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    # All tasks with one seed before the next seed, and those with most samples first, so that workers end together.
    tasks = sorted(given.tasks, key=lambda name: -TASKS[name].samples)
    jobs = [(name, seed) for seed in seeds for name in tasks if (name, seed, TASKS[name].samples) not in done]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is ended, too
    text = table_after(jobs, given.out, given.workers, 60.0 * given.minutes)
    print(text)


def table_after(jobs: list[tuple[str, int]], out: Path, workers: int, seconds: float) -> str:
    """The table once these runs were made, also written into the folder."""
    unfinished = make_runs(jobs, out, workers, seconds)
    text = table(read(out / RUNS_FILE), unfinished)
    (out / TABLE_FILE).write_text(text)
    return text


if __name__ == "__main__":
    main()
