"""What many batches together say of the actions of a state."""

import numpy as np
import pytest

from curious_explorer.learners.pooled_advantages import PooledAdvantages
from curious_explorer.worlds.world import EpisodeStatistics


def a_batch(tries, advantages):
    """One state, whose actions were tried so often, with these advantages in sum."""
    weight, sums = (np.array([row], dtype=float) for row in (tries, advantages))
    nothing = np.zeros(1)
    return EpisodeStatistics(sums, weight, nothing, nothing, nothing, np.zeros(1, dtype=np.int64), 0)


def exchanges_of(batches, policy):
    pooled = PooledAdvantages(1, len(policy))
    for batch in batches:
        pooled.add(batch)
    return pooled.exchanges(np.array([policy]))


@pytest.mark.parametrize("seed", range(5))
def test_a_better_action_that_is_rarely_tried_takes_the_place_of_the_likeliest(seed):
    random = np.random.default_rng(seed)
    batches = [a_batch([97, 2, 1], [random.normal(0, 10), 2 * 1.0 + random.normal(), -1.0]) for _ in range(50)]
    found = exchanges_of(batches, [0.97, 0.02, 0.01])
    assert [part.tolist() for part in found] == [[0], [0], [1]]
    table = np.array([[0.97, 0.02, 0.01]])
    found.apply(table)
    assert table.tolist() == [[0.02, 0.97, 0.01]]


def test_one_lucky_batch_is_no_reason():
    assert len(exchanges_of([a_batch([97, 2, 1], [0.0, 50.0, 0.0])], [0.97, 0.02, 0.01]).states) == 0


def test_the_likeliest_stays_where_it_is_the_best_and_where_nothing_was_tried():
    batches = [a_batch([50, 50], [20.0 + noise, -20.0]) for noise in (-1.0, 0.0, 1.0)]
    assert len(exchanges_of(batches, [0.6, 0.4]).states) == 0
    assert len(exchanges_of([], [0.6, 0.4]).states) == 0


def test_noise_is_followed_in_few_states():
    """Where all actions are alike, one in six is above its mean by more than a standard error: it changes nothing."""
    random = np.random.default_rng(0)
    pooled = PooledAdvantages(2_000, 2)
    policy = np.tile([0.9, 0.1], (2_000, 1))
    weight = 100.0 * policy
    for _ in range(30):
        sums = random.normal(size=weight.shape) * np.sqrt(weight)
        nothing = np.zeros(2_000)
        pooled.add(EpisodeStatistics(sums, weight, nothing, nothing, nothing, np.zeros(1, dtype=np.int64), 0))
    assert len(pooled.exchanges(policy).states) < 0.2 * 2_000


def test_after_clearing_nothing_is_known():
    pooled = PooledAdvantages(1, 2)
    for _ in range(9):
        pooled.add(a_batch([9, 1], [0.0, 1.0]))
    assert len(pooled.exchanges(np.array([[0.9, 0.1]])).states) == 1
    pooled.clear()
    assert len(pooled.exchanges(np.array([[0.9, 0.1]])).states) == 0
