"""`solve` for several seeds, anywhere: a folder for each, and a table of all.

OUT/seed-0, seed-1, ...   runs of `solve`, each of which goes on where it stood
OUT/seeds.json            their summaries, and the spread of what they came to

Each run writes where it is done: on a cluster whose machines share no disk only the summaries come back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.storage import Format, write_json
from curious_explorer.studies.executors import Executor
from curious_explorer.studies.runner import MOST_RUNS, make_executor
from curious_explorer.studies.solving import SolveSettings, solve_task
from curious_explorer.validation import check_count

SEEDS, SEEDS_FILE = Format("curious-explorer/solve-seeds", 1), "seeds.json"


@dataclass(frozen=True)
class SolveJob:
    """One seed's run."""

    settings: SolveSettings
    folder: str

    def run(self) -> dict[str, Any]:
        """Its summary."""
        return solve_task(out=self.folder, **asdict(self.settings)).summary


def solve_seeds(
    settings: SolveSettings,
    seeds: int,
    out: str | Path,
    *,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Solve a task with so many seeds, the first of which is that of the settings; returns their summaries in order.

    Args:
        settings: what to solve.
        seeds: how many.
        out: the folder for all of them.
        executor: ``inline``, ``processes``, ``ray``, or an `Executor`.
        workers: how many at once.
        on_run: told each summary as soon as it is there.
    """
    check_count(seeds, "seeds", least=1, most=MOST_RUNS)
    folder = Path(out).resolve()
    chosen = make_executor(executor, workers=workers)
    chosen.check()
    jobs = [
        SolveJob(replace(settings, seed=seed), str(folder / f"seed-{seed}"))
        for seed in range(settings.seed, settings.seed + seeds)
    ]
    summaries = []
    with closing(chosen.run(SolveJob.run, jobs)) as runs:
        for summary in runs:
            summaries.append(summary)
            if on_run is not None:
                on_run(summary)
    summaries.sort(key=lambda summary: int(summary["seed"]))
    together = {
        name: [float(np.mean([each[name] for each in summaries])), float(np.std([each[name] for each in summaries]))]
        for name in ("success", "return_mean", "samples")
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / SEEDS_FILE, SEEDS, {"runs": summaries, "mean_and_standard_deviation": together})
    return summaries
