"""`GymWorld` is a world: distributed as the MDP behind it, counted to the step, the same after any interruption."""

import gymnasium
import numpy as np
import pytest
from gym_helpers import a_roll_in, counting, random_reset_model, table, uniform
from layouts_helpers import Signposts
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import (
    TRPO,
    FiniteMDP,
    GymWorld,
    HashedCells,
    MiniGridCells,
    ModelBased,
    TabularWorld,
    World,
    evaluate,
    explore,
    improve,
    solve,
    visit,
    visitation,
)
from curious_explorer.explorers.q_learning import EpsilonGreedyQ
from curious_explorer.explorers.rmax import RMax
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.learners.online import OnlineAgent, QRule, QTable
from curious_explorer.worlds import episode_accumulator
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

GAMMA = 0.9
TABULAR = {
    "FrozenLake-v1": {},
    "CliffWalking-v1": {},
    "curious_explorer/CombinationLock-v0": {"depth": 3},
}
# Tested together: each at SIGNIFICANCE / the number of cases, so that all pass with probability 1 - SIGNIFICANCE.
every_environment = pytest.mark.parametrize("name", TABULAR)


def both(name, seed=0, **arguments):
    """The world of an environment, its own counter of steps, and the exact model."""
    counter = counting(name, **TABULAR[name])
    return GymWorld(counter, seed=seed, **arguments), counter, FiniteMDP.from_gymnasium(counter)


@every_environment
@pytest.mark.parametrize("rolling_in", [False, True])
def test_visit_is_distributed_as_the_exact_visitation(name, rolling_in):
    world, counter, mdp = both(name, seed=5)
    reset, start = None, mdp.start
    if rolling_in:
        reset = random_reset_model(mdp, 7)
        start = reset.distribution(mdp)
    policy = table(mdp, 3)
    counts = visit(world, policy, gamma=GAMMA, count=2_000, reset=reset)
    assert chi_square(counts, visitation(mdp, policy, gamma=GAMMA, start=start / start.sum())) > SIGNIFICANCE / 6
    assert world.samples == counter.steps > 2_000


def test_the_test_above_would_notice():
    world, _, mdp = both("FrozenLake-v1")
    counts = visit(world, table(mdp, 3), gamma=GAMMA, count=2_000)
    assert chi_square(counts, visitation(mdp, table(mdp, 3), gamma=0.8)) < SIGNIFICANCE / 6


def test_walking_nowhere_costs_nothing():
    world, counter, _ = both("FrozenLake-v1")
    assert (world.walk(RollIn.from_start(), 20) == 0).all()
    assert world.samples == counter.steps == 0
    assert len(world.walk(RollIn.from_start(), 0)) == 0


@every_environment
def test_episodes_agree_in_distribution_with_the_compiled_world(name):
    world, counter, mdp = both(name, seed=2)
    policy, reset = table(mdp, 1), a_roll_in(mdp, 5)
    given = np.random.default_rng(0).random(policy.shape)
    settings = {"horizon": 12, "gamma": GAMMA, "reset": reset, "reward": Reward(given)}
    ours = world.episodes(policy, EpisodeBatch(episodes=1_000, **settings))
    theirs = TabularWorld(mdp, seed=2).episodes(policy, EpisodeBatch(episodes=20_000, **settings))
    assert len(ours.returns) == 1_000
    assert ours.samples == world.samples == counter.steps
    error = np.sqrt(ours.returns.var() / 1_000 + theirs.returns.var() / 20_000)
    assert abs(ours.returns.mean() - theirs.returns.mean()) < 4 * error  # 4 sigma: 6e-5 for each environment
    assert ours.occupancy.sum() == pytest.approx(1_000)
    np.testing.assert_allclose(ours.occupancy / 1_000, theirs.occupancy / 20_000, atol=0.05)


class Recorder(gymnasium.Wrapper):
    """Writes down every episode as it happens: [(observation, action, reward, next observation, terminated), ...]."""

    def __init__(self, env):
        super().__init__(env)
        self.episodes = []

    def reset(self, **arguments):
        self.seen, info = self.env.reset(**arguments)
        self.episodes.append([])
        return self.seen, info

    def step(self, action):
        after, reward, terminated, truncated, info = self.env.step(action)
        self.episodes[-1].append((int(self.seen), action, reward, int(after), terminated))
        self.seen = after
        return after, reward, terminated, truncated, info


