"""Moving starts: from the reward back to the environment's own start, as fast as the learner follows."""

import copy
import pickle
import random

import numpy as np
import pytest
from counted_helpers import counted
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import FiniteMDP, ResetModel, TabularWorld
from curious_explorer.environments import combination_lock, deep_sea, river_swim
from curious_explorer.errors import ResetModelError
from curious_explorer.resets.moving_starts import ON_THE_WAY, OWN, MovingStarts, StartSettings
from curious_explorer.resets.shared_starts import share_between_processes
from curious_explorer.resets.starts import moving_starts, starts_of

GAMMA = 0.99


def corridor(length, rewards=None, slip=0.0):
    """States in a row; action 1 goes on (failing with probability ``slip``), action 0 stays; the last state ends it."""
    transitions = np.zeros((length, 2, length))
    for place in range(length - 1):
        transitions[place, 0, place] = 1.0
        transitions[place, 1, place + 1] = 1.0 - slip
        transitions[place, 1, place] += slip
    transitions[-1, :, -1] = 1.0
    paid = np.zeros((length, 2))
    paid[-2, 1] = 1.0
    return FiniteMDP(transitions, paid if rewards is None else rewards, 0, terminal=np.arange(length) == length - 1)


def starts_on(mdp, gamma=GAMMA, **settings):
    return MovingStarts(counted(mdp), gamma=gamma, settings=StartSettings(**settings))


def follow(starts, solved, episodes, seed=0):
    """Tell of so many episodes, each of which succeeds if ``solved(distance)``; returns the distances of the starts."""
    generator, told = random.Random(seed), []
    for _ in range(episodes):
        start = starts.draw(generator.random)
        told.append(starts.farthest if start == OWN else starts.distance[start])
        starts.note(start, bool(solved(told[-1])))
    return told


# What the counted model says ------------------------------------------------------------------------------------------


def test_distances_are_steps_to_the_goal_where_nothing_is_random():
    starts = starts_on(corridor(30))
    assert starts.farthest == 29.0
    assert starts.states.tolist() == list(range(28, -1, -1))
    assert starts.distance.tolist() == list(range(1, 30))
    assert starts.cut.tolist() == [3 * d + 20 for d in range(1, 30)]


def test_costs_that_end_at_the_goal_give_the_same_distances():
    """As in MountainCar: every step costs one, and the goal is only where that ends."""
    model = counted(corridor(30, np.zeros((30, 2))))
    model.paid = -1.0 * model.times  # tables pay from 0 to 1, environments as they like
    starts = MovingStarts(model, gamma=GAMMA)
    assert starts.states.tolist() == list(range(28, -1, -1))
    assert starts.distance.tolist() == list(range(1, 30))
    starts.tell(OWN, -29.0)
    assert starts.own_success > 0.0
    starts.tell(OWN, -107.0)  # cut off after 3 * 29 + 20 steps
    assert starts.own_success == pytest.approx(0.95 / (1.95 + 1.0))


def test_a_small_reward_near_the_start_does_not_hide_the_large_one():
    rewards = np.zeros((30, 2))
    rewards[1, 1], rewards[-2, 1] = 0.05, 1.0
    assert starts_on(corridor(30, rewards)).farthest == 29.0


def test_a_shaped_reward_leaves_the_goal_farthest_from_the_start():
    rewards = np.zeros((30, 2))
    rewards[:-1, 1] = 0.002
    rewards[-2, 1] = 1.0
    starts = starts_on(corridor(30, rewards))
    assert starts.farthest > 20.0
    assert (np.diff(starts.states) < 0).all()


def test_noise_makes_ways_longer():
    assert starts_on(corridor(30, slip=0.5)).farthest == pytest.approx(2 * 29, abs=8)


def test_two_equal_rewards_are_both_moved_back_from():
    rewards = np.zeros((31, 2))
    rewards[10, 1] = rewards[-2, 1] = 1.0  # the first can be had again and again only by starting anew
    starts = starts_on(corridor(31, rewards), gamma=0.9)
    nearest = set(starts.states[starts.distance <= 2.0].tolist())
    assert {10, 29} <= nearest


def test_rewards_at_every_step_need_no_moving():
    rewards = np.ones((30, 2))
    starts = starts_on(corridor(30, rewards), gamma=0.8)
    assert starts.farthest < 5.0


def test_dead_ends_are_no_starts():
    mdp = combination_lock(6)
    starts = starts_on(mdp)
    model = counted(mdp)
    dead = [s for s in range(mdp.num_states) if model.terminal[s]]
    assert not set(starts.states.tolist()) & set(dead)
    assert starts.states.tolist()


# What the learner says ------------------------------------------------------------------------------------------------


