"""Large models: what is done in blocks or for the states met alone is what would be done for all of it at once."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

from curious_explorer import TRPO, FiniteMDP, ModelBased, ResetModel, TabularWorld, explore, validation
from curious_explorer.arrays import blocks
from curious_explorer.environments import action_labels, garnet, one_way_maze
from curious_explorer.learners.trpo import ACCEPTED, natural_step
from curious_explorer.mdp import assembly, mdp_files
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan_with_unknown
from curious_explorer.worlds.world import Reward, TransitionCounts

USERS_OF_BLOCKS = ["curious_explorer.environments.garnet", action_labels, assembly, mdp_files, validation]


@pytest.fixture
def three_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in USERS_OF_BLOCKS:
        module = sys.modules[user] if isinstance(user, str) else user
        monkeypatch.setattr(module, "blocks", lambda size: blocks(size, 3))


@pytest.mark.parametrize(("num_states", "num_actions", "branching"), [(7, 3, 1), (10, 2, 2), (20, 4, 5), (1, 1, 3)])
def test_a_garnet_is_drawn_the_same_in_blocks(
    three_rows_at_once: None, num_states: int, num_actions: int, branching: int
) -> None:
    random = np.random.default_rng(5)
    num_pairs = num_states * num_actions
    cuts = np.sort(random.random((num_pairs, branching - 1)), axis=1)
    edges = np.hstack([np.zeros((num_pairs, 1)), cuts, np.ones((num_pairs, 1))])
    successors = random.integers(num_states, size=num_pairs * branching, dtype=np.int32)
    paid = random.random(num_states) * (random.random(num_states) >= 0.5)
    dense = np.zeros((num_pairs, num_states))
    for place, successor in enumerate(successors):
        dense[place // branching, successor] += np.diff(edges, axis=1).ravel()[place]
    drawn = garnet(num_states, num_actions, branching, reward_sparsity=0.5, seed=5)
    np.testing.assert_allclose(drawn.transitions.toarray(), dense, rtol=1e-12, atol=0.0)
    assert (drawn.rewards == paid[:, None]).all()


def test_labels_are_drawn_the_same_in_blocks(three_rows_at_once: None) -> None:
    wanted = np.random.default_rng(4).permuted(np.tile(np.arange(5), (20, 1)), axis=1)
    assert (action_labels.action_labels(20, 5, 4) == wanted).all()


def test_errors_name_the_place_in_any_block(three_rows_at_once: None, tmp_path) -> None:
    for row, column, value, words in ((9, 2, -1.0, "state 4, action 1"), (15, 0, 0.5, "state 7, action 1: trans")):
        bad = np.zeros((16, 8))
        bad[np.arange(16), np.arange(16) // 2] = 1.0
        bad[row, column] = value
        with pytest.raises(ValueError, match=words):
            FiniteMDP.from_rows(sparse.csr_array(bad), np.zeros((8, 2)), 0)
    rewards = np.zeros((8, 2))
    rewards[6, 1] = 2.0
    good = np.repeat(np.eye(8), 2, axis=0)
    with pytest.raises(ValueError, match=r"state 6, action 1: the reward is 2\.0"):
        FiniteMDP.from_rows(sparse.csr_array(good), rewards, 0)
    policy = np.full((8, 2), 0.5)
    policy[7, 0] = 0.25
    with pytest.raises(ValueError, match=r"policy, state 7: action probabilities sum to 0\.75"):
        validation.check_policy(policy, 8, 2)
    policy[5, 1] = np.nan
    with pytest.raises(ValueError, match="policy, state 5, action 1"):
        validation.check_policy(policy, 8, 2)
    mdp = FiniteMDP.from_rows(sparse.csr_array(good), np.zeros((8, 2)), 0, terminal=[3, 7])
    assert FiniteMDP.load(mdp.save(tmp_path / "x.npz")) == mdp
    with pytest.raises(ValueError, match="state 3, action 0: the state is terminal, but this action leads to state 4"):
        FiniteMDP.from_rows(sparse.csr_array(np.roll(good, 1, axis=1)), np.zeros((8, 2)), 0, terminal=[3])


def test_terminal_rows_left_empty_loop_whatever_stands_around_them() -> None:
    dense = np.repeat(np.eye(6), 2, axis=0)
    dense[[4, 5, 11]] = 0.0  # both rows of state 2, one of state 5
    mdp = FiniteMDP.from_rows(sparse.csr_array(dense), np.zeros((6, 2)), 0, terminal=[0, 2, 5])
    assert (mdp.transitions.toarray() == np.repeat(np.eye(6), 2, axis=0)).all()


def test_a_natural_step_is_the_same_among_many_states_never_visited() -> None:
    random = np.random.default_rng(0)
    size, places = 5000, np.array([3, 4, 700, 4999])
    logits = random.normal(size=(4, 3))
    policy = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    weight, sums = random.integers(0, 4, size=(4, 3)).astype(float), random.normal(size=(4, 3))
    wide_logits, wide_policy = random.normal(size=(size, 3)), np.full((size, 3), 1.0 / 3.0)
    wide_weight, wide_sums = np.zeros((size, 3)), np.zeros((size, 3))
    for wide, narrow in (
        (wide_logits, logits),
        (wide_policy, policy),
        (wide_weight, weight),
        (wide_sums, sums),
    ):
        wide[places] = narrow
    before = wide_logits.copy()
    narrow_answer = natural_step(logits, policy, weight, sums, 0.05, 5.0)
    wide_answer = natural_step(wide_logits, wide_policy, wide_weight, wide_sums, 0.05, 5.0)
    assert wide_answer == narrow_answer
    assert narrow_answer[0] == ACCEPTED
    assert (wide_logits[places] == logits).all()
    assert (wide_policy[places] == policy).all()
    others = np.delete(np.arange(size), places)
    assert (wide_logits[others] == before[others]).all()


def test_a_plan_is_the_same_among_many_states_never_met() -> None:
    seen = TransitionCounts(
        np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1]), np.array([1, 2, 2, 0]), np.array([3, 3, 3, 1]), np.zeros(4)
    )
    small = CountedModel(3, 2)
    small.add(seen)
    places = np.array([5, 90, 1200])
    moved = seen._replace(state=places[seen.state], next_state=places[seen.next_state])
    large = CountedModel(2000, 2)
    large.add(moved)
    reward = np.zeros((2000, 2))
    reward[1200] = 1.0
    for hopeful in (False, True):
        wide = plan_with_unknown(large, gamma=0.9, reward=Reward(reward), known_after=2, hopeful=hopeful)
        narrow = plan_with_unknown(small, gamma=0.9, reward=Reward(reward[places]), known_after=2, hopeful=hopeful)
        assert wide.leads_to_unknown == narrow.leads_to_unknown
        assert (wide.policy[places] == narrow.policy).all()
        assert (np.delete(wide.policy, places, axis=0) == 0.5).all()


@pytest.mark.parametrize("optimizer", [lambda: TRPO(updates=3), lambda: ModelBased(updates=4, episodes=20)])
def test_a_hundred_thousand_states_are_explored_from_a_mapped_file(tmp_path, optimizer) -> None:
    path = one_way_maze(317).save(tmp_path / "maze.npz")
    worlds = [TabularWorld(FiniteMDP.load(path, mmap=mmap), seed=1) for mmap in (True, False)]
    settings = {"gamma": 0.98, "rounds": 2, "visits": 1000, "progress": False}
    mapped, read = (explore(world, optimizer(), **settings) for world in worlds)
    assert worlds[0].samples == worlds[1].samples > 100_000
    for one, other in zip(mapped.rounds, read.rounds, strict=True):
        assert (one.visited == other.visited).all()
        assert (np.asarray(one.learned_policy) == np.asarray(other.learned_policy)).all()
    mapped.reset_model.save(tmp_path / "resets")
    starts = ResetModel.load(tmp_path / "resets").sample(worlds[0], 1000)
    assert len(np.unique(starts)) > 10
