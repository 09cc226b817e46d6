"""`SB3` as an optimizer: tables in worlds of states, networks in worlds of observations, every step counted."""

import random
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from curious_explorer import (
    SB3,
    Exploration,
    FunctionCells,
    GridCells,
    GymWorld,
    HashedCells,
    ResetModel,
    RestartWrapper,
    TabularWorld,
    explore,
    improve,
)
from curious_explorer.environments import agarwal_chain, combination_lock
from curious_explorer.errors import ActionError, CheckpointError, EnvironmentFailureError, ObservationError
from curious_explorer.explorers.visits import LearningVisits
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.sb3.training_envs import TaskEnv
from curious_explorer.worlds.episodes import EpisodeBatch
from curious_explorer.worlds.world import Reward, Step, World

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

GAMMA = 0.9
DEPTH = 3
STATES = 3 * DEPTH + 4


class OneHot(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(0.0, 1.0, (int(env.observation_space.n),), dtype=np.float32)

    def observation(self, observation):
        return np.eye(self.observation_space.shape[0], dtype=np.float32)[observation]


def make_lock():
    return OneHot(gymnasium.make("curious_explorer/CombinationLock-v0", depth=DEPTH, disable_env_checker=True))


def state_of(observation):
    return int(observation.argmax())


def lock_world(seed=0):
    return GymWorld(make_lock, cells=FunctionCells(state_of, STATES), seed=seed)


def quick(**changed):
    return SB3(**({"algorithm": "ppo", "num_envs": 4, "net_arch": [16]} | changed))


def uniform_reset():
    return ResetModel([np.full((STATES, 4), 0.25)], gamma=GAMMA)


class Corridor(gymnasium.Env):
    """Ten cells in a row, left and right; the end of it terminates, and pays when it is reached."""

    observation_space = spaces.Box(0.0, 1.0, (1,), dtype=np.float32)
    action_space = spaces.Discrete(2)
    taken = 0

    def __init__(self, broken_after=None):
        self._broken_after = broken_after

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.look(), {}

    def step(self, action):
        Corridor.taken += 1
        if self._broken_after is not None and Corridor.taken > self._broken_after:
            raise OSError("the motor is stuck")
        self.place = min(max(self.place + (1 if action == 1 else -1), 0), 9)
        return self.look(), float(self.place == 9), self.place == 9, False, {}

    def look(self):
        return np.array([self.place / 9.0], dtype=np.float32)


CORRIDOR_CELLS = GridCells(10, [-0.05], [1.05])


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "trpo"])
def test_a_world_of_states_gives_a_table_near_the_optimum(algorithm):
    mdp = combination_lock(1)
    world = TabularWorld(mdp, seed=1)
    result = SB3(algorithm, net_arch=[16])(world, None, gamma=GAMMA, budget=10_000)
    assert result.policy.shape == (mdp.num_states, 4)
    assert result.samples == world.samples <= 10_000
    chain = np.einsum("sa,sat->st", result.policy, mdp.dense_transitions())
    earned = np.einsum("sa,sa->s", result.policy, mdp.rewards)
    value = np.linalg.solve(np.eye(mdp.num_states) - GAMMA * chain, (1 - GAMMA) * earned) @ mdp.start
    assert value > 0.9 * (1 - GAMMA) * GAMMA


def test_what_a_terminal_state_pays_for_ever_is_learned_for():
    """The chain's own reward is paid in its terminal state alone, which single steps do not show."""
    mdp = agarwal_chain(2)
    world = TabularWorld(mdp, seed=0)
    result = SB3("ppo", net_arch=[16])(world, None, gamma=GAMMA, budget=10_000)
    assert result.samples == world.samples <= 10_000
    chain = np.einsum("sa,sat->st", result.policy, mdp.dense_transitions())
    earned = np.einsum("sa,sa->s", result.policy, mdp.rewards)
    value = np.linalg.solve(np.eye(mdp.num_states) - GAMMA * chain, (1 - GAMMA) * earned) @ mdp.start
    assert value > 0.9 * GAMMA**3


@pytest.mark.parametrize("budget", [1, 7, 500, 1_234])
def test_a_budget_is_kept_to_the_step_and_every_step_is_counted(budget):
    Corridor.taken = 0
    world = GymWorld(Corridor, cells=CORRIDOR_CELLS)
    reset = ResetModel([np.full((10, 2), 0.5)], gamma=GAMMA)
    result = quick()(world, reset, gamma=GAMMA, budget=budget)
    assert result.samples == world.samples == Corridor.taken <= budget
    assert isinstance(result.policy, NetworkPolicy)
    tabular = TabularWorld(combination_lock(DEPTH))
    assert quick()(tabular, uniform_reset(), gamma=GAMMA, budget=budget).samples == tabular.samples <= budget


