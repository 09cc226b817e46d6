"""Snapshots: roll-ins that are restores go on as those that were stepped, start as often where, and cost nothing."""

import itertools
import random

import gymnasium
import numpy as np
import pytest
from gym_helpers import Corridor, Counting
from gymnasium.wrappers import FrameStackObservation, StickyAction, TimeLimit
from statistics_checks import SIGNIFICANCE, chi_square

from curious_explorer import Frontier, FunctionCells, GridCells, GymWorld, MiniGridCells, RestartWrapper, explore
from curious_explorer.baselines import MBIEEB
from curious_explorer.errors import SnapshotError
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.fixed_layout import FixedLayout
from curious_explorer.gym.snapshots import Snapshots, simulator_of
from curious_explorer.gym.stepped_environments import SingleEnvironment
from curious_explorer.worlds.world import EpisodeBatch

LENGTH = 12


class Noisy(Corridor):
    """A corridor whose observations carry noise from generators in three places."""

    def __init__(self, length=LENGTH):
        super().__init__(length, shape=(4,))
        self.parts = {"old": np.random.RandomState(1), "list": [np.random.default_rng(2), random.Random(3)]}

    def look(self):
        new, plain = self.parts["list"]
        return np.array([self.place, self.parts["old"].rand(), new.random(), plain.random()])


class Dangerous(Corridor):
    """A short corridor in which every third step forward ends the episode."""

    def step(self, action):
        event = super().step(action)
        if action == 1 and not event[2] and self.np_random.random() < 1 / 3:
            return np.array([-1.0]), 0.0, True, False, {}
        return event


MOVES = itertools.count()


class Lying(Corridor):
    """Counts steps where nobody looks, and shows the count."""

    def look(self):
        return np.array([float(self.place), float(next(MOVES) % 7)])


class Uncopied(Corridor):
    def __init__(self):
        super().__init__(LENGTH)
        self.file = (place for place in range(3))


class Console(Corridor):
    """Saves its state itself, as the Arcade Learning Environment does."""

    ale = "a console"

    def clone_state(self, include_rng=False):
        return (self.place, self.np_random.bit_generator.state if include_rng else None)

    def restore_state(self, state):
        self.place, numbers = state
        if numbers is not None:
            self.np_random.bit_generator.state = numbers

    def look(self):
        return np.array([float(self.place), self.np_random.random()])


def corridor():
    return TimeLimit(Corridor(LENGTH), 30)


@pytest.fixture(scope="module")
def resets():
    world = GymWorld(corridor, cells=GridCells(LENGTH, 0.0, LENGTH))
    return Frontier().explore(world, gamma=0.99, samples=500).reset_model


@pytest.fixture(scope="module")
def lake_resets():
    return explore(GymWorld("FrozenLake-v1", seed=0), MBIEEB(), gamma=0.95, samples=20_000).reset_model


def checked(env):
    """Snapshots of an environment that passed the check."""
    single = SingleEnvironment(env, Discretisation.of(env, FunctionCells(lambda observation: 0, 1)))
    snapshots = Snapshots(single)
    snapshots.prepare(seed=0)
    return single, snapshots


def test_they_are_off_by_default(resets):
    counter = Counting(corridor())
    env = RestartWrapper(counter, resets.to(8))
    assert env.snapshots is None
    for place in range(5):
        _, info = env.reset(seed=place)
        assert info["roll_in_steps"] == 8
        assert "roll_in_steps_saved" not in info
    assert counter.steps == 40


def test_both_counts_are_told_and_only_real_steps_are_made(resets):
    counter = Counting(corridor())
    env = RestartWrapper(counter, resets.to(8), snapshots=True)
    observation, info = env.reset(seed=0)
    check = info["roll_in_steps"] - 8
    assert 40 <= check <= 150
    assert info["roll_in_steps_saved"] == 0
    assert counter.steps == check + 8
    for _ in range(20):
        again, info = env.reset()
        assert again == observation == 8.0
        assert (info["roll_in_steps"], info["roll_in_steps_saved"]) == (0, 8)
        env.step(0)
    assert counter.steps == check + 8 + 20
    assert (env.snapshots.restored, env.snapshots.steps_saved, len(env.snapshots)) == (20, 160, 1)
    assert env.reset(seed=1)[1]["roll_in_steps"] == 8  # a seed begins anew, without the check


def test_time_limits_are_ahead_in_full(resets):
    env = RestartWrapper(corridor(), resets.to(8), snapshots=True)
    for _ in range(3):
        env.reset(seed=None)
        ends = [env.step(0)[2:4] for _ in range(30)]
        assert ends == [*[(False, False)] * 29, (False, True)]


