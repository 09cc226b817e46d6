"""The optimizer-free certificate: inner maximisation against linear programs, confidence over a thousand runs."""

import json
import math

import numpy as np
import pytest
from random_mdps import random_mdp
from scipy.optimize import linprog
from scipy.stats import binom, binomtest
from theory_helpers import explore_exactly

from curious_explorer import TRPO, FiniteMDP, TabularWorld, explore, theory
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.exact import max_visitation
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.thresholds import linear
from curious_explorer.models.planning import best_in_ball
from curious_explorer.theory.counts_certificate import (
    REGIONS,
    bernstein_upper,
    best_in_box,
    entry_limits,
    optimistic_visitation,
)
from curious_explorer.worlds.world import EpisodeBatch, TransitionCounts


def best_by_program(chances, radius, values):
    """max p v over distributions p with |p - chances|_1 <= radius: variables p and |p - chances|."""
    size = values.size
    eye = np.eye(size)
    bounds = np.vstack(
        [np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.hstack([np.zeros(size), np.ones(size)])[None, :]]
    )
    limits = np.concatenate([chances, -chances, [radius]])
    total = np.concatenate([np.ones(size), np.zeros(size)])[None, :]
    found = linprog(-np.concatenate([values, np.zeros(size)]), A_ub=bounds, b_ub=limits, A_eq=total, b_eq=[1.0])
    assert found.status == 0, found.message
    return -found.fun


def test_inner_maximisation_agrees_with_linear_programming():
    for seed in range(300):
        random = np.random.default_rng(seed)
        size = int(random.integers(2, 8))
        chances = random.dirichlet(np.ones(size)) * (random.random(size) < 0.6)
        chances[random.integers(size)] += 0.1
        chances /= chances.sum()
        values = np.round(random.random(size), int(random.integers(1, 8)))  # ties now and then
        radius = float(random.choice([0.0, 0.1, 0.7, 1.5, 2.0]) * random.random() ** 0.5)
        support = random.permutation(np.flatnonzero(chances))
        order, best = np.arange(support.size), int(np.argmax(values))
        ball = best_in_ball(order, support, chances[support], 0, support.size, radius, values, best)
        assert ball == pytest.approx(best_by_program(chances, radius, values), abs=1e-8), seed
        width = random.random(size) * 0.3
        low, high = np.maximum(chances - width, 0.0), np.minimum(chances + width, 1.0)
        unseen = float(random.choice([0.0, 0.05, 1.0]))
        limits = [(low[x], high[x]) if chances[x] > 0.0 else (0.0, unseen) for x in range(size)]
        box = best_in_box(
            support,
            low[support],
            high[support],
            0,
            support.size,
            unseen,
            values,
            np.argsort(-values),
            np.full(size, -1),
        )
        found = linprog(-values, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=limits)
        assert box == pytest.approx(-found.fun, abs=1e-8), seed


def test_optimistic_values_solve_their_equation():
    """The fixed point, checked by one step in which every inner maximum is a linear program."""
    mdp = random_mdp(5, num_states=4, num_actions=2, terminal=False)
    world = TabularWorld(mdp)
    counts = world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=400, horizon=30, gamma=0.8, record=True)).seen
    mask = np.array([False, False, True, False])
    values, radius, _ = optimistic_visitation(
        counts, mask, num_actions=2, gamma=0.8, delta=0.1, terminal=np.zeros(4, dtype=bool), region="l1"
    )
    tries = np.zeros((4, 2, 4))
    np.add.at(tries, (counts.state, counts.action, counts.next_state), counts.times)
    for state in range(4):
        best = max(
            best_by_program(tries[state, a] / tries[state, a].sum(), radius[state * 2 + a], values) for a in range(2)
        )
        assert values[state] == pytest.approx(0.2 * mask[state] + 0.8 * best, abs=1e-7)
    assert (values >= solve(mdp, gamma=0.8, rewards=np.outer(mask, np.ones(2))).values - 1e-9).all()


@pytest.mark.parametrize("region", REGIONS)
def test_certificates_from_counts_hold_at_their_confidence(region):
    """A thousand independent runs; K is chosen after looking at the counts, as the worst covered state."""
    delta, violations, given = 0.2, 0, 0
    for seed in range(1_000):
        mdp = random_mdp(seed % 40, num_states=3, num_actions=2, terminal=False)
        world = TabularWorld(mdp, seed=seed)
        batch = world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=150, horizon=20, gamma=0.7, record=True))
        mask = np.arange(3) == np.argmin(batch.occupancy)
        truth = float(mdp.start @ solve(mdp, gamma=0.7, rewards=np.outer(mask, np.ones(2))).values)
        start = mdp.start if seed % 2 else None
        try:
            certificate = theory.certify_counts(
                world, batch.seen, poorly_visited=mask, gamma=0.7, delta=delta, start=start, restarts=500, region=region
            )
        except theory.CertificateError:
            continue
        given += 1
        violations += certificate.limit < truth
    assert given > 900
    assert binomtest(violations, 1_000, delta, alternative="greater").pvalue > 1e-3


