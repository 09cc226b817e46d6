"""Resets to chosen states: they arrive as often as stated, start where they are asked to, and say what they cannot."""

import pickle

import gymnasium
import numpy as np
import pytest
from counted_helpers import counted
from random_mdps import random_mdp
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import FiniteMDP, GymWorld, ModelBased, ResetModel, RestartWrapper, TabularWorld, explore, visit
from curious_explorer.baselines import MBIEEB, PSRL, RMax
from curious_explorer.environments import combination_lock, deep_sea, garnet, river_swim
from curious_explorer.errors import ArrivalError, ResetModelError, UnreachableStateError
from curious_explorer.learners.online import OnlineAgent
from curious_explorer.models.reaching import Reaching
from curious_explorer.resets.reset_model import exact_arrivals
from curious_explorer.theory.quantities import distances
from curious_explorer.worlds.world import EpisodeBatch, World


class PlainWorld(World):
    """A world that has nothing but restart and step, so that everything else is the plain version."""

    def __init__(self, world):
        self._world = world
        self.num_states, self.num_actions, self.seed = world.num_states, world.num_actions, 7

    @property
    def samples(self):
        return self._world.samples

    def identity(self):
        return self._world.identity()

    def restart(self):
        return self._world.restart()

    def step(self, action):
        return self._world.step(action)


def resets(mdp, **arguments):
    return ResetModel([mdp.uniform_policy()], gamma=0.9, model=counted(mdp, **arguments))


def lake():
    return FiniteMDP.from_gymnasium("FrozenLake-v1")


# Planning and arrival on the counted model ----------------------------------------------------------------------------


def test_arrival_is_what_stepping_the_plan_gives():
    for seed in range(30):
        mdp = random_mdp(seed)
        model = counted(mdp)
        reaching = Reaching(model)
        for state in np.flatnonzero(reaching.reachable):
            found = reaching.arrival(int(state), 25)
            chain, plan = mdp.dense_transitions(), reaching.plan(int(state))
            mass, arrived, steps = mdp.start.copy(), 0.0, 0.0
            for step in range(26):
                arrived, steps = arrived + mass[state], steps + step * mass[state]
                mass[state] = 0.0
                mass[(plan < 0) | mdp.terminal] = 0.0
                mass = sum(mass[s] * chain[s, plan[s]] for s in range(mdp.num_states) if mass[s] > 0) + 0.0 * mass
            assert found.probability == pytest.approx(arrived, abs=1e-4)
            assert found.steps == pytest.approx(steps / arrived, rel=1e-3)


def test_where_nothing_is_random_one_try_is_enough_and_ways_are_shortest():
    mdp = deep_sea(8)
    reaching = Reaching(counted(mdp, tries=1))
    assert reaching.doubt == 0.0
    shortest = distances(mdp)
    for state in np.flatnonzero(reaching.reachable):
        assert reaching.arrival(int(state)).probability == 1.0
        assert reaching.arrival(int(state)).steps == shortest[state]


def test_shortest_ways_are_what_plans_give(monkeypatch):
    mdp = deep_sea(6)
    start = np.zeros(mdp.num_states)
    start[[0, 1, 4]] = 0.5, 0.3, 0.2
    model = counted(FiniteMDP(mdp.dense_transitions(), mdp.rewards, start, terminal=mdp.terminal), tries=10)
    searched, planned = Reaching(model), Reaching(model)
    assert searched._distances is not None
    monkeypatch.setattr("curious_explorer.models.reaching.MOST_STARTS", 0)
    assert planned._distances is None
    for state in np.flatnonzero(searched.reachable).tolist():
        for limit in (None, 1, 3, 8):
            assert searched.arrival(state, limit) == pytest.approx(planned.arrival(state, limit))


def test_the_way_of_most_arrivals_wins_over_a_short_one():
    # From 0: a gamble that reaches 3 at once one time in two and else ends in 2, or the safe way by 1.
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 3] = transitions[0, 0, 2] = 0.5
    transitions[0, 1, 1] = transitions[1, :, 3] = transitions[3, :, 3] = 1.0
    mdp = FiniteMDP(transitions, np.zeros((4, 2)), 0, terminal=[2])
    reaching = Reaching(counted(mdp))
    assert reaching.plan(3)[0] == 1
    assert reaching.arrival(3)[:2] == (1.0, 2.0)
    assert reaching.plan(2).tolist() == [0, -1, -1, -1]  # no way leads on from the target, nor from 1 and 3
    assert reaching.arrival(2).probability == 0.5


