"""Reset models: the right distribution, sampled and exact, and files that are whole or refused."""

import shutil

import numpy as np
import pytest
from file_helpers import change_json
from random_mdps import random_mdp, random_policy
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import FiniteMDP, ResetModel, TabularWorld, visitation
from curious_explorer.environments import combination_lock, crossroad_traps
from curious_explorer.errors import ResetModelError
from curious_explorer.resets.reset_model import fixed_shares, reset_chains, visit_chains


def make_model(mdp, seed, *, policies=4, gamma=0.8, weighting="average"):
    return ResetModel([random_policy(mdp, seed + k) for k in range(policies)], gamma=gamma, weighting=weighting)


def distribution_by_recursion(model, mdp):
    """Algorithm 2's recursion with dense linear algebra, independent of the library's solvers."""
    visits, mu = [], mdp.start
    for policy in model.policies:
        chain = np.einsum("sa,sat->st", policy, mdp.dense_transitions())
        inverse = np.linalg.inv(np.eye(mdp.num_states) - model.gamma * chain)
        visits.append((1 - model.gamma) * mu @ inverse)
        mu = 0.5 * mdp.start + 0.5 * visits[-1]
    return mu if model.weighting == "last" else 0.5 * mdp.start + 0.5 * np.mean(visits, axis=0)


@pytest.mark.parametrize("weighting", ["average", "last"])
@pytest.mark.parametrize("seed", range(10))
def test_exact_distribution_is_the_recursion(seed, weighting):
    mdp = random_mdp(seed)
    model = make_model(mdp, seed, weighting=weighting)
    np.testing.assert_allclose(model.distribution(mdp), distribution_by_recursion(model, mdp), atol=1e-12)


# 52 cases: each at SIGNIFICANCE / 52, so that all of them pass with probability 1 - SIGNIFICANCE.
SAMPLED = [crossroad_traps(10), combination_lock(10), *(random_mdp(seed) for seed in range(50))]


@pytest.mark.parametrize("case", range(len(SAMPLED)))
def test_samples_have_the_exact_distribution(case):
    mdp = SAMPLED[case]
    model = make_model(mdp, case, weighting=("average", "last")[case % 2])
    states = model.sample(TabularWorld(mdp, seed=case), 30_000)
    counts = np.bincount(states, minlength=mdp.num_states)
    assert chi_square(counts, model.distribution(mdp)) > SIGNIFICANCE / len(SAMPLED)


@pytest.mark.parametrize("seed", range(4))
def test_a_cover_is_walked_policy_by_policy_from_the_start(seed, tmp_path):
    mdp = random_mdp(seed)
    policies = [random_policy(mdp, seed + k) for k in range(3)]
    model = ResetModel(policies, gamma=0.8, chained=False)
    visits = [visitation(mdp, policy, gamma=0.8) for policy in policies]
    exact = 0.5 * mdp.start + 0.5 * np.mean(visits, axis=0)
    np.testing.assert_allclose(model.distribution(mdp), exact, atol=1e-12)
    for chosen in (model, ResetModel.load(model.save(tmp_path))):
        assert not chosen.chained
        counts = np.bincount(chosen.sample(TabularWorld(mdp, seed=seed), 30_000), minlength=mdp.num_states)
        assert chi_square(counts, exact) > SIGNIFICANCE / 8
    assert not model.weighted("last").chained


def by_chain(weights, ranges):
    return dict(zip(map(tuple, ranges.tolist()), weights.tolist(), strict=True))


def test_no_chain_is_built_that_is_never_drawn():
    weights, ranges = reset_chains(fixed_shares(2_000, "last"))
    assert len(weights) < 50
    assert weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert ranges.max() == 2_000
    assert len(reset_chains(fixed_shares(2_000, "average"))[0]) < 50 * 2_000


def test_chains_weigh_as_the_recursion_says():
    # D_2 = visit(pi_2, mu_1), mu_1 = 1/2 rho + 1/2 visit(pi_1, mu_0), mu_0 = 1/2 rho + 1/2 visit(pi_0, rho)
    assert by_chain(*visit_chains(2)) == {(2, 3): 0.5, (1, 3): 0.25, (0, 3): 0.25}
    assert by_chain(*reset_chains(fixed_shares(2, "last"))) == {
        (0, 0): 0.5,
        (1, 2): 0.25,
        (0, 2): 0.25,
    }


def test_a_start_costs_at_most_the_notes_say():
    # Expected cost of one sample of mu_n: at most gamma / (1 - gamma) steps.
    mdp = random_mdp(3, terminal=False)
    world = TabularWorld(mdp, seed=1)
    make_model(mdp, 1, policies=12, gamma=0.9, weighting="last").sample(world, 20_000)
    mean = world.samples / 20_000
    assert 0.8 * 9.0 < mean < 1.05 * 9.0  # geometric chains of policies, each walked 9 steps on average: sum 2^-k = 1