def test_a_restored_room_goes_on_as_one_that_was_walked_to():
    pytest.importorskip("minigrid")

    def make():
        from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

        return FixedLayout(ImgObsWrapper(FullyObsWrapper(gymnasium.make("MiniGrid-DoorKey-5x5-v0"))), 0)

    world = GymWorld(make, cells=MiniGridCells(1_000, things=True))
    found = Frontier().explore(world, gamma=0.99, samples=1_000)
    distances = found.reset_model.arrivals
    goes_on = ~found.reset_model.model.terminal[distances.states]  # no episode begins at the goal
    target = int(distances.states[np.argmax(np.where(goes_on & (distances.probability > 0.99), distances.steps, 0))])
    model = found.reset_model.to(target)
    walked, restored = RestartWrapper(make(), model), RestartWrapper(make(), model, snapshots=True)
    restored.reset(seed=0)
    generator = np.random.default_rng(0)
    for _ in range(5):
        first, info = walked.reset()
        second, saved = restored.reset()
        assert saved["roll_in_steps"] == 0
        assert saved["roll_in_steps_saved"] == info["roll_in_steps"] > 5
        assert (first == second).all()
        for action in generator.integers(7, size=60).tolist():
            one, other = walked.step(action), restored.step(action)
            assert (one[0] == other[0]).all()
            assert one[1:4] == other[1:4]
            if one[2] or one[3]:
                break


def test_starts_are_distributed_as_without_snapshots():
    cells = GridCells(7, -1.0, 6.0)
    found = explore(GymWorld(Dangerous, cells=cells, seed=0), MBIEEB(), gamma=0.95, samples=10_000).reset_model
    model = found.weighted(dict.fromkeys(range(2, 6), 1.0))  # places 1 to 4
    assert model.arrivals.probability.min() < 0.5  # else a restore that always arrives would do as well
    env = RestartWrapper(Dangerous(), model, starts="mixture", snapshots=True)
    env.reset(seed=3)
    counts = np.zeros(5, dtype=int)
    for _ in range(3_000):
        counts[int(env.reset()[0][0])] += 1
    assert env.snapshots.restored > 1_400
    assert chi_square(counts, np.array([0.5, *[0.125] * 4])) > SIGNIFICANCE


def test_what_follows_a_restore_is_not_repeated(lake_resets):
    env = RestartWrapper(gymnasium.make("FrozenLake-v1"), lake_resets.to(10), snapshots=True)
    env.reset(seed=0)
    counts = np.zeros(16, dtype=int)
    for _ in range(600):
        assert env.reset()[0] == 10
        counts[env.step(1)[0]] += 1
    assert env.snapshots.restored > 500
    exact = np.zeros(16)
    exact[[9, 14, 11]] = 1 / 3
    assert chi_square(counts, exact) > SIGNIFICANCE


def test_a_seed_decides_everything(lake_resets):
    env = RestartWrapper(gymnasium.make("FrozenLake-v1"), lake_resets.weighted("uniform"), snapshots=True)

    def episodes():
        begun = [(env.reset(seed=5 if number == 0 else None)[0], env.step(2)[0]) for number in range(60)]
        return begun, env.snapshots.steps_saved

    env.reset(seed=1)
    before = env.snapshots.steps_saved
    first, middle = episodes()
    second, after = episodes()
    assert first == second
    assert middle - before == after - middle > 0


def test_random_numbers_are_part_of_the_state_wherever_they_are():
    env = Noisy()
    single, _ = checked(env)
    simulator = simulator_of(env)
    saved = simulator.save()

    def go_on(seed):
        simulator.restore(saved, seed)
        return env.step(0)[0][1:].tolist()

    assert go_on(None) == go_on(None)
    assert go_on(1) == go_on(1)
    drawn = np.array([go_on(None), go_on(1), go_on(2)])
    assert all(len(set(column)) == 3 for column in drawn.T)
    assert single.steps >= 40


@pytest.mark.parametrize(
    ("env", "fault"),
    [
        (Lying(LENGTH, shape=(2,)), "the observation of step 1 .* is other numbers"),
        (Uncopied(), "cannot be saved .*generator"),
    ],
)
def test_environments_that_cannot_be_restored_are_refused(env, fault):
    with pytest.raises(SnapshotError, match=fault) as refusal:
        checked(env)
    assert "leave snapshots off" in str(refusal.value)


def test_a_hidden_counter_is_refused_at_the_first_reset(resets):
    hidden = itertools.count()

    class Paid(gymnasium.Wrapper):
        """Pays by a count that no environment has."""

        def step(self, action):
            observation, _, *end = self.env.step(action)
            return observation, float(next(hidden)), *end

    env = RestartWrapper(Paid(corridor()), resets.to(8), snapshots=True)
    with pytest.raises(SnapshotError, match="the reward of step 1"):
        env.reset(seed=0)


def test_frames_that_a_wrapper_stacks_are_restored():
    env = FrameStackObservation(TimeLimit(Corridor(LENGTH), 30), 3)
    single, _ = checked(env)
    simulator = simulator_of(env)
    single.reset()
    for _ in range(5):
        single.step(1)
    saved = simulator.save()
    single.reset()
    simulator.restore(saved, 0)
    assert env.step(1)[0].ravel().tolist() == [4.0, 5.0, 6.0]


