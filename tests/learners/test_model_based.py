"""`ModelBased`, `OffPolicy` and the empirical model behind them."""

import numpy as np
import pytest
from random_mdps import random_mdp

from curious_explorer import FiniteMDP, ModelBased, OffPolicy, TabularWorld, evaluate, explore, improve, solve
from curious_explorer.environments import combination_lock, crossroad_traps, garnet, river_swim
from curious_explorer.explorers.checkpoint import Remembers
from curious_explorer.worlds.world import Reward, TransitionCounts

GAMMA = 0.95


def share_of_optimum(mdp, policy, gamma=GAMMA):
    return float(mdp.start @ evaluate(mdp, policy, gamma=gamma)) / float(mdp.start @ solve(mdp, gamma=gamma).values)


def tables(*rows):
    """Transitions given as (state, action, next state, times, reward)."""
    columns = list(zip(*rows, strict=True))
    return TransitionCounts(*(np.array(column, dtype=np.int64) for column in columns[:4]), np.array(columns[4], float))


# The samples it needs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [2, 5])
@pytest.mark.parametrize("seed", range(10))
def test_curious_explorer_solves_the_deep_lock_within_twenty_thousand_samples(seed, rounds):
    """The worst of ten seeds, exploration and visits included, with the default settings and labels permuted."""
    mdp = combination_lock(20, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    optimizer = ModelBased()
    exploration = explore(world, optimizer, gamma=GAMMA, rounds=rounds, visits=50, progress=False)
    result = improve(world, optimizer, exploration.reset_model, gamma=GAMMA, evaluation_episodes=0)
    assert world.samples == exploration.samples + result.samples <= 20_000
    assert share_of_optimum(mdp, result.policy) >= 0.95


@pytest.mark.parametrize("seed", range(5))
def test_it_solves_the_deep_chain(seed):
    mdp = crossroad_traps(20, permute_actions=seed)
    world = TabularWorld(mdp, seed=seed)
    result = ModelBased()(world, None, gamma=GAMMA)
    assert share_of_optimum(mdp, result.policy) >= 0.99
    assert result.samples <= 10_000


@pytest.mark.parametrize("seed", range(10))
def test_it_is_near_optimal_in_random_mdps(seed):
    mdp = random_mdp(seed, terminal=False)
    result = ModelBased(known_after=50)(TabularWorld(mdp, seed=seed), None, gamma=0.9)
    assert share_of_optimum(mdp, result.policy, 0.9) >= 0.95


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make", [lambda seed: river_swim(20, permute_actions=seed), lambda seed: garnet(50, seed=seed)]
)
def test_pairs_are_tried_more_often_where_chance_decides_a_lot(make, seed):
    mdp = make(seed)
    world = TabularWorld(mdp, seed=seed)
    optimizer = ModelBased()
    exploration = explore(world, optimizer, gamma=GAMMA, progress=False)
    result = improve(world, optimizer, exploration.reset_model, gamma=GAMMA, evaluation_episodes=0)
    assert share_of_optimum(mdp, result.policy) >= 0.95


def test_a_budget_is_kept_to_the_step_with_the_check_of_the_plan_in_it():
    mdp = river_swim(6)
    for budget in (1, 50, 2_000, 20_000):
        world = TabularWorld(mdp, seed=1)
        assert ModelBased()(world, None, gamma=GAMMA, budget=budget).samples == world.samples <= budget


# Its memory -------------------------------------------------------------------------------------------------------


def test_it_stops_as_soon_as_nothing_is_left_to_learn():
    mdp = combination_lock(5)
    world = TabularWorld(mdp)
    optimizer = ModelBased(known_after=3)
    first = optimizer(world, None, gamma=GAMMA, budget=1_000_000)
    assert 0 < first.samples < 20_000
    again = optimizer(world, None, gamma=GAMMA, budget=1_000_000)
    assert (again.samples, again.accepted, again.rejected, len(again.curve.samples)) == (0, 0, {}, 0)
    assert np.array_equal(again.policy, first.policy)
    other = np.zeros((mdp.num_states, mdp.num_actions))
    other[mdp.state_names.index("L5")] = 1.0  # another reward, the same counts: known how to reach it
    lured = optimizer(world, None, gamma=GAMMA, reward=Reward(other))
    best = mdp.start @ solve(mdp, gamma=GAMMA, rewards=other).values
    assert lured.samples < first.samples / 10
    assert mdp.start @ evaluate(mdp, lured.policy, gamma=GAMMA, rewards=other) == pytest.approx(best)


