"""Environments that misbehave and arguments that do not fit: each a named error that says what to do."""

import multiprocessing
import threading

import gymnasium
import numpy as np
import pytest
from gym_helpers import Corridor, counting, raises, random_reset_model, uniform
from gymnasium import spaces

from curious_explorer import TRPO, FunctionCells, GridCells, GymWorld, HashedCells, ResetModel, explore, improve, visit
from curious_explorer.errors import ActionError, CellError, EnvironmentFailureError, ObservationError, ResetModelError
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.restart_wrapper import RestartWrapper
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

GAMMA = 0.9
CELLS = GridCells(6, 0.0, 6.0)
NAN = float("nan")

# What an environment may return instead of an observation; which error names it, and what the error says.
FAULTS = {
    "another shape": (
        lambda seen: np.zeros(3),
        ObservationError,
        r"shape \(3,\).* \(1,\)",
    ),
    "no array": (lambda seen: [0.0], ObservationError, "list"),
    "none": (lambda seen: None, ObservationError, "NoneType"),
    "NaN": (lambda seen: seen * NAN, ObservationError, r"\[nan\]"),
    "an error": (
        raises(KeyError("boom")),
        EnvironmentFailureError,
        "Corridor.*KeyError.*boom",
    ),
}
every_fault = pytest.mark.parametrize("name", FAULTS)


def calls(world):
    """Everything a world can be asked for that takes steps."""
    policy = uniform(world)
    return [
        lambda: visit(world, policy, gamma=GAMMA, count=20),
        lambda: world.episodes(policy, EpisodeBatch(episodes=5, horizon=9, gamma=GAMMA)),
        lambda: OnlineAgent(world, gamma=GAMMA, horizon=9).follow(policy, max_samples=30),
    ]


@every_fault
@pytest.mark.parametrize("at", [0, 1, 4])
def test_faults_are_named_wherever_they_happen(name, at):
    fault, error, message = FAULTS[name]
    for place in range(3):
        env = Corridor(fault=fault, at=at)
        world = GymWorld(env, cells=CELLS, seed=1)
        with pytest.raises(error, match=message):
            calls(world)[place]()
        assert world.samples == env.taken - (at > 0 and name == "an error")  # what was taken is counted all the same


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - {"no array"}))  # of which a vector environment makes one
def test_faults_of_environments_side_by_side_are_named(name):
    fault, error, _ = FAULTS[name]
    world = GymWorld(lambda: Corridor(fault=fault, at=4), cells=CELLS, seed=1, num_envs=2)
    with pytest.raises(
        (error, EnvironmentFailureError)
    ) as caught:  # a vector environment may stumble over it by itself
        visit(world, uniform(world), gamma=GAMMA, count=20)
    assert "Corridor" in str(caught.value) or "NaN" in str(caught.value)


@every_fault
def test_faults_in_a_roll_in_of_the_wrapper_are_named(name):
    fault, error, message = FAULTS[name]
    world = GymWorld(Corridor, cells=CELLS)
    model = random_reset_model(world, gamma=0.95, discretisation=world.stored_discretisation())
    for at in (0, 5):
        wrapped = RestartWrapper(Corridor(fault=fault, at=at), model)
        with pytest.raises(error, match=message):
            [wrapped.reset(seed=seed) for seed in range(40)]


@pytest.mark.parametrize("reward", [NAN, float("inf")])
def test_rewards_that_are_no_numbers_are_named(reward):
    env = gymnasium.wrappers.TransformReward(Corridor(), lambda paid: reward)
    world = GymWorld(env, cells=CELLS, seed=1)
    with pytest.raises(EnvironmentFailureError, match=f"reward of {reward}"):
        world.episodes(uniform(world), EpisodeBatch(episodes=2, horizon=5, gamma=GAMMA))
    with pytest.raises(EnvironmentFailureError, match="reward"):
        OnlineAgent(world, gamma=GAMMA, horizon=5).follow(uniform(world), max_samples=9)


def test_an_old_environment_that_returns_four_things_is_named():
    class Old(Corridor):
        def step(self, action):
            return super().step(action)[:4]

    world = GymWorld(Old(), cells=CELLS)
    with pytest.raises(EnvironmentFailureError, match="Old raised ValueError"):
        visit(world, uniform(world), gamma=GAMMA, count=5)


def test_cells_out_of_range_and_too_many_are_named():
    world = GymWorld(Corridor, cells=FunctionCells(lambda seen: int(seen[0]), 3), seed=1)
    with pytest.raises(CellError, match=r"3 .*from 0 to 2"):
        visit(world, uniform(world), gamma=0.99, count=200)
    world = GymWorld(Corridor, cells=HashedCells(3), seed=1)
    with pytest.raises(CellError, match=r"3 cells.*max_cells"):
        visit(world, uniform(world), gamma=0.99, count=200)
    frozen_lake = gymnasium.wrappers.TransformObservation(
        gymnasium.make("FrozenLake-v1", disable_env_checker=True), lambda seen: seen + 40, spaces.Discrete(16)
    )
    with pytest.raises(ObservationError, match=r"is 40.* 0 to 15"):
        GymWorld(frozen_lake).restart()


