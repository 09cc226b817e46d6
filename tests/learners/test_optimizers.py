"""One conformance suite for every optimizer: a new one is tested by adding its name to `OPTIMIZERS`."""

import numpy as np
import pytest
from proxy_world import Proxy

from curious_explorer import TRPO, FiniteMDP, ModelBased, OffPolicy, Planner, Reinforce, ResetModel, TabularWorld, World
from curious_explorer.environments import agarwal_chain, combination_lock, crossroad_traps
from curious_explorer.learners.optimizer import Optimizer
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, Reward

GAMMA = 0.9
LABELS = 7
"""Seed of the action labels."""


def recorded(mdp, seed=5):
    """Transitions of 2,000 uniform episodes, paid for elsewhere."""
    world = TabularWorld(mdp, seed=seed)
    batch = world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=2_000, horizon=20, gamma=GAMMA, record=True))
    return [batch.seen]


OPTIMIZERS = {
    "TRPO": lambda mdp: TRPO(updates=60, episodes=50),
    "Reinforce": lambda mdp: Reinforce(updates=60, episodes=50),
    "TheoryReinforce": lambda mdp: Reinforce.theory(phases=6),
    "Planner": Planner,
    "ModelBased": lambda mdp: ModelBased(),
    "OffPolicy": lambda mdp: OffPolicy(recorded(mdp)),
}
TAKES_NO_STEP = {"Planner", "OffPolicy"}
TOO_SLOW_FOR_AN_OPTIMUM = {"TheoryReinforce"}
"""Its proven step sizes are of the order (1 - gamma)**3: what it does reach is tested in test_reinforce_theory.py."""

every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)
every_fast_learner = pytest.mark.parametrize(
    "name", [name for name in OPTIMIZERS if name not in TOO_SLOW_FOR_AN_OPTIMUM]
)
every_sampler = pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in TAKES_NO_STEP])


def bandit_chain():
    """Two arms a state, four states in a row that pay 0.3 or 0.7 a pull; any pull moves on, then it ends."""
    transitions, rewards = np.zeros((5, 2, 5)), np.zeros((5, 2))
    for state in range(4):
        transitions[state, :, state + 1] = 1.0
        rewards[state] = (0.3, 0.7) if state % 2 else (0.7, 0.3)
    return FiniteMDP(transitions, rewards, 0, terminal=[4])


# Each with the normalised optimal value from the start, in closed form.
CLOSED_FORMS = {
    "CCT(3)": (crossroad_traps(3, permute_actions=LABELS), (1 - GAMMA) * GAMMA**2),
    "DCL(2)": (combination_lock(2, permute_actions=LABELS), (1 - GAMMA) * GAMMA**2),
    "Agarwal(2)": (agarwal_chain(2, permute_actions=LABELS), GAMMA**3),
    "bandits": (bandit_chain(), 0.7 * (1 - GAMMA**4)),
}


def value_from_start(mdp, policy, gamma):
    """By dense linear algebra."""
    chain = np.einsum("sa,sat->st", policy, mdp.dense_transitions())
    earned = np.einsum("sa,sa->s", policy, mdp.rewards)
    return float(mdp.start @ np.linalg.solve(np.eye(mdp.num_states) - gamma * chain, (1 - gamma) * earned))


@pytest.mark.parametrize("place", CLOSED_FORMS)
@every_optimizer
def test_reaches_the_optimum(name, place):
    mdp, best = CLOSED_FORMS[place]
    world = TabularWorld(mdp, seed=1)
    result = OPTIMIZERS[name](mdp)(world, None, gamma=GAMMA)
    value = value_from_start(mdp, result.policy, GAMMA)
    assert value <= best * (1 + 1e-9)
    if name not in TOO_SLOW_FOR_AN_OPTIMUM:
        assert value >= 0.98 * best


@pytest.mark.parametrize("place", CLOSED_FORMS)
@every_fast_learner
def test_learns_for_a_reward_that_replaces_the_worlds_own(name, place):
    mdp, _ = CLOSED_FORMS[place]
    wanted = np.zeros(mdp.num_states)
    wanted[0] = 1.0  # stay at the start, or come back to it
    table = np.repeat(wanted[:, None], mdp.num_actions, axis=1)
    result = OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=1), None, gamma=GAMMA, reward=Reward(table))
    values = {"CCT(3)": 1.0, "DCL(2)": 1 - GAMMA, "Agarwal(2)": 1 / (1 + GAMMA), "bandits": 1 - GAMMA}
    assert value_from_start(mdp.with_rewards(table), result.policy, GAMMA) >= 0.98 * values[place]


