"""Networks that remember: cloned from walks in counted steps, run by NumPy, kept in files."""

import functools
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from layouts_helpers import Signposts

from curious_explorer import GymWorld, HashedCells
from curious_explorer.errors import ObservationError
from curious_explorer.explorers.layout_files import read_labels, write_labels
from curious_explorer.explorers.layout_slice import RememberingGuess
from curious_explorer.explorers.many_layouts import ManyLayouts
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.gym.seen_inputs import SeenInputs
from curious_explorer.sb3.recurrent_cloning import RecurrentCloning, RecurrentTeacher
from curious_explorer.studies.unseen_layouts import play_unseen

torch = pytest.importorskip("torch")
SMALL = RecurrentCloning(
    width=32, memory=32, walks=32, kept=4, longest=12, batch=16, every=5, updates=100, updates_a_layout=0
)


class Hint(gymnasium.Env):
    """A corridor with a door at each side of its end; the right one was shown at the start alone."""

    def __init__(self, length=3, numbers=False):
        self.observation_space = (
            spaces.Box(-1.0, 1.0, (2,), np.float64) if numbers else spaces.MultiDiscrete([length + 1, 3])
        )
        self.action_space, self.length, self.numbers = spaces.Discrete(3), length, numbers
        self.place, self.right = 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.right = 0, int(self.np_random.integers(2))
        return self.look(), {}

    def look(self):
        hint = 1 + self.right if self.place == 0 else 0
        return np.array([self.place / self.length, hint - 1.0]) if self.numbers else np.array([self.place, hint])

    def step(self, action):
        if self.place == self.length:
            return self.look(), float(action == self.right), True, False, {}
        self.place += int(action == 2)
        return self.look(), 0.0, False, False, {}


class Hinted(HashedCells):
    """Cells that know the hint for the whole episode, as a state does and a view does not."""

    def key(self, observation, env):
        return (env.unwrapped.place, env.unwrapped.right)


def explored(count=12, **settings):
    make = functools.partial(Hint, **settings)
    world = GymWorld(make, cells=Hinted(100), layouts=range(count))
    return make, ManyLayouts(first_share=60, after=20).explore(world, gamma=0.9, samples=4_000)


@pytest.mark.parametrize("numbers", [False, True])
def test_what_was_seen_at_the_start_alone_is_remembered(numbers, tmp_path):
    make, exploration = explored(numbers=numbers)
    assert exploration.summary.found == 12
    policy = replace(SMALL, updates=400, learning_rate=5e-3, dropout=0.0).clone(
        exploration.labels, make().observation_space, range(3)
    )
    result = play_unseen(make, policy, range(100, 160), explored=range(12))
    assert result.solved >= 57  # without memory it is half of them
    loaded = RecurrentPolicy.load(policy.save(tmp_path / "policy"), make().observation_space)
    memory, same, action = None, None, None
    for observation in (make().reset(seed=3)[0], make().look()):
        likely, memory = policy.look(memory, action, observation)
        again, same = loaded.look(same, action, observation)
        assert np.array_equal(likely, again)
        assert likely.sum() == pytest.approx(1.0)
        action = 2
    with pytest.raises(ObservationError, match=r"expected \(35|sees 2 numbers"):
        RecurrentPolicy.load(tmp_path / "policy", spaces.Box(0.0, 1.0, (7,), np.float64))


