"""Optimal values, policies and the most a state can be visited, against closed forms, linear programs and QuantEcon."""

from __future__ import annotations

import importlib

import gymnasium
import numpy as np
import pytest
from exact_helpers import (
    back_and_forth,
    layered_mdp,
    program_value,
    quantecon,
    random_mdp,
    random_policy,
    slippery_torus,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from curious_explorer.environments import combination_lock, crossroad_traps, garnet, one_way_maze
from curious_explorer.exact import max_visitation, visitation
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.max_visitation import max_visitation_report
from curious_explorer.exact.optimal import METHODS, solve
from curious_explorer.exact.report import ConvergenceError
from curious_explorer.mdp.finite_mdp import FiniteMDP

NEAR_ONE = (0.9999, 0.999999)
seeds = st.integers(0, 10_000)
gammas = st.sampled_from([0.0, 0.3, 0.9, 0.99, 0.9999])


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.95, *NEAR_ONE])
@pytest.mark.parametrize("depth", [5, 20, 40, 200])
def test_crossroad_traps_closed_form(depth: int, gamma: float) -> None:
    """Every value to a relative 1e-9, down to 0.5^200; the forward action alone is optimal, whatever its label."""
    mdp = crossroad_traps(depth)
    solution = solve(mdp, gamma=gamma)
    expected = (1 - gamma) * gamma ** np.arange(depth - 1, -1, -1, dtype=float)
    np.testing.assert_allclose(solution.values[:-1], expected, rtol=1e-9)
    assert solution.values[-1] == 0.0
    forward = np.array([[mdp.successors(s, a)[0][0] == s + 1 for a in range(4)] for s in range(depth)])
    np.testing.assert_array_equal(solution.policy[:-1], forward.astype(float))
    np.testing.assert_array_equal(solution.policy[-1], 0.25)
    assert solution.error_bound <= 1e-9


@pytest.mark.parametrize("gamma", [0.5, 0.95, *NEAR_ONE])
def test_combination_lock_closed_form_and_ties(gamma: float) -> None:
    """On an open lane "stay" and "cross" are equally good; on the locked lane everything is."""
    depth = 20
    mdp = combination_lock(depth)
    solution = solve(mdp, gamma=gamma)
    assert solution.method == "backward sweep"
    assert solution.values[0] == pytest.approx((1 - gamma) * gamma**depth, rel=1e-12)
    ways = (solution.policy > 0).sum(axis=1)
    np.testing.assert_array_equal(ways[: 1 + 2 * depth], 2)
    np.testing.assert_array_equal(ways[1 + 2 * depth :], 4)
    np.testing.assert_allclose(solution.policy.max(axis=1), 1.0 / ways)


@pytest.mark.parametrize("method", [None, *METHODS[1:]])
@pytest.mark.parametrize("seed", range(8))
def test_every_method_agrees_with_the_linear_program(seed: int, method: str | None) -> None:
    mdp = random_mdp(seed, num_states=6 + seed)
    rewards = np.random.default_rng(seed).normal(size=mdp.rewards.shape)
    gamma = [0.0, 0.5, 0.9, 0.99][seed % 4]
    solution = solve(mdp, gamma=gamma, rewards=rewards, method=method)
    for state in range(mdp.num_states):
        best = program_value(mdp, gamma, rewards, np.eye(mdp.num_states)[state])
        assert solution.values[state] == pytest.approx(best, abs=1e-6)  # what the program's own tolerance allows
    attained = evaluate(mdp, solution.policy, gamma=gamma, rewards=rewards)
    np.testing.assert_allclose(attained, solution.values, atol=1e-9)
    backup = (1 - gamma) * rewards + gamma * mdp.dense_transitions() @ solution.values
    np.testing.assert_allclose(solution.q, backup, atol=1e-12)
    np.testing.assert_allclose(solution.q.max(axis=1), solution.values, atol=1e-10)


@pytest.mark.parametrize(
    "mdp",
    [crossroad_traps(12), combination_lock(8), garnet(60, 3, 3, seed=1), garnet(700, 4, 2, seed=2)],
    ids=["cct", "dcl", "garnet", "larger garnet"],
)
@pytest.mark.parametrize("gamma", [0.5, 0.95, 0.9999])
def test_values_agree_with_quantecon(mdp: FiniteMDP, gamma: float) -> None:
    theirs = quantecon(mdp, gamma).solve("policy_iteration", max_iter=1000).v * (1 - gamma)
    np.testing.assert_allclose(solve(mdp, gamma=gamma).values, theirs, atol=1e-9)