@pytest.mark.parametrize("budget", [1, 7, 100, 1000])
@every_optimizer
def test_respects_the_budget_to_the_step(name, budget):
    mdp, _ = CLOSED_FORMS["CCT(3)"]
    world = TabularWorld(mdp, seed=2)
    reset = ResetModel([mdp.uniform_policy()], gamma=GAMMA)
    before = world.samples
    result = OPTIMIZERS[name](mdp)(world, reset, gamma=GAMMA, budget=budget)
    assert world.samples - before == result.samples <= budget
    assert (result.samples == 0) == (name in TAKES_NO_STEP)


@pytest.mark.parametrize("name", ["TRPO", "Reinforce"])
def test_spends_the_budget_it_is_given(name):
    mdp, _ = CLOSED_FORMS["DCL(2)"]
    assert OPTIMIZERS[name](mdp)(TabularWorld(mdp), None, gamma=GAMMA, budget=1000).samples == 1000


@every_optimizer
def test_is_deterministic_given_the_seed(name):
    mdp, _ = CLOSED_FORMS["DCL(2)"]
    first, second = (OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=3), None, gamma=GAMMA, budget=500) for _ in range(2))
    assert np.array_equal(first.policy, second.policy)
    assert first.samples == second.samples
    for part in ("samples", "returns", "episodes"):
        assert np.array_equal(getattr(first.curve, part), getattr(second.curve, part))


@every_sampler
def test_another_seed_gives_another_run(name):
    mdp, _ = CLOSED_FORMS["CCT(3)"]
    curves = [
        OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=seed), None, gamma=GAMMA, budget=500).curve for seed in (3, 4)
    ]
    assert any(
        not np.array_equal(getattr(curves[0], part), getattr(curves[1], part)) for part in ("samples", "returns")
    )


@every_optimizer
def test_leaves_the_world_consistent(name):
    mdp, _ = CLOSED_FORMS["DCL(2)"]
    world = TabularWorld(mdp, seed=4)
    optimizer = OPTIMIZERS[name](mdp)
    first = optimizer(world, None, gamma=GAMMA, budget=300)
    assert world.position()["samples"] == world.samples == first.samples
    second = optimizer(world, None, gamma=GAMMA, budget=300)
    assert world.position()["samples"] == world.samples == first.samples + second.samples
    start = world.restart()
    assert start == 0
    world.step(0)
    assert world.samples == first.samples + second.samples + 1


@every_optimizer
def test_needs_nothing_but_the_world_protocol(name):
    mdp, _ = CLOSED_FORMS["CCT(3)"]
    proxy = Proxy(TabularWorld(mdp, seed=1))
    assert isinstance(proxy, World)
    assert not hasattr(proxy, "_mdp")
    result = OPTIMIZERS[name](mdp)(proxy, None, gamma=GAMMA)
    alone = OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=1), None, gamma=GAMMA)
    assert np.array_equal(result.policy, alone.policy)


def wrong_start_for(shape):
    return RollIn.mixture([np.full(shape, 1.0 / shape[1])], 0.5, [1.0], [(0, 1)])


BAD_INPUT = {
    "gamma one": ({"gamma": 1.0}, "gamma"),
    "gamma negative": ({"gamma": -0.1}, "gamma"),
    "budget zero": ({"budget": 0}, "budget"),
    "budget negative": ({"budget": -5}, "budget"),
    "budget no number": ({"budget": 2.5}, "budget"),
    "reward of another shape": ({"reward": Reward(np.zeros((4, 3)))}, "shape"),
    "reward not finite": ({"reward": Reward(np.full((4, 4), np.nan))}, "finite"),
    "reward combined oddly": ({"reward": Reward(np.zeros((4, 4)), "sum")}, "combine"),
    "reset model of more states": ({"reset": ResetModel([np.full((5, 4), 0.25)], gamma=0.5)}, "reset model"),
    "reset model of fewer actions": ({"reset": ResetModel([np.full((4, 2), 0.5)], gamma=0.5)}, "reset model"),
    "roll-in of other spaces": ({"reset": wrong_start_for((3, 4))}, "reset model"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
@every_optimizer
def test_bad_input_is_refused_before_a_step(name, case):
    mdp, _ = CLOSED_FORMS["CCT(3)"]
    world = TabularWorld(mdp)
    optimizer = OPTIMIZERS[name](mdp)
    changes, message = BAD_INPUT[case]
    arguments = {"reset": None, "gamma": GAMMA, "reward": None, "budget": None} | changes
    position = world.position()
    with pytest.raises(ValueError, match=message):
        optimizer(world, arguments.pop("reset"), **arguments)
    assert world.position() == position
    assert optimizer(world, None, gamma=GAMMA, budget=50).samples <= 50  # and it is none the worse for it


@every_optimizer
def test_the_result_is_well_formed(name):
    mdp, _ = CLOSED_FORMS["CCT(3)"]
    result = OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=6), None, gamma=GAMMA, budget=2_000)
    assert isinstance(OPTIMIZERS[name](mdp), Optimizer)
    assert result.policy.shape == (mdp.num_states, mdp.num_actions)
    assert result.policy.dtype == np.float64
    assert (result.policy >= 0.0).all()
    assert np.abs(result.policy.sum(axis=1) - 1.0).max() < 1e-12
    assert not result.policy.flags.writeable
    curve = result.curve
    assert len(curve.samples) == len(curve.returns) == len(curve.episodes)
    assert result.accepted + sum(result.rejected.values()) == len(curve.samples)
    assert all(isinstance(reason, str) and times > 0 for reason, times in result.rejected.items())
    assert (np.diff(curve.samples) > 0).all()
    assert (np.diff(curve.episodes) > 0).all()
    assert len(curve.samples) == 0 or curve.samples[-1] <= result.samples
    if result.occupancy is not None:
        assert result.occupancy.shape == (mdp.num_states,)
        assert result.occupancy.sum() == pytest.approx(1.0)


