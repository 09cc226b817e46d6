"""Executors without a cluster: which one is meant, what each refuses, and that all give the same."""

import os
import signal
import socket
import sys
import threading
import time

import pytest
from typer.testing import CliRunner

from curious_explorer.cli.app import app
from curious_explorer.cli.terminal import chosen_executor
from curious_explorer.errors import ExecutorError
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare
from curious_explorer.studies.executors import Inline, Processes, available_cores, kept
from curious_explorer.studies.paper_experiments import Study
from curious_explorer.studies.paper_results import summary_text
from curious_explorer.studies.ray_executor import Needs, check_reachable, resolved
from curious_explorer.studies.reproduction import run_study
from curious_explorer.studies.runner import local_executor, make_executor

TINY = Study(depths=(2,), optimizers=("trpo",), seeds=2)


def slow_square(number):
    time.sleep(number / 10)
    return number * number


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


class Backwards:
    """Somebody else's executor: the last job first."""

    def __init__(self):
        self.done = []

    def check(self):
        self.done.append("checked")

    def run(self, function, jobs):
        for job in reversed(list(jobs)):
            self.done.append(job)
            yield function(job)


@pytest.mark.parametrize(
    ("given", "workers", "meant"),
    [
        (None, None, Inline()),
        (None, 1, Inline()),
        (None, 3, Processes(workers=3)),
        ("inline", None, Inline()),
        ("inline", 1, Inline()),
        ("processes", None, Processes(workers=available_cores())),
        ("processes", 1, Processes(workers=1)),
        (Inline(), None, Inline()),
    ],
)
def test_which_executor_is_meant(given, workers, meant):
    assert make_executor(given, workers=workers) == meant


@pytest.mark.parametrize(
    ("given", "workers", "message"),
    [
        ("process", None, "did you mean 'processes'?"),
        ("rya", None, "did you mean 'ray'?"),
        ("Inline", None, "did you mean 'inline'?"),
        ("inline", 2, "workers is 2, and the executor 'inline' does one job after the other"),
        (Inline(), 2, r"workers is 2, and Inline\(\) knows that itself"),
        (None, 0, "workers is 0"),
        ("processes", True, "workers is True"),
        ("processes", 1.5, "workers is 1.5"),
    ],
)
def test_a_wrong_executor_is_refused_before_anything_is_written(tmp_path, given, workers, message):
    with pytest.raises(ValueError, match=message):
        run_study(TINY, tmp_path / "study", executor=given, workers=workers)
    with pytest.raises(ValueError, match=message):
        compare(Comparison(methods=("trpo",), seeds=1), tmp_path / "comparison", executor=given, workers=workers)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("executor", [Inline(), Processes(workers=2)])
def test_results_come_as_they_are_finished(executor):
    results = executor.run(slow_square, [10, 0, 1])
    assert isinstance(executor, Inline) or next(results) == 0
    assert sorted({*results, 0}) == [0, 1, 100]
    assert list(executor.run(slow_square, [])) == []


def test_closing_abandons_what_is_not_begun():
    results = Processes(workers=2).run(slow_square, [0, 1, *[20] * 50])
    assert next(results) in (0, 1)
    began = time.monotonic()  # starting the workers is not what is timed
    results.close()
    assert time.monotonic() - began < 10


def process_of(number):
    time.sleep(0.05)
    return number, os.getpid()


def test_workers_may_stay_from_one_run_to_the_next():
    with kept(Processes(workers=2)) as executor:
        executor.check()
        first = dict(executor.run(process_of, range(8)))
        second = dict(executor.run(process_of, range(8)))
        assert set(first) == set(second) == set(range(8))
        workers = {*first.values(), *second.values()}
        assert len(workers) <= 2
        assert os.getpid() not in workers
        executor.run(process_of, range(50)).close()
        with pytest.raises(ExecutorError, match="a worker process died"):
            list(executor.run(die, [1, 2]))
    with kept(Inline()) as executor:
        assert executor == Inline()


def test_a_process_that_dies_is_an_error_that_says_what_to_do():
    with pytest.raises(ExecutorError, match=r"a worker process died: .*--resume"):
        list(Processes(workers=2).run(die, [1, 2]))


