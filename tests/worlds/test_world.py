"""`TabularWorld` and `visit`: right in distribution, counted to the step, the same on any number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
from random_mdps import random_mdp, random_policy
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import FiniteMDP, TabularWorld, World, visit, visitation
from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.worlds import numba_backend
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

# 52 cases tested together: each at SIGNIFICANCE / 52, so that all of them pass with probability 1 - SIGNIFICANCE.
DISTRIBUTION_CASES = [crossroad_traps(20), combination_lock(20), *(random_mdp(seed) for seed in range(50))]


@pytest.mark.parametrize("case", range(len(DISTRIBUTION_CASES)))
def test_visit_is_distributed_as_exact_visitation(case):
    mdp = DISTRIBUTION_CASES[case]
    policy = random_policy(mdp, case)
    world = TabularWorld(mdp, seed=case)
    counts = visit(world, policy, gamma=0.9, count=50_000)
    exact = visitation(mdp, policy, gamma=0.9)
    assert chi_square(counts, exact) > SIGNIFICANCE / len(DISTRIBUTION_CASES)


@pytest.mark.parametrize("case", range(2, 12))
def test_short_visits_have_the_same_distribution(case, monkeypatch):
    monkeypatch.setattr(numba_backend, "MOST_COMPOSED_BYTES", 0)  # always walk by steps
    mdp = DISTRIBUTION_CASES[case]
    policy = random_policy(mdp, case)
    counts = visit(TabularWorld(mdp, seed=case), policy, gamma=0.9, count=50_000)
    assert chi_square(counts, visitation(mdp, policy, gamma=0.9)) > SIGNIFICANCE / 10


def test_chi_square_would_notice():
    mdp = combination_lock(5)
    counts = visit(TabularWorld(mdp), mdp.uniform_policy(), gamma=0.9, count=50_000)
    assert chi_square(counts, visitation(mdp, mdp.uniform_policy(), gamma=0.89)) < SIGNIFICANCE


@pytest.mark.parametrize("seed", range(5))
def test_visit_from_a_roll_in_is_the_spread_of_its_distribution(seed):
    mdp = random_mdp(seed)
    first, second = random_policy(mdp, seed), random_policy(mdp, seed + 1)
    halfway = RollIn.mixture([first], 0.7, [0.5, 0.5], [(0, 0), (0, 1)])  # half rho, half one walk
    counts = visit(TabularWorld(mdp, seed=seed), second, gamma=0.9, count=50_000, reset=halfway)
    mu = 0.5 * mdp.start + 0.5 * visitation(mdp, first, gamma=0.7)
    assert chi_square(counts, visitation(mdp, second, gamma=0.9, start=mu / mu.sum())) > SIGNIFICANCE / 5


def test_walking_nowhere_is_the_start():
    mdp = random_mdp(4)
    world = TabularWorld(mdp)
    states = world.walk(RollIn.from_start(), 20_000)
    assert world.samples == 0
    assert chi_square(np.bincount(states, minlength=mdp.num_states), mdp.start) > SIGNIFICANCE


def test_gamma_zero_stays_at_the_start():
    mdp = combination_lock(3)
    world = TabularWorld(mdp)
    counts = visit(world, mdp.uniform_policy(), gamma=0.0, count=100)
    assert counts[0] == 100
    assert world.samples == 0


def test_samples_are_steps_and_terminal_states_cost_none():
    # One step to the end, whatever is drawn: a visit costs one step unless it stops before it.
    mdp = FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 0.0]]]), np.zeros((2, 1)), 0, terminal=[1])
    world = TabularWorld(mdp, seed=1)
    counts = visit(world, np.ones((2, 1)), gamma=0.99, count=1000)
    assert world.samples == counts[1]


def test_threads_change_nothing():
    mdp = garnet(2000, seed=1)
    results = []
    for threads in (1, 2, 5):
        world = TabularWorld(mdp, seed=7, threads=threads)
        results.append((visit(world, mdp.uniform_policy(), gamma=0.9, count=30_001).tolist(), world.samples))
    assert results[0] == results[1] == results[2]


def test_same_seed_same_results_and_calls_differ():
    mdp = combination_lock(5)
    one, two, other = TabularWorld(mdp, seed=4), TabularWorld(mdp, seed=4), TabularWorld(mdp, seed=5)
    walks = RollIn.from_start().then(mdp.uniform_policy(), 0.9)
    first = one.walk(walks, 500)
    assert (first == two.walk(walks, 500)).all()
    assert (first != other.walk(walks, 500)).any()
    assert (first != one.walk(walks, 500)).any()


def test_position_restores_exactly():
    mdp = combination_lock(5)
    world = TabularWorld(mdp, seed=4)
    walks = RollIn.from_start().then(mdp.uniform_policy(), 0.9)
    world.walk(walks, 10)
    position = world.position()
    ends, samples = world.walk(walks, 300), world.samples
    fresh = TabularWorld(mdp, seed=4)
    fresh.restore(position)
    assert (fresh.walk(walks, 300) == ends).all()
    assert fresh.samples == samples


def test_restart_and_step_follow_the_model():
    mdp = random_mdp(3, transition_rewards=True)
    world = TabularWorld(mdp, seed=2)
    dense = mdp.dense_transitions()
    for _ in range(200):
        state = world.restart()
        assert mdp.start[state] > 0
        while not mdp.terminal[state] and world.samples % 50 != 49:
            action = world.samples % mdp.num_actions
            step = world.step(action)
            assert dense[state, action, step.state] > 0
            assert step.terminated == mdp.terminal[step.state]
            state = step.state
        if not mdp.terminal[state]:
            world.step(0)
    assert world.samples > 200


def test_single_steps_are_distributed_as_the_transitions():
    mdp = random_mdp(8, num_states=6, num_actions=2, terminal=False).with_start(0)
    world = TabularWorld(mdp, seed=2)
    counts = np.zeros(6, dtype=int)
    for _ in range(3000):
        world.restart()
        counts[world.step(1).state] += 1
    assert chi_square(counts, mdp.dense_transitions()[0, 1]) > SIGNIFICANCE


def test_tables_handed_to_a_roll_in_cannot_change():
    policy = np.full((3, 2), 0.5)
    roll_in = RollIn.from_start().then(policy, 0.9)
    policy[0] = [1.0, 0.0]
    assert roll_in.policies[0][0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        roll_in.policies[0][0, 0] = 1.0
    assert frozen(roll_in.policies[0]) is roll_in.policies[0]


def test_tabular_world_is_a_world():
    assert isinstance(TabularWorld(crossroad_traps(3)), World)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": 1.0}, r"gamma is 1.0, expected a discount in \[0, 1\)"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"gamma": "high"}, "gamma is 'high'"),
        ({"count": -1}, "count is -1"),
        ({"count": 2.5}, "count is 2.5"),
        ({"policy": np.ones((4, 4))}, r"policy has shape \(4, 4\), expected \(6, 4\)"),
        ({"policy": np.ones((6, 4))}, "policy, state 0: action probabilities sum to 4"),
        ({"policy": np.full((6, 4), np.nan)}, "state 0, action 0: the probability is nan"),
    ],
)
def test_visit_refuses_bad_input(arguments, message):
    world = TabularWorld(crossroad_traps(5))
    given = {"policy": np.full((6, 4), 0.25), "gamma": 0.9, "count": 10} | arguments
    with pytest.raises(ValueError, match=message):
        visit(world, given.pop("policy"), **given)
    assert world.samples == 0


def test_world_refuses_bad_input():
    mdp = crossroad_traps(5)
    with pytest.raises(ValueError, match="seed is -1"):
        TabularWorld(mdp, seed=-1)
    with pytest.raises(ValueError, match="backend is 'abacus', expected one of 'numba'"):
        TabularWorld(mdp, backend="abacus")
    with pytest.raises(ValueError, match="threads is 0"):
        TabularWorld(mdp, threads=0)
    world = TabularWorld(mdp)
    with pytest.raises(RuntimeError, match="call restart"):
        world.step(0)
    world.restart()
    with pytest.raises(ValueError, match="action is 4, expected an index from 0 to 3"):
        world.step(4)
    uniform = mdp.uniform_policy()
    for changes, message in [
        ({"policy": uniform * 2}, "action probabilities sum to 2"),
        ({"policy": uniform[:2]}, r"policy has shape \(2, 4\)"),
        ({"critic": np.zeros(3)}, r"critic has shape \(3,\)"),
        ({"reward": Reward(np.full((6, 4), np.inf))}, "state 0, action 0: inf"),
        ({"trace": 1.5}, "trace is 1.5"),
        ({"horizon": 0}, "horizon is 0"),
        ({"max_samples": -5}, "max_samples is -5"),
    ]:
        given = {"policy": uniform, "episodes": 1, "horizon": 5, "gamma": 0.9} | changes
        with pytest.raises(ValueError, match=message):
            world.episodes(given.pop("policy"), EpisodeBatch(**given))
    assert world.samples == 0


def test_nowhere_to_start_is_said():
    mdp = FiniteMDP(np.array([[[1.0]]]), np.zeros((1, 1)), 0, terminal=[0])
    with pytest.raises(ValueError, match="terminal states"):
        TabularWorld(mdp).episodes(np.ones((1, 1)), EpisodeBatch(episodes=1, horizon=5, gamma=0.9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gammas": (0.9, 0.9)}, "2 gammas for 1 policies"),
        ({"weights": np.array([0.5, 0.6])}, "weights sums to 1.1"),
        ({"chains": np.array([[0, 2], [0, 0]])}, "ranges within the 1 policies"),
        ({"chains": np.zeros((0, 2), dtype=np.int64)}, "expected"),
    ],
)
def test_roll_in_refuses_bad_input(change, message):
    parts = {
        "policies": (np.full((2, 2), 0.5),),
        "gammas": (0.9,),
        "weights": np.array([0.5, 0.5]),
        "chains": np.array([[0, 0], [0, 1]]),
    }
    with pytest.raises(ValueError, match=message):
        RollIn(**(parts | change))


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "0"},
    ).stdout


def test_import_loads_neither_numba_nor_scipy_nor_matplotlib():
    heavy = run_python(
        "import sys, curious_explorer; print([m for m in ('numba','scipy','matplotlib') if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_another_process_gets_the_same_numbers():
    code = (
        "from curious_explorer import *; from curious_explorer.environments import combination_lock as dcl;"
        "m = dcl(5); print(visit(TabularWorld(m, seed=9), m.uniform_policy(), gamma=0.9, count=5000).tolist())"
    )
    assert run_python(code) == run_python(code)


def test_a_mixture_may_begin_at_rho_more_or_less_often():
    mixture = RollIn.mixture([np.full((3, 2), 0.5)] * 2, 0.7, [0.5, 0.2, 0.3], [(0, 0), (0, 1), (1, 2)])
    np.testing.assert_allclose(mixture.with_start_share(0.1).weights, [0.1, 0.36, 0.54])
    np.testing.assert_allclose(mixture.weights, [0.5, 0.2, 0.3])  # which stays as it is
    assert RollIn.from_start().with_start_share(0.1) is RollIn.from_start()
