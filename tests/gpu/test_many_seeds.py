"""Many seeds at once give what each seed gives alone."""

import os
import subprocess
import sys

os.environ.setdefault("TRITON_INTERPRET", "1")  # before any kernel is defined: CI has no GPU

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")  # the rest needs both, hence:
pytest.importorskip("triton")
# ruff: noqa: E402

from many_seeds_helpers import StackedWorlds

from curious_explorer import TRPO, ModelBased, Reinforce, TabularWorld, evaluate, explore, improve
from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.explorers.thresholds import constant, linear
from curious_explorer.gpu import softmax_steps
from curious_explorer.gpu.many_seeds import explore_many, improve_many, learn_many, resets
from curious_explorer.gpu.many_worlds import SeededWorlds
from curious_explorer.gpu.softmax_steps import Actors, Sums, ascend, launch_natural_kernel, natural_steps
from curious_explorer.learners import actor_critic, reinforce, trpo

GAMMA = 0.9
PROBLEMS = {
    "CCT(6)": crossroad_traps(6, permute_actions=3),
    "DCL(4)": combination_lock(4, permute_actions=3),
    "Garnet": garnet(12, 3, branching=3, seed=1),
}
LEARNERS = {"TRPO": TRPO(updates=12, episodes=20), "Reinforce": Reinforce(updates=12, episodes=20)}
MEMORY = 5.0
SEEDS = (0, 7, 2**63 + 5)


