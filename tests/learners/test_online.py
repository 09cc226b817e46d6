"""Acting one step at a time, against slow Python versions on the same random numbers, and what is promised."""

import math

import numpy as np
import pytest
import sampling_oracle as oracle
from random_mdps import random_mdp, random_policy

from curious_explorer import FiniteMDP, TabularWorld
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.learners.online import OnlineAgent, QRule, QTable
from curious_explorer.worlds import alias_tables as tables
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import Reward
from curious_explorer.worlds.wrappers import RecordingWorld, SeenStates, WorldWrapper

SEED = 5
CASES = [random_mdp(seed, transition_rewards=seed % 2 == 0) for seed in range(6)]
CASES += [crossroad_traps(4), combination_lock(3)]
every_case = pytest.mark.parametrize("case", range(len(CASES)))


def roll_in_for(mdp, seed):
    """The start, or where one of two policies stops."""
    return RollIn.mixture([random_policy(mdp, seed), random_policy(mdp, seed + 1)], 0.6, [0.4, 0.3, 0.3],
                          [(0, 0), (0, 1), (1, 2)])  # fmt: skip


class SlowAgent:
    """An agent as `OnlineAgent.follow` describes it: one stream of draws for each call."""

    def __init__(self, mdp, roll_in, seed):
        self.mdp, self.roll_in, self.seed = mdp, roll_in, seed
        self.state, self.age, self.stream = None, 0, 0
        size = max((tables.geometric_size(gamma) for gamma in roll_in.gammas), default=64)
        self.tables = {
            "chains": tables.alias_table(roll_in.weights),
            "start": tables.alias_table(mdp.start, mdp.terminal),
            "stops": [tables.geometric_table(gamma, size) for gamma in roll_in.gammas],
        }

    def live(self, act, learn, *, gamma, horizon, max_samples, rewards=None, combine="replace", stop=None):
        """Act until the steps are used up or ``stop(ended)``: (samples, whole episodes, their returns, done)."""
        draws = oracle.RandomStream(oracle.stream_key(self.seed, self.stream), 0)
        mdp = self.mdp
        samples, whole, returned, ended, done = 0, 0, 0.0, 0, False
        begun, paid = False, []
        table = mdp.rewards if rewards is None else rewards
        table = np.maximum(table, mdp.rewards) if combine == "max" else table
        while samples < max_samples:
            if self.state is None:
                if stop is not None and stop(ended):
                    done = True
                    break
                while True:
                    state, steps = oracle.roll_in_by_steps(self.tables, mdp, self.roll_in, draws)
                    if samples + steps >= max_samples:  # the oracle's roll-in knows no budget: cut it here
                        samples, state = max_samples, None
                        break
                    samples += steps
                    if not mdp.terminal[state]:
                        break
                if state is None:
                    break
                self.state, self.age, begun, paid = state, 0, True, []
            state = self.state
            action, next_state, own = act(state, draws)
            given = own if rewards is None else rewards[state, action]
            given = max(given, own) if combine == "max" else given
            samples, self.age = samples + 1, self.age + 1
            paid.append(given)
            over = bool(mdp.terminal[next_state])
            after = table[next_state].mean() if over else 0.0
            met = learn(state, action, next_state, given, over, after)
            self.state = next_state
            if over or self.age >= horizon:
                self.state, self.age = None, 0
                ended += 1
                if begun:
                    whole += 1
                    returned += sum(gamma**t * r for t, r in enumerate(paid)) + gamma ** len(paid) * after / (1 - gamma)
            if met:
                done = True
                break
        self.stream += 1 + (self.state is not None)  # the library sets a stream aside for single steps
        return samples, whole, returned, done


