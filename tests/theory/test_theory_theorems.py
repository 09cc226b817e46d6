"""Theorem 1 in its forms, the Remark, Theorems 2 and 3, on thousands of random MDPs; and the false Lemma 2."""

import io
import json
import math

import numpy as np
import pytest
from exact_helpers import dense_values, dense_visitation, program_value, quantecon
from random_mdps import random_mdp, random_policy
from rich.console import Console
from theory_helpers import KnowingOptimizer, explore_exactly, two_states

from curious_explorer import Exploration, ResetModel, TabularWorld, explore, theory
from curious_explorer.environments import crossroad_traps
from curious_explorer.exact import max_visitation
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.thresholds import constant, linear, paper_linear
from curious_explorer.resets.reset_model import exact_visits

ROUNDING = 1e-8
BATCH = 175
KINDS = ("exact", "noisy", "random")
SCHEDULES = ("linear", "paper linear", "constant", "arbitrary")


def schedule(name, random):
    beta = random.random() ** 2
    if name == "arbitrary":
        values = random.random(10) ** 3 * random.integers(1, 4)
        return lambda n: float(values[n])
    return {"linear": linear, "paper linear": paper_linear, "constant": constant}[name](beta)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_no_random_mdp_violates_the_repaired_theorem(kind, name):
    """12 batches of 175 MDPs, 2,100 in all, with general starts; nontrivial in most, or the test would show nothing."""
    first = BATCH * (KINDS.index(kind) * len(SCHEDULES) + SCHEDULES.index(name))
    nontrivial = 0
    for seed in range(first, first + BATCH):
        random = np.random.default_rng(seed)
        mdp = random_mdp(seed)
        gamma = float(random.choice([0.3, 0.7, 0.9, 0.97]))
        thresholds = schedule(name, random)
        run = explore_exactly(mdp, gamma=gamma, rounds=4, thresholds=thresholds, kind=kind, seed=seed)
        report = theory.theorem_1(mdp, run)
        for form in ("printed", "repaired", "a_posteriori"):
            assert (report.slack(form) >= -ROUNDING).all(), (seed, form)
        assert (report.repaired <= report.printed + ROUNDING).all(), seed
        assert (report.round_left <= report.round_right + ROUNDING).all(), seed
        assert report.sampling_excess < ROUNDING
        nontrivial += report.left[-1] > 0.01
        if name == "constant":
            remark = theory.remark(mdp, run)
            for form in ("printed", "repaired", "a_posteriori"):
                assert (remark.slack(form) >= -ROUNDING).all(), (seed, form)
            # The form of the Remark with K_0 written out.
            well = run.rounds[0].poorly_visited
            beta = run.rounds[0].threshold
            by_hand = (
                2 * np.cumsum(remark.epsilons) + 2 * beta * well.sum() + max_visitation(mdp, gamma=gamma)[well].sum()
            )
            assert (remark.repaired <= by_hand / np.arange(1, 5) + ROUNDING).all()
    assert nontrivial > BATCH / 2


def test_both_sides_agree_with_linear_programming_and_dense_solves():
    for seed in range(12):
        mdp = random_mdp(seed, num_states=5)
        run = explore_exactly(mdp, gamma=0.8, rounds=3, thresholds=0.1, kind="noisy", seed=seed)
        report = theory.theorem_1(mdp, run)
        most = [program_value(mdp, 0.8, np.outer(row, np.ones(mdp.num_actions)), mdp.start) for row in np.eye(5)]
        assert report.exploitative_factor == pytest.approx(sum(most), abs=1e-9)
        mu, total, union = mdp.start, np.zeros(5), np.zeros(5, dtype=bool)
        left = repaired = a_posteriori = errors = 0.0
        threshold, observed, final, times = np.zeros((4, 5))
        for n, round_ in enumerate(run.rounds):
            visited = dense_visitation(mdp, round_.policy, 0.8, mu)
            if n == 0:
                first = visited
            total = total + visited
            mu = 0.5 * mdp.start + 0.5 * visited
            mask = total <= round_.threshold
            assert (mask == round_.poorly_visited).all()
            rewards = np.outer(mask, np.ones(mdp.num_actions))
            learned = dense_visitation(mdp, round_.learned_policy, 0.8)
            epsilon = (
                program_value(mdp, 0.8, rewards, mu) - dense_visitation(mdp, round_.learned_policy, 0.8, mu)[mask].sum()
            )
            assert report.epsilons[n] == pytest.approx(epsilon, abs=1e-9)
            left += program_value(mdp, 0.8, rewards, mdp.start)
            errors += 2 * epsilon
            union |= mask
            threshold[mask], observed[mask], final[mask] = round_.threshold, (total - first)[mask], learned[mask]
            times += mask
            repaired = errors + np.minimum(2 * (threshold - first) + most, times * most)[union].sum()
            a_posteriori = errors + 2 * observed.sum() + final.sum()
            assert report.left[n] == pytest.approx(left, abs=1e-9)
            assert report.repaired[n] == pytest.approx(repaired, abs=1e-9)
            assert report.a_posteriori[n] == pytest.approx(a_posteriori, abs=1e-9)
            printed = errors + 2 * threshold.sum() + 2 * sum(most)
            assert report.printed[n] == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9, 0.99])
