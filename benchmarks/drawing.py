"""``python -m benchmarks.drawing RUNS --before CHECKOUT``: all figures and the film of a study, drawn by two versions.

RUNS is a folder of ``curious-explorer reproduce``, and CHECKOUT one of an earlier version of this repository (``git
worktree add CHECKOUT d444be6`` is the last one before drawing was made faster). Both draw the same runs, each in a
process of its own, one figure after the other, and in turns, so that what else the machine does hits both alike.
Processor time counts the film's encoder, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parents[1]
DRAW = """
import os, sys, time
from pathlib import Path
from types import SimpleNamespace

from curious_explorer.studies import reproduction
from curious_explorer.studies.executors import Inline
from curious_explorer.studies.paper_experiments import Study

# The settings of the runs name the version that made them, which another would refuse: the runs are read without.
folder = SimpleNamespace(path=Path(sys.argv[1]), check_digest=lambda digest: None)
seeds = len(list((folder.path / "runs" / "cct-5-trpo").glob("*.npz")))
study = Study(seeds=seeds)
runs = [reproduction.load_run(folder, experiment, seed) for experiment in study.experiments for seed in range(seeds)]
wall, processor = time.perf_counter(), sum(os.times()[:4])
reproduction.draw_everything(runs, Path(sys.argv[2]), executor=Inline(), tell=lambda words: None)
print(time.perf_counter() - wall, sum(os.times()[:4]) - processor)
"""
"""What both do; it keeps to names that both have. ``os.times`` counts processes that have ended, like the encoder."""


def draw(runs: Path, checkout: Path) -> tuple[float, float]:
    """Seconds by the clock, and of processors."""
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(checkout / "src")}
    with tempfile.TemporaryDirectory() as target:
        words = [sys.executable, "-c", DRAW, str(runs), target]
        done = subprocess.run(words, env=os.environ | alone, capture_output=True, text=True, check=True)
        files = sorted(path.suffix for path in Path(target).rglob("*.*"))
    if files.count(".mp4") != 1 or files.count(".png") < 20:
        sys.exit(f"{checkout} drew {len(files)} files, expected a film and all figures")
    wall, processor = done.stdout.split()
    return float(wall), float(processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of an earlier version")
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    checkouts = {"before": chosen.before.resolve(), "now": HERE}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in checkouts}
    for _ in range(chosen.times):
        for name, checkout in checkouts.items():
            seconds[name].append(draw(chosen.runs.resolve(), checkout))
            print(f"{name}: {seconds[name][-1][0]:.1f} s by the clock, {seconds[name][-1][1]:.1f} s of processors")
    table = Table("", *(f"{name}, median of {chosen.times} (range)" for name in checkouts), "before / now")
    for at, what in enumerate(("seconds by the clock", "seconds of processors")):
        taken = [[each[at] for each in seconds[name]] for name in checkouts]
        cells = [f"{statistics.median(each):.1f} ({min(each):.1f} to {max(each):.1f})" for each in taken]
        table.add_row(what, *cells, f"{statistics.median(taken[0]) / statistics.median(taken[1]):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