def test_starts_move_back_while_far_episodes_succeed_and_end_at_the_own_start():
    starts = starts_on(corridor(60))
    levels = []
    for round_ in range(40):
        follow(starts, lambda distance: True, 20, seed=round_)
        levels.append(starts.progress.level)
    assert levels == sorted(levels)
    assert starts.progress.level == starts.farthest == 59.0
    assert starts.own_share == 1.0
    assert set(follow(starts, lambda distance: True, 50)) == {59.0}  # no roll-ins any more


def test_what_is_not_learned_holds_the_level():
    starts = starts_on(corridor(200))
    told = follow(starts, lambda distance: distance <= 20, 3_000)
    assert 20 <= starts.progress.level <= 60
    late = np.array([distance for distance in told[-500:] if distance < starts.farthest])
    assert (late > 20).any()
    assert late.max() <= 60


def test_a_level_that_was_too_far_shrinks():
    starts = starts_on(corridor(200))
    follow(starts, lambda distance: True, 60)
    far = starts.progress.level
    assert far > 20
    follow(starts, lambda distance: distance < 3, 1_500)
    assert starts.progress.level < far


def test_success_that_is_lost_brings_roll_ins_back():
    starts = starts_on(corridor(20))
    for _ in range(60):
        starts.note(OWN, True)
    assert starts.own_share == 1.0
    for _ in range(60):
        starts.note(OWN, False)
    assert starts.own_share == 0.5


def test_bins_in_which_success_is_in_between_have_most_of_the_nearer_starts():
    starts = starts_on(corridor(100), far_share=0.01, own_share=0.01)
    starts.tally[0] = 50.0
    generator, coin = random.Random(1), random.Random(2)
    told = []
    for _ in range(4_000):
        start = starts.draw(generator.random)
        if start == OWN:
            continue
        distance = starts.distance[start]
        told.append(distance)
        starts.note(start, coin.random() < (0.5 if 20 <= distance < 30 else 1.0))
        starts.tally[0] = 50.0
    told = np.array(told[1_000:])
    assert ((told >= 20) & (told < 30)).mean() > 0.2  # 2 of 15 bins, which would have 0.13 if all weighed the same


def test_the_last_stretch_begins_at_the_own_start():
    starts = starts_on(corridor(50))
    starts.finish()
    assert set(follow(starts, lambda distance: False, 100)) == {starts.farthest}
    starts.finish(False)
    assert starts.own_share == 0.1


def test_without_a_reward_starts_are_spread_and_do_not_move():
    starts = starts_on(corridor(30, np.zeros((30, 2))))
    assert not starts.reward_known
    told = follow(starts, lambda distance: True, 2_000)
    own = np.array(told) == starts.farthest
    assert 0.4 < own.mean() < 0.6
    assert len(set(told)) > 20
    assert starts.progress.level == 1.0
    assert starts.cut_of(0) == np.inf


def test_what_arrives_in_a_group_is_distributed_as_it_is_drawn():
    """Groups of batches draw from the same starts as single episodes, given arrival."""
    mdp = river_swim(8)
    starts = starts_on(mdp)
    starts.tally[0] = starts.farthest
    group = next(group for group in starts.groups() if group.name == "far")
    ends = TabularWorld(mdp, seed=3).walk(group.roll_in, 4_000)
    first, last = starts._far_part()
    wanted = np.zeros(mdp.num_states)
    wanted[starts.states[first:last]] = starts._weight[first:last]
    assert chi_square(np.bincount(ends, minlength=mdp.num_states), wanted / wanted.sum()) > SIGNIFICANCE


# Storing and sharing --------------------------------------------------------------------------------------------------


def test_a_restored_state_goes_on_bit_for_bit():
    mdp = deep_sea(12)
    one, other = starts_on(mdp), starts_on(mdp)
    follow(one, lambda distance: distance < 8, 300)
    other.restore(one.state())
    assert follow(one, lambda distance: distance < 9, 300, seed=5) == follow(
        other, lambda distance: distance < 9, 300, seed=5
    )
    assert one.state() == other.state()
    with pytest.raises(ValueError, match="other counts"):
        starts_on(corridor(300)).restore(one.state())


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda starts: pickle.loads(pickle.dumps(starts))])
def test_copies_are_separate_unless_they_are_shared(clone):
    starts = starts_on(corridor(30))
    other = clone(starts)
    follow(starts, lambda distance: True, 100)
    assert other.progress.episodes == 0
    shared = share_between_processes(starts)
    again = clone(shared)
    follow(again, lambda distance: True, 10)
    assert shared.progress == again.progress
    assert shared.progress.episodes == 110


