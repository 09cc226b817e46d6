"""What every world promises, asked of all of them: a new world is tested by one line in `WORLDS`."""

import gymnasium
import numpy as np
import pytest
from proxy_world import Proxy

from curious_explorer import TRPO, FiniteMDP, GymWorld, ModelBased, TabularWorld, explore, improve, visit
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.learners.online import OnlineAgent, QRule, QTable
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward, Step, World, check_world
from curious_explorer.worlds.wrappers import RecordingWorld, SeenStates, WorldWrapper

GAMMA = 0.9


class Corridor(World):
    """The example of `worlds.world`: five places in a row; the last one pays and ends the episode."""

    num_states, num_actions = 5, 2

    def __init__(self, seed=0):
        self.seed, self.samples = seed, 0
        self._random, self._place = np.random.default_rng(seed), 0

    def identity(self):
        return {"kind": "corridor", "num_states": 5, "num_actions": 2, "seed": self.seed}

    def restart(self):
        self._place = 0
        return self._place

    def step(self, action):
        self.samples += 1
        if self._random.random() < 0.9:
            self._place = max(0, self._place + (1 if action == 1 else -1))
        return Step(self._place, float(self._place == 4), terminated=self._place == 4)


def corridor_mdp():
    """The same as a table: what the corridor's statistics are compared with."""
    transitions, rewards = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    for place in range(4):
        for action, after in ((0, max(0, place - 1)), (1, place + 1)):
            transitions[place, action, after] += 0.9
            transitions[place, action, place] += 0.1
    rewards[3, 1, 4] = 1.0
    return FiniteMDP(transitions, rewards, 0, terminal=[4])


LAKE = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
PAYING_END = FiniteMDP(
    np.array([[[0.5, 0.5], [0.9, 0.1]], [[0, 1.0], [0, 1.0]]]), [[0, 0], [0.5, 0.5]], 0, terminal=[1]
)
WORLDS = {
    "tabular": (lambda seed: TabularWorld(crossroad_traps(3), seed=seed), crossroad_traps(3)),
    "tabular, an end that pays": (lambda seed: TabularWorld(PAYING_END, seed=seed), PAYING_END),
    "gym": (lambda seed: GymWorld("FrozenLake-v1", seed=seed), FiniteMDP.from_gymnasium(LAKE)),
    "a world of 20 lines": (Corridor, corridor_mdp()),
    "the contract alone": (lambda seed: Proxy(TabularWorld(combination_lock(3), seed=seed)), combination_lock(3)),
    "wrapped": (lambda seed: WorldWrapper(Corridor(seed)), corridor_mdp()),
    "recorded": (lambda seed: RecordingWorld(TabularWorld(combination_lock(3), seed=seed)), combination_lock(3)),
    "states seen": (lambda seed: SeenStates(GymWorld("FrozenLake-v1", seed=seed)), FiniteMDP.from_gymnasium(LAKE)),
    "plain steps": (lambda seed: WorldWrapper(TabularWorld(PAYING_END, seed=seed)), PAYING_END),
}
WITHOUT_POSITION = {"a world of 20 lines", "wrapped"}
every_world = pytest.mark.parametrize("name", WORLDS)


def make(name, seed=1):
    build, mdp = WORLDS[name]
    return build(seed), mdp


def policy_of(mdp, seed=3):
    return np.random.default_rng(seed).dirichlet(np.ones(mdp.num_actions), size=mdp.num_states)


def roll_in_of(mdp):
    """Half the start, half where a policy stops."""
    return RollIn.mixture([policy_of(mdp, 8)], 0.6, [0.5, 0.5], [(0, 0), (0, 1)])


@every_world
def test_sizes_and_identity(name):
    world, mdp = make(name)
    check_world(world)
    assert (world.num_states, world.num_actions) == (mdp.num_states, mdp.num_actions)
    assert world.samples == 0
    assert world.identity() == make(name)[0].identity()


@every_world
def test_single_steps_follow_the_model_and_are_counted(name):
    world, mdp = make(name)
    dense, taken = mdp.dense_transitions(), 0
    for _ in range(20):
        state = world.restart()
        assert mdp.start[state] > 0.0
        for _ in range(50):
            action = taken % mdp.num_actions
            step = world.step(action)
            taken += 1
            assert dense[state, action, step.state] > 0.0
            assert step.terminated == mdp.terminal[step.state]
            assert step.end_reward == (mdp.rewards[step.state].mean() if step.terminated else 0.0)
            state = step.state
            if step.terminated:
                break
    assert world.samples == taken


@every_world
def test_begin_reaches_states_that_are_not_terminal_and_keeps_to_its_samples(name):
    world, mdp = make(name)
    for most in (0, 1, 2, 50):
        before = world.samples
        state = world.begin(roll_in_of(mdp), max_samples=most)
        assert world.samples - before <= most
        assert state is not None or world.samples - before == most
    for _ in range(30):
        assert not mdp.terminal[world.begin(roll_in_of(mdp))]


