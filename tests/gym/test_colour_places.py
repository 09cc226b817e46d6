"""Cells of pictures by where colours are: what they read, and when they are chosen."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from curious_explorer import Frontier, GymWorld
from curious_explorer.errors import CellError
from curious_explorer.gym.cell_descriptions import cells_from_description
from curious_explorer.gym.colour_places import ColourPlaces, PlaceCells, codes_of
from curious_explorer.gym.picture_cells import PictureCells

SIZE, STEP = 48, 8
GREY, WALL, BLOB, AGENT = 10, 70, 110, 250


class Crowded(gymnasium.Env):
    """A small agent in a room with a wall; pays behind it. Large blobs drift over the picture, if there are any."""

    observation_space = spaces.Box(0, 255, (1, SIZE, SIZE), np.uint8)
    action_space = spaces.Discrete(4)

    def __init__(self, blobs=4):
        self._blobs = blobs

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at, self._time = [0, 0], 0
        self._places = self.np_random.uniform(0, SIZE, (self._blobs, 2))
        self._speeds = self.np_random.uniform(-2, 2, (self._blobs, 2))
        return self._seen(), {}

    def _seen(self):
        frame = np.full((SIZE, SIZE), GREY, np.uint8)
        for row, column in self._places.astype(int):
            frame[max(0, row - 7) : row + 7, max(0, column - 7) : column + 7] = BLOB
        frame[3 * STEP : 4 * STEP, : 4 * STEP] = WALL
        row, column = (STEP * place for place in self._at)
        frame[row + 2 : row + 6, column + 2 : column + 6] = AGENT
        return frame[None]

    def step(self, action):
        self._places = (self._places + self._speeds) % SIZE
        step = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)]
        place = [min(max(at + by, 0), 5) for at, by in zip(self._at, step, strict=True)]
        if place[0] != 3 or place[1] > 3:
            self._at = place
        done = self._at == [5, 0]
        return self._seen(), float(done), done, False, {}


def test_the_numbers_are_shares_and_middles():
    picture = np.zeros((10, 20, 3), np.uint8)
    picture[2:4, 10:15] = (255, 0, 0)
    codes = codes_of(picture, (), 255.0)
    red, black = int(codes[2, 10]), int(codes[0, 0])
    places = ColourPlaces([red, black, red + 1])
    share, row, column, *others = places(picture)
    assert (share, row, column) == pytest.approx((10 / 200, 3 / 10, 12.5 / 20))
    assert others[0] == pytest.approx(190 / 200)
    assert others[3:] == [0.0, -1.0, -1.0]
    assert ColourPlaces([red, black], kept=[1])(picture) == [row]
    assert ColourPlaces.from_description(places.description())(picture) == places(picture)


def test_colours_first_and_noise_are_as_in_other_pictures():
    picture = np.random.default_rng(0).integers(0, 256, (3, 12, 14), dtype=np.uint8)
    np.testing.assert_array_equal(codes_of(picture, (), 255.0), codes_of(np.moveaxis(picture, 0, -1), (), 255.0))
    noisy = picture.copy()
    noisy.reshape(-1)[:7] += 99
    masked = tuple(range(7))
    np.testing.assert_array_equal(codes_of(picture, masked, 255.0), codes_of(noisy, masked, 255.0))
    assert codes_of(np.zeros((210, 160, 3), np.uint8), (), 255.0).shape == (70, 54)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_where_most_that_moves_is_beside_the_point_cells_are_places(seed):
    world = GymWorld(lambda: gymnasium.wrappers.TimeLimit(Crowded(), 60), seed=seed, time_limits=True)
    cells = world.discretisation.cells
    assert isinstance(cells, PlaceCells)
    assert {cells.places.colours[place // 3] for place in cells.places.kept} == {int(AGENT * 8 / 255)}
    assert "moves by itself" in world.describe()
    found = Frontier(stop_at_reward=True).explore(world, gamma=0.99, samples=6_000)
    assert found.first_reward is not None


def test_where_the_agent_is_what_moves_pictures_are_compared():
    world = GymWorld(lambda: gymnasium.wrappers.TimeLimit(Crowded(blobs=0), 60), seed=0)
    assert isinstance(world.discretisation.cells, PictureCells)


def test_cells_are_stored_made_coarser_and_refused_elsewhere():
    cells = PlaceCells([0.1, 0.1], ColourPlaces([7, 3], kept=[1, 2]))
    env = Crowded()
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(100):
        observation, *_ = env.step(env.action_space.sample())
        cells.index(observation, env)
    again = cells_from_description(cells.description()).recalling(cells.discovered(), growing=False)
    assert again.index(observation, env) == cells.index(observation, env)
    coarser, keys = cells.coarser()
    assert isinstance(coarser, PlaceCells)
    assert len(set(keys)) < len(cells.discovered()) == len(keys)
    assert isinstance(cells.finer(), PlaceCells)
    with pytest.raises(CellError, match="reads screen"):
        PlaceCells([0.1], ColourPlaces([7], kept=[1], path=("screen",))).check_space(env.observation_space)