@pytest.mark.parametrize("reward", ["own", "replace", "max"])
@every_case
def test_follow_agrees_with_its_oracle(case, reward):
    mdp = CASES[case]
    roll_in = roll_in_for(mdp, case)
    world, slow = TabularWorld(mdp, seed=SEED), SlowAgent(mdp, roll_in, SEED)
    random = np.random.default_rng(case)
    table = None if reward == "own" else random.random((mdp.num_states, mdp.num_actions))
    given = None if reward == "own" else Reward(table, reward)
    horizon = int(random.integers(3, 12))
    agent = OnlineAgent(world, gamma=0.9, horizon=horizon, reset=roll_in, reward=given)
    for call in range(12):
        policy = random_policy(mdp, 100 * case + call)
        quota = random.integers(1, 40, size=policy.shape) if call % 3 else None
        episodes = 4 if call % 4 == 3 else None
        settings = {
            "gamma": 0.9,
            "horizon": horizon,
            "max_samples": int(random.integers(1, 300)),
            "rewards": table,
            "combine": "replace" if reward == "own" else reward,
        }
        seen, ends = {}, np.zeros(mdp.num_states, dtype=int)
        tried = np.zeros(policy.shape, dtype=int)

        def act(state, draws, policy=policy):
            return oracle.step(mdp, policy, state, draws)

        def learn(state, action, next_state, given, over, after, seen=seen, ends=ends, tried=tried, quota=quota):
            seen[state, action, next_state] = seen.get((state, action, next_state), 0) + 1
            tried[state, action] += 1
            ends[next_state] += over
            return quota is not None and tried[state, action] == quota[state, action]

        samples, whole, returned, done = slow.live(
            act, learn, stop=(lambda ended: ended >= 4) if episodes else None, **settings
        )
        before = world.samples
        got = agent.follow(policy, max_samples=settings["max_samples"], quota=quota, max_episodes=episodes)
        columns = zip(got.seen.state, got.seen.action, got.seen.next_state, strict=True)
        assert dict(zip(columns, got.seen.times, strict=True)) == seen
        assert got.ends.tolist() == ends.tolist()
        assert (got.samples, got.episodes, got.done) == (samples, whole, done)
        assert world.samples == before + samples
        assert got.returned == pytest.approx(returned, rel=1e-12)
        assert (got.end_rewards == np.where(ends > 0, mdp.rewards.mean(axis=1), 0.0)).all()


RULES = {
    "epsilon": QRule(epsilon=0.3, rate_horizon=5.0, least_rate=0.1),
    "optimistic": QRule(rate_horizon=8.0, bonus=0.02, log_term=3.0, falling=True),
}


@pytest.mark.parametrize("rule", RULES)
@every_case
def test_learn_q_agrees_with_its_oracle(case, rule):
    mdp, rule = CASES[case], RULES[rule]
    shape = (mdp.num_states, mdp.num_actions)
    roll_in = roll_in_for(mdp, case)
    world, slow = TabularWorld(mdp, seed=SEED), SlowAgent(mdp, roll_in, SEED)
    ours, theirs = (QTable(np.ones(shape), np.ones(shape), np.zeros(shape, dtype=np.int64)) for _ in range(2))
    random = np.random.default_rng(case)

    def any_of(count, u):
        return int((u >> 11) * 2.0**-53 * count)

    def act(state, draws):
        row = theirs.bounds[state]
        if rule.epsilon > 0 and (draws() >> 1) < int(rule.epsilon * 2.0**63):
            action = any_of(mdp.num_actions, draws())
        else:
            ties = [a for a in range(mdp.num_actions) if row[a] == row.max()]
            action = ties[any_of(len(ties), draws()) if len(ties) > 1 else 0]
        certain = np.zeros(shape)
        certain[:, action] = 1.0
        return oracle.step(mdp, certain, state, NoActionDraw(draws))

    def learn(state, action, next_state, given, over, after):
        ahead = after if over else theirs.bounds[next_state].max()
        theirs.tries[state, action] += 1
        n = int(theirs.tries[state, action])
        rate = max(rule.least_rate, (rule.rate_horizon + 1) / (rule.rate_horizon + n))
        bonus = rule.bonus * math.sqrt((rule.log_term + math.log((n + 1) * (n + 2))) / n)
        old = theirs.values[state, action]
        theirs.values[state, action] = old + rate * ((1 - 0.9) * given + 0.9 * ahead + bonus - old)
        new = theirs.values[state, action]
        theirs.bounds[state, action] = min(theirs.bounds[state, action], new) if rule.falling else new
        return False

    agent = OnlineAgent(world, gamma=0.9, horizon=9, reset=roll_in)
    for _ in range(8):
        settings = {"gamma": 0.9, "horizon": 9, "max_samples": int(random.integers(1, 200))}
        samples, whole, returned, _ = slow.live(act, learn, **settings)
        got = agent.learn_q(ours, rule, max_samples=settings["max_samples"])
        assert (got.samples, got.episodes) == (samples, whole)
        assert got.returned == pytest.approx(returned, rel=1e-12)
        assert ours.tries.tolist() == theirs.tries.tolist()
        # Ties decide draws: both must add up in the same order, so that even the last digits agree.
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-13)
        np.testing.assert_allclose(ours.bounds, theirs.bounds, rtol=1e-13)


class NoActionDraw:
    """RandomStream for `oracle.step` under a certain policy, which would spend one on the action."""

    def __init__(self, draws):
        self._draws, self._first = draws, True

    def __call__(self):
        if self._first:
            self._first = False
            return 0
        return self._draws()


def test_steps_go_on_where_the_agent_stands():
    mdp = combination_lock(5)  # episodes of six steps
    world = TabularWorld(mdp, seed=4)
    agent = OnlineAgent(world, gamma=0.9, horizon=50)
    agent.follow(mdp.uniform_policy(), max_samples=10)
    fresh = TabularWorld(mdp, seed=4)
    fresh.restore(world.position())
    assert world.step(1) == fresh.step(1)
    assert world.position() == fresh.position()
    assert world.step(1).terminated


