"""Ways kept as actions: they lead where counts cannot, are found out where a world does not repeat, and are stored."""

import numpy as np
import pytest

from curious_explorer import Exploration, Frontier
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers import frontier
from curious_explorer.explorers.stored_ways import ARRAYS, FEWEST_RETURNS, NOWHERE, STEPS, StoredWays
from curious_explorer.worlds.world import Step, World

STAY, GO = range(2)
LENGTH, BEATS = 10, 4


class Beat(World):
    """A row of places; going on works on every fourth beat, which nobody sees, and two beats later ends in a pit."""

    num_states, num_actions = LENGTH + 1, 2

    def __init__(self, seed=0, repeats=True, random=False):
        self.seed, self.repeats, self.samples = seed, repeats, 0
        self._random = np.random.default_rng(seed) if random else None
        self._place = self._beat = 0

    def identity(self):
        return {"kind": "beat", "num_states": self.num_states, "num_actions": 2, "seed": self.seed}

    def restart(self):
        self._place = 0
        self._beat = 0 if self._random is None else int(self._random.integers(BEATS))
        return 0

    def step(self, action):
        self.samples += 1
        self._beat += 1
        if action == STAY or self._beat % 2:
            return Step(self._place, 0.0, False)
        if self._beat % BEATS:
            return Step(LENGTH, 0.0, True)
        self._place += 1
        there = self._place == LENGTH - 1
        return Step(self._place, float(there), there)

    def position(self):
        return {"samples": self.samples}

    def restore(self, position):
        self.samples = position["samples"]


def walked(world, way):
    """What a way returns."""
    world.restart()
    return [world.step(action).reward for action in way]


@pytest.mark.parametrize("seed", range(3))
def test_stored_ways_lead_where_counts_of_cells_that_mix_states_do_not(seed):
    run = Frontier().begin(Beat(seed))
    run.advance(30_000)
    assert run.first_reward is not None
    assert run.ways.best.returned == 1.0
    assert run.ways.best.samples == run.first_reward
    assert walked(Beat(), run.ways.best_way())[-1] == 1.0
    assert run.ways.failed == 0 < run.ways.arrived
    assert run.model.visits().sum() >= run.taken == 30_000  # every step of a way is counted

    by_counts = Frontier().begin(Beat(seed, repeats=False))
    by_counts.advance(30_000)
    assert by_counts.ways is None
    assert by_counts.first_reward is None


def test_they_are_given_up_where_the_world_does_not_repeat():
    run = Frontier().begin(Beat(random=True))
    run.advance(5_000)
    assert run.ways.given_up
    assert run.ways.arrived + run.ways.failed >= FEWEST_RETURNS
    episodes = run.ways.episodes
    run.advance(8_000)
    assert run.ways.episodes == episodes
    assert run.taken == 8_000


def test_a_run_that_is_resumed_gives_what_an_uninterrupted_one_gives(tmp_path, monkeypatch):
    monkeypatch.setattr(frontier, "SAVE_EVERY", 1_000)
    whole = Frontier().explore(Beat(), gamma=0.9, samples=6_000, checkpoint=tmp_path / "whole")

    class KilledError(Exception):
        pass

    def kill(samples, states, first_reward):
        if samples >= 3_500:
            raise KilledError

    with pytest.raises(KilledError):
        Frontier().explore(Beat(), gamma=0.9, samples=6_000, checkpoint=tmp_path / "two", progress=kill)
    resumed = Frontier().explore(Beat(), gamma=0.9, samples=6_000, checkpoint=tmp_path / "two")
    assert resumed.ways.best == whole.ways.best
    assert resumed.ways.best_way() == whole.ways.best_way()
    assert resumed.first_reward == whole.first_reward
    found = Exploration.load(tmp_path / "two").ways
    assert found.best_way() == whole.ways.best_way()
    for name, array in whole.ways.arrays().items():
        assert np.array_equal(found.arrays()[name], array), name


def test_ways_survive_that_states_change():
    ways, world = StoredWays(2, 0), Beat()
    for _ in range(50):
        episode(ways, world)
    known = len(ways)
    ways.forget_states()
    assert len(ways) == known
    assert (ways.arrays()["way_states"] == NOWHERE).all()
    for _ in range(200):
        episode(ways, world)
    assert ways.failed == 0
    states = ways.arrays()["way_states"]
    assert set(states.tolist()) - {NOWHERE} == set(range(len(np.unique(states)) - (NOWHERE in states)))
    assert (states == NOWHERE).sum() == 0  # each was gone once more, and its place has a name again


def episode(ways, world):
    """One episode; the steps that it took."""
    ways.begin(world.restart(), returning=True)
    for step in range(1, 10 * STEPS):
        action = ways.action()
        state, reward, terminated, _, _ = world.step(action)
        if not ways.took(action, state, reward, terminated, world.samples):
            return step
    raise AssertionError("it does not end")


def test_numbers_out_of_range_are_refused():
    ways, world = StoredWays(2, 0), Beat()
    for _ in range(20):
        episode(ways, world)
    arrays, numbers = ways.arrays(), ways.numbers()
    assert StoredWays.from_stored(arrays, numbers, 2, 0).arrays()["way_ends"].tolist() == arrays["way_ends"].tolist()
    for name in ARRAYS:
        for wrong in (-2, 1_000_000, np.nan):
            if (name == "way_returns") == np.isfinite(wrong) or (name == "way_times" and wrong > 0):
                continue
            if name == "way_states" and wrong > 0:
                continue
            damaged = {**arrays, name: arrays[name].copy()}
            damaged[name][-1] = wrong
            with pytest.raises(ValueError, match="range"):
                StoredWays.from_stored(damaged, numbers, 2, 0)
    with pytest.raises(ValueError, match="range"):
        StoredWays.from_stored(arrays, {**numbers, "best": [1.0, 1_000_000, 0]}, 2, 0)
    with pytest.raises(ValueError, match="shape"):
        StoredWays.from_stored({**arrays, "way_ends": arrays["way_ends"][:-1]}, numbers, 2, 0)


def test_a_damaged_file_is_refused_by_name(tmp_path, monkeypatch):
    real = StoredWays.arrays
    monkeypatch.setattr(StoredWays, "arrays", lambda self: real(self) | {"way_parents": real(self)["way_actions"] + 7})
    Frontier().explore(Beat(), gamma=0.9, samples=2_000, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="out of range"):
        Exploration.load(tmp_path)


@pytest.mark.parametrize("best", [None, [1.0, 2], ["high", 0, 0], [1.0, -2, 0]])
def test_a_damaged_header_is_refused_by_name(tmp_path, monkeypatch, best):
    real = StoredWays.numbers
    monkeypatch.setattr(StoredWays, "numbers", lambda self: real(self) | {"best": best})
    Frontier().explore(Beat(), gamma=0.9, samples=1_500, checkpoint=tmp_path)
    with pytest.raises(CheckpointError):
        Exploration.load(tmp_path)