class Hop(gymnasium.Env):
    """State 0, then the end in state 1; the one step pays 9, and the end goes on paying what it is told to."""

    observation_space, action_space = spaces.Discrete(2), spaces.Discrete(2)

    def __init__(self, end_reward=0.0):
        self._end_reward = end_reward

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 1, 9.0, True, False, {"end_reward": self._end_reward}


def test_a_terminated_episode_is_paid_for_ever():
    """After the step into the terminal state come gamma, gamma**2, ... times what it pays."""
    table, for_ever = np.array([[0.5, 0.25], [1.0, 0.5]]), sum(GAMMA**t for t in range(1, 400))
    for reward, end_reward, paid in (
        (Reward(table), 0.0, 0.25 + 0.75 * for_ever),
        (Reward(table, "max"), 0.0, 9.0 + 0.75 * for_ever),
        (Reward(table, "max"), 2.0, 9.0 + 2.0 * for_ever),
        (None, 0.0, 9.0),
        (None, 2.0, 9.0 + 2.0 * for_ever),
    ):
        env = TaskEnv(Hop(end_reward), Discretisation.of_states(2, 2), reward, gamma=GAMMA, horizon=5)
        env.reset()
        _, seen, terminated, _, _ = env.step(1)
        assert terminated
        assert seen == pytest.approx((1 - GAMMA) * paid)
        assert env.finished[0].states == [0, 1]
        assert env.finished[0].returned == pytest.approx(paid)


def test_actions_without_a_number_are_paid_the_mean_and_a_horizon_truncates():
    class Slide(Corridor):
        action_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)

    discretisation = Discretisation.of(Slide(), CORRIDOR_CELLS, [np.zeros(1, np.float32), np.ones(1, np.float32)])
    reward = Reward(np.tile([0.5, 0.25], (10, 1)))
    env = TaskEnv(Slide(), discretisation, reward, gamma=GAMMA, horizon=2)
    env.reset()
    events = [env.step(np.array([0.3], np.float32)) for _ in range(2)]
    assert [event[1] for event in events] == [pytest.approx((1 - GAMMA) * 0.375)] * 2
    assert [event[2:4] for event in events] == [(False, False), (False, True)]


def test_returns_and_occupancy_are_those_of_the_worlds_own_episodes():
    """Without learning (a rate of zero) the network's policy does not change: its statistics can be measured."""
    world = lock_world()
    reward = Reward.of_states((np.arange(STATES) % 3 == 0).astype(float), 4)
    still = quick(hyperparameters={"learning_rate": 0.0, "n_steps": 500, "n_epochs": 1}, normalize_observations=False)
    result = still(world, uniform_reset(), gamma=GAMMA, reward=reward, budget=24_000)
    batch = world.episodes(
        result.policy,
        EpisodeBatch(episodes=1_000, horizon=50, gamma=GAMMA, reset=uniform_reset().roll_in, reward=reward),
    )
    expected, error = batch.returns.mean(), batch.returns.std() / np.sqrt(len(batch.returns))
    assert abs(result.curve.returns.mean() - expected) < 5.0 * error
    occupancy = batch.occupancy / batch.occupancy.sum()
    assert result.occupancy.sum() == pytest.approx(1.0)
    assert np.abs(result.occupancy - occupancy).sum() < 0.12


def test_the_same_seeds_give_the_same_network_and_each_call_another():
    first, second, other = (
        quick(seed=seed)(lock_world(), uniform_reset(), gamma=GAMMA, budget=500).policy.encode() for seed in (0, 0, 1)
    )
    assert first == second != other
    world = lock_world()
    rounds = [quick()(world, uniform_reset(), gamma=GAMMA, budget=500).policy.encode() for _ in range(2)]
    assert rounds[0] == first != rounds[1]


def test_global_generators_and_threads_are_left_as_they_were():
    torch.manual_seed(5), random.seed(5), np.random.seed(5)  # noqa: NPY002
    expected = (torch.rand(1).item(), random.random(), np.random.random())  # noqa: NPY002
    torch.manual_seed(5), random.seed(5), np.random.seed(5)  # noqa: NPY002
    threads = torch.get_num_threads()
    quick(torch_threads=threads + 1)(lock_world(), None, gamma=GAMMA, budget=100)
    assert (torch.rand(1).item(), random.random(), np.random.random()) == expected  # noqa: NPY002
    assert torch.get_num_threads() == threads