def test_two_states_refute_lemma_2_by_the_closed_form(gamma):
    """Lemma 2 says D_n(s) <= max_pi d(s); here D_1(s1) = gamma (3 - gamma) / 2 and max_pi d(s1) = gamma."""
    mdp = two_states()
    run = explore_exactly(mdp, gamma=gamma, rounds=1)
    visited = exact_visits(run.reset_model, mdp)[1]
    most = max_visitation(mdp, gamma=gamma)
    assert most[1] == pytest.approx(gamma, abs=1e-12)
    assert visited[1] - most[1] == pytest.approx(gamma * (1 - gamma) / 2, abs=1e-12)
    assert visited[1] > most[1]


def test_crossroad_traps_refute_lemma_2_by_a_factor_of_almost_three():
    """Going forward in every round, D_n(T20) tends to gamma'^20 with gamma' = 2 gamma / (1 + gamma), not gamma^20."""
    mdp = crossroad_traps(20)
    most = max_visitation(mdp, gamma=0.9)
    forward = solve(mdp, gamma=0.9).policy
    chain = ResetModel([forward] * 60, gamma=0.9)
    ratio = max((visited / most).max() for visited in exact_visits(chain, mdp))
    assert ratio == pytest.approx((2 / 1.9) ** 20, rel=1e-6)
    assert ratio == pytest.approx(2.8, abs=0.02)
    run = explore_exactly(mdp, gamma=0.9, rounds=20)  # and Algorithm 2's own policies come close to that
    assert max((visited / most).max() for visited in exact_visits(run.reset_model, mdp)) > 2.5


def test_sampled_visits_are_accounted_for():
    """With few visits, states are in K_n whose exact visitation is above the threshold: the bound must know."""
    exceeded = 0
    for seed in range(60):
        mdp = random_mdp(seed)
        run = explore(
            TabularWorld(mdp, seed=seed), KnowingOptimizer(mdp), gamma=0.9, rounds=4, visits=15, progress=False
        )
        report = theory.theorem_1(mdp, run)
        assert (report.slack("repaired") >= -ROUNDING).all()
        assert (report.slack("a_posteriori") >= -ROUNDING).all()
        exceeded += report.sampling_excess > 0.0
        betas = [round_.threshold for round_ in run.rounds]
        margins = theory.visit_margins(mdp.num_states, betas, visits=15, delta=1e-6).margins
        assert (theory.theorem_1(mdp, run, margins=margins).slack("repaired") >= -ROUNDING).all()
    assert exceeded > 30


def test_given_epsilons_are_used():
    mdp = random_mdp(3)
    run = explore_exactly(mdp, gamma=0.9, rounds=3)
    report = theory.theorem_1(mdp, run, 0.25)
    exact = theory.theorem_1(mdp, run, [0.0, 0.0, 0.0])
    assert not report.epsilons_are_exact
    np.testing.assert_allclose(report.repaired - exact.repaired, [0.5, 1.0, 1.5])
    np.testing.assert_allclose(report.printed - exact.printed, [0.5, 1.0, 1.5])


def test_theorem_2_has_its_terms_in_the_right_places():
    mdp = random_mdp(5)
    run = explore_exactly(mdp, gamma=0.8, rounds=3, thresholds=0.2, kind="random", seed=1)
    report = theory.theorem_2(mdp, run, episodes=1000, delta=0.1, constant=1e-9)
    base = theory.theorem_1(mdp, run, 0.0)
    size = (mdp.num_states * mdp.num_actions / 0.2) ** 2 * 1e-9 / 1000 ** (1 / 6)
    expected = size * math.log(1000 * 3 / 0.1) ** 2.5 * (report.mismatches**2).sum()
    assert report.repaired[-1] - base.repaired[-1] == pytest.approx(expected, rel=1e-9)
    assert (report.repaired >= report.left - ROUNDING).all()
    printed = 2 * math.log(3) * size * math.log(1000 / 0.1) ** 2.5 * (report.worst_mismatches**2).sum()
    assert report.printed[-1] - base.printed[-1] == pytest.approx(printed, rel=1e-9)
    assert report.printed[0] == pytest.approx(base.printed[0])  # the printed factor log N is zero after one round
    assert (report.mismatches <= report.worst_mismatches + 1e-12).all()
    assert not report.constant_verified
    assert "unverified" in report.summary()


