"""Learning while it pays: the step that is measured, the floor, what is handed out, and what it costs."""

import gymnasium
import numpy as np
import pytest
from random_mdps import random_mdp

from curious_explorer import TRPO, FiniteMDP, Reinforce, TabularWorld, evaluate, explore, improve, solve
from curious_explorer.environments import combination_lock, crossroad_traps, deep_sea, river_swim
from curious_explorer.learners import annealed
from curious_explorer.learners.actor_critic import LearningRun
from curious_explorer.learners.trpo import measured_step, natural_step

BOTH = [TRPO, Reinforce]


def a_batch(seed, states=6, actions=3, scale=1.0):
    random = np.random.default_rng(seed)
    weight = random.integers(0, 5, (states, actions)).astype(float)
    logits = random.normal(size=(states, actions))
    policy = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return logits, policy, weight, scale * weight * random.normal(size=(states, actions))


@pytest.mark.parametrize("seed", range(20))
def test_a_measured_step_stays_inside_the_trust_region_and_within_what_its_signal_deserves(seed):
    max_kl, memory = 0.05, 1.0
    logits, policy, weight, advantages = a_batch(seed)
    plain, measured, timid = (tuple(np.copy(part) for part in (logits, policy)) for _ in range(3))
    natural_step(*plain, weight, advantages, max_kl, memory)
    _, variance = measured_step(*measured, weight, advantages, max_kl, memory, 0.0)
    measured_step(*timid, weight, advantages, max_kl, memory, 100.0 * variance)
    visited = weight.sum(axis=1) > 0
    frequency = weight.sum(axis=1)[visited] / weight.sum()

    def divergence(after):
        return float(frequency @ (policy * np.log(policy / after))[visited].sum(axis=1))

    assert divergence(measured[1]) <= max_kl * (1 + 1e-9)
    # A signal that is a tenth of the largest (its variance a hundredth) moves logits a tenth as far, or less.
    assert 0.0 < divergence(timid[1]) < 0.02 * divergence(plain[1])


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1e-8])
def test_noise_is_not_stretched_to_the_edge(scale):
    logits, policy, weight, advantages = a_batch(1, scale=scale)
    before = policy.copy()
    measured_step(logits, policy, weight, advantages, 0.05, 1.0, 0.01)
    np.testing.assert_allclose(policy, before, atol=1e-6)
    natural_step(logits, policy, weight, advantages, 0.05, 1.0)  # which is what it is for
    assert scale < 1e-100 or np.abs(policy - before).max() > 0.01


@pytest.mark.parametrize("optimizer", BOTH)
def test_a_budget_is_kept_to_the_step_with_evaluations_in_it(optimizer):
    mdp = crossroad_traps(4)
    for budget in (1, 77, 5_000, 60_000):
        world = TabularWorld(mdp, seed=3)
        result = optimizer()(world, None, gamma=0.9, budget=budget)
        assert result.samples == world.samples <= budget


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize("make", [lambda: river_swim(6), lambda: deep_sea(10), lambda: combination_lock(8)])
def test_defaults_solve_problems_on_which_steps_to_the_edge_fail(optimizer, make):
    mdp = make()
    best = mdp.start @ solve(mdp, gamma=0.95).values
    for seed in (1, 2):
        world = TabularWorld(mdp, seed=seed)
        exploration = explore(world, optimizer(), gamma=0.95, progress=False)
        learned = improve(world, optimizer(), exploration.reset_model, gamma=0.95, evaluation_episodes=0)
        assert mdp.start @ evaluate(mdp, learned.policy, gamma=0.95) >= 0.95 * best


@pytest.mark.parametrize("optimizer", BOTH)
def test_no_action_falls_below_the_floor_while_learning_and_none_of_it_is_handed_out(optimizer):
    mdp = random_mdp(3)
    seen = []
    result = optimizer()(
        TabularWorld(mdp), None, gamma=0.8, budget=40_000, watch=lambda policy, used: seen.append(np.copy(policy))
    )
    least = annealed.STAGES[-1] / mdp.num_actions
    assert min(policy.min() for policy in seen[:-1]) >= least / mdp.num_actions - 1e-9
    kept = result.policy[result.policy > 0]
    assert kept.min() >= annealed.CLEARLY_WORSE / mdp.num_actions
    assert (result.policy == seen[-1]).all()


def test_the_same_seed_gives_the_same_policy():
    results = [TRPO()(TabularWorld(river_swim(6), seed=5), None, gamma=0.9, budget=200_000) for _ in range(2)]
    assert (results[0].policy == results[1].policy).all()
    assert results[0].samples == results[1].samples


