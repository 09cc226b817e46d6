"""Grids on a real Ray cluster: the same bytes as inline, whoever is killed on the way.

The cluster has two CPUs and lives in a process of its own, so that drivers come and go as they do in earnest.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import layouts_helpers
import pytest

from curious_explorer import GymWorld, HashedCells
from curious_explorer.errors import ExecutorError
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.studies import reproduction
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare
from curious_explorer.studies.executors import Inline, kept
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import curves_csv, results_csv, summary_text
from curious_explorer.studies.ray_executor import Ray
from curious_explorer.studies.reproduction import run_study
from curious_explorer.studies.runner import make_executor

if importlib.util.find_spec("ray") is None:
    pytest.skip("the extra 'ray' is not installed: pip install '.[ray]'", allow_module_level=True)

TINY = Study(depths=(2,), optimizers=("trpo",), seeds=3)
SMALL = {"methods": ("ce-trpo", "r-max"), "environments": ("cct/3", "dcl/2@9000"), "seeds": 2, "budget": 8000}
COMMAND = [sys.executable, "-m", "curious_explorer.cli", "compare", "--methods", "ce-trpo,r-max"]
COMMAND += ["--environments", "cct/3,dcl/2@9000", "--seeds", "2", "--budget", "8000", "--executor", "ray"]
HEAD = """
import logging, sys, ray
context = ray.init("local", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
print(context.address_info["gcs_address"], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster():
    """The address of a cluster that ends when this process lets go of it, however that happens.

    It lets in only who knows its token, made up for it. Ray reads such settings when it is imported, so once more here.
    """
    from ray._raylet import Config

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_AUTH_MODE", "token")
        environment.setenv("RAY_AUTH_TOKEN", uuid.uuid4().hex)
        Config.initialize("")
        yield from started_cluster()
    Config.initialize("")


def started_cluster():
    with subprocess.Popen(
        [sys.executable, "-c", HEAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as head:
        yield head.stdout.readline().strip()
        head.stdin.close()


@pytest.fixture(autouse=True)
def _no_address_from_outside(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.fixture(scope="module")
def inline_study(tmp_path_factory):
    return tables_of(run_study(TINY, tmp_path_factory.mktemp("inline") / "out", executor="inline"))


@pytest.fixture(scope="module")
def inline_comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline") / "out"
    compare(Comparison(**SMALL), folder, executor="inline")
    return files_of(folder)


def tables_of(runs):
    return summary_text(runs), results_csv(runs), curves_csv(runs)


def files_of(folder):
    """Everything that has to be the same bytes: all files but those that hold times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".time.json") and path.name not in ("times.csv", "report.html")
    }


def until(condition, seconds=60.0):
    """Wait for something that other processes do."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def descendants(process):
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found, new = set(), {process}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in found} - found
    return found - {process}


def is_agent(process):
    """Ray's own two helpers of a node; idle, they look for the dead head for a minute or two before they leave."""
    try:
        return "Agent" in Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return False


def notes(folder, pattern="*"):
    return list(folder.glob(pattern))


def test_a_study_is_the_same_bytes(cluster, inline_study, tmp_path):
    came = []
    runs = run_study(TINY, tmp_path / "out", executor=Ray(address=cluster), on_run=lambda run, _: came.append(run))
    assert tables_of(runs) == inline_study
    assert len(came) == len(TINY.jobs)


def test_a_comparison_is_the_same_bytes(cluster, inline_comparison, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    compare(Comparison(**SMALL), tmp_path / "out", executor="ray")
    assert files_of(tmp_path / "out") == inline_comparison


def test_layouts_are_explored_alike(cluster):
    import ray

    ray.cloudpickle.register_pickle_by_value(layouts_helpers)  # the workers have no path to the tests
    try:
        with kept(Ray(address=cluster)) as executor:
            there, here = (
                ManyLayouts(first_share=20, after=20, at_once=3, jobs=jobs).explore(
                    GymWorld(layouts_helpers.Signposts, cells=HashedCells(100), layouts=range(6)),
                    gamma=0.9,
                    samples=2_000,
                )
                for jobs in (executor, Inline())
            )
    finally:
        ray.cloudpickle.unregister_pickle_by_value(layouts_helpers)
    assert not ray.is_initialized()
    assert there.summary.found == 6
    assert there.as_plain_data() == here.as_plain_data()


def test_a_worker_is_killed_in_the_middle(cluster, inline_study, tmp_path, monkeypatch):
    begun, release = tmp_path / "begun", tmp_path / "release"
    begun.mkdir()
    victim = TINY.jobs[4]
    real = reproduction.RUNS.do

    def job_that_can_be_caught(job):
        if job == victim:
            (begun / str(os.getpid())).touch()
            while not release.exists():
                time.sleep(0.02)
        return real(job)

    def kill_at_the_third(run, was_there):
        finished.append(run)
        if len(finished) == 3:
            until(lambda: notes(begun))
            (process,) = notes(begun)
            os.kill(int(process.name), signal.SIGKILL)
            until(lambda: not is_running(process.name))
            release.touch()

    finished = []
    monkeypatch.setattr(reproduction, "RUNS", replace(reproduction.RUNS, do=job_that_can_be_caught))
    runs = run_study(TINY, tmp_path / "out", executor=Ray(address=cluster), on_run=kill_at_the_third)
    assert tables_of(runs) == inline_study
    first, second = notes(begun)
    assert first.name != second.name, "it was to be done a second time, by another worker"


def test_a_job_that_kills_every_worker_is_given_up(cluster, tmp_path):
    def deadly(number):
        if number == 7:
            (tmp_path / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(ExecutorError, match=r"the Ray worker died 2 times doing 7, .*--resume"):
        list(Ray(address=cluster, retries=1).run(deadly, [7]))
    assert len(notes(tmp_path)) == 2


def test_the_driver_is_killed_and_the_same_command_resumes(inline_comparison, tmp_path):
    """With a cluster of its own, which must go with it."""
    folder = tmp_path / "out"
    command = [*COMMAND, "--out", str(folder), "--resume"]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: notes(folder, "runs/*/*/*.npz") or driver.poll() is not None)
    started = {process for process in descendants(driver.pid) if not is_agent(process)}
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = notes(folder, "runs/*/*/*.npz")
    assert 1 <= len(done) < 8, "it was to be killed in the middle"
    assert started
    until(lambda: not any(map(is_running, started)))
    before = {path: path.stat().st_mtime_ns for path in done}
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    assert files_of(folder) == inline_comparison
    assert {path: path.stat().st_mtime_ns for path in done} == before


def test_results_come_live_and_closing_cancels(cluster, tmp_path):
    def long_unless_first(number):
        (tmp_path / f"{number}.{os.getpid()}").touch()
        time.sleep(60 if number else 0)
        return number

    began = time.monotonic()
    results = Ray(address=cluster).run(long_unless_first, range(50))
    assert next(results) == 0
    until(lambda: len(notes(tmp_path)) == 3)  # the first, and two that hold the two CPUs
    results.close()
    workers = {path.suffix[1:] for path in notes(tmp_path) if not path.name.startswith("0.")}
    until(lambda: not any(map(is_running, workers)))
    assert time.monotonic() - began < 55, "the two that held the CPUs would have slept for 60 s"
    assert len(notes(tmp_path)) == 3, "nothing else was begun"


def test_no_more_at_once_than_workers(cluster, tmp_path):
    def alone(number):
        mine = tmp_path / str(number)
        mine.touch()
        together = len(os.listdir(tmp_path))
        time.sleep(0.05)
        mine.unlink()
        return together

    assert max(Ray(address=cluster, workers=1).run(alone, range(6))) == 1


def test_the_exception_of_a_job_comes_out_as_it_is(cluster):
    with pytest.raises(ValueError, match=r"^invalid literal for int\(\) with base 10: 'x'$"):
        list(Ray(address=cluster).run(int, ["1", "x"]))


def test_workers_without_this_library_are_told_from_failing_jobs(cluster, monkeypatch):
    from curious_explorer.studies import ray_executor

    monkeypatch.setattr(ray_executor, "__version__", "9.9")
    with pytest.raises(ExecutorError, match=r"version .* there and 9\.9 here; install the same there as here"):
        list(Ray(address=cluster).run(int, ["1"]))


def test_a_runtime_environment_reaches_the_workers(cluster):
    brought = Ray(address=cluster, runtime_env={"env_vars": {"COLOUR": "green"}})
    assert list(brought.run(os.getenv, ["COLOUR"])) == ["green"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"cpus_per_task": 3}, r"3 CPUs and 0 GPUs, and no node .* \(at most 2 CPUs and 0 GPUs\)"),
        ({"gpus_per_task": 1}, r"1 CPUs and 1 GPUs, and no node"),
    ],
)
def test_more_than_a_node_has_is_an_error_not_a_wait(cluster, tmp_path, more, message):
    with pytest.raises(ExecutorError, match=message):
        run_study(TINY, tmp_path / "out", executor=Ray(address=cluster, **more))
    assert not (tmp_path / "out").exists()


def test_nobody_at_the_address(tmp_path):
    began = time.monotonic()
    command = [*COMMAND, "--out", str(tmp_path / "out"), "--ray-address", "127.0.0.1:9"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert "no Ray cluster answers at 127.0.0.1:9" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()
    assert time.monotonic() - began < 30, "Ray alone waits for two minutes"


def test_a_connection_that_is_there_is_used_and_left(cluster):
    import ray

    ray.init(cluster, log_to_driver=False, logging_level="ERROR")
    try:
        assert list(make_executor("ray").run(int, ["5"])) == [5]
        assert ray.is_initialized()
        with pytest.raises(ExecutorError, match="connected to a Ray cluster already"):
            Ray(address=cluster).check()
    finally:
        ray.shutdown()


@pytest.mark.parametrize(
    "wrong",
    [
        {"workers": 0},
        {"retries": -1},
        {"cpus_per_task": 0},
        {"cpus_per_task": -1},
        {"gpus_per_task": -0.5},
        {"cpus_per_task": float("nan")},
        {"gpus_per_task": float("inf")},
        {"cpus_per_task": "2"},
        {"cpus_per_task": True},
    ],
)
def test_bad_numbers_are_named(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"{name} is {value!r}"):
        Ray(**wrong)