@pytest.mark.parametrize("combine", ["own", "replace", "max"])
@pytest.mark.parametrize("portion", [1, 1 << 16])
def test_statistics_are_those_of_a_slow_oracle_on_the_same_trajectories(combine, portion, monkeypatch):
    monkeypatch.setattr(episode_accumulator, "STEPS_AT_ONCE", portion)
    recorder = Recorder(gymnasium.make("FrozenLake-v1", disable_env_checker=True))
    world = GymWorld(recorder, seed=3)
    shape = (world.num_states, world.num_actions)
    random = np.random.default_rng(1)
    given = None if combine == "own" else random.random(shape)
    policy, critic = table(world, 4), random.random(shape[0])
    got = world.episodes(
        policy,
        EpisodeBatch(
            episodes=40,
            horizon=9,
            gamma=GAMMA,
            reward=None if combine == "own" else Reward(given, combine),
            critic=critic,
            trace=0.7,
            weight_decay=0.8,
            credited=6,
            record=True,
        ),
    )
    advantages, weights, targets, occupancy = np.zeros(shape), np.zeros(shape), np.zeros(shape[0]), np.zeros(shape[0])
    returns, seen = [], {}
    for episode in recorder.episodes:
        paid = []
        for state, action, own, after, _ in episode:
            table_pays = own if given is None else given[state, action]
            paid.append(max(own, table_pays) if combine == "max" else table_pays)
            seen[state, action, after] = seen.get((state, action, after), 0) + 1
        end, terminated = episode[-1][3], episode[-1][4]
        for_ever = policy[end] @ (np.zeros(shape) if given is None else given)[end] / (1 - GAMMA) if terminated else 0.0
        values = [critic[step[0]] for step in episode] + [for_ever if terminated else critic[end]]
        deltas = [r + GAMMA * values[t + 1] - values[t] for t, r in enumerate(paid)]
        for t, (state, action, *_) in enumerate(episode):
            occupancy[state] += (1 - GAMMA) * GAMMA**t
            if t < 6:
                advantage = sum((GAMMA * 0.7) ** (k - t) * deltas[k] for k in range(t, len(episode)))
                advantages[state, action] += 0.8**t * advantage
                weights[state, action] += 0.8**t
                targets[state] += 0.8**t * (advantage + critic[state])
        occupancy[end] += GAMMA ** len(episode)
        returns.append(sum(GAMMA**t * r for t, r in enumerate(paid)) + GAMMA ** len(episode) * for_ever)
    np.testing.assert_allclose(got.advantage_sum, advantages, atol=1e-12)
    np.testing.assert_allclose(got.weight, weights, atol=1e-12)
    np.testing.assert_allclose(got.target_sum, targets, atol=1e-12)
    np.testing.assert_allclose(got.occupancy, occupancy, atol=1e-12)
    np.testing.assert_allclose(got.returns, returns, atol=1e-12)
    assert got.lengths.tolist() == [len(episode) for episode in recorder.episodes]
    keys = zip(got.seen.state, got.seen.action, got.seen.next_state, strict=True)
    assert dict(zip(keys, got.seen.times, strict=True)) == seen


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("most", [0, 1, 2, 7, 50, 333])
def test_max_samples_is_never_exceeded(most, num_envs):
    world = GymWorld("FrozenLake-v1", seed=1, num_envs=num_envs)
    settings = {"episodes": 1_000, "horizon": 20, "gamma": GAMMA, "reset": a_roll_in(world, 1)}
    batch = world.episodes(uniform(world), EpisodeBatch(max_samples=most, **settings))
    assert world.samples == batch.samples <= most
    assert most - batch.samples < num_envs  # and it is used up, as far as environments stepped together can
    assert batch.lengths.sum() <= batch.samples
    assert (batch.lengths > 0).all()
    if num_envs == 1:
        before = world.samples
        agent = OnlineAgent(world, gamma=GAMMA, horizon=9, reset=a_roll_in(world, 1))
        followed = agent.follow(uniform(world), max_samples=most)
        assert followed.samples == world.samples - before == most


def test_same_seed_same_results_and_calls_differ():
    def results(seed):
        world = GymWorld("FrozenLake-v1", seed=seed)
        walks = RollIn.from_start().then(uniform(world), GAMMA)
        return [world.walk(walks, 30).tolist() for _ in range(2)]

    one, two, other = results(4), results(4), results(5)
    assert one == two
    assert one[0] != other[0]
    assert one[0] != one[1]


# Step by step ------------------------------------------------------------------------------------------------------


