"""`RestartWrapper`: starts as the reset model says, paid for in full, with all of the learner's time ahead."""

import copy
import json
import pickle

import gymnasium
import numpy as np
import pytest
from file_helpers import change_json
from gym_helpers import Corridor, Counting, counting, random_reset_model, table, uniform
from gymnasium.utils.env_checker import check_env
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import (
    TRPO,
    Exploration,
    FiniteMDP,
    FunctionCells,
    GridCells,
    GymWorld,
    HashedCells,
    MiniGridCells,
    QuantileCells,
    ResetModel,
    TabularWorld,
    explore,
    visit,
)
from curious_explorer.environments import combination_lock
from curious_explorer.errors import CellError, ResetModelError
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.restart_wrapper import RestartWrapper

TABULAR = {"FrozenLake-v1": {}, "CliffWalking-v1": {}, "curious_explorer/CombinationLock-v0": {"depth": 3}}


def mountain_car(**arguments):
    return gymnasium.make("MountainCar-v0", disable_env_checker=True, **arguments)


def mountain_car_model(gamma=0.9):
    world = GymWorld("MountainCar-v0", cells=GridCells(5, [-1.2, -0.07], [0.6, 0.07]), seed=1)
    return random_reset_model(world, gamma=gamma, discretisation=world.stored_discretisation())


@pytest.mark.parametrize("name", TABULAR)
@pytest.mark.parametrize("weighting", ["average", "last"])
def test_starts_are_distributed_as_the_reset_model_away_from_ends(name, weighting):
    counter = counting(name, **TABULAR[name])
    mdp = FiniteMDP.from_gymnasium(counter)
    model = random_reset_model(mdp, 3).weighted(weighting)
    wrapped = RestartWrapper(counter, model)
    counts = np.zeros(mdp.num_states, dtype=int)
    for place in range(1_000):
        before = counter.steps
        observation, info = wrapped.reset(seed=5 if place == 0 else None)
        counts[observation] += 1
        assert info["roll_in_steps"] == counter.steps - before
    exact = np.where(mdp.terminal, 0.0, model.distribution(mdp))
    assert chi_square(counts, exact / exact.sum()) > SIGNIFICANCE / 6


def test_roll_ins_that_end_are_made_again_at_full_cost():
    counter = counting("FrozenLake-v1")
    mdp = FiniteMDP.from_gymnasium(counter)
    wrapped = RestartWrapper(counter, random_reset_model(mdp, 1, gamma=0.95))
    wrapped.reset(seed=1)
    before, resets, steps, restarts = counter.steps, counter.resets, 0, 0
    for _ in range(200):
        _, info = wrapped.reset()
        steps += info["roll_in_steps"]
        restarts += info["roll_in_restarts"]
        wrapped.step(0)
    assert restarts > 10
    assert counter.resets - resets == 200 + restarts
    assert counter.steps - before == 200 + steps


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")  # said of any wrapper
def test_both_checkers_are_content():
    checkers = pytest.importorskip("stable_baselines3.common.env_checker")
    wrapped = RestartWrapper(mountain_car(), mountain_car_model())
    check_env(wrapped, skip_render_check=True)
    checkers.check_env(wrapped, warn=True, skip_render_check=True)


def test_a_seed_decides_everything():
    def starts(seed):
        wrapped = RestartWrapper(mountain_car(), mountain_car_model())
        return [wrapped.reset(seed=seed)[0].tolist(), *(wrapped.reset()[0].tolist() for _ in range(5))]

    assert starts(3) == starts(3)
    assert starts(3) != starts(4)
    wrapped = RestartWrapper(mountain_car(), mountain_car_model())
    first = [wrapped.reset(seed=3)[0].tolist() for _ in range(2)]
    assert first[0] == first[1]
    unseeded = [RestartWrapper(mountain_car(), mountain_car_model()) for _ in range(2)]
    assert unseeded[0].reset()[0].tolist() != unseeded[1].reset()[0].tolist()


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_their_own_way_by_the_same_numbers(clone):
    wrapped = RestartWrapper(mountain_car(), mountain_car_model())
    wrapped.reset(seed=3)
    other = clone(wrapped)
    assert wrapped.reset()[0].tolist() == other.reset()[0].tolist()
    state = other.unwrapped.state
    wrapped.step(2)
    assert other.unwrapped.state is state
    assert other.env is other._single.env


