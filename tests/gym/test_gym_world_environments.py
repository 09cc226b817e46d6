"""`GymWorld` with many environments at once, their time limits and ends, and observations and actions of all kinds."""

import gymnasium
import numpy as np
import pytest
from gym_helpers import (
    Corridor,
    Counting,
    Fixed,
    NativeCorridors,
    a_roll_in,
    counting,
    random_reset_model,
    table,
    uniform,
)
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import (
    FiniteMDP,
    FunctionCells,
    GridCells,
    GymWorld,
    MiniGridCells,
    QuantileCells,
    TabularWorld,
    visit,
    visitation,
)
from curious_explorer.errors import CellError
from curious_explorer.gym import rollouts
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

GAMMA = 0.9


# Vectors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [2, 5])
def test_environments_side_by_side_have_the_same_distribution(num_envs):
    counters = []

    def make():
        counters.append(counting("FrozenLake-v1"))
        return counters[-1]

    world = GymWorld(make, seed=3, num_envs=num_envs)
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1")
    policy, reset = table(mdp, 3), random_reset_model(mdp, 7)
    counts = visit(world, policy, gamma=GAMMA, count=1_500, reset=reset)
    start = reset.distribution(mdp)
    assert chi_square(counts, visitation(mdp, policy, gamma=GAMMA, start=start / start.sum())) > SIGNIFICANCE / 2
    assert world.samples == sum(counter.steps for counter in counters)
    settings = {"horizon": 12, "gamma": GAMMA, "reset": a_roll_in(mdp, 5)}
    ours = world.episodes(policy, EpisodeBatch(episodes=400, **settings))
    theirs = TabularWorld(mdp).episodes(policy, EpisodeBatch(episodes=20_000, **settings))
    error = np.sqrt(ours.returns.var() / 400 + theirs.returns.var() / 20_000)
    assert abs(ours.returns.mean() - theirs.returns.mean()) < 4 * error
    assert abs(ours.lengths.mean() - theirs.lengths.mean()) < 4 * np.sqrt(theirs.lengths.var() / 400)
    assert world.samples == sum(counter.steps for counter in counters)


def test_walks_keep_their_places_whichever_ends_first():
    # A corridor whose walks last as long as the draws say: ends must not be sorted by length.
    world = GymWorld(Corridor, cells=GridCells(6, 0.0, 6.0), seed=1, num_envs=4)
    forward = np.zeros((6, 2))
    forward[:, 1] = 1.0
    ends = world.walk(RollIn.from_start().then(forward, 0.7), 2_000)
    first, last = ends[:1_000].mean(), ends[1_000:].mean()
    assert abs(first - last) < 4 * np.sqrt(2 * ends.var() / 1_000)


def test_other_processes_give_the_same_as_this_one():
    worlds = [GymWorld("FrozenLake-v1", seed=3, num_envs=2, vectorization=how) for how in ("sync", "async")]
    walks = RollIn.from_start().then(uniform(worlds[0]), GAMMA)
    assert (worlds[0].walk(walks, 60) == worlds[1].walk(walks, 60)).all()
    assert worlds[0].samples == worlds[1].samples
    for world in worlds:
        world.close()


@pytest.mark.parametrize("limited", [False, True])
def test_vector_environments_of_others(limited):
    def make():
        return gymnasium.wrappers.TimeLimit(Corridor(), 3) if limited else Corridor()

    for envs in (
        NativeCorridors(3),
        gymnasium.vector.SyncVectorEnv([make] * 3, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED),
    ):
        world = GymWorld(envs, cells=GridCells(6, 0.0, 6.0), seed=1)
        forward = np.zeros((6, 2))
        forward[:, 1] = 1.0
        batch = world.episodes(forward, EpisodeBatch(episodes=4, horizon=100, gamma=GAMMA))
        assert batch.lengths.tolist() == [5, 5, 5, 5]
        assert world.samples == 30  # three together, twice, five steps each: idle ones are paid for
        np.testing.assert_allclose(batch.returns, GAMMA**4)
        with pytest.raises(ValueError, match="second"):
            world.make_environment()