def test_doubt_avoids_what_was_tried_once_where_the_world_is_random():
    mdp = lake()
    model = counted(mdp, tries=300)
    plan = Reaching(model).plan(14)
    model.add(model.transitions()._replace(times=np.ones(len(model.times), dtype=np.int64)))
    assert Reaching(model).doubt == pytest.approx(0.6, abs=0.15)
    assert (plan >= 0).sum() >= 10


# Sampling -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_starts_are_distributed_as_the_mdp_says(seed, plain):
    mdp = random_mdp(seed)
    random = np.random.default_rng(seed)
    model = resets(mdp, tries=20)  # so few that the counts are wrong
    reachable = np.flatnonzero(Reaching(model.model).reachable)
    weights = dict(zip(reachable.tolist(), random.random(len(reachable)) + 0.05, strict=True))
    chosen = model.weighted(weights, start_share=0.2, limit=6)
    world = TabularWorld(mdp, seed=seed)
    counts = np.bincount(
        chosen.sample(PlainWorld(world) if plain else world, 2_000 if plain else 40_000), minlength=mdp.num_states
    )
    assert chi_square(counts, chosen.distribution(mdp)) > SIGNIFICANCE


def test_exact_counts_give_exactly_the_distribution_that_was_asked_for():
    mdp = lake()
    chosen = resets(mdp, tries=300_000).weighted("uniform", start_share=0.25)
    mu = chosen.distribution(mdp)
    open_states = ~mdp.terminal
    assert mu[open_states & (mdp.start == 0)] == pytest.approx(0.75 / open_states.sum(), rel=1e-3)
    assert mu[mdp.terminal].sum() == 0.0


def test_arrivals_are_counted_and_agree_with_what_is_stated():
    mdp = lake()
    world = TabularWorld(mdp, seed=3)
    model = resets(mdp)
    for state in (4, 9, 14, 15):  # the last is terminal, and a walk may end there
        to = model.to(state)
        assert (to.sample(world, 4_000) == state).all()
        table = to.arrivals
        expected = np.array([table.probability[0], 1.0 - table.probability[0]])
        hits = np.array([table.arrived[0], table.tried[0] - table.arrived[0]])
        assert table.arrived[0] == 4_000
        assert chi_square(hits, expected) > SIGNIFICANCE
        assert table.measured_steps[0] == pytest.approx(table.steps[0], rel=0.1)


def test_every_step_counts_and_a_walk_costs_what_is_stated():
    mdp = deep_sea(8)
    world = TabularWorld(mdp, seed=0)
    to = resets(mdp).to(30)
    to.sample(world, 100)
    assert world.samples == 100 * to.arrivals.steps[0]


@pytest.mark.parametrize("wrap", [lambda world: world, PlainWorld])
def test_visit_walks_on_from_the_target(wrap):
    mdp = river_swim(6)
    world = wrap(TabularWorld(mdp, seed=1))
    to = resets(mdp).to(4)
    policy = mdp.uniform_policy()
    from curious_explorer.exact import visitation

    start = np.eye(6)[4]
    counts = visit(world, policy, gamma=0.8, count=3_000, reset=to)
    assert chi_square(counts, visitation(mdp, policy, gamma=0.8, start=start)) > SIGNIFICANCE


@pytest.mark.parametrize("wrap", [lambda world: world, PlainWorld])
def test_episodes_begin_in_the_target(wrap):
    mdp = lake()
    world = wrap(TabularWorld(mdp, seed=1))
    to = resets(mdp).to(14)
    batch = EpisodeBatch(episodes=200, horizon=1, gamma=0.9, reset=to.roll_in, record=True)
    assert set(world.episodes(mdp.uniform_policy(), batch).seen.state) == {14}
    assert world.begin(to.roll_in) == 14
    followed = OnlineAgent(world, gamma=0.9, horizon=1, reset=to.roll_in).follow(
        mdp.uniform_policy(), max_samples=2_000
    )
    assert set(followed.seen.state) == {14}
    assert followed.samples == 2_000


