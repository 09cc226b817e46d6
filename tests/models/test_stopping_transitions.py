"""Steps that end the episode and leave what is seen as it was, against the same world with a state for every end."""

import gymnasium
import numpy as np
import pytest
from random_mdps import random_mdp

from curious_explorer import TRPO, GymWorld, ResetModel, RestartWrapper, explore, improve
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.models.best_actions import best_actions
from curious_explorer.models.best_ways import BestWays
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.models.planning import plan_with_unknown
from curious_explorer.models.reaching import Reaching
from curious_explorer.resets.moving_starts import MovingStarts
from curious_explorer.worlds.world import TransitionCounts

GAMMA = 0.95
WITH_ENDS = (0, 1, 2, 4, 5, 6, 9, 10)


def both_models(seed, cost=0.0, tries=400):
    """Counts of a random MDP with terminal states, and the same with each entry into one as an end where it stood."""
    mdp = random_mdp(seed, num_states=7, num_actions=3, terminal=True)
    random = np.random.default_rng(seed)
    rows = mdp.transitions.tocoo()
    state, action = np.divmod(rows.row, mdp.num_actions)
    kept = ~mdp.terminal[state]
    state, action, following = state[kept], action[kept], rows.col[kept].astype(np.int64)
    times = np.maximum(random.poisson(tries * rows.data[kept]), 1)
    paid = mdp.rewards[state, action] - cost
    ends = mdp.terminal[following]
    with_states, without = CountedModel(mdp.num_states, mdp.num_actions), CountedModel(mdp.num_states, mdp.num_actions)
    with_states.add(TransitionCounts(state, action, following, times, paid), ended=np.where(ends, times, 0))
    stays = np.where(ends, state, following)
    without.add(TransitionCounts(state, action, stays, times, paid), ended=np.where(ends, times, 0))
    for model in (with_states, without):
        model.starts[:] = np.where(mdp.terminal, 0, np.round(100 * mdp.start))
    return with_states, without, np.flatnonzero(~mdp.terminal & with_states.met())


@pytest.mark.parametrize("cost", [0.0, 2.0])
@pytest.mark.parametrize("seed", WITH_ENDS)
def test_plans_are_those_of_a_world_with_a_state_for_every_end(seed, cost):
    expected, got, going_on = both_models(seed, cost)
    assert expected.terminal.any()
    assert not got.terminal.any()
    assert got.stopped.sum() == expected.times[expected.terminal[expected.rows.next_states]].sum()
    of, on = BestWays(expected, np.arange(7), GAMMA), BestWays(got, np.arange(7), GAMMA)
    assert of.reward_known == on.reward_known
    np.testing.assert_allclose(on.planned[going_on], of.planned[going_on], atol=1e-6)
    np.testing.assert_allclose(on.policy[going_on], of.policy[going_on])
    np.testing.assert_allclose(on.distance[going_on], of.distance[going_on])
    starts = expected.starts / expected.starts.sum()
    cuts = np.full(len(going_on), 25)
    for value, wanted in zip(
        on.expected(going_on, cuts, starts, 40), of.expected(going_on, cuts, starts, 40), strict=True
    ):
        np.testing.assert_allclose(value, wanted, atol=1e-9)
    settings = {"gamma": GAMMA, "reward": None, "known_after": 1, "hopeful": False}
    of_plan, on_plan = plan_with_unknown(expected, **settings), plan_with_unknown(got, **settings)
    np.testing.assert_allclose(on_plan.policy[going_on], of_plan.policy[going_on])


@pytest.mark.parametrize("seed", WITH_ENDS)
def test_who_is_where_the_episode_ended_has_not_arrived(seed):
    expected, got, going_on = both_models(seed)
    of, on = Reaching(expected), Reaching(got)
    assert on.reachable[going_on].tolist() == of.reachable[going_on].tolist()
    assert on.deterministic == of.deterministic
    for target in going_on:
        np.testing.assert_allclose(on.arrival(int(target), 50), of.arrival(int(target), 50), rtol=1e-9)