def test_policies_that_see_observations_walk_too():
    forward, cells = Fixed(lambda seen: int(seen[0] < 4.0)), GridCells(6, 0.0, 6.0)
    for num_envs in (1, 3):
        world = GymWorld(Corridor, cells=cells, seed=1, num_envs=num_envs)
        ends = world.walk(RollIn.from_start().then(forward, 0.99), 50)
        assert set(ends.tolist()) <= {0, 1, 2, 3, 4}
        assert (ends >= 3).mean() > 0.8
        batch = world.episodes(forward, EpisodeBatch(episodes=4, horizon=4, gamma=GAMMA, record=True))
        assert batch.weight.sum() == batch.advantage_sum.sum() == len(batch.seen.times) == 0
        assert batch.occupancy[4] == pytest.approx(4 * GAMMA**4)


# Time, ends, spaces ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [1, 2])
def test_walks_go_on_past_the_time_limit(num_envs):
    def make():
        return gymnasium.wrappers.TimeLimit(Corridor(length=200), max_episode_steps=10)

    world = GymWorld(make, cells=GridCells(200, 0.0, 200.0), seed=1, num_envs=num_envs)
    forward = np.zeros((200, 2))
    forward[:, 1] = 1.0
    ends = world.walk(RollIn.from_start().then(forward, 0.98), 40)
    assert ends.max() > 60
    batch = world.episodes(forward, EpisodeBatch(episodes=3, horizon=50, gamma=GAMMA))
    assert batch.lengths.tolist() == [50, 50, 50]


def test_minigrid_keeps_its_own_clock_outside():
    pytest.importorskip("minigrid")
    world = GymWorld("MiniGrid-Empty-5x5-v0", cells=MiniGridCells(), seed=1, actions=[0, 1])
    batch = world.episodes(uniform(world), EpisodeBatch(episodes=1, horizon=250, gamma=GAMMA))
    assert batch.lengths.tolist() == [250]  # past its max_steps of 100
    # It pays 1 - 0.9 * steps / max_steps: those of the roll-in are not among them.
    world = GymWorld("MiniGrid-Empty-5x5-v0", cells=MiniGridCells(), seed=1, actions=[0, 1, 2])
    reset = RollIn.from_start().then(Fixed(lambda seen: 0), 0.9)  # turning on the spot
    grid = world._environments.env.unwrapped

    def plan(seen):
        east, south = grid.agent_pos[0] < 3, grid.agent_pos[0] == 3
        wanted = 0 if east else 1
        assert east or south
        return 2 if grid.agent_dir == wanted else 1

    batch = world.episodes(Fixed(plan), EpisodeBatch(episodes=20, horizon=20, gamma=GAMMA, reset=reset))
    paid = batch.returns / GAMMA ** (batch.lengths - 1)
    np.testing.assert_allclose(paid, 1.0 - 0.9 * batch.lengths / 100)
    assert batch.samples > batch.lengths.sum()
    assert len(set(batch.lengths.tolist())) > 1


def test_a_terminated_walk_stays_where_it_ended():
    world = GymWorld(Counting(Corridor(4)), cells=GridCells(4, 0.0, 4.0), seed=1)
    forward = np.zeros((4, 2))
    forward[:, 1] = 1.0
    walks = RollIn.from_start().then(forward, 0.999).then(uniform(world), 0.9)
    assert (world.walk(walks, 30) == 3).mean() > 0.9
    paid = np.zeros((4, 2))
    paid[3] = 1.0
    batch = world.episodes(forward, EpisodeBatch(episodes=2, horizon=20, gamma=GAMMA, reward=Reward(paid)))
    np.testing.assert_allclose(batch.returns, GAMMA**3 / (1 - GAMMA))
    assert batch.lengths.tolist() == [3, 3]


def test_an_episode_cannot_begin_where_it_has_ended():
    world = GymWorld(Counting(Corridor(4)), cells=GridCells(4, 0.0, 4.0), seed=1)
    walks = RollIn.from_start().then(uniform(world), 0.9)
    batch = world.episodes(uniform(world), EpisodeBatch(episodes=50, horizon=5, gamma=GAMMA, reset=walks))
    assert (batch.lengths > 0).all()
    assert world._environments.env.resets > 50  # roll-ins that ended were made again


def test_nowhere_to_start_is_said(monkeypatch):
    monkeypatch.setattr(rollouts, "MAX_FAILED_ROLL_INS", 20)
    world = GymWorld(Corridor(2), cells=GridCells(2, 0.0, 2.0), seed=1)
    forward = np.zeros((2, 2))
    forward[:, 1] = 1.0
    sure = RollIn.from_start().then(forward, 0.9999999)
    for call in (
        lambda: world.episodes(forward, EpisodeBatch(episodes=1, horizon=5, gamma=GAMMA, reset=sure)),
        lambda: OnlineAgent(world, gamma=GAMMA, horizon=5, reset=sure).follow(forward, max_samples=500),
    ):
        with pytest.raises(ValueError, match="20 roll-ins"):
            call()