def explored(folder, rounds, world=None, **arguments):
    world = lock_world() if world is None else world
    arguments = {"gamma": GAMMA, "budget": 800, "visits": 100, "progress": False} | arguments
    return explore(world, quick(), rounds=rounds, checkpoint=folder, **arguments), world


@pytest.mark.parametrize("visits", [100, LearningVisits()])
def test_a_resumed_exploration_is_bit_for_bit_the_uninterrupted_one(tmp_path, visits):
    whole, world = explored(None, 3, visits=visits)
    explored(tmp_path / "run", 1, visits=visits)
    resumed, resumed_world = explored(tmp_path / "run", 3, visits=visits)
    assert resumed_world.samples == world.samples
    for one, other in zip(whole.rounds, resumed.rounds, strict=True):
        assert np.array_equal(one.visited, other.visited)
        assert one.learned_policy.encode() == other.learned_policy.encode()
        assert np.array_equal(one.occupancy, other.occupancy)
    loaded = Exploration.load(tmp_path / "run", cell_function=state_of)
    assert loaded.rounds[-1].learned_policy.encode() == whole.rounds[-1].learned_policy.encode()


@pytest.mark.parametrize("budget", [400, 777])
def test_watching_sees_every_policy_and_changes_nothing(budget):
    seen = []
    watched = quick()(
        TabularWorld(combination_lock(1)), None, gamma=GAMMA, budget=budget, watch=lambda *call: seen.append(call)
    )
    alone = quick()(TabularWorld(combination_lock(1)), None, gamma=GAMMA, budget=budget)
    assert np.array_equal(watched.policy, alone.policy)
    samples = [used for _, used in seen]
    assert samples == sorted(set(samples))
    assert {int(used) for used in watched.curve.samples} <= set(samples)
    assert samples[-1] == watched.samples
    assert np.array_equal(seen[-1][0], watched.policy)


def test_a_world_of_ones_own_needs_restart_and_step_alone():
    class Switch(World):
        """Two states; action 1 leads to state 1, which pays."""

        num_states, num_actions, samples = 2, 2, 0

        def identity(self):
            return {"kind": "switch"}

        def restart(self):
            return 0

        def step(self, action):
            self.samples += 1
            return Step(action, float(action), False)

    world = Switch()
    result = quick(hyperparameters={"learning_rate": 0.01})(world, None, gamma=GAMMA, budget=3_000)
    assert result.samples == world.samples <= 3_000
    assert result.policy[:, 1].min() > 0.8


def test_other_hyperparameters_are_another_exploration(tmp_path):
    explored(tmp_path / "run", 1)
    changed = quick(hyperparameters={"learning_rate": 1e-4})
    with pytest.raises(CheckpointError, match="learning_rate"):
        explore(lock_world(), changed, gamma=GAMMA, budget=800, visits=100, rounds=1, checkpoint=tmp_path / "run")


def test_exploring_improving_saving_and_restarting_go_together(tmp_path):
    exploration, world = explored(None, 3)
    model = exploration.reset_model
    assert [isinstance(policy, NetworkPolicy) for policy in model.policies] == [False, True, True, True]
    loaded = ResetModel.load(model.save(tmp_path / "model"), cell_function=state_of)
    assert [policy.encode() for policy in loaded.policies[1:]] == [policy.encode() for policy in model.policies[1:]]
    ends = [
        [state_of(env.reset(seed=seed)[0]) for seed in range(30)]
        for env in (RestartWrapper(make_lock(), model), RestartWrapper(make_lock(), loaded))
    ]
    assert ends[0] == ends[1]
    assert len(set(ends[0])) > 1  # not all of them the start
    before = world.samples
    improved = improve(world, quick(), loaded, gamma=GAMMA, budget=900, evaluation_episodes=50)
    assert world.samples - before == improved.samples + improved.evaluation.samples
    assert improved.samples <= 900


def test_cells_met_while_learning_are_discovered():
    world = GymWorld(make_lock, cells=HashedCells(100))
    quick()(world, None, gamma=GAMMA, budget=1_000)
    assert len(world.discretisation.cells.discovered()) == STATES


