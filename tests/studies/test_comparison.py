"""The comparison: its statistics against independent oracles, its folders against kill -9, its errors in words."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from random_mdps import random_mdp, random_policy
from scipy import stats

from curious_explorer import FiniteMDP, TabularWorld, evaluate, solve
from curious_explorer.environments import bidirectional_lock, combination_lock
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.errors import StudyError
from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.visits import FreshVisits
from curious_explorer.studies import comparison_methods, statistics
from curious_explorer.studies.comparison_methods import CE_METHODS, METHODS
from curious_explorer.studies.comparison_run import Comparison, ComparisonJob, Scorer, reachable, run_job
from curious_explorer.studies.comparison_study import compare, load_results
from curious_explorer.studies.page.study_pages import comparison_data, comparison_lead
from curious_explorer.worlds.wrappers import SeenStates

CLI = [sys.executable, "-m", "curious_explorer.cli"]
TINY = {
    "methods": ("ce-trpo", "reinforce", "model-based"),
    "environments": ("cct/3", "dcl/2@9000"),
    "seeds": 3,
    "budget": 8_000,
}
TINY_COMMAND = [
    "--methods",
    "ce-trpo,reinforce,model-based",
    "--environments",
    "cct/3,dcl/2@9000",
    "--seeds",
    "3",
    "--samples",
    "8000",
]


def results_of(folder: Path) -> dict[str, bytes]:
    """Everything that has to be the same bytes: all files but those that hold times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".time.json") and path.name not in ("times.csv", "report.html")
    }


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory) -> Path:
    """A comparison that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    compare(Comparison(**TINY), folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def whole(whole_folder) -> dict[str, bytes]:
    """What it leaves behind."""
    return results_of(whole_folder)


# Statistics ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 1), (7, 3), (20, 6)])
def test_interquartile_mean_is_scipys_trimmed_mean(shape):
    scores = np.random.default_rng(sum(shape)).normal(size=shape)
    assert float(statistics.interquartile_mean(scores)) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))
    expected = stats.trim_mean(scores, 0.25, axis=0)
    np.testing.assert_allclose(statistics.interquartile_mean(scores, axis=0), expected, rtol=1e-12)


def test_bootstrap_interval_is_scipys_for_one_task():
    scores = np.random.default_rng(5).exponential(size=(20, 1))
    low, high = statistics.bootstrap_interval(scores, statistics.mean_of_middle, resamples=20_000)
    expected = stats.bootstrap(
        (scores[:, 0],),
        lambda sample, axis: stats.trim_mean(sample, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    width = high - low
    # Two Monte Carlo estimates of the same ends; 20,000 resamples pin each down to about 2% of the width.
    assert low == pytest.approx(expected.confidence_interval.low, abs=0.1 * width)
    assert high == pytest.approx(expected.confidence_interval.high, abs=0.1 * width)


def test_bootstrap_is_stratified():
    # Two tasks without any spread: every resample has the same runs of each, so the interval has no width. Resampling
    # runs of all tasks from one bag would mix the two.
    scores = np.tile([0.0, 1.0], (6, 1))
    assert statistics.bootstrap_interval(scores, lambda tables: tables.mean(axis=(1, 2))) == (0.5, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_probability_of_improvement_is_mann_whitney(seed):
    random = np.random.default_rng(seed)
    one = random.integers(0, 5, size=(9, 4)).astype(float)  # with ties
    other = random.integers(0, 5, size=(7, 4)).astype(float)
    expected = [stats.mannwhitneyu(one[:, task], other[:, task]).statistic / (9 * 7) for task in range(4)]
    found = statistics.probability_of_improvement(one, other)
    assert found == pytest.approx(np.mean(expected), rel=1e-12)
    assert found + statistics.probability_of_improvement(other, one) == pytest.approx(1.0)
    low, high = statistics.improvement_interval(one, other)
    assert 0.0 <= low <= found <= high <= 1.0


def test_runs_that_never_got_there_lose_and_tie_among_themselves():
    never, some = np.full((2, 1), -math.inf), np.array([[-math.inf], [-5.0]])
    assert statistics.probability_of_improvement(some, never) == 0.75
    assert statistics.probability_of_improvement(never, never) == 0.5
    to_target = np.array([[math.inf], [10.0], [30.0], [math.inf], [20.0]])
    assert statistics.upper_median(to_target[None])[0] == 30.0
    low, high = statistics.bootstrap_interval(to_target, statistics.upper_median)
    assert low <= 30.0
    assert high == math.inf


def test_difference_interval_is_newcombes():
    # Newcombe (1998), Table II, method 10: 56/70 against 48/80, and 10/10 against 0/20 and 0/10.
    for (one, of_one), (other, of_other), low, high in (
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ):
        first, second = (np.repeat([1.0, 0.0], [k, n - k]) for k, n in ((one, of_one), (other, of_other)))
        assert statistics.difference_interval(first, second) == pytest.approx((low, high), abs=6e-5)
        assert statistics.difference_interval(second, first) == pytest.approx((-high, -low), abs=6e-5)
    with pytest.raises(ValueError, match=r"worse has shape \(0,\)"):
        statistics.difference_interval([1.0], [])


def test_difference_interval_misses_no_more_than_it_says():
    random, true = np.random.default_rng(0), 0.3
    missed = 0
    for _ in range(2_000):
        low, high = statistics.difference_interval(random.beta(1.2, 0.8, size=10), random.beta(0.6, 1.4, size=10))
        missed += not low <= true <= high
    assert missed / 2_000 < 0.05


def test_performance_profile_by_counting():
    scores = np.array([[0.2, 1.0], [0.9, 0.5]])
    # More than tau, as in rliable: a score of 0.5 does not count at 0.5.
    assert statistics.performance_profile(scores, [0.0, 0.5, 0.6, 1.0]).tolist() == [1.0, 0.5, 0.5, 0.0]


def test_curves_are_step_functions():
    samples, values = [0, 10, 10, 40], [0.1, 0.5, 0.6, 0.2]
    assert statistics.step_values(samples, values, [0, 9.9, 10, 39, 1000]).tolist() == [0.1, 0.1, 0.6, 0.6, 0.2]
    assert statistics.first_reaching(samples, values, 0.55) == 10.0
    assert statistics.first_reaching(samples, values, 0.7) == math.inf
    with pytest.raises(ValueError, match="before the first value"):
        statistics.step_values([5, 6], [0.0, 1.0], [1.0])


def test_a_learner_that_falls_back_has_not_kept_the_target():
    samples, values = [0, 10, 20, 20, 50], [0.1, 0.96, 0.99, 0.2, 0.97]
    # Reached at 10, above it until 20 and again from 50 to the end at 70: 10 + 20 of 60 samples.
    assert statistics.share_above(samples, values, 0.95, 70) == pytest.approx(30 / 60)
    grid = np.arange(10, 70) + 0.5
    by_counting = (statistics.step_values(samples, values, grid) >= 0.95).mean()
    assert statistics.share_above(samples, values, 0.95, 70) == pytest.approx(by_counting)
    assert statistics.share_above([0, 10], [0.0, 1.0], 0.95, 70) == 1.0
    assert statistics.share_above([0, 10], [0.0, 1.0], 0.95, 10) == 1.0  # it ended there
    assert statistics.share_above([0, 5, 10, 10], [0.0, 0.0, 1.0, 0.0], 0.95, 10) == 0.0
    assert math.isnan(statistics.share_above([0, 10], [0.0, 0.9], 0.95, 70))


@pytest.mark.parametrize("bad", [np.zeros((0, 2)), np.zeros(3), np.array([[np.nan]])])
def test_statistics_refuse_what_are_no_scores(bad):
    with pytest.raises(ValueError, match=r"runs, tasks|NaN"):
        statistics.performance_profile(bad, [0.5])


# Scores -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_score_is_the_fraction_of_the_best_value(seed):
    mdp = random_mdp(seed)
    policy = random_policy(mdp, seed)
    best = mdp.start @ solve(mdp, gamma=0.9).values
    expected = mdp.start @ evaluate(mdp, policy, gamma=0.9) / best
    assert Scorer.of(mdp, 0.9)(policy) == pytest.approx(expected, rel=1e-9)


def test_score_is_in_the_units_of_the_problem():
    mdp = bidirectional_lock(4)
    scorer = Scorer.of(mdp, 0.95)
    nothing = mdp.reward_scale.original(mdp.start @ evaluate(mdp, mdp.uniform_policy(), gamma=0.95))
    best = mdp.reward_scale.original(mdp.start @ solve(mdp, gamma=0.95).values)
    assert scorer(mdp.uniform_policy()) == pytest.approx(nothing / best, rel=1e-6)
    assert scorer(mdp.uniform_policy()) < 0.0  # it pays for surviving and hardly ever arrives
    assert scorer(solve(mdp, gamma=0.95).policy) == pytest.approx(1.0)


def test_a_problem_that_only_costs_is_scored_between_worst_and_best():
    mdp = find_environment("CliffWalking-v1")
    scorer = Scorer.of(mdp, 0.95)
    assert scorer(solve(mdp, gamma=0.95).policy) == pytest.approx(1.0)
    assert 0.0 < scorer(mdp.uniform_policy()) < 1.0


def test_reachable_states():
    transitions = np.zeros((4, 1, 4))
    transitions[0, 0, 2] = transitions[1, 0, 0] = transitions[2, 0, 2] = transitions[3, 0, 3] = 1.0
    mdp = FiniteMDP(transitions, np.zeros((4, 1)), 0)
    assert reachable(mdp).tolist() == [True, False, True, False]
    with pytest.raises(ValueError, match="nothing to compare"):
        Scorer.of(mdp, 0.9)


# Methods ------------------------------------------------------------------------------------------------------------


def test_noting_states_changes_nothing():
    mdp = combination_lock(4)
    plain = CE_METHODS["trpo"]()(TabularWorld(mdp, seed=2), None, gamma=0.9, budget=3_000)
    seeing = SeenStates(TabularWorld(mdp, seed=2))
    watched = CE_METHODS["trpo"]()(seeing, None, gamma=0.9, budget=3_000)
    assert np.array_equal(plain.policy, watched.policy)
    assert seeing.samples == 3_000
    assert seeing.seen[mdp.start > 0.0].all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_compared(method):
    run = run_job(ComparisonJob(method, "cct/3", 1, 9_000, 0.9))
    assert 0 < run.used <= 9_000
    assert run.samples[0] == 0
    assert (np.diff(run.samples) >= 0).all()
    assert 0.0 < run.coverage <= 1.0
    again = run_job(ComparisonJob(method, "cct/3", 1, 9_000, 0.9))
    assert np.array_equal(run.scores, again.scores)
    assert np.array_equal(run.samples, again.samples)


@pytest.mark.parametrize("method", ["ce-trpo", "ce-reinforce", "ce-model-based"])
@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_curious_explorer_keeps_to_the_smallest_budget_it_accepts(method, gamma):
    made = METHODS[method]()
    least = made.least_budget(gamma)
    world = TabularWorld(combination_lock(3), seed=0)
    seen = []
    result = made(
        world, None, gamma=gamma, budget=least, watch=lambda policy, samples: seen.append((policy.copy(), samples))
    )
    assert result.samples == world.samples <= least
    policy, samples = seen[0]
    assert (samples, policy.std()) == (0, 0.0)
    assert seen[1][1] > 0  # the first look at the improvement comes after the exploration is paid for
    with pytest.raises(ValueError, match=f"at least {least:,}"):
        METHODS[method]()(TabularWorld(combination_lock(3), seed=0), None, gamma=gamma, budget=least - 1)


@pytest.mark.parametrize("method", ["ce-trpo", "ce-reinforce", "ce-model-based"])
def test_curious_explorer_measures_where_its_policies_go_by_fresh_walks(method, monkeypatch):
    used = []

    def noting(world, optimizer, **options):
        used.append(options)
        return explore(world, optimizer, **options)

    monkeypatch.setattr(comparison_methods, "explore", noting)
    METHODS[method]()(TabularWorld(combination_lock(3), seed=0), gamma=0.95, budget=100_000)
    (options,) = used
    # A quarter of 50,000 steps, in 20 rounds of walks of about 40 steps.
    assert options["visits"] == FreshVisits(15)
    assert options["rounds"] == 20
    assert options["budget"] == 1_875


# The folder ---------------------------------------------------------------------------------------------------------


def test_files_say_what_happened(whole):
    summary = json.loads(whole["summary.json"])
    rows = list(csv.DictReader(whole["results.csv"].decode().splitlines()))
    assert len(rows) == 3 * 2 * 3
    assert {row["budget"] for row in rows if row["environment"] == "dcl/2"} == {"9000"}
    for row in rows:
        job = ComparisonJob(
            row["method"], row["environment"], int(row["seed"]), int(row["budget"]), float(row["gamma"])
        )
        if job.seed == 1:
            run = run_job(job)
            assert float(row["score"]) == run.scores[-1]
            assert int(row["samples"]) == run.used
            reached = statistics.first_reaching(run.samples, run.scores, 0.95)
            assert row["samples_to_target"] == ("" if math.isinf(reached) else f"{reached:.0f}")
            kept = statistics.share_above(run.samples, run.scores, 0.95, run.used)
            assert row["share_above_target"] == ("" if math.isinf(reached) else str(kept))
    scores = np.array([float(row["score"]) for row in rows if row["method"] == "model-based"])
    assert summary["aggregate"]["model-based"]["iqm"] == pytest.approx(stats.trim_mean(scores, 0.25))
    assert summary["aggregate"]["model-based"]["reached_target"] == 1.0
    kept = [row["share_above_target"] for row in rows if row["method"] == "reinforce" and row["environment"] == "cct/3"]
    mean = np.mean([float(share) for share in kept if share])
    assert summary["environments"]["cct/3"]["reinforce"]["share_above_target"] == pytest.approx(mean)
    for figure in ("sample-efficiency", "performance-profile", "samples-to-target"):
        assert whole[f"figures/{figure}.png"].startswith(b"\x89PNG")


@pytest.mark.slow
def test_killed_resumed_and_spread_over_workers_it_ends_in_the_same_bytes(whole, tmp_path):
    folder = tmp_path / "out"
    command = [*CLI, "compare", *TINY_COMMAND, "--out", str(folder)]
    process = subprocess.Popen([*command, "--workers", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60.0
    while len(list(folder.glob("runs/*/*/*.npz"))) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(folder.glob("runs/*/*/*.npz")))
    assert 2 <= done < 18, "it was to be killed in the middle"
    finished = subprocess.run([*command, "--resume", "--workers", "2"], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert results_of(folder) == whole
    assert "model-based" in finished.stdout


def test_a_comparison_is_read_back_as_it_was(whole_folder):
    again = load_results(whole_folder)
    assert json.loads((whole_folder / "summary.json").read_text()) == again.summary
    run_path = next(whole_folder.rglob("runs/*/*/0000.npz"))
    kept = run_path.read_bytes()
    run_path.unlink()
    try:
        with pytest.raises(StudyError, match="17 of 18 runs; finish it with"):
            load_results(whole_folder)
    finally:
        run_path.write_bytes(kept)
    with pytest.raises(StudyError, match="holds no comparison"):
        load_results(whole_folder / "runs")


def test_the_page_says_what_the_data_say(whole_folder):
    results = load_results(whole_folder)
    text = (whole_folder / "report.html").read_text(encoding="utf-8")
    for method, figures in results.summary["aggregate"].items():
        row = text[text.index(f'">{method}</th>') :].split("</tr>")[0]
        assert f">{figures['iqm']:.3f}<" in row
        assert f">{figures['reached_target']:.0%}<" in row
        assert f">{figures['share_above_target']:.0%}<" in row
    data = comparison_data(results)
    assert [each["name"] for each in data["environments"]] == ["cct/3", "dcl/2"]
    assert all(data["improvement"]["final_score"][place][place] is None for place in range(3))
    fewest = results.summary["environments"]["cct/3"]["model-based"]["samples_to_target"]
    assert f"model-based on cct/3 ({fewest:,.0f})" in comparison_lead(results)


@pytest.mark.parametrize("settings", [TINY, {**TINY, "environments": ("cct/3", "dcl/2"), "gamma": 0.9}])
def test_the_command_on_the_page_is_the_same_comparison(settings):
    words = Comparison(**settings).command.split()[2:]
    given = dict(zip(words[::2], words[1::2], strict=True))
    again = Comparison(
        methods=tuple(given["--methods"].split(",")),
        environments=tuple(given["--environments"].split(",")),
        seeds=int(given["--seeds"]),
        budget=int(given.get("--samples", 1)),
        gamma=float(given.get("--gamma", 0.95)),
    )
    assert again.jobs == Comparison(**settings).jobs


def test_without_plotly_there_is_everything_but_the_page(tmp_path, monkeypatch):
    from curious_explorer.studies import comparison_study as report

    monkeypatch.setattr(report, "find_spec", lambda name: None)
    compare(Comparison(methods=("reinforce",), environments=("dcl/2",), seeds=1, budget=1_000), tmp_path / "out")
    assert (tmp_path / "out" / "summary.json").exists()
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_damaged_run_is_named(tmp_path):
    settings = Comparison(methods=("trpo",), environments=("cct/3",), seeds=1, budget=500)
    compare(settings, tmp_path / "out")
    damaged = next((tmp_path / "out").glob("runs/*/*/*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:-40])
    with pytest.raises(StudyError, match=rf"{damaged.name} cannot be read.*--resume"):
        compare(settings, tmp_path / "out", resume=True)


def test_another_comparison_is_left_alone(tmp_path):
    settings = {"methods": ("trpo",), "environments": ("cct/3",), "seeds": 1, "budget": 500}
    compare(Comparison(**settings), tmp_path / "out")
    before = results_of(tmp_path / "out")
    with pytest.raises(StudyError, match="add --resume"):
        compare(Comparison(**settings), tmp_path / "out")
    with pytest.raises(StudyError, match=r"seeds is 1 there and 2 here"):
        compare(Comparison(**(settings | {"seeds": 2})), tmp_path / "out", resume=True)
    assert results_of(tmp_path / "out") == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(StudyError, match="holds no comparison"):
        compare(Comparison(**settings), tmp_path / "mine")


# Bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ("ce-trp",)}, r"did you mean 'ce-trpo'\?"),
        ({"methods": ()}, "methods is empty"),
        ({"methods": ("trpo", "trpo")}, "each only once"),
        ({"environments": ("dcl10",)}, r"'dcl10'.*did you mean"),
        ({"environments": ("dcl",)}, r"has no size"),
        ({"environments": ("cct/3", "cct/3@5000")}, "each only once"),
        ({"environments": ("cct/3@many",)}, "whole number after the '@'"),
        ({"environments": ("CartPole-v1",)}, "'CartPole-v1' cannot be compared on"),
        ({"environments": ("nowhere.npz",)}, "there is no file"),
        ({"seeds": 0}, "seeds is 0"),
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"budget": 30, "methods": ("trpo",)}, "too few for trpo, which needs at least 90 at gamma 0.95"),
        ({"budget": 4_000, "methods": ("trpo", "ce-trpo")}, "too few for ce-trpo, which needs at least 4,800"),
    ],
)
def test_bad_input_before_anything_runs(changes, words):
    settings = {"methods": ("trpo",), "environments": ("cct/3",), "seeds": 1, "budget": 9_000, "gamma": 0.95}
    with pytest.raises(ValueError, match=words):
        Comparison(**(settings | changes))


def test_the_command_reports_bad_input_in_one_line(tmp_path):
    command = [*CLI, "compare", "--methods", "r-maxx", "--out", str(tmp_path / "out")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 2
    assert "did you mean 'r-max'?" in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_command_lists_what_it_knows():
    finished = subprocess.run([*CLI, "compare", "--list"], capture_output=True, text=True)
    assert finished.returncode == 0
    assert all(name in finished.stdout for name in METHODS)
    assert "windy-sea/20" in finished.stdout
    assert "r-max-published" not in finished.stdout
    assert "random walk with a greedy read-out" in " ".join(finished.stdout.split())
