"""The studies' harness: runs in files that can be put together, a limit that stops them, tables from what is there."""

import argparse
import time

import numpy as np
import pytest

from curious_explorer import TabularWorld
from curious_explorer.environments import deep_sea

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")
pytest.importorskip("minigrid", reason="the extra gym is not installed")

from benchmarks.gym_studies import arms
from benchmarks.gym_studies.__main__ import make_runs, planned
from benchmarks.gym_studies.arms import ArchiveOfWays, solved_at
from benchmarks.gym_studies.curves import draw_curves
from benchmarks.gym_studies.runs import FAILED, FINISHED, NOT_BEGUN, STOPPED, Job, OutOfTime, keep, read, stopped_at
from benchmarks.gym_studies.tables import tables, worth_at
from benchmarks.gym_studies.tasks import CORE, SUITE, TASKS

EASY = "crossroads-20"


def run_of(arm, seed, at, task="MultiRoom-N4", **more):
    solved = at is not None
    found = {"task": task, "arm": arm, "seed": seed, "given": TASKS[task].samples, "state": FINISHED}
    found |= {"fraction": float(solved), "solved": solved, "solved_at": at, "samples": 100_000, "curve": []}
    return found | {"first_reward": 5, "agent": "learning"} | more


def lines_of(runs):
    return "\n".join(tables(runs))


def test_a_run_is_solved_at_the_first_of_the_good_evaluations_that_it_ends_with():
    assert solved_at([(10, 0.95), (20, 0.5), (30, 0.92), (40, 1.0)], 99) == 30
    assert solved_at([(10, 0.95), (20, 0.5)], 99) == 99
    assert solved_at([], 99) == 99


def test_a_limit_stops_what_runs_inside_and_nothing_later():
    with pytest.raises(OutOfTime), stopped_at(time.time() + 0.05):
        time.sleep(5.0)
    with stopped_at(time.time() + 0.05):
        pass
    time.sleep(0.1)


