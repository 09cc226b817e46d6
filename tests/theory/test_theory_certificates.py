"""Certificates hold at their confidence over a thousand runs, and are refused where they cannot be given."""

import json
import math

import numpy as np
import pytest
from random_mdps import random_mdp
from scipy.stats import beta as beta_distribution
from scipy.stats import binom, binomtest
from theory_helpers import KnowingOptimizer, explore_exactly

from curious_explorer import Exploration, TabularWorld, explore, theory
from curious_explorer.environments import combination_lock
from curious_explorer.resets.reset_model import exact_visits

RUNS = 1_000
SIGNIFICANCE = 1e-3


def kept_its_word(violations, delta, runs=RUNS):
    """Whether so many violations are compatible with a probability of at most delta."""
    return binomtest(violations, runs, delta, alternative="greater").pvalue > SIGNIFICANCE


def sampled_run(seed, *, kind="exact", visits=40):
    mdp = random_mdp(seed % 50, num_states=6, num_actions=3)
    world = TabularWorld(mdp, seed=seed)
    optimizer = KnowingOptimizer(mdp, kind, seed)
    run = explore(world, optimizer, gamma=0.85, rounds=2, thresholds=0.1, visits=visits, progress=False)
    return mdp, world, run


@pytest.mark.parametrize("kind", ["exact", "noisy"])
def test_certificates_hold_at_their_confidence(kind):
    """500 runs of each kind, a thousand in all: K_n, policy and visits are new in every run."""
    delta, violations, given, loose = 0.1, 0, 0, []
    for seed in range(RUNS // 2):
        mdp, world, run = sampled_run(seed, kind=kind)
        truth = theory.theorem_1(mdp, run)
        try:
            certificate = theory.certify(world, run, delta=delta, epsilon=truth.epsilons[-1], visits=60)
        except theory.CertificateError:
            continue
        given += 1
        violations += certificate.limit < truth.round_left[-1]
        loose.append(certificate.limit - truth.round_left[-1])
    assert given > 0.9 * RUNS / 2
    assert kept_its_word(violations, delta, RUNS // 2)
    if kind == "exact":  # then only the samples separate limit and truth: it must not be far from its confidence
        assert violations >= 5
        assert np.median(loose) < 0.15


def test_steps_are_counted_and_the_statement_is_complete():
    _, world, run = sampled_run(3)
    before = world.samples
    certificate = theory.certify(world, run, delta=0.05, epsilon=0.01, visits=500, optimizer_delta=0.02)
    assert certificate.samples == world.samples - before > 0
    assert certificate.confidence == pytest.approx(0.93)
    assert certificate.limit == pytest.approx(certificate.visitation_limit + 0.02)
    assert "epsilon = 0.01" in certificate.assumption
    assert certificate.statement in certificate.summary()
    assert json.loads(json.dumps(certificate.to_dict()))["visits"] == 500


def test_an_empty_set_needs_no_samples():
    mdp = random_mdp(2, terminal=False)
    run = explore_exactly(mdp, gamma=0.9, rounds=2, thresholds=lambda n: 0.0)
    assert not run.rounds[-1].poorly_visited.any()
    world = TabularWorld(mdp)
    certificate = theory.certify(world, run, delta=0.05, epsilon=0.0)
    assert (certificate.limit, certificate.samples, world.samples) == (0.0, 0, 0)
    assert "nothing left" in certificate.summary()


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (3, 10), (9, 10), (0, 10_000), (250, 10_000)])
def test_clopper_pearson_is_the_exact_limit(hits, count):
    limit = theory.clopper_pearson_upper(hits, count, 0.05)
    assert binom.cdf(hits, count, limit) == pytest.approx(0.05, rel=1e-9)
    assert limit == pytest.approx(beta_distribution.ppf(0.95, hits + 1, count - hits), rel=1e-12)
    assert theory.clopper_pearson_upper(count, count, 0.05) == 1.0