def test_weissman_radii_hold_for_all_counts_at_once():
    """Adaptive stopping at the worst moment: the radius must cover the largest deviation over all n, not at one n."""
    chances, delta, violations = np.array([0.5, 0.3, 0.2]), 0.3, 0
    tries = np.arange(1, 301)
    radius = theory.weissman_radius(tries, num_states=3, num_actions=1, delta=3 * delta)  # one pair's share: delta
    for seed in range(1_000):
        drawn = np.random.default_rng(seed).choice(3, p=chances, size=300)
        frequency = np.cumsum(np.eye(3)[drawn], axis=0) / tries[:, None]
        violations += (np.abs(frequency - chances).sum(axis=1) > radius).any()
    assert binomtest(violations, 1_000, delta, alternative="greater").pvalue > 1e-3
    expected = math.sqrt(2 / 7 * math.log((2**3 - 2) * 3 * 7 * 8 / (3 * delta)))
    assert radius[6] == pytest.approx(min(2.0, expected))


def test_entry_limits_are_clopper_pearson_with_a_share_for_every_count():
    hits, tries = np.array([0.0, 3.0, 12_000.0, 50.0]), np.array([40.0, 10.0, 60_000.0, 50.0])
    lower, upper = entry_limits(hits, tries, num_states=64, num_actions=4, delta=0.05)
    for k, n, low, high in zip(hits, tries, lower, upper, strict=True):
        share = 0.05 / (2 * 64**2 * 4 * n * (n + 1))
        assert low == 0.0 if k == 0 else binom.sf(k - 1, n, low) == pytest.approx(share, rel=1e-6)
        assert high == 1.0 if k == n else binom.cdf(k, n, high) == pytest.approx(share, rel=1e-6)
    assert entry_limits(np.zeros(1), np.zeros(1), num_states=3, num_actions=1, delta=0.1)[1] == 1.0


def test_entries_hold_for_all_counts_at_once():
    """As above for single entries: a small world so that the union bound is not the whole story."""
    delta, violations, tries = 0.3, 0, np.arange(1.0, 301.0)
    for seed in range(1_000):
        hits = np.cumsum(np.random.default_rng(seed).random(300) < 0.1).astype(float)
        lower, upper = entry_limits(hits, tries, num_states=1, num_actions=1, delta=delta)
        violations += ((lower > 0.1) | (upper < 0.1)).any()
    assert violations > 0
    assert binomtest(violations, 1_000, delta, alternative="greater").pvalue > 1e-3


def test_sparse_worlds_are_certified_better_by_entries():
    mdp = garnet(40, 2, 2, seed=1)
    world = TabularWorld(mdp)
    seen = world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=3_000, horizon=40, gamma=0.8, record=True)).seen
    settings = {"poorly_visited": [7], "gamma": 0.8, "delta": 0.05, "start": 0}
    limits = {region: theory.certify_counts(world, seen, region=region, **settings).limit for region in REGIONS}
    truth = max_visitation(mdp, gamma=0.8)[7]
    excess = {region: limit - truth for region, limit in limits.items()}
    assert 0.0 <= excess["entries"] < excess["l1"] / 2
    assert excess["both"] <= 1.1 * excess["entries"]


def test_bernstein_limit_holds():
    random = np.random.default_rng(0)
    missed = sum(bernstein_upper((random.random(200) < 0.05).astype(float), 0.1) < 0.05 for _ in range(1_000))
    assert binomtest(missed, 1_000, 0.1, alternative="greater").pvalue > 1e-3


def test_more_counts_certify_more():
    mdp = random_mdp(7, num_states=4, num_actions=2, terminal=False)
    mask = np.arange(4) == 3
    truth = float(mdp.start @ solve(mdp, gamma=0.7, rewards=np.outer(mask, np.ones(2))).values)
    limits = []
    for episodes in (300, 3_000, 30_000, 300_000):
        seen = (
            TabularWorld(mdp)
            .episodes(mdp.uniform_policy(), EpisodeBatch(episodes=episodes, horizon=20, gamma=0.7, record=True))
            .seen
        )
        limits.append(
            theory.certify_counts(
                TabularWorld(mdp), seen, poorly_visited=mask, gamma=0.7, delta=0.05, start=mdp.start
            ).limit
        )
    assert limits == sorted(limits, reverse=True)
    assert truth <= limits[-1] < truth + 0.02


