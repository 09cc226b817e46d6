"""`TabularEnv`: an MDP walked through Gymnasium's interface."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import assume, given, settings
from scipy import stats
from strategies import finite_mdps

from curious_explorer.environments import combination_lock, crossroad_traps, garnet
from curious_explorer.gym.tabular_env import TabularEnv, make_tabular_env
from curious_explorer.mdp.finite_mdp import FiniteMDP

SIGNIFICANCE = 1e-3


def coin() -> FiniteMDP:
    """Two starts with 0.25 and 0.75, a fair step to one of two ends, and a reward that depends on which."""
    builder = FiniteMDP.builder().states("A", "B", "win", "lose").actions("toss", "keep")
    for state in ("A", "B"):
        builder.state(state).action("toss").to("win", 0.3, reward=1.0).to("lose", 0.7, reward=0.25)
        builder.state(state).action("keep").to(state)
    return builder.terminal("win", "lose").start({"A": 0.25, "B": 0.75}).build()


@settings(max_examples=30, deadline=None)
@given(finite_mdps())
def test_any_mdp_walks_as_its_table_says(mdp: FiniteMDP) -> None:
    assume((mdp.start[~mdp.terminal] > 0.0).any())
    env = TabularEnv(mdp)
    state, info = env.reset(seed=3)
    assert mdp.start[state] > 0.0
    assert not mdp.terminal[state]
    assert info["state_name"] == mdp.state_names[state]
    env.action_space.seed(3)
    for _ in range(20):
        action = env.action_space.sample()
        successor, reward, terminated, truncated, info = env.step(action)
        states, _ = mdp.successors(int(state), int(action))
        assert successor in states
        row = int(state) * mdp.num_actions + int(action)
        entry = mdp.transitions.indptr[row] + states.tolist().index(successor)
        own = mdp.transition_rewards
        assert reward == (mdp.rewards[state, action] if own is None else own[entry])
        assert terminated == mdp.terminal[successor]
        assert not truncated
        assert info == {"state_name": mdp.state_names[successor]}
        state = env.reset()[0] if terminated else successor


@settings(max_examples=10, deadline=None)
@given(finite_mdps())
def test_gymnasium_accepts_any_mdp(mdp: FiniteMDP) -> None:
    assume((mdp.start[~mdp.terminal] > 0.0).any())
    check_env(TabularEnv(mdp), skip_render_check=True)


def test_frequencies_are_those_of_the_mdp() -> None:
    env = TabularEnv(coin())
    env.reset(seed=11)
    starts, ends, count = np.zeros(2), np.zeros(2), 4000
    for _ in range(count):
        state, _ = env.reset()
        starts[state] += 1
        end, reward, terminated, _, _ = env.step(0)
        assert terminated
        assert reward == {2: 1.0, 3: 0.25}[int(end)]
        ends[end - 2] += 1
    assert stats.chisquare(starts, count * np.array([0.25, 0.75])).pvalue > SIGNIFICANCE
    assert stats.chisquare(ends, count * np.array([0.3, 0.7])).pvalue > SIGNIFICANCE


def test_seeds_repeat_and_differ() -> None:
    def walk(seed: int) -> list[int]:
        env = TabularEnv(garnet(200))
        states = [env.reset(seed=seed)[0]]
        states += [env.step(step % 4)[0] for step in range(30)]
        return states

    assert walk(5) == walk(5)
    assert walk(5) != walk(6)


def test_starts_in_terminal_states_are_left_out() -> None:
    mdp = coin().with_start([0.2, 0.2, 0.6, 0.0])
    env = TabularEnv(mdp)
    env.reset(seed=0)
    counts = np.bincount([env.reset()[0] for _ in range(2000)], minlength=4)
    assert counts[2:].tolist() == [0, 0]
    assert stats.chisquare(counts[:2]).pvalue > SIGNIFICANCE
    with pytest.raises(ValueError, match="every state in which the MDP starts is terminal"):
        TabularEnv(coin().with_start(2))


def test_a_terminal_state_is_absorbing_if_one_walks_on() -> None:
    env = TabularEnv(coin())
    env.reset(seed=0)
    end, _, terminated, _, _ = env.step(0)
    assert terminated
    assert env.step(1)[:3] == (end, 0.0, True)


def test_text() -> None:
    env = TabularEnv(crossroad_traps(1, permute_actions=None), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "start in state 0 (T0)\n"
    env.step(1)
    assert env.render() == "action 1, reward 0: state 0 (T0)\n"
    env.step(0)
    assert env.render() == "action 0, reward 1: state 1 (T1), terminal\n"


def test_pictures_show_where_one_is() -> None:
    env = TabularEnv(combination_lock(3), render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    np.testing.assert_array_equal(env.render(), first)
    env.step(0)
    second = env.render()
    assert second.shape == first.shape
    changed = np.argwhere((first != second).any(axis=2))
    assert changed.size > 0
    # Only the ring moved: from the start, at the left, to the level after it.
    assert changed[:, 1].max() < 0.5 * first.shape[1]
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), first)
    env.close()


def test_the_layout_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from curious_explorer.mdp import layout

    calls = []
    original = layout.layout_states
    monkeypatch.setattr(layout, "layout_states", lambda mdp: (calls.append(1), original(mdp))[1])
    env = TabularEnv(combination_lock(2), render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(3):
        env.render()
        env.step(0)
    assert calls == [1]


def test_misuse_is_named() -> None:
    env = TabularEnv(coin(), render_mode="ansi")
    with pytest.raises(ResetNeeded, match="before reset"):
        env.step(0)
    with pytest.raises(ResetNeeded, match="before reset"):
        env.render()
    env.reset(seed=0)
    for action in (2, -1, 0.5, True, None):
        with pytest.raises(ValueError, match="action is"):
            env.step(action)
    with pytest.raises(ValueError, match="render_mode is 'human'"):
        TabularEnv(coin(), render_mode="human")
    with pytest.raises(ValueError, match="environment is 'maze', expected one of"):
        make_tabular_env("maze")
    silent = TabularEnv(coin())
    silent.reset(seed=0)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert silent.render() is None
