"""Where jobs run: here, in worker processes, or on a Ray cluster. Results do not depend on it, only time does."""

from curious_explorer.studies.executors.choosing import EXECUTORS, make_executor, near_the_files, run_jobs
from curious_explorer.studies.executors.executor import Executor
from curious_explorer.studies.executors.local import Inline, Processes, available_cores
from curious_explorer.studies.executors.on_ray import Ray

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
