"""Cells and action sets: the right numbers, plain descriptions, and errors that say what to do."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from curious_explorer import FunctionCells, GridCells, GymWorld, HashedCells, MiniGridCells, QuantileCells
from curious_explorer.errors import ActionError, CellError, ObservationError
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.cells import DiscreteCells, default_cells
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation

NAN = float("nan")


def again(cells, space, function=None):
    """The same cells after a round trip through JSON, nothing discovered any more."""
    discretisation = Discretisation(cells, ActionSet([0, 1]), "Some-v0", str(space), "Discrete(2)")
    described = json.loads(json.dumps(discretisation.description()))
    return Discretisation.from_stored(StoredDiscretisation(described, cells.discovered(), function)).cells


@given(st.lists(st.floats(-2.0, 3.0), min_size=2, max_size=2))
def test_a_grid_counts_the_edges_below(point):
    cells = GridCells([4, 5], [-1.0, 0.0], [1.0, 2.5])
    column = sum(point[0] >= edge for edge in (-0.5, 0.0, 0.5))
    row = sum(point[1] >= edge for edge in (0.5, 1.0, 1.5, 2.0))
    assert cells.index(np.array(point), None) == 5 * column + row
    assert cells.count == 20


def test_a_grid_takes_any_shape_and_any_kind_of_number():
    cells = GridCells(3, np.zeros((2, 2)), np.full((2, 2), 3.0))
    expected = ((0 * 3 + 1) * 3 + 2) * 3 + 0
    for observation in (np.array([[0, 1], [2, 0]]), np.array([0.5, 1.5, 2.5, 0.5], dtype=np.float32), [0, 1, 2, 0]):
        assert cells.index(observation, None) == expected
    assert cells.index(np.array([np.inf, -np.inf, 9.0, -9.0]), None) == ((2 * 3 + 0) * 3 + 2) * 3 + 0


def test_a_number_by_itself_is_a_box_of_one():
    assert GridCells(4, 0.0, 1.0).index(np.float64(0.6), None) == 2
    assert GridCells(4, 0.0, 1.0).index(0.6, None) == 2


def test_quantiles_share_a_warm_up_evenly():
    seen = np.random.default_rng(1).exponential(size=(4_000, 2)) ** 3  # nothing like a box
    cells = QuantileCells([4, 5]).fitted_to(seen)
    counts = np.bincount([cells.index(one, None) for one in seen], minlength=20).reshape(4, 5)
    np.testing.assert_allclose(counts.sum(axis=1), 1_000, atol=1)
    np.testing.assert_allclose(counts.sum(axis=0), 800, atol=1)


def test_quantiles_of_a_constant_are_one_edge():
    cells = QuantileCells(5).fitted_to(np.ones((10, 1)))
    assert cells.count == 2
    assert cells.index(np.array([1.0]), None) == 1


def test_discrete_observations_are_counted_from_their_start():
    cells = default_cells(spaces.Discrete(5, start=-2))
    assert [cells.index(np.int64(number), None) for number in range(-2, 3)] == [0, 1, 2, 3, 4]
    assert cells.index(np.array(1), None) == 3


def test_hashed_cells_are_numbered_as_they_are_met():
    cells = HashedCells(4, width=0.5)
    points = [[0.1, 0.1], [0.6, 0.1], [0.2, 0.4], [-0.1, 0.0], [0.9, 0.3]]
    assert [cells.index(np.array(point), None) for point in points] == [0, 1, 0, 2, 1]
    assert len(cells.discovered()) == 3
    frozen = cells.recalling(cells.discovered(), growing=False)
    assert frozen.index(np.array([5.0, 5.0]), None) == -1
    assert frozen.index(np.array([0.9, 0.3]), None) == 1
    growing = frozen.recalling(frozen.discovered(), growing=True)
    assert growing.index(np.array([5.0, 5.0]), None) == 3
    assert len(cells.discovered()) == 3  # copies discover each their own


def test_hashed_cells_tell_strings_and_dicts_apart_by_their_key():
    cells = HashedCells(10, key=lambda seen: (seen["room"], round(seen["x"])))
    assert [cells.index({"room": room, "x": x}, None) for room, x in (("a", 0.1), ("b", 0.1), ("a", 0.2))] == [0, 1, 0]


def test_equal_numbers_share_a_cell_whatever_their_type():
    cells = HashedCells(10)
    same = [np.array([0.0, 2.0]), np.array([-0.0, 2.0]), np.array([0, 2]), np.array([0.0, 2.0], dtype=np.float32)]
    assert [cells.index(one, None) for one in same] == [0, 0, 0, 0]
    assert cells.index(np.array([[0.0, 2.0]]), None) == 1  # another shape is another observation


def test_keys_of_many_numbers_are_not_cut_short():
    # NumPy prints arrays of more than a thousand numbers with dots in the middle.
    cells = HashedCells(10, key=lambda seen: ("picture", seen))
    one, two = np.zeros(5_000), np.zeros(5_000)
    two[2_500] = 1.0
    assert [cells.index(picture, None) for picture in (one, two, one)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("cells", "space", "observations"),
    [
        (DiscreteCells(5, 2), spaces.Discrete(5, start=2), range(2, 7)),
        (GridCells([3, 2], [0.0, -1.0], [1.0, 1.0]), "Box", np.random.default_rng(0).random((9, 2))),
        (QuantileCells(4).fitted_to(np.arange(20.0).reshape(10, 2)), "Box", np.arange(8.0).reshape(4, 2)),
        (HashedCells(50, width=0.3), "Box", np.random.default_rng(0).random((9, 2))),
    ],
)
def test_cells_come_back_from_their_description(cells, space, observations):
    expected = [cells.index(one, None) for one in observations]
    loaded = again(cells, space)
    assert [loaded.index(one, None) for one in observations] == expected
    assert loaded.count == cells.count
    assert loaded.description() == cells.description()


def test_a_function_must_be_given_again():
    cells = FunctionCells(lambda seen: int(seen) % 3, 3)
    with pytest.raises(CellError, match="cell_function="):
        again(cells, "Box").index(4, None)
    assert again(cells, "Box", lambda seen: int(seen) % 3).index(4, None) == 1
    keyed = HashedCells(5, key=str)
    with pytest.raises(CellError, match="cell_function="):
        again(keyed, "Box").index(4, None)


def test_minigrid_cells_are_its_symbolic_state():
    pytest.importorskip("minigrid")
    env = gymnasium.make("MiniGrid-DoorKey-5x5-v0", disable_env_checker=True)
    observation, _ = env.reset(seed=3)
    cells = MiniGridCells()
    start = cells.index(observation, env)
    turned = cells.index(env.step(0)[0], env)
    assert (start, turned) == (0, 1)
    for _ in range(3):
        observation, *_ = env.step(0)
    assert cells.index(observation, env) == start  # a full turn
    grid = env.unwrapped
    key = next(thing for thing in grid.grid.grid if thing is not None and thing.type == "key")
    grid.carrying = key  # a thing that is carried makes another state
    assert cells.index(observation, env) == 2
    with pytest.raises(CellError, match="MiniGrid environment"):
        cells.index(observation, gymnasium.make("CartPole-v1"))
    with pytest.raises(CellError, match="MiniGrid environment"):
        cells.index(observation, None)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GridCells(3, [-np.inf], [1.0]), CellError, r"-inf.*QuantileCells"),
        (lambda: GridCells(3, [1.0], [1.0]), CellError, "low < high"),
        (lambda: GridCells(3, [0.0, 0.0], [1.0]), CellError, "low < high"),
        (lambda: GridCells([3], [0.0, 0.0], [1.0, 1.0]), CellError, r"\[3\].*2 dimensions"),
        (lambda: GridCells(0, [0.0], [1.0]), CellError, "bins is 0"),
        (lambda: QuantileCells(3, edges=[[2.0, 1.0]]), CellError, "dimension 0"),
        (lambda: QuantileCells(3, warm_up=0), ValueError, "warm_up is 0"),
        (lambda: HashedCells(0), ValueError, "max_cells is 0"),
        (lambda: HashedCells(5, width=0.0), CellError, "width is 0.0"),
        (lambda: HashedCells(5, width=1.0, key=str), CellError, "both width and key"),
        (lambda: FunctionCells("floor", 5), CellError, "function is 'floor'"),
        (lambda: default_cells(spaces.Dict(x=spaces.Discrete(2))), CellError, "Dict.*FunctionCells"),
        (lambda: default_cells(spaces.Box(-np.inf, np.inf, (2,))), CellError, "QuantileCells"),
        (lambda: default_cells(spaces.Box(0.0, 1.0, (5,))), CellError, "no obvious cells"),
    ],
)
def test_cells_refuse_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


GRID = GridCells(4, [0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("cells", "observation", "error", "message"),
    [
        (GRID, np.array([0.5, NAN]), ObservationError, r"\[0.5, nan\]"),
        (GRID, np.array([[0.5], [NAN]]), ObservationError, "NaN"),
        (GRID, np.array([0.5]), ObservationError, "has 1 numbers.* 2"),
        (GRID, np.zeros((2, 2)), ObservationError, "has 4 numbers"),
        (GRID, {"x": 1}, ObservationError, "FunctionCells"),
        (GRID, "north", ObservationError, "north.*2 numbers"),
        (GRID, None, ObservationError, "numbers"),
        (DiscreteCells(4), 4, ObservationError, "is 4.* 0 to 3"),
        (DiscreteCells(4), -1, ObservationError, "is -1"),
        (DiscreteCells(4), 1.5, ObservationError, "is 1.5"),
        (DiscreteCells(4), np.array([1, 2]), ObservationError, "whole number"),
        (HashedCells(9), np.array([NAN]), ObservationError, "nan"),
        (HashedCells(9), "north", ObservationError, "north.*key="),
        (HashedCells(9), {"x": 1}, ObservationError, "dict.*key="),
        (QuantileCells(3), np.array([1.0]), CellError, "quantiles"),
        (FunctionCells(lambda seen: 7, 5), 0, CellError, "7.*from 0 to 4"),
        (FunctionCells(lambda seen: -1, 5), 0, CellError, "returned -1"),
        (FunctionCells(lambda seen: 1.0, 5), 0, CellError, "returned 1.0"),
        (FunctionCells(lambda seen: seen["x"], 5), 0, CellError, "TypeError"),
    ],
)
def test_bad_observations_are_named(cells, observation, error, message):
    with pytest.raises(error, match=message):
        cells.index(observation, None)


def test_more_cells_than_there_is_room_for():
    cells = HashedCells(2)
    for place in range(2):
        cells.index(np.array([place]), None)
    with pytest.raises(CellError, match=r"2 cells.*max_cells"):
        cells.index(np.array([2]), None)
    assert len(cells.discovered()) == 2
    with pytest.raises(CellError, match=r"3 cells.* 2"):
        cells.recalling(["a", "b", "c"], growing=True)
    with pytest.raises(CellError, match="different"):
        cells.recalling(["a", "a"], growing=True)


def test_a_warm_up_with_infinities_is_refused():
    with pytest.raises(ObservationError, match=r"\[inf\]"):
        QuantileCells(3).fitted_to(np.array([[0.0], [np.inf]]))


# Action sets ------------------------------------------------------------------------------------------------------


def test_a_box_is_explored_through_a_few_actions():
    action_set = ActionSet.of(
        spaces.Box(np.array([-1.0, 0.0], dtype=np.float32), np.array([1.0, 4.0], dtype=np.float32))
    )
    assert [choice.tolist() for choice in action_set.choices] == [
        [x, y] for x in (-1.0, 0.0, 1.0) for y in (0.0, 2.0, 4.0)
    ]
    assert all(choice.dtype == np.float32 for choice in action_set.choices)
    assert len(ActionSet.of(spaces.Box(-1.0, 1.0, (1,)), 5)) == 5


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Discrete(3, start=2), [2, 3, 4]),
        (spaces.MultiDiscrete([2, 3]), [[x, y] for x in range(2) for y in range(3)]),
        (spaces.MultiBinary(2), [[0, 0], [0, 1], [1, 0], [1, 1]]),
    ],
)
def test_finite_spaces_are_their_own_action_set(space, expected):
    action_set = ActionSet.of(space)
    assert action_set.description() == expected
    assert all(space.contains(choice) for choice in action_set.choices)
    restored = ActionSet.from_description(json.loads(json.dumps(action_set.description())), space)
    assert all(space.contains(choice) for choice in restored.choices)


@pytest.mark.parametrize(
    ("space", "actions", "message"),
    [
        (spaces.Box(-np.inf, np.inf, (1,)), 3, "Box.*actions="),
        (spaces.Box(-1.0, 1.0, (1,)), 1, "at least 2"),
        (spaces.Box(-1.0, 1.0, (9,)), 3, "19,683 actions.*1,000"),
        (spaces.Box(-1.0, 1.0, (600,)), None, "1,217 actions"),
        (spaces.Box(-1.0, 1.0, (1,)), [[0.0], [2.0]], "action 1 .*2.*Box"),
        (spaces.Box(-1.0, 1.0, (1,)), [[0.0, 1.0]], r"action 0 .*\[0.0, 1.0\]"),
        (spaces.Discrete(3), [0, 3], "action 1 .*3.*Discrete"),
        (spaces.Discrete(3), ["up"], "action 0 .*'up'"),
        (spaces.Discrete(3), [], "empty"),
        (spaces.Discrete(3), 5, "actions is 5"),
        (spaces.Text(5), None, "Text.*actions="),
        (spaces.Tuple([spaces.Text(5)]), None, "Text.*actions="),
    ],
)
def test_action_sets_refuse_what_does_not_fit(space, actions, message):
    with pytest.raises(ActionError, match=message):
        ActionSet.of(space, actions)


MIXED = spaces.Dict(push=spaces.Box(-1.0, 3.0, (2,)), gear=spaces.Discrete(2), lamps=spaces.MultiBinary(2))


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Box(-1.0, 1.0, (9,)), 1 + 18 + 16),
        (spaces.Box(-np.inf, np.inf, (2, 2)), 81),
        (spaces.Box(0, 255, (2,), np.uint8), 9),
        (spaces.Box(2.0, 2.0, (1,)), 1),
        (spaces.MultiBinary(12), 1 + 12 + 16),
        (MIXED, 72),
        (spaces.Tuple([MIXED, MIXED]), 1 + 71 + 71 + 16),
        (spaces.OneOf([spaces.Discrete(3), spaces.Box(-1.0, 1.0, (1,))]), 6),
    ],
)
def test_every_space_with_actions_has_a_small_set_of_them(space, size):
    action_set = ActionSet.of(space)
    assert len(action_set) == size
    assert all(space.contains(choice) for choice in action_set.choices)
    restored = ActionSet.from_description(json.loads(json.dumps(action_set.held(4).description())), space)
    assert restored.hold == 4
    assert restored.description() == action_set.held(4).description()
    assert all(space.contains(choice) for choice in restored.choices)


def test_small_sets_have_the_extremes_and_nothing():
    choices = np.array(ActionSet.of(spaces.Box(-1.0, 3.0, (6,))).choices)
    assert (choices[0] == 0.0).all()
    for dimension in range(6):
        alone = choices[(np.delete(choices, dimension, axis=1) == 0.0).all(axis=1)][:, dimension]
        assert set(alone.tolist()) == {-1.0, 0.0, 3.0}


def test_worlds_refuse_cells_that_cannot_fit_before_a_step():
    for cells, message in [
        (GridCells(4, [0.0], [1.0]), "1 numbers.*Box.* 2"),
        (QuantileCells(3, edges=[[0.0], [1.0], [2.0]]), "3 numbers"),
        (HashedCells(9, width=[0.1, 0.1, 0.1]), r"width.*\(2,\)"),
        (lambda seen: 0, "FunctionCells"),
    ]:
        with pytest.raises(ValueError, match=message):
            GymWorld("MountainCar-v0", cells=cells)


def test_the_things_of_a_minigrid_are_found_wherever_they_were_carried_to():
    """Where they lie is looked up again only when the grid has changed; two of them take turns here."""
    pytest.importorskip("minigrid", reason="the extra gym is not installed")
    cells, generator = MiniGridCells(10_000, things=True), np.random.default_rng(3)
    envs = [gymnasium.make("MiniGrid-DoorKey-5x5-v0") for _ in range(2)]
    seen = set()
    for step in range(2_000):
        env = envs[step % 2]
        if step % 200 < 2:
            env.reset(seed=int(step % 3))
        observation, *_ = env.step(int(generator.choice([0, 1, 2, 2, 3, 4, 5])))
        things = [
            f"{place}{thing.type}{thing.color}{int(getattr(thing, 'is_open', 0))}{int(getattr(thing, 'is_locked', 0))}"
            for place, thing in enumerate(env.unwrapped.grid.grid)
            if thing is not None and thing.type in ("door", "key")
        ]
        seen.add(" ".join(things))
        assert cells.key(observation, env).split(";")[2] == " ".join(things)
    assert len(seen) > 10
