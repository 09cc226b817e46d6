"""The test on unseen layouts: apart by construction, counted, with an exact interval."""

import functools

import numpy as np
import pytest
from gym_helpers import Fixed
from layouts_helpers import Signposts
from scipy.stats import binom

from curious_explorer.gym.fixed_layout import FIRST_TEST
from curious_explorer.studies.unseen_layouts import check_apart, play_unseen, split_layouts

reads = Fixed(lambda seen: int(seen[1]))


class Guesses(Fixed):
    """Draws its actions."""

    def act(self, observations, generator):
        return [int(generator.integers(3)) for _ in observations]


def test_layouts_to_train_in_and_to_test_on_are_apart():
    few, many = split_layouts(8, 500), split_layouts(64, 500)
    assert many.train[:8] == few.train
    assert many.test == few.test
    assert len(set(many.test)) == 500
    assert max(many.train) < FIRST_TEST <= min(many.test)
    assert split_layouts(8, 500, seed=1).train != few.train
    assert split_layouts([3, 4], [5, 6]) == ((3, 4), (5, 6))
    with pytest.raises(ValueError, match=r"2 layouts are for training and for tests \(4, 5\)"):
        split_layouts([3, 4, 5], [4, 5, 6])
    with pytest.raises(ValueError, match="tests"):
        split_layouts(3, 0)


def test_what_is_tested_was_never_explored():
    with pytest.raises(ValueError, match=r"\(7\)"):
        play_unseen(Signposts, reads, range(5, 10), explored=[1, 7])
    check_apart([1, 2], [3])


def test_one_episode_is_played_in_each_layout_and_its_steps_are_counted():
    result = play_unseen(functools.partial(Signposts, length=6), reads, range(600), explored=[])
    assert (result.solved, result.tested, result.steps, result.return_mean) == (600, 600, 5 * 600, 1.0)
    assert 0.99 < result.low < result.high == 1.0
    assert "600 of 600" in str(result)


def test_the_interval_is_that_of_clopper_and_pearson():
    make = functools.partial(Signposts, length=3, limit=4)
    result = play_unseen(make, Guesses(None), range(700), explored=[], seed=3)
    assert 0 < result.solved < 700
    # The limits are those chances at which so many, or so few, are seen with probability 0.025.
    assert binom.sf(result.solved - 1, 700, result.low) == pytest.approx(0.025, abs=1e-6)
    assert binom.cdf(result.solved, 700, result.high) == pytest.approx(0.025, abs=1e-6)
    assert result == play_unseen(make, Guesses(None), range(700), explored=[], seed=3)
    assert result.steps <= 4 * 700


def test_a_layout_in_which_the_environment_raises_is_named_and_not_solved():
    result = play_unseen(functools.partial(Signposts, broken=(3, 8)), reads, range(10), explored=[])
    assert result.failed == (3, 8)
    assert result.solved == 8
    assert "raised in 2" in str(result)


def test_thresholds_are_of_returns():
    assert play_unseen(Signposts, reads, range(20), explored=[], threshold=1.0).solved == 0
    assert np.isclose(play_unseen(Signposts, reads, range(20), explored=[]).share, 1.0)
