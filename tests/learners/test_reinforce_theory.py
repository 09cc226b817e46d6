"""REINFORCE by theory: its gradient against finite differences of the exact objective, its formulas, its limits."""

import math

import numpy as np
import pytest
from random_mdps import random_mdp
from scipy import stats

from curious_explorer import FiniteMDP, Reinforce, ResetModel, TabularWorld, evaluate
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.learners.optimizer import check_task
from curious_explorer.learners.reinforce_theory import (
    TheoryReinforce,
    barrier_gradient,
    barrier_weight,
    batch_gradient,
    draw_again,
    post_process,
    softmax,
    step_size,
)
from curious_explorer.worlds.world import EpisodeBatch

SIGNIFICANCE = 1e-3
GAMMA = 0.8
TRUNCATED = 1e-6
"""How much of the value may lie beyond the horizons used here."""


def exact_value(mdp, logits, gamma=GAMMA):
    """V from the start, not normalised."""
    return float(mdp.start @ evaluate(mdp, softmax(logits), gamma=gamma)) / (1 - gamma)


def exact_objective(mdp, logits, barrier):
    return exact_value(mdp, logits) + barrier / logits.size * float(np.log(softmax(logits)).sum())


def finite_differences(function, logits, width=1e-5):
    gradient = np.zeros_like(logits)
    for place in np.ndindex(logits.shape):
        step = np.zeros_like(logits)
        step[place] = width
        gradient[place] = (function(logits + step) - function(logits - step)) / (2 * width)
    return gradient


def as_episodes_see_it(mdp):
    """Started where it is not terminal; no action is chosen in terminal states, so theirs all pay the same."""
    start = np.where(mdp.terminal, 0.0, mdp.start)
    rewards = np.where(mdp.terminal[:, None], mdp.rewards.mean(axis=1, keepdims=True), mdp.rewards)
    return mdp.with_start(start / start.sum()).with_rewards(rewards)


def z_scores(estimates, wanted, bias):
    """How many standard errors the mean of the estimates is from what is wanted, beyond a bias that is allowed."""
    mean, error = estimates.mean(axis=0), estimates.std(axis=0, ddof=1) / math.sqrt(len(estimates))
    excess = np.maximum(np.abs(mean - wanted) - bias, 0.0)
    return np.divide(excess, error, out=np.where(excess > 1e-12, np.inf, 0.0), where=error > 0)


def worst_allowed(tests):
    """Two-sided, so that all tests together pass with probability 1 - SIGNIFICANCE."""
    return stats.norm.isf(SIGNIFICANCE / tests / 2)


