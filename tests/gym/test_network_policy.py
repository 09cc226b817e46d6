"""`NetworkPolicy` against Stable-Baselines3's own policies, and against damaged and hostile files."""

import contextlib
import json
import struct

import numpy as np
import pytest
from gymnasium import spaces
from safetensors.numpy import load, save

from curious_explorer.errors import ActionError, ObservationError
from curious_explorer.gym.actors import ActorCache, RandomStream
from curious_explorer.gym.network_inputs import NetworkInputs, num_inputs
from curious_explorer.gym.network_policy import Layer, NetworkPolicy, Normalisation, num_outputs
from curious_explorer.worlds.policies import StoredPolicy

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

SEED = 3
BOX = spaces.Box(-2.0, 2.0, (3,), dtype=np.float32)
PAIR = spaces.Discrete(2)
OBSERVATION_SPACES = {
    "box": BOX,
    "matrix": spaces.Box(-1.0, 1.0, (2, 3), dtype=np.float32),
    "picture": spaces.Box(0, 255, (4, 5, 3), dtype=np.uint8),
    "bytes": spaces.Box(0, 9, (4,), dtype=np.uint8),
    "discrete": spaces.Discrete(5),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4]),
    "bits": spaces.MultiBinary(4),
}
COMPOSITE_SPACES = {
    "dict": spaces.Dict(
        {"where": BOX, "mission": spaces.Text(5), "deep": spaces.Dict({"n": spaces.Discrete(3, start=2)})}
    ),
    "tuple": spaces.Tuple((spaces.Text(3), spaces.MultiBinary(2), spaces.Box(0, 255, (2, 2, 3), np.uint8))),
    "two rows of numbers": spaces.MultiDiscrete([[2, 3], [4, 2]]),
}
ACTION_SPACES = {
    "discrete": spaces.Discrete(4),
    "multi_discrete": spaces.MultiDiscrete([3, 2]),
    "bits": spaces.MultiBinary(3),
    "box": spaces.Box(np.float32([-1.0, -2.0]), np.float32([1.0, 3.0])),
}


def sb3_policy(observation_space, action_space, **arguments):
    from stable_baselines3.common.policies import ActorCriticPolicy

    torch.manual_seed(SEED)
    policy = ActorCriticPolicy(observation_space, action_space, lambda _: 1e-3, ortho_init=False, **arguments)
    if hasattr(policy, "log_std"):
        policy.log_std.data.uniform_(-1.0, 0.5)
    return policy


def as_network(policy, observation_space, action_space, normalizer=None):
    from curious_explorer.sb3.algorithms import network_policy

    return network_policy(policy, observation_space, action_space, normalizer)


def samples_of(space, count):
    space.seed(SEED)
    return [space.sample() for _ in range(count)]


def sb3_parameters(policy, observations):
    """The parameters of the distribution, by Stable-Baselines3's own preprocessing and forward pass."""
    from stable_baselines3.common.utils import obs_as_tensor

    with torch.no_grad():
        seen = obs_as_tensor(np.stack([np.asarray(one) for one in observations]), policy.device)
        distribution = policy.get_distribution(seen).distribution
        if isinstance(distribution, list):
            return np.concatenate([part.logits.numpy() for part in distribution], axis=1)
        gaussian = isinstance(distribution, torch.distributions.Normal)
        return (distribution.mean if gaussian else distribution.logits).numpy()


@pytest.mark.parametrize("name", OBSERVATION_SPACES)
def test_logits_are_those_of_stable_baselines(name):
    space = OBSERVATION_SPACES[name]
    policy = sb3_policy(space, ACTION_SPACES["discrete"])
    network = as_network(policy, space, ACTION_SPACES["discrete"])
    observations = samples_of(space, 20)
    expected = torch.softmax(torch.as_tensor(sb3_parameters(policy, observations)), dim=1).numpy()
    found = network.probabilities(observations)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    for one, row in zip(observations, found, strict=True):  # one at a time as well as all at once
        alone = network.probabilities([one])[0]
        np.testing.assert_allclose(alone, row, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["Tanh", "ReLU"])