@every_world
def test_walks_end_where_the_model_says(name):
    world, mdp = make(name)
    tabular = TabularWorld(mdp, seed=9)
    ours, theirs = (visit(w, policy_of(mdp), gamma=0.8, count=n) / n for w, n in ((world, 2_000), (tabular, 200_000)))
    assert ours.sum() == pytest.approx(1.0)
    assert np.abs(ours - theirs).max() < 5 * 0.5 / np.sqrt(2_000)  # five standard errors at the most
    assert world.samples > 0
    assert world.walk(RollIn.from_start(), 0).shape == (0,)


@pytest.mark.parametrize("reward", ["own", "replace", "max"])
@every_world
def test_episodes_are_those_of_the_model(name, reward):
    world, mdp = make(name)
    table = np.random.default_rng(4).random((mdp.num_states, mdp.num_actions))
    given = None if reward == "own" else Reward(table, reward)
    asked = {"horizon": 12, "gamma": GAMMA, "reset": roll_in_of(mdp), "reward": given, "trace": 0.8, "record": True}
    ours = world.episodes(policy_of(mdp), EpisodeBatch(episodes=400, **asked))
    theirs = TabularWorld(mdp, seed=9).episodes(policy_of(mdp), EpisodeBatch(episodes=40_000, **asked))
    error = np.sqrt(ours.returns.var() / 400 + theirs.returns.var() / 40_000) + 1e-12
    assert abs(ours.returns.mean() - theirs.returns.mean()) < 5 * error
    assert ours.samples == world.samples >= ours.lengths.sum() == ours.weight.sum() == ours.seen.times.sum()
    assert ours.occupancy.sum() == pytest.approx(400)
    assert (mdp.dense_transitions()[ours.seen.state, ours.seen.action, ours.seen.next_state] > 0).all()


@pytest.mark.parametrize("most", [0, 1, 7, 50])
@every_world
def test_samples_are_never_exceeded(name, most):
    world, mdp = make(name)
    batch = world.episodes(
        policy_of(mdp), EpisodeBatch(episodes=1_000, horizon=9, gamma=GAMMA, reset=roll_in_of(mdp), max_samples=most)
    )
    assert batch.samples == world.samples == most
    agent = OnlineAgent(world, gamma=GAMMA, horizon=9, reset=roll_in_of(mdp))
    assert agent.follow(policy_of(mdp), max_samples=most).samples == world.samples - most == most


@every_world
def test_a_seed_decides_and_calls_differ(name):
    def results(seed):
        world, mdp = make(name, seed)
        walks = roll_in_of(mdp).then(policy_of(mdp), 0.8)
        walked = [world.walk(walks, 40).tolist() for _ in range(2)]
        agent = OnlineAgent(world, gamma=GAMMA, horizon=9)
        return walked, agent.follow(policy_of(mdp), max_samples=50).seen.times.tolist()

    one, two, other = results(4), results(4), results(5)
    assert one == two
    assert one != other
    assert one[0][0] != one[0][1]


@every_world
def test_a_position_is_gone_back_to_exactly_or_refused(name):
    world, mdp = make(name)
    walks = RollIn.from_start().then(policy_of(mdp), 0.8)
    world.walk(walks, 5)
    if name in WITHOUT_POSITION:
        with pytest.raises(NotImplementedError, match="position"):
            world.position()
        with pytest.raises(NotImplementedError, match="restore"):
            world.restore({})
        return
    position = world.position()
    fresh = make(name)[0]
    fresh.restore(position)
    assert fresh.samples == world.samples
    assert fresh.walk(walks, 20).tolist() == world.walk(walks, 20).tolist()


@every_world
def test_q_learning_counts_what_it_tries(name):
    world, mdp = make(name)
    shape = (mdp.num_states, mdp.num_actions)
    table = QTable(np.ones(shape), np.ones(shape), np.zeros(shape, dtype=np.int64))
    agent = OnlineAgent(world, gamma=GAMMA, horizon=20)
    progress = agent.learn_q(table, QRule(epsilon=0.3, rate_horizon=5.0, least_rate=0.1), max_samples=500)
    assert progress.samples == world.samples == table.tries.sum() == 500
    assert (table.values[table.tries == 0] == 1.0).all()


@every_world
def test_exploring_and_improving_work(name):
    world, _ = make(name)
    found = explore(world, TRPO(updates=5), gamma=GAMMA, rounds=2, visits=30, progress=False)
    assert found.samples == world.samples > 0
    assert found.reset_model.sample(world, 5).shape == (5,)
    before = world.samples
    learned = improve(world, ModelBased(), found.reset_model, gamma=GAMMA, budget=500, evaluation_episodes=10)
    assert learned.samples <= 500
    assert learned.samples + learned.evaluation.samples == world.samples - before


def test_policies_that_see_observations_are_refused_by_worlds_without():
    from gym_helpers import Fixed

    for world in (Corridor(), TabularWorld(corridor_mdp())):
        with pytest.raises(ValueError, match="observations"):
            world.episodes(Fixed([0]), EpisodeBatch(episodes=1, horizon=2, gamma=GAMMA))


def test_what_is_no_world_is_refused():
    class Unfinished(World):
        def identity(self):
            return {}

        def restart(self):
            return 0

        def step(self, action):
            return Step(0, 0.0, False)

    with pytest.raises(ValueError, match="num_states"):
        check_world(Unfinished())
    with pytest.raises(ValueError, match="expected a World"):
        check_world(LAKE)