def test_given_updates_are_kept_to():
    result = TRPO(updates=7, episodes=11)(TabularWorld(crossroad_traps(3)), None, gamma=0.9)
    assert result.curve.episodes.tolist() == [11 * n for n in range(1, 8)]


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize("scale", [0.001, 1.0])
def test_rewards_of_any_size_are_learned(optimizer, scale):
    mdp = combination_lock(5)
    mdp = mdp.with_rewards(scale * mdp.rewards)
    best = mdp.start @ solve(mdp, gamma=0.95).values
    world = TabularWorld(mdp, seed=1)
    exploration = explore(world, optimizer(), gamma=0.95, progress=False)
    learned = improve(world, optimizer(), exploration.reset_model, gamma=0.95, evaluation_episodes=0)
    assert mdp.start @ evaluate(mdp, learned.policy, gamma=0.95) >= 0.95 * best


@pytest.mark.parametrize("optimizer", BOTH)
def test_where_episodes_are_short_and_gamma_large_half_of_them_begin_elsewhere(optimizer):
    """Nine in ten roll-ins end at the bottom of the sea; rho must not take the place of those that are drawn again."""
    mdp = deep_sea(12)
    best = mdp.start @ solve(mdp, gamma=0.99).values
    world = TabularWorld(mdp, seed=3)
    exploration = explore(world, optimizer(), gamma=0.99, progress=False)
    learned = improve(world, optimizer(), exploration.reset_model, gamma=0.99, evaluation_episodes=0)
    assert mdp.start @ evaluate(mdp, learned.policy, gamma=0.99) >= 0.95 * best


def test_all_steps_stay_within_fifty_million_with_the_evaluations_at_the_end():
    assert 50_000_000 - annealed.MOST_STEPS > 3 * annealed.MOST_EVALUATION_STEPS


def test_no_batch_goes_on_beyond_the_most_steps(monkeypatch):
    monkeypatch.setattr(annealed, "MOST_STEPS", 100_000)
    monkeypatch.setattr(annealed, "LEAST_LIMIT", 50_000)
    world = TabularWorld(river_swim(6), seed=1)
    TRPO(episodes=20_000)(world, None, gamma=0.95)  # more than a million steps in a batch
    assert world.samples <= 100_000 + 3 * annealed.EVALUATION_EPISODES * 2 * 90


@pytest.mark.parametrize("optimizer", BOTH)
def test_no_cycle_begins_where_the_last_ended_with_the_last_step(optimizer, monkeypatch):
    """It could only measure once more what has been measured."""
    ends = []
    measure = LearningRun.measure

    def noted(run, policy, episodes, most_steps):
        ends.append(run.used)
        return measure(run, policy, episodes, most_steps)

    def cycles():
        ends.clear()
        pauses = optimizer().learn_in_pieces(TabularWorld(river_swim(6), seed=1), None, gamma=0.95)
        used = []
        for pause in pauses:
            used += [ends[0]] if pause.measured else []
            if pause.measured:
                ends.clear()
            if len(used) == 3:
                break
        return used

    monkeypatch.setattr(LearningRun, "measure", noted)
    monkeypatch.setattr(annealed, "LEAST_LIMIT", 0)
    before = cycles()
    monkeypatch.setattr(annealed, "MOST_STEPS", before[1])  # the last batch of the second cycle takes the last step
    assert cycles() == before[:2]


@pytest.mark.parametrize("optimizer", BOTH)
def test_with_gamma_zero_noisy_rewards_do_not_keep_learning_going(optimizer):
    """Two arms that pay 1 half of the time, and one six times in ten: without an end it takes 46 million steps."""
    chances = np.array([0.5, 0.5, 0.6])
    transitions, rewards = np.zeros((2, 3, 2)), np.zeros((2, 3, 2))
    transitions[:, :, 1], transitions[:, :, 0] = chances, 1.0 - chances
    rewards[:, :, 1] = 1.0
    mdp = FiniteMDP(transitions, rewards, 0)
    world = TabularWorld(mdp, seed=1)
    learned = improve(world, optimizer(), None, gamma=0.0, evaluation_episodes=0)
    assert world.samples < 2_000_000
    assert learned.policy[0, 2] > 0.9


def test_learning_goes_on_while_the_start_earns_nothing_but_the_resets_do():
    """On ice from which the goal is next to never reached, hundreds of episodes return nothing, and all agree on it."""
    ice = ["SFFFFH", "HFHFHF", "FFHFFF", "FFFFFF", "HHFFHH", "FFHFFG"]
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", desc=ice))
    world = TabularWorld(mdp, seed=9)
    resets = explore(world, TRPO(), gamma=0.95, progress=False).reset_model
    learned = improve(world, TRPO(), resets, gamma=0.95, evaluation_episodes=0, budget=400_000)
    assert learned.samples == 400_000


@pytest.mark.parametrize("optimizer", BOTH)
def test_where_there_is_no_reward_at_all_learning_ends(optimizer):
    mdp = random_mdp(3)
    mdp = mdp.with_rewards(0.0 * mdp.rewards)
    world = TabularWorld(mdp, seed=1)
    resets = explore(world, optimizer(), gamma=0.95, progress=False).reset_model
    learned = improve(world, optimizer(), resets, gamma=0.95, evaluation_episodes=0)
    assert learned.samples < 2_000_000
