"""Frontier: what it finds, where it stops, and that noise does not hold it."""

import gymnasium
import numpy as np
import pytest

from curious_explorer import (
    Exploration,
    FiniteMDP,
    Frontier,
    GridCells,
    GymWorld,
    HashedCells,
    MiniGridCells,
    TabularWorld,
    evaluate,
    explore,
    solve,
)
from curious_explorer.environments import combination_lock, crossroad_traps, deep_sea, noisy_tv
from curious_explorer.errors import CellWarning, CheckpointError
from curious_explorer.explorers import frontier
from curious_explorer.worlds.world import Step, World


def samples_to_the_policy(mdp, seed, samples, gamma=0.95):
    """After how many samples the best policy for what was seen is worth 0.95 of the best."""
    best, reached = mdp.start @ solve(mdp, gamma=gamma).values, []

    def watch(policy, used):
        if not reached and mdp.start @ evaluate(mdp, policy, gamma=gamma) >= 0.95 * best:
            reached.append(used)

    Frontier().explore(TabularWorld(mdp, seed=seed), gamma=gamma, samples=samples, watch=watch)
    return reached[0] if reached else samples


@pytest.mark.parametrize(("make", "most"), [(combination_lock, 2_500), (crossroad_traps, 300)])
def test_finds_the_policy_of_the_goal_within_its_figures(make, most):
    assert np.median([samples_to_the_policy(make(20), seed, 2 * most) for seed in range(5)]) <= most


def test_explore_without_an_optimizer_is_frontier_and_stops_when_all_is_seen():
    mdp = deep_sea(10)
    world = TabularWorld(mdp, seed=1)
    got = explore(world, gamma=0.95, samples=100_000)
    assert got.complete
    assert got.samples == world.samples < 5_000
    assert set(got.model.states) >= {state for state in range(mdp.num_states) if not mdp.terminal[state]}
    assert 0 < got.first_reward <= got.samples
    assert "complete" in repr(got)
    unlimited = Frontier(stop_at_reward=True).explore(TabularWorld(mdp, seed=1), gamma=0.95, samples=100_000)
    assert unlimited.samples == unlimited.first_reward == got.first_reward
    assert not unlimited.complete


def test_a_key_that_can_be_dropped_anywhere_does_not_hide_what_lies_behind_its_door():
    """A layout that took 26,612 samples when places were left with something new, and restarts were in vain."""
    pytest.importorskip("minigrid")
    cells = MiniGridCells(1_000_000, things=True)
    world = GymWorld(
        "MiniGrid-DoorKey-16x16-v0", cells=cells, actions=list(range(6)), seed=1, layout=1, time_limits=True
    )
    got = Frontier(stop_at_reward=True).explore(world, gamma=0.99, samples=25_000)
    assert got.first_reward is not None


def test_a_noisy_tv_does_not_hold_it():
    mdp = noisy_tv(200)
    for seed in range(3):
        got = explore(TabularWorld(mdp, seed=seed), Frontier(stop_at_reward=True), gamma=0.95, samples=50_000)
        assert got.first_reward is not None


class Slippery(World):
    """A corridor of ten places; a move fails half of the time, and the last place pays."""

    num_states, num_actions = 10, 2

    def __init__(self, seed):
        self.seed, self.samples, self._random, self._place = seed, 0, np.random.default_rng(seed), 0

    def identity(self):
        return {"kind": "slippery", "num_states": 10, "num_actions": 2, "seed": self.seed}

    def restart(self):
        self._place = 0
        return 0

    def step(self, action):
        self.samples += 1
        if self._random.random() < 0.5:
            self._place = max(0, self._place + (1 if action else -1))
        return Step(self._place, float(self._place == 9), self._place == 9)