def test_a_state_that_is_left_later_takes_back_that_it_was_terminal():
    model = CountedModel(3, 1)
    one = np.ones(1, dtype=np.int64)
    model.add(TransitionCounts(0 * one, 0 * one, one, 4 * one, np.zeros(1)), ended=3 * one)
    assert model.terminal.tolist() == [False, True, False]
    assert model.chances().tolist() == [1.0]
    model.add(TransitionCounts(one, 0 * one, 2 * one, one, np.zeros(1)), ended=0 * one)
    assert not model.terminal.any()
    assert model.chances().tolist() == [0.25, 1.0]
    assert model.stopping().ravel().tolist() == [0.75, 0.0, 0.0]


def test_a_growing_model_hands_its_ends_on():
    model = GrowingModel(2)
    here, there = model.meet(10), model.meet(20)
    model.start(here)
    model.add(here, 0, there, 0.0)
    model.add(here, 1, ~here, 0.0)
    model.add(there, 1, ~there, 1.0)
    model.add(there, 1, there, 0.0)
    model.add(there, 0, here, 0.0)
    for counted in (model.counted(), model.counted(30)):
        assert counted.ended.sum() == 2
        assert counted.stopped.sum() == 2
        assert not counted.terminal.any()
        again = CountedModel.from_arrays(counted.arrays())
        assert again.ended.tolist() == counted.ended.tolist()
    labels = best_actions(model, GAMMA)
    assert labels.probabilities[list(labels.states).index(there)].tolist() == [0.0, 1.0]
    assert labels.probabilities[list(labels.states).index(here)].tolist() == [1.0, 0.0]


class Corridor(gymnasium.Env):
    """Left, right, or hand in: that ends the episode where one stands, and pays at the far end alone."""

    observation_space = gymnasium.spaces.Discrete(14)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return 0, {}

    def step(self, action):
        if action == 2:
            return self.place, float(self.place == 13), True, False, {}
        self.place = min(max(self.place + (1 if action == 1 else -1), 0), 13)
        return self.place, 0.0, False, False, {}


def test_from_handing_in_at_the_far_end_starts_move_back(tmp_path):
    exploration = explore(GymWorld(Corridor(), seed=1), gamma=GAMMA, samples=1_500)
    assert exploration.first_reward is not None
    model = exploration.reset_model.model
    starts = MovingStarts(model, gamma=GAMMA)
    assert starts.reward_known
    assert starts.farthest == 14.0
    assert dict(zip(starts.states.tolist(), starts.distance.tolist(), strict=True)) == {
        place: 14.0 - place for place in range(14)
    }
    (way,) = exploration.demonstrations(GymWorld(Corridor(), seed=2), episodes=1)
    assert way.actions == [1] * 13 + [2]
    assert way.returned == 1.0
    folder = exploration.reset_model.save(tmp_path / "resets")
    again = ResetModel.load(folder).model
    assert again.ended.tolist() == model.ended.tolist()
    assert again.ended.sum() > 0


def test_the_wrapper_moves_starts_back_from_handing_in():
    """A learner that knows the way succeeds from every start, so that roll-ins end."""
    exploration = explore(GymWorld(Corridor(), seed=3), gamma=GAMMA, samples=1_500)
    env = RestartWrapper(Corridor(), exploration.reset_model)
    for seed in range(400):
        state, _ = env.reset(seed=seed)
        done = False
        while not done:
            state, _, terminated, truncated, _ = env.step(1 if state < 13 else 2)
            done = terminated or truncated
    assert env.starts.progress.own_share == 1.0


@pytest.mark.slow
def test_learners_on_tables_learn_to_hand_in():
    world = GymWorld(Corridor(), seed=4)
    exploration = explore(world, gamma=GAMMA, samples=1_500)
    result = improve(world, TRPO(), exploration.reset_model, gamma=GAMMA, budget=60_000)
    assert result.policy[np.arange(14), [1] * 13 + [2]].min() > 0.5


def test_agents_that_act_step_by_step_count_ends_where_they_were():
    agent = OnlineAgent(GymWorld(Corridor(), seed=5), gamma=GAMMA, horizon=20)
    followed = agent.follow(np.full((14, 3), 1.0 / 3.0), max_samples=2_000)
    seen = followed.seen
    assert (followed.ended == np.where(seen.action == 2, seen.times, 0)).all()
    model = CountedModel(14, 3)
    model.add(seen, ended=followed.ended)
    assert not model.terminal.any()
    assert model.chances()[seen.action == 2].max() == 0.0
