"""The planner: its plans keep their promise, and settings that promise nothing are called vacuous."""

import json
import math

import numpy as np
import pytest
from random_mdps import random_mdp
from theory_helpers import KnowingOptimizer

from curious_explorer import TabularWorld, explore, theory
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.explorers.thresholds import constant
from curious_explorer.resets.reset_model import exact_visits


@pytest.mark.parametrize("make", [combination_lock, crossroad_traps])
@pytest.mark.parametrize("depth", [5, 10, 20])
@pytest.mark.parametrize("schedule", ["linear", "paper_linear"])
def test_the_papers_own_setting_is_vacuous(make, depth, schedule):
    mdp = make(depth)
    beta = 1 / (2 * mdp.num_states)
    verdict = theory.assess(mdp, gamma=0.95, beta=beta, rounds=depth, schedule=schedule)
    assert verdict.vacuous
    assert verdict.bound >= 1.0
    assert verdict.verdict.startswith("Vacuous")
    assert theory.assess(mdp, gamma=0.95, beta=beta, rounds=10_000, schedule="linear").vacuous  # rounds do not help


def test_a_plan_passes_its_own_assessment():
    for seed in range(40):
        random = np.random.default_rng(seed)
        mdp = random_mdp(seed)
        settings = {"gamma": 0.9, "epsilon": float(random.choice([0.0, 0.01]))}
        for schedule in ("constant", "linear"):
            plan = theory.plan(mdp, eta=0.2, delta=0.1, schedule=schedule, **settings)
            assessed = theory.assess(
                mdp, beta=plan.beta, rounds=plan.rounds, visits=plan.visits, delta=0.1, schedule=schedule, **settings
            )
            assert not assessed.vacuous
            assert assessed.bound <= 0.2 + 1e-12
            assert assessed.bound >= 0.05  # not wasteful beyond reason
            thresholds = [plan.beta * (n + 1 if schedule == "linear" else 1) for n in range(plan.rounds)]
            margins = theory.visit_margins(mdp.num_states, thresholds, visits=plan.visits, delta=0.1)
            assert margins.lower[-1] / plan.rounds >= plan.coverage - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_keeps_its_promise(seed):
    mdp = random_mdp(seed, num_states=5)
    plan = theory.plan(mdp, gamma=0.8, eta=0.3, delta=0.01)
    run = explore(
        TabularWorld(mdp, seed=seed),
        KnowingOptimizer(mdp),
        gamma=0.8,
        rounds=plan.rounds,
        thresholds=constant(plan.beta),
        visits=plan.visits,
        progress=False,
    )
    assert theory.theorem_1(mdp, run).round_left[-1] <= 0.3
    average = np.mean(exact_visits(run.reset_model, mdp)[:-1], axis=0)
    assert (average[~run.rounds[-1].poorly_visited] >= plan.coverage).all()
    assert sum(round_.visit_samples for round_ in run.rounds) <= 1.1 * plan.steps


def test_numbers_by_hand():
    plan = theory.plan(50, gamma=0.9, eta=0.1, delta=0.05)
    assert (plan.exploitative_factor, plan.exploitative_factor_from) == (50.0, "at most |S|")
    assert plan.rounds == 1000  # 2 e / eta
    assert plan.beta == pytest.approx(0.5 * 0.1 * 1000 / (4 * 50))
    assert plan.visits == math.ceil(math.log(2 * 50 * 1000 / 0.05) / ((math.log(2) - 0.5) * plan.beta))
    linear = theory.plan(50, gamma=0.9, eta=0.1, delta=0.05, schedule="linear")
    assert linear.beta == pytest.approx(plan.beta / 1000)
    known = theory.plan(50, gamma=0.9, eta=0.1, delta=0.05, exploitative_factor=3.0)
    assert known.rounds == 60
    assert json.loads(json.dumps(known.to_dict()))["rounds"] == 60
    assert "60" in known.summary()


def test_verdicts_name_what_is_in_the_way():
    assert "rounds are too few" in theory.assess(10, gamma=0.9, beta=1e-6, rounds=5).verdict
    assert "too far from optimal" in theory.assess(10, gamma=0.9, beta=1e-6, rounds=5000, epsilon=0.6).verdict
    assert "Guaranteed" in theory.assess(10, gamma=0.9, beta=1e-6, rounds=5000).verdict
    few = theory.assess(10, gamma=0.9, beta=1e-3, rounds=500, visits=2, delta=0.1, schedule="constant")
    many = theory.assess(10, gamma=0.9, beta=1e-3, rounds=500, visits=10**6, delta=0.1, schedule="constant")
    exact = theory.assess(10, gamma=0.9, beta=1e-3, rounds=500, schedule="constant")
    assert few.bound > many.bound > exact.bound


def test_bad_input_is_refused():
    good = {"gamma": 0.9, "eta": 0.1, "delta": 0.05}
    for eta in (0, 1, -0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="eta is"):
            theory.plan(10, **good | {"eta": eta})
    for delta in (0.0, 1.0, 2, "0.1"):
        with pytest.raises(ValueError, match="delta is"):
            theory.plan(10, **good | {"delta": delta})
    with pytest.raises(ValueError, match="gamma is"):
        theory.plan(10, **good | {"gamma": 1.0})
    with pytest.raises(ValueError, match="at least 1"):
        theory.plan(0, **good)
    with pytest.raises(theory.CertificateError, match=r"below 0\.05"):
        theory.plan(10, **good, epsilon=0.05)
    with pytest.raises(ValueError, match="from 1 to"):
        theory.plan(10, **good, exploitative_factor=11)
    with pytest.raises(ValueError, match="schedule is 'paper_linear'"):
        theory.plan(10, **good, schedule="paper_linear")
    with pytest.raises(ValueError, match="belong together"):
        theory.assess(10, gamma=0.9, beta=0.1, rounds=3, visits=100)
    with pytest.raises(ValueError, match="beta is 0"):
        theory.assess(10, gamma=0.9, beta=0.0, rounds=3)
