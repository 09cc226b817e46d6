"""The rest of the zoo: facts that the definitions imply, and DeepSea step by step against bsuite's own rule."""

from __future__ import annotations

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from curious_explorer import evaluate, solve
from curious_explorer.environments import (
    bidirectional_lock,
    branching_tree,
    deep_sea,
    noisy_tv,
    one_way_maze,
    river_swim,
)
from curious_explorer.environments.environment_names import find_environment
from curious_explorer.registration import ENVIRONMENT_IDS, ZOO

NEW = ["RiverSwim-v0", "DeepSea-v0", "BidirectionalLock-v0", "NoisyTV-v0", "BranchingTree-v0", "OneWayMaze-v0"]


def outcomes(mdp, state, action):
    states, probabilities = mdp.successors(state, action)
    return dict(zip(states.tolist(), probabilities.tolist(), strict=True))


def distances(mdp):
    """Steps from the start to each state, by plain breadth-first search."""
    found = dict.fromkeys(np.flatnonzero(mdp.start).tolist(), 0)
    frontier = list(found)
    for state in frontier:
        for action in range(mdp.num_actions):
            for following in outcomes(mdp, state, action):
                if following not in found:
                    found[following] = found[state] + 1
                    frontier.append(following)
    return found


@pytest.mark.parametrize("environment_id", [f"curious_explorer/{name}" for name in NEW])
def test_gymnasium_is_content(environment_id):
    assert environment_id in ENVIRONMENT_IDS
    env = gymnasium.make(environment_id, render_mode="ansi")
    check_env(env.unwrapped)  # warnings are errors here
    env.close()


@pytest.mark.parametrize("kind", ZOO)
def test_short_names_depend_on_their_labels_alone(kind):
    assert find_environment(f"{kind}/5", labels=3) == find_environment(f"{kind}/5", labels=3)
    assert find_environment(f"{kind}/5", labels=3) != find_environment(f"{kind}/5", labels=4)


# RiverSwim ----------------------------------------------------------------------------------------------------------


def test_river_swim_is_the_published_one():
    mdp = river_swim(permute_actions=None)
    assert mdp.num_states == 6
    assert mdp.start.tolist() == [0.0, 0.5, 0.5, 0.0, 0.0, 0.0]
    assert not mdp.terminal.any()
    for state in range(6):
        assert outcomes(mdp, state, 0) == {max(state - 1, 0): 1.0}
    assert outcomes(mdp, 0, 1) == pytest.approx({0: 0.7, 1: 0.3})
    for state in range(1, 5):
        assert outcomes(mdp, state, 1) == pytest.approx({state - 1: 0.1, state: 0.6, state + 1: 0.3})
    assert outcomes(mdp, 5, 1) == pytest.approx({4: 0.7, 5: 0.3})
    original = mdp.reward_scale.original(mdp.rewards)
    assert original[0, 0] == pytest.approx(5.0)
    assert original[5, 1] == pytest.approx(0.3 * 10_000.0)  # paid where holding out succeeds
    assert np.count_nonzero(mdp.rewards) == 2


# DeepSea ------------------------------------------------------------------------------------------------------------


class PlainDeepSea:
    """bsuite's step rule, written anew from its definition; `lucky` stands for its random draw."""

    def __init__(self, size, deterministic):
        self.size, self.deterministic = size, deterministic
        self.row = self.column = 0

    def step(self, right, lucky):
        reward = 0.0
        if self.column == self.size - 1 and right:
            reward += 1.0
        if right:
            if lucky or self.deterministic:
                self.column = min(self.column + 1, self.size - 1)
            reward -= 0.01 / self.size
        else:
            self.column = max(self.column - 1, 0)
        self.row += 1
        return reward, self.row == self.size


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("seed", [None, 0, 4])
def test_deep_sea_step_by_step(size, stochastic, seed):
    mdp = deep_sea(size, stochastic=stochastic, permute_actions=seed)
    names = mdp.state_names
    plain = deep_sea(size, stochastic=stochastic, permute_actions=None)
    # Which label means "right" shows in the reward: it alone pays less than nothing, or the treasure.
    nothing = 0.01 / size
    for moves in itertools.product([(False, True), (True, True), (True, False)], repeat=size):
        oracle = PlainDeepSea(size, not stochastic)
        state = int(np.argmax(mdp.start))
        for right, lucky in moves:
            assert names[state] == f"({oracle.row}, {oracle.column})"
            action = next(a for a in range(2) if (mdp.rewards[state, a] != nothing) == right)
            reward, done = oracle.step(right, lucky)
            assert mdp.reward_scale.original(mdp.rewards[state, action]) == pytest.approx(reward, abs=1e-12)
            expected = "end" if done else f"({oracle.row}, {oracle.column})"
            chances = {names[s]: p for s, p in outcomes(mdp, state, action).items()}
            fails = 1.0 / size if right and stochastic else 0.0
            if len(chances) == 2:
                assert chances[expected] == pytest.approx(1.0 - fails if lucky else fails)
            else:
                assert chances == {expected: pytest.approx(1.0)}
            state = names.index(expected)
        assert mdp.terminal[state]
    assert plain.num_states == size * (size + 1) // 2 + 1


