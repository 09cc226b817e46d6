"""One conformance suite for every explorer: a new one is tested by adding its name to `METHODS`.

The first part is about `explore`, which Algorithm 2 has as well; the second about explorers as optimizers. What is
particular to each of them is tested in test_each_explorer.py and test_curious_explorer.py.
"""

import numpy as np
import pytest
from proxy_world import Proxy

from curious_explorer import (
    TRPO,
    Exploration,
    FiniteMDP,
    Frontier,
    ModelBased,
    Reinforce,
    ResetModel,
    TabularWorld,
    World,
    evaluate,
    explore,
    improve,
    solve,
    visitation,
)
from curious_explorer.environments import agarwal_chain, combination_lock, crossroad_traps
from curious_explorer.explorers.curious_explorer import CuriousExplorer
from curious_explorer.explorers.exploration import MOST_POLICIES, Explorer
from curious_explorer.explorers.methods import METHODS
from curious_explorer.learners.optimizer import Optimizer
from curious_explorer.worlds.world import Reward

GAMMA = 0.9
BUDGET = 30_000
MAKES_ITS_OWN_RESETS = {"pc-pg", "maxent"}
INERT = {"ucb-q-published"}
"""Their bonus is above the most that can be earned for longer than any test: see `test_what_inert_means`."""

every_method = pytest.mark.parametrize("name", METHODS)
every_learner = pytest.mark.parametrize("name", [name for name in METHODS if name not in INERT])
every_follower = pytest.mark.parametrize("name", [name for name in METHODS if name not in MAKES_ITS_OWN_RESETS | INERT])

# Labels permuted, each by a seed of its own.
WORLDS = {
    "CCT(4)": crossroad_traps(4, permute_actions=11),
    "DCL(3)": combination_lock(3, permute_actions=12),
    "Agarwal(3)": agarwal_chain(3, permute_actions=13),
}


PATIENT = {"updates": 1_000_000, "episodes": 5}
EXPLORERS = {
    **METHODS,
    "frontier": Frontier,
    "ce-trpo": lambda: CuriousExplorer(TRPO(**PATIENT), rounds=4),
    "ce-reinforce": lambda: CuriousExplorer(Reinforce(**PATIENT), rounds=4),
    "ce-model-based": lambda: CuriousExplorer(ModelBased(), rounds=4),
    "ce-r-max": lambda: CuriousExplorer(METHODS["r-max"](), rounds=4),
}
STOPS_EARLY = {"ce-model-based", "frontier"}
"""They end when nothing is left to learn."""
every_explorer = pytest.mark.parametrize("name", EXPLORERS)


def fraction_of_best(mdp, policy, gamma=GAMMA, rewards=None):
    best = mdp.start @ solve(mdp, gamma=gamma, rewards=rewards).values
    return float(mdp.start @ evaluate(mdp, policy, gamma=gamma, rewards=rewards) / best)


# As explorers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [2_500, 7_001])
@every_explorer
def test_an_exploration_keeps_to_its_samples_and_leaves_resets_to_learn_from(name, samples, tmp_path):
    mdp = WORLDS["DCL(3)"]
    world = TabularWorld(mdp, seed=2)
    explorer = EXPLORERS[name]()
    assert isinstance(explorer, Explorer)
    got = explore(world, explorer, gamma=GAMMA, samples=samples)
    assert isinstance(got, Exploration)
    assert got.samples == world.samples <= samples
    assert got.samples == samples or name in STOPS_EARLY or got.ended
    assert 1 <= len(got.reset_model.policies) <= MOST_POLICIES
    assert got.reset_model.distribution(mdp) @ np.ones(mdp.num_states) == pytest.approx(1.0)
    assert got.model is None or 0 < got.model.tries.sum() <= samples
    if got.policy is not None:
        assert got.policy.shape == (mdp.num_states, mdp.num_actions)
    again = ResetModel.load(got.reset_model.save(tmp_path / "resets"))
    np.testing.assert_allclose(again.distribution(mdp), got.reset_model.distribution(mdp))
    trained = improve(world, TRPO(updates=3, episodes=5), again, gamma=GAMMA, budget=2_000, evaluation_episodes=5)
    assert trained.samples <= 2_000


@pytest.mark.parametrize("name", METHODS)
def test_resets_are_half_the_start_and_half_the_policies_it_acted_with(name):
    mdp = WORLDS["DCL(3)"]
    resets = explore(TabularWorld(mdp, seed=1), METHODS[name](), gamma=GAMMA, samples=4_000).reset_model
    by_hand = np.mean([visitation(mdp, policy, gamma=GAMMA) for policy in resets.policies], axis=0)
    np.testing.assert_allclose(resets.distribution(mdp), 0.5 * mdp.start + 0.5 * by_hand)
    counts = np.bincount(resets.sample(TabularWorld(mdp, seed=2), 20_000), minlength=mdp.num_states) / 20_000
    assert np.abs(counts - resets.distribution(mdp)).sum() < 0.05


