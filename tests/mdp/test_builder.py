"""`MDPBuilder`: words in, arrays out."""

from __future__ import annotations

import numpy as np
import pytest

from curious_explorer.mdp.builder import MDPBuilder
from curious_explorer.mdp.finite_mdp import FiniteMDP


def test_the_example_of_the_documentation() -> None:
    builder = MDPBuilder()
    builder.state("A").action("left").to("B", 0.8).to("A", 0.2)
    builder.state("A").action("right", reward=0.5).to("A")
    mdp = builder.terminal("B").start("A").build()
    expected = FiniteMDP(
        [[[0.2, 0.8], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]],
        [[0.0, 0.5], [0.0, 0.0]],
        0,
        terminal=[1],
        state_names=["A", "B"],
        action_names=["left", "right"],
    )
    assert mdp == expected


def test_one_chain_describes_everything() -> None:
    builder = FiniteMDP.builder()
    builder.state("A").action("x").to("B").action("y").to("A").state("B").action("x").to("A").action("y").to("B")
    mdp = builder.start({"A": 0.25, "B": 0.75}).build()
    assert mdp.dense_transitions().tolist() == [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    assert mdp.start.tolist() == [0.25, 0.75]


def test_order_is_that_of_first_mention() -> None:
    builder = MDPBuilder()
    builder.state("C").action("z").to("A").state("A").action("z").to("B").state("B").action("z").to("C")
    assert builder.start("B").build().state_names == ("C", "A", "B")


def test_order_can_be_fixed() -> None:
    builder = MDPBuilder().states("A", "B", "C").actions("y", "z").missing_actions_stay()
    builder.state("C").action("z").to("A")
    mdp = builder.start("B").build()
    assert (mdp.state_names, mdp.action_names) == (("A", "B", "C"), ("y", "z"))
    assert mdp.dense_transitions()[2].tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert mdp.dense_transitions()[0].tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_rewards_by_transition() -> None:
    builder = MDPBuilder()
    builder.state("A").action("x").to("A", 0.5, reward=1.0).to("B", 0.25, reward=0.5).to("C", 0.25)
    mdp = builder.terminal("B", "C").start("A").build()
    assert mdp.transition_rewards[:3].tolist() == [1.0, 0.5, 0.0]
    assert mdp.rewards[0, 0] == 0.625


def test_the_same_next_state_adds_up_and_averages_its_reward() -> None:
    builder = MDPBuilder()
    builder.state("A").action("x").to("A", 0.25, reward=1.0).to("B", 0.5).to("A", 0.25, reward=0.5)
    mdp = builder.terminal("B").start("A").build()
    assert mdp.dense_transitions()[0, 0].tolist() == [0.5, 0.5]
    assert mdp.transition_rewards[:2].tolist() == [0.75, 0.0]


def test_probability_zero_is_no_transition() -> None:
    builder = MDPBuilder()
    builder.state("A").action("x").to("A", 0.0, reward=1.0).to("B", 1.0)
    mdp = builder.terminal("B").start("A").build()
    assert mdp.transitions.nnz == 2
    assert mdp.rewards.tolist() == [[0.0], [0.0]]


def test_terminal_states_may_pay_for_ever() -> None:
    builder = MDPBuilder()
    builder.state("A").action("x").to("A", 0.5, reward=1.0).to("B", 0.5)
    builder.state("B").action("x", reward=0.25)
    assert builder.terminal("B").start("A").build().rewards.tolist() == [[0.5], [0.25]]


def test_a_pair_can_be_taken_up_again() -> None:
    builder = MDPBuilder()
    builder.state("A").action("x", reward=0.5).to("A", 0.5)
    builder.state("A").action("x").to("B", 0.5)
    builder.state("A").action("x", reward=0.5)
    mdp = builder.terminal("B").start("A").build()
    assert mdp.rewards.tolist() == [[0.5], [0.0]]


def test_numpy_numbers_are_numbers() -> None:
    builder = MDPBuilder()
    builder.state("A").action("x", reward=np.float32(0.5)).to("A", np.int64(1))
    assert builder.start({"A": np.float64(1.0)}).build().rewards.tolist() == [[0.5]]


def loop() -> MDPBuilder:
    builder = MDPBuilder()
    builder.state("A").action("x").to("A")
    return builder.start("A")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda b: b.state("B").action("x").to("A", 0.5), ["'B'", "'x'", "0.5", "expected 1"]),
        (lambda b: b.state("B").action("y").to("A"), ["state 'A', action 'y'", "nowhere", "missing_actions_stay"]),
        (lambda b: b.state("B").action("x"), ["state 'B', action 'x'", "nowhere"]),
        (lambda b: b.state("A").action("x").to("B", 1.5), ["state 'A', action 'x', next state 'B'", "1.5", "[0, 1]"]),
        (lambda b: b.state("A").action("x").to("B", -0.5), ["next state 'B'", "-0.5"]),
        (lambda b: b.state("A").action("x").to("B", float("nan")), ["next state 'B'", "nan", "finite"]),
        (lambda b: b.state("A").action("x").to("B", "half"), ["next state 'B'", "'half'", "number"]),
        (lambda b: b.state("A").action("x").to("B", True), ["next state 'B'", "True", "number"]),
        (lambda b: b.state("A").action("x").to(3), ["state is called 3", "string"]),
        (lambda b: b.state("A").action(3), ["action is called 3", "string"]),
        (lambda b: b.state("A").action("x", reward=1.5), ["'A'", "'x'", "1.5", "[0, 1]"]),
        (lambda b: b.state("A").action("x", reward=float("inf")), ["state 'A', action 'x'", "inf"]),
        (lambda b: b.state("A").action("x", 0.5).to("A", reward=1.0), ["state 'A', action 'x'", "both", "choose"]),
        (lambda b: b.state("A").action("x").to("A", 0.0, reward=1.0).action("x", 0.5), ["'A'", "'x'", "both"]),
        (lambda b: b.state("A").action("x", 0.5).action("x", 0.25), ["'A'", "'x'", "0.5", "0.25", "once"]),
        (lambda b: b.start({"A": 0.5}), ["start", "0.5", "expected 1"]),
        (lambda b: b.start({"A": "all"}), ["start", "'A'", "'all'"]),
        (lambda b: b.terminal("A", "B").state("A").action("y").to("B"), ["'A'", "'y'", "terminal", "'B'"]),
        (lambda b: b.states("B"), ["states", "settled", "before"]),
    ],
)
def test_bad_descriptions_are_named(spoil, words: list[str]) -> None:
    builder = loop()
    with pytest.raises(ValueError) as caught:  # noqa: PT011, PT012 (some fail at once, some when built; words below)
        spoil(builder)
        builder.build()
    for word in words:
        assert word in str(caught.value)


