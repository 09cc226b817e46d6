"""The mismatch of resets to chosen states: exactly, on MDPs whose counts are right, wrong, and from samples."""

import numpy as np
import pytest
from counted_helpers import counted
from random_mdps import random_mdp

from curious_explorer import FiniteMDP, ResetModel, TabularWorld, theory
from curious_explorer.baselines import RMax
from curious_explorer.environments import combination_lock, deep_sea, river_swim
from curious_explorer.errors import CertificateError
from curious_explorer.exact import max_visitation
from curious_explorer.resets.reset_model import exact_arrivals


def resets(mdp, **arguments):
    return ResetModel([mdp.uniform_policy()], gamma=0.9, model=counted(mdp, **arguments))


def shaken(mdp, model, seed):
    """The same reset model with counts that are wrong by a random factor for each transition."""
    random = np.random.default_rng(seed)
    seen = model.model.transitions()
    wrong = type(model.model)(*model.model.shape)
    wrong.add(seen._replace(times=np.maximum(1, (seen.times * random.random(len(seen.times))).astype(np.int64))))
    wrong.terminal[:], wrong.starts[:] = model.model.terminal, model.model.starts
    return ResetModel([mdp.uniform_policy()], gamma=0.9, model=wrong)


@pytest.mark.parametrize("wrong", [False, True])
def test_no_mdp_violates_the_bound(wrong):
    tight = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        mdp = random_mdp(seed)
        gamma = float(random.choice([0.5, 0.9]))
        model = shaken(mdp, resets(mdp, tries=200), seed) if wrong else resets(mdp)
        chosen = model.weighted(
            "uniform",
            start_share=float(random.choice([0.0, 0.5, 0.9])),
            limit=int(random.choice([2, 5, 50])),
            least_arrival=1e-6,
        )
        report = theory.chosen_resets(mdp, chosen, gamma=gamma)
        assert report.slack >= -1e-9 * report.right, seed
        mu = chosen.distribution(mdp)
        assert mu.sum() == pytest.approx(1.0)
        inside = chosen.chosen.states
        by_hand = (max_visitation(mdp, gamma=gamma)[inside] / mu[inside]).max()
        assert report.left == pytest.approx(by_hand)
        bound = theory.chosen_resets_bound(
            report.states,
            start_share=report.start_share,
            least_ratio=report.least_ratio,
            largest_ratio=report.largest_ratio,
        )
        assert report.right == pytest.approx(bound)
        # In any case the number of states over the least arrival probabilities, true and stated.
        stated = chosen.arrivals.probability.min()
        assert bound <= report.states / ((1 - report.start_share) * report.least_arrival * stated) * (1 + 1e-9)
        tight.append(report.left / report.right)
    assert max(tight) > 0.3


def test_where_counts_are_right_only_the_number_of_states_counts():
    for mdp in (river_swim(6), combination_lock(8), deep_sea(6), FiniteMDP.from_gymnasium("FrozenLake-v1")):
        chosen = resets(mdp, tries=3_000_000).weighted("uniform", least_arrival=1e-9)
        report = theory.chosen_resets(mdp, chosen, gamma=0.95)
        assert report.right == pytest.approx(report.states / 0.5, rel=1e-2)
        assert report.outside < 1e-9  # everything was met


def test_states_that_were_not_met_are_reported_apart():
    mdp = deep_sea(6)
    chosen = resets(mdp, skip=(18, 19, 20)).weighted("uniform")
    report = theory.chosen_resets(mdp, chosen, gamma=0.95)
    mask = np.ones(mdp.num_states, dtype=bool)
    mask[chosen.chosen.states] = False
    assert mask[[18, 19, 20]].all()
    most = max_visitation(mdp, gamma=0.95)[mask & ~mdp.terminal]
    assert most.max() <= report.outside <= most.sum()
    assert report.slack >= 0.0


def test_the_certificate_holds_and_is_not_far_off():
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1")
    chosen = shaken(mdp, resets(mdp, tries=100), 3).weighted("uniform", least_arrival=1e-6)
    exact = theory.chosen_resets(mdp, chosen, gamma=0.95)
    p = exact_arrivals(chosen.chosen, mdp)
    missed = 0
    for seed in range(20):
        world = TabularWorld(mdp, seed=seed)
        report = theory.certify_chosen_resets(world, chosen, delta=0.2, arrivals=60)
        missed += not ((report.lower <= p) & (p <= report.upper)).all()
        assert report.samples == world.samples
        assert exact.left <= report.mismatch <= 5 * exact.right
        assert report.floor <= chosen.distribution(mdp)[chosen.chosen.states].min()
    assert missed <= 8  # 4 are allowed on average at most; more than 8 have a chance of 0.7%
    assert "no policy's mismatch" in report.statement
    assert report.to_dict()["kind"] == "ChosenCertificate"