CASES = [as_episodes_see_it(random_mdp(seed, num_states=4, num_actions=3)) for seed in range(6)]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_whole_estimator_is_the_gradient_of_the_barrier_objective(case):
    mdp = CASES[case]
    logits = np.random.default_rng(case).normal(size=(mdp.num_states, mdp.num_actions))
    barrier = 0.3
    wanted = finite_differences(lambda theta: exact_objective(mdp, theta, barrier), logits)
    world = TabularWorld(mdp, seed=case)
    optimizer = TheoryReinforce(trajectories=200)
    task = check_task(world, None, gamma=GAMMA, reward=None, budget=None)
    update = 10**12  # with its horizon, nothing to speak of is cut off
    assert GAMMA ** (optimizer.horizon(update, GAMMA) // 2) / (1 - GAMMA) ** 2 < TRUNCATED
    policy = softmax(logits)
    estimates = np.array([optimizer.gradient(world, policy, task, update, barrier)[0] for _ in range(400)])
    scores = z_scores(estimates, wanted, TRUNCATED)
    assert scores.max() < worst_allowed(len(CASES) * logits.size)


def test_the_estimators_test_would_notice_a_missing_barrier():
    mdp = CASES[0]
    logits = np.random.default_rng(0).normal(size=(mdp.num_states, mdp.num_actions))
    wanted = finite_differences(lambda theta: exact_objective(mdp, theta, 0.3), logits)
    world = TabularWorld(mdp)
    task = check_task(world, None, gamma=GAMMA, reward=None, budget=None)
    optimizer = TheoryReinforce(trajectories=200)
    estimates = np.array([optimizer.gradient(world, softmax(logits), task, 10**12, 0.0)[0] for _ in range(400)])
    assert z_scores(estimates, wanted, TRUNCATED).max() > worst_allowed(len(CASES) * logits.size)


@pytest.mark.parametrize("baseline", ["none", "the exact values"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_practical_gradient_is_that_of_the_value(case, baseline):
    """Any baseline leaves the expectation alone; weights gamma**t make it the gradient of the discounted value."""
    mdp = CASES[case]
    logits = np.random.default_rng(case).normal(size=(mdp.num_states, mdp.num_actions))
    policy = softmax(logits)
    critic = evaluate(mdp, policy, gamma=GAMMA) / (1 - GAMMA) if baseline != "none" else None
    world = TabularWorld(mdp, seed=100 + case)
    horizon = 100
    assert GAMMA**horizon / (1 - GAMMA) ** 2 < TRUNCATED

    def estimate():
        batch = world.episodes(
            policy,
            EpisodeBatch(episodes=200, horizon=horizon, gamma=GAMMA, critic=critic, trace=1.0, weight_decay=GAMMA),
        )
        return batch_gradient(policy, batch.advantage_sum) / 200

    estimates = np.array([estimate() for _ in range(400)])
    wanted = finite_differences(lambda theta: exact_value(mdp, theta), logits)
    assert z_scores(estimates, wanted, TRUNCATED).max() < worst_allowed(2 * len(CASES) * logits.size)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_barriers_gradient_is_exact(case):
    mdp = CASES[case]
    logits = np.random.default_rng(case).normal(size=(mdp.num_states, mdp.num_actions))
    wanted = finite_differences(lambda theta: 0.3 / theta.size * float(np.log(softmax(theta)).sum()), logits)
    assert barrier_gradient(softmax(logits), 0.3) == pytest.approx(wanted, abs=1e-9)


def test_post_process_mixes_in_half_of_the_uniform_policy():
    policy = np.array([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    assert post_process(policy)[0].tolist() == [0.625, 0.125, 0.125, 0.125]
    assert post_process(policy)[1].tolist() == [0.25] * 4


def test_the_schedule_follows_the_formulas():
    gamma, num_states = 0.95, 64
    rows = Reinforce.theory(phases=5).schedule(num_states, 4, gamma)
    assert [row.updates for row in rows] == [1, 2, 4, 8, 16]
    assert len(Reinforce.theory().schedule(num_states, 4, gamma, phases=3)) == 3
    for row in rows:
        assert row.barrier == pytest.approx(0.025 / row.updates ** (1 / 6))
        smoothness = 8 * 0.95 / 0.05**3 + 2 * row.barrier / 64
        assert row.first_step == pytest.approx(1 / (2 * smoothness) / (math.sqrt(3) * math.log2(3)))
        k = row.updates - 1
        assert row.last_step == pytest.approx(1 / (2 * smoothness) / (math.sqrt(k + 3) * math.log2(k + 3)))
        assert row.last_horizon == math.ceil(2 * math.log(8 * (k + 1) / 0.05**3, 1 / 0.95) / (3 * 0.5))
    horizons = [
        math.ceil(4 / 3 * math.log(8 * (k + 1) / 0.05**3, 1 / 0.95)) for row in rows for k in range(row.updates)
    ]
    assert rows[-1].most_samples == sum(horizons)


def test_the_schedule_prints(capsys):
    Reinforce.theory(phases=3).print_schedule(64, 4, 0.95)
    printed = capsys.readouterr().out
    assert "64 states, 4 actions" in printed
    assert all(word in printed for word in ("phase", "barrier", "288"))


def test_the_first_steps_up_to_the_floor_of_b_h_are_credited():
    optimizer = TheoryReinforce(credited_share=0.25)
    assert optimizer.credited(10) == 3  # t = 0, 1, 2
    assert optimizer.credited(1) == 1
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[1.0]], 0)
    world = TabularWorld(mdp)
    task = check_task(world, None, gamma=0.5, reward=None, budget=None)
    _, batch = optimizer.gradient(world, np.ones((1, 1)), task, 0, 0.0)
    horizon = optimizer.horizon(0, 0.5)
    assert batch.lengths[0] == horizon
    assert batch.weight[0, 0] == pytest.approx(sum(0.5**t for t in range(horizon // 4 + 1)))


@pytest.mark.parametrize("gamma", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("mdp", [crossroad_traps(5), combination_lock(3)], ids=["CCT(5)", "DCL(3)"])
def test_at_the_papers_budget_it_is_inert(mdp, gamma):
    """2,400 episodes move no logit by 0.5, although the reward is met along the way."""
    moved = []

    def watch(policy, samples):
        logits = np.log(policy)
        moved.append(np.abs(logits - logits.mean(axis=1, keepdims=True)).max())

    result = Reinforce.theory(phases=12)(TabularWorld(mdp, seed=1), None, gamma=gamma, watch=watch)
    assert result.curve.returns[:2400].max() > 0.0
    assert 0.0 < max(moved[:2400]) < 0.5


def test_where_the_discount_is_small_it_learns():
    """The proven steps grow as (1 - gamma)**-3 shrinks: at gamma 0.1 a two-armed bandit is mostly solved."""
    transitions = np.zeros((1, 2, 1))
    transitions[...] = 1.0
    mdp = FiniteMDP(transitions, [[1.0, 0.0]], 0)
    policy = Reinforce.theory(phases=11)(TabularWorld(mdp, seed=1), None, gamma=0.1).policy
    assert policy[0, 0] > 0.7


def test_the_best_of_the_iterates_drawn_is_returned():
    """Every candidate is run as often as asked; the budget covers that too, and more candidates cost more."""
    mdp = crossroad_traps(2)
    few, many = (Reinforce.theory(phases=4, failure=failure) for failure in (0.5, 0.001))
    assert (few.candidates, many.candidates) == (1, 10)
    cheap, dear = (optimizer(TabularWorld(mdp), None, gamma=GAMMA) for optimizer in (few, many))
    assert cheap.curve.samples.tolist() == dear.curve.samples.tolist()
    assert dear.samples - dear.curve.samples[-1] > 5 * (cheap.samples - cheap.curve.samples[-1]) > 0


def test_each_candidate_is_uniform_over_the_iterates():
    """Chi-square over 4,000 candidates and 8 iterates."""
    random = np.random.default_rng(0)
    drawn = [np.array(-1)] * 4_000
    for number in range(8):
        drawn = draw_again(drawn, np.array(number), number + 1, random)
    assert stats.chisquare(np.bincount(drawn, minlength=8)).pvalue > SIGNIFICANCE


def test_the_choice_prefers_the_better_policy():
    mdp = crossroad_traps(2, permute_actions=None)
    world = TabularWorld(mdp)
    optimizer = Reinforce.theory(choosing_episodes=200)
    task = check_task(world, None, gamma=GAMMA, reward=None, budget=None)
    good, bad = np.full((3, 4), 0.1), np.full((3, 4), 0.25)
    good[:, 0] = 0.7
    for drawn in ([good, bad, bad], [bad, good, bad], [bad, bad, good]):
        assert optimizer._choose(world, drawn, task, None)[0] is good


def test_resets_and_settings():
    mdp = crossroad_traps(3)
    reset = ResetModel([mdp.uniform_policy()], gamma=GAMMA)
    result = Reinforce.theory(phases=3)(TabularWorld(mdp), reset, gamma=GAMMA)
    assert len(result.curve.samples) == 7
    for bad in ({"phases": 0}, {"trajectories": 0}, {"credited_share": 1.0}, {"failure": 0.0}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Reinforce.theory(**bad)
    with pytest.raises(ValueError, match="gamma"):
        Reinforce.theory().schedule(3, 4, 1.0)
    assert Reinforce.theory().horizon(5, 0.0) == 1
    assert step_size(0, barrier_weight(1, 0.0), 3, 0.0) == pytest.approx(
        1 / (2 * 2 * 0.5 / 3) / (3**0.5 * math.log2(3))
    )