def test_dict_observations_need_cells_that_know_them():
    class Seeing(Corridor):
        def __init__(self):
            super().__init__()
            self.observation_space = spaces.Dict(place=spaces.Box(0.0, 6.0, (1,)))

        def look(self):
            return {"place": np.array([self.place], dtype=np.float32)}

    with pytest.raises(CellError, match=r"GridCells.*Dict"):
        GymWorld(Seeing(), cells=CELLS)
    with pytest.raises(ObservationError, match=r"dict.*key="):
        GymWorld(Seeing(), cells=HashedCells(9)).restart()
    for cells in (FunctionCells(lambda s: int(s["place"][0]), 6), HashedCells(9, key=lambda s: float(s["place"][0]))):
        world = GymWorld(Seeing(), cells=cells, seed=1)
        assert visit(world, uniform(world), gamma=GAMMA, count=9).sum() == 9


class _NotBuilt:
    """No environment at all."""


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GymWorld("MountainCar-v7"), ValueError, "'MountainCar-v7'.*'MountainCar-v0'"),
        (lambda: GymWorld("MontainCar-v0"), ValueError, "'MountainCar-v0'"),
        (lambda: GymWorld("nowhere_at_all:Thing-v0"), ValueError, "package nowhere_at_all"),
        (lambda: GymWorld(_NotBuilt()), ValueError, "_NotBuilt object"),
        (lambda: GymWorld(_NotBuilt), ValueError, "made .*_NotBuilt"),
        (lambda: GymWorld("FrozenLake-v1", seed=-1), ValueError, "seed is -1"),
        (lambda: GymWorld("FrozenLake-v1", num_envs=0), ValueError, "num_envs is 0"),
        (lambda: GymWorld("FrozenLake-v1", vectorization="gpu"), ValueError, "'gpu'"),
        (lambda: GymWorld("FrozenLake-v1", actions=[0, 9]), ActionError, "action 1 .*9"),
        (lambda: GymWorld("FrozenLake-v1", actions=3), ActionError, "actions is 3"),
        (lambda: GymWorld(Corridor(), cells=CELLS, num_envs=2), ValueError, "function that makes"),
        (
            lambda: GymWorld(gymnasium.make_vec("CartPole-v1", num_envs=2), cells=GridCells(2, [0] * 4, [1] * 4)),
            ValueError,
            "autoreset_mode=",
        ),
    ],
)
def test_worlds_that_cannot_be_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_what_cannot_be_sent_to_a_process_is_named(monkeypatch):
    spawn = multiprocessing.get_context("spawn")
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", spawn)
    lock = threading.Lock()  # belongs to this process

    def make():
        assert lock is not None
        return Corridor()

    with pytest.raises(ValueError, match="vectorization='sync'"):
        GymWorld(make, cells=CELLS, num_envs=2, vectorization="async")


