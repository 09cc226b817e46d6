"""Arrivals against exact probabilities and at their confidence; training certificates against the truth behind them."""

import json

import gymnasium
import numpy as np
import pytest
from exact_helpers import dense_chain
from random_mdps import random_mdp
from scipy.stats import beta as beta_distribution
from scipy.stats import binom, binomtest
from theory_helpers import explore_exactly

from curious_explorer import FiniteMDP, GymWorld, ResetModel, TabularWorld, theory
from curious_explorer.environments import combination_lock
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.thresholds import constant
from curious_explorer.gym.cells import GridCells
from curious_explorer.worlds import EpisodeBatch
from curious_explorer.worlds.policies import ObservationPolicy

SIGNIFICANCE = 1e-3


def random_resets(mdp, seed, gamma=0.7, policies=3):
    random = np.random.default_rng(seed)
    tables = [random.dirichlet(np.ones(mdp.num_actions), size=mdp.num_states) for _ in range(policies)]
    return ResetModel(tables, gamma=gamma)


def exact_arrivals(mdp, reset_model):
    """P(a roll-in reaches s), by linear algebra: whoever has been in s is taken out of the chain."""
    roll_in, chances = reset_model.roll_in, np.zeros(mdp.num_states)
    for target in range(mdp.num_states):
        for weight, (first, stop) in zip(roll_in.weights, roll_in.chains, strict=True):
            alive = np.array(mdp.start, dtype=float)
            alive[target] = 0.0
            for policy, gamma in zip(roll_in.policies[first:stop], roll_in.gammas[first:stop], strict=True):
                chain = dense_chain(mdp, policy)
                chain[:, target] = 0.0
                alive = (1 - gamma) * np.linalg.solve(np.eye(mdp.num_states) - gamma * chain.T, alive)
                # What is lost on the way to the target is what the stopped walks do not hold any more.
            chances[target] += weight * (1.0 - alive.sum())
    return chances


def test_lower_limits_are_clopper_pearson():
    for hits, count in ((1, 10), (10, 10), (250, 10_000)):
        limit = float(theory.clopper_pearson_lower(hits, count, 0.05))
        assert binom.sf(hits - 1, count, limit) == pytest.approx(0.05, rel=1e-9)
        assert limit == pytest.approx(beta_distribution.ppf(0.05, hits, count - hits + 1), rel=1e-12)
    assert theory.clopper_pearson_lower(0, 10, 0.05) == 0.0


def test_counted_arrivals_agree_with_linear_algebra():
    count = 4_000
    for seed in range(4):
        mdp = random_mdp(seed, num_states=5, num_actions=2)
        resets = random_resets(mdp, seed)
        exact = exact_arrivals(mdp, resets)
        world = TabularWorld(mdp, seed=seed)
        certificate = theory.certify_arrivals(world, resets, count=count, terminal=mdp.terminal)
        for hits, chance in zip(certificate.hits, exact, strict=True):
            assert binomtest(int(hits), count, min(max(chance, 0.0), 1.0)).pvalue > SIGNIFICANCE / 20
        assert certificate.samples == world.samples > 0
        assert not certificate.ends_only


def test_arrivals_hold_at_their_confidence_for_all_states_at_once():
    delta, violations, runs = 0.2, 0, 600
    cases = []
    for seed in range(20):
        mdp = random_mdp(seed, num_states=4, num_actions=2, terminal=False)
        resets = random_resets(mdp, seed, policies=2)
        cases.append((mdp, resets, exact_arrivals(mdp, resets)))
    for run in range(runs):
        mdp, resets, exact = cases[run % 20]
        world = TabularWorld(mdp, seed=run)
        certificate = theory.certify_arrivals(world, resets, count=30, delta=delta, seed=run)
        violations += bool((certificate.chances > exact + 1e-12).any())
    assert violations > 0  # it is not far from its confidence
    assert binomtest(violations, runs, delta, alternative="greater").pvalue > SIGNIFICANCE


def test_cut_roll_ins_reach_less_and_none_but_the_start_in_no_step():
    mdp = combination_lock(4)
    resets = random_resets(mdp, 0, gamma=0.9)
    world = TabularWorld(mdp)
    start = theory.certify_arrivals(world, resets, count=50, max_steps=0)
    assert (start.hits > 0).sum() == 1
    assert (start.hits[mdp.start > 0], start.samples) == (50, 0)
    short, long = (theory.certify_arrivals(world, resets, count=2_000, max_steps=steps) for steps in (2, None))
    assert (short.hits > 0).sum() < (long.hits > 0).sum()
    assert "within 2 steps" in short.summary()
    data = json.loads(json.dumps(long.to_dict(), allow_nan=False))
    assert data["reached"]["0.5"] == long.reached_with(0.5) >= 1


