"""Where jobs run: here, in worker processes, or on a Ray cluster. Results do not depend on it, only time does."""

from curious_explorer.experiments.executors.choosing import EXECUTORS, make_executor, near_the_files, run_jobs
from curious_explorer.experiments.executors.local import Inline, Processes, available_cores
from curious_explorer.experiments.executors.on_ray import Ray
from curious_explorer.experiments.executors.protocol import Executor

__all__ = [
    "EXECUTORS",
    "Executor",
    "Inline",
    "Processes",
    "Ray",
    "available_cores",
    "make_executor",
    "near_the_files",
    "run_jobs",
]