def test_names_say_where_episodes_begin():
    mdp = corridor(10)
    resets = ResetModel([mdp.uniform_policy()], gamma=0.9, model=counted(mdp))
    assert isinstance(starts_of(resets, "adaptive"), MovingStarts)
    assert starts_of(resets, "mixture") is resets.roll_in
    assert starts_of(resets, "uniform").targets is not None
    chosen = resets.to(4)
    assert starts_of(chosen, "adaptive") is chosen.roll_in
    without = ResetModel([mdp.uniform_policy()], gamma=0.9)
    assert starts_of(without, "adaptive") is without.roll_in
    with pytest.raises(ResetModelError, match="counts"):
        moving_starts(without)
    with pytest.raises(ValueError, match="'adaptive'"):
        starts_of(resets, "adaptiv")


@pytest.mark.parametrize("wrong", [{"far": 0.0}, {"own_solved": 1.5}, {"growth": 0.5}, {"fewest": 0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        StartSettings(**wrong)


# What roll-ins say ----------------------------------------------------------------------------------------------------


def test_a_level_that_is_hardly_ever_reached_is_passed_over():
    starts = starts_on(corridor(40))
    generator = random.Random(0)
    for _ in range(400):
        start = starts.draw(generator.random)
        if start != OWN:
            starts.note_miss(start, 1)
            starts.note_steps(10)
    assert starts.progress.level == starts.farthest


def test_roll_ins_that_miss_take_a_bounded_share_of_all_steps():
    starts = starts_on(corridor(40))
    generator, missed, lived = random.Random(0), 0, 0
    for _ in range(2_000):
        start = starts.draw(generator.random)
        if start != OWN:
            missed += 100
            starts.note_miss(start, 100)
        lived += 50
        starts.note_steps(50)
        starts.note(OWN, False)
    assert 0.15 < missed / (missed + lived) < 0.27


def test_a_roll_in_has_no_more_time_than_an_episode():
    starts = starts_on(corridor(30, slip=0.9))
    assert starts.targets.limits.max() <= 3 * starts.farthest + 20


def test_where_the_plan_itself_often_fails_the_level_grows_when_all_episodes_return_as_much():
    """A ladder that is fallen off in a third of all steps: nobody gets up more often than the plan does."""
    transitions = np.zeros((6, 2, 6))
    for place in range(4):
        transitions[place, 0, place] = 1.0
        transitions[place, 1, place + 1], transitions[place, 1, 5] = 2 / 3, 1 / 3
    transitions[4:, :, 4:] = np.eye(2)[:, None, :]
    rewards = np.zeros((6, 2))
    rewards[3, 1] = 1.0
    mdp = FiniteMDP(transitions, rewards, 0, terminal=np.arange(6) >= 4)
    starts = starts_on(mdp)
    generator, coin = random.Random(1), random.Random(2)
    for _ in range(500):
        start = starts.draw(generator.random)
        left = 4 if start == OWN else 4 - int(starts.states[start])
        starts.tell(start, float(coin.random() < (2 / 3) ** (left - 1)))
    assert starts.progress.level == starts.farthest
    assert starts.own_share > 0.6


def test_episodes_of_a_limited_length_are_expected_to_return_less():
    starts = starts_on(corridor(30, slip=0.5))
    before = starts._own_expected[0]
    starts.limit_episodes(40)
    assert starts._own_expected[0] < 0.2 * before
    assert starts.cut.max() == 40


def test_starts_on_the_way_are_those_that_are_known():
    starts = starts_on(corridor(10))
    assert starts.distance[starts.start_in(7)] == 2.0
    assert starts.start_in(9) == ON_THE_WAY
    before = starts.tally.copy()
    starts.tell(ON_THE_WAY, 1.0)
    assert (starts.tally == before).all()
    assert starts.cut_of(ON_THE_WAY) == np.inf


def test_a_state_of_an_earlier_version_is_read():
    starts = starts_on(corridor(40))
    follow(starts, lambda distance: distance < 9, 300)
    stored = starts.state()["tally"]
    earlier = {"tally": stored[:9] + stored[14:]}
    again = starts_on(corridor(40))
    again.restore(earlier)
    assert again.progress == starts.progress
    assert again.tally[9:14].tolist() == [0.0] * 5


def test_a_batch_from_the_own_start_is_told_as_its_episodes_are():
    together, alone = starts_on(corridor(20)), starts_on(corridor(20))
    won = np.random.default_rng(3).random(40) < 0.6
    own = next(group for group in together.groups() if group.name == "own")
    together.tell_group(own, own.planned * won, 0.0)
    for success in won.tolist():
        alone.note(OWN, success)
    assert together.own_success == pytest.approx(alone.own_success)
    assert together.progress.episodes == alone.progress.episodes == 40
