"""Each kernel against its slow Python oracle, on the same random numbers."""

import numpy as np
import pytest
import sampling_oracle as oracle
from random_mdps import random_mdp, random_policy

from curious_explorer import TabularWorld
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds import episode_kernels as stepping
from curious_explorer.worlds import walk_kernels as walking
from curious_explorer.worlds.numba_backend import Preparer
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

KEY = oracle.stream_key(5, 0)
WALKS = 200


def average_roll_in(mdp, seed, policies=3, gamma=0.8):
    """A roll-in with empty chains, chains of several lengths, and a tail."""
    tables_ = [random_policy(mdp, seed + k) for k in range(policies)]
    chains = [(0, 0)] + [(i, j) for j in range(1, policies + 1) for i in range(j)]
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(chains)))
    return RollIn.mixture(tables_, gamma, weights, chains).then(random_policy(mdp, seed + 99), 0.6)


def oracle_tables(mdp, roll_in):
    sizes = max((tables.geometric_size(gamma) for gamma in roll_in.gammas), default=64)
    log2_size = tables.composed_log2_size(mdp)
    return {
        "chains": tables.alias_table(roll_in.weights),
        "start": tables.alias_table(mdp.start, mdp.terminal),
        "stops": [tables.geometric_table(gamma, sizes) for gamma in roll_in.gammas],
        "policies": [tables.composed_table(mdp, policy, log2_size) for policy in roll_in.policies],
    }


CASES = [random_mdp(seed, transition_rewards=seed % 2 == 0) for seed in range(8)]
CASES += [crossroad_traps(5), combination_lock(4)]


@pytest.mark.parametrize("kernel", [walking.walk_in_pairs, walking.walk_in_lanes], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_composed_walks(kernel, case):
    mdp = CASES[case]
    roll_in = average_roll_in(mdp, case)
    by_hand = oracle_tables(mdp, roll_in)
    expected = [oracle.walk_composed(by_hand, mdp, roll_in, KEY, walk) for walk in range(WALKS)]
    prepared = Preparer(mdp).prepare(roll_in)
    table = prepared.composed()
    ends = np.empty(WALKS, dtype=np.int32)
    stride = mdp.num_states << table.log2_size
    half = WALKS // 2  # in two portions, as two threads would
    steps = [
        kernel(prepared.chains, table.words, table.outcomes, table.log2_size, stride, np.uint64(KEY), first, part)
        for first, part in ((0, ends[:half]), (half, ends[half:]))
    ]
    assert ends.tolist() == [end for end, _ in expected]
    assert sum(steps) == sum(steps for _, steps in expected)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_walks_by_steps(case):
    mdp = CASES[case]
    roll_in = average_roll_in(mdp, case)
    by_hand = oracle_tables(mdp, roll_in)
    expected = [oracle.roll_in_by_steps(by_hand, mdp, roll_in, oracle.RandomStream(KEY, walk)) for walk in range(WALKS)]
    prepared = Preparer(mdp).prepare(roll_in)
    ends = np.empty(WALKS, dtype=np.int32)
    steps = stepping.walk_by_steps(tables.dynamics(mdp), prepared.chains, prepared.thresholds, np.uint64(KEY), 0, ends)
    assert ends.tolist() == [end for end, _ in expected]
    assert steps == sum(steps for _, steps in expected)


@pytest.mark.parametrize("reward", ["own", "replace", "max"])
@pytest.mark.parametrize("weight_decay", [1.0, 0.9])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_episode_statistics(case, weight_decay, reward):
    mdp = CASES[case]
    random = np.random.default_rng(case)
    roll_in = average_roll_in(mdp, case)
    policy = random_policy(mdp, case + 50)
    settings = {
        "episodes": 60,
        "horizon": 12,
        "gamma": 0.9,
        "reward": None if reward == "own" else Reward(random.random((mdp.num_states, mdp.num_actions)), reward),
        "critic": random.random(mdp.num_states),
        "trace": 0.8,
        "weight_decay": weight_decay,
        "credited": 7,
    }
    expected = oracle.episode_statistics(oracle_tables(mdp, roll_in), mdp, roll_in, policy, KEY, **settings)
    world = TabularWorld(mdp, seed=5)
    got = world.episodes(policy, EpisodeBatch(reset=roll_in, record=True, **settings))
    for ours, theirs in zip(got[:5], expected[:5], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert got.lengths.tolist() == expected[5].tolist()
    assert got.samples == expected[6] == world.samples
    seen = got.seen
    columns = zip(seen.state, seen.action, seen.next_state, strict=True)
    assert dict(zip(columns, seen.times, strict=True)) == expected[7]


def test_long_rows_are_searched_by_bisection():
    # 40 actions and 40 successors: both searches take the bisecting branch.
    mdp = random_mdp(1, num_states=40, num_actions=40, terminal=False)
    roll_in = RollIn.from_start().then(random_policy(mdp, 1, zeros=0.1), 0.9)
    by_hand = oracle_tables(mdp, roll_in)
    expected = [
        oracle.roll_in_by_steps(by_hand, mdp, roll_in, oracle.RandomStream(KEY, walk))[0] for walk in range(WALKS)
    ]
    prepared = Preparer(mdp).prepare(roll_in)
    ends = np.empty(WALKS, dtype=np.int32)
    stepping.walk_by_steps(tables.dynamics(mdp), prepared.chains, prepared.thresholds, np.uint64(KEY), 0, ends)
    assert ends.tolist() == expected


@pytest.mark.parametrize("budget", [0, 1, 17, 100, 1000])
def test_budget_is_kept_to_the_step(budget):
    mdp = crossroad_traps(5)
    world = TabularWorld(mdp, seed=3)
    roll_in = average_roll_in(mdp, 3)
    got = world.episodes(
        mdp.uniform_policy(), EpisodeBatch(episodes=500, horizon=30, gamma=0.9, reset=roll_in, max_samples=budget)
    )
    assert got.samples == world.samples == budget
    assert got.lengths.sum() == got.weight.sum() <= budget
    assert len(got.returns) == len(got.lengths) <= 500
