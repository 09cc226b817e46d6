"""Writers: TensorBoard reads what is written, a stand-in for wandb is told of it, and missing packages are named."""

import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from curious_explorer import TRPO, TabularWorld, TensorBoardWriter, WandbWriter, explore, improve
from curious_explorer.callbacks import Event
from curious_explorer.cli.app import app
from curious_explorer.environments import combination_lock

EVENT = Event(kind="batch", phase="learn", samples=30, numbers={"return": 0.5, "episodes": 3})


class FakeRun:
    """What is used of a run of Weights & Biases."""

    def __init__(self, **options):
        self.options, self.metrics, self.lines, self.finished = options, [], [], 0

    def define_metric(self, name, step_metric=None):
        self.metrics.append((name, step_metric))

    def log(self, numbers):
        self.lines.append(numbers)

    def finish(self):
        self.finished += 1


@pytest.fixture
def runs(monkeypatch):
    """The runs that a stand-in for the package was asked for."""
    made = []

    def init(**options):
        made.append(FakeRun(**options))
        return made[-1]

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    return made


def test_wandb_is_told_by_phase_over_the_samples_of_each(runs):
    mdp = combination_lock(3)
    with WandbWriter("locks", config={"depth": 3}, name="first") as writer:
        explored = explore(TabularWorld(mdp), TRPO(updates=3), gamma=0.9, rounds=2, watch=writer, progress=False)
        improve(TabularWorld(mdp), TRPO(updates=3), explored.reset_model, gamma=0.9, watch=writer)
    (run,) = runs
    assert run.options == {"project": "locks", "config": {"depth": 3}, "name": "first"}
    assert run.metrics == [
        ("explore/samples", None),
        ("explore/*", "explore/samples"),
        ("learn/samples", None),
        ("learn/*", "learn/samples"),
    ]
    rounds = [line for line in run.lines if "explore/poorly_visited" in line]
    assert [line["explore/samples"] for line in rounds] == [explored.rounds[0].samples, explored.samples]
    assert "learn/value" in run.lines[-1]
    assert run.finished == 1


def test_a_run_of_the_users_is_left_open(runs):
    run = FakeRun()
    writer = WandbWriter(run=run)
    writer.on_event(EVENT)
    writer.close()
    assert run.lines == [{"learn/return": 0.5, "learn/episodes": 3.0, "learn/samples": 30}]
    assert (run.finished, runs) == (0, [])
    with pytest.raises(ValueError, match="leave the rest out"):
        WandbWriter("locks", run=run)


def test_a_closed_writer_says_so(runs):
    writer = WandbWriter("locks")
    writer.close()
    writer.close()
    assert runs[0].finished == 1
    with pytest.raises(ValueError, match="WandbWriter is closed"):
        writer.on_event(EVENT)


@pytest.mark.parametrize(
    ("module", "extra", "make"),
    [("wandb", "wandb", lambda path: WandbWriter("p")), ("tensorboard.summary", "tensorboard", TensorBoardWriter)],
)
def test_a_missing_package_is_named(module, extra, make, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"{module}.*\[{extra}\]"):
        make(tmp_path)


def scalars(folder):
    """What TensorBoard's own reader finds: numbers by tag, with the step of each."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(each.step, float(make_ndarray(each.tensor_proto))) for each in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    with TensorBoardWriter(tmp_path / "logs") as writer:
        found = explore(
            TabularWorld(combination_lock(3)), TRPO(updates=3), gamma=0.9, rounds=2, watch=writer, progress=False
        )
    written = scalars(tmp_path / "logs")
    assert [step for step, _ in written["explore/poorly_visited"]] == [found.rounds[0].samples, found.samples]
    assert [number for _, number in written["explore/poorly_visited"]] == [
        done.poorly_visited.sum() for done in found.rounds
    ]
    assert len(written["explore/return"]) == sum(done.accepted + sum(done.rejected.values()) for done in found.rounds)


def test_the_command_explores_into_both(runs, tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    words = ["explore", "dcl/3", "--rounds", "2", "--gamma", "0.9", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*words, "--tensorboard", str(tmp_path / "logs"), "--wandb", "locks"])
    assert done.exit_code == 0, done.output
    assert runs[0].options["config"]["environment"] == "dcl/3"
    assert runs[0].finished == 1
    assert len(list((tmp_path / "logs").glob("events.*"))) == 1


def test_the_command_names_a_missing_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    done = CliRunner().invoke(app, ["explore", "dcl/3", "--out", str(tmp_path / "run"), "--wandb", "locks"])
    assert isinstance(done.exception, ValueError)
    assert "wandb" in str(done.exception)
    assert not (tmp_path / "run").exists()