@pytest.mark.parametrize("wrap", [lambda world: world, PlainWorld])
def test_samples_are_spent_to_the_step_on_the_way(wrap):
    mdp = combination_lock(12)
    world = wrap(TabularWorld(mdp, seed=1))
    to = resets(mdp).to(10)
    for most in (1, 3, 7, 40):
        before = world.samples
        batch = EpisodeBatch(episodes=50, horizon=3, gamma=0.9, reset=to.roll_in, max_samples=most)
        world.episodes(mdp.uniform_policy(), batch)
        assert world.samples - before == most
        before = world.samples
        begun = world.begin(to.roll_in, max_samples=most)
        assert world.samples - before <= most
        assert begun in (None, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mdp", "known_after"),
    [
        (FiniteMDP.from_gymnasium("FrozenLake8x8-v1"), 500),
        (garnet(100, 3, 3, seed=2), 500),
        (river_swim(12), 2_000),
        (deep_sea(20), 1),
        (combination_lock(20), 100),
    ],
    ids=["lake", "garnet", "river", "deep sea", "lock"],
)
def test_cells_drawn_at_random_are_reached_as_often_as_stated(mdp, known_after):
    world = TabularWorld(mdp, seed=0)
    model = explore(world, RMax(known_after=known_after), gamma=0.98, samples=1_000_000).reset_model
    reachable = model.arrivals.states
    drawn = np.random.default_rng(0).choice(reachable, size=min(40, len(reachable)), replace=False)
    observed, expected = np.zeros(2), np.zeros(2)
    for state in drawn.tolist():
        to = model.to(state, tries=10_000)
        to.sample(world, 50)
        table = to.arrivals
        misses = table.tried[0] - table.arrived[0]
        observed += (table.arrived[0], misses)
        expected += table.tried[0] * np.array([table.probability[0], 1.0 - table.probability[0]])
        assert table.measured_steps[0] <= 2.0 * table.steps[0] + 5.0
    if expected[1] < 5.0:
        assert observed[1] <= 20
    else:
        assert chi_square(observed, expected / expected.sum()) > SIGNIFICANCE


# Weights --------------------------------------------------------------------------------------------------------------


def test_named_weights():
    mdp = combination_lock(6)
    model = resets(mdp)
    open_states = np.flatnonzero(~mdp.terminal & Reaching(model.model).reachable)
    uniform = model.weighted("uniform")
    assert uniform.weighting == "uniform"
    assert uniform.choice.weights[open_states] == pytest.approx(1.0 / len(open_states))
    model.model.tries[open_states[1:]] += 10**9
    frontier = model.weighted("frontier").choice.weights
    assert frontier.argmax() == open_states[0]
    assert model.weighted("average").choice is None


def test_near_the_reward_falls_with_distance():
    mdp = river_swim(6)  # the last state pays most
    weights = resets(mdp).weighted("near the reward").choice.weights
    assert (np.diff(weights) > 0).all()
    silent = FiniteMDP(mdp.dense_transitions(), np.zeros((6, 2)), mdp.start)
    with pytest.raises(ValueError, match="none was seen"):
        resets(silent).weighted("near the reward")


def test_spread_gives_every_distance_the_same():
    mdp = deep_sea(10)
    chosen = resets(mdp).weighted("spread")
    steps = chosen.arrivals.steps.astype(int)
    by_distance = np.bincount(steps, weights=chosen.choice.weights[chosen.arrivals.states])
    assert by_distance[1:10] == pytest.approx(by_distance[1])


def test_states_reached_too_rarely_are_left_out_of_named_weightings():
    mdp = combination_lock(8)
    model = resets(mdp)
    rare = model.weighted("uniform", least_arrival=0.999).arrivals
    assert (rare.probability >= 0.999).all()
    assert len(rare) < len(model.weighted("uniform", least_arrival=1e-9).arrivals)


# What cannot be done --------------------------------------------------------------------------------------------------


def test_states_never_met_are_refused_with_the_nearest():
    mdp = deep_sea(6)
    model = resets(mdp, skip=(10,))
    with pytest.raises(UnreachableStateError, match=r"state 10: was never met.* 9, 11"):
        model.to(10)
    with pytest.raises(UnreachableStateError, match="state 500 does not exist"):
        model.to(500)


