"""One run of the studies, by name: what workers are sent."""

from __future__ import annotations

import os
import warnings
from typing import Any

from benchmarks.gym_studies.tabular import TABULAR_TASKS, run_tabular
from benchmarks.gym_studies.tasks import TASKS

Run = dict[str, Any]


def run_named(named: tuple[str, str, int]) -> Run:
    """The run of a task, an arm and a seed."""
    task, arm, seed = named
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: small networks are slower on more
    warnings.simplefilter("ignore")
    if task in TABULAR_TASKS:
        return run_tabular(TABULAR_TASKS[task], arm, seed)
    from benchmarks.gym_studies.learning import run

    return run(TASKS[task], arm, seed)
