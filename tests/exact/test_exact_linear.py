"""Visitation and evaluation against closed forms, dense algebra, rational arithmetic and QuantEcon."""

from __future__ import annotations

import logging
from fractions import Fraction

import gymnasium
import numpy as np
import pytest
from exact_helpers import (
    back_and_forth,
    dense_values,
    dense_visitation,
    layered_mdp,
    quantecon,
    random_mdp,
    random_policy,
    rational_solution,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.exact import visitation
from curious_explorer.exact.evaluation import evaluate, evaluation_report
from curious_explorer.exact.linear import METHODS
from curious_explorer.exact.report import ConvergenceError
from curious_explorer.exact.visitation import visitation_report
from curious_explorer.mdp.finite_mdp import FiniteMDP

NEAR_ONE = (0.9999, 0.999999)
seeds = st.integers(0, 10_000)
gammas = st.sampled_from([0.0, 0.3, 0.9, 0.99, 0.9999])


def conveyor(length: int) -> FiniteMDP:
    """s_0 -> s_1 -> ... -> s_length, which is absorbing and pays 1."""
    transitions = np.zeros((length + 1, 1, length + 1))
    transitions[np.arange(length), 0, np.arange(1, length + 1)] = 1.0
    rewards = np.zeros((length + 1, 1))
    rewards[length] = 1.0
    return FiniteMDP(transitions, rewards, 0, terminal=[length])


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, *NEAR_ONE])
@pytest.mark.parametrize("method", [None, "substitution", "elimination", "dense"])
def test_conveyor_has_geometric_visitation_and_values(gamma: float, method: str | None) -> None:
    mdp = conveyor(6)
    policy = mdp.uniform_policy()
    expected = [(1 - gamma) * gamma**step for step in range(6)] + [gamma**6]
    report = visitation_report(mdp, policy, gamma=gamma, method=method)
    np.testing.assert_allclose(report.values, expected, rtol=1e-9, atol=1e-15)
    values = evaluation_report(mdp, policy, gamma=gamma, method=method).values
    np.testing.assert_allclose(values, [gamma ** (6 - step) for step in range(7)], rtol=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 0.9, *NEAR_ONE])
