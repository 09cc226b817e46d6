"""The best plan on counts: what a penalty does to ways, and to what counts as success."""

import numpy as np
import pytest

from curious_explorer.models.best_ways import BestWays
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.resets.moving_starts import OWN, MovingStarts
from curious_explorer.worlds.world import TransitionCounts

GAMMA, LENGTH, TRIES = 0.99, 12, 5
ON, BACK, DOWN = range(3)


def corridor(step=0.0, fall=-1.0, goal=1.0, ends_apart=False):
    """Counts of a row of states: on, back, or down, which ends the episode; the last way on pays."""
    place = np.arange(LENGTH)
    state, action = np.repeat(place, 3), np.tile(np.arange(3), LENGTH)
    following = np.where(action == ON, np.minimum(state + 1, LENGTH - 1), np.maximum(state - 1, 0))
    at_goal = (action == ON) & (state == LENGTH - 1)
    over = at_goal | (action == DOWN)
    following = np.where(over, LENGTH if ends_apart else state, following)
    pays = np.where(at_goal, goal, np.where(action == DOWN, fall, 0.0)) + step
    model = CountedModel(LENGTH + ends_apart, 3)
    times = np.full(len(state), TRIES)
    model.add(TransitionCounts(state, action, following, times, pays), ended=np.where(over, times, 0))
    model.starts[0] = 10
    return model


@pytest.mark.parametrize("ends_apart", [False, True])
@pytest.mark.parametrize("fall", [0.0, -1.0, -50.0])
def test_a_penalty_does_not_change_how_far_the_reward_is(fall, ends_apart):
    ways = BestWays(corridor(fall=fall, ends_apart=ends_apart), np.arange(LENGTH + ends_apart), GAMMA)
    assert ways.usual == 0.0
    np.testing.assert_allclose(ways.distance[:LENGTH], LENGTH - np.arange(LENGTH))
    assert (ways.policy[:LENGTH, ON] == 1.0).all()


def test_what_every_step_costs_is_no_penalty():
    ways = BestWays(corridor(step=-1.0, fall=-20.0, goal=0.0), np.arange(LENGTH), GAMMA)
    assert ways.usual == -1.0
    assert ways.least == -21.0
    assert (ways.policy[:, ON] == 1.0).all()
    assert (np.diff(ways.distance) <= 0.0).all()


def test_only_the_reward_is_a_success_beside_a_penalty():
    starts = MovingStarts(corridor(), gamma=GAMMA)
    for returned in (-1.0, 0.0):
        for _ in range(20):
            starts.tell(OWN, returned)
        assert starts.own_success == 0.0
    for _ in range(20):
        starts.tell(OWN, 1.0)
    assert starts.own_success > 0.5


def test_where_the_risk_is_not_worth_it_the_way_is_known_all_the_same():
    model, middle = corridor(fall=0.0), np.array([LENGTH // 2])
    times = np.array([3 * TRIES])  # the way on fails three times of four there, and that costs more than the goal pays
    model.add(TransitionCounts(middle, np.array([ON]), middle, times, np.array([-1.0])), ended=times)
    ways = BestWays(model, np.arange(LENGTH), GAMMA)
    assert ways.reward_known
    assert np.isfinite(ways.distance).all()
    assert (ways.policy[:, ON] == 1.0).all()


def test_where_there_are_only_penalties_no_reward_is_known():
    ways = BestWays(corridor(goal=0.0), np.arange(LENGTH), GAMMA)
    assert not ways.reward_known
    assert np.isinf(ways.distance).all()