class Aliased(Slippery):
    """Cells of eight places each: a pair does nothing for a while before it does something."""

    num_states = 10

    def restart(self):
        self._place = 0
        return 0

    def step(self, action):
        self.samples += 1
        self._place = max(0, self._place + (1 if action else -1))
        return Step(self._place // 8, float(self._place == 79), self._place == 79)


@pytest.mark.parametrize("kind", [Slippery, Aliased])
def test_noise_and_aliased_cells_do_not_end_it(kind):
    for seed in range(5):
        got = explore(kind(seed), gamma=0.95, samples=20_000)
        assert got.first_reward is not None
        assert not got.complete
        assert got.samples == 20_000


class Press(World):
    """Five places in a row; an action that changes nothing pays half of the time in the last one, or never."""

    num_states, num_actions = 5, 3

    def __init__(self, seed, share=0.5):
        self.seed, self.samples, self._random, self._place = seed, 0, np.random.default_rng(seed), 0
        self._share = share

    def identity(self):
        return {"kind": "press", "num_states": 5, "num_actions": 3, "seed": self.seed}

    def restart(self):
        self._place = 0
        return 0

    def step(self, action):
        self.samples += 1
        pays = action == 2 and self._place == 4 and self._random.random() < self._share
        self._place = min(max(self._place + (-1, 1, 0)[action], 0), 4)
        return Step(self._place, float(pays), False)


def test_what_pays_now_and_then_is_found_where_nothing_else_ever_paid():
    runs = [explore(Press(seed), gamma=0.95, samples=20_000) for seed in range(30)]
    assert sum(run.first_reward is not None for run in runs) >= 28
    assert all(run.complete for run in runs)
    never = explore(Press(0, share=0.0), gamma=0.95, samples=20_000)
    assert never.complete
    assert never.model.tries.min() >= 8


class NoisyEnds(World):
    """A corridor of four places; leaving it at one end pays one on average, at the other nothing, both with noise."""

    num_states, num_actions = 6, 2

    def __init__(self, seed):
        self.seed, self.samples, self._random, self._place = seed, 0, np.random.default_rng(seed), 2

    def identity(self):
        return {"kind": "noisy ends", "num_states": 6, "num_actions": 2, "seed": self.seed}

    def restart(self):
        self._place = 2
        return 2

    def step(self, action):
        self.samples += 1
        self._place += 1 if action else -1
        ended = self._place in (0, 5)
        return Step(self._place, float(self._place == 5) + self._random.normal() if ended else 0.0, ended)


def test_what_pays_now_this_now_that_is_tried_until_its_mean_is_known():
    """One try of each would tell the better end in three of four runs."""
    for seed in range(20):
        got = explore(NoisyEnds(seed), gamma=0.95, samples=20_000)
        assert got.complete
        seen = got.model.outcomes()
        ends = np.isin(got.model.states[seen.next_state], (0, 5))
        assert seen.times[ends].min() >= 10
        assert np.argmax(got.policy[2]) == 1


def test_where_many_pay_and_always_the_same_none_is_tried_again():
    world = TabularWorld(deep_sea(20), seed=0)  # every step to the left pays a little
    exploration = explore(world, gamma=0.99, samples=100_000)
    assert (exploration.total_visited > 0).all()
    assert world.samples < 1_000  # 808; 1,570 if each of them is tried twice


def test_under_noise_a_plan_is_improved_once_there_is_a_reward():
    """A lake where the first way to the goal is a bad one: what is left of the samples makes the plan a good one."""
    mdp = FiniteMDP.from_gymnasium("FrozenLake-v1")
    best = mdp.start @ solve(mdp, gamma=0.99).values
    worth = []
    for seed in range(5):
        got = explore(TabularWorld(mdp, seed=seed), gamma=0.99, samples=20_000)
        worth.append(mdp.start @ evaluate(mdp, got.policy, gamma=0.99) / best)
    assert np.median(worth) > 0.97
    early = Frontier(after_reward=0.5, least_after_reward=100)
    got = early.explore(TabularWorld(mdp, seed=0), gamma=0.99, samples=4_000)
    assert 1.5 * got.first_reward + 100 < got.samples <= 2_000  # the plan was not good yet, and half is the most
    assert not got.complete


def test_a_time_limit_is_learned_and_what_lies_beyond_is_left():
    class Limited(Slippery):
        def restart(self):
            self._age = 0
            return super().restart()

        def step(self, action):
            self.samples += 1
            self._age += 1
            self._place = max(0, self._place + (1 if action else -1))
            return Step(self._place, 0.0, False, truncated=self._age == 6)

    got = explore(Limited(0), gamma=0.95, samples=5_000)
    assert got.complete
    assert len(got.model) == 7


class OneBadStep(World):
    """A corridor in which one step in fifty stays where it is; and the first try of the step in the middle fails."""

    num_states, num_actions, middle = 12, 2, 6

    def __init__(self, seed):
        self.seed = seed
        self.samples, self._place, self._failed = 0, 0, False
        self._random = np.random.default_rng(seed)

    def identity(self):
        return {"kind": "one bad step", "num_states": 12, "num_actions": 2, "seed": self.seed}

    def restart(self):
        self._place = 0
        return 0

    def step(self, action):
        self.samples += 1
        failed = self._random.random() < 0.02
        if self._place == self.middle and action == 1 and not self._failed:
            failed = self._failed = True
        if not failed:
            self._place = min(max(0, self._place + (1 if action == 1 else -1)), 11)
        return Step(self._place, 0.0, terminated=False)


@pytest.mark.parametrize("seed", range(3))
def test_a_step_that_failed_when_it_was_tried_does_not_hide_what_lies_behind(seed):
    got = Frontier().explore(OneBadStep(seed), gamma=0.99, samples=5_000)
    assert len(got.model) == 12


def test_cells_that_mix_states_are_not_given_up_where_episodes_are_short():
    """In its first thousand steps here a few cells do what they did before in 19 of 20 steps, and seem all there is."""
    world = GymWorld("MountainCar-v0", cells=GridCells(20, [-1.2, -0.07], [0.6, 0.07]), seed=112, time_limits=True)
    got = Frontier().explore(world, gamma=0.99, samples=4_000)
    assert not got.complete
    assert len(got.model) > 50


@pytest.mark.parametrize("changes", [{"price": -1.0}, {"restart_factor": float("nan")}, {"backups": 0}, {"steps": 0}])
def test_bad_settings_are_refused(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        Frontier(**changes)


def test_resets_to_chosen_states_by_what_was_counted():
    mdp = deep_sea(8)
    got = explore(TabularWorld(mdp, seed=1), gamma=0.95, samples=20_000)
    state = int(got.model.states[-1])
    if mdp.terminal[state]:
        state = int(got.model.states[-3])
    ends = got.resets_to(state).sample(TabularWorld(mdp, seed=2), 50)
    assert (ends == state).all()


@pytest.mark.parametrize("mdp", [deep_sea(60), noisy_tv(20)], ids=["deep sea", "noisy TV"])
def test_a_run_that_was_killed_goes_on_bit_for_bit(mdp, tmp_path, monkeypatch):
    class KilledError(Exception):
        pass

    def run(folder, **changes):
        settings = {"gamma": 0.95, "samples": 5_000, "checkpoint": tmp_path / folder} | changes
        return Frontier().explore(TabularWorld(mdp, seed=1), **settings)

    def killed_at(count):
        def watch(policy, used):
            if used >= count:
                raise KilledError

        return watch

    monkeypatch.setattr(frontier, "SAVE_EVERY", 1_000)
    whole = run("whole")
    for count in (1_500, 3_100):
        with pytest.raises(KilledError):
            run("killed", watch=killed_at(count))
    for other in (run("killed"), Exploration.load(tmp_path / "killed")):
        assert (other.samples, other.first_reward) == (whole.samples, whole.first_reward)
        for name, array in whole.model.arrays().items():
            np.testing.assert_array_equal(array, other.model.arrays()[name])
        np.testing.assert_array_equal(other.policies[-1], whole.policies[-1])
    with pytest.raises(CheckpointError, match="gamma"):
        run("killed", gamma=0.9)


class Drifting(gymnasium.Env):
    """A clock among the numbers, so that no observation comes twice."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._ticks = float(self.np_random.random())
        return np.array([0.0, self._ticks], dtype=np.float32), {}

    def step(self, action):
        self._ticks += 1.0
        return np.array([action, self._ticks], dtype=np.float32), 0.0, self._ticks >= 20.0, False, {}


def test_cells_that_are_never_met_again_are_noticed_early():
    with pytest.warns(CellWarning, match="nearly every observation is a new cell"):
        Frontier().explore(GymWorld(Drifting, cells=HashedCells(5_000)), gamma=0.95, samples=1_100)
    by_action = HashedCells(key=lambda observation: float(observation[0]))
    Frontier().explore(GymWorld(Drifting, cells=by_action), gamma=0.95, samples=1_100)  # warnings are errors in tests