def test_runs_that_are_stopped_or_fail_are_kept_as_such_and_made_again(tmp_path, monkeypatch):
    def slow(task, arm, seed, samples, folder, note):
        note(samples // 2)
        if arm == "planning":
            raise ValueError("no plan")
        time.sleep(30.0)

    jobs = [Job(EASY, "ours", 0, 1_000), Job(EASY, "planning", 0, 1_000)]
    monkeypatch.setattr(arms, "run_arm", slow)
    failed = make_runs(jobs[1:], tmp_path, "inline", 1, None)
    stopped = make_runs(jobs[:1], tmp_path, "inline", 1, 0.2)
    assert [run["state"] for run in failed + stopped] == [FAILED, STOPPED]
    assert stopped[0]["samples"] == 500
    assert make_runs(jobs[:1], tmp_path, "inline", 1, 0.0)[0]["state"] == NOT_BEGUN
    shown = lines_of(read([tmp_path]))
    assert "crossroads-20, ours, seed 0, 1,000 given: stopped after 500 samples" in shown
    assert "failed after 500 samples ValueError: no plan" in shown
    monkeypatch.undo()
    assert make_runs(jobs[1:], tmp_path, "inline", 1, None) == []
    made = {run["arm"]: run for run in read([tmp_path])}
    assert made["planning"]["solved"]
    assert made["planning"]["samples"] <= 1_000
    assert made["ours"]["state"] == STOPPED


def test_of_the_same_run_in_several_folders_a_finished_one_counts(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    whole = run_of("ours", 0, 7)
    keep(tmp_path / "one", {**whole, "state": STOPPED})
    keep(tmp_path / "two", whole)
    assert read([tmp_path / "one", tmp_path / "two"]) == [whole]


def test_tables_say_who_takes_fewer_samples_and_who_never_gets_there():
    runs = [run_of("ours", seed, 30_000 + seed) for seed in range(3)]
    runs += [run_of("plain", seed, None) for seed in range(3)]
    runs += [run_of("rnd", 0, 20_000), run_of("rnd", 1, 40_000)]
    shown = lines_of(runs)
    assert "Solved on every seed: 1 of 1 tasks." in shown
    assert "| MultiRoom-N4 \\* | 3 of 3; 30,001 (30,000 to 30,002) | 0 of 3; not solved | 2 of 2;" in shown
    assert "| plain PPO | MultiRoom-N4 \\* | 3 and 3 | 1 of 1 | 1.00 | 1.00 to 1.00 |" in shown
    assert "| RND | MultiRoom-N4 \\* | 3 and 2 | 1 of 1 | 0.50 |" in shown
    assert "| 3 and 1 | 1 of 1 | 1.00 | too few runs |" in lines_of(runs[:4])
    assert "stays under" not in shown  # it does on all there are
    easy = "UnlockPickup"
    runs += [run_of("ours", 0, 50_000, easy), run_of("plain", 0, 40_000, easy), run_of("rnd", 0, None, easy)]
    shown = lines_of(runs)
    assert "| plain PPO | all 2 | 1 and 1 | 1 of 2 | 0.50 |" in shown
    assert "| plain PPO | the 1 on which plain PPO stays under 10% | 3 and 3 | 1 of 1 | 1.00 | 1.00 to 1.00 |" in shown


def test_a_curve_is_nothing_before_it_was_evaluated_and_stays_at_its_end(tmp_path):
    run = run_of("ours", 0, 20_000, curve=[(20_000, 1.0), (30_000, 0.5)])
    assert worth_at(run, [500, 20_000, 29_999, 30_000, 99_999, 100_000]).tolist() == [0.0, 1.0, 1.0, 0.5, 0.5, 1.0]
    picture = draw_curves([run, run_of("plain", 0, None), run_of("rnd", 0, None, CORE[0])], tmp_path / "curves.png")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_plan_that_is_handed_out_was_worth_something_when_it_was_measured(tmp_path):
    """Samples of learning come after it, but for the trial of plain learning, unless exploring went on."""
    kept = {"look": 10, "plain": 50, "explore": 100, "measure": 5, "learn": 200, "choose": 30}
    stages = {name: {"samples": samples} for name, samples in kept.items()}
    stages["choose"]["agent"] = {"kind": "plan", "folder": "exploration"}
    stages["plain"]["trial"] = 20
    stages["measure"]["counting"] = [[100, 0.9, 3]]
    assert arms.curve_of(stages, sum(kept.values()), tmp_path) == [(135, 0.9)]
    stages["measure"]["counting"] = [[60, 0.5, 3], [100, 0.9, 3]]
    assert arms.curve_of(stages, sum(kept.values()), tmp_path) == [(325, 0.5), (365, 0.9)]


def test_grids_are_planned_in_words():
    jobs = planned("ours,rnd:core:0-1")
    assert len(jobs) == 2 * 2 * len(CORE)
    assert {job.given for job in jobs} == {120_000}
    assert [job.seed for job in planned("plain:taxi:3:5000")] == [3]
    words = {
        "ours:core": "2 parts",
        "ours:nowhere:0": "nowhere",
        "mine:core:0": "mine",
        "ours:core:x": "seeds are 0 or",
    }
    for wrong, why in words.items():
        with pytest.raises(argparse.ArgumentTypeError, match=why):
            planned(wrong)
    assert len(SUITE) == 21


def test_an_archive_goes_back_by_its_actions_and_keeps_the_best_way():
    world = TabularWorld(deep_sea(5), seed=0)
    archive = ArchiveOfWays(world, np.random.default_rng(0))
    while world.samples < 5_000:
        archive.advance(5_000)
    assert world.samples == 5_000
    assert archive.first_reward is not None
    world.restart()
    assert sum(world.step(action).reward for action in archive.best_way) == pytest.approx(archive.best_return)