def test_a_reward_that_is_the_same_everywhere_is_no_reason_to_explore_further():
    mdp = combination_lock(3)
    world = TabularWorld(mdp)
    optimizer = ModelBased()
    optimizer(world, None, gamma=GAMMA, budget=30)
    nothing = Reward(np.zeros((mdp.num_states, mdp.num_actions)))
    assert optimizer(world, None, gamma=GAMMA, reward=nothing).samples == 0


def test_what_is_out_of_reach_does_not_hold_it_up():
    """A door that opens once in ten thousand tries leads to a room of unknown actions."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 0], transitions[0, :, 1] = 1 - 1e-4, 1e-4
    transitions[1, :, 0] = 1.0
    mdp = FiniteMDP(transitions, np.zeros((2, 2)), 0)
    room = {name: np.array([value]) for name, value in {"state": 0, "action": 0, "next_state": 1, "times": 1}.items()}
    optimizer = ModelBased(known_after=1, horizon=10)
    world = TabularWorld(mdp)
    optimizer(world, None, gamma=0.5, budget=1)
    remembered = optimizer.memory()
    optimizer.recall(remembered | room)  # as if the door had opened just then
    result = optimizer(world, None, gamma=0.5, budget=100_000)
    assert result.samples <= 10 * (optimizer.patience + 5)


def test_memory_survives_a_round_trip():
    mdp = combination_lock(4)
    world, twin = TabularWorld(mdp, seed=1), TabularWorld(mdp, seed=1)
    optimizer, copy = ModelBased(), ModelBased()
    assert isinstance(optimizer, Remembers)
    assert optimizer.memory() == {}
    optimizer(world, None, gamma=GAMMA, budget=300)
    memory = optimizer.memory()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in memory.values())
    copy.recall(memory)
    twin.restore(world.position())
    first, second = (o(w, None, gamma=GAMMA, budget=500) for o, w in ((optimizer, world), (copy, twin)))
    assert first.samples == second.samples > 0
    assert np.array_equal(first.policy, second.policy)
    assert all(np.array_equal(value, copy.memory()[name]) for name, value in optimizer.memory().items())
    copy.recall({})
    assert copy.memory() == {}
    with pytest.raises(ValueError, match="memory of a ModelBased"):
        copy.recall({"state": np.zeros(1)})


def test_recalled_arrays_are_its_own():
    optimizer = ModelBased()
    world = TabularWorld(combination_lock(2))
    optimizer(world, None, gamma=GAMMA, budget=50)
    memory = {name: array.copy() for name, array in optimizer.memory().items()}
    optimizer.recall(memory)
    memory["times"][:] = 0
    assert (optimizer.memory()["times"] > 0).all()


def test_an_interrupted_exploration_goes_on_as_if_nothing_had_happened(tmp_path):
    mdp = combination_lock(6)
    settings = {"gamma": GAMMA, "visits": 50, "budget": 150, "progress": False}
    whole = explore(TabularWorld(mdp, seed=2), ModelBased(), rounds=4, checkpoint=tmp_path / "run", **settings)
    assert whole.rounds[3].learning_samples > 0  # there was something left to learn, with what was learned before
    for lost in (2, 3):
        (tmp_path / "run" / f"round-{lost:04d}.npz").unlink()
    world = TabularWorld(mdp, seed=2)
    resumed = explore(world, ModelBased(), rounds=4, checkpoint=tmp_path / "run", **settings)
    assert [round_.samples for round_ in resumed.rounds] == [round_.samples for round_ in whole.rounds]
    assert all(np.array_equal(a, b) for a, b in zip(resumed.policies, whole.policies, strict=True))


def test_counts_of_another_world_are_refused():
    optimizer = ModelBased()
    mdp = crossroad_traps(4, permute_actions=0)
    world = TabularWorld(mdp, seed=0)
    optimizer(world, None, gamma=GAMMA, budget=100)
    others = {
        "other sizes": TabularWorld(crossroad_traps(5), seed=0),
        "other labels": TabularWorld(crossroad_traps(4, permute_actions=1), seed=0),
        "another run": TabularWorld(mdp, seed=1),
        "the same run, begun afresh": TabularWorld(mdp, seed=0),
    }
    for other in others.values():
        with pytest.raises(ValueError, match="make a new ModelBased"):
            optimizer(other, None, gamma=GAMMA)
        assert other.samples == 0
    optimizer.forget()
    assert optimizer(others["other sizes"], None, gamma=GAMMA, budget=100).samples > 0


def test_settings_are_checked():
    for name in ("known_after", "episodes", "updates", "patience", "horizon"):
        with pytest.raises(ValueError, match=name):
            ModelBased(**{name: 0})


# What it hands out ------------------------------------------------------------------------------------------------


def test_its_result_uses_what_it_has_for_the_worlds_reward_and_explores_on_for_another():
    """After one step of budget, one action is tried once; it pays 0.1."""
    mdp = FiniteMDP(np.ones((1, 2, 1)), [[0.1, 0.1]], 0)
    curious = Reward(np.array([[1.0, 0.5]]))

    def learned(**reward):
        optimizer = ModelBased(known_after=1)
        policy = optimizer(TabularWorld(mdp), None, gamma=GAMMA, budget=1, **reward).policy
        return policy[0], int(optimizer.memory()["action"][0])

    policy, tried = learned()
    assert policy[tried] == 1.0
    policy, tried = learned(reward=Reward(np.zeros((1, 2)), "max"))
    assert policy[tried] == 1.0
    policy, tried = learned(reward=curious)
    assert policy[1 - tried] == 1.0


# Off-policy -------------------------------------------------------------------------------------------------------


def test_off_policy_learning_from_an_exploration_costs_no_sample():
    mdp = combination_lock(8, permute_actions=3)
    world = TabularWorld(mdp, seed=3)
    exploration = explore(world, ModelBased(), gamma=GAMMA, rounds=2, visits=100, record=True, progress=False)
    before = world.samples
    result = OffPolicy([round_.seen for round_ in exploration.rounds])(world, None, gamma=GAMMA)
    assert world.samples == before
    assert result.samples == 0
    assert share_of_optimum(mdp, result.policy) >= 0.95


def test_off_policy_adds_tables_up_and_leaves_the_untried_alone():
    """Half of the outcomes are in either table; together they say that action 1 is better (0.5 against 0.4)."""
    first = tables((0, 0, 0, 10, 0.4), (0, 1, 0, 5, 0.0))
    second = tables((0, 1, 0, 5, 1.0))
    world = TabularWorld(FiniteMDP(np.ones((1, 3, 1)), np.zeros((1, 3)), 0))
    assert OffPolicy([first])(world, None, gamma=GAMMA).policy.tolist() == [[1.0, 0.0, 0.0]]
    assert OffPolicy([first, second])(world, None, gamma=GAMMA).policy.tolist() == [[0.0, 1.0, 0.0]]
    picky = OffPolicy([first], known_after=11)  # nothing was tried that often: nothing to choose by
    assert picky(world, None, gamma=GAMMA).policy == pytest.approx(np.full((1, 3), 1 / 3))


def test_off_policy_says_what_is_missing():
    exploration = explore(
        TabularWorld(crossroad_traps(3)), ModelBased(), gamma=GAMMA, rounds=1, visits=50, progress=False
    )
    with pytest.raises(ValueError, match="record=True"):
        OffPolicy([round_.seen for round_ in exploration.rounds])
    with pytest.raises(ValueError, match="record=True"):
        OffPolicy([])
    with pytest.raises(ValueError, match="known_after"):
        OffPolicy([tables((0, 0, 0, 1, 0.0))], known_after=0)
    world = TabularWorld(crossroad_traps(3))
    for strange in (tables((4, 0, 0, 1, 0.0)), tables((0, 0, 9, 1, 0.0)), tables((0, 4, 0, 1, 0.0))):
        with pytest.raises(ValueError, match="other sizes"):
            OffPolicy([strange])(world, None, gamma=GAMMA)
    with pytest.raises(ValueError, match="not finite"):
        OffPolicy([tables((0, 0, 0, 1, np.nan))])(world, None, gamma=GAMMA)
