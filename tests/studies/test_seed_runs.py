"""An experiment with many seeds: the same values as seed by seed, plain data, and the figure of their distribution."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")  # the rest needs it, hence:
# ruff: noqa: E402

from many_seeds_helpers import StackedWorlds

from benchmarks.seed_runs import LABELS, SeedRuns, band_width, draw_seeds, exact_values, run_seeds, share_reaching
from curious_explorer import evaluate
from curious_explorer.environments import combination_lock
from curious_explorer.studies.figures import save_figure
from curious_explorer.studies.paper_experiments import Experiment, fixed_settings
from curious_explorer.studies.paper_run import ARMS, run_experiment


def short_settings(experiment):
    settings = fixed_settings(experiment)
    exploring, learning = replace(settings.exploring, updates=8), replace(settings.learning, updates=10)
    return replace(settings, rounds=3, visits=300, exploring=exploring, learning=learning)


def stacked(mdp, seeds):
    return StackedWorlds([mdp] * len(seeds), seeds)


@pytest.mark.parametrize("name", ["trpo", "reinforce"])
def test_a_cell_gives_each_seed_what_it_gives_alone(name):
    experiment = Experiment("dcl", 3, name)
    settings = short_settings(experiment)
    runs = run_seeds(experiment, [LABELS, 9], settings, make_worlds=stacked)
    alone = run_experiment(experiment, LABELS, settings)  # the seed whose own labels are those that all share
    for arm in ARMS:
        assert runs.values[arm][0] == pytest.approx(alone.values[arm], abs=1e-9)
    assert runs.samples["exploration"][0] == alone.exploration_samples
    assert runs.samples["with_ce"][0] == alone.learning_samples
    assert runs.samples["without_ce"][0] == alone.learning_samples
    assert runs.samples["without_ce_total_budget"][0] == alone.exploration_samples + alone.learning_samples
    assert runs.optimal == pytest.approx(alone.optimal)


def test_values_are_the_exact_ones():
    mdp = combination_lock(3, permute_actions=1)
    policies = np.random.default_rng(0).dirichlet(np.ones(mdp.num_actions), (5, mdp.num_states))
    expected = [mdp.start @ evaluate(mdp, policy, gamma=0.9) for policy in policies]
    np.testing.assert_allclose(exact_values(mdp, torch.from_numpy(policies), 0.9), expected, rtol=1e-12)


def made_up_runs(values):
    count = len(values)
    arms = dict.fromkeys(ARMS, np.array(values))
    samples = {name: np.full(count, 100) for name in ("exploration", *ARMS)}
    seconds = dict.fromkeys(samples, 0.5)
    return SeedRuns(Experiment("cct", 20, "trpo"), tuple(range(count)), 0.95, 0.5, arms, samples, seconds)


def test_results_are_plain_data_with_quantiles_and_the_share_that_solves():
    described = json.loads(json.dumps(made_up_runs([0.0, 0.2, 0.9, 0.95, 1.0]).described()))
    arm = described["arms"]["with_ce"]
    assert arm["solved"] == 0.6
    assert arm["mean"] == pytest.approx(0.61)
    assert arm["quantiles"]["0.5"] == 0.9
    assert described["samples_per_second"] == 4 * 5 * 100 / 2.0
    assert SeedRuns.from_described(described).described() == described


def test_the_curve_is_the_share_of_seeds_that_reach_a_value():
    values = np.array([0.5, 0.0, 1.0, 0.5])
    where, share = share_reaching(values)
    for x in (0.01, 0.3, 0.5, 0.51, 0.99, 1.0):
        drawn = share[np.searchsorted(where, x)]  # a step goes back from its point
        assert drawn == (values >= x).mean()
    assert band_width(1_000) == pytest.approx(0.0429, abs=1e-4)  # sqrt(ln 40 / 2000)


def test_the_figure_shows_every_cell(tmp_path):
    figure = draw_seeds([made_up_runs([0.0, 0.4, 1.0]), made_up_runs([1.0, 1.0])])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["TRPO on CCT20, 3 seeds", "TRPO on CCT20, 2 seeds"]
    assert {path.suffix for path in save_figure(figure, tmp_path / "seeds")} == {".png", ".pdf"}
