"""Which executor is meant: by name, by object, or by the number of workers alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing

from curious_explorer.studies.executors.executor import Executor, Job, Result
from curious_explorer.studies.executors.local import Inline, Processes
from curious_explorer.studies.executors.on_ray import Ray
from curious_explorer.studies.paper_grid import check_name
from curious_explorer.validation import check_count

EXECUTORS = ("inline", "processes", "ray")


def make_executor(executor: str | Executor | None = None, *, workers: int | None = None) -> Executor:
    """The executor that is meant.

    Args:
        executor: one of `EXECUTORS`, or an object, which is used as it is. Without one, more than one worker means
            ``processes``, and anything else ``inline``.
        workers: how many jobs at once; by default all cores for ``processes``, and all that the cluster has room for
            with ``ray``. An object knows this itself, and ``inline`` does one job at a time.
    """
    if workers is not None:
        check_count(workers, "workers", least=1)
    if executor is None:
        executor = "inline" if workers in (None, 1) else "processes"
    if not isinstance(executor, str):
        if workers is not None:
            raise ValueError(f"workers is {workers}, and {executor!r} knows that itself; leave workers out")
        return executor
    check_name(executor, EXECUTORS, "executor")
    if executor == "ray":
        return Ray(workers=workers)
    if executor == "processes":
        return Processes() if workers is None else Processes(workers=workers)
    if workers not in (None, 1):
        raise ValueError(
            f"workers is {workers}, and the executor 'inline' does one job after the other; choose the executor "
            "'processes', or leave one of the two out"
        )
    return Inline()


def near_the_files(executor: Executor) -> Executor:
    """The executor for jobs that write files: a cluster's nodes do not see this machine's disk."""
    return executor if isinstance(executor, Inline | Processes) else Processes()


def run_jobs(
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    executor: str | Executor | None = None,
    workers: int | None = None,
) -> Generator[Result, None, None]:
    """The result of each job, as soon as it is there; see `make_executor` and `Executor.run`."""
    with closing(make_executor(executor, workers=workers).run(function, jobs)) as results:
        yield from results
