"""What networks of Stable-Baselines3 see and do: every kind of space is trained in, evaluated in and acted in."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("stable_baselines3", reason="the extra sb3 is not installed")

from curious_explorer.errors import CheckpointError
from curious_explorer.sb3.network_view import BOTH, CONVOLUTIONS, PERCEPTRON, SpaceView
from curious_explorer.sb3.training import load_trained, train_into
from curious_explorer.sb3.training_settings import TrainingSettings


def box(*shape):
    return spaces.Box(-1.0, 1.0, shape, dtype=np.float32)


def picture(*shape):
    return spaces.Box(0, 255, shape, dtype=np.uint8)


TWO = spaces.Discrete(2, start=1)
OBSERVATIONS = {
    "dict": (
        spaces.Dict({"a": box(2), "n": spaces.Discrete(3, start=2), "t": spaces.Text(5), "d": spaces.MultiBinary(3)}),
        PERCEPTRON,
    ),
    "tuple": (spaces.Tuple((spaces.Discrete(4), box(2, 2), spaces.Text(4))), PERCEPTRON),
    "small picture": (picture(7, 7, 3), PERCEPTRON),
    "thin picture": (picture(1, 90, 3), PERCEPTRON),
    "picture": (picture(48, 40, 3), CONVOLUTIONS),
    "picture, channels first": (picture(3, 40, 40), CONVOLUTIONS),
    "picture without channels": (picture(40, 40), CONVOLUTIONS),
    "picture in a dict": (spaces.Dict({"p": picture(40, 40, 3), "t": spaces.Text(3)}), CONVOLUTIONS),
    "picture and numbers": (spaces.Dict({"p": picture(40, 40, 1), "a": box(3), "t": spaces.Text(3)}), BOTH),
    "two pictures": (spaces.Tuple((picture(40, 40, 1), picture(36, 36, 3))), BOTH),
    "rows of numbers": (spaces.MultiDiscrete([[2, 3], [4, 2]]), PERCEPTRON),
    "number in a dict": (spaces.Dict({"d": spaces.Discrete(5, start=1)}), PERCEPTRON),
    "bits": (spaces.MultiBinary([2, 2]), PERCEPTRON),
}
ACTIONS = {"numbers": spaces.MultiDiscrete([2, 3]), "bits": spaces.MultiBinary(3), "box": box(2)}


class AnySpaces(gymnasium.Env):
    """Random observations of a space; an action outside of its space is an error."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.left = 12
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.left -= 1
        return self.observation_space.sample(), 1.0, self.left == 0, False, {}


@pytest.fixture
def trained(tmp_path):
    """Trains for a few steps, and gives the training."""
    registered = []

    def train(observations, actions, **changed):
        name = f"AnySpaces{len(registered)}-v0"
        gymnasium.register(name, entry_point=lambda: AnySpaces(observations, actions))
        registered.append(name)
        few = {"n_steps": 16, "n_epochs": 1, "batch_size": 32}
        asked = {"samples": 40, "num_envs": 2, "evaluation_episodes": 1, "hyperparameters": few} | changed
        return train_into(tmp_path / name, TrainingSettings(environment=name, **asked))

    yield train
    for name in registered:
        del gymnasium.registry[name]


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_every_space_of_observations_is_trained_in(name, trained):
    space, kind = OBSERVATIONS[name]
    view = SpaceView(space, TWO)
    assert view.kind == kind
    space.seed(0)
    seen = view.see(space.sample())
    assert view.observation_space.contains(seen)
    training = trained(space, TWO)
    assert training.samples == 40
    assert training.evaluations[-1].mean_length == 12
    assert (training.policy is None) == (kind != PERCEPTRON)


@pytest.mark.parametrize("name", ACTIONS)
def test_every_space_of_actions_is_trained_in(name, trained):
    assert trained(OBSERVATIONS["dict"][0], ACTIONS[name]).evaluations[-1].mean_return == 12.0


def test_weights_of_a_network_that_saw_another_form_are_refused_with_a_reason(trained, tmp_path, monkeypatch):
    trained(picture(96, 96, 1), TWO)
    (run,) = (path.parent for path in tmp_path.rglob("checkpoint.safetensors"))
    monkeypatch.setattr("curious_explorer.sb3.network_view.USUAL_PICTURE", 60)  # as if it had been stored before
    with pytest.raises(CheckpointError, match="an earlier version made it, which saw large pictures in full"):
        load_trained(run)


def test_the_same_training_again_gives_the_same_weights(trained):
    first, second = (trained(OBSERVATIONS["dict"][0], TWO).policy.read_bytes() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("shape", "seen"),
    [
        ((84, 84, 3), (84, 84, 3)),
        ((210, 160, 3), (105, 80, 3)),
        ((4, 210, 161), (4, 105, 80)),
        ((250, 250), (83, 83, 1)),
    ],
)
def test_large_pictures_are_seen_by_the_means_of_blocks(shape, seen):
    space = spaces.Box(0, 255, shape, np.uint8)
    view = SpaceView(space, spaces.Discrete(2))
    assert view.observation_space.shape == seen
    picture = space.sample()
    got = view.see(picture)
    assert got in view.observation_space
    block = 3 if shape[0] == 250 else 2 if 210 in shape else 1
    rows = 1 if len(shape) == 3 and shape[0] == 4 else 0
    first = picture[0] if rows else picture.reshape(*shape[:2], -1)[..., 0]
    expected = int(first[:block, :block].astype(int).sum()) // block**2
    assert got[(0,) * 3] == expected
    last = picture[-1] if rows else picture.reshape(*shape[:2], -1)[..., -1]
    height, width = seen[rows : rows + 2]
    corner = last[(height - 1) * block : height * block, (width - 1) * block : width * block]
    assert (got[-1, -1, -1]) == int(corner.astype(int).sum()) // block**2
