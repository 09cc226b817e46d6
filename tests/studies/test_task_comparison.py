"""Comparisons on Gymnasium tasks: every method within its samples, scores from returns, folders that go on."""

import csv
import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from typer.testing import CliRunner

from curious_explorer.cli.app import app
from curious_explorer.errors import StudyError
from curious_explorer.studies.comparison_run import Comparison
from curious_explorer.studies.comparison_study import compare, comparison_of, load_results
from curious_explorer.studies.task_comparison import TaskComparison, TaskJob, run_task, scored
from curious_explorer.studies.task_methods import TASK_METHODS, Task, make_task_method

CORRIDOR, WIDE = "compared/Corridor-v0", "compared/Wide-v0"
LENGTH = 9


class Corridor(gymnasium.Env):
    """Pays at its end; a random walk hardly ever comes there in time. Every step is noted."""

    observation_space = spaces.Discrete(LENGTH)
    taken = 0

    def __init__(self, continuous=False):
        self.continuous = continuous
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32) if continuous else spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        Corridor.taken += 1
        right = float(action[0]) > 0.0 if self.continuous else action == 1
        self.place = min(max(self.place + (1 if right else -1), 0), LENGTH - 1)
        done = self.place == LENGTH - 1
        return self.place, float(done), done, False, {}


gymnasium.register(CORRIDOR, Corridor, max_episode_steps=LENGTH)
gymnasium.register(WIDE, Corridor, max_episode_steps=LENGTH, kwargs={"continuous": True})
SMALL = {"methods": ("frontier", "ppo"), "environments": (CORRIDOR,), "seeds": 2, "budget": 1_500}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    folder = tmp_path_factory.mktemp("tasks") / "out"
    return folder, compare(TaskComparison(**SMALL), folder)


def test_a_plan_on_counts_is_told_from_a_learner_that_meets_nothing(compared):
    _, results = compared
    assert results.on(CORRIDOR, "frontier")["return"] == {"mean": 1.0, "least": 1.0, "most": 1.0}
    assert results.on(CORRIDOR, "frontier")["iqm"] == 1.0
    assert results.on(CORRIDOR, "ppo")["iqm"] < 0.5
    assert results.on(CORRIDOR, "frontier")["coverage"] is None


def test_it_is_read_again_and_goes_on(compared):
    folder, results = compared
    assert load_results(folder).summary == results.summary
    with pytest.raises(StudyError, match="--resume"):
        compare(TaskComparison(**SMALL), folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}
    next(iter(before)).unlink()
    again = compare(TaskComparison(**SMALL), folder, resume=True)
    assert again.summary == results.summary
    assert sum(path.stat().st_mtime_ns != time for path, time in before.items()) == 1
    with pytest.raises(StudyError, match="other settings: methods"):
        compare(Comparison(methods=("r-max",), environments=("dcl/2",), seeds=1, budget=300), folder, resume=True)


def test_rows_and_page_have_returns_in_the_environments_units(compared):
    folder, results = compared
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert {row["return"] for row in rows if row["method"] == "frontier"} == {"1.0"}
    assert {row["gamma"] for row in rows} == {""}
    page = (folder / "report.html").read_text()
    assert "Mean return of an episode" in page
    assert "states seen" not in page
    assert json.loads((folder / "summary.json").read_text()) == results.summary


@pytest.mark.parametrize("name", ["solve", "frontier", "ppo", "rnd"])
def test_no_method_takes_more_samples_than_it_says(name, tmp_path):
    if name != "frontier":
        pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    Corridor.taken = 0
    result = make_task_method(name)(Task(CORRIDOR, 5_000, tmp_path))
    extra = 50 * LENGTH if name == "solve" else 0  # its last fifty episodes measure only
    looking = 2_000  # whether layouts change, which is asked of resets and a few steps
    assert result.samples <= 5_000
    assert Corridor.taken <= result.samples + extra + looking
    assert all(0 <= samples <= result.samples for samples, _ in result.points)
    assert Corridor.taken >= result.samples


def test_scores_go_from_random_actions_to_the_best_of_all_runs():
    jobs = [TaskJob("frontier", CORRIDOR, seed, 400) for seed in (0, 1)]
    runs = scored(map(run_task, jobs))
    assert [run.scores[-1] for run in runs] == [1.0, 1.0]
    assert np.mean([run.scores[0] for run in runs]) == pytest.approx(0.0)
    assert all(run.final_return == 1.0 for run in runs)


def test_whether_tables_or_steps_are_compared_follows_from_what_is_named():
    assert isinstance(comparison_of(None, ["dcl/2", "FrozenLake-v1"], seeds=1), Comparison)
    assert isinstance(comparison_of(["frontier"], ["FrozenLake-v1"], budget=3_000), TaskComparison)
    stepped = comparison_of(["frontier"], [f"{CORRIDOR}@700"])
    assert (stepped.seeds, stepped.budgets) == (5, {CORRIDOR: 700})
    with pytest.raises(ValueError, match="r-max needs a table of transitions"):
        comparison_of(["r-max"], [CORRIDOR])
    with pytest.raises(ValueError, match=r"gamma is 0\.9"):
        comparison_of(["frontier"], [CORRIDOR], gamma=0.9)
    with pytest.raises(ValueError, match=r"needs at least 162.*raise --samples"):
        TaskComparison(methods=("ppo",), environments=(CORRIDOR,), budget=161)
    with pytest.raises(ValueError, match="Corridor-v9"):
        TaskComparison(methods=("frontier",), environments=("compared/Corridor-v9",))


def test_from_the_command_line(tmp_path):
    words = ["compare", "--methods", "frontier", "--environments", CORRIDOR, "--samples", "400", "--seeds", "1"]
    result = CliRunner().invoke(app, [*words, "--workers", "1", "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert result.exit_code == 0
    assert "Mean return of an episode" in result.output
    again = CliRunner().invoke(app, [*words, "--resume", "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert "nothing was done again" in " ".join(again.output.split())
    listed = CliRunner().invoke(app, ["compare", "--list"]).output
    assert all(name in listed for name in TASK_METHODS)


@pytest.mark.parametrize("name", ["dqn", "sac", "recurrent-ppo"])
@pytest.mark.slow
def test_every_kind_of_algorithm_can_be_compared(name, tmp_path):
    pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
    environment = WIDE if name == "sac" else CORRIDOR
    assert make_task_method(name)(Task(environment, 1_200, tmp_path)).samples <= 1_200