def test_follow_tells_what_happened():
    recorder = Recorder(counting("FrozenLake-v1"))
    world = GymWorld(recorder, seed=3)
    quota = np.full((16, 4), 12)
    got = OnlineAgent(world, gamma=GAMMA, horizon=8).follow(uniform(world), max_samples=1_000, quota=quota)
    steps = [step for episode in recorder.episodes for step in episode]
    assert got.done
    assert got.samples == world.samples == len(steps)
    seen, tries = {}, np.zeros((16, 4), dtype=int)
    for state, action, _, after, _ in steps:
        seen[state, action, after] = seen.get((state, action, after), 0) + 1
        tries[state, action] += 1
    assert tries.max() == 12
    assert tries[steps[-1][0], steps[-1][1]] == 12  # it stopped with the first pair that met its quota
    columns = zip(got.seen.state, got.seen.action, got.seen.next_state, strict=True)
    assert dict(zip(columns, got.seen.times, strict=True)) == seen
    ended = [e for e in recorder.episodes if e[-1][4] or len(e) == 8]
    assert got.episodes == len(ended)
    assert all(len(episode) <= 8 for episode in recorder.episodes)
    ends = np.zeros(16, dtype=int)
    for episode in ended:
        ends[episode[-1][3]] += episode[-1][4]
    assert got.ends.tolist() == ends.tolist()
    returned = sum(sum(GAMMA**t * step[2] for t, step in enumerate(episode)) for episode in ended)
    assert got.returned == pytest.approx(returned)


def test_an_episode_goes_on_from_call_to_call_and_into_step():
    world, counter, mdp = both("curious_explorer/CombinationLock-v0", seed=1)  # every episode takes four steps
    agent = OnlineAgent(world, gamma=GAMMA, horizon=50)
    agent.follow(mdp.uniform_policy(), max_samples=1)
    got = agent.follow(mdp.uniform_policy(), max_samples=100, max_episodes=1)
    assert (got.samples, got.episodes, got.done) == (3, 0, True)  # it did not begin here
    with pytest.raises(RuntimeError, match="restart"):
        world.step(0)
    assert agent.follow(mdp.uniform_policy(), max_samples=2).samples == 2
    world.step(1)
    fresh = agent.follow(mdp.uniform_policy(), max_samples=100, max_episodes=1)
    assert (fresh.samples, fresh.episodes) == (4, 1)
    assert world.samples == counter.steps == 11


def test_single_steps_are_the_environments():
    world, counter, mdp = both("FrozenLake-v1", seed=1)
    dense = mdp.dense_transitions()
    for _ in range(30):
        state, over = world.restart(), False
        while not over:
            step = world.step(world.samples % 4)
            assert dense[state, (world.samples - 1) % 4, step.state] > 0
            state, over = step.state, step.terminated
        assert mdp.terminal[state]
    assert world.samples == counter.steps


def test_learn_q_updates_by_its_rule():
    recorder = Recorder(gymnasium.make("FrozenLake-v1", disable_env_checker=True))
    world = GymWorld(recorder, seed=2)
    rule = QRule(epsilon=0.5, rate_horizon=5.0, least_rate=0.1)
    shape = (16, 4)
    got = QTable(np.ones(shape), np.ones(shape), np.zeros(shape, dtype=np.int64))
    progress = OnlineAgent(world, gamma=GAMMA, horizon=20).learn_q(got, rule, max_samples=500)
    assert progress.samples == world.samples == 500
    values, tries = np.ones(shape), np.zeros(shape, dtype=int)
    for episode in recorder.episodes:
        for state, action, reward, after, over in episode:
            tries[state, action] += 1
            rate = max(0.1, 6.0 / (5.0 + tries[state, action]))
            ahead = 0.0 if over else values[after].max()
            values[state, action] += rate * ((1 - GAMMA) * reward + GAMMA * ahead - values[state, action])
    assert (got.tries == tries).all()
    np.testing.assert_allclose(got.values, values, rtol=1e-12)


def test_single_steps_need_one_environment():
    world = GymWorld("FrozenLake-v1", num_envs=2)
    with pytest.raises(ValueError, match="num_envs=1"):
        world.restart()


# Going on ----------------------------------------------------------------------------------------------------------


def discovering(seed=3, max_cells=200):
    return GymWorld("MountainCar-v0", cells=HashedCells(max_cells, width=[0.1, 0.01]), seed=seed)


@pytest.mark.parametrize("make", [lambda: GymWorld("FrozenLake-v1", seed=4), discovering])
def test_position_restores_exactly(make):
    world, policies = make(), None
    walks = RollIn.from_start().then(uniform(world), GAMMA)
    world.walk(walks, 20)
    position = world.position()
    fresh = make()
    fresh.restore(position)
    for _ in range(2):
        policies = [w.walk(walks, 60).tolist() for w in (world, fresh)]
        assert policies[0] == policies[1]
        assert world.position() == fresh.position()
        batches = [w.episodes(uniform(w), EpisodeBatch(episodes=5, horizon=30, gamma=GAMMA)) for w in (world, fresh)]
        assert (batches[0].occupancy == batches[1].occupancy).all()
        followed = [OnlineAgent(w, gamma=GAMMA, horizon=30).follow(uniform(w), max_samples=50) for w in (world, fresh)]
        assert all((a == b).all() for a, b in zip(followed[0].seen, followed[1].seen, strict=True))