@every_explorer
def test_the_same_seed_gives_the_same_exploration_watched_or_not(name):
    mdp = WORLDS["CCT(4)"]
    calls = []
    runs = [
        explore(TabularWorld(mdp, seed=seed), EXPLORERS[name](), gamma=GAMMA, samples=3_000, watch=watch)
        for seed, watch in ((3, None), (3, lambda policy, used: calls.append((policy, used))))
    ]
    assert np.array_equal(*(np.array(run.reset_model.policies) for run in runs))
    assert calls[0][1] == 0
    assert (calls[0][0] == 1.0 / mdp.num_actions).all()
    assert [used for _, used in calls] == sorted(used for _, used in calls)
    assert calls[-1][1] == runs[1].samples


@every_explorer
def test_explorers_refuse_bad_input_before_a_step(name):
    world = TabularWorld(WORLDS["CCT(4)"])
    for changes, words in (({"gamma": 1.0}, "gamma"), ({"samples": 0}, "samples"), ({"rounds": 3}, "by itself")):
        with pytest.raises(ValueError, match=words):
            explore(world, EXPLORERS[name](), **({"gamma": GAMMA, "samples": 3_000} | changes))
    with pytest.raises(ValueError, match="world is FiniteMDP"):
        explore(WORLDS["CCT(4)"], EXPLORERS[name](), gamma=GAMMA, samples=3_000)
    assert world.position() == {"samples": 0, "calls": 0}


# As optimizers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS)
@every_learner
def test_finds_the_optimum(name, world):
    mdp = WORLDS[world]
    for seed in (1, 2):
        result = METHODS[name]()(TabularWorld(mdp, seed=seed), None, gamma=GAMMA, budget=BUDGET)
        assert fraction_of_best(mdp, result.policy) >= 0.98


@pytest.mark.parametrize("name", sorted(INERT))
def test_what_inert_means(name):
    """After a budget with which all others find the optimum, they have no preference at all."""
    mdp = WORLDS["CCT(4)"]
    result = METHODS[name]()(TabularWorld(mdp, seed=1), None, gamma=GAMMA, budget=BUDGET)
    assert (result.policy == 1.0 / mdp.num_actions).all()


@pytest.mark.parametrize("budget", [1, 2, 17, 500, 2_345])
@every_method
def test_budget_is_kept_to_the_step(name, budget):
    world = TabularWorld(WORLDS["DCL(3)"], seed=2)
    result = METHODS[name]()(world, None, gamma=GAMMA, budget=budget)
    assert result.samples == world.samples == budget


@every_method
def test_needs_nothing_but_the_world_protocol(name):
    mdp = WORLDS["CCT(4)"]
    proxy = Proxy(TabularWorld(mdp, seed=1))
    assert isinstance(proxy, World)
    assert not any(hasattr(proxy, hidden) for hidden in ("_mdp", "_dynamics", "mdp"))
    result, alone = (METHODS[name]()(world, gamma=GAMMA, budget=3_000) for world in (proxy, TabularWorld(mdp, seed=1)))
    assert np.array_equal(result.policy, alone.policy)


@every_method
def test_is_deterministic_given_the_seed(name):
    mdp = WORLDS["DCL(3)"]
    runs = []
    for seed in (3, 3, 4):
        seen = []
        METHODS[name]()(
            TabularWorld(mdp, seed=seed),
            gamma=GAMMA,
            budget=3_000,
            watch=lambda policy, used, seen=seen: seen.append((used, policy.tolist())),
        )
        runs.append(seen)
    assert runs[0] == runs[1]
    assert runs[0] != runs[2] or name in INERT  # another seed is another life


@every_method
def test_watching_changes_nothing_and_sees_policies_in_order(name):
    mdp = WORLDS["DCL(3)"]
    calls = []

    def watch(policy, used):
        assert policy.shape == (mdp.num_states, mdp.num_actions)
        assert np.abs(policy.sum(axis=1) - 1.0).max() < 1e-12
        calls.append((used, policy.copy()))

    watched = METHODS[name]()(TabularWorld(mdp, seed=5), None, gamma=GAMMA, budget=4_000, watch=watch)
    alone = METHODS[name]()(TabularWorld(mdp, seed=5), None, gamma=GAMMA, budget=4_000)
    assert np.array_equal(watched.policy, alone.policy)
    samples = [used for used, _ in calls]
    assert samples == sorted(samples)
    assert samples[0] == 0
    assert (calls[0][1] == 1.0 / mdp.num_actions).all()
    assert samples[-1] == watched.samples == 4_000
    assert np.array_equal(calls[-1][1], watched.policy)
    assert len(set(samples)) > 4


