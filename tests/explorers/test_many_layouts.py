"""Exploring many layouts: apart, within one number of samples, the same wherever it runs."""

import functools

import numpy as np
import pytest
from layouts_helpers import Signposts

from curious_explorer import Frontier, GymWorld, HashedCells, TabularWorld, explore
from curious_explorer.environments import river_swim
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.studies.executors import Processes

QUICK = ManyLayouts(first_share=20, after=20, at_once=2)


def world_of(layouts, **settings):
    return GymWorld(functools.partial(Signposts, **settings), cells=HashedCells(1_000), layouts=layouts)


def test_every_layout_is_explored_apart_and_all_steps_are_counted():
    world = world_of(range(6))
    exploration = explore(world, QUICK, gamma=0.9, samples=2_000)
    assert set(exploration.layouts) == set(range(6))
    assert exploration.summary.found == 6
    assert exploration.samples == world.samples == sum(each.samples for each in exploration.layouts.values())
    for layout, found in exploration.layouts.items():
        env = Signposts()
        env.reset(seed=layout)
        for view, likely in zip(found.labels.observations, found.labels.probabilities, strict=True):
            assert likely.argmax() == env.signs[view[0]] == view[1]
            assert likely.max() == 1.0
        inside = exploration.in_layout(layout)
        assert inside.first_reward == found.first_reward
        assert len(inside.model) == len(found.counts.model)


def test_a_world_with_layouts_is_explored_so_by_default():
    exploration = explore(world_of(range(3)), gamma=0.9, samples=300)
    assert exploration.summary.layouts == 3
    assert "3 of 3 layouts paid" in exploration.report()
    with pytest.raises(ValueError, match="in_layout"):
        _ = exploration.reset_model
    with pytest.raises(ValueError, match="expected one that was explored: 0, 1, 2"):
        exploration.in_layout(7)


def test_samples_go_to_layouts_that_are_open_and_never_beyond_what_was_given():
    exploration = explore(world_of(range(4), length=30), QUICK, gamma=0.9, samples=500)
    assert exploration.samples <= 500
    short = explore(world_of(range(4)), QUICK, gamma=0.9, samples=50)
    assert short.samples <= 50
    assert short.summary.set_aside + short.summary.found == 4
    assert "not within its share" in short.report()


def test_a_layout_without_a_reward_within_reach_is_set_aside():
    world = GymWorld(functools.partial(Signposts, length=3), cells=HashedCells(100), actions=[0], layouts=range(30))
    exploration = explore(world, QUICK, gamma=0.9, samples=5_000)
    assert 0 < exploration.summary.set_aside < 30
    assert all(each.complete for each in exploration.set_aside)
    assert "nothing is left within reach" in exploration.report()
    assert exploration.samples < 5_000


def test_a_layout_in_which_the_environment_raises_is_named_and_the_rest_goes_on():
    exploration = explore(world_of(range(9), broken=(1, 7)), QUICK, gamma=0.9, samples=2_000)
    assert [each.layout for each in exploration.failed] == [1, 7]
    assert exploration.summary.found == 7
    assert "no map of 7" in exploration.report()


def test_restarts_that_do_not_repeat_are_noticed_and_what_the_agent_sees_is_explored():
    exploration = explore(world_of(range(8), deaf=True), QUICK, gamma=0.9, samples=3_000)
    assert not exploration.repeatable
    assert "did not agree" in exploration.report()
    labels = exploration.labels[0]
    right = [likely.argmax() == view[1] for view, likely in zip(labels.observations, labels.probabilities, strict=True)]
    assert np.mean(right) > 0.8


class Reader:
    """A teacher that has understood signposts, and counts its lessons."""

    lessons = 0

    def __call__(self, labels):
        Reader.lessons += 1
        return self

    def probabilities(self, observations):
        return np.eye(3)[[int(view[1]) for view in observations]]