def test_self_reference_and_spaces_stay_themselves():
    env = Corridor(LENGTH)
    env.me, space = [env], env.observation_space
    simulator = simulator_of(env)
    env.reset(seed=0)
    saved = simulator.save()
    env.later = 3
    simulator.restore(saved, None)
    assert env.me[0] is env
    assert env.observation_space is space
    assert not hasattr(env, "later")


def test_a_console_saves_itself():
    env = Console(LENGTH, shape=(2,))
    _, snapshots = checked(env)
    assert type(snapshots._simulator).__name__ == "AtariSimulator"
    saved = snapshots._simulator.save()

    def go_on(seed):
        snapshots._simulator.restore(saved, seed)
        return env.step(1)[0].tolist()

    assert go_on(None) == go_on(None)
    assert go_on(1)[0] == go_on(2)[0] == go_on(None)[0]
    assert go_on(1)[1] != go_on(2)[1]


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "ALE/Breakout-v5"])
def test_simulators_that_are_installed(name):
    pytest.importorskip("ale_py" if name.startswith("ALE") else "mujoco")
    if name.startswith("ALE"):
        with pytest.raises(SnapshotError, match=r"0\.25 .*StickyAction"):
            checked(gymnasium.make(name))
        env = StickyAction(gymnasium.make(name, repeat_action_probability=0.0), 0.25)
    else:
        env = gymnasium.make(name)
    _, snapshots = checked(env)
    assert type(snapshots._simulator).__name__ in ("AtariSimulator", "MujocoSimulator")


# Roll-ins of a world --------------------------------------------------------------------------------------------------


def corridor_world(make=corridor, **settings):
    return GymWorld(make, cells=GridCells(LENGTH, 0.0, LENGTH), **settings)


def test_walks_of_a_world_restore_and_count_both_ways(resets):
    stepped, counter = corridor_world(), Counting(corridor())
    world = corridor_world(lambda: counter, snapshots=True)
    check = world.samples
    assert 40 <= check <= 150
    assert counter.steps == check
    to = resets.to(8)
    assert (to.sample(world, 25) == to.sample(stepped, 25)).all()
    assert stepped.samples == 25 * 8
    assert (world.samples - check, world.samples_saved) == (8, 24 * 8)
    assert counter.steps == world.samples
    assert to.arrivals.tried[0] == 25 + 1  # a restore is no try


def test_episodes_and_single_steps_of_a_world_begin_in_restored_states(resets):
    world = corridor_world(snapshots=True)
    batch = EpisodeBatch(episodes=20, horizon=3, gamma=0.9, reset=resets.to(8).roll_in)
    statistics = world.episodes(np.eye(2)[np.ones(LENGTH, dtype=int)], batch)  # always on, which ends after 3 steps
    assert statistics.samples == 8 + 20 * 3
    assert statistics.weight[:, 1].tolist() == [0] * 8 + [20, 20, 20, 0]
    before = world.samples
    for _ in range(5):
        assert world.begin(resets.to(6).roll_in) == 6
        assert world.step(1).state == 7
    assert world.samples - before == 6 + 5
    assert world.samples_saved == 19 * 8 + 4 * 6


def test_walks_of_a_world_are_distributed_as_without_snapshots():
    cells = GridCells(7, -1.0, 6.0)
    found = explore(GymWorld(Dangerous, cells=cells, seed=0), MBIEEB(), gamma=0.95, samples=10_000).reset_model
    model = found.weighted(dict.fromkeys(range(2, 6), 1.0))
    world = GymWorld(Dangerous, cells=cells, seed=4, snapshots=True)
    counts = np.bincount(model.sample(world, 3_000), minlength=6)[1:6]
    assert world.samples_saved > 1_400
    assert chi_square(counts, np.array([0.5, *[0.125] * 4])) > SIGNIFICANCE


def test_a_world_with_snapshots_is_resumed_as_if_it_went_on(resets):
    model = resets.weighted("uniform")
    first = corridor_world(snapshots=True, seed=3)
    model.sample(first, 30)
    resumed = corridor_world(snapshots=True, seed=3)
    resumed.restore(first.position())
    for world in (first, resumed):
        world.ends = model.sample(world, 30)
    assert (first.ends == resumed.ends).all()
    assert (first.samples, first.samples_saved) == (resumed.samples, resumed.samples_saved)
    assert first.identity() != corridor_world(seed=3).identity()


def test_a_world_that_cannot_be_restored_is_refused_at_once():
    with pytest.raises(SnapshotError, match="other numbers"):
        GymWorld(Lying(LENGTH, shape=(2,)), cells=FunctionCells(lambda seen: int(seen[0]), LENGTH), snapshots=True)
    for several in ({"num_envs": 2}, {"layouts": range(3)}):
        with pytest.raises(ValueError, match="one environment with one layout"):
            corridor_world(snapshots=True, **several)