def test_activations_are_those_of_torch(activation):
    policy = sb3_policy(BOX, PAIR, net_arch=[7, 5], activation_fn=getattr(torch.nn, activation))
    network = as_network(policy, BOX, PAIR)
    observations = samples_of(BOX, 30)
    expected = torch.softmax(torch.as_tensor(sb3_parameters(policy, observations)), dim=1).numpy()
    found = network.probabilities(observations)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_normalisation_is_that_of_vec_normalize():
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    envs = VecNormalize(DummyVecEnv([lambda: gymnasium.make("MountainCar-v0")]), clip_obs=1.2)
    envs.reset()
    for _ in range(200):
        envs.step([envs.action_space.sample()])
    space = envs.observation_space
    policy = sb3_policy(space, PAIR)
    network = as_network(policy, space, PAIR, envs)
    observations = samples_of(space, 50)
    expected = envs.normalize_obs(np.stack(observations))
    assert (np.abs(expected) == np.float32(1.2)).any()  # some are cut off
    np.testing.assert_allclose(network.rows(observations), expected, rtol=1e-6, atol=1e-7)
    logits = torch.as_tensor(sb3_parameters(policy, list(expected)))
    np.testing.assert_allclose(
        network.probabilities(observations), torch.softmax(logits, dim=1).numpy(), rtol=2e-5, atol=1e-6
    )


def test_actions_are_drawn_from_the_distribution():
    space = ACTION_SPACES["discrete"]
    network = as_network(sb3_policy(BOX, space), BOX, space)
    observation = samples_of(BOX, 1)[0]
    expected = network.probabilities([observation])[0]
    generator = np.random.default_rng(SEED)
    together = network.act([observation] * 20_000, generator)
    alone = [network.act([observation], generator)[0] for _ in range(5_000)]
    for drawn in (together, alone):
        counts = np.bincount(drawn, minlength=4)
        chi_square = ((counts - len(drawn) * expected) ** 2 / (len(drawn) * expected)).sum()
        assert chi_square < 16.27  # 3 degrees of freedom, significance 0.001


def test_gaussian_actions_have_the_policys_moments_and_stay_in_the_box():
    space = ACTION_SPACES["box"]
    policy = sb3_policy(BOX, space)
    network = as_network(policy, BOX, space)
    observation = samples_of(BOX, 1)[0]
    generator = np.random.default_rng(SEED)
    mean, std = sb3_parameters(policy, [observation])[0], np.exp(policy.log_std.detach().numpy())
    wide = spaces.Box(np.full(2, -100.0, np.float32), np.full(2, 100.0, np.float32))
    draws = np.stack(as_network(policy, BOX, wide).act([observation] * 20_000, generator))
    assert (np.abs(draws.mean(axis=0) - mean) < 4.0 * std / np.sqrt(len(draws))).all()
    assert np.abs(draws.std(axis=0) / std - 1.0).max() < 0.03
    actions = network.act([observation] * 500, generator)
    assert all(space.contains(action) for action in actions)
    assert any((np.abs(action) == 1.0).any() for action in actions)  # some had to be cut off


@pytest.mark.parametrize("name", ["multi_discrete", "bits"])
def test_rows_of_numbers_are_drawn_independently(name):
    space = ACTION_SPACES[name]
    policy = sb3_policy(BOX, space)
    network = as_network(policy, BOX, space)
    observation = samples_of(BOX, 1)[0]
    actions = network.act([observation] * 20_000, np.random.default_rng(SEED))
    assert all(space.contains(action) for action in actions[:50])
    logits = sb3_parameters(policy, [observation])[0]
    drawn = np.stack(actions)
    if name == "bits":
        expected = 1.0 / (1.0 + np.exp(-logits))
    else:
        expected = np.array([np.exp(part[1]) / np.exp(part).sum() for part in np.split(logits, [3])])
    assert np.abs((drawn == 1).mean(axis=0) - expected).max() < 4.0 * 0.5 / np.sqrt(len(drawn))


@pytest.mark.parametrize("name", ACTION_SPACES)
def test_the_likeliest_actions_are_stable_baselines3s_deterministic_ones(name):
    space = ACTION_SPACES[name]
    policy = sb3_policy(BOX, space)
    observations = samples_of(BOX, 40)
    actions = as_network(policy, BOX, space).act_likeliest(observations)
    expected, _ = policy.predict(np.stack(observations), deterministic=True)
    np.testing.assert_allclose(np.stack(actions), expected, atol=1e-5)


def test_actions_and_observations_are_numbered_from_where_their_spaces_start():
    observations, actions = spaces.Discrete(3, start=5), spaces.Discrete(2, start=-1)
    network = NetworkPolicy(observations, actions, [Layer(np.eye(3)[:, :2] * 1e3, np.zeros(2))])
    assert network.act([np.int64(5), np.int64(6)], np.random.default_rng(0)) == [-1, 0]