def test_save_and_load_are_exact(tmp_path):
    mdp = combination_lock(5)
    model = make_model(mdp, 7, weighting="last")
    folder = model.save(tmp_path / "model")
    loaded = ResetModel.load(folder)
    assert (loaded.gamma, loaded.weighting) == (model.gamma, model.weighting)
    assert all((a == b).all() for a, b in zip(loaded.policies, model.policies, strict=True))
    assert (loaded.sample(TabularWorld(mdp), 500) == model.sample(TabularWorld(mdp), 500)).all()


def test_saving_again_replaces_the_model_and_leaves_nothing_behind(tmp_path):
    mdp = combination_lock(3)
    make_model(mdp, 1).save(tmp_path)
    newer = make_model(mdp, 2)
    newer.save(tmp_path)
    assert (ResetModel.load(tmp_path).policies[0] == newer.policies[0]).all()
    assert len(list(tmp_path.iterdir())) == 2


def spoil_json(folder, **changes):
    change_json(folder / "reset_model.json", **changes)


def truncate_tables(folder):
    path = next(folder.glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-10])


def truncate_json(folder):
    path = folder / "reset_model.json"
    path.write_text(path.read_text()[:-20])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "reset_model.json").unlink(), "holds no reset model"),
        (lambda f: shutil.rmtree(f), "holds no reset model"),
        (truncate_json, "not complete JSON"),
        (truncate_tables, "truncated or was changed"),
        (lambda f: next(f.glob("*.npz")).unlink(), "No such file"),
        (lambda f: spoil_json(f, version=8), "newer than 7"),
        (lambda f: spoil_json(f, format="something else"), "another kind"),
        (lambda f: spoil_json(f, num_states=99), "expected float64 of shape"),
        (lambda f: spoil_json(f, gamma=1.5), "gamma is 1.5"),
        (lambda f: spoil_json(f, weighting="none"), "weighting is 'none'"),
        (lambda f: spoil_json(f, tables="../../etc/passwd"), "expected the name of a file in the same folder"),
        (lambda f: spoil_json(f, surprise=1), "unknown"),
        (lambda f: spoil_json(f, chained=1), "chained is 1"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, damage, message):
    folder = make_model(combination_lock(3), 1).save(tmp_path / "model")
    damage(folder)
    with pytest.raises(ResetModelError, match=message):
        ResetModel.load(folder)


def test_pickles_are_never_loaded(tmp_path):
    folder = make_model(combination_lock(3), 1).save(tmp_path)
    path = next(folder.glob("*.npz"))
    np.savez(path, policies=np.array([{"a": 1}], dtype=object))
    import hashlib

    spoil_json(folder, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(ResetModelError, match="header"):
        ResetModel.load(folder)


def test_other_spaces_are_refused(tmp_path):
    model = make_model(combination_lock(3), 1)
    other = crossroad_traps(3)
    with pytest.raises(ValueError, match="made for 13 states and 4 actions, but the world has 4 and 4"):
        model.sample(TabularWorld(other), 5)
    with pytest.raises(ValueError, match="made for 13 states"):
        model.distribution(other)
    blocker = tmp_path / "file"
    blocker.write_text("something of the user's")
    with pytest.raises(ValueError, match="is a file"):
        model.save(blocker)
    assert blocker.read_text() == "something of the user's"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": []}, "at least one policy"),
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"weighting": "median"}, "weighting is 'median'"),
        ({"policies": [np.ones((3, 2))]}, "policy 0, state 0: action probabilities sum to 2"),
        ({"policies": [np.full((3, 2), 0.5), np.full((2, 2), 0.5)]}, r"policy 1 has shape \(2, 2\), expected \(3, 2\)"),
        ({"policies": [np.ones(3)]}, r"policy 0 has shape \(3,\)"),
    ],
)
def test_bad_input(arguments, message):
    given = {"policies": [np.full((3, 2), 0.5)], "gamma": 0.9} | arguments
    with pytest.raises(ValueError, match=message):
        ResetModel(given.pop("policies"), **given)


def test_a_terminal_start_is_a_start_too():
    mdp = FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 0.0]]]), np.zeros((2, 1)), [0.5, 0.5], terminal=[1])
    model = ResetModel([np.ones((2, 1))], gamma=0.5)
    np.testing.assert_allclose(model.distribution(mdp), [0.5 * 0.5 + 0.5 * 0.25, 0.5 * 0.5 + 0.5 * 0.75])