@every_sampler
def test_the_curve_says_what_was_earned(name):
    """Where every policy earns the same, so must every entry of the curve."""
    mdp = bandit_chain().with_rewards(np.repeat([[0.5], [0.5], [0.5], [0.5], [0.0]], 2, axis=1))
    result = OPTIMIZERS[name](mdp)(TabularWorld(mdp), None, gamma=GAMMA, budget=399)  # ends in the middle of one
    expected = 0.5 * (1 - GAMMA**4) / (1 - GAMMA)
    assert result.curve.returns[:-1] == pytest.approx(np.full(len(result.curve.returns) - 1, expected))


@every_fast_learner
def test_max_pays_the_larger_of_both_rewards(name):
    """The first state's better arm is the worse one once the other is promised 0.9 by the table."""
    mdp = bandit_chain()
    table = np.zeros((5, 2))
    table[0, 1] = 0.9
    result = OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=8), None, gamma=GAMMA, reward=Reward(table, "max"))
    value = value_from_start(mdp.with_rewards(np.maximum(table, mdp.rewards)), result.policy, GAMMA)
    best = (1 - GAMMA) * 0.9 + 0.7 * (GAMMA - GAMMA**4)
    assert value >= 0.98 * best


@pytest.mark.parametrize("name", ["TRPO", "Reinforce", "Planner", "ModelBased"])
def test_a_terminal_state_is_paid_for_ever(name):
    """Action 1 of the start ends at once where 0.8 is paid for ever; action 0 stays for 0.5 a step.

    (Recorded transitions do not say what a terminal state pays, so `OffPolicy` cannot know; its docstring says so.)
    """
    transitions = np.zeros((2, 2, 2))
    transitions[0, 0, 0] = transitions[0, 1, 1] = 1.0
    mdp = FiniteMDP(transitions, [[0.5, 0.0], [0.8, 0.8]], 0, terminal=[1])
    result = OPTIMIZERS[name](mdp)(TabularWorld(mdp, seed=9), None, gamma=GAMMA)
    assert value_from_start(mdp, result.policy, GAMMA) >= 0.98 * 0.8 * GAMMA


def test_the_planner_splits_ties_evenly_and_refuses_other_worlds():
    mdp, _ = CLOSED_FORMS["DCL(2)"]
    result = Planner(mdp)(TabularWorld(mdp), None, gamma=GAMMA)
    assert np.isin(result.policy, [0.0, 0.25, 0.5]).all()  # two good actions on the lanes, four equal ones elsewhere
    assert set(result.policy[0]) == {0.0, 0.5}
    with pytest.raises(ValueError, match="model of this world"):
        Planner(mdp)(TabularWorld(crossroad_traps(3)), None, gamma=GAMMA)


def test_the_planner_combines_rewards_transition_by_transition():
    """A transition that pays 0 or 1 by chance, against a promise of 0.4: the larger of each, not of the means."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0] = [0.0, 0.5, 0.5]
    transitions[0, 1] = [0.0, 0.5, 0.5]
    rewards = np.zeros((3, 2, 3))
    rewards[0, 0] = [0.0, 1.0, 0.0]
    rewards[0, 1] = 0.65
    mdp = FiniteMDP(transitions, rewards, 0, terminal=[1, 2])
    table = np.zeros((3, 2))
    table[0] = 0.4  # action 0: (1 + 0.4) / 2 = 0.7 beats 0.65, although max(0.5, 0.4) does not
    result = Planner(mdp)(TabularWorld(mdp), None, gamma=GAMMA, reward=Reward(table, "max"))
    assert result.policy[0].tolist() == [1.0, 0.0]
    assert Planner(mdp)(TabularWorld(mdp), None, gamma=GAMMA).policy[0].tolist() == [0.0, 1.0]