class Corridor(gymnasium.Env):
    """Ten places in a row; seen as a number between 0 and 1."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self._seen(), {}

    def step(self, action):
        self.place = min(9, max(0, self.place + (1 if action else -1)))
        return self._seen(), 0.0, False, False, {}

    def _seen(self):
        return np.array([self.place / 10 + 0.05])


def test_cells_that_merge_observations_are_certified_by_arrivals_alone():
    """Half of the corridor is one cell: what follows it depends on where in it one is."""
    world = GymWorld(Corridor, cells=GridCells(2, 0.0, 1.0), seed=0)
    uniform = np.full((2, 2), 0.5)
    seen = world.episodes(uniform, EpisodeBatch(episodes=200, horizon=30, gamma=0.9, record=True)).seen
    with pytest.raises(theory.CertificateError, match="grid cells"):
        theory.certify_counts(world, seen, poorly_visited=[1], gamma=0.9, delta=0.05)
    right = ResetModel([np.array([[0.0, 1.0], [0.0, 1.0]])], gamma=0.9)
    with pytest.raises(theory.CertificateError, match="grid cells"):
        theory.certify_training(world, right, seen)
    certificate = theory.certify_arrivals(world, right, count=3_000)
    truth = 0.5 * 0.9**5  # half of the roll-ins walk, and need five steps
    assert 0.8 * truth < certificate.chances[1] <= truth
    assert certificate.chances[0] > 0.99


def test_policies_that_see_observations_count_where_walks_end():
    class GoRight(ObservationPolicy):
        def act(self, observations, generator):
            return [1 for _ in observations]

        def encode(self):
            return b""

    world = GymWorld(Corridor, cells=GridCells(2, 0.0, 1.0), seed=0)
    resets = ResetModel([np.full((2, 2), 0.5), GoRight()], gamma=0.9)
    certificate = theory.certify_arrivals(world, resets, count=500)
    assert certificate.ends_only
    assert certificate.hits.sum() == 500
    assert "walks end" in certificate.assumption
    with pytest.raises(ValueError, match="max_steps"):
        theory.certify_arrivals(world, resets, count=10, max_steps=3)


# Training -----------------------------------------------------------------------------------------------------------


def test_training_certificates_hold_although_the_set_is_chosen_after_the_run():
    """Violated if some state outside K is reset to less than b, or if some policy spends more time in K than said."""
    delta, violations, given, kinds, runs = 0.2, 0, 0, set(), 400
    for seed in range(runs):
        mdp = random_mdp(seed % 40, num_states=4, num_actions=2, terminal=False)
        resets = random_resets(mdp, seed % 40)
        world = TabularWorld(mdp, seed=seed)
        batch = EpisodeBatch(episodes=300, horizon=20, gamma=0.7, record=True)
        seen = world.episodes(mdp.uniform_policy(), batch).seen
        start = mdp.start if seed % 2 else None
        try:
            certificate = theory.certify_training(world, resets, seen, delta=delta, count=40, barrier=0.02, start=start)
        except theory.CertificateError:
            continue
        given += 1
        mu, mask = resets.distribution(mdp), certificate.poorly_reset
        truth = float(mdp.start @ solve(mdp, gamma=0.7, rewards=np.outer(mask, np.ones(2))).values) if mask.any() else 0
        violations += bool((mu[~mask] < certificate.floor).any() or truth > certificate.mass)
        kinds.add(bool(mask.any()))
    assert given > runs / 2
    assert False in kinds
    assert binomtest(violations, runs, delta, alternative="greater").pvalue > SIGNIFICANCE


def test_an_empty_set_is_certified_without_counts():
    mdp = combination_lock(5)
    run = explore_exactly(mdp, gamma=0.9, rounds=12, thresholds=constant(0.02))
    certificate = theory.certify_training(TabularWorld(mdp), run.reset_model, terminal=mdp.terminal, count=50_000)
    assert not certificate.poorly_reset.any()
    assert (certificate.mass, certificate.transitions) == (0.0, 0)
    sizes = (mdp.num_states, mdp.num_actions)
    bound = theory.mismatch_free_bound(*sizes, gamma=0.9, mass=0.0, floor=certificate.floor, barrier=0.001)
    assert certificate.loss == pytest.approx(0.1 * bound)
    assert certificate.loss < 0.2
    assert certificate.floor <= run.reset_model.distribution(mdp)[~mdp.terminal].min()
    assert "K is empty" in certificate.summary()
    json.dumps(certificate.to_dict(), allow_nan=False)


def test_states_that_resets_miss_are_certified_by_counts():
    """One state is reached with one step in a thousand, whatever is done: few resets end there, and counts show why."""
    rows = [[[0.0, 0.999, 0.001]] * 2, [[1.0, 0.0, 0.0]] * 2, [[1.0, 0.0, 0.0]] * 2]
    mdp = FiniteMDP(rows, np.zeros((3, 2)), 0)
    world, resets = TabularWorld(mdp), random_resets(mdp, 0, gamma=0.5)
    with pytest.raises(theory.CertificateError, match="no transitions were given"):
        theory.certify_training(world, resets, count=20)
    seen = world.episodes(mdp.uniform_policy(), EpisodeBatch(episodes=20_000, horizon=10, gamma=0.5, record=True)).seen
    certificate = theory.certify_training(world, resets, seen, start=0)
    assert certificate.poorly_reset.tolist() == [False, False, True]
    assert certificate.mass >= solve(mdp, gamma=0.5, rewards=np.outer([0, 0, 1], [1.0, 1.0])).values[0]
    assert certificate.loss == pytest.approx(certificate.mass / 0.5 + 0.75 * 0.001 / 3 / certificate.floor)
    assert certificate.loss < 0.05
    assert "in the 1 others" in certificate.statement


def test_bad_input_is_refused():
    mdp = random_mdp(0, num_states=4, num_actions=2)
    world, resets = TabularWorld(mdp), random_resets(mdp, 0)
    with pytest.raises(ValueError, match="count is 0"):
        theory.certify_arrivals(world, resets, count=0)
    with pytest.raises(ValueError, match="delta is 1"):
        theory.certify_arrivals(world, resets, delta=1)
    with pytest.raises(ValueError, match="max_steps is -1"):
        theory.certify_arrivals(world, resets, max_steps=-1)
    with pytest.raises(ValueError, match="4 states"):
        theory.certify_arrivals(TabularWorld(combination_lock(5)), resets)
    with pytest.raises(ValueError, match="barrier is 0"):
        theory.certify_training(world, resets, barrier=0)
    with pytest.raises(ValueError, match="delta is 0"):
        theory.certify_training(world, resets, delta=0)
    assert world.samples == 0