def test_frozen_lake_agrees_with_quantecon() -> None:
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", map_name="8x8"))
    theirs = quantecon(mdp, 0.99).solve("policy_iteration").v * (1 - 0.99)
    np.testing.assert_allclose(solve(mdp, gamma=0.99).values, theirs, atol=1e-9)


@pytest.mark.parametrize("gamma", NEAR_ONE)
@pytest.mark.parametrize("shuffled", [False, True])
def test_long_corridor_near_one(gamma: float, shuffled: bool) -> None:
    """Drifting to the paying end is optimal everywhere; ten thousand states, ten thousand steps of horizon and more."""
    size = 10_000
    order = np.random.default_rng(1).permutation(size) if shuffled else np.arange(size)
    mdp = back_and_forth(size, forward=0.8, order=order)
    solution = solve(mdp, gamma=gamma)
    assert solution.method == "policy iteration"
    right = np.tile([1.0, 0.0], (size, 1))
    np.testing.assert_allclose(solution.values, evaluate(mdp, right, gamma=gamma), rtol=1e-9)
    np.testing.assert_array_equal(solution.policy, right)


@pytest.mark.parametrize("gamma", NEAR_ONE)
def test_random_graph_near_one(gamma: float) -> None:
    mdp = garnet(1000, 4, 2, seed=3)
    solution = solve(mdp, gamma=gamma)
    assert solution.method == "modified policy iteration"
    attained = evaluate(mdp, solution.policy, gamma=gamma)
    np.testing.assert_allclose(attained, solution.values, atol=1e-9)
    theirs = quantecon(mdp, gamma).solve("policy_iteration").v * (1 - gamma)
    np.testing.assert_allclose(solution.values, theirs, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.95, 0.9999])
