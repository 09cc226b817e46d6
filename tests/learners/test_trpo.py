"""The natural step: its direction against dense linear algebra, its size against KL computed afresh in NumPy."""

import numpy as np
import pytest
from random_mdps import random_mdp

from curious_explorer import TRPO, TabularWorld
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.learners import trpo
from curious_explorer.learners.actor_critic import LEAST_LOGIT
from curious_explorer.learners.trpo import ACCEPTED, NO_SIGNAL, NOT_FINITE, natural_step

ROUNDING = 1e-9
"""How far, relative to it, a divergence may be from its limit because it was computed in another way."""
BATCHES = 300


def log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def mean_kl(old_logits, new_logits, weight):
    """sum_s w(s) KL(old || new), with w the batch's state frequencies."""
    frequency = weight.sum(axis=1) / weight.sum()
    old, new = log_softmax(old_logits), log_softmax(new_logits)
    return float(frequency @ (np.exp(old) * (old - new)).sum(axis=1))


def mean_advantages(weight, advantage_sum):
    return np.divide(advantage_sum, weight, out=np.zeros_like(weight), where=weight > 0)


def surrogate(policy, weight, advantage_sum):
    """sum_s w(s) sum_a policy(a|s) A(s, a)."""
    frequency = weight.sum(axis=1) / weight.sum()
    return float(frequency @ (policy * mean_advantages(weight, advantage_sum)).sum(axis=1))


def random_batch(seed):
    """Logits, and the statistics that a batch of steps under their policy could have left; some actions untried."""
    random = np.random.default_rng(seed)
    shape = (int(random.integers(1, 9)), int(random.integers(2, 6)))
    logits = random.normal(size=shape) * random.choice([0.1, 1.0, 5.0, 30.0, 300.0])
    logits -= logits.max(axis=1, keepdims=True)
    policy = np.exp(log_softmax(logits))
    visits = random.integers(0, 50, size=shape[0])
    visits[random.integers(shape[0])] += 1
    weight = np.array([random.multinomial(n, row / row.sum()) for n, row in zip(visits, policy, strict=True)], float)
    advantage_sum = weight * random.normal(size=shape) * random.choice([1e-6, 1.0, 1e3])
    return logits, policy, weight, advantage_sum, float(random.choice([1e-4, 0.01, 0.05, 1.0]))


@pytest.mark.parametrize("seed", range(BATCHES))
def test_a_random_step_stays_inside_the_trust_region(seed):
    logits, policy, weight, advantage_sum, max_kl = random_batch(seed)
    old_logits, old_policy = logits.copy(), policy.copy()
    verdict, divergence = natural_step(logits, policy, weight, advantage_sum, max_kl)
    if verdict != ACCEPTED:
        assert verdict == NO_SIGNAL
        assert np.array_equal(logits, old_logits)
        assert np.array_equal(policy, old_policy)
        return
    actual = mean_kl(old_logits, logits, weight)
    assert actual <= max_kl * (1 + ROUNDING)
    assert actual <= divergence * (1 + 1e-6) + 1e-12
    if logits.min() > LEAST_LOGIT:  # where a logit is stopped at its floor, the policy moves less than was reckoned
        assert actual == pytest.approx(divergence, rel=1e-6, abs=1e-12)
    assert np.abs(policy - np.exp(log_softmax(logits))).max() < 1e-12
    before = surrogate(old_policy, weight, advantage_sum)
    assert surrogate(policy, weight, advantage_sum) >= before - 1e-12 * (1e-3 + abs(before))
    assert np.isfinite(logits).all()


@pytest.mark.parametrize("seed", range(50))
def test_the_step_is_as_long_as_the_trust_region_allows(seed):
    logits, policy, weight, advantage_sum, _ = random_batch(seed)
    logits = np.clip(logits, -5.0, 0.0)
    policy = np.exp(log_softmax(logits))
    old = logits.copy()
    verdict, _ = natural_step(logits, policy, weight, advantage_sum, 0.01)
    if verdict == ACCEPTED:
        furthest = np.abs(logits - old).max()
        assert mean_kl(old, logits, weight) > 0.01 * 0.999 or furthest >= 350.0  # as good as deterministic