def test_any_object_with_the_methods_is_an_executor(tmp_path):
    mine = Backwards()
    runs = run_study(TINY, tmp_path / "mine", executor=mine)
    assert mine.done == ["checked", *reversed(TINY.jobs)]
    assert summary_text(runs) == summary_text(run_study(TINY, tmp_path / "inline"))
    assert run_study(TINY, tmp_path / "mine", resume=True, executor=mine)
    assert mine.done.count("checked") == 1, "with nothing left to do, nobody need be there to do it"
    assert local_executor(mine) == Processes()
    assert local_executor(Inline()) == Inline()


# The command line ---------------------------------------------------------------------------------------------------


def test_the_command_uses_all_cores_unless_told_otherwise():
    assert chosen_executor(None, None, None, None, None) == make_executor(None, workers=available_cores())
    assert chosen_executor(None, 1, None, None, None) == Inline()
    assert chosen_executor("inline", None, None, None, None) == Inline()
    assert chosen_executor("processes", 3, None, None, None) == Processes(workers=3)


@pytest.mark.parametrize("command", ["reproduce", "compare"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor", "proceses"], "did you mean 'processes'?"),
        (["--executor", "inline", "--workers", "2"], "does one job after the other"),
        (["--ray-address", "auto"], "--ray-address is auto, which only the executor 'ray' uses; add --executor ray"),
        (["--ray-cpus-per-task", "2"], "--ray-cpus-per-task is 2.0"),
        (["--executor", "processes", "--ray-gpus-per-task", "0"], "--ray-gpus-per-task is 0.0"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, command, words, message):
    from curious_explorer.cli.app import main

    monkeypatch.setattr(sys, "argv", ["curious-explorer", command, "--out", str(tmp_path / "out"), *words])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["reproduce", "compare"])
def test_ray_is_an_extra(tmp_path, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = CliRunner().invoke(app, [command, "--out", str(tmp_path / "out"), "--executor", "ray"])
    assert "pip install '.[ray]'" in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["reproduce", "compare"])
def test_help_shows_examples(command):
    text = " ".join(CliRunner().invoke(app, [command, "--help"], terminal_width=200).output.split())
    assert f"curious-explorer {command} --executor ray --ray-address" in text
    assert f"curious-explorer {command} --workers 4" in text


# The way to a cluster, where Ray itself is not needed ----------------------------------------------------------------


def test_which_cluster_is_meant(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert resolved(None) == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.5:6379")
    assert resolved(None) == "10.0.0.5:6379"
    assert resolved("ray://head:10001") == "ray://head:10001"
    assert resolved("local") == "local"


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:many", "head:0", "head:65536", "ray://head", ""])
def test_an_address_that_is_none(address):
    with pytest.raises(ExecutorError, match="expected host:port such as"):
        check_reachable(address)


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_nobody_there_is_said_at_once(prefix):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # ours, but not listening
        began = time.monotonic()
        with pytest.raises(ExecutorError, match=r"no Ray cluster answers at .*; is the cluster up"):
            check_reachable(f"{prefix}127.0.0.1:{taken.getsockname()[1]}")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_somebody_else_there_is_told_from_ray(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            line, _ = server.accept()
            with line:
                line.recv(100)
                line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ExecutorError, match="is not a Ray cluster"):
            check_reachable(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


@pytest.mark.parametrize(
    ("needs", "node", "many"),
    [
        (Needs(1, 0), {"CPU": 8.0}, 8),
        (Needs(3, 0), {"CPU": 8.0}, 2),
        (Needs(0.1, 0), {"CPU": 1.0}, 10),
        (Needs(1, 0.25), {"CPU": 8.0, "GPU": 1.0}, 4),
        (Needs(9, 0), {"CPU": 8.0}, 0),
        (Needs(1, 1), {"CPU": 8.0}, 0),
        (Needs(1, 0), {"memory": 1e9}, 0),
    ],
)
def test_room_on_a_node(needs, node, many):
    assert needs.fit_into(node) == many