def test_states_without_a_way_are_refused_with_the_nearest():
    mdp = river_swim(6)
    model = counted(mdp)
    kept = model.transitions()
    cut = ~((kept.state == 2) & (kept.next_state == 3))
    apart = type(model)(6, 2)
    apart.add(type(kept)(*(column[cut] for column in kept)))
    apart.starts[0] = 1
    with pytest.raises(UnreachableStateError, match=r"state 4: no way leads there.*are 2, "):
        ResetModel([mdp.uniform_policy()], gamma=0.9, model=apart).to(4)


@pytest.mark.parametrize("wrap", [lambda world: world, PlainWorld])
def test_resets_that_fail_are_counted_and_then_refused(wrap):
    mdp = deep_sea(6)
    to = resets(mdp).to(20, tries=7)
    blocked = TabularWorld(leading_nowhere(mdp), seed=0)
    before = blocked.samples
    for act in (
        lambda world: to.sample(world, 10),
        lambda world: world.begin(to.roll_in),
        lambda world: world.episodes(
            mdp.uniform_policy(), EpisodeBatch(episodes=2, horizon=3, gamma=0.9, reset=to.roll_in)
        ),
        lambda world: OnlineAgent(world, gamma=0.9, horizon=9, reset=to.roll_in).follow(
            mdp.uniform_policy(), max_samples=10_000
        ),
        lambda world: world.count_ends(to.roll_in, 10),
    ):
        tried = to.arrivals.tried[0]
        with pytest.raises(ArrivalError, match="7 roll-ins in a row did not arrive in state 20"):
            act(wrap(blocked))
        assert to.arrivals.tried[0] == tried + 7
    assert blocked.samples > before
    assert to.arrivals.arrived[0] == 0


def leading_nowhere(mdp):
    """The same spaces, but no action ever leads away from the start."""
    transitions = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    transitions[:, :, int(np.argmax(mdp.start))] = 1.0
    return FiniteMDP(transitions, mdp.rewards, mdp.start)


