"""Alias tables and thresholds represent the distributions they were built from."""

import numpy as np
import pytest
from random_mdps import random_mdp, random_policy
from sampling_oracle import alias_distribution, mix64, stream_key

from curious_explorer.environments import combination_lock, garnet
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds import random_streams as random


def test_mix64_is_splitmix64():
    # The first outputs of SplitMix64 from state 1234567, as published with the generator's reference code.
    golden, expected = 0x9E3779B97F4A7C15, [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for index, value in enumerate(expected, start=1):
        state = (1234567 + index * golden) % 2**64
        assert mix64(state) == value
        assert random.mix64(np.uint64(state)) == value


def test_stream_keys_are_those_of_the_oracle():
    for seed, stream in [(0, 0), (1, 2), (2**64 - 1, 7)]:
        assert random.stream_key(np.uint64(seed), np.uint64(stream)) == stream_key(seed, stream)


@pytest.mark.parametrize("seed", range(20))
def test_alias_table_draws_its_distribution(seed):
    generator = np.random.default_rng(seed)
    size = int(generator.integers(1, 200))
    probabilities = generator.random(size) ** 6 * (generator.random(size) < 0.7)
    probabilities[generator.integers(size)] += 1.0
    probabilities /= probabilities.sum()
    drawn = alias_distribution(tables.alias_table(probabilities))
    assert set(drawn) == set(np.flatnonzero(probabilities))  # nothing impossible, nothing lost
    assert all(abs(drawn[outcome] - probabilities[outcome]) < 1e-15 for outcome in drawn)


def test_alias_table_marks_terminal_outcomes():
    table = tables.alias_table(np.array([0.5, 0.0, 0.5]), np.array([False, False, True]))
    assert alias_distribution(table) == {0: 0.5, ~2: 0.5}


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95, 0.9999])
def test_geometric_table_is_the_stopping_time(gamma):
    table = tables.geometric_table(gamma, tables.geometric_size(gamma))
    drawn = alias_distribution(table)
    last = (1 << table.log2_size) - 1
    for steps, probability in drawn.items():
        expected = gamma**last if steps == last else (1 - gamma) * gamma**steps
        assert abs(probability - expected) < 1e-12  # 65,536 entries pass their rounding on from one to the next


@pytest.mark.parametrize("seed", range(10))
def test_composed_table_is_the_chain_of_the_policy(seed):
    mdp = random_mdp(seed)
    policy = random_policy(mdp, seed)
    table = tables.composed_table(mdp, policy, tables.composed_log2_size(mdp))
    chain = np.einsum("sa,sat->st", policy, mdp.dense_transitions())
    for state in range(mdp.num_states):
        drawn = alias_distribution(table, state)
        for outcome, probability in drawn.items():
            successor = outcome if outcome >= 0 else ~outcome
            assert mdp.terminal[successor] == (outcome < 0)
            assert abs(probability - chain[state, successor]) < 1e-12
        assert len(drawn) == np.count_nonzero(chain[state])


def test_impossible_actions_are_never_drawn():
    # Thirds do not add up to one in floating point; the last action is impossible all the same.
    thresholds = tables.policy_thresholds(np.array([[1 / 3, 1 / 3, 1 / 3, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    assert thresholds[0, 2] == thresholds[0, 3] == 2**63
    assert thresholds[1].tolist() == [0, 2**63, 2**63, 2**63]


def test_composed_rows_are_as_wide_as_the_widest_state():
    assert 1 << tables.composed_log2_size(combination_lock(3)) == 4  # own lane, other lane, locked: three successors
    assert 1 << tables.composed_log2_size(garnet(1000, 4, 2)) == 8
