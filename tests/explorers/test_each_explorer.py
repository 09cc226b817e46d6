"""What is particular to each method, against definitions, closed forms, a linear program and simulations."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import FiniteMDP, TabularWorld, explore, solve, visit, visitation
from curious_explorer.baselines import BEB, E3, MBIE, MBIEEB, PCPG, UCBVI, UCRL2, MaxEnt, RMax
from curious_explorer.environments import combination_lock, garnet
from curious_explorer.explorers.methods import METHODS, WITHOUT_PUBLISHED
from curious_explorer.explorers.policy_cover import Cover
from curious_explorer.explorers.psrl import PSRL, posterior_sample
from curious_explorer.explorers.q_learning import EpsilonGreedyQ, UCBQLearning
from curious_explorer.learners.online import OnlineAgent, QTable
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan, problem
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import TransitionCounts
from curious_explorer.worlds.wrappers import RecordingWorld

GAMMA = 0.9
TASK = Task(GAMMA, RollIn.from_start(), None, None)


def model_of(num_states, num_actions, transitions, ends=()):
    """A model that has seen ``transitions``: {(s, a, s'): (times, mean reward)}."""
    rows = [(*key, *value) for key, value in transitions.items()]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    ended = np.zeros(num_states, dtype=np.int64)
    ended[list(ends)] = 1
    model = CountedModel(num_states, num_actions)
    model.add(TransitionCounts(*columns), ended, np.zeros(num_states))
    return model


def random_model(seed, num_states=6, num_actions=3, most_tries=8):
    """A model of random transitions, some pairs of which were never tried."""
    random = np.random.default_rng(seed)
    seen = {}
    for state in range(num_states):
        for action in range(num_actions):
            for _ in range(random.integers(most_tries)):
                key = (state, action, int(random.integers(num_states)))
                times, reward = seen.get(key, (0, round(float(random.random()), 3)))
                seen[key] = (times + 1, reward)
    return model_of(num_states, num_actions, seen)


def dense(model):
    """Frequencies as a dense (S, A, S) array; rows never tried are zero."""
    table = np.zeros((model.num_states * model.num_actions, model.num_states))
    table[model.rows.pairs, model.rows.next_states] = model.chances()
    return table.reshape(*model.shape, model.num_states)


# The model and the kernel ------------------------------------------------------------------------------------------


def test_a_model_fed_in_portions_is_the_model_of_everything():
    mdp = garnet(30, 3, 4, seed=2)
    world = RecordingWorld(TabularWorld(mdp, seed=1))
    model = CountedModel(30, 3)
    agent = OnlineAgent(world, gamma=GAMMA, horizon=20)
    for samples in (1, 2, 30, 500, 1_000):
        followed = agent.follow(mdp.uniform_policy(), max_samples=samples)
        assert model.add(*followed[:3]).sum() == followed.seen.times.sum()
    seen = world.take()
    counts = np.zeros((30, 3, 30))
    counts[seen.state, seen.action, seen.next_state] = seen.times
    assert (model.tries == counts.sum(axis=2)).all()
    np.testing.assert_allclose(dense(model) * model.tries[:, :, None], counts, atol=1e-9)
    tried = model.tries > 0
    np.testing.assert_allclose(model.rewards(None)[tried], mdp.rewards[tried], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_plans_without_optimism_are_optimal_for_the_model(seed):
    model = random_model(seed, most_tries=9)
    rows = dense(model)
    rows[model.tries == 0, 0] = 1.0  # anywhere: settled at zero below
    lost = np.zeros((7, 3, 7))
    lost[:6, :, :6] = rows
    lost[:6][model.tries == 0] = np.eye(7)[6]
    lost[6, :, 6] = 1.0
    rewards = np.vstack([model.rewards(None), np.zeros((1, 3))])
    expected = solve(FiniteMDP(lost, rewards, 0), gamma=GAMMA)
    values = np.zeros(6)
    task = problem(model, model.rewards(None), model.settled(None, model.tries == 0, worth=0.0))
    got = plan(task, GAMMA, values)
    np.testing.assert_allclose(values, expected.values[:6], atol=1e-6)
    np.testing.assert_allclose(got.policy, expected.policy[:6], atol=1e-12)
    again = values.copy()
    assert np.array_equal(plan(task, GAMMA, again).policy, got.policy)  # from where it stopped
    np.testing.assert_allclose(again, values, atol=1e-6)


def backup(task, num_states, num_actions, gamma, values):
    """One step of value iteration on a problem without radii, pair by pair."""
    q = np.array(task.settled)
    for state, action in np.argwhere(np.isnan(q)):
        entries = slice(*task.row_start[state * num_actions + action :][:2])
        ahead = task.chances[entries] @ values[task.next_states[entries]]
        ahead += task.prior[state, action] * (values.mean() - ahead)
        worth = (1.0 - gamma) * task.rewards[state, action] + gamma * ahead
        q[state, action] = min(task.cap[state, action], worth)
    return q


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_a_plan_satisfies_the_bellman_equation_wherever_it_began(seed, gamma):
    """Sweeps that look at few states and at one action must not leave a residual behind, 1e-7 being the tolerance."""
    random = np.random.default_rng(seed)
    model = random_model(seed, num_states=40, num_actions=5)
    prior = np.where(random.random(model.shape) < 0.5, 0.0, 1.0 / (1.0 + model.tries)) if seed % 2 else None
    settled = model.settled(None, unknown=model.tries == 0, worth=float(seed % 3) / 2)
    task = problem(model, random.random(model.shape), settled, prior=prior, cap=0.5 + 0.5 * random.random(model.shape))
    values = random.random(40)
    got = plan(task, gamma, values)
    np.testing.assert_allclose(got.q.max(axis=1), values, atol=1e-15)
    np.testing.assert_allclose(got.q, backup(task, 40, 5, gamma, values), rtol=0, atol=2e-7)


# UCRL2 and MBIE ----------------------------------------------------------------------------------------------------


def best_by_linear_program(frequencies, radius, values):
    """The largest p v over distributions p within an L1 ball."""
    n = len(values)
    away = np.vstack([np.hstack([np.eye(n), -np.eye(n)]), np.hstack([-np.eye(n), -np.eye(n)])])
    limits = np.concatenate([frequencies, -frequencies])
    away = np.vstack([away, np.concatenate([np.zeros(n), np.ones(n)])])
    limits = np.append(limits, radius)
    total = np.concatenate([np.ones(n), np.zeros(n)])[None]
    found = linprog(np.concatenate([-values, np.zeros(n)]), away, limits, total, [1.0], bounds=(0, None))
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("seed", range(4))
def test_the_inner_maximisation_solves_its_linear_program(seed):
    model = random_model(seed)
    random = np.random.default_rng(seed)
    rewards = random.random(model.shape)
    radius = np.where(model.tries > 0, random.random(model.shape) * 1.5, 2.0)
    values = np.ones(model.num_states)
    q = plan(problem(model, rewards, model.settled(None), radius=radius), GAMMA, values).q
    rows = dense(model)
    for state in range(model.num_states):
        for action in range(model.num_actions):
            row = rows[state, action] if model.tries[state, action] else np.full(model.num_states, 1 / 6)
            best = best_by_linear_program(row, radius[state, action], values)
            assert q[state, action] == pytest.approx((1 - GAMMA) * rewards[state, action] + GAMMA * best, abs=1e-6)


def test_ucrl2_has_its_published_radii_and_doubling_epochs():
    tries = np.array([[0.0, 1.0], [9.0, 100.0], [2.0, 4.0]])
    reward, transition = UCRL2(delta=0.1, scale=1.0).radii(tries, samples=50)
    assert reward[1, 0] == pytest.approx(math.sqrt(7 * math.log(2 * 3 * 2 * 50 / 0.1) / (2 * 9)))
    assert transition[1, 1] == pytest.approx(math.sqrt(14 * 3 * math.log(2 * 2 * 50 / 0.1) / 100))
    assert transition[0, 0] == 2.0
    scaled, _ = UCRL2(delta=0.1, scale=0.5).radii(tries, samples=50)
    np.testing.assert_allclose(scaled, 0.5 * reward)
    model = random_model(1)
    quota = UCRL2().strategy(TabularWorld(garnet(6, 3)), TASK)(model, 10).quota
    assert quota.tolist() == np.maximum(1, model.tries).tolist()


@pytest.mark.parametrize("num_states", [2, 5])
@pytest.mark.parametrize("tries", [5, 40])
def test_mbie_intervals_cover_and_half_of_them_would_not(num_states, tries):
    """Each interval misses with probability at most 0.05: Clopper-Pearson at SIGNIFICANCE on 20,000 simulations."""
    simulations, risk = 20_000, 0.05
    shape = (num_states, 2)
    mbie = MBIE(delta=risk * 2 * num_states * 2 * 7, tries=7, scale=1.0)  # so that each interval is given this risk
    random = np.random.default_rng(num_states + tries)
    n = np.full(shape, float(tries))
    counts = random.multinomial(tries, np.full(num_states, 1 / num_states), size=simulations)
    away = np.abs(counts / tries - 1 / num_states).sum(axis=1)
    paid = np.abs(random.binomial(tries, 0.5, size=simulations) / tries - 0.5)
    for distance, radius in ((away, mbie.transition_radius(n)[0, 0]), (paid, mbie.reward_radius(n)[0, 0])):
        missed = int((distance > radius).sum())
        assert stats.binomtest(missed, simulations, risk, alternative="greater").pvalue > SIGNIFICANCE
    missed = int((paid > 0.5 * mbie.reward_radius(n)[0, 0]).sum())
    assert stats.binomtest(missed, simulations, risk, alternative="greater").pvalue < SIGNIFICANCE


def test_mbie_intervals_are_the_published_ones():
    mbie = MBIE(delta=0.1, tries=50, scale=1.0)
    tries = np.full((4, 3), 25.0)
    risk = 0.1 / (2 * 4 * 3 * 50)
    assert mbie.reward_radius(tries)[0, 0] == pytest.approx(math.sqrt(math.log(2 / risk) / 50))
    assert mbie.transition_radius(tries)[0, 0] == pytest.approx(
        math.sqrt(2 * (math.log(2**4 - 2) - math.log(risk)) / 25)
    )
    assert MBIE(scale=1.0).transition_radius(np.full((5_000, 1), 1e9))[0, 0] > 0.0  # 2**5000 overflows


# Bonuses -----------------------------------------------------------------------------------------------------------


def test_bonuses_have_their_published_values():
    tries = np.array([[0.0, 4.0], [25.0, 100.0]])
    np.testing.assert_allclose(MBIEEB(beta=2.0).bonus(tries, GAMMA), [[2.0, 1.0], [0.4, 0.2]])
    published = math.sqrt(math.log(2 * 2 * 2 * 1_000 / 0.05) / 2) / (1 - GAMMA)
    assert MBIEEB(beta=None).bonus(tries, GAMMA)[0, 1] == pytest.approx(published / 2)
    np.testing.assert_allclose(BEB(beta=3.0).bonus(tries, GAMMA), [[1.5, 0.5], [3 / 27, 3 / 102]])
    assert BEB(beta=None).bonus(tries, GAMMA)[0, 1] == pytest.approx(2 / (1 - GAMMA) ** 2 / 6)
    assert UCBVI(scale=None).bonus(tries, 1_000)[0, 1] == pytest.approx(7 * math.log(5 * 4 * 1_000 / 0.05) / 2)
    np.testing.assert_allclose(UCBVI(scale=0.1).bonus(tries, 1_000), [[0.1, 0.05], [0.02, 0.01]])


def test_mbie_eb_prefers_what_was_tried_little_by_just_its_bonus():
    """Two arms that pay 0.3 and 0.3 + margin, tried 25 and 100 times: bonuses differ by beta / 5 - beta / 10."""
    for margin, best in ((0.0099, 0), (0.0101, 1)):
        model = model_of(1, 2, {(0, 0, 0): (25, 0.3), (0, 1, 0): (100, 0.3 + margin)})
        now = MBIEEB(beta=0.1).strategy(TabularWorld(garnet(1, 2, 1)), TASK)(model, 125)
        assert now.policy[0, best] == 1.0


def test_beb_plans_on_the_posterior_mean():
    model = random_model(3, most_tries=9)
    posterior = (dense(model) * model.tries[:, :, None] + 1 / 6) / (model.tries[:, :, None] + 1.0)
    rewards = 0.5 * model.rewards(None) + 0.01 / (2.0 + model.tries)  # halved, so that nothing reaches the cap
    expected = solve(FiniteMDP(posterior, rewards, 0), gamma=GAMMA)
    model.paid *= 0.5
    policy = BEB(beta=0.01).strategy(TabularWorld(garnet(6, 3)), TASK)(model, 0).policy
    np.testing.assert_allclose(policy, expected.policy, atol=1e-12)


def test_ucbvi_never_raises_a_value_and_finishes_episodes():
    mdp = combination_lock(3)
    world = TabularWorld(mdp, seed=1)
    strategy = UCBVI().strategy(world, TASK)
    model = CountedModel(mdp.num_states, mdp.num_actions)
    caps = [np.ones(model.shape)]
    agent = OnlineAgent(world, gamma=GAMMA, horizon=50)
    for _ in range(60):
        now = strategy(model, world.samples)
        assert now.finish_episode
        assert (strategy.cap <= caps[-1]).all()
        caps.append(strategy.cap)
        model.add(*agent.follow(now.policy, max_samples=1_000, max_episodes=1)[:3])
    assert caps[-1].min() < 0.5


# R-MAX and E3 ------------------------------------------------------------------------------------------------------


def test_rmax_knows_a_pair_after_m_tries():
    model = model_of(3, 2, {(0, 0, 1): (3, 0.0), (0, 1, 2): (2, 1.0), (1, 0, 1): (7, 0.0)})
    world = TabularWorld(garnet(3, 2))
    now = RMax(known_after=3).strategy(world, TASK)(model, 12)
    assert now.quota[0, 1] == 1  # one more try
    assert now.quota[1, 1] == now.quota[2, 0] == 3
    assert now.quota[0, 0] == now.quota[1, 0] > 1_000_000  # known: no reason to think again
    assert now.policy[0].tolist() == [0.0, 1.0]
    assert now.policy[2].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("m", [1, 4])
def test_rmax_tries_every_pair_that_it_can_reach_m_times(m):
    mdp = combination_lock(3)
    world = RecordingWorld(TabularWorld(mdp, seed=2))
    RMax(known_after=m)(world, None, gamma=GAMMA, budget=5_000)
    seen = world.take()
    tries = np.zeros((mdp.num_states, mdp.num_actions))
    np.add.at(tries, (seen.state, seen.action), seen.times)
    assert (tries[~mdp.terminal] >= m).all()


def test_published_m_is_out_of_reach():
    assert RMax(known_after=None).tries_needed(34, 4, 0.95) > 10**8
    assert E3(known_after=None).tries_needed(34, 4, 0.95) > 10**8
    assert RMax(known_after=7).tries_needed(34, 4, 0.95) == E3(known_after=7).tries_needed(34, 4, 0.95) == 7


@pytest.mark.parametrize("method", [RMax(known_after=None), UCBVI(scale=None)], ids=["r-max", "ucbvi"])
def test_some_published_constants_leave_a_random_walk(method):
    mdp = combination_lock(10, permute_actions=0)
    found = explore(TabularWorld(mdp, seed=0), method, gamma=0.95, samples=50_000)
    acted = np.array(found.reset_model.policies)[:, ~mdp.terminal]
    np.testing.assert_allclose(acted, 1 / mdp.num_actions)


def test_only_methods_that_do_something_have_a_published_row():
    assert not {f"{name}-published" for name in WITHOUT_PUBLISHED} & set(METHODS)
    assert set(WITHOUT_PUBLISHED) < set(METHODS)


def escape_model(tries):
    """State 0: action 0 stays and pays 0.5; action 1 leads one time in ten to state 1, which nobody knows."""
    seen = {(0, 0, 0): (tries, 0.5), (0, 1, 0): (9 * tries // 10, 0.0), (0, 1, 1): (tries // 10, 0.0)}
    return model_of(2, 2, seen | {(1, 0, 0): (2, 0.0)})


def test_e3_escapes_until_nothing_is_left_to_gain():
    chance = GAMMA * 0.1 / (1 - GAMMA * 0.9)  # U(0): try again until it works
    world = TabularWorld(garnet(2, 2))
    for epsilon, action in ((1.99 * chance, 1), (2.01 * chance, 0)):
        strategy = E3(known_after=10, epsilon=epsilon).strategy(world, TASK)
        now = strategy(escape_model(100), 0)
        assert strategy.escape[0] == pytest.approx(chance, abs=1e-6)
        assert now.policy[0, action] == 1.0


def test_e3_wanders_evenly_where_it_knows_nothing():
    strategy = E3(known_after=10).strategy(TabularWorld(garnet(2, 2)), TASK)
    now = strategy(escape_model(100), 0)
    assert now.policy[1].tolist() == [0.0, 1.0]  # tried twice and never
    assert now.quota[1].tolist() == [1, 1]
    fewer = E3(known_after=1_000).strategy(TabularWorld(garnet(2, 2)), TASK)(escape_model(100), 0)
    assert fewer.policy[0].tolist() == [0.5, 0.5]  # a hundred tries each


# PSRL --------------------------------------------------------------------------------------------------------------


def test_psrl_draws_from_the_posterior():
    """Marginals of a Dirichlet are Beta distributions: Kolmogorov-Smirnov at SIGNIFICANCE, shared by four tests."""
    model = model_of(3, 1, {(0, 0, 0): (4, 0.25), (0, 0, 2): (1, 1.0), (1, 0, 1): (2, 0.0)})
    random = np.random.default_rng(1)
    rows, pay = [], []
    for _ in range(4_000):
        drawn = posterior_sample(model, TASK, random)
        row = np.zeros(3)
        here = slice(drawn.row_start[0], drawn.row_start[1])
        row[drawn.next_states[here]] = drawn.chances[here]
        rows.append(row)
        pay.append(drawn.rewards[:2, 0])
    rows, pay = np.array(rows), np.array(pay)
    third = 1 / 3
    for drawn, law in (
        (rows[:, 0], stats.beta(4 + third, 2 - third)),
        (rows[:, 2], stats.beta(1 + third, 5 - third)),
        (pay[:, 0], stats.beta(1 + 2, 1 + 3)),  # four times 0.25 and once 1: two successes of five
        (pay[:, 1], stats.beta(1, 1 + 2)),
    ):
        assert stats.kstest(drawn, law.cdf).pvalue > SIGNIFICANCE / 4
    assert rows[:, 1].mean() == pytest.approx(third / 6, abs=4 * math.sqrt(third / 6 / 7 / 4_000))


def test_psrl_draws_unseen_states_from_a_symmetric_dirichlet():
    """Thirty states of which a row has led to one: its largest unseen share, and whose it is, against NumPy's draws."""
    model = model_of(30, 1, {(0, 0, 7): (2, 0.0)})
    random, independent = np.random.default_rng(3), np.random.default_rng(4)
    largest, owners = [], np.zeros(30)
    for _ in range(1_500):
        drawn = posterior_sample(model, TASK, random)
        row = np.zeros(30)
        here = slice(drawn.row_start[0], drawn.row_start[1])
        assert len(set(drawn.next_states[here])) == here.stop - here.start
        row[drawn.next_states[here]] = drawn.chances[here]
        assert row.sum() == pytest.approx(1.0, abs=1e-7)
        row[7] = 0.0
        largest.append(row.max())
        owners[row.argmax()] += row.max() > 0.0
    shares = independent.dirichlet(np.where(np.arange(30) == 7, 2 + 1 / 30, 1 / 30), size=1_500)
    shares[:, 7] = 0.0
    assert stats.ks_2samp(largest, shares.max(axis=1)).pvalue > SIGNIFICANCE / 2
    assert chi_square(owners, np.where(np.arange(30) == 7, 0.0, 1 / 29)) > SIGNIFICANCE / 2


def test_psrl_has_randomness_of_its_own():
    world = TabularWorld(combination_lock(3))
    model = CountedModel(world.num_states, world.num_actions)
    policies = [PSRL(seed=seed).strategy(world, TASK)(model, 0).policy for seed in (1, 1, 2)]
    assert np.array_equal(policies[0], policies[1])
    assert not np.array_equal(policies[0], policies[2])


# Q-learning --------------------------------------------------------------------------------------------------------


def coin(num_actions=1):
    """One toss ends it, and pays 0 or 1."""
    transitions, rewards = np.zeros((3, num_actions, 3)), np.zeros((3, num_actions, 3))
    transitions[0, :, 1:] = 0.5
    rewards[0, :, 2] = 1.0
    return FiniteMDP(transitions, rewards, 0, terminal=[1, 2])


def test_ucb_q_weighs_its_tries_as_published():
    """With learning rates a_n = (H+1)/(H+n), try i of n has weight a_i (1 - a_{i+1}) ... (1 - a_n)."""
    world = TabularWorld(coin(), seed=1)
    rule = UCBQLearning(rate_horizon=4.0, bonus=1e-300).rule(world, GAMMA)
    table = QTable(np.ones((3, 1)), np.ones((3, 1)), np.zeros((3, 1), dtype=np.int64))
    agent = OnlineAgent(world, gamma=GAMMA, horizon=9)
    paid = [agent.learn_q(table, rule, max_samples=1).returned for _ in range(30)]
    rates = [5.0 / (4.0 + n) for n in range(1, 31)]
    weights = [rates[i] * math.prod(1 - rate for rate in rates[i + 1 :]) for i in range(30)]
    assert sum(weights) == pytest.approx(1.0)
    assert 0 < sum(paid) < 30
    assert table.values[0, 0] == pytest.approx((1 - GAMMA) * np.dot(weights, paid))
    assert table.tries[0, 0] == 30


def test_ucb_q_adds_its_bonus_and_only_ever_lowers_its_bound():
    world = TabularWorld(coin(2), seed=1)
    rule = UCBQLearning(bonus=0.01, delta=0.1).rule(world, GAMMA)
    assert rule.rate_horizon == pytest.approx(10.0)
    table = QTable(np.ones((3, 2)), np.ones((3, 2)), np.zeros((3, 2), dtype=np.int64))
    agent = OnlineAgent(world, gamma=GAMMA, horizon=9)
    paid = agent.learn_q(table, rule, max_samples=1).returned
    tried = int(np.argmax(table.tries[0]))
    expected = (1 - GAMMA) * paid + 0.01 * math.sqrt(10 * math.log(3 * 2 / 0.1 * 2 * 3))
    assert table.values[0, tried] == pytest.approx(expected)  # the first rate is one
    for _ in range(50):
        before = table.bounds.copy()
        agent.learn_q(table, rule, max_samples=1)
        assert (table.bounds <= before).all()


def test_epsilon_falls_linearly():
    method = EpsilonGreedyQ(first_epsilon=0.9, last_epsilon=0.1, decay=0.5)
    assert [method.rule(done).epsilon for done in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([0.9, 0.5, 0.1, 0.1])


# Covers ------------------------------------------------------------------------------------------------------------


def some_cover(mdp, count=3):
    random = np.random.default_rng(4)
    policies = [random.dirichlet(np.ones(mdp.num_actions), size=mdp.num_states) for _ in range(count)]
    visited = [visitation(mdp, policy, gamma=GAMMA) for policy in policies]
    return Cover(GAMMA, policies, visited, np.full(count, 1.0 / count))


@pytest.mark.parametrize(("beta", "ridge"), [(5.0, 0.02), (8.0, 0.01), (20.0, 0.001)])
def test_pc_pg_knows_what_the_elliptical_bonus_says(beta, ridge):
    """phi Sigma^-1 phi < beta with one feature a pair and Sigma = sum_i E_{d_i, pi_i}[phi phi^T] + lambda I."""
    mdp = combination_lock(2)
    cover = some_cover(mdp)
    pairs = mdp.num_states * mdp.num_actions
    sigma = ridge * np.eye(pairs)
    for policy, d in zip(cover.policies, cover.visited, strict=True):
        for pair in range(pairs):
            phi = np.eye(pairs)[pair]
            state, action = divmod(pair, mdp.num_actions)
            sigma += d[state] * policy[state, action] * np.outer(phi, phi)
    known = np.diag(np.linalg.inv(sigma)).reshape(mdp.num_states, mdp.num_actions) < beta
    method = PCPG(known_mass=1 / beta - ridge)
    assert 0 < known.sum() < known.size
    assert (method.known(cover) == known).all()
    reward = method.round_reward(cover, TASK)
    assert (reward.table == ~known).all()
    assert reward.combine == "max"  # the extrinsic reward is kept


def test_covers_roll_in_from_their_average():
    mdp = combination_lock(3)
    cover = some_cover(mdp)
    cover.weights = np.array([0.5, 0.2, 0.3])
    ends = TabularWorld(mdp, seed=3).walk(cover.roll_in(0.25), 40_000)
    expected = 0.25 * mdp.start + 0.75 * cover.weights @ np.array(cover.visited)
    assert chi_square(np.bincount(ends, minlength=mdp.num_states), expected) > SIGNIFICANCE
    np.testing.assert_allclose(cover.state_visitation(), cover.weights @ np.array(cover.visited))


def test_maxent_pays_the_gradient_of_the_entropy():
    method = MaxEnt(sigma=0.01)
    d = np.array([0.0, 0.05, 0.15, 0.8])

    def entropy(d):
        return -np.sum((d + 0.01) * np.log(d + 0.01))

    steps = 1e-6 * np.eye(4)
    gradient = np.array([(entropy(d + step) - entropy(d - step)) / 2e-6 for step in steps])
    reward = method.entropy_reward(d)
    scale = np.log(1.01) - np.log(0.01)
    np.testing.assert_allclose(np.diff(reward) * scale, np.diff(gradient), rtol=1e-6)
    assert method.entropy_reward(np.array([0.0, 1.0])).tolist() == pytest.approx([1.0, 0.0])


def test_maxent_weighs_policies_by_frank_wolfe():
    cover = Cover(GAMMA)
    for count in range(1, 4):
        cover.policies.append(np.ones((1, 1)))
        cover.weights = MaxEnt(rate=0.2).new_weights(cover)
        assert len(cover.weights) == count
    np.testing.assert_allclose(cover.weights, [0.64, 0.16, 0.2])
    cover.weights = np.array([0.5, 0.5])
    np.testing.assert_allclose(MaxEnt().new_weights(cover), [1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("method", [PCPG(rounds=10), MaxEnt(rounds=10)], ids=["pc-pg", "maxent"])
def test_covers_go_further_than_the_uniform_policy(method):
    """Measured by visits of each policy of the cover: the end of the lock gets more of them."""
    mdp = combination_lock(6, permute_actions=3)
    world = TabularWorld(mdp, seed=2)
    cover = method.grow_cover(world, Task(GAMMA, RollIn.from_start(), None, None), 200_000)
    assert world.samples <= 200_000
    assert len(cover.policies) == method.rounds + 1
    uniform = visitation(mdp, mdp.uniform_policy(), gamma=GAMMA)
    deep = [index for index, name in enumerate(mdp.state_names) if name in ("A6", "B6")]
    assert cover.state_visitation()[deep].sum() > 5 * uniform[deep].sum()
    for policy, visited in zip(cover.policies[:2], cover.visited[:2], strict=True):
        fresh = visit(TabularWorld(mdp, seed=9), policy, gamma=GAMMA, count=50_000) / 50_000
        assert np.abs(fresh - visited).sum() < 0.1


# Settings ----------------------------------------------------------------------------------------------------------

BAD_SETTINGS = [
    (RMax, {"known_after": 0}, "known_after"),
    (E3, {"epsilon": 0.0}, "epsilon"),
    (MBIE, {"scale": -1.0}, "scale"),
    (MBIE, {"growth": -0.1}, "growth"),
    (MBIEEB, {"beta": float("nan")}, "beta"),
    (BEB, {"beta": float("inf")}, "beta"),
    (UCRL2, {"delta": 0}, "delta"),
    (PSRL, {"seed": -1}, "seed"),
    (UCBVI, {"scale": "much"}, "scale"),
    (UCBQLearning, {"rate_horizon": 0.0}, "rate_horizon"),
    (EpsilonGreedyQ, {"last_epsilon": 1.5}, "last_epsilon"),
    (PCPG, {"rounds": 0}, "rounds"),
    (PCPG, {"known_mass": -1.0}, "known_mass"),
    (MaxEnt, {"explore_share": 1.0}, "explore_share"),
    (MaxEnt, {"rate": 2.0}, "rate"),
    (RMax, {"steps": 0}, "steps"),
    (RMax, {"horizon": 0}, "horizon"),
]


@pytest.mark.parametrize(("method", "settings", "name"), BAD_SETTINGS)
def test_bad_settings_are_refused_by_name(method, settings, name):
    with pytest.raises(ValueError, match=name):
        method(**settings)
