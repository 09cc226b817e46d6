"""The zoo: facts that the definitions of CCT, DCL, Agarwal's chain and Garnet imply, counted by hand."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from curious_explorer.environments import agarwal_chain, combination_lock, crossroad_traps, garnet
from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.registration import ENVIRONMENT_IDS, register_environments

DEPTHS = [1, 2, 5, 10, 20]
SEEDS = [None, 0, 7]


def only_successor(mdp: FiniteMDP, state: int, action: int) -> int:
    states, probabilities = mdp.successors(state, action)
    assert probabilities.tolist() == [1.0]
    return int(states[0])


def chance_of_reward(mdp: FiniteMDP, horizon: int) -> float:
    """The undiscounted return of the uniform policy over a horizon, by plain dynamic programming."""
    value = [0.0] * mdp.num_states
    for _ in range(horizon):
        following = []
        for state in range(mdp.num_states):
            total = 0.0
            for action in range(mdp.num_actions):
                states, probabilities = mdp.successors(state, action)
                total += mdp.rewards[state, action]
                total += sum(p * value[s] for s, p in zip(states, probabilities, strict=True))
            following.append(total / mdp.num_actions)
        value = following
    return sum(p * v for p, v in zip(mdp.start, value, strict=True))


# Consecutive Crossroad Traps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_traps_have_one_way_forward(depth: int, seed: int | None) -> None:
    mdp = crossroad_traps(depth, permute_actions=seed)
    assert (mdp.num_states, mdp.num_actions) == (depth + 1, 4)
    assert mdp.state_names == tuple(f"T{state}" for state in range(depth + 1))
    assert np.flatnonzero(mdp.terminal).tolist() == [depth]
    assert mdp.start.tolist() == [1.0] + [0.0] * depth
    for state in range(depth):
        successors = sorted(only_successor(mdp, state, action) for action in range(4))
        assert successors == [max(state - 1, 0)] * 3 + [state + 1]
        for action in range(4):
            enters_end = only_successor(mdp, state, action) == depth
            assert mdp.rewards[state, action] == (1.0 if enters_end else 0.0)
    assert mdp.rewards[depth].tolist() == [0.0] * 4


def test_traps_reward_for_uniform_walks_is_rare() -> None:
    # d right choices in a row out of four: nothing earlier than d steps, and then with probability 4 ** -d.
    assert chance_of_reward(crossroad_traps(6), 5) == 0.0
    assert chance_of_reward(crossroad_traps(6), 6) == pytest.approx(0.25**6, rel=1e-12)


# Diabolical Combination Lock --------------------------------------------------------------------------------------


def level_of(name: str, depth: int) -> int:
    if name == "start":
        return 0
    return depth + 1 if name in ("endA", "endB", "lockedEnd") else int(name[1:])


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_lock_goes_one_level_down_at_every_step(depth: int, seed: int | None) -> None:
    mdp = combination_lock(depth, permute_actions=seed)
    assert (mdp.num_states, mdp.num_actions) == (3 * depth + 4, 4)
    names = mdp.state_names
    assert {names[s] for s in np.flatnonzero(mdp.terminal)} == {"endA", "endB", "lockedEnd"}
    assert names[int(np.argmax(mdp.start))] == "start"
    for state in np.flatnonzero(~mdp.terminal):
        for action in range(4):
            successors, _ = mdp.successors(int(state), action)
            # So every path from the start ends after exactly depth + 1 transitions.
            assert {level_of(names[s], depth) for s in successors} == {level_of(names[state], depth) + 1}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("switch", [0.2, 0.0, 0.5, 1.0])
def test_lock_choices(depth: int, seed: int | None, switch: float) -> None:
    mdp = combination_lock(depth, switch=switch, permute_actions=seed)
    names = mdp.state_names

    def lane(state: int) -> str:
        name = names[state]
        return {"start": "A", "endA": "A", "endB": "B", "lockedEnd": "L"}.get(name, name[0])

    for state in map(int, np.flatnonzero(~mdp.terminal)):
        found = []
        for action in range(4):
            chances = dict.fromkeys("ABL", 0.0)
            for successor, probability in zip(*mdp.successors(state, action), strict=True):
                chances[lane(successor)] += probability
            found.append((chances["L"], chances[lane(state)]))
            pays = level_of(names[state], depth) == depth and chances["L"] == 0.0
            assert mdp.rewards[state, action] == (1.0 if pays else 0.0)
        if lane(state) == "L":
            assert found == [(1.0, 1.0)] * 4
        else:
            expected = sorted([(0.0, 1.0 - switch), (0.0, switch), (1.0, 0.0), (1.0, 0.0)])
            np.testing.assert_allclose(sorted(found), expected, atol=1e-12)


@pytest.mark.parametrize("depth", DEPTHS)
def test_uniform_walks_open_the_lock_with_probability_two_to_minus_depth_plus_one(depth: int) -> None:
    mdp = combination_lock(depth)
    assert chance_of_reward(mdp, depth) == 0.0
    assert chance_of_reward(mdp, depth + 1) == pytest.approx(0.5 ** (depth + 1), rel=1e-12)
    assert chance_of_reward(mdp, depth + 5) == pytest.approx(0.5 ** (depth + 1), rel=1e-12)


# Agarwal's chain --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_agarwal_chain(length: int, seed: int | None) -> None:
    mdp = agarwal_chain(length, permute_actions=seed)
    assert (mdp.num_states, mdp.num_actions) == (length + 2, 4)
    assert not mdp.terminal.any()
    assert [only_successor(mdp, 0, action) for action in range(4)] == [1] * 4
    for state in range(1, length + 1):
        successors = sorted(only_successor(mdp, state, action) for action in range(4))
        assert successors == [state - 1] * 3 + [state + 1]
    assert [only_successor(mdp, length + 1, action) for action in range(4)] == [length + 1] * 4
    assert mdp.rewards[:-1].sum() == 0.0
    assert mdp.rewards[-1].tolist() == [1.0] * 4


# Labels -----------------------------------------------------------------------------------------------------------


def way_on(mdp: FiniteMDP) -> list[int]:
    """In each state of CCT but the last, the action that goes forward."""
    return [
        next(action for action in range(4) if only_successor(mdp, state, action) == state + 1)
        for state in range(mdp.num_states - 1)
    ]


def test_labels_give_nothing_away_by_default() -> None:
    labels = way_on(crossroad_traps(200))
    counts = np.bincount(labels, minlength=4)
    # Chi-square with 3 degrees of freedom at significance 1e-3 (16.27), for labels drawn uniformly.
    assert ((counts - 50.0) ** 2 / 50.0).sum() < 16.27
    assert labels == way_on(crossroad_traps(200))
    assert labels != way_on(crossroad_traps(200, permute_actions=1))
    assert way_on(crossroad_traps(50, permute_actions=None)) == [0] * 50


def test_permuting_labels_is_only_a_renaming() -> None:
    plain = combination_lock(4, permute_actions=None)
    renamed = permute_action_labels(plain, 3)
    for state in range(plain.num_states):
        before = sorted(map(tuple, plain.dense_transitions()[state].tolist()))
        after = sorted(map(tuple, renamed.dense_transitions()[state].tolist()))
        assert before == after
    assert permute_action_labels(plain, None) is plain


# Garnet -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_states", "num_actions", "branching"), [(1, 1, 1), (50, 4, 2), (30, 3, 7), (20, 2, 1)])
def test_garnet_shape(num_states: int, num_actions: int, branching: int) -> None:
    mdp = garnet(num_states, num_actions, branching, seed=5)
    assert (mdp.num_states, mdp.num_actions) == (num_states, num_actions)
    lengths = np.diff(mdp.transitions.indptr)
    assert lengths.min() >= 1
    assert lengths.max() <= branching
    assert mdp.start[0] == 1.0
    assert (mdp.rewards == mdp.rewards[:, :1]).all()
    if branching == 1:
        assert (mdp.transitions.data == 1.0).all()


def test_garnet_is_a_function_of_its_seed() -> None:
    assert garnet(40, seed=2) == garnet(40, seed=2)
    assert garnet(40, seed=2) != garnet(40, seed=3)


def test_garnet_reward_sparsity() -> None:
    assert not garnet(500, reward_sparsity=1.0).rewards.any()
    assert (garnet(500, reward_sparsity=0.0).rewards > 0.0).all()
    paying = (garnet(5000, reward_sparsity=0.9).rewards[:, 0] > 0.0).sum()
    assert abs(paying - 500) < 3.3 * np.sqrt(5000 * 0.1 * 0.9)  # normal approximation, two-sided significance 1e-3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: crossroad_traps(0), "depth is 0"),
        (lambda: crossroad_traps(2.5), "depth is 2.5"),
        (lambda: crossroad_traps(True), "depth is True"),
        (lambda: crossroad_traps(3, permute_actions=-1), "seed is -1"),
        (lambda: combination_lock(-1), "depth is -1"),
        (lambda: combination_lock(3, switch=1.5), "switch is 1.5"),
        (lambda: combination_lock(3, switch=float("nan")), "switch is nan"),
        (lambda: agarwal_chain(0), "length is 0"),
        (lambda: garnet(0), "num_states is 0"),
        (lambda: garnet(3, 0), "num_actions is 0"),
        (lambda: garnet(3, 2, 0), "branching is 0"),
        (lambda: garnet(3, reward_sparsity=2.0), "reward_sparsity is 2.0"),
        (lambda: garnet(3, seed=-1), "seed is -1"),
    ],
)
def test_bad_arguments(make, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


# Gymnasium --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("environment_id", ENVIRONMENT_IDS)
def test_gymnasium_is_content(environment_id: str, render_mode: str | None) -> None:
    env = gymnasium.make(environment_id, render_mode=render_mode)
    check_env(env.unwrapped)  # warnings are errors here
    env.close()


def test_gymnasium_passes_arguments_on() -> None:
    env = gymnasium.make("curious_explorer/CombinationLock-v0", depth=7, switch=0.1, permute_actions=None)
    assert env.unwrapped.mdp == combination_lock(7, switch=0.1, permute_actions=None)
    assert gymnasium.make("curious_explorer/Garnet-v0", num_states=9, seed=4).unwrapped.mdp == garnet(9, seed=4)


def test_registering_again_changes_nothing() -> None:
    before = {environment_id: gymnasium.registry[environment_id] for environment_id in ENVIRONMENT_IDS}
    register_environments()
    assert all(gymnasium.registry[environment_id] is spec for environment_id, spec in before.items())
