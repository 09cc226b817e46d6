"""What an executor is: something that is given a function and jobs, and hands out results as they come."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

QUEUED_PER_WORKER = 2
"""Jobs handed to each worker: enough that none waits, few enough that an interruption loses little."""


class Executor(Protocol):
    """Runs jobs somewhere; `Inline`, `Processes` and `Ray` are three, and any object with these methods is another."""

    def check(self) -> None:
        """Refuse now, with a ``ValueError``, what would fail later; called before a grid writes its first file."""

    def run(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> Generator[Result, None, None]:
        """The result of each job, as soon as it is there, in no particular order.

        A failing job ends the iteration with its exception; results that came before it have been handed out. Closing
        the generator abandons the jobs that are not finished.
        """