@every_method
def test_the_result_is_well_formed(name):
    mdp = WORLDS["CCT(4)"]
    method = METHODS[name]()
    assert isinstance(method, Optimizer)
    result = method(TabularWorld(mdp, seed=6), None, gamma=GAMMA, budget=2_000)
    assert result.policy.shape == (mdp.num_states, mdp.num_actions)
    assert not result.policy.flags.writeable
    curve = result.curve
    assert len(curve.samples) == len(curve.returns) == len(curve.episodes) > 0
    assert (np.diff(curve.samples) > 0).all()
    assert (np.diff(curve.episodes) > 0).all()
    assert curve.samples[-1] <= result.samples
    assert ((curve.returns >= 0.0) & (curve.returns <= 1.0)).all()  # one reward of one at the end at most


@every_method
def test_the_curve_says_what_was_earned(name):
    """Where every policy earns the same from every state, so must every entry of the curve."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, :, 1] = transitions[1, :, 2] = 1.0
    mdp = FiniteMDP(transitions, [[0.5, 0.5], [0.75, 0.75], [0.0, 0.0]], 0, terminal=[2])
    curve = METHODS[name]()(TabularWorld(mdp), None, gamma=GAMMA, budget=400).curve
    whole = {0.5 + GAMMA * 0.75, 0.75}  # covers reset half of their episodes to the second state
    if name in MAKES_ITS_OWN_RESETS:
        assert ((curve.returns > min(whole) - 1e-9) & (curve.returns < max(whole) + 1e-9)).all()
    else:
        assert curve.returns == pytest.approx(np.full(len(curve.returns), max(whole)))


@every_learner
def test_learns_for_a_given_reward(name):
    """The locked lane pays, by the table alone; the world's own reward is to be ignored."""
    mdp = WORLDS["DCL(3)"]
    table = np.zeros((mdp.num_states, mdp.num_actions))
    table[[index for index, state in enumerate(mdp.state_names) if state.startswith("L")]] = 1.0
    world = TabularWorld(mdp, seed=7)
    result = METHODS[name]()(world, None, gamma=GAMMA, reward=Reward(table), budget=BUDGET)
    assert fraction_of_best(mdp, result.policy, rewards=table) >= 0.98


@every_follower
def test_a_terminal_state_is_paid_for_ever(name):
    """Action 1 of the start ends at once where 0.8 is paid for ever; action 0 stays for 0.5 a step."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, 0, 0] = transitions[0, 1, 1] = 1.0
    mdp = FiniteMDP(transitions, [[0.5, 0.0], [0.8, 0.8]], 0, terminal=[1])
    result = METHODS[name]()(TabularWorld(mdp, seed=9), None, gamma=GAMMA, budget=5_000)
    assert fraction_of_best(mdp, result.policy) >= 0.98


@every_method
def test_resets_are_used_or_refused(name):
    mdp = WORLDS["DCL(3)"]
    reset = ResetModel([mdp.uniform_policy()], gamma=0.8)
    world = TabularWorld(mdp, seed=3)
    if name in MAKES_ITS_OWN_RESETS:
        with pytest.raises(ValueError, match="own resets"):
            METHODS[name]()(world, reset, gamma=GAMMA, budget=500)
        assert world.samples == 0
    else:
        result = METHODS[name]()(world, reset, gamma=GAMMA, budget=500)
        assert result.samples == world.samples == 500
        alone = METHODS[name]()(TabularWorld(mdp, seed=3), None, gamma=GAMMA, budget=500)
        assert not np.array_equal(result.curve.episodes, alone.curve.episodes)  # the same life, had it been ignored


BAD_INPUT = {
    "gamma": ({"gamma": 1.0}, "gamma"),
    "budget": ({"budget": 0}, "budget"),
    "reward's shape": ({"reward": Reward(np.zeros((4, 3)))}, "shape"),
    "reward too large": ({"reward": Reward(np.full((5, 4), 2.0))}, r"\[0, 1\]"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
@every_method
def test_bad_input_is_refused_before_a_step(name, case):
    world = TabularWorld(WORLDS["CCT(4)"])
    changes, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        METHODS[name]()(world, None, **({"gamma": GAMMA, "budget": 100} | changes))
    assert world.position() == {"samples": 0, "calls": 0}
