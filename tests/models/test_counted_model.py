"""The counted model against counts by hand, and plans on it against exact ones."""

import numpy as np
import pytest
from random_mdps import random_mdp

from curious_explorer import FiniteMDP, TabularWorld, solve
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan_with_unknown
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, TransitionCounts

GAMMA = 0.95


def model_of(mdp, *, episodes=300, horizon=30, seed=0, policy=None, gamma=GAMMA):
    """What is counted in single uniform episodes."""
    world = TabularWorld(mdp, seed=seed)
    model = CountedModel(mdp.num_states, mdp.num_actions)
    for _ in range(episodes):
        batch = world.episodes(
            mdp.uniform_policy() if policy is None else policy,
            EpisodeBatch(episodes=1, horizon=horizon, gamma=gamma, trace=0.0, record=True),
        )
        model.add_episodes(batch, cut_off=int(batch.lengths[0] == horizon), gamma=gamma)
    return model


def tables(*rows):
    """Transitions given as (state, action, next state, times, reward)."""
    columns = list(zip(*rows, strict=True))
    return TransitionCounts(*(np.array(column, dtype=np.int64) for column in columns[:4]), np.array(columns[4], float))


def half_known():
    """Action 0 of the start is known to pay 0.1 for ever; action 1 was never tried."""
    model = CountedModel(1, 2)
    model.add(tables((0, 0, 0, 10, 0.1)))
    return model


def test_the_hopeful_try_what_the_careful_leave_alone():
    hopeful = plan_with_unknown(half_known(), gamma=GAMMA, reward=None, known_after=3, hopeful=True)
    careful = plan_with_unknown(half_known(), gamma=GAMMA, reward=None, known_after=3, hopeful=False)
    assert hopeful.policy.tolist() == [[0.0, 1.0]]
    assert careful.policy.tolist() == [[1.0, 0.0]]
    assert hopeful.leads_to_unknown
    assert not careful.leads_to_unknown


def test_unknown_ties_are_split_evenly():
    nothing = CountedModel(3, 4)
    assert (plan_with_unknown(nothing, gamma=GAMMA, reward=None, known_after=1, hopeful=True).policy == 0.25).all()
    assert (plan_with_unknown(nothing, gamma=GAMMA, reward=None, known_after=1, hopeful=False).policy == 0.25).all()


@pytest.mark.parametrize("seed", range(5))
def test_with_everything_known_it_plans_as_on_the_model_of_relative_frequencies(seed):
    mdp = random_mdp(seed, num_states=4, num_actions=2, terminal=False)
    model = model_of(mdp, seed=seed)
    assert (model.tries > 0).all()
    frequencies, rewards = np.zeros((4, 2, 4)), np.zeros((4, 2))
    for state, action, next_state, times, reward in zip(*model.transitions(), strict=True):
        frequencies[state, action, next_state] += times
        rewards[state, action] += times * reward
    tries = frequencies.sum(axis=2)
    by_hand = FiniteMDP(frequencies / tries[:, :, None], rewards / tries, 0)
    for hopeful in (True, False):
        ours = plan_with_unknown(model, gamma=0.9, reward=None, known_after=1, hopeful=hopeful)
        assert np.array_equal(ours.policy, solve(by_hand, gamma=0.9).policy)
        assert not ours.leads_to_unknown


@pytest.mark.parametrize("seed", range(20))
def test_terminal_states_are_found_and_nothing_else_is_taken_for_one(seed):
    mdp = random_mdp(seed)
    model = model_of(mdp, episodes=200, horizon=8, seed=seed)
    assert not (model.terminal & ~mdp.terminal).any()
    seen = model.transitions()
    entered = np.bincount(seen.next_state, weights=seen.times, minlength=mdp.num_states)
    assert model.terminal[mdp.terminal & (entered > 100)].all()


def test_what_terminal_states_pay_is_learned_even_where_one_action_leads_to_several():
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0] = [0.0, 0.5, 0.5, 0.0]
    transitions[0, 1] = [0.0, 0.0, 0.3, 0.7]
    rewards = np.repeat([[0.2], [0.9], [0.4], [0.0]], 2, axis=1)
    mdp = FiniteMDP(transitions, rewards, 0, terminal=[1, 2, 3])
    model = model_of(mdp, horizon=5)
    assert model.terminal.tolist() == [False, True, True, True]
    assert model.end_rewards() == pytest.approx([0.0, 0.9, 0.4, 0.0], abs=1e-6)


def test_a_cell_may_end_one_episode_and_be_left_in_another():
    """Cells of observations are not states: one may hold both an end and a place to go on from."""

    def episode(state, following):
        one, zeros = np.ones(1, dtype=np.int64), np.zeros((3, 2))
        seen = TransitionCounts(state * one, 0 * one, following * one, one, np.zeros(1))
        return EpisodeStatistics(zeros, zeros, zeros[:, 0], zeros[:, 0], np.zeros(1), one, 1, seen)

    model = CountedModel(3, 2)
    model.add_episodes(episode(0, 1), cut_off=0, gamma=0.9)
    assert model.terminal.tolist() == [False, True, False]
    model.add_episodes(episode(1, 2), cut_off=1, gamma=0.9)
    assert model.terminal.tolist() == [False, False, False]
    plan_with_unknown(model, gamma=0.9, reward=None, known_after=1, hopeful=True)  # and a model can be made of it


@pytest.mark.parametrize("seed", range(5))
def test_counts_can_be_stored_and_read_and_moved(seed):
    mdp = random_mdp(seed)
    model = model_of(mdp, episodes=50, seed=seed)
    again = CountedModel.from_arrays(model.arrays())
    places = np.arange(mdp.num_states) * 3 + 1
    wide = CountedModel(3 * mdp.num_states + 2, mdp.num_actions)
    seen = model.transitions()
    wide.add(seen._replace(state=places[seen.state], next_state=places[seen.next_state]))
    for other in (again, wide.within(places)):
        assert (other.tries == model.tries).all()
        assert all(np.allclose(a, b) for a, b in zip(other.transitions(), seen, strict=True))
        assert (other.met() == model.met()).all()
        assert all((a == b).all() for a, b in zip(other.rows, model.rows, strict=True))
    assert (again.paid == model.paid).all()
    assert (again.terminal == model.terminal).all()
    assert (again.end_rewards() == model.end_rewards()).all()


def test_parts_add_up_and_a_told_end_needs_no_guess():
    model = CountedModel(3, 1)
    assert model.add(tables((0, 0, 1, 2, 0.5))).tolist() == [[2], [0], [0]]
    model.add(tables((0, 0, 2, 2, 0.0), (0, 0, 1, 2, 0.0)), np.array([0, 0, 1]), np.array([0.0, 0.0, 0.7]))
    assert model.tries.tolist() == [[6], [0], [0]]
    assert model.transitions().times.tolist() == [4, 2]
    assert model.transitions().reward.tolist() == [0.25, 0.0]
    assert model.chances().tolist() == pytest.approx([2 / 3, 1 / 3])
    assert model.rewards(None).ravel() == pytest.approx([1 / 6, 0.0, 0.0])
    assert model.terminal.tolist() == [False, False, True]
    assert model.end_rewards().tolist() == [0.0, 0.0, 0.7]
    assert model.known(6).tolist() == [[True], [False], [True]]
