"""The paper's experimental section in one call: runs, tables, figures, video and page, in one folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from curious_explorer.optional_packages import require
from curious_explorer.storage import write_atomically
from curious_explorer.studies.comparison.comparison_loading import load_results
from curious_explorer.studies.comparison.comparison_summary import Results
from curious_explorer.studies.executors.choosing import make_executor, near_the_files
from curious_explorer.studies.executors.executor import Executor
from curious_explorer.studies.figures.drawing_jobs import FigureJob, draw_figure, figure_jobs
from curious_explorer.studies.paper_grid import DEPTHS, ENVIRONMENTS, OPTIMIZERS
from curious_explorer.studies.paper_run import CellRun
from curious_explorer.studies.paper_summary import by_cell, curves_csv, results_csv, summary_text
from curious_explorer.studies.study import Study, conduct, explaining_full_disks

OUTPUTS = ("summary.json", "results.csv", "curves.csv", "figures", "exploration.mp4", "report.html", "timings.json")
"""In the order in which they are written."""
QUICK_SEEDS = 2


@dataclass
class Stages:
    """How long each stage took, and whom to tell which one it is."""

    tell: Callable[[str], None] = lambda name: None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        self.tell(name)
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


@dataclass(frozen=True)
class Reproduction:
    """A finished reproduction."""

    study: Study
    folder: Path
    runs: list[CellRun]
    seconds: dict[str, float]
    """By stage; empty if everything was there already."""


def reproduce(
    study: Study,
    folder: str | Path,
    *,
    resume: bool = False,
    executor: str | Executor | None = None,
    workers: int | None = None,
    comparison: str | Path | None = None,
    on_run: Callable[[CellRun, bool], None] | None = None,
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
    for module in ("imageio_ffmpeg", "plotly"):
        require(module)  # before an hour of work, not after it
    chosen = make_executor(executor, workers=workers)
    compared = None if comparison is None else load_results(comparison)
    target = Path(folder)
    stages = Stages(on_stage or (lambda name: None))
    was_complete = all((target / name).exists() for name in OUTPUTS)
    with stages.stage("runs"):
        runs = conduct(study, target, resume=resume, executor=chosen, on_run=on_run)
    if was_complete:
        if compared is not None:
            write_page(study, runs, target, compared)
        return Reproduction(study, target, runs, {})
    with explaining_full_disks(target):
        with stages.stage("tables"):
            write_atomically(target / "summary.json", summary_text(runs))
            write_atomically(target / "results.csv", results_csv(runs))
            write_atomically(target / "curves.csv", curves_csv(runs))
        with stages.stage("figures and video"):
            draw_everything(runs, target, executor=near_the_files(chosen), tell=stages.tell)
        with stages.stage("page"):
            write_page(study, runs, target, compared)
        write_atomically(target / "timings.json", timings_text(runs, stages.seconds, chosen))
    return Reproduction(study, target, runs, stages.seconds)


def write_page(study: Study, runs: Sequence[CellRun], folder: Path, comparison: Results | None) -> None:
    """``report.html``, with a section of its own for a comparison."""
    from curious_explorer.studies.page.reproduction_page import report_html

    write_atomically(folder / "report.html", report_html(study, runs, command_of(study), comparison))


def draw_everything(runs: Sequence[CellRun], folder: Path, *, executor: Executor, tell: Callable[[str], None]) -> None:
    """All figures and the video."""
    (folder / "figures").mkdir(exist_ok=True)
    firsts = [group[0] for _, group in by_cell(runs)]
    jobs: list[FigureJob | VideoJob] = [VideoJob(folder / "exploration.mp4", firsts)]
    jobs += figure_jobs(runs, folder / "figures")
    with closing(executor.run(draw_job, jobs)) as finished:
        for done, _ in enumerate(finished, 1):
            tell(f"figures and video, {done} of {len(jobs)}")


@dataclass(frozen=True, eq=False)
class VideoJob:
    """The video to write."""

    path: Path
    runs: list[CellRun]


def draw_job(job: FigureJob | VideoJob) -> None:
    """Do one drawing; a function of the module, so that worker processes can find it."""
    if isinstance(job, VideoJob):
        from curious_explorer.studies.video import write_video

        write_video(job.path, job.runs)
    else:
        draw_figure(job)


def command_of(study: Study) -> str:
    """The command that does this study again."""
    words = ["curious-explorer reproduce", f"--preset {study.preset}", f"--seeds {study.seeds}"]
    if study.environments != tuple(ENVIRONMENTS):
        words.append(f"--environments {','.join(study.environments)}")
    if study.depths != DEPTHS:
        words.append(f"--depths {','.join(map(str, study.depths))}")
    if study.optimizers != tuple(OPTIMIZERS):
        words.append(f"--optimizers {','.join(study.optimizers)}")
    return " ".join(words)


def timings_text(runs: Sequence[CellRun], stages: dict[str, float], executor: Executor) -> str:
    """``timings.json``: seconds by stage, and by cell and seed."""
    cells = {cell.name: {str(run.seed): round(run.seconds, 4) for run in group} for cell, group in by_cell(runs)}
    rounded = {name: round(seconds, 3) for name, seconds in stages.items()}
    return json.dumps({"executor": repr(executor), "stages": rounded, "runs": cells}, indent=2) + "\n"