def example(actions=None, observations=BOX):
    generator = np.random.default_rng(SEED)
    actions = spaces.Box(-1.0, 1.0, (2,)) if actions is None else actions
    sizes = [num_inputs(observations), 4, num_outputs(actions)]
    layers = [
        Layer(generator.normal(size=(i, o)), generator.normal(size=o), activation)
        for i, o, activation in zip(sizes, sizes[1:], ["relu", "none"], strict=False)
    ]
    normalisation = Normalisation(np.ones(sizes[0]), np.full(sizes[0], 2.0))
    return NetworkPolicy(observations, actions, layers, normalisation=normalisation)


@pytest.mark.parametrize("name", ACTION_SPACES)
def test_a_file_holds_the_whole_policy(name):
    policy = example(ACTION_SPACES[name])
    again = NetworkPolicy.decode(policy.encode())
    assert again.encode() == policy.encode()
    observations = samples_of(BOX, 10)
    first, second = (one.act(observations, np.random.default_rng(1)) for one in (policy, again))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", [*OBSERVATION_SPACES, *COMPOSITE_SPACES])
def test_a_file_holds_what_a_network_sees(name):
    space = (OBSERVATION_SPACES | COMPOSITE_SPACES)[name]
    policy = example(PAIR, space)
    observations = samples_of(space, 10)
    again = NetworkPolicy.decode(policy.encode())
    assert again.encode() == policy.encode()
    assert np.array_equal(again.rows(observations), policy.rows(observations))


def test_parts_are_put_in_a_row_and_those_that_are_no_numbers_are_named():
    inputs = NetworkInputs(COMPOSITE_SPACES["dict"])
    seen = {"where": np.float32([1.0, 0.5, -1.0]), "mission": "go", "deep": {"n": 3}}
    assert [part.name for part in inputs.left_out] == ["mission"]
    assert inputs.rows([seen]).tolist() == [[0.0, 1.0, 0.0, 1.0, 0.5, -1.0]]  # keys in Gymnasium's order
    with pytest.raises(ObservationError, match="where"):
        inputs.rows([{"deep": {"n": 3}}])
    pixels = np.full((2, 2, 3), 51, np.uint8)
    assert NetworkInputs(COMPOSITE_SPACES["tuple"]).rows([("a", np.int8([1, 0]), pixels)]).tolist() == [
        [1.0, 0.0, *[0.2] * 12]
    ]


def rewritten(policy, change_plain=None, change_tensors=None):
    """The file of a policy with its plain data or its tensors changed."""
    content = policy.encode()
    length = struct.unpack("<Q", content[:8])[0]
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    plain, tensors = json.loads(metadata["curious_explorer"]), dict(load(content))
    if change_plain is not None:
        change_plain(plain)
    if change_tensors is not None:
        change_tensors(tensors)
    return save(tensors, {"curious_explorer": json.dumps(plain)})


HOSTILE_PLAIN = {
    "another format": lambda plain: plain.update(format="something/else"),
    "a newer version": lambda plain: plain.update(version=99),
    "an unknown space of actions": lambda plain: plain["actions"].update(kind="oracle"),
    "actions without a kind": lambda plain: plain.update(actions={}),
    "fewer actions": lambda plain: plain.update(actions={"kind": "discrete", "n": 5, "start": 0}),
    "actions that are no numbers": lambda plain: plain.update(actions={"kind": "discrete", "n": "2", "start": 0}),
    "a type that is none": lambda plain: plain.update(
        actions={"kind": "multi_discrete", "nvec": [1, 1], "start": [0, 0], "dtype": "object"}
    ),
    "unknown inputs": lambda plain: plain["observations"].update(kind="sound"),
    "huge inputs": lambda plain: plain["observations"].update(shape=[10**15]),
    "negative inputs": lambda plain: plain["observations"].update(shape=[-1, -3]),
    "inputs that are no numbers": lambda plain: plain["observations"].update(shape=["3"]),
    "an unknown activation": lambda plain: plain.update(layers=["exec", "none"]),
    "a layer too many": lambda plain: plain["layers"].append("none"),
    "a layer too few": lambda plain: plain["layers"].pop(),
    "layers that are no list": lambda plain: plain.update(layers="relu"),
    "a dict without parts": lambda plain: plain["observations"].update(kind="dict"),
    "parts that are no pairs": lambda plain: plain.update(observations={"kind": "dict", "parts": [3]}),
    "parts of another width": lambda plain: plain.update(
        observations={"kind": "tuple", "parts": [plain["observations"]] * 2}
    ),
    "a clip of zero": lambda plain: plain["normalisation"].update(clip=0.0),
    "a normalisation that is none": lambda plain: plain.update(normalisation="yes"),
}
HOSTILE_TENSORS = {
    "a missing tensor": lambda tensors: tensors.pop("layers.0.bias"),
    "a tensor too many": lambda tensors: tensors.update(extra=np.zeros(1, np.float32)),
    "a wrong shape": lambda tensors: tensors.update({"layers.0.weight": np.zeros((3, 5), np.float32)}),
    "a wrong type": lambda tensors: tensors.update({"layers.0.weight": np.zeros((3, 4), np.int64)}),
    "a NaN weight": lambda tensors: tensors.update({"layers.1.bias": np.full(2, np.nan, np.float32)}),
    "an infinite bound": lambda tensors: tensors.update({"high": np.full(2, np.inf, np.float32)}),
    "bounds in reverse": lambda tensors: tensors.update({"high": np.full(2, -9.0, np.float32)}),
    "bounds of another shape": lambda tensors: tensors.update(low=-np.ones(5, np.float32), high=np.ones(5, np.float32)),
    "deviations of another shape": lambda tensors: tensors.update(log_std=np.zeros(5, np.float32)),
    "a negative variance": lambda tensors: tensors.update(variance=np.full(3, -1.0)),
    "a mean of another width": lambda tensors: tensors.update(mean=np.zeros(4)),
}