def test_numpy_does_what_pytorch_does():
    make, exploration = explored()
    policy = RecurrentCloning(width=16, memory=8, updates=1, updates_a_layout=0).clone(
        exploration.labels, make().observation_space, range(3)
    )
    unit = torch.nn.GRU(16, 8)
    held = policy.weights
    with torch.no_grad():
        for name, weight in (("enter", unit.weight_ih_l0), ("recall", unit.weight_hh_l0)):
            weight.copy_(torch.as_tensor(held[name].T.copy()))
        unit.bias_ih_l0.copy_(torch.as_tensor(held["enter_bias"]))
        unit.bias_hh_l0.copy_(torch.as_tensor(held["recall_bias"]))
    env = make()
    memory, theirs, action = None, None, None
    observation, _ = env.reset(seed=0)
    for _ in range(4):
        _, memory = policy.look(memory, action, observation)
        seen = policy.inputs.through(held["see"], observation) + held["did"][-1 if action is None else action]
        row = torch.as_tensor(np.maximum(seen + held["see_bias"], 0.0))[None]
        _, theirs = unit(row, theirs)
        assert np.allclose(memory, theirs.detach().numpy()[0], atol=1e-5)
        action = 2
        observation = env.step(action)[0]


def test_a_network_goes_on_from_another_where_new_symbols_were_seen():
    make, exploration = explored()
    space = make().observation_space
    short = [each._replace(observations=each.observations) for each in exploration.labels[:4]]
    first = SMALL.clone(short, space, range(3))
    still = RecurrentCloning(
        width=32, memory=32, walks=8, longest=12, updates=1, updates_a_layout=0, learning_rate=1e-9
    )
    on = still.clone(exploration.labels, space, range(3), begin=first)
    observation, _ = make().reset(seed=1)
    assert np.allclose(on.look(None, None, observation)[0], first.look(None, None, observation)[0], atol=1e-5)
    box = spaces.Box(0, 31, (2, 2, 1), np.uint8)
    few = SeenInputs.of(box, [np.full((2, 2, 1), 2)])
    many = SeenInputs.of(box, [np.full((2, 2, 1), 5)])
    assert many.symbols.known_as(few.symbols)[:7].tolist() == [0, 1, 2, 3, 3, 3, 3]


def test_a_teacher_that_remembers_guides_and_acts_in_the_next_layouts():
    make = functools.partial(Signposts, length=12)
    world = GymWorld(make, cells=HashedCells(1_000), layouts=range(20))
    teacher = RecurrentTeacher(make().observation_space, range(3), SMALL)
    settings = ManyLayouts(first_share=20, after=0, follow=1, longest=30, at_once=2, teacher=teacher)
    exploration = settings.explore(world, gamma=0.9, samples=50_000)
    assert isinstance(teacher.policy, RememberingGuess)
    assert exploration.samples == world.samples == sum(each.samples for each in exploration.found)
    assert np.median([each.first_reward for each in exploration.found[-10:]]) <= 13
    assert {each.followed for each in exploration.found[:4]} == {0}
    assert {each.followed for each in exploration.found[-10:]} == {1}
    assert all(each.samples <= each.first_reward + 30 for each in exploration.found[-10:])


def test_labels_with_their_steps_are_read_as_they_were_written(tmp_path):
    _, exploration = explored(count=3)
    back = read_labels(write_labels(tmp_path / "labels.npz", exploration.labels))
    for one, other in zip(exploration.labels, back, strict=True):
        assert np.array_equal(one.steps, other.steps)
        assert np.array_equal(one.starts, other.starts)
        assert one.states == other.states
        before, action, after, _ = one.steps.T
        assert len(one.states) > before.max() >= 0
        best = one.probabilities[before, action] > 0
        assert set(after[best & (after == -1)]) == {-1}  # the best ways end in the reward


def test_what_is_refused():
    with pytest.raises(ValueError, match="memory"):
        RecurrentCloning(memory=0)
    with pytest.raises(ValueError, match="no labels"):
        SMALL.clone([], spaces.Discrete(3), range(2))
    make, exploration = explored(count=2)
    policy = SMALL.clone(exploration.labels, make().observation_space, range(3))
    with pytest.raises(ValueError, match="actions"):
        RecurrentPolicy(policy.inputs, policy.weights, range(2))
    with pytest.raises(ValueError, match="shape"):
        RecurrentPolicy(policy.inputs, {**policy.weights, "mix": np.zeros((2, 2))}, range(3))
