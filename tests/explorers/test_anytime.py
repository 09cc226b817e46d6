"""Exploring and learning in turns: to the step, the same for the same seed, and never far behind the better of both."""

import math

import numpy as np
import pytest

from curious_explorer import TRPO, FiniteMDP, ModelBased, Reinforce, TabularWorld, evaluate, learn, solve
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.explorers.anytime import EXPLORE_FIRST, PLAIN
from curious_explorer.explorers.curious_explorer import CuriousExplorer
from curious_explorer.learners.improve import measure_value
from curious_explorer.learners.optimizer import Evaluation, Measured, OptimizerResult, Pause, complete, learning_curve
from curious_explorer.worlds.world import EpisodeBatch, Step, World

BOTH = [TRPO, Reinforce]
FACTOR = 3


def fraction_of(mdp, policy, gamma=0.95):
    return mdp.start @ evaluate(mdp, policy, gamma=gamma) / (mdp.start @ solve(mdp, gamma=gamma).values)


def samples_alone(mdp, optimizer, seed, *, explore_first):
    """After how many samples one process alone would hand out 0.95 of the best value."""
    world, resets, best = TabularWorld(mdp, seed=seed), None, -math.inf
    if explore_first:
        resets = CuriousExplorer(optimizer).explore(world, gamma=0.95).reset_model
    for pause in optimizer.learn_in_pieces(world, resets, gamma=0.95):
        policy = pause.policy if best == -math.inf else None
        if pause.measured is not None and pause.measured.evaluation.value > best:
            best, policy = pause.measured.evaluation.value, pause.measured.policy
        if policy is not None and fraction_of(mdp, policy) >= 0.95:
            return world.samples
        if world.samples > 2_000_000:
            break
    return math.inf


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize(
    ("make", "winner"), [(lambda: crossroad_traps(5), PLAIN), (lambda: combination_lock(20), EXPLORE_FIRST)]
)
def test_never_worse_than_the_factor(optimizer, make, winner):
    """Where plain learning is fast, and where it finds nothing in two million steps."""
    mdp, alone, together = make(), [], []
    for seed in (1, 2, 3):
        alone.append([samples_alone(mdp, optimizer(), seed, explore_first=first) for first in (False, True)])
        reached = []

        def watch(policy, samples, reached=reached):
            if not reached and fraction_of(mdp, policy) >= 0.95:
                reached.append(samples)

        result = learn(TabularWorld(mdp, seed=seed), optimizer(), gamma=0.95, watch=watch)
        assert fraction_of(mdp, result.policy) >= 0.95
        together.append(reached[0])
        assert result.winner == winner
    better = min(np.median(alone, axis=0))
    assert np.median(together) <= FACTOR * better
    assert winner == PLAIN or math.isinf(np.median(alone, axis=0)[0])


@pytest.mark.parametrize("optimizer", BOTH)
@pytest.mark.parametrize("samples", [1, 77, 5_000, 60_000, 130_000, 250_001, 400_000])
def test_a_number_of_samples_is_kept_to_the_step(optimizer, samples):
    world = TabularWorld(combination_lock(20), seed=3)
    result = learn(world, optimizer(), gamma=0.95, samples=samples)
    assert result.samples == world.samples == sum(result.samples_by.values()) == samples
    assert (result.exploration is None) == (samples < 130_000)


def test_samples_that_were_taken_before_are_not_counted():
    world = TabularWorld(crossroad_traps(4), seed=3)
    first = learn(world, TRPO(), gamma=0.9, samples=4_000)
    second = learn(world, TRPO(), gamma=0.9, samples=5_000)
    assert (first.samples, second.samples, world.samples) == (4_000, 5_000, 9_000)


@pytest.mark.parametrize("optimizer", BOTH)
def test_the_same_seed_gives_the_same_result(optimizer):
    mdp = combination_lock(8)
    results = [learn(TabularWorld(mdp, seed=5), optimizer(), gamma=0.9, samples=300_000) for _ in range(2)]
    assert (results[0].policy == results[1].policy).all()
    assert results[0].samples_by == results[1].samples_by
    assert results[0].evaluation == results[1].evaluation


def test_who_has_used_less_goes_on_and_the_best_measured_is_handed_out():
    mdp = combination_lock(20)
    world, seen = TabularWorld(mdp, seed=1), []
    result = learn(world, TRPO(), gamma=0.95, samples=900_000, watch=lambda *new: seen.append(new))
    plain, explore_first = result.samples_by[PLAIN], result.samples_by[EXPLORE_FIRST]
    assert abs(plain - explore_first) < 0.15 * result.samples
    policies, samples = zip(*seen, strict=True)
    assert samples[0] == 0
    assert (policies[0] == 0.25).all()
    assert list(samples) == sorted(samples)
    assert (policies[-1] == result.policy).all()
    assert not any(policy.flags.writeable for policy in policies)
    exact = mdp.start @ evaluate(mdp, result.policy, gamma=0.95)
    assert result.value == pytest.approx(exact, abs=5 * result.evaluation.standard_error + 1e-4)
    assert result.exploration.samples <= explore_first