class MakeWrapped:
    """Makes a wrapped environment in whatever process."""

    def __init__(self, model):
        self.model = model

    def __call__(self):
        return RestartWrapper(mountain_car(), self.model)


@pytest.mark.parametrize("kind", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
def test_it_works_inside_vector_environments(kind):
    model = mountain_car_model()
    envs = kind([MakeWrapped(model)] * 2)
    observations, infos = envs.reset(seed=7)
    alone = [RestartWrapper(mountain_car(), model).reset(seed=seed) for seed in (7, 8)]
    assert (observations == np.stack([observation for observation, _ in alone])).all()
    assert infos["roll_in_steps"].tolist() == [info["roll_in_steps"] for _, info in alone]
    envs.step(np.array([0, 2]))
    envs.close()


def test_it_works_in_the_subprocesses_of_stable_baselines():
    vectors = pytest.importorskip("stable_baselines3.common.vec_env")
    model = mountain_car_model()
    envs = vectors.SubprocVecEnv([MakeWrapped(model)] * 2, start_method="fork")
    envs.seed(7)
    observations = envs.reset()
    alone = [RestartWrapper(mountain_car(), model).reset(seed=seed) for seed in (7, 8)]
    assert (observations == np.stack([observation for observation, _ in alone])).all()
    assert [info["roll_in_steps"] for info in envs.reset_infos] == [info["roll_in_steps"] for _, info in alone]
    envs.close()


def test_gymnasium_can_make_it_again_by_its_spec():
    wrapped = RestartWrapper(gymnasium.make("MountainCar-v0"), mountain_car_model())
    again = gymnasium.make(wrapped.spec)
    assert again.reset(seed=3)[0].tolist() == wrapped.reset(seed=3)[0].tolist()


@pytest.mark.parametrize("where", ["inside", "outside", "both"])
def test_the_learner_has_all_of_its_time(where):
    limit = 12
    world = GymWorld(lambda: Corridor(length=200), cells=GridCells(200, 0.0, 200.0))
    forward = np.zeros((200, 2))
    forward[:, 1] = 1.0
    model = ResetModel(
        [forward], gamma=0.97, discretisation=world.stored_discretisation()
    )  # roll-ins of 32 steps, every other time
    env = Counting(Corridor(length=200))
    env = gymnasium.wrappers.TimeLimit(env, limit) if where != "outside" else env
    env = RestartWrapper(env, model)
    env = gymnasium.wrappers.TimeLimit(env, limit) if where != "inside" else env
    rolled = []
    for seed in range(20):
        _, info = env.reset(seed=seed)
        rolled.append(info["roll_in_steps"])
        ends = [env.step(0)[3] for _ in range(limit)]
        assert ends == [False] * (limit - 1) + [True]
    assert max(rolled) > limit


def test_minigrid_has_all_of_its_time():
    pytest.importorskip("minigrid")
    world = GymWorld("MiniGrid-DoorKey-5x5-v0", cells=MiniGridCells(), seed=1)
    visit(world, uniform(world), gamma=0.9, count=5)
    model = random_reset_model(world, gamma=0.95, policies=1, discretisation=world.stored_discretisation())
    wrapped = RestartWrapper(world.make_environment(), model)
    rolled = [wrapped.reset(seed=seed)[1]["roll_in_steps"] for seed in range(8)]
    assert max(rolled) > 0
    assert wrapped.unwrapped.step_count == 0


def test_a_reset_model_of_the_tables_restarts_the_environment_of_the_same_mdp():
    mdp = combination_lock(5)
    exploration = explore(TabularWorld(mdp), TRPO(updates=3), gamma=0.9, rounds=2, visits=50, progress=False)
    env = gymnasium.make("curious_explorer/CombinationLock-v0", depth=5)
    wrapped = RestartWrapper(env, exploration.reset_model)
    assert len({int(wrapped.reset(seed=seed)[0]) for seed in range(20)}) > 2
    with pytest.raises(ResetModelError, match=r"made for the observation space Discrete\(19\)"):
        RestartWrapper(gymnasium.make("curious_explorer/CombinationLock-v0", depth=6), exploration.reset_model)


def test_cells_that_were_never_met_are_acted_in_without_preference():
    world = GymWorld(Corridor, cells=HashedCells(6), seed=1)
    world.restart()  # discovers the first cell and no other
    forward = np.tile([0.0, 1.0], (6, 1))
    model = ResetModel([forward], gamma=0.9, discretisation=world.stored_discretisation())
    wrapped = RestartWrapper(Corridor(), model)
    places = [float(wrapped.reset(seed=seed)[0][0]) for seed in range(60)]
    assert set(places) > {0.0, 1.0, 2.0}  # as often back as on from cell 1
    assert model.discretisation.discovered == world.discretisation.cells.discovered()


# On disk -----------------------------------------------------------------------------------------------------------

KINDS = {
    "grid": lambda: GridCells(4, [-1.2, -0.07], [0.6, 0.07]),
    "quantiles": lambda: QuantileCells(4, warm_up=100),
    "hashed": lambda: HashedCells(100, width=[0.2, 0.02]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_reset_model_restarts_as_before(tmp_path, kind):
    world = GymWorld("MountainCar-v0", cells=KINDS[kind](), seed=1)
    visit(world, uniform(world), gamma=0.9, count=10)
    model = ResetModel([table(world, 1)], gamma=0.9, discretisation=world.stored_discretisation())
    loaded = ResetModel.load(model.save(tmp_path))
    assert loaded.discretisation.description == model.discretisation.description
    assert loaded.discretisation.discovered == model.discretisation.discovered
    starts = [
        [RestartWrapper(mountain_car(), one).reset(seed=seed)[0].tolist() for seed in range(5)]
        for one in (model, loaded)
    ]
    assert starts[0] == starts[1]
    again = GymWorld("MountainCar-v0", cells=Discretisation.of_reset_model(loaded).cells, seed=9)
    assert len(loaded.sample(again, 3)) == 3


def test_an_exploration_comes_back_with_its_discretisation(tmp_path):
    def world():
        return GymWorld("MountainCar-v0", cells=HashedCells(100, width=[0.2, 0.02]), seed=1)

    optimizer = TRPO(updates=2, episodes=4, horizon=15)
    explored = explore(world(), optimizer, gamma=0.9, rounds=2, visits=20, checkpoint=tmp_path, progress=False)
    loaded = Exploration.load(tmp_path)
    assert loaded.reset_model.discretisation.discovered == explored.reset_model.discretisation.discovered
    ours, theirs = (RestartWrapper(mountain_car(), e.reset_model).reset(seed=4)[0] for e in (loaded, explored))
    assert ours.tolist() == theirs.tolist()


def place_of(seen):
    return int(seen[0])


def test_cell_functions_are_given_again_at_load(tmp_path):
    world = GymWorld(Corridor, cells=FunctionCells(place_of, 6), seed=1)
    ResetModel([table(world, 1)], gamma=0.9, discretisation=world.stored_discretisation()).save(tmp_path)
    named = ResetModel.load(tmp_path)
    with pytest.raises(CellError, match="test_restart_wrapper:place_of"):
        RestartWrapper(Corridor(), named).reset(seed=1)
    loaded = ResetModel.load(tmp_path, cell_function=place_of)
    assert RestartWrapper(Corridor(), loaded).reset(seed=1)[0].shape == (1,)
    assert "place_of" in (tmp_path / "reset_model.json").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": {"kind": "clouds"}}, "'clouds'"),
        ({"cells": {"kind": "grid", "bins": [2]}}, "grid.*'low'"),
        ({"cells": {"kind": "grid", "bins": [2], "low": [0.0], "high": [None]}}, "finite|cannot be read"),
        ({"actions": []}, "empty"),
        ({"cells": 5}, "cannot be read"),
    ],
)
def test_damaged_discretisations_are_refused(tmp_path, change, message):
    model = mountain_car_model()
    path = model.save(tmp_path) / "reset_model.json"
    change_json(path, discretisation=json.loads(path.read_text())["discretisation"] | change)
    with pytest.raises(ResetModelError, match=message):
        RestartWrapper(mountain_car(), ResetModel.load(tmp_path))