BAD_ARGUMENTS = [
    ({"policy": np.full((2, 2), 0.5)}, r"policy has shape \(2, 2\)"),
    ({"critic": np.zeros(3)}, r"critic has shape \(3,\)"),
    ({"reward": Reward(np.zeros((2, 2)))}, r"shape \(2, 2\)"),
    ({"trace": 1.5}, "trace is 1.5"),
    ({"weight_decay": -0.1}, "weight_decay is -0.1"),
    ({"horizon": 0}, "horizon is 0"),
    ({"max_samples": -5}, "max_samples is -5"),
    ({"credited": -1}, "credited is -1"),
    ({"gamma": 1.0}, "gamma is 1.0"),
    ({"reset": RollIn.from_start().then(np.ones((3, 1)), 0.9)}, "policy 0 of the roll-in has shape"),
    ({"reward": Reward(np.zeros((6, 2)), "sum")}, "combine is 'sum'"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_before_a_step(changes, message):
    world = GymWorld(Corridor(), cells=CELLS)
    given = {"policy": uniform(world), "gamma": GAMMA, "horizon": 5, "episodes": 2} | changes
    policy = given.pop("policy")
    with pytest.raises(ValueError, match=message):
        world.episodes(policy, EpisodeBatch(**given))
    assert world.position() == {"samples": 0, "calls": 0, "discovered": []}


def test_single_steps_are_checked():
    world = GymWorld("FrozenLake-v1")
    with pytest.raises(RuntimeError, match="call restart"):
        world.step(0)
    world.restart()
    for action in (4, -1, 1.0):
        with pytest.raises(ValueError, match="0 to 3"):
            world.step(action)
    with pytest.raises(ValueError, match="steps is -1"):
        world.count_samples(-1)


# Reset models for something else -----------------------------------------------------------------------------------


def test_reset_models_of_other_worlds_are_refused():
    explored = GymWorld(Corridor, cells=CELLS)
    model = random_reset_model(explored, discretisation=explored.stored_discretisation())
    shifted = GymWorld(Corridor, cells=GridCells(6, 1.0, 7.0))
    fewer = GymWorld(Corridor, cells=GridCells(5, 0.0, 6.0))
    swapped = GymWorld(Corridor, cells=CELLS, actions=[1, 0])
    for world, message in [(shifted, "made for cells"), (fewer, "made for 6 states"), (swapped, "made for actions")]:
        with pytest.raises(ResetModelError, match=message):
            model.sample(world, 3)
        with pytest.raises(ResetModelError, match=message):
            improve(world, TRPO(updates=1), model, gamma=GAMMA)
    assert len(model.sample(GymWorld(Corridor, cells=CELLS, seed=5), 3)) == 3


def test_cells_discovered_in_another_order_are_refused():
    def world(cells=None):
        return GymWorld("MountainCar-v0", cells=cells or HashedCells(300, width=[0.1, 0.01]), seed=1)

    explored = world()
    visit(explored, uniform(explored), gamma=0.95, count=20)
    model = random_reset_model(explored, discretisation=explored.stored_discretisation())
    with pytest.raises(ResetModelError, match=r"cells=Discretisation.of_reset_model"):
        model.sample(world(), 3)
    knowing = world(Discretisation.of_reset_model(model).cells)
    assert len(model.sample(knowing, 30)) == 30
    assert len(model.sample(explored, 3)) == 3  # which has discovered more since, perhaps, but nothing else


def test_the_wrapper_refuses_other_environments():
    world = GymWorld("MountainCar-v0")
    model = random_reset_model(world, discretisation=world.stored_discretisation())

    def make(name):
        return gymnasium.make(name, disable_env_checker=True)

    class Nudged(gymnasium.Wrapper):
        """Another environment with the same spaces."""

        @property
        def spec(self):
            return gymnasium.spec("Acrobot-v1")

    for env, message in [
        (make("CartPole-v1"), r"action space Discrete\(3\).*CartPole-v1"),
        (make("Acrobot-v1"), "observation space Box.*Acrobot-v1"),
        (Nudged(make("MountainCar-v0")), "MountainCar-v0.*Acrobot-v1"),
    ]:
        with pytest.raises(ResetModelError, match=message):
            RestartWrapper(env, model)
    with pytest.raises(ValueError, match="reset_model is str"):
        RestartWrapper(make("MountainCar-v0"), "folder")
    with pytest.raises(ValueError, match="env is 'MountainCar-v0'"):
        RestartWrapper("MountainCar-v0", model)
    with np.printoptions(precision=2, suppress=True):  # print options are nobody's business
        RestartWrapper(make("MountainCar-v0"), model)


# A long exploration ------------------------------------------------------------------------------------------------


@every_fault
def test_an_exploration_keeps_its_last_checkpoint_and_goes_on_after_the_repair(tmp_path, name):
    fault, error, _ = FAULTS[name]

    def run(folder, fault=None, at=None):
        world = GymWorld(Corridor(length=30, fault=fault, at=at), cells=HashedCells(40), seed=3)
        optimizer = TRPO(updates=3, episodes=5, horizon=15)
        return explore(world, optimizer, gamma=GAMMA, rounds=4, visits=40, checkpoint=folder, progress=False)

    expected = run(None)
    first_two = sum(round_.samples for round_ in expected.rounds[:2])
    with pytest.raises(error):
        run(tmp_path, fault, at=first_two + 50)
    assert sorted(path.name for path in tmp_path.glob("round-*.npz")) == ["round-0000.npz", "round-0001.npz"]
    repaired = run(tmp_path)
    assert repaired.samples == expected.samples
    for ours, theirs in zip(repaired.rounds, expected.rounds, strict=True):
        assert (ours.visited == theirs.visited).all()
        assert (ours.learned_policy == theirs.learned_policy).all()
    assert isinstance(repaired.reset_model, ResetModel)


def test_every_step_that_was_taken_before_a_fault_is_counted():
    counter = counting("FrozenLake-v1")
    world = GymWorld(counter, seed=1)
    visit(world, uniform(world), gamma=GAMMA, count=10)
    counter.env = None  # the environment is gone
    with pytest.raises(EnvironmentFailureError, match="AttributeError"):
        visit(world, uniform(world), gamma=GAMMA, count=10)
    assert world.samples == counter.steps


@pytest.mark.parametrize("when", ["in its work", "before it is closed"])
def test_a_process_of_an_environment_that_was_killed_is_named_and_closed(when):
    world = GymWorld("FrozenLake-v1", num_envs=2, vectorization="async", seed=1)
    visit(world, uniform(world), gamma=GAMMA, count=5)
    killed, other = world._environments.envs.processes
    killed.kill()
    if when == "in its work":
        killed.join()
        before = world.samples
        with pytest.raises(EnvironmentFailureError, match="FrozenLake-v1 raised"):
            visit(world, uniform(world), gamma=GAMMA, count=5)
        assert world.samples == before
    world.close()
    assert not other.is_alive()
    world.close()
