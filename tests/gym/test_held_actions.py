"""Actions that are held where one step changes next to nothing: every step counted, wherever they are taken."""

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer import Frontier, GymWorld, ModelBased, RestartWrapper, explore, visit
from curious_explorer.gym import ActionSet, Discretisation, GridCells
from curious_explorer.gym.agents import CellAgent


class Slow(gymnasium.Env):
    """A place in a row of ten that a step moves by a two-hundredth; the last one pays."""

    def __init__(self):
        self.observation_space = spaces.Box(0.0, 10.0, (1,))
        self.action_space = spaces.Box(-1.0, 1.0, (1,))
        self.taken, self._at = 0, 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at, self._steps = 0.0, 0
        return np.array([self._at], dtype=np.float32), {}

    def step(self, action):
        self.taken += 1
        self._steps += 1
        self._at = float(np.clip(self._at + 0.005 * action[0], 0.0, 10.0))
        goal = self._at > 1.5
        return np.array([self._at], dtype=np.float32), float(goal), goal, self._steps >= 2_000, {}


def test_a_step_that_changes_nothing_is_found_out_and_held():
    env = Slow()
    world = GymWorld(env, seed=0, time_limits=True)
    assert world.discretisation.action_set.hold > 1
    assert "each held for" in world.describe()
    assert GymWorld("MountainCar-v0", seed=0).discretisation.action_set.hold == 1
    found = Frontier().explore(world, gamma=0.99, samples=20_001)
    assert env.taken == world.samples <= 1_300 + 20_001
    assert found.first_reward is not None
    assert found.samples == world.samples - world_look(world)


def world_look(world):
    return GymWorld(Slow, seed=world.seed, time_limits=True).samples


def test_cells_that_mix_states_starve_no_others():
    """What has had two outcomes near the start is not tried again and again before what lies behind it."""
    held = ActionSet.of(spaces.Box(-1.0, 1.0, (1,))).held(7)
    for seed in (3, 7):
        world = GymWorld(lambda: Slow(), cells=GridCells(250, [0.0], [10.0]), actions=held, seed=seed)
        found = Frontier(stop_at_reward=True).explore(world, gamma=0.99, samples=18_000)
        assert found.first_reward is not None


def test_held_actions_are_stored_and_held_in_roll_ins_and_walks():
    held = ActionSet.of(spaces.Box(-1.0, 1.0, (1,))).held(7)
    cells = GridCells(250, [0.0], [10.0])
    world = GymWorld(lambda: Slow(), cells=cells, actions=held, seed=7)
    exploration = explore(world, gamma=0.99, samples=20_000)
    model = exploration.reset_model
    assert model.discretisation.description["actions"]["hold"] == 7
    wrapped = RestartWrapper(Slow(), exploration.resets_to(20))
    before, arrived = 0, 0
    for seed in range(12):
        observation, info = wrapped.reset(seed=seed)
        assert info["roll_in_steps"] == wrapped.unwrapped.taken - before
        before = wrapped.unwrapped.taken
        if observation[0] > 0.0:
            assert 0.8 <= observation[0] < 0.84
            assert info["roll_in_steps"] >= 160  # a held action is as many steps as it is held for
            arrived += 1
    assert arrived > 0
    moving = RestartWrapper(Slow(), model)  # limits of roll-ins and of episodes are counted in actions
    assert max(float(moving.reset(seed=seed)[0][0]) for seed in range(12)) > 1.0
    before = world.samples
    visit(world, np.full((250, 3), 1 / 3), gamma=0.9, count=20)
    assert world.samples > before


def test_held_episodes_keep_to_their_samples():
    world = GymWorld(
        Slow, cells=GridCells(30, [0.0], [10.0]), actions=ActionSet.of(Slow().action_space).held(7), seed=3
    )
    explore(world, ModelBased(), gamma=0.9, samples=3_000, progress=False)
    assert world.samples <= 3_000


def test_an_agent_by_cells_holds_its_actions_within_an_episode():
    actions = ActionSet.of(Slow().action_space).held(4)
    discretisation = Discretisation.of(Slow(), GridCells(2, [0.0], [2.0]), actions)
    agent = CellAgent(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), discretisation)
    low, high = np.array([0.1]), np.array([1.9])
    assert [float(agent.act(at)[0]) for at in (low, high, high, high, high, low)] == [1, 1, 1, 1, -1, -1]
    agent.begin()
    assert float(agent.act(low)[0]) == 1