def test_actions_that_are_equally_good_stay_equally_good():
    """Two of three actions pay the same: what is handed out leaves neither of them out."""
    rewards = np.array([[1.0, 1.0, 0.0]])
    mdp = FiniteMDP(np.ones((1, 3, 1)), rewards, 0)
    result = learn(TabularWorld(mdp, seed=2), TRPO(), gamma=0.8, samples=200_000)
    assert (result.policy[0] > 0).tolist() == [True, True, False], result


@pytest.mark.parametrize("optimizer", BOTH)
def test_pauses_change_nothing(optimizer):
    """Two learners that take turns learn what each learns alone; so do rounds of Algorithm 2."""
    mdps = [crossroad_traps(4), combination_lock(5)]
    alone = [optimizer()(TabularWorld(mdp, seed=4), None, gamma=0.9, budget=60_000) for mdp in mdps]
    pieces = [optimizer().learn_in_pieces(TabularWorld(mdp, seed=4), None, gamma=0.9, budget=60_000) for mdp in mdps]
    for _ in range(5):
        assert all(next(one).policy is not None for one in pieces)
    for one, expected in zip(pieces, alone, strict=True):
        got = complete(one)
        assert (got.policy == expected.policy).all()
        assert got.samples == expected.samples
    explorer, rounds = CuriousExplorer(optimizer(), rounds=3), []
    expected = explorer.explore(TabularWorld(mdps[0], seed=4), gamma=0.9)
    for pause in explorer.explore_in_pieces(TabularWorld(mdps[0], seed=4), rounds, gamma=0.9):
        assert pause.next_steps >= 0
    assert [one.samples for one in rounds] == [one.samples for one in expected.rounds]
    assert all((one.visited == two.visited).all() for one, two in zip(rounds, expected.rounds, strict=True))


class Corridor(World):
    """Five places in a row; the last one pays and ends the episode."""

    num_states, num_actions = 5, 2

    def __init__(self):
        self.samples, self._place = 0, 0

    def identity(self):
        return {"kind": "corridor"}

    def restart(self):
        self._place = 0
        return 0

    def step(self, action):
        self.samples += 1
        self._place = max(0, self._place + (1 if action == 1 else -1))
        return Step(self._place, float(self._place == 4), terminated=self._place == 4)


def test_a_world_of_ones_own_is_enough():
    world = Corridor()
    result = learn(world, TRPO(), gamma=0.8, samples=40_000)
    assert result.samples == world.samples <= 40_000
    assert (result.policy[:4, 1] > 0.9).all()


def test_refusals():
    world = TabularWorld(crossroad_traps(3))
    for optimizer, word in ((ModelBased(), "ModelBased"), (TRPO(updates=3), "updates"), (TRPO, "TRPO")):
        with pytest.raises(ValueError, match=word):
            learn(world, optimizer, gamma=0.9)
    with pytest.raises(ValueError, match="samples is 0"):
        learn(world, TRPO(), gamma=0.9, samples=0)
    with pytest.raises(ValueError, match="gamma"):
        learn(world, TRPO(), gamma=1.5)
    assert world.samples == 0


class Coins:
    """An optimizer that learns nothing: it acts for a while, then says of two policies what they were measured at."""

    def __init__(self, worse, better):
        self.worse, self.better = worse, better

    def __call__(self, world, reset, *, gamma, reward=None, budget=None, watch=None):
        return complete(self.learn_in_pieces(world, reset, gamma=gamma))

    def learn_in_pieces(self, world, reset, *, gamma, reward=None, budget=None, watch=None):
        for policy, evaluation in ((self.worse, Evaluation(0.6, 0.01, 400, 2_000)), (self.better, None)):
            world.episodes(policy, EpisodeBatch(episodes=4_000, horizon=7, gamma=gamma))
            evaluation = evaluation or measure_value(world, policy, gamma=gamma, episodes=400)
            yield Pause(0.0, policy, Measured(policy, evaluation))
        return OptimizerResult(policy=self.better, samples=0, curve=learning_curve([]))


def test_what_was_lucky_is_measured_again_and_does_not_stay():
    """Coins that pay with 1/3 and 1/2: the first was measured at 0.6, which nothing honest beats."""
    transitions = np.zeros((3, 2, 3))
    transitions[:, :, 1] = (1 / 3, 1 / 2)
    transitions[:, :, 2] = 1.0 - transitions[:, :, 1]
    mdp = FiniteMDP(transitions, np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), 2)
    worse, better = np.tile([1.0, 0.0], (3, 1)), np.tile([0.0, 1.0], (3, 1))
    result = learn(TabularWorld(mdp, seed=7), Coins(worse, better), gamma=0.5, samples=100_000)
    assert (result.policy == better).all()
    assert result.value == pytest.approx(mdp.start @ evaluate(mdp, better, gamma=0.5), abs=0.05)
