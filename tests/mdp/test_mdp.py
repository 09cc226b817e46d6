"""`FiniteMDP`: what it refuses and with which words, what it keeps, and that nothing changes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import finite_mdps

from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale


def two_states() -> dict:
    """Arrays of a valid MDP with 2 states and 2 actions, for tests to spoil."""
    transitions = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.3, 0.7]]])
    return {"transitions": transitions, "rewards": np.array([[0.0, 1.0], [0.5, 0.25]]), "start": np.array([0.25, 0.75])}


def spoil(name: str, index: tuple, value: float) -> dict:
    arrays = two_states()
    arrays[name][index] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (spoil("transitions", (1, 0, 1), 0.999), ["state 1, action 0", "0.999", "sum", "expected 1"]),
        (spoil("transitions", (1, 0, 1), 1.0 + 2e-9), ["state 1, action 0", "sum"]),
        (spoil("transitions", (0, 1), 0.0), ["state 0, action 1", "sum to 0", "terminal"]),
        (spoil("transitions", (0, 0), [-0.5, 1.5]), ["state 0, action 0", "state 0 is -0.5", "not negative"]),
        (spoil("transitions", (1, 1, 0), np.nan), ["state 1, action 1", "nan", "finite"]),
        (spoil("transitions", (1, 1, 0), np.inf), ["state 1, action 1", "inf", "finite"]),
        (spoil("rewards", (1, 0), 1.5), ["state 1, action 0", "1.5", "[0, 1]"]),
        (spoil("rewards", (0, 1), -0.1), ["state 0, action 1", "-0.1", "[0, 1]"]),
        (spoil("rewards", (1, 1), np.nan), ["state 1, action 1", "nan", "finite"]),
        (spoil("rewards", (1, 1), np.inf), ["state 1, action 1", "inf", "finite"]),
        (spoil("start", (0,), 0.3), ["start", "1.05", "expected 1"]),
        (spoil("start", (slice(None),), [-0.25, 1.25]), ["start[0]", "-0.25"]),
        (spoil("start", (1,), np.nan), ["start[1]", "nan"]),
        (two_states() | {"start": 2}, ["start", "state 2", "0 to 1"]),
        (two_states() | {"start": -1}, ["start", "state -1", "0 to 1"]),
        (two_states() | {"start": True}, ["start", "True"]),
        (two_states() | {"start": np.ones(3) / 3}, ["start", "(3,)", "(2,)"]),
        (two_states() | {"rewards": np.zeros((2, 3))}, ["rewards", "(2, 3)", "(2, 2)"]),
        (two_states() | {"rewards": np.zeros((2, 2, 3))}, ["rewards", "(2, 2, 3)", "(2, 2, 2)"]),
        (two_states() | {"transitions": np.zeros((2, 2, 3))}, ["transitions", "(2, 2, 3)", "(S, A, S)"]),
        (two_states() | {"transitions": np.zeros((2, 2))}, ["transitions", "(2, 2)", "(S, A, S)"]),
        (two_states() | {"transitions": np.zeros((0, 2, 0))}, ["at least one state", "0 states"]),
        (two_states() | {"transitions": np.zeros((2, 0, 2))}, ["at least one state and one action", "0 actions"]),
        (two_states() | {"transitions": sparse.eye_array(2)}, ["one sparse matrix", "list"]),
        (
            two_states() | {"transitions": [sparse.eye_array(2), sparse.eye_array(3)]},
            ["transitions[1]", "(3, 3)", "(2, 2)"],
        ),
        (two_states() | {"terminal": [2]}, ["terminal", "state 2", "0 to 1"]),
        (two_states() | {"terminal": [-1]}, ["terminal", "state -1"]),
        (two_states() | {"terminal": [True]}, ["terminal", "(1,)", "(2,)"]),
        (two_states() | {"terminal": [0.5]}, ["terminal", "0.5"]),
        (two_states() | {"terminal": [1]}, ["state 1, action 1", "terminal", "leads to state 0"]),
        (two_states() | {"state_names": ["a"]}, ["state_names", "1 entries", "2 states"]),
        (two_states() | {"state_names": ["a", "a"]}, ["state_names[1]", "'a'", "differ"]),
        (two_states() | {"state_names": ["a", 3]}, ["state_names[1]", "3", "string"]),
        (two_states() | {"state_names": "ab"}, ["state_names", "one string"]),
        (two_states() | {"action_names": ["x", "y", "z"]}, ["action_names", "3 entries", "2 actions"]),
        (two_states() | {"reward_scale": RewardScale(np.nan, 1.0)}, ["reward_scale", "nan", "finite"]),
        (two_states() | {"reward_scale": RewardScale(0.0, 0.0)}, ["reward_scale", "factor 0.0", "positive"]),
    ],
)
def test_bad_input_is_named(arrays: dict, words: list[str]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are checked below)
        FiniteMDP(**arrays)
    for word in words:
        assert word in str(caught.value)


def test_names_appear_in_messages() -> None:
    arrays = spoil("transitions", (1, 0, 1), 0.5) | {"state_names": ["home", "work"], "action_names": ["walk", "ride"]}
    with pytest.raises(ValueError, match=r"state 1 \('work'\), action 0 \('walk'\)"):
        FiniteMDP(**arrays)


def test_bad_transition_reward_names_the_next_state() -> None:
    rewards = np.zeros((2, 2, 2))
    rewards[1, 1, 0] = 2.0
    with pytest.raises(ValueError, match="state 1, action 1, next state 0: the reward is 2"):
        FiniteMDP(two_states()["transitions"], rewards, 0)


def test_rewards_of_impossible_transitions_do_not_matter() -> None:
    arrays = two_states()
    rewards = np.zeros((2, 2, 2))
    rewards[0, 1, 1] = np.nan  # probability 0
    assert FiniteMDP(arrays["transitions"], rewards, 0).rewards.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("shape", [(3, 2), (0, 0), (2, 0)])
def test_from_rows_refuses_a_shape_that_is_no_table(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"expected \(S \* A, S\)"):
        FiniteMDP.from_rows(sparse.csr_array(shape), np.zeros((1, 1)), 0)


def test_rows_may_miss_one_by_a_rounding_error() -> None:
    arrays = spoil("transitions", (1, 0, 1), 1.0 + 5e-10)
    assert FiniteMDP(**arrays).num_states == 2


def test_caller_arrays_are_neither_changed_nor_kept() -> None:
    arrays = two_states()
    before = {name: array.copy() for name, array in arrays.items()}
    mask = np.array([False, True])
    arrays["transitions"][1] = 0.0
    before["transitions"][1] = 0.0
    mdp = FiniteMDP(**arrays, terminal=mask)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name])
        assert array.flags.writeable
    arrays["transitions"][:], arrays["rewards"][:], arrays["start"][:], mask[:] = 9.0, 9.0, 9.0, True
    assert mdp.dense_transitions()[1, 0].tolist() == [0.0, 1.0]
    assert mdp.rewards[0].tolist() == [0.0, 1.0]
    assert mdp.start.tolist() == [0.25, 0.75]
    assert mdp.terminal.tolist() == [False, True]


def test_caller_sparse_matrices_are_neither_changed_nor_kept() -> None:
    # Out of order, with a duplicate and a stored zero: a careless reader would tidy it up in place.
    rows = sparse.csr_array(([0.5, 0.25, 0.25, 1.0, 0.0], [1, 0, 0, 1, 0], [0, 3, 5]), shape=(2, 2))
    data, indices = rows.data.copy(), rows.indices.copy()
    mdp = FiniteMDP.from_rows(rows, np.zeros((2, 1)), 0)
    np.testing.assert_array_equal(rows.data, data)
    np.testing.assert_array_equal(rows.indices, indices)
    assert mdp.transitions.toarray().tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert mdp.transitions.nnz == 3
    rows.data[:] = 7.0
    assert mdp.transitions.data.tolist() == [0.5, 0.5, 1.0]


def test_nothing_can_be_written() -> None:
    mdp = FiniteMDP(two_states()["transitions"], np.full((2, 2, 2), 0.5), 0)
    for array in (mdp.transitions.data, mdp.rewards, mdp.start, mdp.terminal, mdp.transition_rewards):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        mdp.num_states = 3


@given(finite_mdps())
def test_dense_and_sparse_roads_meet(mdp: FiniteMDP) -> None:
    dense = mdp.dense_transitions()
    rewards = mdp.rewards
    if mdp.transition_rewards is not None:
        rewards = np.zeros_like(dense)
        rewards.reshape(mdp.transitions.shape)[mdp.transitions.toarray() > 0] = mdp.transition_rewards
    from_dense = FiniteMDP(dense, rewards, mdp.start, terminal=mdp.terminal)
    by_action = [sparse.csc_array(dense[:, action]) for action in range(mdp.num_actions)]
    from_sparse = FiniteMDP(by_action, rewards, mdp.start, terminal=np.flatnonzero(mdp.terminal))
    assert from_dense == mdp
    assert from_sparse == mdp
    assert hash(from_dense) == hash(mdp)


@given(finite_mdps(transition_rewards=True))
def test_expected_rewards_are_averages_over_the_next_state(mdp: FiniteMDP) -> None:
    for state in range(mdp.num_states):
        for action in range(mdp.num_actions):
            row = state * mdp.num_actions + action
            span = slice(mdp.transitions.indptr[row], mdp.transitions.indptr[row + 1])
            _, probabilities = mdp.successors(state, action)
            expected = sum(p * r for p, r in zip(probabilities, mdp.transition_rewards[span], strict=True))
            assert mdp.rewards[state, action] == pytest.approx(expected, abs=1e-12)


@given(finite_mdps(max_states=3))
def test_indices_are_narrow_however_it_was_built(mdp: FiniteMDP) -> None:
    wide = mdp.transitions.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for built in (mdp, FiniteMDP.from_rows(wide, mdp.rewards, 0), FiniteMDP(mdp.dense_transitions(), mdp.rewards, 0)):
        assert (built.transitions.indices.dtype, built.transitions.indptr.dtype) == (np.int32, np.int32)


def test_empty_rows_of_terminal_states_become_loops() -> None:
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 1.0
    mdp = FiniteMDP(transitions, np.zeros((2, 2)), 0, terminal=[1])
    assert mdp.dense_transitions()[1].tolist() == [[0.0, 1.0], [0.0, 1.0]]


@given(finite_mdps(), st.randoms(use_true_random=False))
def test_relabelling_moves_what_an_action_does(mdp: FiniteMDP, random) -> None:
    labels = np.array([random.sample(range(mdp.num_actions), mdp.num_actions) for _ in range(mdp.num_states)])
    renamed = mdp.relabel_actions(labels)
    for state in range(mdp.num_states):
        for action in range(mdp.num_actions):
            new = labels[state, action]
            np.testing.assert_array_equal(
                renamed.dense_transitions()[state, new], mdp.dense_transitions()[state, action]
            )
            assert renamed.rewards[state, new] == pytest.approx(mdp.rewards[state, action], abs=1e-15)
    back = renamed.relabel_actions(np.argsort(labels, axis=1))
    assert back.fingerprint == mdp.fingerprint


@pytest.mark.parametrize("labels", [[[0, 1]], [[0, 0], [0, 1]], [[0, 2], [0, 1]], [[0, 1, 2], [0, 1, 2]]])
def test_relabelling_needs_permutations(labels: list) -> None:
    mdp = FiniteMDP(**two_states())
    with pytest.raises(ValueError, match="permutation"):
        mdp.relabel_actions(labels)


def test_equality_sees_every_part() -> None:
    base = FiniteMDP(**two_states())
    assert base == FiniteMDP(**two_states())
    others = [
        FiniteMDP(**spoil("transitions", (0, 0), [0.25, 0.75])),
        FiniteMDP(**spoil("rewards", (0, 0), 0.125)),
        FiniteMDP(**two_states() | {"start": 0}),
        FiniteMDP(**two_states(), state_names=["a", "b"]),
        FiniteMDP(**two_states(), action_names=["a", "b"]),
        FiniteMDP(**two_states(), reward_scale=RewardScale(0.0, 2.0)),
        FiniteMDP(
            two_states()["transitions"],
            np.repeat(two_states()["rewards"][:, :, None], 2, axis=2),
            two_states()["start"],
        ),
    ]
    assert all(base != other for other in others)
    assert base != "an MDP"
    # A state may be absorbing without being terminal; that is another MDP.
    looping = np.ones((1, 1, 1))
    assert FiniteMDP(looping, [[0.0]], 0) != FiniteMDP(looping, [[0.0]], 0, terminal=[0])


def test_variations_leave_the_original_alone() -> None:
    base = FiniteMDP(**two_states(), state_names=["a", "b"])
    moved, repaid = base.with_start(1), base.with_rewards(np.zeros((2, 2)))
    assert base == FiniteMDP(**two_states(), state_names=["a", "b"])
    assert moved.start.tolist() == [0.0, 1.0]
    assert moved.state_names == ("a", "b")
    assert not repaid.rewards.any()


def test_successors_check_their_indices() -> None:
    mdp = FiniteMDP(**two_states())
    states, probabilities = mdp.successors(1, 1)
    assert states.tolist() == [0, 1]
    assert probabilities.tolist() == [0.3, 0.7]
    for pair in ((2, 0), (-1, 0), (0, 2), (0, -1)):
        with pytest.raises(IndexError, match="expected an index from 0 to 1"):
            mdp.successors(*pair)


def test_reward_scale_maps_back() -> None:
    assert RewardScale(-100.0, 100.0).original([0.0, 0.99, 1.0]).tolist() == [-100.0, -1.0, 0.0]


def test_numbers_stand_in_for_missing_names() -> None:
    mdp = FiniteMDP(**two_states())
    assert (mdp.has_state_names, mdp.state_names) == (False, ("0", "1"))
    assert (mdp.has_action_names, mdp.action_names) == (False, ("0", "1"))
    assert repr(mdp) == "FiniteMDP(num_states=2, num_actions=2, transitions=6, terminal=0)"