def test_theorem_3_scales_as_stated():
    mdp = random_mdp(8)
    uniform = np.full(mdp.num_states, 1 / mdp.num_states)
    few, many = (theory.theorem_3(mdp, uniform, gamma=0.9, episodes=i, delta=0.1) for i in (1000, 64_000))
    logs = (math.log(640_000) / math.log(10_000)) ** 2.5
    assert many.printed / few.printed == pytest.approx(logs / 2.0, rel=1e-12)  # 64 ** (1/6) = 2
    assert few.derived / few.printed == pytest.approx(0.1**-5 / few.mismatch, rel=1e-9)
    assert few.vacuous == {"printed": True, "derived": True}
    assert few.left is None
    policy = random_policy(mdp, 1)
    judged = theory.theorem_3(mdp, uniform, gamma=0.9, episodes=1000, delta=0.1, policy=policy)
    best = quantecon(mdp, 0.9).solve("policy_iteration").v * 0.1
    assert judged.left == pytest.approx(mdp.start @ (best - dense_values(mdp, policy, 0.9)), abs=1e-9)
    assert "vacuous" in few.summary()
    assert few.mismatch == theory.mismatch_coefficient(mdp, uniform, gamma=0.9)


def test_reports_are_plain_data_and_readable():
    mdp = random_mdp(3)
    run = explore_exactly(mdp, gamma=0.9, rounds=3, thresholds=constant(0.05))
    reports = [
        theory.theorem_1(mdp, run),
        theory.remark(mdp, run),
        theory.theorem_2(mdp, run, episodes=10, delta=0.5),
        theory.theorem_3(mdp, run.reset_model, gamma=0.9, episodes=10, delta=0.5),
        theory.hardness(mdp, gamma=0.9),
        theory.coverage(mdp, run.reset_model),
    ]
    for report in reports:
        data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert data["kind"] == type(report).__name__
        assert len(report.summary().splitlines()) >= 3
        assert report.table().row_count > 0
        console = Console(width=160, file=io.StringIO())
        console.print(report)
        assert report._title().split()[0] in console.file.getvalue()


def test_vacuous_bounds_are_called_vacuous():
    mdp = crossroad_traps(5)
    run = explore_exactly(mdp, gamma=0.9, rounds=5)
    report = theory.theorem_1(mdp, run)
    assert report.vacuous == {form: getattr(report, form)[-1] >= 5 for form in ("printed", "repaired", "a_posteriori")}
    assert report.vacuous["printed"]
    assert "Vacuous" in report.summary()


def test_bad_input_is_refused():
    mdp, other = random_mdp(0, num_states=4, num_actions=2), random_mdp(1, num_states=5, num_actions=2)
    run = explore_exactly(mdp, gamma=0.9, rounds=2, thresholds=linear(0.1))
    with pytest.raises(ValueError, match="has no rounds"):
        theory.theorem_1(mdp, Exploration((), 0.9))
    with pytest.raises(ValueError, match="expected what explore"):
        theory.theorem_1(mdp, run.reset_model)
    with pytest.raises(ValueError, match="give the world that was explored"):
        theory.theorem_1(other, run)
    with pytest.raises(ValueError, match=r"made with gamma 0\.9"):
        theory.theorem_1(mdp, run, gamma=0.95)
    with pytest.raises(ValueError, match=r"epsilons has shape \(3,\), expected \(2,\)"):
        theory.theorem_1(mdp, run, [0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match=r"epsilons\[1\] is -0.1"):
        theory.theorem_1(mdp, run, [0.1, -0.1])
    with pytest.raises(ValueError, match="constant ones"):
        theory.remark(mdp, run)
    with pytest.raises(ValueError, match="form is 'best'"):
        theory.theorem_1(mdp, run).slack("best")
    with pytest.raises(ValueError, match="delta is 0"):
        theory.theorem_2(mdp, run, episodes=10, delta=0)
    with pytest.raises(ValueError, match="at least one episode"):
        theory.theorem_2(mdp, run, episodes=0, delta=0.1)


def test_a_run_without_policies_or_with_a_lost_round_is_refused():
    from dataclasses import replace

    mdp = random_mdp(0, num_states=4, num_actions=2)
    run = explore_exactly(mdp, gamma=0.9, rounds=3, kind="random")
    bare = Exploration(tuple(replace(round_, learned_policy=None) for round_ in run.rounds), 0.9)
    with pytest.raises(ValueError, match="round 0 has no stored learned_policy"):
        theory.theorem_1(mdp, bare)
    with pytest.raises(ValueError, match="is a round lost"):
        theory.theorem_1(mdp, Exploration((run.rounds[0], run.rounds[2]), 0.9))