def test_certificates_that_cannot_be_given_are_refused():
    mdp, world, run = sampled_run(1)
    with pytest.raises(theory.CertificateError, match="state epsilon"):
        theory.certify(world, run, delta=0.05)
    before = world.samples
    with pytest.raises(theory.CertificateError, match="certifies nothing"):
        theory.certify(world, run, delta=0.05, epsilon=0.5)
    with pytest.raises(theory.CertificateError, match="draw more visits"):
        theory.certify(world, run, delta=0.001, epsilon=0.05, visits=1)
    assert world.samples == before  # refused before anything was drawn
    for delta in (0, 1, -1, 2.0, float("nan"), None):
        with pytest.raises(ValueError, match="delta is"):
            theory.certify(world, run, delta=delta, epsilon=0.0)
    with pytest.raises(ValueError, match=r"epsilon is -0\.1"):
        theory.certify(world, run, delta=0.1, epsilon=-0.1)
    with pytest.raises(ValueError, match="expected a round from 0 to 1"):
        theory.certify(world, run, delta=0.1, epsilon=0.0, round_number=2)
    with pytest.raises(ValueError, match="has no rounds"):
        theory.certify(world, Exploration((), 0.85), delta=0.1, epsilon=0.0)
    with pytest.raises(ValueError, match="made with gamma"):
        theory.certify(world, run, delta=0.1, epsilon=0.0, gamma=0.9)
    with pytest.raises(ValueError, match="give the world that was explored"):
        theory.certify(TabularWorld(combination_lock(5)), run, delta=0.1, epsilon=0.0)
    with pytest.raises(ValueError, match="expected less than 1"):
        theory.certify(world, run, delta=0.5, epsilon=0.0, optimizer_delta=0.5)
    assert mdp.num_states == world.num_states


# Margins for estimated visitation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["chernoff", "azuma"])
def test_margins_hold_in_all_states_and_rounds_at_once(method):
    delta, violations, visits = 0.1, 0, 25
    for seed in range(RUNS):
        mdp = random_mdp(seed % 40, num_states=4, num_actions=2)
        optimizer = KnowingOptimizer(mdp, "random", seed)
        run = explore(
            TabularWorld(mdp, seed=seed), optimizer, gamma=0.7, rounds=2, thresholds=0.3, visits=visits, progress=False
        )
        betas = [round_.threshold for round_ in run.rounds]
        margins = theory.visit_margins(4, betas, visits=visits, delta=delta, method=method)
        exact = np.cumsum(exact_visits(run.reset_model, mdp)[:-1], axis=0)
        poorly = np.array([round_.poorly_visited for round_ in run.rounds])
        above = poorly & (exact > margins.upper[:, None])
        below = ~poorly & (exact < margins.lower[:, None])
        violations += (above | below).any()
    assert kept_its_word(violations, delta)


def test_chernoff_limits_bound_the_binomial_tail_and_beat_azuma_at_small_thresholds():
    betas, visits, delta = [0.001, 0.01, 0.05], 20_000, 0.05
    chernoff = theory.visit_margins(100, betas, visits=visits, delta=delta)
    azuma = theory.visit_margins(100, betas, visits=visits, delta=delta, method="azuma")
    share = delta / (2 * 100 * 3)
    for beta, upper, lower in zip(betas, chernoff.upper, chernoff.lower, strict=True):
        assert binom.cdf(math.floor(beta * visits), visits, upper) <= share
        assert binom.sf(math.floor(beta * visits), visits, lower) <= share
        assert lower < beta < upper
    assert (chernoff.margins[:2] < azuma.margins[:2] / 2).all()
    np.testing.assert_allclose(azuma.margins, np.sqrt(np.arange(1, 4) * math.log(2 / (delta / 300)) / (2 * visits)))
    zero = theory.visit_margins(10, [0.0], visits=100, delta=0.1)
    assert zero.lower[0] == 0.0
    assert zero.upper[0] == pytest.approx(math.log(200) / 100)


def test_margins_refuse_bad_input():
    for bad, match in (
        ({"delta": 0.0}, "delta is"),
        ({"visits": 0}, "visits is 0"),
        ({"method": "guess"}, "method is 'guess'"),
        ({"thresholds": []}, "is empty"),
        ({"thresholds": [-1.0]}, "is -1"),
    ):
        arguments = {"num_states": 5, "thresholds": [0.1], "visits": 10, "delta": 0.1} | bad
        with pytest.raises(ValueError, match=match):
            theory.visit_margins(arguments.pop("num_states"), arguments.pop("thresholds"), **arguments)
