"""Cells that are made coarser or finer on the way: counts follow, samples go on, and runs resume."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from curious_explorer import Frontier, GymWorld
from curious_explorer.explorers import frontier
from curious_explorer.gym.cell_refits import refitted
from curious_explorer.gym.coded_cells import JointCells, NumberCells, SymbolCells
from curious_explorer.gym.feature_cells import FeatureCells
from curious_explorer.gym.observation_reader import Read
from curious_explorer.gym.picture_cells import SIZES, PictureCells
from curious_explorer.models.growing_model import GrowingModel


class Drift(gymnasium.Env):
    """A place in five dimensions that is pushed along one of them, with a little noise; it pays far away if at all."""

    def __init__(self, pays=False):
        self.observation_space = spaces.Box(-np.inf, np.inf, (5,))
        self.action_space = spaces.Discrete(6)
        self._pays, self._at = pays, np.zeros(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at, self._steps = np.zeros(5), 0
        return self._at.copy(), {}

    def step(self, action):
        if action < 5:
            self._at[action] += 1.0
        self._at = 0.9 * self._at + 0.05 * self.np_random.normal(size=5)
        self._steps += 1
        return self._at.copy(), float(self._pays and self._at[0] > 8.0), False, self._steps >= 50, {}


class Letters(gymnasium.Env):
    """Twelve places in pictures whose differences are lost where pictures are made very small."""

    def __init__(self):
        self.observation_space = spaces.Box(0, 255, (40, 40, 3), np.uint8)
        self.action_space = spaces.Discrete(2)
        self._place = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place = 0
        return self._see(), {}

    def _see(self):
        seen = np.zeros((40, 40, 3), dtype=np.uint8)
        seen[3 * self._place, 5] = 255
        return seen

    def step(self, action):
        right = action == self._place % 2  # so that repeating one action leads nowhere
        self._place = int(np.clip(self._place + (1 if right else -1), 0, 11))
        return self._see(), float(self._place == 11), False, False, {}


def as_if_chosen(make, cells, seed):
    """A world of cells that it may change, though they were given."""
    world = GymWorld(make, seed=seed, cells=cells, time_limits=True)
    world._chosen = True
    return world


def test_counts_follow_states_that_are_put_together():
    generator = np.random.default_rng(3)
    fine, coarse = GrowingModel(3), GrowingModel(3)
    now = generator.integers(6, size=20)
    at = fine.meet(0), coarse.meet(int(now[0]))
    fine.start(at[0])
    coarse.start(at[1])
    for _ in range(2_000):
        action, state, reward = int(generator.integers(3)), int(generator.integers(20)), float(generator.random())
        following = fine.meet(state), coarse.meet(int(now[state]))
        ends = generator.random() < 0.1
        for model, here, there in zip((fine, coarse), at, following, strict=True):
            model.add(here, action, ~there if ends else there, reward)
        at = following
    merged = fine.merged(now)
    assert merged.states.tolist() == coarse.states.tolist()
    assert merged.starts == coarse.starts
    assert merged.repeats == coarse.repeats
    first, second = (
        sorted(zip(*model.outcomes()[:4], model.ended(), model.outcomes().reward.round(9), strict=True))
        for model in (merged, coarse)
    )
    assert first == second


@pytest.mark.parametrize(
    "cells",
    [
        NumberCells([0.1] * 5),
        FeatureCells(np.zeros(5), np.eye(5), 0.2),
        JointCells({"a": NumberCells([0.1], [Read((), (0,))]), "b": NumberCells([0.2], [Read((), (3,))])}),
    ],
)
def test_coarser_cells_put_whole_cells_together(cells):
    points = np.random.default_rng(1).normal(size=(300, 5))
    cells = cells.recalling([], growing=True)
    fine = [cells.index(point, None) for point in points]
    coarser, now = refitted(cells, len(set(fine)), 1_000, 2, exhausted=False, rewarded=True)
    assert len(coarser.discovered()) <= 125 < len(set(fine))
    same = np.mean([coarser.index(point, None) == now[cell] for point, cell in zip(points, fine, strict=True)])
    assert same == 1.0 if not isinstance(cells, FeatureCells) else same > 0.6  # balls do not nest


def test_cells_that_will_do_stay_what_they_are():
    cells = NumberCells([0.5])
    for place in range(100):
        cells.index(np.array([place * 1.0]), None)
    assert refitted(cells, 100, 3_000, 2, exhausted=False, rewarded=False) is None
    assert refitted(cells, 100, 30_000, 2, exhausted=False, rewarded=True) is None
    finer, now = refitted(cells, 100, 30_000, 2, exhausted=False, rewarded=False)
    assert finer.description()["widths"] == [pytest.approx(1 / 3)]
    assert len(now) == 0
    assert refitted(SymbolCells(), 900, 1_000, 2, exhausted=True, rewarded=False) is None


def test_small_pictures_are_kept_in_a_band_of_what_was_met_of_late():
    cells, told = PictureCells(13, 8), {"exhausted": False, "rewarded": False}
    assert refitted(cells, 100, 20_000, 18, **told, lately=(60, 4_000))[0].rows == 16
    assert refitted(cells, 100, 20_000, 18, **told, lately=(70, 4_000)) is None
    assert refitted(cells, 100, 200_000, 18, **told, lately=(70, 4_000)) is None  # where others would be too coarse
    assert refitted(cells, 100, 17_000, 18, **told, lately=(60, 4_000)) is None  # not every pair was tried ten times
    assert refitted(cells, 100, 20_000, 18, **told, lately=(3, 400)) is None
    assert refitted(cells, 100, 20_000, 18, exhausted=False, rewarded=True, lately=(60, 4_000)) is None
    met = cells.recalling([str(place) for place in range(600)], growing=True)
    assert refitted(met, 600, 2_000, 18, **told, lately=(600, 2_000))[0].rows == 11


def test_too_fine_a_grid_is_made_coarser_on_the_way_and_every_step_counted():
    world = as_if_chosen(Drift, NumberCells([0.3] * 5), 1)
    looked, before = world.samples, world.discretisation.cells.description()["widths"]
    found = Frontier().explore(world, gamma=0.9, samples=5_000)
    after = world.discretisation.cells.description()["widths"]
    assert np.prod(after) > np.prod(before)
    assert world.samples == looked + 5_000
    assert int(found.model.tries.sum()) == 5_000  # nothing was forgotten
    assert found.reset_model.num_states == world.num_states
    found.reset_model.check_world(world)


def test_cells_that_hide_the_way_are_made_finer_when_nothing_is_left():
    coarse = PictureCells(*SIZES[-1])
    world = GymWorld(Letters, seed=1, cells=coarse)
    assert Frontier().explore(world, gamma=0.9, samples=4_000).first_reward is None
    world = as_if_chosen(Letters, coarse, 1)
    found = Frontier().explore(world, gamma=0.9, samples=4_000)
    assert found.first_reward is not None
    assert world.discretisation.cells.description()["rows"] is None or len(found.model) == 12


def test_a_run_whose_cells_have_changed_goes_on_as_if_it_had_not_been_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(frontier, "SAVE_EVERY", 1_500)
    fine = NumberCells([0.3] * 5)
    whole = Frontier().explore(as_if_chosen(Drift, fine, 2), gamma=0.9, samples=4_000, checkpoint=tmp_path / "whole")

    class Mortal(Drift):
        taken = 0

        def step(self, action):
            Mortal.taken += 1
            if Mortal.taken == 3_700:
                raise KeyboardInterrupt
            return super().step(action)

    Mortal.__qualname__ = Drift.__qualname__
    with pytest.raises(KeyboardInterrupt):
        Frontier().explore(as_if_chosen(Mortal, fine, 2), gamma=0.9, samples=4_000, checkpoint=tmp_path / "part")
    again = Frontier().explore(as_if_chosen(Drift, fine, 2), gamma=0.9, samples=4_000, checkpoint=tmp_path / "part")
    assert again.model.states.tolist() == whole.model.states.tolist()
    assert again.model.tries.tolist() == whole.model.tries.tolist()
    loaded = type(again).load(tmp_path / "part")
    assert loaded.reset_model.discretisation.description == again.reset_model.discretisation.description