def test_most_random_batches_carry_a_signal():
    verdicts = [natural_step(*random_batch(seed))[0] for seed in range(BATCHES)]
    assert verdicts.count(ACCEPTED) > 0.8 * BATCHES


@pytest.mark.parametrize("seed", range(30))
def test_the_direction_solves_the_fisher_system(seed):
    """Dense: F = sum_s w(s) (diag pi - pi pi^T), g = the surrogate's gradient; the step is parallel to F^+ g."""
    random = np.random.default_rng(seed)
    num_states, num_actions = int(random.integers(1, 6)), int(random.integers(2, 5))
    logits = random.normal(size=(num_states, num_actions))
    policy = np.exp(log_softmax(logits))
    weight = random.integers(1, 30, size=logits.shape).astype(float)
    advantage_sum = weight * random.normal(size=logits.shape)
    frequency = weight.sum(axis=1) / weight.sum()
    advantage = advantage_sum / weight
    size = num_states * num_actions
    fisher, gradient = np.zeros((size, size)), np.zeros(size)
    for state in range(num_states):
        block = slice(state * num_actions, (state + 1) * num_actions)
        covariance = np.diag(policy[state]) - np.outer(policy[state], policy[state])
        fisher[block, block] = frequency[state] * covariance
        gradient[block] = frequency[state] * covariance @ advantage[state]
    natural = np.linalg.lstsq(fisher, gradient, rcond=1e-12)[0].reshape(logits.shape)
    natural -= natural.mean(axis=1, keepdims=True)
    new = logits.copy()
    verdict, _ = natural_step(new, policy, weight, advantage_sum, 0.02)
    assert verdict == ACCEPTED
    moved = new - logits
    moved -= moved.mean(axis=1, keepdims=True)  # logits are defined up to a constant in each state
    step = float((moved * natural).sum() / (natural**2).sum())
    assert step > 0.0
    assert moved == pytest.approx(step * natural, abs=1e-8 * np.abs(moved).max() + 1e-12)