@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_continuous_actions_by_bins(name):
    world = GymWorld(name, cells=None, actions=5, seed=1)
    assert world.num_actions == 5
    assert world.discretisation.action_set.choices[0] == world.make_environment().action_space.low
    batch = world.episodes(uniform(world), EpisodeBatch(episodes=2, horizon=30, gamma=GAMMA))
    assert batch.weight.sum() == 60


def test_quantiles_are_found_in_a_warm_up_that_is_counted():
    counter = counting("CartPole-v1")
    cells = QuantileCells(3, warm_up=700)
    world = GymWorld(counter, cells=cells, seed=2)
    assert world.samples == counter.steps == 700
    assert world.num_states == 81
    assert not cells.fitted  # the user's own is left as it was
    again = GymWorld("CartPole-v1", cells=cells, seed=2)
    assert again.discretisation.cells.description() == world.discretisation.cells.description()
    visits = visit(world, uniform(world), gamma=0.95, count=200)
    assert (visits > 0).sum() > 20
    position = world.position()
    again.restore(position)
    assert again.samples == world.samples == counter.steps


def test_quantiles_for_a_vector_come_from_a_world_that_has_had_a_warm_up():
    def vector():
        disabled = gymnasium.vector.AutoresetMode.DISABLED
        return gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=disabled)

    with pytest.raises(CellError, match="warm-up"):
        GymWorld(vector(), cells=QuantileCells(3))
    fitted = GymWorld("CartPole-v1", cells=QuantileCells(3, warm_up=50)).discretisation.cells
    world = GymWorld(vector(), cells=fitted)
    assert (world.num_states, world.samples) == (fitted.count, 0)
    side_by_side = GymWorld("CartPole-v1", cells=QuantileCells(3, warm_up=50), num_envs=2)
    assert side_by_side.discretisation.cells.description() == fitted.description()
    assert side_by_side.samples == 50


def test_several_discrete_actions_make_one_action_set():
    class Levers(Corridor):
        def __init__(self):
            super().__init__()
            self.action_space = gymnasium.spaces.MultiDiscrete([2, 3])

        def step(self, action):
            assert self.action_space.contains(action)
            return super().step(int(action[0] == 1 and action[1] == 2))

    for num_envs in (1, 2):
        world = GymWorld(Levers, cells=GridCells(6, 0.0, 6.0), num_envs=num_envs)
        assert world.num_actions == 6
        both_levers = np.zeros((6, 6))
        both_levers[:, 5] = 1.0
        assert world.episodes(both_levers, EpisodeBatch(episodes=2, horizon=9, gamma=GAMMA)).lengths.tolist() == [5, 5]


def test_worlds_are_told_apart_by_what_their_environment_was_made_with():
    def identity(**arguments):
        return GymWorld(gymnasium.make("FrozenLake-v1", disable_env_checker=True, **arguments)).identity()

    assert identity() == identity()
    assert identity(is_slippery=False)["digest"] != identity()["digest"]
    assert identity()["discretisation"]["environment"] == "FrozenLake-v1"


def test_functions_make_cells_of_anything():
    world = GymWorld("Blackjack-v1", cells=FunctionCells(lambda seen: int(seen[0]), 40), seed=1)
    counts = visit(world, uniform(world), gamma=0.8, count=200)
    assert counts.sum() == 200
    assert counts[:4].sum() == 0  # no hand is worth less than four


def test_minigrid_door_is_found_by_its_cells():
    pytest.importorskip("minigrid")

    class OneLayout(gymnasium.Wrapper):
        def reset(self, *, seed=None, options=None):
            return self.env.reset(seed=5)

    def make():
        return OneLayout(gymnasium.make("MiniGrid-DoorKey-5x5-v0", disable_env_checker=True))

    world = GymWorld(make, cells=MiniGridCells(2_000), actions=[0, 1, 2, 3, 5], seed=1)
    visit(world, uniform(world), gamma=0.99, count=60)
    assert 20 < len(world.discretisation.cells.discovered()) < 300