def test_an_episode_goes_on_from_call_to_call_unless_somebody_else_acts():
    mdp = combination_lock(5)
    world = TabularWorld(mdp, seed=1)
    agent = OnlineAgent(world, gamma=0.9, horizon=50)
    assert agent.follow(mdp.uniform_policy(), max_samples=2).samples == 2
    got = agent.follow(mdp.uniform_policy(), max_samples=100, max_episodes=1)
    assert (got.samples, got.episodes, got.done) == (4, 0, True)  # the rest of six steps; it did not begin here
    with pytest.raises(RuntimeError, match="restart"):
        world.step(0)
    assert agent.follow(mdp.uniform_policy(), max_samples=3).samples == 3
    world.step(0)
    got = agent.follow(mdp.uniform_policy(), max_samples=100, max_episodes=1)
    assert (got.samples, got.episodes) == (6, 1)


@pytest.mark.parametrize("compiled", [True, False])
def test_wrappers_see_what_was_followed_and_learned(compiled):
    mdp = combination_lock(3)
    inner = TabularWorld(mdp, seed=1) if compiled else WorldWrapper(TabularWorld(mdp, seed=1))
    recorded, seen = RecordingWorld(inner), SeenStates(inner)
    reset = RollIn.from_start().then(mdp.uniform_policy(), 0.5)
    for world in (recorded, seen):
        agent = OnlineAgent(world, gamma=0.9, horizon=50, reset=reset)
        followed = agent.follow(mdp.uniform_policy(), max_samples=300)
        shape = (mdp.num_states, mdp.num_actions)
        table = QTable(np.ones(shape), np.ones(shape), np.zeros(shape, dtype=np.int64))
        agent.learn_q(table, QRule(rate_horizon=5.0), max_samples=300)
        times = followed.seen.times.sum() + table.tries.sum()
        assert followed.samples == 300
        assert (followed.ends > 0).any()
        if world is recorded:
            assert world.take().times.sum() == times
        else:
            assert world.seen[followed.seen.state].all()
            assert world.seen[followed.ends > 0].all()
            assert world.seen[table.tries.any(axis=1)].all()


@pytest.mark.parametrize("reward", ["own", "replace", "max"])
def test_compiled_and_plain_steps_agree_in_distribution(reward):
    mdp = random_mdp(3)
    table = np.random.default_rng(1).random((mdp.num_states, mdp.num_actions))
    given = None if reward == "own" else Reward(table, reward)
    returns = []
    for world in (TabularWorld(mdp, seed=1), WorldWrapper(TabularWorld(mdp, seed=2))):
        agent = OnlineAgent(world, gamma=0.8, horizon=15, reset=roll_in_for(mdp, 3), reward=given)
        parts = [agent.follow(random_policy(mdp, 5), max_samples=10**6, max_episodes=20) for _ in range(40)]
        assert all(part.done for part in parts)
        returns.append(np.array([part.returned / part.episodes for part in parts]))
    error = np.sqrt(returns[0].var() / 40 + returns[1].var() / 40)
    assert abs(returns[0].mean() - returns[1].mean()) < 4 * error  # 4 sigma: 6e-5


BAD = {
    "policy": ({"policy": np.full((8, 4), 0.5)}, "policy"),
    "gamma": ({"gamma": 1.0}, "gamma"),
    "horizon": ({"horizon": 0}, "horizon"),
    "samples": ({"max_samples": -1}, "max_samples"),
    "quota's shape": ({"quota": np.ones((2, 2), dtype=np.int64)}, "quota"),
    "quota of zero": ({"quota": np.zeros((16, 4), dtype=np.int64)}, "quota"),
    "episodes": ({"max_episodes": 0}, "max_episodes"),
    "combine": ({"reward": Reward(np.zeros((16, 4)), "sum")}, "combine"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_before_a_step(case):
    mdp = combination_lock(4)
    world = TabularWorld(mdp)
    changes, message = BAD[case]
    follow = {"policy": mdp.uniform_policy(), "max_samples": 5}
    agent = {"gamma": 0.9, "horizon": 5}
    for name, value in changes.items():
        (agent if name in ("gamma", "horizon", "reward") else follow)[name] = value
    with pytest.raises(ValueError, match=message):
        OnlineAgent(world, **agent).follow(**follow)
    assert world.position() == {"samples": 0, "calls": 0}


def test_nowhere_to_start_is_said():
    mdp = FiniteMDP(np.ones((1, 1, 1)), np.zeros((1, 1)), 0, terminal=[0])
    with pytest.raises(ValueError, match="terminal"):
        OnlineAgent(TabularWorld(mdp), gamma=0.9, horizon=5).follow(np.ones((1, 1)), max_samples=5)