def test_fixed_names_catch_typing_errors() -> None:
    builder = MDPBuilder().states("start", "middle").actions("left")
    with pytest.raises(ValueError, match=r"state 'midle' is not among .*; did you mean 'middle'\?"):
        builder.terminal("midle")
    with pytest.raises(ValueError, match=r"action 'right' is not among"):
        builder.state("start").action("right")
    with pytest.raises(ValueError, match="'A' is listed twice"):
        MDPBuilder().states("A", "A")


def test_an_unfinished_description_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="0 states and 0 actions"):
        MDPBuilder().build()
    builder = MDPBuilder()
    builder.state("A").action("x").to("A")
    with pytest.raises(ValueError, match=r"no start was given; call builder.start"):
        builder.build()


def test_a_builder_can_be_built_twice_and_extended() -> None:
    builder = loop()
    first = builder.build()
    builder.state("B").action("x").to("A")
    assert first == loop().build()
    assert builder.build().num_states == 2


def test_a_long_chain_is_sparse() -> None:
    length = 20_000
    builder = MDPBuilder()
    for state in range(length):
        builder.state(f"s{state}").action("on").to(f"s{state + 1}", 0.5).to(f"s{state}", 0.5)
    mdp = builder.terminal(f"s{length}").start("s0").build()
    assert mdp.transitions.nnz == 2 * length + 1
    assert (np.diff(mdp.transitions.indptr)[:-1] == 2).all()


def test_a_description_can_be_one_chain():
    mdp = MDPBuilder().state("a").action("go").to("b").state("b").action("go").to("a").terminal("c").start("a").build()
    assert mdp.state_names == ("a", "b", "c")
    assert MDPBuilder().terminal("b").start("a").state("a").action("go").to("b").build().num_states == 2
