"""``make bench``: everything about speed in one run, ratios side by side.

Absolute times depend on the machine and on its neighbours; the ratios are what to look at.
"""

from __future__ import annotations

import platform
import subprocess
import sys

import numba
import numpy as np
from rich.console import Console

from benchmarks import exact_solvers, walks


def second_process_seconds() -> tuple[float, float]:
    """Import time, and time from import to the first `visit`, in a process whose kernels are cached already."""
    code = (
        "import time; a = time.perf_counter(); import curious_explorer as ce; b = time.perf_counter();"
        "from curious_explorer.environments import combination_lock; m = combination_lock(20);"
        "ce.visit(ce.TabularWorld(m), m.uniform_policy(), gamma=0.95, count=100_000);"
        "print(b - a, time.perf_counter() - b)"
    )
    times = []
    for _ in range(4):  # the first one may compile
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        times.append([float(word) for word in output.split()])
    best = np.min(times[1:], axis=0)
    return float(best[0]), float(best[1])


def main() -> None:
    console = Console(width=120)
    console.print(f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}")
    walks.report(console)
    importing, first_visit = second_process_seconds()
    console.print(f"second process: import {importing:.2f} s, first visit {first_visit:.2f} s after that")
    exact_solvers.report(console)


if __name__ == "__main__":
    main()