def test_what_was_learned_in_some_layouts_saves_samples_in_the_next():
    taught = ManyLayouts(first_share=20, after=0, at_once=2, teacher=Reader())
    with_lessons = explore(world_of(range(20), length=12), taught, gamma=0.9, samples=50_000)
    assert Reader.lessons >= 3
    without = explore(
        world_of(range(20), length=12), ManyLayouts(first_share=20, after=0, at_once=2), gamma=0.9, samples=50_000
    )
    later = [each.first_reward for each in with_lessons.found][-10:]
    assert max(later) == 11  # straight there
    assert np.mean([each.first_reward for each in without.found][-10:]) > 30


def test_what_is_known_beforehand_helps_in_the_first_layouts():
    knowing = ManyLayouts(first_share=20, after=0, at_once=2, first_guess=Reader()([]))
    found = explore(world_of(range(4), length=12), knowing, gamma=0.9, samples=5_000).found
    assert [each.first_reward for each in found] == [11] * 4


class Whole(HashedCells):
    """Cells that know all signs, so that each layout has its own."""

    def key(self, observation, env):
        return (env.unwrapped.place, *map(int, env.unwrapped.signs))


def test_where_nothing_repeats_what_was_learned_carries_over_from_turn_to_turn():
    known = []

    def teacher(labels):
        known.append(sum(len(each.observations) for each in labels))
        return Reader()

    def explored(layouts, samples):
        make = functools.partial(Signposts, length=6, deaf=True)
        world = GymWorld(make, cells=Whole(10_000), layouts=range(layouts))
        settings = ManyLayouts(first_share=500, after=30, follow=2, longest=15, teacher=teacher)
        exploration = settings.explore(world, gamma=0.9, samples=samples)
        assert not exploration.repeatable
        assert exploration.samples == world.samples <= samples
        return exploration.layouts[None]

    found = explored(12, 20_000)
    assert found.followed == 2 * 8  # 12 turns, of which the guess was there in the last 8
    assert len(known) == 3  # after 4, 6 and 9 turns
    assert 0 < known[0] < known[1] < known[2] < len(found.labels.observations)
    assert found.samples >= explored(1, 20_000).samples + 11 * 30  # every turn took what comes after a reward
    assert explored(12, 200).samples <= 200


class Counting:
    """In this process, with how many layouts were explored side by side each time."""

    def __init__(self):
        self.many = []

    def run(self, function, jobs):
        jobs = list(jobs)
        self.many.append(len(jobs))
        return map(function, jobs)


def test_as_many_as_are_missing_for_the_next_lesson_are_explored_side_by_side():
    jobs = Counting()
    settings = ManyLayouts(first_share=200, after=0, follow=0, at_once=2, teacher=Reader(), jobs=jobs)
    exploration = explore(world_of(range(24), length=4), settings, gamma=0.9, samples=50_000)
    assert exploration.summary.found == 24
    assert jobs.many == [2, 2, 2, 3, 5, 7, 3]  # lessons after 4, 6, 9, 14 and 21


@pytest.mark.slow
def test_it_does_not_matter_where_layouts_are_explored():
    settings = {"first_share": 20, "after": 20, "at_once": 4}
    here = explore(world_of(range(6)), ManyLayouts(**settings), gamma=0.9, samples=2_000)
    there = explore(world_of(range(6)), ManyLayouts(**settings, jobs=Processes(workers=2)), gamma=0.9, samples=2_000)
    assert here.as_plain_data() == there.as_plain_data()
    for one, other in zip(here.labels, there.labels, strict=True):
        assert np.array_equal(one.observations, other.observations)
        assert np.array_equal(one.probabilities, other.probabilities)


def test_what_is_refused():
    with pytest.raises(ValueError, match="more than once"):
        world_of([1, 2, 1])
    with pytest.raises(ValueError, match="give one of the two"):
        GymWorld(Signposts, cells=HashedCells(10), layout=1, layouts=range(2))
    with pytest.raises(ValueError, match="0 layouts"):
        world_of([])
    with pytest.raises(ValueError, match="has no layouts"):
        explore(TabularWorld(river_swim(5)), ManyLayouts(), gamma=0.9, samples=100)
    with pytest.raises(ValueError, match="first_share"):
        ManyLayouts(first_share=0)
    with pytest.raises(ValueError, match="Frontier"):
        ManyLayouts(explorer=ManyLayouts())
    assert isinstance(ManyLayouts().explorer, Frontier)
