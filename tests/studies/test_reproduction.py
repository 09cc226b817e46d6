"""The whole of ``curious-explorer reproduce``: what it writes, that it survives being killed, and what it refuses."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from file_helpers import frames_of
from typer.testing import CliRunner

from curious_explorer import settings_description
from curious_explorer.cli.app import app
from curious_explorer.errors import StudyError
from curious_explorer.studies import reproduction
from curious_explorer.studies.executors import Processes
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.reproduction import reproduce, run_study

TINY = Study(depths=(2, 3), environments=("cct", "dcl"), optimizers=("trpo",), seeds=2)
OPTIONS = ["--depths", "2,3", "--optimizers", "trpo", "--seeds", "2"]
PNG, PDF = b"\x89PNG\r\n", b"%PDF"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    stages = []
    result = reproduce(TINY, folder, workers=2, on_stage=stages.append)
    assert [name for name in stages if " of " not in name] == list(result.seconds)
    return folder


def command(*words):
    return subprocess.run(
        [sys.executable, "-m", "curious_explorer.cli", "reproduce", *map(str, words)], capture_output=True, text=True
    )


def test_everything_is_written(whole):
    assert len(list(whole.glob("runs/*/*.npz"))) == 8
    for name in ("evolution-cct-3-trpo", "scatter-trpo-dcl", "episodes-trpo-cct", "samples-trpo-dcl", "graph-dcl2"):
        assert (whole / "figures" / f"{name}.png").read_bytes().startswith(PNG)
        assert (whole / "figures" / f"{name}.pdf").read_bytes().startswith(PDF)
    timings = json.loads((whole / "timings.json").read_text())
    assert set(timings["stages"]) == {"runs", "tables", "figures and video", "page"}
    assert len(json.loads((whole / "summary.json").read_text())["cells"]) == 4
    assert not list(whole.rglob("*.tmp"))


def test_the_video_plays_in_a_browser_and_shows_every_round(whole):
    import imageio_ffmpeg

    facts = next(imageio_ffmpeg.read_frames(str(whole / "exploration.mp4")))
    assert facts["codec"] == "h264"
    assert facts["pix_fmt"].startswith("yuv420p")
    assert facts["size"] == (1280, 720)
    shown = [run for run in run_study(TINY, whole, resume=True) if run.seed == 0]
    assert facts["duration"] == pytest.approx(sum(len(run.thresholds) for run in shown), abs=0.5)
    content = (whole / "exploration.mp4").read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")


def test_every_frame_of_the_video_is_the_round_that_it_should_be(whole):
    from curious_explorer.studies.paper_results import by_experiment
    from curious_explorer.studies.video import OUTPUT_RATE, experiment_frames

    results = sorted(by_experiment(run_study(TINY, whole, resume=True)), key=lambda each: each.experiment.depth)
    drawn = [frame for result in results for frame in experiment_frames(result)]
    shown = frames_of(whole / "exploration.mp4")
    assert len(shown) == OUTPUT_RATE * len(drawn)
    assert all(len({frame.tobytes() for frame in pair}) == 2 for pair in pairwise(drawn)), "each shows something new"
    sketches = [frame[::6, ::6].astype(int) for frame in drawn]
    for number, frame in enumerate(shown):
        distances = [np.abs(frame[::6, ::6] - each).mean() for each in sketches]
        assert int(np.argmin(distances)) == number // OUTPUT_RATE
        assert min(distances) < 4.0  # of 255: what the encoder changes


def test_figures_are_the_same_bytes_again(whole, tmp_path):
    runs = run_study(TINY, whole, resume=True)
    from curious_explorer.studies.paper_figures import draw_figure, figure_jobs

    for job in figure_jobs(runs, tmp_path)[-4:]:
        draw_figure(job)
        for ending in ("png", "pdf"):
            name = f"{job.name}.{ending}"
            assert (tmp_path / name).read_bytes() == (whole / "figures" / name).read_bytes()


def test_results_do_not_depend_on_the_workers_or_on_other_cells(whole, tmp_path):
    reproduction.run_study(TINY, tmp_path / "inline", workers=1)
    alone = run_study(Study(depths=(3,), environments=("dcl",), optimizers=("trpo",), seeds=1), tmp_path / "alone")
    from curious_explorer.studies.paper_results import summary_text

    assert summary_text(run_study(TINY, tmp_path / "inline", resume=True)) == (whole / "summary.json").read_text()
    known = json.loads((whole / "summary.json").read_text())["cells"]
    (cell,) = [cell for cell in known if (cell["env"], cell["depth"]) == ("dcl", 3)]
    assert cell["with_ce"]["values"][0] == alone[0].values["with_ce"]


def test_a_second_time_does_nothing_again(whole, monkeypatch):
    monkeypatch.setattr(reproduction, "draw_everything", lambda *_, **__: pytest.fail("drawn again"))
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    assert reproduce(TINY, whole, resume=True).seconds == {}
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()} == before


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(3))
def test_killed_at_any_moment_and_resumed_it_ends_in_the_same_bytes(whole, tmp_path, moment):
    words = [*OPTIONS, "--out", str(tmp_path / "out"), "--workers", str(1 + moment % 2), "--resume"]
    wait = random.Random(moment).uniform(0.5, 9.0)
    process = subprocess.Popen(
        [sys.executable, "-m", "curious_explorer.cli", "reproduce", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    result = command(*words)
    assert result.returncode == 0, result.stderr
    for name in ("summary.json", "results.csv", "curves.csv", "report.html"):
        assert (tmp_path / "out" / name).read_bytes() == (whole / name).read_bytes()
    assert not list((tmp_path / "out").rglob("*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_keeps_what_is_finished(tmp_path, workers):
    words = ["--depths", "2,20", "--seeds", "20", "--out", str(tmp_path / "out"), "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "curious_explorer.cli", "reproduce", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("out/runs/*/*.npz")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl+C in a terminal does: everybody gets it
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "with --resume does the rest" in " ".join(output.split())
    assert "Traceback" not in error
    assert list(tmp_path.glob("out/runs/*/*.npz"))


def test_workers_leave_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, time\n"
        "from curious_explorer.studies.executors import Processes\n"
        "def job(number):\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    list(Processes(workers=2).run(job, range(4)))\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.kill()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(is_running(worker) for worker in workers):
        time.sleep(0.05)
    assert not any(is_running(worker) for worker in workers)


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_folder_with_another_study_is_refused(whole):
    before = (whole / "summary.json").read_bytes()
    with pytest.raises(StudyError, match="holds a study already; add --resume"):
        reproduce(TINY, whole)
    other = Study(depths=(2, 3), optimizers=("trpo",), seeds=3)
    with pytest.raises(StudyError, match=r"other settings: seeds is \[0, 1\] there and \[0, 1, 2\] here"):
        reproduce(other, whole, resume=True)
    text = Study(preset="paper-text", depths=(2, 3), optimizers=("trpo",), seeds=2)
    with pytest.raises(StudyError, match="preset is 'tuned' there and 'paper-text' here"):
        reproduce(text, whole, resume=True)
    assert (whole / "summary.json").read_bytes() == before


def test_a_folder_that_is_none_of_ours_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(StudyError, match="not empty and holds no study"):
        reproduce(TINY, tmp_path, resume=True)
    assert (tmp_path / "thesis.tex").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(StudyError, match="is a file"):
        reproduce(TINY, tmp_path / "thesis.tex")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(settings_description, "write_json", refuse)
    with pytest.raises(StudyError, match=r"Permission denied.*another --out"):
        reproduce(TINY, tmp_path / "out")


def test_a_full_disk_loses_nothing_that_is_finished(whole, tmp_path, monkeypatch):
    saved = []
    real = reproduction.RUNS.save

    def save(folder, run):
        if len(saved) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        saved.append(real(folder, run))

    monkeypatch.setattr(reproduction, "RUNS", replace(reproduction.RUNS, save=save))
    with pytest.raises(StudyError, match="no space left on the disk; everything finished so far is kept"):
        run_study(TINY, tmp_path / "out")
    assert sorted((tmp_path / "out").glob("runs/*/*.npz")) == sorted(saved)
    monkeypatch.undo()
    done_before = []
    runs = run_study(TINY, tmp_path / "out", resume=True, on_run=lambda run, was_there: done_before.append(was_there))
    assert sum(done_before) == 3
    from curious_explorer.studies.paper_results import summary_text

    assert summary_text(runs) == (whole / "summary.json").read_text()


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "exchanged"])
def test_a_damaged_run_is_named_and_kept(tmp_path, damage):
    small = Study(depths=(2,), environments=("cct",), optimizers=("trpo",), seeds=2)
    run_study(small, tmp_path)
    path, other = sorted(tmp_path.glob("runs/*/*.npz"))
    content = path.read_bytes()
    middle = len(content) // 2
    damaged = {
        "cut": content[:middle],
        "empty": b"",
        "flipped": content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 64])
        + content[middle + 64 :],
        "exchanged": other.read_bytes(),
    }[damage]
    path.write_bytes(damaged)
    with pytest.raises(StudyError, match=r"0000\.npz cannot be read: .*delete 0000\.npz"):
        run_study(small, tmp_path, resume=True)
    assert path.read_bytes() == damaged
    path.unlink()
    run_study(small, tmp_path, resume=True)
    assert path.exists()


def test_a_damaged_settings_file_is_named(tmp_path):
    (tmp_path / "study.json").write_text('{"format": "curious-explo')
    with pytest.raises(StudyError, match=r"study\.json cannot be read"):
        run_study(TINY, tmp_path, resume=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--optimizers", "trpo,reinforc"], "did you mean 'reinforce'?"),
        (["--environments", "dlc"], "did you mean 'dcl'?"),
        (["--preset", "tunde"], "did you mean 'tuned'?"),
        (["--seeds", "0"], "seeds is 0"),
        (["--seeds", "-3"], "seeds is -3"),
        (["--depths", "5,x"], "depths has 'x'"),
        (["--depths", ""], "depths is empty"),
        (["--depths", "5,5"], "each only once"),
        (["--depths", "0"], "depth is 0"),
        (["--workers", "0"], "workers is 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, words, message):
    from curious_explorer.cli.app import main

    folder = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["curious-explorer", "reproduce", "--out", str(folder), *words])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(folder.glob("runs/*"))


def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ValueError, match=r"pip install '.\[report\]'"):
        reproduce(TINY, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_can_be_given_again():
    assert TINY.command == "curious-explorer reproduce --preset tuned --seeds 2 --depths 2,3 --optimizers trpo"
    assert Study().command == "curious-explorer reproduce --preset tuned --seeds 10"


def test_the_table_in_the_terminal(whole):
    result = CliRunner().invoke(app, ["reproduce", *OPTIONS, "--out", str(whole), "--resume"])
    assert result.exit_code == 0
    assert "dcl/3/trpo" in result.output
    assert "Everything was there already" in result.output


def test_an_exception_in_a_worker_comes_out():
    with pytest.raises(ValueError, match="invalid literal"):
        list(Processes(workers=2).run(int, ["1", "2", "x", "3"]))
    assert sorted(Processes(workers=2).run(int, ["1", "2", "3"])) == [1, 2, 3]