def test_slow_and_wide_goes_to_sparse_policy_iteration(gamma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curious_explorer.exact.optimal.CHEAP_ELIMINATION", 0)
    monkeypatch.setattr("curious_explorer.exact.optimal.AFFORDABLE_ELIMINATION", 0)
    monkeypatch.setattr("curious_explorer.exact.optimal.PATIENCE", 5)
    mdp = back_and_forth(500, forward=0.8)
    solution = solve(mdp, gamma=gamma)
    assert solution.method == "sparse policy iteration"
    right = np.tile([1.0, 0.0], (500, 1))
    np.testing.assert_allclose(solution.values, evaluate(mdp, right, gamma=gamma), atol=1e-9)


@pytest.mark.parametrize("gamma", [0.95, 0.9999])
def test_few_paying_states_are_swept_from(gamma: float) -> None:
    """A maze with one goal: values by the distance to it; policy iteration by elimination agrees in every digit."""
    maze = one_way_maze(40)
    found = solve(maze, gamma=gamma)
    assert (found.method, found.iterations) == ("reward sweeps", 2)
    by_elimination = solve(maze, gamma=gamma, method="policy iteration")
    np.testing.assert_allclose(found.values, by_elimination.values, rtol=1e-10)


def test_slippery_grids_with_a_reward_everywhere_are_swept_as_mixing() -> None:
    grid = slippery_torus(40, slip=0.2)
    found = solve(grid, gamma=0.95)
    assert found.method == "modified policy iteration"
    exact = solve(grid, gamma=0.95, method="sparse policy iteration")
    np.testing.assert_allclose(found.values, exact.values, atol=found.error_bound + exact.error_bound + 1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_the_size_of_rewards_is_no_matter_to_single_precision(scale: float) -> None:
    mdp = garnet(700, 4, 2, seed=2)
    plain = solve(mdp, gamma=0.95, method="modified policy iteration")
    scaled = solve(mdp, gamma=0.95, rewards=mdp.rewards * scale, method="modified policy iteration")
    np.testing.assert_allclose(scaled.values / scale, plain.values, atol=1e-10)


def test_what_does_not_converge_is_refused() -> None:
    mdp = back_and_forth(3000, forward=0.8)
    with pytest.raises(ConvergenceError, match="modified policy iteration"):
        solve(mdp, gamma=0.999999, method="modified policy iteration")


def test_the_shift_of_rewards_moves_values_and_no_tie() -> None:
    mdp = combination_lock(5)
    plain = solve(mdp, gamma=0.9)
    moved = solve(mdp, gamma=0.9, rewards=mdp.rewards - 3.0)
    np.testing.assert_allclose(moved.values, plain.values - 3.0, atol=1e-12)
    np.testing.assert_array_equal(moved.policy > 0, plain.policy > 0)


def test_gamma_zero_looks_at_rewards_only() -> None:
    mdp = random_mdp(2)
    solution = solve(mdp, gamma=0.0)
    np.testing.assert_array_equal(solution.values, mdp.rewards.max(axis=1))
    np.testing.assert_allclose(max_visitation(mdp, gamma=0.0), mdp.start, rtol=1e-14)


@settings(max_examples=40, deadline=None)
@given(seeds, gammas)
def test_no_policy_beats_the_optimum_and_more_reward_never_hurts(seed: int, gamma: float) -> None:
    mdp = random_mdp(seed)
    best = solve(mdp, gamma=gamma)
    assert (evaluate(mdp, random_policy(mdp, seed), gamma=gamma) <= best.values + 1e-10).all()
    more = mdp.rewards + np.random.default_rng(seed).random(mdp.rewards.shape)
    assert (solve(mdp, gamma=gamma, rewards=more).values >= best.values - 1e-10).all()


@settings(max_examples=40, deadline=None)
@given(seeds, gammas)
def test_relabelling_changes_nothing(seed: int, gamma: float) -> None:
    mdp, random = random_mdp(seed), np.random.default_rng(seed)
    states, actions = random.permutation(mdp.num_states), random.permutation(mdp.num_actions)
    moved = FiniteMDP(
        mdp.dense_transitions()[states][:, actions][:, :, states], mdp.rewards[states][:, actions], mdp.start[states]
    )
    before, after = solve(mdp, gamma=gamma), solve(moved, gamma=gamma)
    np.testing.assert_allclose(after.values, before.values[states], atol=1e-11)
    np.testing.assert_allclose(after.policy, before.policy[states][:, actions])
    most = max_visitation(mdp, gamma=gamma)
    np.testing.assert_allclose(max_visitation(moved, gamma=gamma), most[states], atol=1e-11)


# The most a state can be visited ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.5, 0.95, *NEAR_ONE])
def test_max_visitation_of_the_traps(gamma: float) -> None:
    """Walk there in k steps, then bounce back and come again: gamma^k (1 - gamma) / (1 - gamma^2); the ends hold on."""
    depth = 20
    most = max_visitation(crossroad_traps(depth), gamma=gamma)
    steps = np.arange(1, depth)
    expected = gamma**steps * (1 - gamma) / ((1 - gamma) * (1 + gamma))
    np.testing.assert_allclose(most[1:-1], expected, rtol=1e-9)
    assert most[0] == pytest.approx(1.0, rel=1e-9)
    assert most[-1] == pytest.approx(gamma**depth, rel=1e-9)


@pytest.mark.parametrize("method", [None, "goal sweeps", "policy iteration", "value iteration", "one by one"])
@pytest.mark.parametrize("seed", range(6))
def test_max_visitation_agrees_with_the_linear_program(seed: int, method: str | None) -> None:
    mdp = random_mdp(seed, num_states=5 + seed)
    gamma = [0.5, 0.9, 0.95][seed % 3]
    report = max_visitation_report(mdp, gamma=gamma, method=method)
    for state in range(mdp.num_states):
        reward = np.zeros(mdp.rewards.shape)
        reward[state] = 1.0
        assert report.values[state] == pytest.approx(program_value(mdp, gamma, reward, mdp.start), abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_max_visitation_without_cycles_agrees_with_the_other_methods(seed: int) -> None:
    mdp = layered_mdp(seed, num_states=12)
    found = max_visitation_report(mdp, gamma=0.9)
    assert found.method == "backward sweep"
    np.testing.assert_allclose(found.values, max_visitation_report(mdp, gamma=0.9, method="one by one").values)
    reward = np.zeros(mdp.rewards.shape)
    reward[3] = 1.0
    assert found.values[3] == pytest.approx(program_value(mdp, 0.9, reward, mdp.start), abs=1e-7)


@pytest.mark.parametrize("gamma", [0.95, *NEAR_ONE])
def test_max_visitation_agrees_with_quantecon_state_by_state(gamma: float) -> None:
    mdp = garnet(200, 3, 2, seed=4)
    report = max_visitation_report(mdp, gamma=gamma, targets=[0, 7, 133])
    assert report.method.startswith("value iteration")
    for target, found in zip([0, 7, 133], report.values, strict=True):
        reward = np.zeros(mdp.rewards.shape)
        reward[target] = 1.0
        theirs = (1 - gamma) * quantecon(mdp, gamma, reward).solve("policy_iteration").v
        assert found == pytest.approx(float(mdp.start @ theirs), abs=1e-9)


@pytest.mark.parametrize("gamma", [0.95, 0.9999])
def test_max_visitation_of_a_maze_with_cycles(gamma: float) -> None:
    """Moves are certain: gamma to the distance, times what the shortest way back gives; checked by policy iteration."""
    maze = one_way_maze(14)
    found = max_visitation_report(maze, gamma=gamma)
    assert found.method == "goal sweeps"
    assert found.residual <= 1e-15
    by_elimination = max_visitation_report(maze, gamma=gamma, method="policy iteration")
    np.testing.assert_allclose(found.values, by_elimination.values, rtol=1e-11)


def test_goal_sweeps_serve_moves_that_slip() -> None:
    """A grid of 40 by 40 in which one move in twenty goes astray: no narrow band, hardly uncertain, full of cycles."""
    lake = slippery_torus(40, slip=0.05)
    targets = [0, 77, 1599]
    found = max_visitation_report(lake, gamma=0.95, targets=targets)
    assert found.method == "goal sweeps"
    np.testing.assert_allclose(
        found.values,
        max_visitation_report(lake, gamma=0.95, targets=targets, method="value iteration").values,
        rtol=1e-8,
    )


def test_unsettled_targets_are_solved_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("curious_explorer.exact.max_visitation")  # the package has a function of that name
    monkeypatch.setattr(module, "FEW_SWEEPS", 1)
    mdp = back_and_forth(2000, forward=0.8, order=np.random.default_rng(2).permutation(2000))
    report = max_visitation_report(mdp, gamma=0.9999, targets=[3, 1500])
    assert report.method == "value iteration, then one by one"
    for target, found in zip([3, 1500], report.values, strict=True):
        reward = np.zeros(mdp.rewards.shape)
        reward[target] = 1.0
        theirs = 1e-4 * quantecon(mdp, 0.9999, reward).solve("policy_iteration", max_iter=5000).v
        assert found == pytest.approx(float(mdp.start @ theirs), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds, gammas)
def test_no_policy_visits_more(seed: int, gamma: float) -> None:
    mdp = random_mdp(seed)
    most = max_visitation(mdp, gamma=gamma)
    for number in range(3):
        assert (visitation(mdp, random_policy(mdp, seed + number), gamma=gamma) <= most + 1e-10).all()
    assert most.sum() >= 1.0 - 1e-10


def test_max_visitation_from_another_start_and_of_no_target() -> None:
    mdp = crossroad_traps(6)
    assert max_visitation(mdp, gamma=0.9, start=6)[6] == pytest.approx(1.0)
    assert max_visitation(mdp, gamma=0.9, targets=[]).shape == (0,)


def test_max_visitation_bad_arguments() -> None:
    large = garnet(10_001, 1, 1)
    with pytest.raises(ValueError, match=r"10001 states.*targets="):
        max_visitation(large, gamma=0.9)
    small = crossroad_traps(3)
    for targets in ([4], [-1], [[0]], [0.5]):
        with pytest.raises(ValueError, match="targets"):
            max_visitation(small, gamma=0.9, targets=targets)
    with pytest.raises(ValueError, match="start sums to"):
        max_visitation(small, gamma=0.9, start=np.ones(4))


def test_solve_bad_arguments() -> None:
    mdp = back_and_forth(5)
    assert "backward sweep" in METHODS
    for arguments, message in [
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"gamma": 0.9, "method": "guess"}, "method is 'guess'"),
        ({"gamma": 0.9, "method": "backward sweep"}, "without cycles"),
        ({"gamma": 0.9, "rewards": np.zeros((5, 3))}, r"rewards has shape \(5, 3\)"),
        ({"gamma": 0.9, "rewards": np.full((5, 2), np.nan)}, "state 0, action 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            solve(mdp, **arguments)