def test_other_certificates_know_chosen_resets():
    mdp = deep_sea(5)
    world = TabularWorld(mdp, seed=0)
    chosen = resets(mdp).weighted("uniform")
    arrivals = theory.certify_arrivals(world, chosen, count=3_000)
    assert (arrivals.chances[chosen.chosen.states] > 0.0).all()
    one = theory.certify_arrivals(world, resets(mdp).to(12), count=1_000)
    assert one.chances[12] > 0.99
    assert theory.certify_training(world, chosen, count=20_000, terminal=mdp.terminal).loss < 0.2


def leaky(probability):
    """Places 0 to 2 in a row with two ways on, each of which leaks to place 3, for good, with this probability."""
    rows = np.zeros((4, 2, 4))
    for place in range(3):
        rows[place, :, 3] = probability
        rows[place, 0, min(2, place + 1)] += 1.0 - probability
        rows[place, 1, 0] += 1.0 - probability
    rows[3, :, 3] = 1.0
    return FiniteMDP(rows, np.zeros((4, 2)), 0)


@pytest.mark.parametrize("leak", [1e-7, 0.002, 0.02])
def test_a_plan_for_chosen_resets_keeps_its_promise(leak):
    mdp = leaky(leak)
    plan = theory.plan_chosen_resets(mdp, gamma=0.8, eta=0.05, delta=0.1)
    by_hand = (2 * np.log(2.0) + np.log(3 * 4 * 2 / 0.1)) * 0.8 / (0.2 * 0.05)
    assert (plan.successors, plan.starts, plan.restarts, plan.tries) == (2, 1, 1, int(np.ceil(by_hand)))
    for seed in range(3):
        world = TabularWorld(mdp, seed=seed)
        explored = RMax(known_after=plan.tries).explore(world, gamma=0.8, samples=400 * plan.tries)
        model = explored.reset_model.model
        met = np.flatnonzero(model.tries.any(axis=1))
        assert (model.tries[met] >= plan.tries).all()
        chosen = explored.reset_model.weighted("uniform", least_arrival=0.0)
        report = theory.chosen_resets(mdp, chosen, gamma=0.8)
        assert report.outside <= plan.eta
        assert (report.states < 4) == (leak < 1e-6)  # the rarest leak is not met, and need not be
        certificate = theory.certify_chosen_resets(world, chosen, delta=plan.delta / 3, arrivals=plan.arrivals)
        measured = certificate.arrived / certificate.tried
        assert (certificate.lower >= (1.0 - plan.precision) * measured).all()
        assert certificate.mismatch <= 1.5 * plan.mismatch


def test_what_cannot_be_planned_is_refused():
    good = {"gamma": 0.9, "eta": 0.1, "delta": 0.05}
    assert theory.plan_chosen_resets((50, 4), **good).successors == 50
    few = theory.plan_chosen_resets((50, 4), **good, successors=2, precision=0.1)
    assert few.restarts == theory.plan_chosen_resets((50, 4), **good).restarts > 1
    assert few.arrivals > theory.plan_chosen_resets((50, 4), **good, precision=0.9).arrivals
    assert "mismatch there" in few.summary()
    for changes, message in (
        ({"eta": 0.0}, "eta is"),
        ({"precision": 1.0}, "precision is"),
        ({"successors": 51}, "successors is 51"),
        ({"start_share": 1.0}, "start_share is"),
    ):
        with pytest.raises(ValueError, match=message):
            theory.plan_chosen_resets((50, 4), **good | changes)
    with pytest.raises(ValueError, match="plan_chosen_resets"):
        theory.plan(50, **good, schedule="chosen")


def test_what_cannot_be_certified_is_refused():
    mdp = deep_sea(5)
    with pytest.raises(ValueError, match="chosen states"):
        theory.chosen_resets(mdp, resets(mdp), gamma=0.9)
    stuck = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    stuck[:, :, int(np.argmax(mdp.start))] = 1.0
    world = TabularWorld(FiniteMDP(stuck, mdp.rewards, mdp.start), seed=0)
    with pytest.raises(CertificateError, match="state 3 "):
        theory.certify_chosen_resets(world, resets(mdp).weighted({3: 1.0}))
    for bad in ({"start_share": 1.0, "least_ratio": 1.0}, {"start_share": 0.5, "least_ratio": -1.0}):
        with pytest.raises(ValueError, match=r"start_share|ratios"):
            theory.chosen_resets_bound(3, **bad)
    assert theory.chosen_resets_bound(10, start_share=0.5, least_ratio=0.25) == 80.0