@pytest.mark.parametrize("damage", HOSTILE_PLAIN)
def test_plain_data_is_not_trusted(damage):
    with pytest.raises(ValueError, match=r".{10}"):
        NetworkPolicy.decode(rewritten(example(), change_plain=HOSTILE_PLAIN[damage]))


@pytest.mark.parametrize("damage", HOSTILE_TENSORS)
def test_tensors_are_not_trusted(damage):
    with pytest.raises(ValueError, match=r".{10}"):
        NetworkPolicy.decode(rewritten(example(), change_tensors=HOSTILE_TENSORS[damage]))


def test_damaged_bytes_raise_value_errors_and_nothing_else():
    content = example().encode()
    generator = np.random.default_rng(0)
    for length in (0, 3, 8, 40, len(content) // 2, len(content) - 1):
        with pytest.raises(ValueError, match=r".{10}"):
            NetworkPolicy.decode(content[:length])
    for _ in range(300):
        damaged = bytearray(content)
        damaged[generator.integers(len(content))] = generator.integers(256)
        with contextlib.suppress(ValueError):  # a changed weight is still a weight
            assert isinstance(NetworkPolicy.decode(bytes(damaged)), NetworkPolicy)


def test_a_safetensors_file_of_somebody_else_is_refused():
    with pytest.raises(ValueError, match="no policy of this library"):
        NetworkPolicy.decode(save({"weight": np.zeros(3, np.float32)}))


def test_observations_and_actions_that_no_network_can_handle_are_refused():
    with pytest.raises(ObservationError, match="TransformObservation"):
        num_inputs(spaces.Dict({"a": spaces.Text(3)}))
    with pytest.raises(ActionError, match="FlatActions"):
        num_outputs(spaces.Box(-np.inf, np.inf, (2,)))
    network = example(spaces.Discrete(3))
    with pytest.raises(ObservationError, match="4 numbers"):
        network.act([np.zeros(4)], np.random.default_rng(0))
    for count in (1, 3):
        with pytest.raises(ObservationError, match="not finite"):
            network.act([np.full(3, np.nan)] * count, np.random.default_rng(0))
    discrete = NetworkPolicy(spaces.Discrete(3), PAIR, [Layer(np.zeros((3, 2)), np.zeros(2))])
    with pytest.raises(ObservationError, match=r"Discrete\(3\)"):
        discrete.act([3], np.random.default_rng(0))


def test_a_stored_policy_is_decoded_where_it_acts():
    policy = example(PAIR)
    actors = ActorCache(1, [0, 1])
    stored = StoredPolicy(policy.encode())
    assert stored.encode() == policy.encode()
    seen, streams = np.ones(3), (RandomStream(1), RandomStream(1))
    ours, theirs = (actors.actor(p).choose(seen, 0, s) for p, s in zip((stored, policy), streams, strict=True))
    assert ours == theirs
    with pytest.raises(ValueError, match=r"NetworkPolicy\.decode"):
        stored.act([seen], np.random.default_rng(1))
    with pytest.raises(ValueError, match="safetensors"):
        actors.actor(StoredPolicy(policy.encode()[:-9]))
