"""Spread shares: the mixture nearest to uniform on what was seen, and reset models that are weighed by them."""

import numpy as np
import pytest
from random_mdps import random_mdp, random_policy
from scipy.optimize import minimize
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import ResetModel, TabularWorld, explore
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.errors import ResetModelError
from curious_explorer.explorers.thresholds import linear
from curious_explorer.learners.trpo import TRPO
from curious_explorer.resets.reset_model import MOST_STATES, exact_visits, spread_shares


def spread_of(shares, visited):
    """The mean logarithm over seen states; relative entropy to the uniform distribution, but for sign and constant."""
    return np.log(shares @ visited[:, visited.any(axis=0)]).mean()


def random_visits(seed):
    random = np.random.default_rng(seed)
    rounds, states = random.integers(2, 7), random.integers(3, 40)
    visited = random.dirichlet(np.full(states, 0.2), size=rounds)
    return np.where(visited > 1e-3, visited, 0.0)


def test_rounds_that_share_no_state_get_shares_by_size():
    visited = np.zeros((2, 12))
    visited[0, :2] = 1 / 2
    visited[1, 2:10] = 1 / 8  # the last two states were never seen
    np.testing.assert_allclose(spread_shares(visited), [0.2, 0.8], atol=1e-3)


def test_a_round_that_adds_nothing_gets_nothing():
    near = np.array([0.9, 0.1, 0.0, 0.0])
    far = np.array([0.3, 0.3, 0.2, 0.2])
    assert spread_shares(np.array([near, far, near])) @ [1, 0, 1] < 1e-3


@pytest.mark.parametrize("seed", range(30))
def test_shares_are_the_best_that_a_general_solver_finds(seed):
    visited = random_visits(seed)
    found = spread_shares(visited)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    start = np.full(len(visited), 1.0 / len(visited))
    best = minimize(
        lambda shares: -spread_of(np.maximum(shares, 1e-12), visited),
        start,
        bounds=[(0.0, 1.0)] * len(visited),
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1.0},
    )
    assert spread_of(found, visited) >= -best.fun - 2e-4
    assert spread_of(found, visited) >= spread_of(start, visited) - 1e-12


def test_a_large_space_is_spread_from_a_part_of_it():
    visited = np.zeros((2, 4 * MOST_STATES))
    visited[0, : 3 * MOST_STATES] = 1 / (3 * MOST_STATES)
    visited[1, 3 * MOST_STATES :] = 1 / MOST_STATES
    np.testing.assert_allclose(spread_shares(visited), [0.75, 0.25], atol=1e-3)


def make_model(mdp, seed):
    policies = [random_policy(mdp, seed + k) for k in range(4)]
    visited = exact_visits(ResetModel(policies, gamma=0.8), mdp)[:3]  # the last one is not measured, as in explore
    return ResetModel(policies, gamma=0.8, weighting="spread", visited=visited)


# 12 cases: each at SIGNIFICANCE / 12, so that all of them pass with probability 1 - SIGNIFICANCE.
SAMPLED = [crossroad_traps(10), combination_lock(10), *(random_mdp(seed) for seed in range(10))]


@pytest.mark.parametrize("case", range(len(SAMPLED)))
def test_samples_have_the_exact_distribution(case):
    mdp = SAMPLED[case]
    model = make_model(mdp, case)
    expected = 0.5 * mdp.start + 0.5 * spread_shares(model.visited) @ model.visited
    np.testing.assert_allclose(model.distribution(mdp), expected, atol=1e-12)
    counts = np.bincount(model.sample(TabularWorld(mdp, seed=case), 30_000), minlength=mdp.num_states)
    assert chi_square(counts, expected) > SIGNIFICANCE / len(SAMPLED)


def test_explore_hands_out_what_spreading_needs_and_files_keep_it(tmp_path):
    mdp = crossroad_traps(6)
    exploration = explore(
        TabularWorld(mdp), TRPO(updates=50), gamma=0.9, rounds=4, thresholds=linear(0.1), visits=500, progress=False
    )
    spread = exploration.reset_model.weighted("spread")
    assert len(spread.visited) == 4
    assert spread.shares[-1] == 0.0
    loaded = ResetModel.load(exploration.reset_model.save(tmp_path))
    assert loaded.weighting == "spread"
    np.testing.assert_array_equal(loaded.weighted("spread").shares, spread.shares)
    assert (spread.sample(TabularWorld(mdp), 300) == loaded.weighted("spread").sample(TabularWorld(mdp), 300)).all()


def test_opt_can_learn_from_spread_resets():
    seen = []

    def spy(world, reset, **given):
        seen.append(reset)
        return TRPO(updates=1)(world, reset, **given)

    explore(
        TabularWorld(combination_lock(4)), spy, gamma=0.9, rounds=3, visits=200, learn_from="spread", progress=False
    )
    assert [len(reset.visited) for reset in seen] == [1, 2, 3]
    assert all(reset.weighting == "spread" for reset in seen)


def test_spreading_needs_the_visits_of_the_rounds():
    policies = make_model(combination_lock(3), 1).policies
    with pytest.raises(ValueError, match="visits of the rounds"):
        ResetModel(policies, gamma=0.9).weighted("spread")


def test_a_model_of_an_older_version_names_it(tmp_path):
    make_model(combination_lock(3), 1).weighted("average").save(tmp_path)
    path = tmp_path / "reset_model.json"
    path.write_text(path.read_text().replace('"version": 7', '"version": 2'))
    with pytest.raises(ResetModelError, match="version is 2, older than 6"):
        ResetModel.load(tmp_path)


@pytest.mark.parametrize(
    ("visited", "message"),
    [
        ([[0.5, 0.5]], r"has shape \(1, 2\), expected at most 2 rows"),
        ([[1.0, 0, 0]] * 3, r"has shape \(3, 3\), expected at most 2 rows"),
        ([[np.nan, 0, 0]], "finite, not negative"),
        ([[-1.0, 2.0, 0]], "finite, not negative"),
        ([[0.0, 0, 0]], "not all zero"),
    ],
)
def test_visits_that_are_none_are_refused(visited, message):
    with pytest.raises(ValueError, match=message):
        ResetModel([np.full((3, 2), 0.5)] * 2, gamma=0.9, visited=visited)