def test_what_is_missing_is_named():
    mdp = deep_sea(4)
    plain = ResetModel([mdp.uniform_policy()], gamma=0.9)
    for ask in (lambda: plain.to(1), lambda: plain.weighted("uniform"), lambda: plain.arrivals):
        with pytest.raises(ResetModelError, match="no counted model"):
            ask()
    model = counted(mdp)
    model.starts[:] = 0
    with pytest.raises(ValueError, match="where the world starts"):
        ResetModel([mdp.uniform_policy()], gamma=0.9, model=model).to(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start_share": 1.0}, "start_share"),
        ({"tries": 0}, "tries"),
        ({"limit": 0}, "limit"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        resets(deep_sea(4)).weighted("uniform", **settings)


@pytest.mark.parametrize("weights", [np.ones(3), -np.ones(10), np.zeros(10), {}, {2: np.nan}, "no such weighting"])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match=r"weights|weighting"):
        resets(deep_sea(4)).weighted(weights)


def test_a_limit_too_small_to_arrive_is_refused():
    with pytest.raises(UnreachableStateError, match="larger limit"):
        resets(deep_sea(6)).to(20, limit=1)


# Explorers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explorer", [MBIEEB(), PSRL(), RMax()])
def test_what_rivals_counted_gives_chosen_resets(explorer):
    mdp = combination_lock(4)
    world = TabularWorld(mdp, seed=0)
    exploration = explore(world, explorer, gamma=0.9, samples=3_000)
    assert world.samples == 3_000
    state = int(exploration.reset_model.arrivals.states[-1])
    assert (exploration.resets_to(state).sample(world, 50) == state).all()
    assert exploration.reset_model.weighted("uniform").sample(world, 10).shape == (10,)


def test_algorithm_2_with_a_model_gives_both():
    mdp = combination_lock(4)
    world = TabularWorld(mdp, seed=0)
    exploration = explore(world, ModelBased(), gamma=0.9, rounds=3, visits=200)
    assert exploration.reset_model.weighting == "spread"
    assert exploration.reset_model.roll_in.targets is None
    state = int(exploration.reset_model.arrivals.states[-1])
    assert (exploration.resets_to(state).sample(world, 50) == state).all()


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policies", [True, False])
def test_saved_and_loaded(tmp_path, policies):
    mdp = lake()
    model = counted(mdp, tries=500)
    whole = ResetModel([mdp.uniform_policy()], gamma=0.9, model=model)
    chosen = whole.weighted("frontier", start_share=0.125, tries=17, limit=90)
    if not policies:
        chosen = ResetModel(gamma=0.9, model=model, choice=chosen.choice)
    back = ResetModel.load(chosen.save(tmp_path / "resets"))
    assert (back.weighting, back.choice.start_share, back.choice.tries, back.choice.limit) == (
        "frontier",
        0.125,
        17,
        90,
    )
    assert np.array_equal(back.choice.weights, chosen.choice.weights)
    ours, theirs = (kind.sample(TabularWorld(mdp, seed=4), 500) for kind in (chosen, back))
    assert np.array_equal(ours, theirs)
    assert np.array_equal(back.to(14).arrivals.probability, chosen.to(14).arrivals.probability)
    assert exact_arrivals(back._chosen, mdp) == pytest.approx(exact_arrivals(chosen._chosen, mdp))


def test_damaged_counts_are_refused(tmp_path):
    mdp = lake()
    chosen = resets(mdp).to(3)
    chosen.model.starts[0] = -5
    folder = chosen.save(tmp_path / "resets")
    with pytest.raises(ResetModelError, match="no counts"):
        ResetModel.load(folder)


# Gymnasium ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lake_resets():
    world = GymWorld("FrozenLake-v1", seed=0)
    return explore(world, MBIEEB(), gamma=0.95, samples=20_000).reset_model


def test_a_wrapped_environment_starts_in_the_cell(lake_resets):
    env = RestartWrapper(gymnasium.make("FrozenLake-v1"), lake_resets.to(10))
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        assert observation == 10
        assert info["roll_in_steps"] >= 4
    again = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=3)[0] == env.reset(seed=3)[0] == 10
    first, second = (env.reset(seed=5)[1]["roll_in_steps"] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("num_envs", [1, 3])
def test_gym_worlds_go_to_cells(lake_resets, num_envs):
    world = GymWorld("FrozenLake-v1", seed=1, num_envs=num_envs)
    to = lake_resets.to(9)
    assert (to.sample(world, 60) == 9).all()
    table = to.arrivals
    assert table.arrived[0] == 60
    assert table.tried[0] >= 60
    batch = EpisodeBatch(episodes=30, horizon=1, gamma=0.9, reset=to.roll_in, record=True)
    assert set(world.episodes(np.full((16, 4), 0.25), batch).seen.state) == {9}
    mixed = lake_resets.weighted("uniform")
    counts = visit(world, np.full((16, 4), 0.25), gamma=0.5, count=50, reset=mixed)
    assert counts.sum() == 50
    world.close()


@pytest.mark.parametrize("num_envs", [1, 3])
def test_gym_worlds_give_up_as_others_do(lake_resets, num_envs):
    world = GymWorld("FrozenLake-v1", seed=1, num_envs=num_envs)
    to = lake_resets.to(15, limit=6, tries=5)
    with pytest.raises(ArrivalError, match="5 roll-ins in a row did not arrive in state 15 within 6 steps"):
        to.sample(world, 10_000)
    assert to.arrivals.tried[0] >= 5
    if num_envs == 1:
        never = lake_resets.to(15, limit=6, tries=1)
        with pytest.raises(ArrivalError, match="1 roll-ins"):
            [world.begin(never.roll_in) for _ in range(1_000)]
    world.close()


def test_gym_worlds_spend_samples_to_the_step(lake_resets):
    world = GymWorld("FrozenLake-v1", seed=1)
    to = lake_resets.to(14)
    for most in (1, 5, 30):
        before = world.samples
        world.episodes(
            np.full((16, 4), 0.25),
            EpisodeBatch(episodes=100, horizon=2, gamma=0.9, reset=to.roll_in, max_samples=most),
        )
        assert world.samples - before == most
        before = world.samples
        assert world.begin(to.roll_in, max_samples=most) in (None, 14)
        assert world.samples - before <= most


def test_cells_that_were_discovered_are_named_by_their_keys():
    from curious_explorer import HashedCells

    world = GymWorld("MountainCar-v0", cells=HashedCells(width=[0.3, 0.05], max_cells=64), seed=0)
    exploration = explore(world, RMax(), gamma=0.95, samples=2_000)
    keys = exploration.reset_model.discretisation.discovered
    state = int(exploration.reset_model.arrivals.states[-1])
    assert np.flatnonzero(exploration.resets_to(keys[state]).choice.weights).tolist() == [state]
    with pytest.raises(UnreachableStateError, match="nearest of"):
        exploration.resets_to("no such key")
