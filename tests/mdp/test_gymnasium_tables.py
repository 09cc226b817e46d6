"""Gymnasium's tables, read and compared entry by entry with the tables themselves."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from curious_explorer.mdp.finite_mdp import FiniteMDP

GYMNASIUM_IDS = [
    ("FrozenLake-v1", {"is_slippery": True}),
    ("FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake8x8-v1", {}),
    ("Taxi-v4", {}),
    ("CliffWalking-v1", {}),
    ("CliffWalking-v1", {"is_slippery": True}),
]


@pytest.mark.parametrize(("env_id", "arguments"), GYMNASIUM_IDS)
def test_every_entry_agrees_with_the_table(env_id: str, arguments: dict) -> None:
    env = gymnasium.make(env_id, **arguments).unwrapped
    mdp = FiniteMDP.from_gymnasium(env)
    assert (mdp.num_states, mdp.num_actions) == (env.observation_space.n, env.action_space.n)
    np.testing.assert_allclose(mdp.start, env.initial_state_distrib, atol=1e-9)
    dense = mdp.dense_transitions()
    for state in np.flatnonzero(~mdp.terminal):
        for action in range(mdp.num_actions):
            expected = np.zeros(mdp.num_states)
            paid = 0.0
            for probability, successor, reward, _ in env.P[int(state)][action]:
                expected[successor] += probability
                paid += probability * reward
            np.testing.assert_allclose(dense[state, action], expected, atol=1e-9)
            np.testing.assert_allclose(mdp.reward_scale.original(mdp.rewards[state, action]), paid, atol=1e-9)


@pytest.mark.parametrize(("env_id", "arguments"), GYMNASIUM_IDS)
def test_the_end_is_where_gymnasium_says(env_id: str, arguments: dict) -> None:
    """Walk the table as an agent would: a step is flagged as terminated exactly when it enters a terminal state."""
    env = gymnasium.make(env_id, **arguments).unwrapped
    mdp = FiniteMDP.from_gymnasium(env)
    seen = set(np.flatnonzero(env.initial_state_distrib).tolist())
    waiting = list(seen)
    while waiting:
        state = waiting.pop()
        for outcomes in env.P[state].values():
            for probability, successor, _, terminated in outcomes:
                if probability > 0.0:
                    assert mdp.terminal[successor] == terminated
                    if not terminated and successor not in seen:
                        seen.add(successor)
                        waiting.append(int(successor))
    zero_for_ever = mdp.reward_scale.original(mdp.rewards[mdp.terminal])
    np.testing.assert_allclose(zero_for_ever, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("env_id", "scale", "num_terminal"),
    [("FrozenLake-v1", (0.0, 1.0), 5), ("Taxi-v4", (-10.0, 30.0), 4), ("CliffWalking-v1", (-100.0, 100.0), 1)],
)
def test_known_scales(env_id: str, scale: tuple[float, float], num_terminal: int) -> None:
    mdp = FiniteMDP.from_gymnasium(env_id)
    assert mdp.reward_scale == scale
    assert mdp.terminal.sum() == num_terminal


def test_frozen_lake_pays_on_the_transition() -> None:
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1")
    entering_goal = (mdp.transitions.indices == 15) & (np.repeat(np.arange(64), np.diff(mdp.transitions.indptr)) < 60)
    np.testing.assert_array_equal(mdp.transition_rewards, entering_goal.astype(float))


def test_a_wrapped_environment_is_unwrapped_and_left_as_it_was() -> None:
    env = gymnasium.make("FrozenLake-v1")
    table = {state: {action: list(v) for action, v in row.items()} for state, row in env.unwrapped.P.items()}
    assert FiniteMDP.from_gymnasium(env) == FiniteMDP.from_gymnasium(env.unwrapped)
    assert table == env.unwrapped.P


class Table(gymnasium.Env):
    """A made-up environment that is its table."""

    def __init__(self, table: object, start: object = None) -> None:
        self.P = table
        self.observation_space = spaces.Discrete(len(table))
        self.action_space = spaces.Discrete(1)
        self.initial_state_distrib = np.eye(len(table))[0] if start is None else start


def test_a_state_entered_both_ways_gets_a_copy() -> None:
    table = {
        0: {0: [(0.5, 1, 0.0, False), (0.5, 1, 1.0, True)]},
        1: {0: [(1.0, 0, 0.0, False)]},
    }
    mdp = FiniteMDP.from_gymnasium(Table(table))
    assert mdp.state_names == ("0", "1", "1 (ended)")
    assert mdp.terminal.tolist() == [False, False, True]
    assert mdp.dense_transitions()[:, 0].tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert mdp.transition_rewards.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_start_that_also_ends_episodes_gets_a_copy() -> None:
    mdp = FiniteMDP.from_gymnasium(Table({0: {0: [(1.0, 0, 1.0, True)]}}))
    assert mdp.state_names == ("0", "0 (ended)")
    assert mdp.dense_transitions()[:, 0].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert mdp.rewards.tolist() == [[1.0], [0.0]]


def test_transitions_that_cannot_happen_do_not_matter() -> None:
    table = {
        0: {0: [(1.0, 1, 0.0, True)]},
        1: {0: [(1.0, 2, 0.0, False)]},  # after the end
        2: {0: [(1.0, 1, 0.0, False)]},  # never reached
    }
    mdp = FiniteMDP.from_gymnasium(Table(table))
    assert mdp.num_states == 3
    assert mdp.terminal.tolist() == [False, True, False]


def test_unreached_states_are_judged_by_their_own_entries() -> None:
    table = {
        0: {0: [(1.0, 0, 0.0, False)]},
        1: {0: [(1.0, 1, 0.0, True)]},  # a hole behind a wall
        2: {0: [(1.0, 0, 0.0, False)]},  # nothing leads here
    }
    assert FiniteMDP.from_gymnasium(Table(table)).terminal.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("rewards", "scale"),
    [
        ((0.25, 0.5), (0.0, 1.0)),
        ((0.0, 5.0), (0.0, 5.0)),
        ((2.0, 3.0), (0.0, 3.0)),
        ((-0.5, 0.25), (-0.5, 1.0)),
        ((-3.0, -1.0), (-3.0, 3.0)),
    ],
)
def test_rewards_are_moved_only_as_far_as_needed(rewards: tuple[float, float], scale: tuple[float, float]) -> None:
    table = {0: {0: [(1.0, 1, rewards[0], False)]}, 1: {0: [(1.0, 0, rewards[1], False)]}}
    mdp = FiniteMDP.from_gymnasium(Table(table))
    assert mdp.reward_scale == scale
    np.testing.assert_allclose(mdp.reward_scale.original(mdp.rewards).ravel(), rewards, atol=1e-12)


def test_probability_zero_is_no_transition() -> None:
    table = {0: {0: [(1.0, 0, 0.0, False), (0.0, 1, -9.0, True)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    mdp = FiniteMDP.from_gymnasium(Table(table))
    assert mdp.reward_scale == (0.0, 1.0)
    assert not mdp.terminal.any()


LOOP = [(1.0, 0, 0.0, False)]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (lambda: gymnasium.make("CartPole-v1"), ["CartPole-v1", "observation_space", "Discrete"]),
        (lambda: gymnasium.make("Blackjack-v1"), ["Blackjack-v1", "observation_space", "Discrete"]),
        (lambda: Table({0: {0: LOOP, 1: LOOP}}), ["P[0]", "2 entries", "expected 1"]),
        (lambda: Table({0: {0: LOOP}, 1: {}}), ["P[1]", "0 entries", "expected 1"]),
        (lambda: Table({0: {0: LOOP}, 5: {0: LOOP}}), ["P has no entry 1"]),
        (lambda: Table({0: {3: LOOP}}), ["P[0] has no entry 0"]),
        (lambda: Table({0: {0: [(1.0, 0, 0.0)]}}), ["P[0][0]", "(1.0, 0, 0.0)", "terminated"]),
        (lambda: Table({0: {0: [(1.0, 7, 0.0, False)]}}), ["P[0][0]", "state 7", "0 to 0"]),
        (lambda: Table({0: {0: [(1.0, 0.5, 0.0, False)]}}), ["P[0][0]", "state 0.5"]),
        (lambda: Table({0: {0: [(-1.0, 0, 0.0, False)]}}), ["P[0][0]", "-1.0"]),
        (lambda: Table({0: {0: [(float("nan"), 0, 0.0, False)]}}), ["P[0][0]", "nan"]),
        (lambda: Table({0: {0: [(1.0, 0, float("inf"), False)]}}), ["P[0][0]", "reward", "inf"]),
        (lambda: Table({0: {0: [(0.5, 0, 0.0, False)]}}), ["state 0", "action 0", "0.5"]),
        (lambda: Table({0: {0: []}}), ["state 0", "action 0", "sum to 0"]),
        (lambda: Table({0: {0: LOOP}}, start=[0.5]), ["initial_state_distrib", "0.5"]),
        (lambda: Table([[LOOP], 3]), ["P[1]", "int"]),
    ],
)
def test_bad_tables_are_named(env, words: list[str]) -> None:
    made = env()
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the words are checked below)
        FiniteMDP.from_gymnasium(made)
    for word in words:
        assert word in str(caught.value)


def test_missing_parts_are_named() -> None:
    env = Table({0: {0: LOOP}})
    del env.initial_state_distrib
    with pytest.raises(ValueError, match="has no initial_state_distrib"):
        FiniteMDP.from_gymnasium(env)
    del env.P
    with pytest.raises(ValueError, match="has no table P"):
        FiniteMDP.from_gymnasium(env)
    env.action_space = spaces.Discrete(1, start=1)
    with pytest.raises(ValueError, match="action_space"):
        FiniteMDP.from_gymnasium(env)


def test_nested_lists_are_tables_too() -> None:
    assert FiniteMDP.from_gymnasium(Table([[LOOP]])) == FiniteMDP.from_gymnasium(Table({0: {0: LOOP}}))


def test_an_id_takes_the_arguments_of_make():
    slippery = FiniteMDP.from_gymnasium("FrozenLake-v1", is_slippery=True)
    firm = FiniteMDP.from_gymnasium("FrozenLake-v1", is_slippery=False)
    assert firm.transitions.nnz < slippery.transitions.nnz


def test_environments_of_the_library_hand_out_their_mdp():
    from curious_explorer.environments import combination_lock

    assert FiniteMDP.from_gymnasium("curious_explorer/CombinationLock-v0", depth=3) == combination_lock(3)