def test_a_world_does_not_share_what_it_discovers():
    cells = HashedCells(200, width=[0.1, 0.01])
    one, two = (GymWorld("MountainCar-v0", cells=cells, seed=seed) for seed in (1, 1))
    walks = RollIn.from_start().then(uniform(one), 0.95)
    assert (one.walk(walks, 30) == two.walk(walks, 30)).all()
    assert cells.discovered() == []


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_resuming_an_exploration_is_bit_identical(tmp_path, finished):
    def run(folder=None):
        optimizer = TRPO(updates=3, episodes=5, horizon=20)
        return explore(discovering(), optimizer, gamma=GAMMA, rounds=3, visits=30, checkpoint=folder, progress=False)

    expected = run()
    run(tmp_path)
    for number in range(finished, 3):
        (tmp_path / f"round-{number:04d}.npz").unlink()
    resumed = run(tmp_path)
    assert resumed.samples == expected.samples
    for a, b in zip(resumed.rounds, expected.rounds, strict=True):
        assert (a.visited == b.visited).all()
        assert (a.learned_policy == b.learned_policy).all()
    assert resumed.reset_model.discretisation.discovered == expected.reset_model.discretisation.discovered


# The whole ---------------------------------------------------------------------------------------------------------


def test_gym_world_is_a_world():
    assert isinstance(GymWorld("FrozenLake-v1"), World)


@pytest.mark.parametrize("optimizer", [ModelBased(known_after=20), RMax(), EpsilonGreedyQ()])
def test_learners_of_all_kinds_run_on_it(optimizer):
    world, counter, mdp = both("FrozenLake-v1", seed=1)
    learned = optimizer(world, None, gamma=GAMMA, budget=3_000)
    assert world.samples == counter.steps <= 3_000
    best = mdp.start @ solve(mdp, gamma=GAMMA).values
    if not isinstance(optimizer, EpsilonGreedyQ):
        assert mdp.start @ evaluate(mdp, learned.policy, gamma=GAMMA) > 0.3 * best  # R-MAX: 0.39 to 0.93 over 20 seeds


def test_exploring_and_improving_end_to_end():
    world, counter, mdp = both("curious_explorer/CombinationLock-v0", seed=1)
    exploration = explore(world, TRPO(updates=15), gamma=GAMMA, rounds=3, visits=200, progress=False)
    assert exploration.samples == world.samples == counter.steps
    model = exploration.reset_model
    assert model.discretisation.environment == "curious_explorer/CombinationLock-v0"
    assert model.distribution(mdp).min() > 0
    trained = improve(world, TRPO(updates=25), model, gamma=GAMMA, evaluation_episodes=200)
    best = mdp.start @ solve(mdp, gamma=GAMMA).values
    assert mdp.start @ evaluate(mdp, trained.policy, gamma=GAMMA) > 0.9 * best
    assert world.samples == counter.steps


def test_a_layout_is_the_same_in_every_episode_and_time_limits_end_it_where_asked():
    def cells():
        return MiniGridCells(1_000, things=True)

    world = GymWorld("MiniGrid-DoorKey-5x5-v0", cells=cells(), layout=3, seed=1, time_limits=True)
    starts = {world.restart() for _ in range(5)}
    assert starts == {0}
    steps = [world.step(0) for _ in range(250)]
    assert [step.truncated for step in steps] == [False] * 249 + [True]
    parts = world.parts()
    assert parts is not None
    assert {"column", "row", "direction", "carried", "yellow key 1"} <= parts.keys()
    assert world.identity()["layout"] == 3
    other = GymWorld("MiniGrid-DoorKey-5x5-v0", cells=cells(), seed=1)
    assert len({other.restart() for _ in range(5)}) > 1
    assert "layout" not in other.identity()
    with pytest.raises(ValueError, match="num_envs"):
        GymWorld("MiniGrid-DoorKey-5x5-v0", cells=cells(), layout=3, num_envs=2)


def test_states_are_apart_by_layout_and_restarts_draw_one():
    world = GymWorld(Signposts, cells=HashedCells(100), layouts=[3, 4, 9], seed=1)
    starts = {world.restart() for _ in range(40)}
    assert len(starts) == 3
    assert world.identity()["layouts"] == [3, 4, 9]
    ends = world.walk(RollIn.from_start(), 60)
    assert len(set(ends.tolist())) == 3
    again = GymWorld(Signposts, cells=HashedCells(100), layouts=[3, 4, 9], seed=1)
    assert [again.restart() for _ in range(3)] == [0, 1, 0]
    stored = Discretisation.from_stored(world.stored_discretisation())
    assert stored.description() == world.stored_discretisation().description
    alone = world.opener(4)()
    alone.restart()
    assert alone.identity()["layout"] == 4
    assert alone.samples == 0
    with pytest.raises(ValueError, match="layout is 5"):
        world.opener(5)
