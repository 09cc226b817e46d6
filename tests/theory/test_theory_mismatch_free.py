"""The mismatch-free guarantee on near-stationary softmax policies; the printed inequalities that fail."""

import numpy as np
import pytest
from exact_helpers import dense_chain, dense_visitation
from random_mdps import random_mdp

from curious_explorer import FiniteMDP, theory
from curious_explorer.exact import max_visitation


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def objective(mdp, logits, mu, gamma, barrier):
    """The log-barrier objective and its gradient, values not normalised, in plain NumPy."""
    policy = softmax(logits)
    num_states, num_actions = policy.shape
    chain = dense_chain(mdp, policy)
    values = np.linalg.solve(np.eye(num_states) - gamma * chain, (policy * mdp.rewards).sum(axis=1))
    q = mdp.rewards + gamma * mdp.dense_transitions() @ values
    visits = dense_visitation(mdp, policy, gamma, mu)
    slope = visits[:, None] * policy * (q - values[:, None]) / (1 - gamma)
    slope += barrier / num_states * (1 / num_actions - policy)
    return mu @ values + barrier / policy.size * np.log(policy).sum(), slope


def climb(mdp, logits, mu, gamma, barrier, steps):
    """Gradient ascent with a step that grows while it helps; yields every iterate."""
    size = 1.0
    value, slope = objective(mdp, logits, mu, gamma, barrier)
    for _ in range(steps):
        candidate = logits + size * slope
        new_value, new_slope = objective(mdp, candidate, mu, gamma, barrier)
        if new_value > value:
            logits, value, slope, size = candidate, new_value, new_slope, 1.5 * size
            yield softmax(logits), np.abs(slope).max()
        else:
            size /= 3


def test_no_near_stationary_policy_violates_the_guarantee():
    cases, tight = 0, []
    for seed in range(150):
        random = np.random.default_rng(seed)
        mdp = random_mdp(seed, num_states=int(random.integers(2, 6)), num_actions=int(random.integers(2, 4)))
        gamma = float(random.choice([0.3, 0.6, 0.9]))
        barrier = float(random.choice([0.02, 0.2, 1.0]))
        mu = random.dirichlet(np.ones(mdp.num_states))
        least = barrier / (mdp.num_states * mdp.num_actions)
        logits = random.normal(size=mdp.rewards.shape)
        near = [policy for policy, size in climb(mdp, logits, mu, gamma, barrier, 120) if size <= least]
        for policy in near[:3] + near[-2:]:
            poorly = random.random(mdp.num_states) < 0.3
            report = theory.mismatch_free(mdp, policy, mu, poorly, gamma=gamma, barrier=barrier)
            assert -1e-9 <= report.left <= report.right + 1e-9, seed
            assert report.right <= report.right_from_floor + 1e-9, seed
            # The looser form with the usual constant, when the usual assumption holds.
            if report.gradient <= least / 2:
                loose = report.mass / (1 - gamma) ** 2 + 2 * barrier / ((1 - gamma) * report.floor * mdp.num_states)
                assert report.right_from_floor <= loose + 1e-9
            cases += 1
            tight.append(report.left / report.right)
    assert cases > 400
    assert max(tight) > 0.3  # a bound that is never approached would hide a mistake


def test_the_gradient_is_that_of_the_objective():
    for seed in range(5):
        mdp = random_mdp(seed, num_states=4, num_actions=3)
        random = np.random.default_rng(seed)
        mu, logits = random.dirichlet(np.ones(4)), random.normal(size=(4, 3))
        gradient = theory.barrier_gradient(mdp, softmax(logits), mu, gamma=0.8, barrier=0.3)
        for index in np.ndindex(4, 3):
            step = np.zeros((4, 3))
            step[index] = 1e-6
            up, down = (objective(mdp, logits + sign * step, mu, 0.8, 0.3)[0] for sign in (1, -1))
            assert gradient[index] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_a_policy_far_from_stationary_is_refused():
    mdp = random_mdp(1, num_states=4, num_actions=3)
    with pytest.raises(theory.CertificateError, match="train longer"):
        theory.mismatch_free(mdp, mdp.uniform_policy(), None, [], gamma=0.9, barrier=1e-6)
    with pytest.raises(theory.CertificateError, match="expected at most lambda"):
        theory.mismatch_free_bound(4, 3, gamma=0.9, mass=0.0, floor=0.1, barrier=0.1, gradient=1.0)


def test_bound_from_numbers_alone():
    bound = theory.mismatch_free_bound(10, 4, gamma=0.9, mass=0.001, floor=0.02, barrier=0.01)
    assert bound == pytest.approx(0.001 / 0.01 + 0.01 / 10 * (1 - 1 / 8) / (0.1 * 0.02))
    assert theory.mismatch_free_bound(10, 4, gamma=0.9, mass=0.1, floor=0.0, barrier=0.01) == np.inf
    with pytest.raises(ValueError, match="barrier is 0"):
        theory.mismatch_free_bound(10, 4, gamma=0.9, mass=0.1, floor=0.1, barrier=0.0)


def test_exploration_bounds_the_mass_that_appears_here():
    mdp = random_mdp(12, num_states=5, num_actions=2)
    mask = np.array([False, True, False, True, False])
    report = theory.mismatch_free(mdp, mdp.uniform_policy(), None, mask, gamma=0.5, barrier=100.0)
    assert report.mass <= max_visitation(mdp, gamma=0.5)[mask].sum()
    assert report.vacuous
    assert "Vacuous" in report.summary()


def bandit(copies):
    """``copies`` absorbing states, each with one action that pays and one that does not; a uniform start."""
    rewards = np.tile([1.0, 0.0], (copies, 1))
    return FiniteMDP(np.repeat(np.eye(copies)[:, None, :], 2, axis=1), rewards, np.full(copies, 1 / copies))


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_printed_limitations_inequality_fails_on_a_bandit(gamma):
    """With K empty it claims V* - V <= |grad_theta V| / (1 - gamma); here that is true only for p >= 1 - gamma."""
    chance = (1 - gamma) / 2
    gap = (1 - chance) / (1 - gamma)
    logits = np.log([[chance, 1 - chance]])
    _, slope = objective(bandit(1), logits, np.ones(1), gamma, 0.0)
    assert np.abs(slope).max() == pytest.approx(chance * (1 - chance) / (1 - gamma))
    printed = np.abs(slope).max() / (1 - gamma)
    assert gap / printed == pytest.approx((1 - gamma) / chance)
    assert gap > 1.9 * printed


def test_the_quoted_theorem_5_3_fails_on_many_bandits():
    """It claims V* - V <= |d*/mu| |grad_pi V| / ((1 - gamma) |S|); S bandits refute it by S^2 (1 - gamma)."""
    copies, gamma = 10, 0.5
    mdp = bandit(copies)
    policy = np.tile([0.0, 1.0], (copies, 1))
    values = np.zeros(copies)
    q = mdp.rewards + gamma * values[:, None]
    visits = dense_visitation(mdp, policy, gamma)
    direct_gradient = visits[:, None] * q / (1 - gamma)
    printed = 1.0 / ((1 - gamma) * copies) * np.abs(direct_gradient).max()
    gap = 1.0 / (1 - gamma)
    assert gap / printed == pytest.approx(copies**2 * (1 - gamma))
    correct = (direct_gradient * (np.array([1.0, 0.0]) - policy)).sum() / (1 - gamma)  # the best pi' takes action 0
    assert gap <= correct
