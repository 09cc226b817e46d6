"""Cells chosen by a look at an environment: for every space, without noise and clocks, and stored like any others."""

import functools
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from layouts_helpers import Signposts

from benchmarks.fuzz_files import LOOK
from curious_explorer import GymWorld, explore
from curious_explorer.errors import CellError, EnvironmentFailureError
from curious_explorer.gym.automatic_cells import steps_to_hold
from curious_explorer.gym.cell_descriptions import cells_from_description


class Plain(gymnasium.Env):
    """A walk on nine places that is seen as something in a space; action 1 goes on, 0 goes back."""

    def __init__(self, space, see, actions=None):
        self.observation_space = space
        self.action_space = actions or spaces.Discrete(2)
        self._see = see
        self.place = self.time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.time = 0
        return self._see(self), {}

    def step(self, action):
        self.place = int(np.clip(self.place + (1 if np.ravel(action)[0] > 0 else -1), 0, 8))
        self.time += 1
        return self._see(self), float(self.place == 8), False, self.time >= 60, {}


def picture(env, size=16):
    seen = np.zeros((size, size, 3), dtype=np.uint8)
    seen[4:6, env.place : env.place + 2] = 255
    return seen


def noisy(env):
    seen = np.zeros(4)
    seen[0], seen[2] = env.place, env.np_random.random()
    seen[1], seen[3] = -env.place / 3, env.time
    return seen


def noisy_picture(env):
    seen = picture(env)
    seen[12, 12] = env.np_random.integers(256, size=3)
    return seen


def far(shape):
    return spaces.Box(-np.inf, np.inf, shape)


