"""Worlds that take note of what another world shows."""

import numpy as np
import pytest

from curious_explorer import TabularWorld, visit
from curious_explorer.environments import combination_lock
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch
from curious_explorer.worlds.wrappers import RecordingWorld, SeenStates, WorldWrapper


def test_states_seen_by_visits_are_seen():
    """Walks are counted where they are made, which once went past the wrapper that noted their ends."""
    mdp = combination_lock(4)
    world = SeenStates(TabularWorld(mdp, seed=1))
    counts = visit(world, mdp.uniform_policy(), gamma=0.9, count=1_000)
    assert (counts > 0).sum() > 1
    assert world.seen.tolist() == (counts > 0).tolist()


def test_who_changes_walk_sees_every_visit():
    walked = []

    class Metered(WorldWrapper):
        def walk(self, roll_in, count):
            walked.append(count)
            return super().walk(roll_in, count)

    mdp = combination_lock(4)
    plain, metered = TabularWorld(mdp, seed=1), Metered(TabularWorld(mdp, seed=1))
    ours, theirs = (visit(world, mdp.uniform_policy(), gamma=0.9, count=1_000) for world in (metered, plain))
    assert walked == [1_000]
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("wrapper", [WorldWrapper, RecordingWorld, SeenStates])
def test_a_wrapper_changes_nothing(wrapper):
    mdp = combination_lock(3)
    plain, wrapped = TabularWorld(mdp, seed=1), wrapper(TabularWorld(mdp, seed=1))
    roll_in = RollIn.from_start().then(mdp.uniform_policy(), 0.8)
    batch = EpisodeBatch(episodes=20, horizon=9, gamma=0.9, reset=roll_in)
    results = []
    for world in (plain, wrapped):
        assert world.begin(roll_in, max_samples=100) is not None
        got = [visit(world, mdp.uniform_policy(), gamma=0.9, count=99), world.walk(roll_in, 9)]
        got += world.episodes(mdp.uniform_policy(), batch)[:6]
        got += [np.array([world.restart(), *world.step(1)])]
        results.append((np.concatenate([part.ravel() for part in got]).tolist(), world.samples, world.position()))
    assert results[0] == results[1]
    assert plain.identity() == wrapped.identity()


def test_recorded_transitions_are_those_of_episodes():
    mdp = combination_lock(3)
    world = RecordingWorld(TabularWorld(mdp, seed=1))
    for _ in range(3):
        world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=20, horizon=9, gamma=0.9))
    taken = world.take()
    assert taken.times.sum() == world.samples
    assert len(set(zip(taken.state, taken.action, taken.next_state, strict=True))) == len(taken.state)
    assert len(world.take().state) == 0