def random_tables(shape, seed, *, saturated):
    """Logits, policy, weights and advantage sums of B runs, with unseen states and untried pairs."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 200.0 if saturated else 1.0, shape)
    logits = np.maximum(logits - logits.max(axis=2, keepdims=True), actor_critic.LEAST_LOGIT)
    policy = np.exp(logits)
    policy /= policy.sum(axis=2, keepdims=True)
    weight = rng.integers(0, 40, shape) * (rng.random((*shape[:2], 1)) < 0.8)
    sums = rng.normal(0.0, 1.0, shape) * weight * 10.0 ** rng.integers(-8, 1, (shape[0], 1, 1))
    sums[0] = 0.0  # no signal
    sums[1, 0, 0], weight[1, 0, 0] = np.inf, 1
    weight[2] = 0  # nothing seen at all
    weight[3], sums[3] = 7.0, 0.1 * (7.0 + MEMORY)  # all actions equally good, but for rounding
    return [np.ascontiguousarray(table, dtype=np.float64) for table in (logits, policy, weight, sums * (weight > 0))]


def tensors(*tables):
    return [torch.from_numpy(table.copy()) for table in tables]


# Steps --------------------------------------------------------------------------------------------------------------


STEP = {"max_kl": 0.05, "memory": MEMORY, "critic_memory": 20.0}


def batch_of(shape, seed, *, saturated):
    """Random actors, critics and sums of B runs."""
    logits, policy, weight, sums = tensors(*random_tables(shape, seed, saturated=saturated))
    critic, targets = (torch.rand(shape[:2], dtype=torch.float64) for _ in range(2))
    return Actors(logits, policy), critic, Sums(weight, sums, targets)


def test_steps_on_the_cpu_are_those_of_single_runs():
    actors, critic, sums = batch_of((40, 9, 4), 11, saturated=True)
    before = actors.policy.clone()
    stepped, critics, verdicts = natural_steps(actors, critic, sums, **STEP)
    assert torch.equal(actors.policy, before)
    for run in range(40):
        logits, policy, weight, advantages = (t[run].clone().numpy() for t in (*actors, *sums[:2]))
        verdict, _ = trpo.natural_step(logits, policy, weight, advantages, 0.05, MEMORY)
        assert verdict == int(verdicts[run])
        assert verdict == trpo.NO_SIGNAL or run not in (0, 2, 3)
        np.testing.assert_array_equal(stepped.policy[run].numpy(), policy)
    assert set(verdicts.tolist()) == {trpo.ACCEPTED, trpo.NO_SIGNAL, trpo.NOT_FINITE}
    seen = sums.weight.sum(dim=2)
    moved = torch.where(seen > 0.0, (20.0 * critic + sums.target_sum) / (20.0 + seen), critic)
    torch.testing.assert_close(critics, moved, rtol=1e-14, atol=0.0)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # the interpreter's way to infinity
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero encountered:RuntimeWarning")
@pytest.mark.parametrize("tile", [1_024, 8])  # all states in one tile, or two states in each
@pytest.mark.parametrize(("shape", "saturated"), [((8, 5, 3), False), ((6, 5, 3), True), ((5, 1, 2), False)])
def test_the_kernel_takes_the_same_steps(shape, saturated, tile, monkeypatch):
    monkeypatch.setattr(softmax_steps, "TILE", tile)
    given = batch_of(shape, 2, saturated=saturated)
    expected, expected_critics, expected_verdicts = natural_steps(*given, **STEP)
    stepped, critics, verdicts = launch_natural_kernel(*given, *STEP.values())
    assert torch.equal(verdicts, expected_verdicts)
    torch.testing.assert_close(stepped.policy, expected.policy, rtol=0.0, atol=1e-9)
    torch.testing.assert_close(stepped.logits, expected.logits, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(critics, expected_critics, rtol=1e-14, atol=0.0)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:divide by zero encountered:RuntimeWarning")
@pytest.mark.parametrize(("scale", "max_kl"), [(1e-160, 0.05), (1.0, 1e-300), (1.0, 5e-324), (1.0, 1e-17)])
def test_a_search_that_finds_no_step_ends_and_moves_nothing(scale, max_kl):
    actors, critic, sums = batch_of((5, 4, 3), 7, saturated=False)
    for steps in (natural_steps, launch_natural_kernel):
        stepped, _, verdicts = steps(
            actors, critic, sums._replace(advantage_sum=scale * sums.advantage_sum), max_kl=max_kl, memory=MEMORY,
            critic_memory=20.0,
        )  # fmt: skip
        still = verdicts != trpo.ACCEPTED
        assert torch.equal(stepped.policy[still], actors.policy[still])
        torch.testing.assert_close(stepped.policy, actors.policy, rtol=0.0, atol=1e-6)
        assert scale == 1.0 or still.all()


def test_ascents_are_those_of_single_runs():
    logits, policy, weight, sums = random_tables((20, 9, 4), 3, saturated=False)
    sums[1] = 1.0  # an infinite advantage has no gradient
    given = tensors(logits, policy, weight, sums)
    rates, values = np.linspace(0.1, 3.0, 20), torch.zeros((20, 9), dtype=torch.float64)
    stepped, _, verdicts = ascend(
        Actors(*given[:2]), values, Sums(*given[2:], values), torch.from_numpy(rates), critic_memory=1.0
    )
    moved = verdicts == trpo.ACCEPTED
    for run in range(20):
        assert reinforce.ascend(logits[run], policy[run], weight[run], sums[run], rates[run]) == bool(moved[run])
        np.testing.assert_allclose(stepped.policy[run].numpy(), policy[run], atol=1e-12)
    assert not moved.all()


# Runs ---------------------------------------------------------------------------------------------------------------


def assert_same_rounds(alone, batched):
    assert len(alone.rounds) == len(batched.rounds)
    for one, other in zip(alone.rounds, batched.rounds, strict=True):
        assert one.threshold == other.threshold
        np.testing.assert_array_equal(one.visited, other.visited)
        np.testing.assert_array_equal(one.poorly_visited, other.poorly_visited)
        assert (one.visit_samples, one.learning_samples) == (other.visit_samples, other.learning_samples)
        assert (one.accepted, one.rejected) == (other.accepted, other.rejected)
        np.testing.assert_allclose(one.learned_policy, other.learned_policy, atol=1e-9)
        np.testing.assert_allclose(one.occupancy, other.occupancy, atol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_runs_are_those_of_their_seeds(problem, learner):
    mdp, optimizer = PROBLEMS[problem], LEARNERS[learner]
    asked = {"gamma": GAMMA, "rounds": 3, "visits": 300, "thresholds": linear(0.03), "learn_from": "average"}
    worlds = StackedWorlds([mdp] * len(SEEDS), SEEDS)
    explorations = explore_many(worlds, optimizer, **asked)
    results = improve_many(worlds, optimizer, explorations.reset("average"), gamma=GAMMA)
    for run, seed in enumerate(SEEDS):
        world = TabularWorld(mdp, seed=seed)
        exploration = explore(world, optimizer, progress=False, **asked)
        assert_same_rounds(exploration, explorations.run(run))
        assert exploration.samples == int(explorations.samples[run])
        resets = exploration.reset_model.weighted("average")
        result = improve(world, optimizer, resets, gamma=GAMMA, evaluation_episodes=0)
        batched = results.run(run)
        np.testing.assert_allclose(batched.policy, result.policy, atol=1e-9)
        np.testing.assert_array_equal(batched.curve.samples, result.curve.samples)
        np.testing.assert_array_equal(batched.curve.episodes, result.curve.episodes)
        np.testing.assert_allclose(batched.curve.returns, result.curve.returns, atol=1e-9)
        assert (batched.accepted, batched.rejected) == (result.accepted, result.rejected)
        assert world.samples == int(worlds.samples[run])


def test_every_option_of_explore_is_that_of_a_single_run():
    mdp, optimizer = PROBLEMS["CCT(6)"], LEARNERS["TRPO"]
    asked = {"gamma": GAMMA, "rounds": 3, "visits": 200, "reward": "combined", "learn_from": "last", "budget": 2_500}
    asked["thresholds"] = linear(0.05)
    explorations = explore_many(StackedWorlds([mdp] * 2, [4, 5]), optimizer, **asked)
    for run, seed in enumerate((4, 5)):
        alone = explore(TabularWorld(mdp, seed=seed), optimizer, progress=False, **asked)
        assert all(round_.learning_samples == 2_500 for round_ in alone.rounds)  # the budget did end learning
        assert_same_rounds(alone, explorations.run(run))


def test_each_run_may_have_its_own_thresholds():
    mdp, optimizer = PROBLEMS["DCL(4)"], LEARNERS["TRPO"]
    thresholds = [linear(0.05), 0.2, constant(0.01)]
    asked = {"gamma": GAMMA, "rounds": 2, "visits": 200, "learn_from": "average"}
    explorations = explore_many(StackedWorlds([mdp] * 3, [1, 1, 1]), optimizer, thresholds=thresholds, **asked)
    for run, own in enumerate(thresholds):
        alone = explore(TabularWorld(mdp, seed=1), optimizer, thresholds=own, progress=False, **asked)
        assert_same_rounds(alone, explorations.run(run))
    poorly = [int(explorations.rounds[0].poorly_visited[run].sum()) for run in range(3)]
    assert len(set(poorly)) > 1


@pytest.mark.parametrize("learner", LEARNERS)
def test_budgets_end_each_run_where_they_end_a_single_one(learner):
    mdp, optimizer = PROBLEMS["CCT(6)"], LEARNERS[learner]
    budgets = [1, 137, 3_000, 10**6]
    worlds = StackedWorlds([mdp] * 4, [3] * 4)
    results = improve_many(worlds, optimizer, None, gamma=GAMMA, budgets=torch.tensor(budgets))
    for run, budget in enumerate(budgets):
        world = TabularWorld(mdp, seed=3)
        alone = improve(world, optimizer, None, gamma=GAMMA, budget=budget, evaluation_episodes=0)
        batched = results.run(run)
        assert batched.samples == alone.samples <= budget
        assert (batched.accepted, batched.rejected) == (alone.accepted, alone.rejected)
        np.testing.assert_array_equal(batched.curve.episodes, alone.curve.episodes)
        np.testing.assert_allclose(batched.policy, alone.policy, atol=1e-9)
        assert worlds.worlds[run].position() == world.position()  # no stream was used up by waiting


def test_labels_do_not_matter_to_the_distribution_over_seeds():
    """All seeds of a batch share one labelling of actions; values are distributed as with one for each seed."""
    seeds, optimizer = range(150), Reinforce(updates=8, episodes=10)

    def values(mdps):
        results = improve_many(StackedWorlds(mdps, seeds), optimizer, None, gamma=GAMMA)
        return [
            float(mdp.start @ evaluate(mdp, policy.numpy(), gamma=GAMMA))
            for mdp, policy in zip(mdps, results.policy, strict=True)
        ]

    shared = values([crossroad_traps(2, permute_actions=0)] * 150)
    own = values([crossroad_traps(2, permute_actions=1_000 + seed) for seed in seeds])
    assert np.std(own) > 0.0
    assert stats.ks_2samp(shared, own).pvalue > 0.001  # the significance of this test


@pytest.mark.parametrize(
    ("mdp", "optimizer"),
    [
        (crossroad_traps(2, permute_actions=3), TRPO(updates=2, episodes=4)),
        (combination_lock(1, permute_actions=3), Reinforce(updates=2, episodes=4)),
    ],
    ids=["CCT(2)-TRPO", "DCL(1)-Reinforce"],
)
def test_kernels_give_the_runs_of_stacked_worlds(mdp, optimizer):
    kernels, stacked = SeededWorlds(mdp, SEEDS[1:], device="cpu"), StackedWorlds([mdp] * 2, SEEDS[1:])
    explored, expected = (explore_many(w, optimizer, gamma=0.5, rounds=2, visits=20) for w in (kernels, stacked))
    for run in range(2):
        assert_same_rounds(expected.run(run), explored.run(run))
    budgets = torch.tensor([1, 12])
    learned, wanted = (
        improve_many(w, optimizer, explored.reset("last"), gamma=0.5, budgets=budgets) for w in (kernels, stacked)
    )
    torch.testing.assert_close(learned.policy, wanted.policy, rtol=0.0, atol=1e-9)
    assert torch.equal(learned.samples, wanted.samples)
    assert torch.equal(learned.verdicts, wanted.verdicts)
    assert torch.equal(kernels.samples, stacked.samples)
    after = [world.walk_counts(resets([], 0.5, "last").then(learned.policy), 10) for world in (kernels, stacked)]
    assert torch.equal(*after)  # the same streams come next, whoever had to wait


# Bad input ----------------------------------------------------------------------------------------------------------


def test_bad_arguments_are_refused_before_work_begins():
    worlds = StackedWorlds([PROBLEMS["CCT(6)"]] * 2, [0, 1])
    trpo = LEARNERS["TRPO"]
    with pytest.raises(ValueError, match="ModelBased, expected TRPO"):
        explore_many(worlds, ModelBased(), gamma=GAMMA, rounds=2)
    with pytest.raises(ValueError, match="thresholds has 3 entries, expected one for each of the 2 runs"):
        explore_many(worlds, trpo, gamma=GAMMA, rounds=2, thresholds=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="threshold of round 0 is -1"):
        explore_many(worlds, trpo, gamma=GAMMA, rounds=2, thresholds=[0.1, -1.0])
    with pytest.raises(ValueError, match="reward is 'fame'"):
        explore_many(worlds, trpo, gamma=GAMMA, rounds=2, reward="fame")
    with pytest.raises(ValueError, match="learn_from is 'first'"):
        explore_many(worlds, trpo, gamma=GAMMA, rounds=2, learn_from="first")
    with pytest.raises(ValueError, match="gamma"):
        improve_many(worlds, trpo, None, gamma=1.0)
    with pytest.raises(ValueError, match=r"budgets has shape \(3,\)"):
        improve_many(worlds, trpo, None, gamma=GAMMA, budgets=torch.tensor([1, 2, 3]))
    with pytest.raises(ValueError, match="budget"):
        improve_many(worlds, trpo, None, gamma=GAMMA, budgets=0)
    with pytest.raises(ValueError, match="expected TRPO"):
        learn_many(worlds, "trpo", resets([], GAMMA, "last"), gamma=GAMMA)
    assert worlds.samples.tolist() == [0, 0]


def test_worlds_need_seeds():
    with pytest.raises(ValueError, match="seeds is empty"):
        SeededWorlds(PROBLEMS["CCT(6)"], [], device="cpu")
    with pytest.raises(ValueError, match="seed"):
        SeededWorlds(PROBLEMS["CCT(6)"], [0, -1], device="cpu")


def test_without_torch_the_error_names_the_extra():
    code = "import sys; sys.modules['torch'] = None; import curious_explorer.gpu.many_seeds"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "BackendError: many seeds at once need the package 'torch'" in done.stderr
    assert "pip install '.[gpu]'" in done.stderr