def test_continuous_actions_are_learned():
    class Pull(gymnasium.Env):
        """One number to hit: 0.7."""

        observation_space = spaces.Box(-1.0, 1.0, (2,), dtype=np.float32)
        action_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, dtype=np.float32), {}

        def step(self, action):
            assert self.action_space.contains(action)
            return np.zeros(2, dtype=np.float32), 1.0 - abs(float(action[0]) - 0.7), False, False, {}

    world = GymWorld(Pull, cells=GridCells(2, [-1.0, -1.0], [1.0, 1.0]))
    result = quick(horizon=10, hyperparameters={"learning_rate": 0.01})(world, None, gamma=0.5, budget=8_000)
    mean = result.policy.outputs([np.zeros(2)])[0, 0]
    assert abs(mean - 0.7) < 0.25
    assert result.curve.returns[-1] > result.curve.returns[0]


def test_an_environment_that_breaks_is_named_and_its_steps_are_counted():
    Corridor.taken = 0
    world = GymWorld(lambda: Corridor(broken_after=300), cells=CORRIDOR_CELLS)
    with pytest.raises(EnvironmentFailureError, match="the motor is stuck"):
        quick()(world, None, gamma=GAMMA, budget=1_000)
    assert world.samples >= 300


def test_bad_arguments_are_refused_before_work_begins(monkeypatch):
    for arguments, message in (
        ({"algorithm": "dqn"}, "'ppo', 'a2c', 'trpo'"),
        ({"policy": "CnnPolicy"}, "FlattenObservation"),
        ({"activation": "gelu"}, "tanh"),
        ({"num_envs": 0}, "num_envs"),
        ({"net_arch": [0]}, "net_arch"),
        ({"horizon": 0}, "horizon"),
        ({"steps": 0}, "steps"),
    ):
        with pytest.raises(ValueError, match=message):
            SB3(**arguments)
    world = lock_world()
    for hyperparameters, message in (({"n_epoch": 3}, "n_epochs"), ({"gamma": 0.5}, "gamma of the call")):
        with pytest.raises(ValueError, match=message):
            quick(hyperparameters=hyperparameters)(world, None, gamma=GAMMA)
    with pytest.raises(ValueError, match="record=False"):
        explored(None, 1, record=True)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(ValueError, match=r"\[sb3\]"):
        quick(algorithm="trpo")(world, None, gamma=GAMMA)
    assert world.samples == 0


def test_spaces_that_no_network_can_handle_are_refused():
    class Odd(Corridor):
        def __init__(self, observation_space=None, action_space=None):
            super().__init__()
            self.observation_space = observation_space or self.observation_space
            self.action_space = action_space or self.action_space

    described = GymWorld(lambda: Odd(spaces.Dict({"a": spaces.Text(3)})), cells=FunctionCells(lambda _: 0, 1))
    with pytest.raises(ObservationError, match="TransformObservation"):
        quick()(described, None, gamma=GAMMA)
    endless = spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
    world = GymWorld(
        lambda: Odd(action_space=endless),
        cells=CORRIDOR_CELLS,
        actions=[np.zeros(1, np.float32), np.ones(1, np.float32)],
    )
    with pytest.raises(ActionError, match="bounds"):
        quick()(world, None, gamma=GAMMA)


@pytest.mark.parametrize("seen", [spaces.Box(-2.0, 2.0, (3,), dtype=np.float32), spaces.Discrete(5)])
def test_rollouts_are_collected_by_the_policy_that_is_learned(seen):
    """Values and log-probabilities by NumPy are those that the gradient steps compute, and actions follow them."""
    from curious_explorer.sb3.sb3_rollouts import RolloutPolicy

    torch.manual_seed(0)
    policy = RolloutPolicy(seen, spaces.Discrete(4), lambda _: 1e-3, ortho_init=False)
    policy.set_training_mode(False)
    seen.seed(0)
    observations = torch.as_tensor(np.array([seen.sample()] * 5_000 + [seen.sample() for _ in range(50)]))
    with torch.no_grad():
        actions, values, log_probs = policy(observations)
        expected_values, expected, _ = policy.evaluate_actions(observations, actions)
        shares = policy.get_distribution(observations[:1]).distribution.probs[0].numpy()
    np.testing.assert_allclose(values, expected_values, atol=1e-5)
    np.testing.assert_allclose(log_probs, expected, atol=1e-5)
    counts = np.bincount(actions[:5_000], minlength=4)
    assert ((counts - 5_000 * shares) ** 2 / (5_000 * shares)).sum() < 16.27  # 3 degrees of freedom, significance 0.001
    policy.set_training_mode(True)  # the weights may change from here on
    assert policy._actor is None