def test_no_signal_keeps_the_old_parameters():
    logits = np.array([[0.0, -1.0, -2.0], [0.0, 0.0, 0.0]])
    policy = np.exp(log_softmax(logits))
    weight = np.array([[3.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
    for advantage_sum in (np.zeros((2, 3)), 0.1 * weight, weight / 3.0):  # nothing, or the same for every action
        kept = logits.copy(), policy.copy()
        assert natural_step(logits, policy, weight, advantage_sum, 0.05) == (NO_SIGNAL, 0.0)
        assert np.array_equal(logits, kept[0])
        assert np.array_equal(policy, kept[1])
    assert natural_step(logits, policy, np.zeros((2, 3)), np.zeros((2, 3)), 0.05)[0] == NO_SIGNAL  # an empty batch


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e-150, 1e-5, 1.0])
@pytest.mark.parametrize("max_kl", [0.0, 5e-324, 1e-300, 1e-100, 1e-17, 1e-15, 0.05])
def test_the_search_ends_for_signals_and_trust_regions_of_any_size(scale, max_kl):
    for seed in range(20):
        logits, policy, weight, advantage_sum, _ = random_batch(seed)
        old_logits, old_policy = logits.copy(), policy.copy()
        verdict, divergence = natural_step(logits, policy, weight, scale * advantage_sum, max_kl)
        if verdict == ACCEPTED:
            assert divergence <= max_kl
        else:
            assert verdict == NO_SIGNAL
            assert np.array_equal(logits, old_logits)
            assert np.array_equal(policy, old_policy)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_advantages_that_are_not_finite_keep_the_old_parameters(poison):
    logits, policy = np.zeros((2, 3)), np.full((2, 3), 1 / 3)
    advantage_sum = np.array([[1.0, -1.0, 0.0], [0.0, poison, 0.0]])
    verdict, _ = natural_step(logits, policy, np.ones((2, 3)), advantage_sum, 0.05)
    assert verdict == NOT_FINITE
    assert not logits.any()
    assert (policy == 1 / 3).all()


@pytest.mark.parametrize("low", [-30.0, -700.0, -750.0, -5000.0])
def test_nearly_deterministic_policies_do_not_break_it(low):
    """An action with a probability that underflows comes back only as far as the trust region allows."""
    logits = np.array([[0.0, low], [0.0, 0.0]])
    policy = np.exp(log_softmax(logits))
    weight = np.array([[50.0, 0.0], [1e-9, 1e-9]])
    advantage_sum = np.array([[-50.0, 0.0], [1e-9, -1e-9]])  # the only action tried is bad, which speaks for the other
    for _ in range(20):
        old = logits.copy()
        verdict, _ = natural_step(logits, policy, weight, advantage_sum, 0.05)
        assert np.isfinite(logits).all()
        assert np.isfinite(policy).all()
        assert mean_kl(old, logits, weight) <= 0.05 * (1 + ROUNDING)
        assert verdict in (ACCEPTED, NO_SIGNAL)


def test_a_step_to_certainty_can_be_undone():
    """One rarely seen state cannot use up the trust region; its logits stay finite, and contrary news turn it round."""
    logits, policy = np.zeros((2, 2)), np.full((2, 2), 0.5)
    weight = np.array([[1e4, 1e4], [1.0, 1.0]])
    news = np.array([[0.0, 0.0], [1.0, -1.0]])
    assert natural_step(logits, policy, weight, news, 0.05)[0] == ACCEPTED
    assert policy[1, 0] > 1 - 1e-12
    for _ in range(4):  # again and again, so that nothing is left of the other action
        natural_step(logits, policy, weight, news, 0.05)
    for _ in range(4):
        natural_step(logits, policy, np.array([[1e4, 1e4], [2.0, 0.0]]), np.array([[0.0, 0.0], [-2.0, 0.0]]), 0.05)
    assert policy[1, 1] > 0.9


def watched_runs():
    yield crossroad_traps(10), 0.95, TRPO(updates=40, episodes=20)
    yield combination_lock(6), 0.95, TRPO(updates=40, episodes=20, max_kl=0.5)
    yield crossroad_traps(4), 0.9, TRPO(updates=40, episodes=10, max_kl=1e-3)
    for seed in range(10):
        yield random_mdp(seed, num_actions=3), 0.9, TRPO(updates=30, episodes=10)


def test_memory_shrinks_what_was_tried_seldom():
    # The same mean advantage, tried once in state 0 and a hundred times in state 1.
    logits, policy = np.zeros((2, 2)), np.full((2, 2), 0.5)
    weight, advantage_sum = np.array([[1.0, 0.0], [100.0, 0.0]]), np.array([[1.0, 0.0], [100.0, 0.0]])
    plain, shrunken = logits.copy(), logits.copy()
    natural_step(plain, policy.copy(), weight, advantage_sum, 0.05)
    natural_step(shrunken, policy.copy(), weight, advantage_sum, 0.05, 10.0)
    moved, moved_less = (np.ptp(table, axis=1) for table in (plain, shrunken))
    assert moved[0] == pytest.approx(moved[1])
    assert moved_less[0] / moved_less[1] == pytest.approx((1 / 11) / (100 / 110))


@pytest.mark.parametrize(("mdp", "gamma", "optimizer"), list(watched_runs()))
def test_no_update_of_a_full_run_leaves_the_trust_region(mdp, gamma, optimizer, monkeypatch):
    divergences = []

    def watched(logits, policy, weight, advantage_sum, max_kl, memory):
        old = logits.copy()
        shrunken = advantage_sum * weight / np.maximum(weight + memory, 1e-300)  # its mean is that of the step
        before = surrogate(policy, weight, shrunken)
        answer = natural_step(logits, policy, weight, advantage_sum, max_kl, memory)
        divergences.append(mean_kl(old, logits, weight))
        assert surrogate(policy, weight, shrunken) >= before - 1e-12 * (1 + abs(before))
        return answer

    monkeypatch.setattr(trpo, "natural_step", watched)
    result = optimizer(TabularWorld(mdp, seed=1), None, gamma=gamma)
    assert len(divergences) == optimizer.updates == result.accepted + sum(result.rejected.values())
    assert max(divergences) <= optimizer.max_kl * (1 + ROUNDING)
    assert result.accepted == 0 or max(divergences) > 0.0