def test_uniform_policy_on_the_lock_halves_at_every_level(gamma: float) -> None:
    depth = 20
    mdp = combination_lock(depth)
    report = visitation_report(mdp, mdp.uniform_policy(), gamma=gamma)
    assert report.method == "substitution"
    open_mass = report.values[1 : 1 + depth] + report.values[1 + depth : 1 + 2 * depth]
    levels = np.arange(1, depth + 1)
    np.testing.assert_allclose(open_mass, (1 - gamma) * gamma**levels * 0.5**levels, rtol=1e-9)
    value = evaluate(mdp, mdp.uniform_policy(), gamma=gamma)[0]
    assert value == pytest.approx((1 - gamma) * gamma**depth * 0.5 ** (depth + 1), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("method", [None, "elimination", "dense", "iteration", "krylov"])
def test_every_method_agrees_with_dense_algebra(seed: int, method: str | None) -> None:
    mdp = random_mdp(seed, num_states=5 + seed)
    policy, gamma = random_policy(mdp, seed), [0.0, 0.6, 0.95, 0.99][seed % 4]
    found = visitation_report(mdp, policy, gamma=gamma, method=method)
    np.testing.assert_allclose(found.values, dense_visitation(mdp, policy, gamma), atol=1e-10)
    assert found.error_bound <= 1e-10
    assert method is None or found.method == method
    rewards = np.random.default_rng(seed).normal(size=(mdp.num_states, mdp.num_actions))
    values = evaluation_report(mdp, policy, gamma=gamma, rewards=rewards, method=method).values
    np.testing.assert_allclose(values, dense_values(mdp, policy, gamma, rewards), atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_substitution_agrees_with_dense_algebra(seed: int) -> None:
    mdp = layered_mdp(seed)
    policy = random_policy(mdp, seed)
    found = visitation_report(mdp, policy, gamma=0.97)
    assert found.method == "substitution"
    np.testing.assert_allclose(found.values, dense_visitation(mdp, policy, 0.97), atol=1e-13)
    np.testing.assert_allclose(evaluate(mdp, policy, gamma=0.97), dense_values(mdp, policy, 0.97), atol=1e-13)


@pytest.mark.parametrize("gamma", NEAR_ONE)
def test_elimination_is_right_to_the_last_digits_near_one(gamma: float) -> None:
    """Against rational arithmetic: entry by entry, and for visits as rare as (1/3)^15."""
    size = 16
    mdp = back_and_forth(size, forward=0.25)
    policy = np.tile([1.0, 0.0], (size, 1))
    discount = Fraction(gamma)
    chain = [[Fraction(p) for p in row] for row in mdp.dense_transitions()[:, 0]]
    identity = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    transposed = [[identity[i][j] - discount * chain[j][i] for j in range(size)] for i in range(size)]
    exact = rational_solution(transposed, [(1 - discount) * int(i == 0) for i in range(size)])
    found = visitation_report(mdp, policy, gamma=gamma)
    assert found.method == "elimination"
    np.testing.assert_allclose(found.values, [float(entry) for entry in exact], rtol=1e-12)


@pytest.mark.parametrize("gamma", NEAR_ONE)
@pytest.mark.parametrize("shuffled", [False, True])
def test_long_corridor_near_one(gamma: float, shuffled: bool) -> None:
    """An unbiased corridor of 10^4 states: v = A z^k + B z^-k solves it in closed form."""
    size = 10_000
    order = np.random.default_rng(0).permutation(size) if shuffled else np.arange(size)
    mdp = back_and_forth(size, order=order)
    report = evaluation_report(mdp, mdp.uniform_policy(), gamma=gamma)
    assert report.method == "elimination"
    root = (1 - np.sqrt(1 - gamma**2)) / gamma  # of gamma z^2 - 2 z + gamma = 0, the one below one
    steps = np.arange(size)
    # Symmetric about the reflecting left end (v(-1) = v(0)); the right end pays 1 and reflects.
    shape = root ** (size - 1 - steps) + root ** (size + steps)
    gap = shape[-1] - gamma / 2 * (shape[-1] + shape[-2])
    np.testing.assert_allclose(report.values[order], (1 - gamma) * shape / gap, rtol=1e-7, atol=1e-12)
    visits = visitation_report(mdp, mdp.uniform_policy(), gamma=gamma)
    assert visits.values.sum() == pytest.approx(1.0, abs=1e-9)
    assert visits.values @ mdp.rewards[:, 0] == pytest.approx(report.values[order[0]], rel=1e-9)


@pytest.mark.parametrize("gamma", [0.95, *NEAR_ONE])
def test_random_graphs_mix_at_any_discount(gamma: float) -> None:
    mdp = garnet(1500, 3, 3, seed=2)
    policy = random_policy(mdp, 0)
    found = visitation_report(mdp, policy, gamma=gamma)
    dense = visitation_report(mdp, policy, gamma=gamma, method="dense")
    assert (found.method, dense.method) == ("iteration", "dense")
    assert found.iterations < 150
    assert np.abs(found.values - dense.values).sum() < 2e-10 + 4e-16 / (1 - gamma)
    values, judge = (evaluation_report(mdp, policy, gamma=gamma, method=m).values for m in ("iteration", "dense"))
    np.testing.assert_allclose(values, judge, atol=1e-9)


def test_slow_and_wide_goes_to_krylov(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curious_explorer.exact.linear.CHEAP_ELIMINATION", 0)
    monkeypatch.setattr("curious_explorer.exact.linear.AFFORDABLE_ELIMINATION", 0)
    monkeypatch.setattr("curious_explorer.exact.linear.DENSE_LIMIT", 0)
    mdp = back_and_forth(400)
    policy = mdp.uniform_policy()
    found = visitation_report(mdp, policy, gamma=0.999)
    assert found.method == "krylov"
    np.testing.assert_allclose(found.values, dense_visitation(mdp, policy, 0.999), atol=1e-10)


def test_what_does_not_converge_is_refused() -> None:
    mdp = back_and_forth(3000)
    with pytest.raises(ConvergenceError, match=r"residual is .*expected at most"):
        visitation_report(mdp, mdp.uniform_policy(), gamma=0.999999, method="iteration")
    assert issubclass(ConvergenceError, ArithmeticError)


@pytest.mark.parametrize(
    "mdp", [crossroad_traps(10), combination_lock(6), garnet(60, 3, 3, seed=1)], ids=["cct", "dcl", "garnet"]
)
@pytest.mark.parametrize("gamma", [0.5, 0.95, 0.9999])
def test_evaluation_agrees_with_quantecon(mdp: FiniteMDP, gamma: float) -> None:
    actions = np.random.default_rng(3).integers(mdp.num_actions, size=mdp.num_states)
    theirs = (1 - gamma) * quantecon(mdp, gamma).evaluate_policy(actions)
    ours = evaluate(mdp, np.eye(mdp.num_actions)[actions], gamma=gamma)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_frozen_lake_agrees_with_quantecon() -> None:
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", map_name="8x8"))
    actions = np.random.default_rng(3).integers(mdp.num_actions, size=mdp.num_states)
    theirs = (1 - 0.99) * quantecon(mdp, 0.99).evaluate_policy(actions)
    np.testing.assert_allclose(evaluate(mdp, np.eye(mdp.num_actions)[actions], gamma=0.99), theirs, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(seeds, gammas)
def test_visitation_is_a_distribution_and_pairs_with_values(seed: int, gamma: float) -> None:
    mdp = random_mdp(seed)
    policy = random_policy(mdp, seed)
    visits = visitation(mdp, policy, gamma=gamma)
    assert (visits >= 0).all()
    assert visits.sum() == pytest.approx(1.0, abs=1e-10)
    value = mdp.start @ evaluate(mdp, policy, gamma=gamma)
    assert value == pytest.approx(float(visits @ (policy * mdp.rewards).sum(axis=1)), abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(seeds, gammas)
def test_values_grow_with_rewards_and_shift_with_constants(seed: int, gamma: float) -> None:
    mdp = random_mdp(seed)
    policy, random = random_policy(mdp, seed), np.random.default_rng(seed)
    rewards = random.normal(size=mdp.rewards.shape)
    values = evaluate(mdp, policy, gamma=gamma, rewards=rewards)
    more = evaluate(mdp, policy, gamma=gamma, rewards=rewards + random.random(rewards.shape))
    assert (more >= values - 1e-10).all()
    np.testing.assert_allclose(evaluate(mdp, policy, gamma=gamma, rewards=rewards - 7.0), values - 7.0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds, gammas)
def test_relabelling_states_and_actions_changes_nothing(seed: int, gamma: float) -> None:
    mdp, random = random_mdp(seed), np.random.default_rng(seed)
    policy = random_policy(mdp, seed)
    states, actions = random.permutation(mdp.num_states), random.permutation(mdp.num_actions)
    moved = FiniteMDP(
        mdp.dense_transitions()[states][:, actions][:, :, states], mdp.rewards[states][:, actions], mdp.start[states]
    )
    moved_policy = policy[states][:, actions]
    before = visitation(mdp, policy, gamma=gamma)
    np.testing.assert_allclose(visitation(moved, moved_policy, gamma=gamma), before[states], atol=1e-11)
    values = evaluate(mdp, policy, gamma=gamma)
    np.testing.assert_allclose(evaluate(moved, moved_policy, gamma=gamma), values[states], atol=1e-11)


def test_start_may_be_a_state_or_a_distribution() -> None:
    mdp = random_mdp(4)
    policy = mdp.uniform_policy()
    spread = np.random.default_rng(0).dirichlet(np.ones(mdp.num_states))
    found = visitation(mdp, policy, gamma=0.9, start=spread)
    np.testing.assert_allclose(found, dense_visitation(mdp, policy, 0.9, spread), atol=1e-12)
    from_each = np.array([visitation(mdp, policy, gamma=0.9, start=s) for s in range(mdp.num_states)])
    np.testing.assert_allclose(spread @ from_each, found, atol=1e-12)


def test_rounded_rows_do_not_leak_near_one() -> None:
    """Rows that miss one by 1e-10, which is allowed, would lose a tenth of the mass at gamma = 1 - 1e-9."""
    mdp = FiniteMDP(np.array([[[0.5, 0.5 - 1e-10]], [[0.3, 0.7]]]), np.zeros((2, 1)), 0)
    visits = visitation(mdp, np.ones((2, 1)), gamma=1 - 1e-9)
    assert visits.sum() == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(visits, [0.375, 0.625], atol=1e-6)


def test_rewards_of_zero_are_worth_zero() -> None:
    mdp = garnet(400, seed=5)
    rewards = np.zeros((400, 4))
    np.testing.assert_array_equal(evaluate(mdp, mdp.uniform_policy(), gamma=0.99, rewards=rewards), 0.0)


def test_method_and_residual_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    mdp = combination_lock(3)
    with caplog.at_level(logging.DEBUG, logger="curious_explorer.exact"):
        visitation(mdp, mdp.uniform_policy(), gamma=0.9)
    assert "visitation" in caplog.text
    assert "substitution" in caplog.text


BAD_POLICY = np.full((4, 2), 0.4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"gamma": -0.1}, "gamma is -0.1"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"policy": np.ones((4, 3)) / 3}, r"policy has shape \(4, 3\), expected \(4, 2\)"),
        ({"policy": BAD_POLICY}, "policy, state 0: action probabilities sum to 0.8"),
        ({"policy": np.tile([1.5, -0.5], (4, 1))}, "policy, state 0, action 1"),
        ({"method": "magic"}, "method is 'magic'"),
    ],
)
@pytest.mark.parametrize("report", [visitation_report, evaluation_report])
def test_bad_arguments(report: object, changes: dict[str, object], message: str) -> None:
    mdp = random_mdp(0, 4, 2)
    arguments = {"policy": mdp.uniform_policy(), "gamma": 0.9} | changes
    with pytest.raises(ValueError, match=message):
        report(mdp, **arguments)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("start", "message"),
    [(4, "start is state 4"), (np.full(4, 0.3), "start sums to 1.2"), (np.ones(3) / 3, "start has shape")],
)
def test_bad_start(start: object, message: str) -> None:
    mdp = random_mdp(0, 4, 2)
    with pytest.raises(ValueError, match=message):
        visitation(mdp, mdp.uniform_policy(), gamma=0.9, start=start)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [(np.zeros(4), r"rewards has shape \(4,\)"), (np.full((4, 2), np.inf), "rewards, state 0, action 0")],
)
def test_bad_rewards(rewards: np.ndarray, message: str) -> None:
    mdp = random_mdp(0, 4, 2)
    with pytest.raises(ValueError, match=message):
        evaluate(mdp, mdp.uniform_policy(), gamma=0.9, rewards=rewards)


def test_methods_that_do_not_fit_say_so() -> None:
    mdp = back_and_forth(3000)
    for method, message in [("substitution", "without cycles"), ("dense", "up to 2048 states")]:
        assert method in METHODS
        with pytest.raises(ValueError, match=message):
            visitation_report(mdp, mdp.uniform_policy(), gamma=0.9, method=method)
