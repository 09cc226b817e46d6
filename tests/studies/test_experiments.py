"""Experiments, presets, runs and what is said about them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from curious_explorer import TRPO, Reinforce, TabularWorld, evaluate, explore, improve, solve
from curious_explorer.learners.actor_critic import FIXED_EPISODES
from curious_explorer.studies.paper_experiments import (
    ENVIRONMENTS,
    Experiment,
    ExperimentSettings,
    grid,
    settings_of,
)
from curious_explorer.studies.paper_results import (
    NOT_REPRODUCED,
    PAST,
    REPRODUCED,
    WEAKER,
    ExperimentResults,
    curves_csv,
    judge,
    mean_curve,
    paper_says,
    reached_shares,
    results_csv,
    size_of,
    summarize,
    value_at,
)
from curious_explorer.studies.paper_run import ARMS, run_experiment
from curious_explorer.studies.runner import safe_name
from curious_explorer.studies.statistics import difference_interval

SMALL = ExperimentSettings(
    gamma=0.9, rounds=3, exploring=TRPO(updates=5), learning=TRPO(updates=70, episodes=10), visits=200
)


@pytest.fixture(scope="module")
def runs():
    return [run_experiment(Experiment("cct", 3, "trpo"), seed, SMALL) for seed in range(3)]


def test_the_paper_has_twelve_experiments():
    assert len({experiment.name for experiment in grid()}) == 12


def test_an_mdp_is_kept_by_what_makes_it_and_not_by_its_name(monkeypatch):
    experiment = Experiment("cct", 2, "trpo")
    of_the_paper = experiment.mdp(0)
    assert experiment.mdp(0) is of_the_paper
    monkeypatch.setitem(ENVIRONMENTS, "cct", ENVIRONMENTS["dcl"])
    assert experiment.mdp(0).num_states != of_the_paper.num_states


def test_unknown_names_are_refused_with_the_nearest_one():
    with pytest.raises(ValueError, match=r"environment is 'ctc'.*did you mean 'cct'"):
        Experiment("ctc", 5, "trpo")
    with pytest.raises(ValueError, match=r"optimizer is 'TRP0'.*did you mean 'trpo'"):
        Experiment("cct", 5, "TRP0")
    with pytest.raises(ValueError, match=r"preset is 'paper_text'.*did you mean 'paper-text'"):
        settings_of("paper_text", Experiment("cct", 5, "trpo"))
    with pytest.raises(ValueError, match="depth"):
        Experiment("cct", 0, "trpo")


@pytest.mark.parametrize(
    ("name", "gamma", "beta"),
    [  # read off the file names of the paper's figures
        ("cct/5/trpo", 0.9, 0.05),
        ("cct/10/reinforce", 0.9, 0.0083),
        ("cct/20/reinforce", 0.92, 0.0125),
        ("cct/20/trpo", 0.96, 0.0125),
        ("dcl/5/reinforce", 0.9, 0.0167),
        ("dcl/10/trpo", 0.9, 0.0083),
        ("dcl/20/trpo", 0.92, 0.0042),
    ],
)
def test_the_preset_of_the_figures_has_the_numbers_in_their_names(name, gamma, beta):
    environment, depth, optimizer = name.split("/")
    settings = settings_of("paper-figures", Experiment(environment, int(depth), optimizer))
    assert settings.gamma == gamma
    assert round(settings.beta, 4) == beta
    assert settings.rounds == int(depth)


def test_the_presets_of_the_paper_take_its_schedule_and_its_reset_model():
    settings = settings_of("paper-text", Experiment("dcl", 5, "trpo"))
    assert [settings.thresholds(19)(n) for n in range(3)] == [0.0, 1 / 38, 2 / 38]
    assert settings.weighting == "last"
    assert settings.learning.updates * (settings.learning.episodes or FIXED_EPISODES) == 2400
    assert [settings_of("fixed", Experiment("dcl", 5, "trpo")).thresholds(19)(n) for n in range(2)] == [1 / 38, 2 / 38]


@pytest.mark.parametrize("optimizer", ["trpo", "reinforce"])
def test_tuned_is_what_the_library_does_when_nothing_is_said(optimizer):
    """The run of the study is that of two calls with a discount alone: explore, then improve."""
    experiment = Experiment("cct", 3, optimizer)
    run = run_experiment(experiment, 4, settings_of("tuned", experiment))
    mdp = experiment.mdp(4)
    world = TabularWorld(mdp, seed=4)
    learner = {"trpo": TRPO, "reinforce": Reinforce}[optimizer]()
    exploration = explore(world, learner, gamma=0.95, progress=False)
    assert run.exploration_samples == world.samples
    learned = improve(world, learner, exploration.reset_model, gamma=0.95, evaluation_episodes=0)
    assert run.learning_samples == learned.samples
    best = mdp.start @ solve(mdp, gamma=0.95).values
    assert run.values["with_ce"] == pytest.approx(mdp.start @ evaluate(mdp, learned.policy, gamma=0.95) / best)
    assert run.values["with_ce"] > 0.95
    assert not run.poorly_visited[-1].any()
    assert run.bounds["certificate"] == 0.0  # nothing is left that any policy could visit more


def test_returns_are_discounted_on_the_chain_and_undiscounted_on_the_lock():
    assert Experiment("cct", 10, "trpo").best_return(0.9) == pytest.approx(0.9**9)
    assert Experiment("dcl", 10, "trpo").best_return(0.9) == 1.0


def test_a_run_accounts_for_every_sample_and_its_curves_end_in_its_values(runs):
    run = runs[0]
    assert set(run.values) == set(run.curves) == set(ARMS)
    for arm, curve in run.curves.items():
        assert curve.fractions[-1] == run.values[arm]
        assert curve.samples[0] == curve.episodes[0] == 0
        assert (np.diff(curve.samples) > 0).all()
        assert (np.diff(curve.episodes) > 0).all()
        # A uniform policy on CCT3: h = 1/4 of going forward, solved by hand for gamma 0.9.
        assert curve.fractions[0] == pytest.approx(uniform_value_of_cct3(0.9) / 0.9**2)
    assert run.curves["with_ce"].samples[-1] == run.learning_samples
    assert run.curves["without_ce"].samples[-1] <= run.learning_samples
    total = run.exploration_samples + run.learning_samples
    assert run.learning_samples < run.curves["without_ce_total_budget"].samples[-1] <= total
    assert run.curves["with_ce"].episodes[-1] == 700
    assert run.values["with_ce"] > 0.99


def uniform_value_of_cct3(gamma):
    """The discounted return of the uniform policy from T0, by iterating its recursion on T0, T1, T2."""
    values = np.zeros(3)
    for _ in range(2000):
        forward = np.array([values[1], values[2], 0.0])
        back = np.array([values[0], values[0], values[1]])
        values = 0.25 * (gamma * forward + np.array([0.0, 0.0, 1.0])) + 0.75 * gamma * back
    return values[0]


def test_the_sampled_visits_and_the_poorly_visited_states_fit_the_thresholds(runs):
    run = runs[0]
    assert run.visited.shape == run.poorly_visited.shape == (3, 4)
    np.testing.assert_allclose(run.visited.sum(axis=1), 1.0)
    np.testing.assert_array_equal(run.poorly_visited, np.cumsum(run.visited, axis=0) <= run.thresholds[:, None])


def test_theorem_1_holds_on_the_run(runs):
    for run in runs:
        bounds = run.bounds
        assert bounds["theorem_1_left"] <= bounds["theorem_1_a_posteriori"] + 1e-9
        assert bounds["theorem_1_a_posteriori"] <= bounds["theorem_1_repaired"] + 1e-9
        assert bounds["certificate"] is None or bounds["certificate"] >= bounds["certificate_truth"]


def test_a_run_depends_on_its_seed_alone(runs):
    again = run_experiment(Experiment("cct", 3, "trpo"), 1, SMALL)
    assert again.values == runs[1].values
    np.testing.assert_array_equal(again.visited, runs[1].visited)
    assert not np.array_equal(again.visited, runs[0].visited)


def test_the_summary_has_the_promised_form(runs):
    (cell,) = json.loads(json.dumps(summarize(runs)))["cells"]
    assert list(cell)[:7] == ["env", "depth", "optimizer", "gamma", "beta", "seeds", "optimal"]
    assert list(cell)[7:] == ["with_ce", "without_ce", "without_ce_total_budget", "samples"]
    assert cell["optimal"] == pytest.approx(0.1 * 0.9**2)
    assert cell["seeds"] == [0, 1, 2]
    for arm in ARMS:
        values = np.array(cell[arm]["values"])
        assert cell[arm]["mean"] == pytest.approx(values.mean())
        assert cell[arm]["std"] == pytest.approx(values.std())
        assert cell[arm]["min"] == values.min()
    assert cell["samples"] == {
        "exploration": np.mean([run.exploration_samples for run in runs]),
        "learning": np.mean([run.learning_samples for run in runs]),
    }


def test_the_csv_has_a_row_for_each_run_and_arm(runs):
    head, *rows = results_csv(runs).splitlines()
    assert len(rows) == len(runs) * len(ARMS)
    assert all(row.count(",") == head.count(",") for row in rows)


def test_the_csv_of_curves_has_every_point(runs):
    rows = [row.split(",") for row in curves_csv(runs).splitlines()[1:]]
    assert len(rows) == sum(len(curve.samples) for run in runs for curve in run.curves.values())
    last = [row for row in rows if row[3:5] == ["1", "with_ce"]][-1]
    assert [int(last[5]), int(last[6]), float(last[7])] == [700, runs[1].learning_samples, runs[1].values["with_ce"]]


def test_curves_by_samples_pay_for_the_exploration_first(runs):
    effort, mean, _ = mean_curve(runs, "with_ce", "samples")
    exploring = effort <= min(run.exploration_samples for run in runs)
    assert exploring.sum() > 10
    np.testing.assert_allclose(mean[exploring], runs[0].curves["with_ce"].fractions[0])
    assert mean[-1] == pytest.approx(np.mean([run.values["with_ce"] for run in runs]))
    assert value_at(runs, "with_ce", 10**9) == pytest.approx([run.values["with_ce"] for run in runs])


def test_shares_are_red_to_green_inside_and_green_outside():
    visited = np.array([[0.9, 0.1, 0.0], [0.8, 0.0, 0.2]])
    poor = np.array([[False, True, True], [False, True, True]])
    shares = reached_shares(visited, poor, np.array([0.0, 0.4]))
    np.testing.assert_allclose(shares, [[1.0, 0.0, 0.0], [1.0, 0.25, 0.5]])


@pytest.mark.parametrize(
    ("experiment", "rounds", "shown"),
    [
        (Experiment("cct", 20, "reinforce"), 20, [1, 2, 3, 6, 20]),
        (Experiment("dcl", 20, "trpo"), 20, [1, 4, 7, 10, 14]),
        (Experiment("dcl", 7, "trpo"), 7, [1, 2, 4, 6, 7]),
    ],
)
def test_the_rounds_shown_are_the_papers(runs, experiment, rounds, shown):
    run = replace(runs[0], experiment=experiment, thresholds=np.arange(float(rounds)))
    assert ExperimentResults(experiment, [run]).rounds_shown == shown


def test_returns_are_what_is_drawn_and_shown(runs):
    result = ExperimentResults(runs[0].experiment, runs)
    band = result.returns("episodes")["with_ce"]
    assert band.effort[-1] == result.episodes_shown == 700
    assert band.mean[-1] == pytest.approx(0.9**2 * result.spreads["with_ce"].mean)
    assert (band.low <= band.mean).all()
    assert (band.mean <= band.high).all()
    np.testing.assert_allclose(result.mu.sum(axis=1), 1.0)
    assert result.finding.end_with_ce == result.spreads["with_ce"].mean
    assert result.bound("theorem_1_left") == pytest.approx(np.mean([run.bounds["theorem_1_left"] for run in runs]))


def seeds(solved: int, many: int = 10) -> np.ndarray:
    """Values of so many seeds, so many of which get everything."""
    return np.repeat([1.0, 0.0], [solved, many - solved])


@pytest.mark.parametrize(
    ("with_ce", "without_ce", "size"),
    [
        *[(1, 0, "no gain"), (3, 0, "no gain"), (4, 0, "moderate gain"), (5, 0, "clear gain"), (7, 0, "big gain")],
        *[(10, 6, "moderate gain"), (10, 10, "no gain"), (8, 6, "no gain"), (0, 10, "no gain")],
    ],
)
def test_the_size_of_a_gain_is_what_its_interval_leaves(with_ce, without_ce, size):
    assert size_of(difference_interval(seeds(with_ce), seeds(without_ce))) == size


def test_findings_are_judged_at_the_papers_episodes():
    assert paper_says(Experiment("cct", 20, "reinforce")) == "no reward at all"
    assert paper_says(Experiment("cct", 7, "trpo")) == ""
    nothing, everything = (seeds(0), seeds(0)), (seeds(10), seeds(10))
    assert judge("", everything, everything) == ""
    assert judge("no gain", (seeds(10), np.full(10, 0.98)), everything) == REPRODUCED
    assert judge("no gain", (seeds(10), seeds(5)), everything) == NOT_REPRODUCED
    assert judge("no gain", (seeds(10), seeds(9)), everything) == NOT_REPRODUCED  # 0.1 is visible
    assert judge("clear gain", (seeds(9), seeds(3)), everything) == REPRODUCED
    assert judge("moderate gain", (seeds(10), seeds(0)), everything) == REPRODUCED  # more than it says
    assert judge("big gain", (seeds(1), seeds(0)), everything) == NOT_REPRODUCED  # one lucky seed in ten
    assert judge("big gain", (seeds(4), seeds(0)), everything) == WEAKER
    assert judge("big gain", (seeds(2, 2), seeds(0, 2)), everything) == WEAKER  # two seeds prove little
    assert judge("big gain", (seeds(3), seeds(3)), (seeds(10), seeds(0))) == NOT_REPRODUCED
    assert judge("no reward at all", nothing, (seeds(10), seeds(0))) == PAST
    assert judge("no reward at all", nothing, (seeds(1), seeds(0))) == NOT_REPRODUCED  # some reward, no certain gain
    assert judge("no reward at all", nothing, nothing) == REPRODUCED
    assert judge("no reward at all", nothing, (seeds(9), seeds(9))) == NOT_REPRODUCED


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "../../etc/passwd", "", "a b", ".hidden", "x" * 500, "\0"]
)
def test_any_text_makes_a_harmless_file_name(text):
    name = safe_name(text)
    assert name
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert not name.startswith(".")
    assert len(name) < 100
    assert safe_name(text + "!") != name


def test_experiments_have_plain_names():
    assert safe_name("dcl/20/trpo") == "dcl-20-trpo"