@pytest.mark.parametrize("stochastic", [False, True])
def test_deep_sea_return_of_always_right_is_bsuites(stochastic):
    size, gamma = 6, 1.0 - 1e-7
    mdp = deep_sea(size, stochastic=stochastic, permute_actions=None)
    always_right = np.tile([0.0, 1.0], (mdp.num_states, 1))
    value = float(mdp.start @ evaluate(mdp, always_right, gamma=gamma))
    undiscounted = (value - 0.01 / size) / (1.0 - gamma)  # what the end pays for ever stands for nothing
    best = (1.0 - 1.0 / size) ** (size - 1) if stochastic else 1.0
    assert undiscounted == pytest.approx(best - 0.01, abs=1e-4)


# The bidirectional lock ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [2, 3, 6])
def test_bidirectional_lock_pays_as_published(horizon):
    mdp = bidirectional_lock(horizon)
    assert (mdp.num_states, mdp.num_actions) == (6 * horizon + 2, 10)
    names = mdp.state_names
    original = mdp.reward_scale.original(mdp.rewards)
    assert (np.abs(original[mdp.terminal]) < 1e-12).all()
    cost = 1.0 / (horizon - 1)
    first = [sorted(names[s] for s in outcomes(mdp, names.index("start"), a)) for a in range(10)]
    assert sorted(first) == [["leftA1", "leftB1"]] * 5 + [["rightA1", "rightB1"]] * 5
    for side, pay in (("left", 5.0), ("right", 2.0)):
        for lane, level in itertools.product("AB", range(1, horizon + 1)):
            state = names.index(f"{side}{lane}{level}")
            last = level == horizon
            goes_on = [
                a
                for a in range(10)
                if not any(names[s].startswith((f"{side}D", "dead")) for s in outcomes(mdp, state, a))
            ]
            assert len(goes_on) == 1
            onward = {names[s]: p for s, p in outcomes(mdp, state, goes_on[0]).items()}
            assert onward == ({f"{side}End": 1.0} if last else {f"{side}{x}{level + 1}": 0.5 for x in "AB"})
            expected = np.zeros(10)
            expected[goes_on[0]] = pay if last else -cost
            np.testing.assert_allclose(original[state], expected, atol=1e-12)
            if level == 1:
                continue
            dead = names.index(f"{side}D{level}")
            after = {names[s] for a in range(10) for s in outcomes(mdp, dead, a)}
            assert after == ({"deadEnd"} if last else {f"{side}D{level + 1}"})
    assert set(distances(mdp)) == set(range(mdp.num_states))


def test_bidirectional_lock_best_return_is_five_less_the_cost():
    gamma = 1.0 - 1e-7
    mdp = bidirectional_lock(5)
    value = mdp.reward_scale.original(float(mdp.start @ solve(mdp, gamma=gamma).values)) / (1.0 - gamma)
    assert value == pytest.approx(5.0 - 1.0, abs=1e-3)


# The noisy TV -------------------------------------------------------------------------------------------------------