def test_an_exploration_that_was_recorded_can_be_certified():
    mdp = random_mdp(11, num_states=4, num_actions=2)
    world = TabularWorld(mdp)
    optimizer = TRPO(updates=400)
    run = explore(
        world, optimizer, gamma=0.7, rounds=2, thresholds=linear(1 / 8), budget=40_000, record=True, progress=False
    )
    before = world.samples
    certificate = theory.certify_counts(world, run, delta=0.05, terminal=mdp.terminal, start=mdp.start)
    assert world.samples == before
    assert certificate.samples == sum(int(round_.seen.times.sum()) for round_ in run.rounds)
    assert certificate.limit >= theory.theorem_1(mdp, run).round_left[-1]
    assert "Nothing is assumed about the optimizer" in certificate.summary()
    assert certificate.pairs == 2 * (~mdp.terminal).sum() == certificate.pairs_tried
    pairs = {}
    for round_ in run.rounds:
        for state, action, times in zip(round_.seen.state, round_.seen.action, round_.seen.times, strict=True):
            pairs[state, action] = pairs.get((state, action), 0) + times
    assert certificate.fewest_tries == min(pairs.values())
    json.dumps(certificate.to_dict(), allow_nan=False)
    unknown = theory.certify_counts(world, run, delta=0.05, terminal=mdp.terminal)
    assert unknown.restarts == 10_000
    assert unknown.limit >= certificate.limit


def test_knowing_terminal_states_helps():
    mdp = FiniteMDP([[[0.0, 0.5, 0.5]], [[0, 0, 0]], [[0, 0, 0]]], np.zeros((3, 1)), 0, terminal=[1, 2])
    world = TabularWorld(mdp)
    seen = world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=20_000, horizon=3, gamma=0.5, record=True)).seen
    known = theory.certify_counts(world, seen, poorly_visited=[2], gamma=0.5, delta=0.1, start=0, terminal=mdp.terminal)
    unknown = theory.certify_counts(world, seen, poorly_visited=[2], gamma=0.5, delta=0.1, start=0)
    assert 0.25 <= known.limit < 0.27 < unknown.limit  # truth: gamma / 2 for ever after


def test_refusals_and_bad_input():
    mdp = random_mdp(0, num_states=4, num_actions=2)
    world = TabularWorld(mdp)
    one = np.ones(1, dtype=np.int64)
    good = TransitionCounts(0 * one, one, one, 5 * one, np.zeros(1))
    settings = {"poorly_visited": [1], "gamma": 0.9, "delta": 0.1, "start": 0}
    with pytest.raises(theory.CertificateError, match="certifies nothing"):
        theory.certify_counts(world, good, **settings)
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(theory.CertificateError, match="no transition was counted"):
        theory.certify_counts(world, TransitionCounts(none, none, none, none, np.zeros(0)), **settings)
    for column, value, match in (
        ("state", 4, "do not belong to this world"),
        ("action", 2, "do not belong to this world"),
        ("next_state", -1, "do not belong to this world"),
        ("times", 0, "at least 1"),
    ):
        with pytest.raises(ValueError, match=match):
            theory.certify_counts(world, good._replace(**{column: value * one}), **settings)
    with pytest.raises(ValueError, match="equal lengths"):
        theory.certify_counts(world, good._replace(times=np.ones(2, dtype=np.int64)), **settings)
    with pytest.raises(ValueError, match="given as terminal"):
        theory.certify_counts(world, good, terminal=[0], **settings)
    with pytest.raises(ValueError, match="expected TransitionCounts"):
        theory.certify_counts(world, [good], **settings)
    with pytest.raises(ValueError, match="give poorly_visited and gamma"):
        theory.certify_counts(world, good, delta=0.1)
    with pytest.raises(ValueError, match="region is 'sphere'"):
        theory.certify_counts(world, good, region="sphere", **settings)
    with pytest.raises(ValueError, match="delta is 1"):
        theory.certify_counts(world, good, **settings | {"delta": 1.0})
    run = explore_exactly(mdp, gamma=0.9, rounds=1)
    with pytest.raises(theory.CertificateError, match="record=True"):
        theory.certify_counts(world, run, delta=0.1)
    with pytest.raises(ValueError, match="made with gamma"):
        theory.certify_counts(world, run, delta=0.1, gamma=0.5)


def test_limits_are_above_the_truth_however_bad_the_optimizer():
    """What `certify` prints of an exploration by an optimizer that hardly learns; 60 seeds, judged by exact values."""
    mdp, delta, runs, violations, given = combination_lock(2), 0.05, 60, 0, 0
    for seed in range(runs):
        world = TabularWorld(mdp, seed=seed)
        optimizer = TRPO(updates=2, episodes=400)
        run = explore(world, optimizer, gamma=0.8, rounds=3, visits=200, record=True, progress=False)
        mask = run.rounds[-1].poorly_visited
        truth = float(mdp.start @ solve(mdp, gamma=0.8, rewards=np.outer(mask, np.ones(mdp.num_actions))).values)
        try:
            limit = theory.certify_counts(world, run, delta=delta, start=mdp.start, terminal=mdp.terminal).limit
        except theory.CertificateError:
            continue
        given += 1
        violations += limit < truth
    assert given > runs / 2
    assert binomtest(violations, runs, delta, alternative="greater").pvalue > 1e-3
