"""The paper's experimental section in one call: runs, tables, figures, video and page, in one folder."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from curious_explorer.optional_packages import require
from curious_explorer.storage import Format, write_atomically
from curious_explorer.studies.comparison_results import ComparisonResults
from curious_explorer.studies.comparison_study import load_results
from curious_explorer.studies.executors import Executor
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_figures import FigureJob, draw_figure, figure_jobs
from curious_explorer.studies.paper_results import (
    ExperimentResults,
    by_experiment,
    curves_csv,
    results_csv,
    summary_text,
)
from curious_explorer.studies.paper_run import ExperimentRun, load_run, run_job, run_path, save_run
from curious_explorer.studies.runner import OnRun, Runs, Stages, local_executor, make_executor

OUTPUTS = ("summary.json", "results.csv", "curves.csv", "figures", "exploration.mp4", "report.html", "timings.json")
"""In the order in which they are written."""
VIDEO = "exploration.mp4"
QUICK_SEEDS = 2
RUNS = Runs(
    what="study",
    file="study.json",
    format=Format("curious-explorer/study", 2),
    do=run_job,
    path=lambda folder, job: run_path(folder, *job.key),
    load=lambda folder, job: load_run(folder, *job.key),
    save=save_run,
)


@dataclass(frozen=True)
class Reproduction:
    """A finished reproduction."""

    study: Study
    folder: Path
    runs: list[ExperimentRun]
    seconds: dict[str, float]
    """By stage; empty if everything was there already."""


def run_study(
    study: Study,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    on_run: OnRun[ExperimentRun] | None = None,
) -> list[ExperimentRun]:
    """All runs of a study, in the order of experiments and seeds; see `Runs.run`."""
    runs = RUNS.run(
        study.described(), study.jobs, folder, resume=resume, executor=executor, workers=workers, on_run=on_run
    )
    return _in_order(study, runs)


def _in_order(study: Study, runs: dict[Hashable, ExperimentRun]) -> list[ExperimentRun]:
    return [runs[experiment, seed] for experiment in study.experiments for seed in range(study.seeds)]


def reproduce(
    study: Study,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    comparison: str | Path | None = None,
    on_run: OnRun[ExperimentRun] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Reproduction:
    """Run the study and write everything that is made of it.

    Args:
        study: what to run.
        folder: for ``summary.json``, ``timings.json``, ``results.csv``, ``curves.csv``, ``figures/``,
            ``exploration.mp4``, ``report.html`` and the runs themselves.
        resume: whether the folder may hold a part of the same study already, which is then not done again.
        executor: where to run: ``inline``, ``processes``, ``ray`` or an `Executor`; results do not depend on it.
        workers: how many runs at once; more than one without an executor means ``processes``. Figures are
            drawn on this machine, because they are written to its disk.
        comparison: a folder with a finished comparison of methods, which becomes a section of the page.
        on_run: called for each run, and whether it was there before.
        on_stage: called with the name of each stage as it begins.
    """
    require("plotly")  # before an hour of work, not after it
    chosen = make_executor(executor, workers=workers)
    compared = None if comparison is None else load_results(comparison)
    target = Path(folder)
    stages = Stages(on_stage or (lambda name: None))
    wanted = [name for name in OUTPUTS if name != VIDEO or can_encode()]
    was_complete = all((target / name).exists() for name in wanted)
    RUNS.executor(study.jobs, target, chosen, None)
    with RUNS.claim(study.described(), target, resume=resume) as claimed:
        with stages.stage("runs"):
            runs = _in_order(study, RUNS.finish(study.jobs, claimed, chosen, on_run))
        if was_complete:
            if compared is not None:
                write_page(study, runs, target, compared)
            return Reproduction(study, target, runs, {})
        with stages.stage("tables"):
            write_atomically(target / "summary.json", summary_text(runs))
            write_atomically(target / "results.csv", results_csv(runs))
            write_atomically(target / "curves.csv", curves_csv(runs))
        with stages.stage("figures and video"):
            draw_everything(runs, target, executor=local_executor(chosen), tell=stages.tell)
        with stages.stage("page"):
            write_page(study, runs, target, compared)
        write_atomically(target / "timings.json", timings_text(runs, stages.seconds, chosen))
    return Reproduction(study, target, runs, stages.seconds)


def can_encode() -> bool:
    """Whether the video's encoder is installed; everything else is done without it."""
    return importlib.util.find_spec("imageio_ffmpeg") is not None


def write_page(study: Study, runs: Sequence[ExperimentRun], folder: Path, comparison: ComparisonResults | None) -> None:
    """``report.html``, with a section of its own for a comparison, and with the film where one was made."""
    from curious_explorer.studies.page.study_pages import reproduction_html

    film = folder / VIDEO
    page = reproduction_html(study, by_experiment(runs), comparison, film if film.exists() else None)
    write_atomically(folder / "report.html", page)


def draw_everything(
    runs: Sequence[ExperimentRun], folder: Path, *, executor: Executor, tell: Callable[[str], None]
) -> None:
    """All figures, and the video where its encoder is installed."""
    (folder / "figures").mkdir(exist_ok=True)
    firsts = [ExperimentResults(result.experiment, [result.first]) for result in by_experiment(runs)]
    jobs = figure_jobs(runs, folder / "figures")
    if can_encode():  # the first, because it takes longest
        jobs.insert(0, FigureJob("video", "exploration", firsts, folder))
    with closing(executor.run(draw_figure, jobs)) as finished:
        for done, _ in enumerate(finished, 1):
            tell(f"figures and video, {done} of {len(jobs)}")


def timings_text(runs: Sequence[ExperimentRun], stages: dict[str, float], executor: Executor) -> str:
    """``timings.json``: seconds by stage, and by experiment and seed."""
    of_runs = {
        result.experiment.name: {str(run.seed): round(run.seconds, 4) for run in result.runs}
        for result in by_experiment(runs)
    }
    rounded = {name: round(seconds, 3) for name, seconds in stages.items()}
    return json.dumps({"executor": repr(executor), "stages": rounded, "runs": of_runs}, indent=2) + "\n"