def test_noisy_tv_changes_only_while_watching():
    mdp = noisy_tv(7, height=3, width=4, tv=(1, 2), permute_actions=None)
    assert mdp.num_states == 3 * 4 - 1 + 7
    names = mdp.state_names
    pictures = {state for state, name in enumerate(names) if "picture" in name}
    assert len(pictures) == 7
    watch = mdp.action_names.index("watch")
    for state in range(mdp.num_states):
        if mdp.terminal[state]:
            continue
        seen = outcomes(mdp, state, watch)
        assert seen == ({picture: pytest.approx(1 / 7) for picture in pictures} if state in pictures else {state: 1.0})
        for action in range(4):
            assert len(outcomes(mdp, state, action)) == 1
    # Every picture leads where the first one does, and whoever walks in finds the first one.
    tv = names.index("(1, 2) picture 1")
    for action in range(4):
        assert all(outcomes(mdp, picture, action) == outcomes(mdp, tv, action) for picture in pictures)
    assert outcomes(mdp, names.index("(0, 2)"), mdp.action_names.index("south")) == {tv: 1.0}


@pytest.mark.parametrize("screens", [1, 5, 60])
def test_noisy_tv_does_not_change_what_can_be_earned(screens):
    mdp = noisy_tv(screens, height=4, width=5)
    # The shortest way takes 3 + 4 steps and pays on the last.
    assert float(mdp.start @ solve(mdp, gamma=0.9).values) == pytest.approx(0.1 * 0.9**6, rel=1e-9)
    assert set(distances(mdp)) == set(range(mdp.num_states))


# The tree -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "branching"), [(1, 2), (4, 2), (3, 3)])
def test_tree_has_one_leaf_that_pays(depth, branching):
    mdp = branching_tree(depth, branching=branching, seed=3)
    found = distances(mdp)
    assert set(found) == set(range(mdp.num_states))
    leaves = [state for state, steps in found.items() if steps == depth]
    assert len(leaves) == branching**depth
    assert sorted(leaves) == np.flatnonzero(mdp.terminal).tolist()
    children = [
        s
        for state in range(mdp.num_states)
        if not mdp.terminal[state]
        for a in range(branching)
        for s in outcomes(mdp, state, a)
    ]
    assert sorted(children) == list(range(1, mdp.num_states))  # each has one parent
    assert mdp.rewards.sum() == 1.0
    state, action = map(int, np.argwhere(mdp.rewards)[0])
    assert mdp.terminal[list(outcomes(mdp, state, action))].all()


# The maze -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("doors", "loops"), [(0.0, 0.0), (0.3, 0.1), (1.0, 0.5)])
def test_maze_can_be_walked_to_the_end(seed, doors, loops):
    height, width = 6, 9
    mdp = one_way_maze(height, width, doors=doors, loops=loops, seed=seed)
    found = distances(mdp)
    goal = int(np.flatnonzero(mdp.terminal)[0])
    assert set(found) == set(range(height * width))
    assert found[goal] == max(found.values())
    assert float(mdp.start @ solve(mdp, gamma=0.9).values) == pytest.approx(0.1 * 0.9 ** (found[goal] - 1), rel=1e-9)
    ways = {
        (state, following)
        for state in range(mdp.num_states)
        if state != goal
        for action in range(4)
        for following in outcomes(mdp, state, action)
        if following != state
    }
    for one, other in ways:  # only between neighbours
        assert abs(one // width - other // width) + abs(one % width - other % width) == 1
    doors_found = {way for way in ways if way[::-1] not in ways and goal not in way}
    if doors == 0.0:
        assert not doors_found
        assert len({frozenset(way) for way in ways}) == height * width - 1  # a tree
    else:
        assert doors_found


def test_large_mazes_are_quick_to_build():
    mdp = one_way_maze(300, seed=1)
    assert mdp.num_states == 90_000
    assert not mdp.has_state_names


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: river_swim(2), "num_states is 2"),
        (lambda: deep_sea(1), "size is 1"),
        (lambda: bidirectional_lock(1), "horizon is 1"),
        (lambda: bidirectional_lock(3, num_actions=1), "num_actions is 1"),
        (lambda: noisy_tv(0), "screens is 0"),
        (lambda: noisy_tv(3, tv=(0, 0)), "neither the start"),
        (lambda: noisy_tv(3, height=3, tv=(3, 1)), "inside the 3 x 10 grid"),
        (lambda: branching_tree(0), "depth is 0"),
        (lambda: branching_tree(40), "choose a smaller depth"),
        (lambda: one_way_maze(1), "height is 1"),
        (lambda: one_way_maze(4, doors=1.5), "doors is 1.5"),
        (lambda: one_way_maze(4, loops=float("nan")), "loops is nan"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()
