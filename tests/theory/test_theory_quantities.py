"""Exploitative factor, mismatch, coverage, hitting times and hardness against linear programs and closed forms."""

import numpy as np
import pytest
from exact_helpers import quantecon
from random_mdps import random_mdp
from theory_helpers import explore_exactly, program_visitation, two_states

from curious_explorer import FiniteMDP, theory
from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.exact import max_visitation, visitation
from curious_explorer.explorers.thresholds import linear
from curious_explorer.theory.quantities import mean_interval, visitation_ceilings


@pytest.mark.parametrize("seed", range(25))
def test_exploitative_factor_and_worst_mismatch_agree_with_linear_programming(seed):
    mdp = random_mdp(seed, num_states=6)
    most = program_visitation(mdp, 0.9)
    assert theory.exploitative_factor(mdp, gamma=0.9) == pytest.approx(most.sum(), abs=1e-9)
    mu = np.random.default_rng(seed).dirichlet(np.ones(6))
    assert theory.worst_mismatch(mdp, mu, gamma=0.9) == pytest.approx((most / mu).max(), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_mismatch_agrees_with_quantecon(seed):
    """Random rewards make the optimal policy unique, so that QuantEcon's is ours."""
    mdp = random_mdp(seed, num_states=7)
    policy = np.eye(mdp.num_actions)[quantecon(mdp, 0.9).solve("policy_iteration").sigma]
    policy[mdp.terminal] = 1.0 / mdp.num_actions
    mu = np.random.default_rng(seed).dirichlet(np.ones(7))
    expected = (visitation(mdp, policy, gamma=0.9) / mu).max()
    assert theory.mismatch_coefficient(mdp, mu, gamma=0.9) == pytest.approx(expected, rel=1e-9)
    assert theory.mismatch_coefficient(mdp, mu, gamma=0.9, policy=policy) == pytest.approx(expected, rel=1e-9)
    assert theory.worst_mismatch(mdp, mu, gamma=0.9) >= expected - 1e-12


def test_mismatch_is_infinite_where_the_reset_misses():
    assert theory.mismatch_coefficient(two_states(), 0, gamma=0.9) == np.inf
    assert theory.mismatch_coefficient(two_states(), [0.5, 0.5], gamma=0.9) == pytest.approx(1.8)


def test_average_reset_covers_where_the_last_one_forgets():
    mdp = combination_lock(10)
    model = explore_exactly(mdp, gamma=0.95, rounds=10, thresholds=linear(1 / 68)).reset_model.weighted("average")
    average, last = (theory.mismatch_coefficient(mdp, model.weighted(w), gamma=0.95) for w in ("average", "last"))
    assert average < last / 5
    report = theory.coverage(mdp, model)
    assert report.states == mdp.num_states
    assert report.covered == (model.distribution(mdp) >= 1 / (2 * mdp.num_states)).sum()
    assert 1.0 < report.effective_states < mdp.num_states
    assert theory.coverage(mdp, np.full(34, 1 / 34)).effective_states == pytest.approx(34)


def test_known_exploitative_factors():
    assert theory.exploitative_factor(two_states(), gamma=0.9) == pytest.approx(0.1 + 0.9)
    for depth in (5, 10, 20):
        assert theory.exploitative_factor(combination_lock(depth), gamma=0.9) == pytest.approx(2.44, abs=0.1)
        assert 3.2 <= theory.exploitative_factor(crossroad_traps(depth), gamma=0.9) <= 7.4
    independent = FiniteMDP([[[1.0, 0.0], [0.0, 1.0]]] * 2, np.zeros((2, 2)), 0)  # go where you like
    assert theory.exploitative_factor(independent, gamma=0.75) == pytest.approx(1.0 + 0.75)


def test_hitting_times_of_a_chain_are_its_distances():
    times = theory.hitting_times(crossroad_traps(6), gamma=0.9)
    for origin in range(6):
        np.testing.assert_allclose(times[origin, :], [abs(origin - target) for target in range(7)], atol=1e-9)
    assert np.isinf(times[6, :6]).all()
    assert times[6, 6] == 0.0


def test_hitting_times_by_value_iteration():
    """h = 1 in the target, gamma max_a P h elsewhere: iterated in plain NumPy."""
    mdp = random_mdp(4, num_states=6)
    dense = mdp.dense_transitions()
    times = theory.hitting_times(mdp, gamma=0.9)
    for target in range(6):
        hit = np.zeros(6)
        for _ in range(2000):
            hit = 0.9 * (dense @ hit).max(axis=1)
            hit[target] = 1.0
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(times[:, target], np.log(hit) / np.log(0.9), rtol=1e-9, atol=1e-9)


def test_ceilings_are_above_every_policy_on_random_mdps():
    loose = []
    for seed in range(300):
        mdp = random_mdp(seed) if seed % 3 else garnet(30, 3, 2, seed=seed)
        gamma = (0.0, 0.5, 0.9, 0.98)[seed % 4]
        most = max_visitation(mdp, gamma=gamma)
        ceilings, _ = visitation_ceilings(mdp, gamma=gamma)
        assert (ceilings >= most - 1e-9).all(), seed
        loose.append(ceilings.sum() / most.sum())
    assert np.median(loose) < 3.0


def test_ceilings_are_exact_on_a_deterministic_line_and_zero_off_the_graph():
    line = FiniteMDP(np.eye(5, k=1)[:, None, :], np.zeros((5, 1)), 0, terminal=[4])
    np.testing.assert_allclose(visitation_ceilings(line, gamma=0.9)[0], [0.1, 0.09, 0.081, 0.0729, 0.6561])
    island = FiniteMDP([[[1.0, 0.0]], [[0.5, 0.5]]], np.zeros((2, 1)), 0)
    assert visitation_ceilings(island, gamma=0.9)[0].tolist() == [pytest.approx(1.0), 0.0]


def test_sampled_targets_give_an_interval_that_holds():
    """The interval is allowed to miss one time in ten: over 200 independent draws a binomial test at 1e-3 judges."""
    from scipy.stats import binomtest

    mdp = garnet(300, 3, 2, seed=5)
    truth = theory.exploitative_factor(mdp, gamma=0.9)
    missed = 0
    for seed in range(200):
        bound = theory.exploitative_factor_bound(mdp, gamma=0.9, targets=25, delta=0.1, seed=seed)
        assert bound.lower <= truth <= bound.upper
        low, high = bound.interval
        missed += not low <= truth <= high
        assert high - low < bound.upper - bound.lower
    assert binomtest(missed, 200, 0.1, alternative="greater").pvalue > 1e-3


def test_mean_interval_solves_its_equation():
    low, high = mean_interval(0.3, 50, 0.05)
    for q in (low, high):
        entropy = 0.3 * np.log(0.3 / q) + 0.7 * np.log(0.7 / (1 - q))
        assert entropy == pytest.approx(np.log(40) / 50, rel=1e-9)
    assert mean_interval(0.0, 10, 0.1)[0] == 0.0
    assert mean_interval(1.0, 10, 0.1)[1] == 1.0


def test_hardness_of_the_two_test_problems():
    lock = theory.hardness(combination_lock(20), gamma=0.9)
    # The uniform policy stays on an open lane with probability 1/2 a level; the best one always does.
    assert lock.random_walk_cost == pytest.approx(0.8 * 2**22, rel=1e-6)
    assert lock.reachable_states == 64
    assert lock.eccentricity == 21
    assert lock.optimal_value == pytest.approx(0.1 * 0.9**20)
    assert lock.random_value == pytest.approx(0.1 * 0.9**20 / 2**21)
    assert "directed exploration" in lock.verdict
    traps = theory.hardness(crossroad_traps(20), gamma=0.9)
    assert traps.radius == pytest.approx(20.0)
    assert traps.diameter == pytest.approx(20.0)
    assert traps.unreachable_pairs == 20
    # In T0 a wrong action wastes one step: the gap is (1 - gamma) (gamma^19 - gamma^20); later ones are larger.
    assert traps.smallest_gap == pytest.approx(0.1 * 0.9**19 * (1 - 0.9), rel=1e-9)
    easy = theory.hardness(two_states(), gamma=0.9)
    assert easy.random_walk_cost == pytest.approx(1.0)
    assert easy.smallest_gap is None
    assert "adds little" in easy.verdict


def test_large_mdps_get_an_interval_instead():
    mdp = garnet(20_000, 3, 2)
    with pytest.raises(ValueError, match=r"use theory\.exploitative_factor_bound"):
        theory.exploitative_factor(mdp, gamma=0.9)
    report = theory.hardness(mdp, gamma=0.9)
    assert report.exploitative_factor is None
    assert 1.0 - 1e-9 <= report.exploitative_factor_bound.lower < report.exploitative_factor_bound.upper < 20_000
    assert "see the interval" in report.summary()


def test_the_smallest_mdps_have_a_hardness_too():
    point = FiniteMDP([[[1.0]]], [[0.5]], 0)
    report = theory.hardness(point, gamma=0.9)
    assert (report.exploitative_factor, report.radius, report.diameter) == (pytest.approx(1.0), 0.0, 0.0)
    assert report.smallest_gap is None
    assert theory.exploitative_factor_bound(point, gamma=0.9).upper == pytest.approx(1.0)
    ended = FiniteMDP([[[1.0, 0.0]], [[0.0, 1.0]]], np.zeros((2, 1)), [0.25, 0.75], terminal=[0, 1])
    assert theory.exploitative_factor(ended, gamma=0.5) == pytest.approx(1.0)
    assert theory.hardness(ended, gamma=0.5).unreachable_pairs == 2
    instant = theory.hardness(two_states(), gamma=0.0)
    assert instant.exploitative_factor == pytest.approx(1.0)
    assert instant.radius is None


def test_bad_input_is_refused():
    mdp = two_states()
    with pytest.raises(ValueError, match=r"gamma is 1\.0"):
        theory.exploitative_factor(mdp, gamma=1.0)
    with pytest.raises(ValueError, match="gamma is 0"):
        theory.hitting_times(mdp, gamma=0.0)
    with pytest.raises(ValueError, match="names state 7"):
        theory.hitting_times(mdp, gamma=0.9, targets=[7])
    with pytest.raises(ValueError, match="reset has shape"):
        theory.mismatch_coefficient(mdp, [0.5, 0.25, 0.25], gamma=0.9)
    with pytest.raises(ValueError, match="delta is 1"):
        theory.exploitative_factor_bound(mdp, gamma=0.9, targets=3, delta=1.0)
    with pytest.raises(ValueError, match="targets is -1"):
        theory.exploitative_factor_bound(mdp, gamma=0.9, targets=-1)
    with pytest.raises(ValueError, match="names no state"):
        theory.coverage(mdp, 0, states=[])
    other = explore_exactly(random_mdp(2, num_states=5), gamma=0.9, rounds=1).reset_model
    with pytest.raises(ValueError, match="reset model was made for 5 states"):
        theory.mismatch_coefficient(mdp, other, gamma=0.9)