GRAPH = spaces.Graph(spaces.Box(0, 9, (1,)), None)
SPACES = {
    "discrete": (spaces.Discrete(9), lambda env: env.place),
    "multi-discrete": (spaces.MultiDiscrete([9, 2]), lambda env: np.array([env.place, env.place % 2])),
    "multi-binary": (spaces.MultiBinary(9), lambda env: np.eye(9, dtype=np.int8)[env.place]),
    "box": (spaces.Box(0.0, 8.0, (1,)), lambda env: np.array([env.place], dtype=np.float32)),
    "number": (far(()), lambda env: np.array(env.place / 7.0)),
    "unbounded": (far((3,)), lambda env: np.array([env.place, -env.place / 3, 0.5])),
    "infinite": (far((2,)), lambda env: np.array([env.place / 7, np.inf if env.place > 4 else -np.inf])),
    "many numbers": (far((30,)), lambda env: np.sin(env.place / 5 + np.arange(30))),
    "matrix": (far((2, 2)), lambda env: np.full((2, 2), env.place / 3)),
    "picture": (spaces.Box(0, 255, (16, 16, 3), np.uint8), picture),
    "grey": (spaces.Box(0, 255, (16, 16), np.uint8), lambda env: picture(env)[..., 0]),
    "bytes": (spaces.Box(0, 255, (7,), np.uint8), lambda env: np.full(7, env.place, dtype=np.uint8)),
    "text": (spaces.Text(9), lambda env: "x" * (env.place + 1)),
    "graph": (GRAPH, lambda env: spaces.GraphInstance(np.full((1 + env.place, 1), 1.0), None, None)),
    "sequence": (spaces.Sequence(spaces.Discrete(9)), lambda env: (1,) * env.place),
    "one of": (spaces.OneOf([spaces.Discrete(9), spaces.Box(0, 9, (1,))]), lambda env: (0, env.place)),
    "tuple": (spaces.Tuple([spaces.Discrete(9), spaces.Discrete(2)]), lambda env: (env.place, env.place % 2)),
    "dict": (
        spaces.Dict(where=spaces.Box(0.0, 1.0, (2,)), door=spaces.Discrete(2), mission=spaces.Text(9), view=far((1,))),
        lambda env: {
            "where": np.array([env.place / 8, 0.5], dtype=np.float32),
            "door": int(env.place > 3),
            "mission": "go",
            "view": np.array([env.place / 3]),
        },
    ),
    "dict of pictures": (
        spaces.Dict(eye=spaces.Box(0, 255, (16, 16, 3), np.uint8), inner=spaces.Dict(time=far((1,)))),
        lambda env: {"eye": picture(env), "inner": {"time": np.array([float(env.time)])}},
    ),
    "noisy": (far((4,)), noisy),
    "noisy picture": (spaces.Box(0, 255, (16, 16, 3), np.uint8), noisy_picture),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_space_has_cells_that_tell_the_places_apart(name):
    world = GymWorld(lambda: Plain(*SPACES[name]), seed=1)
    looked = world.samples
    assert looked <= 1_400
    exploration = explore(world, gamma=0.9, samples=2_000)
    assert exploration.first_reward is not None
    assert 9 <= len(exploration.model) <= 60  # as good as all places, no noise and no clock
    assert world.samples == looked + exploration.samples
    assert world.describe().startswith("Cells: ")


@pytest.mark.parametrize("name", SPACES)
def test_cells_are_stored_and_come_back(name):
    world = GymWorld(lambda: Plain(*SPACES[name]), seed=1)
    exploration = explore(world, gamma=0.9, samples=300)
    cells = world.discretisation.cells
    again = cells_from_description(cells.description()).recalling(cells.discovered(), growing=False)
    env = Plain(*SPACES[name])
    env.reset(seed=3)
    for _ in range(60):
        seen, *_ = env.step(int(env.np_random.integers(2)))
        assert again.index(seen, env) == cells.recalling(cells.discovered(), growing=False).index(seen, env)
    assert exploration.reset_model.num_states == world.num_states


def test_noise_and_clocks_are_named():
    world = GymWorld(lambda: Plain(*SPACES["noisy"]), seed=1)
    assert "observation: 1 of 4 elements (2), other values" in world.describe()
    assert "observation: 1 of 4 elements (3), up, or down" in world.describe()
    assert len(world.discretisation.cells.description()["widths"]) == 2


def test_the_same_seed_makes_the_same_cells():
    first, second = (GymWorld(lambda: Plain(*SPACES["noisy"]), seed=7) for _ in range(2))
    assert first.identity() == second.identity()
    assert first.samples == second.samples > 0


def test_a_minigrid_is_seen_whole_and_its_changing_layouts_are_named():
    pytest.importorskip("minigrid", reason="the extra gym is not installed")
    world = GymWorld("MiniGrid-DoorKey-5x5-v0", seed=0)
    assert world.samples == 0
    assert "layouts=" in world.describe()
    one = GymWorld("MiniGrid-DoorKey-5x5-v0", seed=0, layout=0)
    assert "layouts=" not in one.describe()
    assert "layouts=" not in GymWorld("MiniGrid-Empty-5x5-v0", seed=0).describe()
    assert explore(one, gamma=0.99, samples=3_000).first_reward is not None


def test_observations_that_all_differ_are_noticed():
    dice = spaces.Sequence(spaces.Discrete(1_000))
    world = GymWorld(lambda: Plain(dice, lambda env: tuple(env.np_random.integers(1_000, size=4).tolist())), seed=0)
    assert "Nearly every observation differs" in world.describe()


def test_nothing_but_noise_is_refused_by_name():
    with pytest.raises(CellError, match=r"1 of 2 elements|all.*FunctionCells"):
        GymWorld(lambda: Plain(far((2,)), lambda env: env.np_random.normal(size=2)), seed=0)


class StuckSignposts(Signposts):
    """Raises at the first step in layouts with an even seed."""

    def reset(self, *, seed=None, options=None):
        self.stuck = seed is None or seed % 2 == 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        if self.stuck:
            raise RuntimeError("stuck")
        return super().step(action)


def test_layouts_in_which_the_environment_raises_are_passed_over_in_the_first_look():
    world = GymWorld(functools.partial(Signposts, broken=(2, 3, 5)), layouts=range(8))
    assert 0 < world.samples <= 2_000
    assert GymWorld(StuckSignposts, layouts=range(8)).samples > 0
    for broken in (Signposts(broken=range(8)), StuckSignposts()):
        with pytest.raises(EnvironmentFailureError, match=r"no map|stuck"):
            GymWorld(broken, layouts=range(0, 8, 2))
    with pytest.raises(EnvironmentFailureError, match="no map of 3"):
        GymWorld(Signposts(broken=(3,)), layout=3)


def test_the_first_look_at_many_layouts_sees_no_others():
    seen = []

    class Watched(Signposts):
        def reset(self, *, seed=None, options=None):
            seen.append(seed)
            return super().reset(seed=seed, options=options)

    GymWorld(Watched, layouts=(11, 12, 13))
    assert set(seen) == {11, 12, 13}


@pytest.mark.parametrize(
    ("shape", "dtype"), [((1, 48, 48), np.uint8), ((4, 40, 48), np.uint8), ((3, 32, 32), np.float32)]
)
def test_pictures_with_their_colours_first_are_pictures(shape, dtype):
    from curious_explorer.gym.automatic_cells import _is_picture
    from curious_explorer.gym.picture_cells import PictureCells

    most = 255 if dtype == np.uint8 else 1.0
    space = spaces.Box(0, most, shape, dtype)
    assert _is_picture(space)
    picture = space.sample()
    cells = PictureCells(8, 8, most=most)
    np.testing.assert_array_equal(cells.small(picture), cells.small(np.moveaxis(picture, 0, -1)))
    assert cells.small(picture).shape == (8, round(8 * shape[2] / shape[1]))


def test_parts_of_tuples_are_named_as_parts():
    from curious_explorer.gym.coded_cells import SymbolCells
    from curious_explorer.gym.observation_reader import Read

    cells = SymbolCells([Read((0,)), Read(("bag", 1), (2,))])
    assert cells.describe() == "one cell for each distinct content of part 0, bag/1[2]"


def test_actions_are_held_at_least_so_long_where_single_steps_seldom_change_the_cell():
    seldom, often = [place // 4 for place in range(400)], list(range(400))  # every fourth step, every step
    actions = [0] * 399 + [-1]
    assert steps_to_hold(seldom, actions) == 1
    assert steps_to_hold(seldom, actions, 8) == 8
    assert steps_to_hold(often, actions, 8) == 1


@pytest.mark.parametrize(
    ("longest", "hold"), [(100, 1), (200, 1), (250, 2), (500, 4), (1_000, 8), (1_500, 8), (9_000, 16)]
)
def test_an_episode_has_some_hundred_decisions(longest, hold):
    assert replace(LOOK, longest=longest).hold == hold
