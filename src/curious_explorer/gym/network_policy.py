"""`NetworkPolicy`: a multilayer perceptron that acts on observations, with NumPy alone.

Whatever library learned it, what is kept are its weights and plain data about its inputs and outputs. Acting through
NumPy is what speed demands: roll-ins ask for one action at a time, and one costs about 10 microseconds for the network
here, 40 by the same layers in PyTorch, 400 by Stable-Baselines3's ``predict`` (two hidden layers of 64, one thread).
And a reset model with such policies works where PyTorch is not installed.

Observations become rows of numbers (see `network_inputs`); then `Normalisation` shifts and scales them, as
`VecNormalize` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Singles
from curious_explorer.errors import ActionError, ObservationError
from curious_explorer.gym.flat_actions import is_flat
from curious_explorer.gym.network_inputs import SEEN, NetworkInputs, is_picture
from curious_explorer.optional_packages import require
from curious_explorer.storage import Format, check_tensors, parse_strictly, tensors_header
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import ObservationPolicy

FORMAT = Format("curious-explorer/network-policy", 4)
METADATA = "curious_explorer"
ACTIVATIONS: dict[str, Callable[[Singles], Singles]] = {
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0.0),
    "none": lambda values: values,
}


def num_outputs(space: spaces.Space[Any]) -> int:
    """How many parameters a distribution of actions has: logits of whole numbers or bits, or means of a box.

    Refuses a space in which no network of this kind can act.
    """
    if not is_flat(space):
        raise ActionError(
            f"there is no network that acts in {space}; put a wrapper around the environment whose actions are a "
            "number, a row of numbers or bits, or a box with bounds: curious_explorer.gym.FlatActions(env), or "
            "FlatActions(env, actions=[...]) with a list of actions to choose from"
        )
    return spaces.flatdim(space)


class Normalisation:
    """A shift and a scale for each number, with what lies far out cut off.

    Args:
        mean: shape (width,).
        variance: shape (width,).
        clip: how many standard deviations away from the mean numbers are cut off.
        epsilon: what is added to the variance, so that nothing is divided by zero.
    """

    def __init__(self, mean: NDArray[Any], variance: NDArray[Any], clip: float = 10.0, epsilon: float = 1e-8) -> None:
        self.mean, self.variance = (np.array(values, dtype=np.float64).ravel() for values in (mean, variance))
        self.clip, self.epsilon = float(clip), float(epsilon)
        if self.mean.shape != self.variance.shape:
            raise ValueError(f"the mean has {self.mean.size} numbers and the variance {self.variance.size}")
        if not np.isfinite([self.mean, self.variance]).all() or (self.variance < 0.0).any():
            raise ValueError("the mean or the variance of the inputs is not finite, or a variance is negative")
        if not (0.0 < self.clip < math.inf and 0.0 < self.epsilon < math.inf):
            raise ValueError(f"clip is {self.clip} and epsilon {self.epsilon}, expected positive numbers")
        self._factor = 1.0 / np.sqrt(self.variance + self.epsilon)

    def apply(self, rows: Floats) -> Floats:
        """The rows, shifted, scaled and cut off."""
        return np.minimum(np.maximum((rows - self.mean) * self._factor, -self.clip), self.clip)


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a network: ``activation(inputs @ weight + bias)``, weight of shape (inputs, outputs)."""

    weight: Singles
    bias: Singles
    activation: str = "none"

    def __post_init__(self) -> None:
        weight, bias = (np.array(values, dtype=np.float32, order="C") for values in (self.weight, self.bias))
        if weight.ndim != 2 or bias.shape != weight.shape[1:] or 0 in weight.shape:
            raise ValueError(
                f"a layer has weights of shape {weight.shape} and a bias of shape {bias.shape}, expected (inputs, "
                "outputs) and (outputs,)"
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"the activation is {self.activation!r}, expected one of {', '.join(ACTIVATIONS)}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise ValueError("a layer has weights that are not finite; learning diverged, or the file is damaged")
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)


def forward_pass(layers: Sequence[Layer], inputs: NDArray[Any]) -> Singles:
    """The outputs of layers one after another, shape (N, outputs).

    ``inputs`` are rows, shape (N, inputs); or whole numbers, shape (N,), which stand for one-hot vectors.
    """
    first = layers[0]
    values = first.weight[inputs] if inputs.ndim == 1 else inputs @ first.weight
    values = ACTIVATIONS[first.activation](values + first.bias)
    for layer in layers[1:]:
        values = ACTIVATIONS[layer.activation](values @ layer.weight + layer.bias)
    return values


def _pick(logits: Singles, generator: np.random.Generator | None) -> NDArray[np.int64]:
    """A column for each row, drawn by the softmax of its logits; the largest where there is no generator."""
    if generator is None:
        largest: NDArray[np.int64] = np.argmax(logits, axis=1)
        return largest
    cumulative = np.cumsum(np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64), axis=1)
    draws = generator.random((len(logits), 1)) * cumulative[:, -1:]
    picked: NDArray[np.int64] = (cumulative[:, :-1] <= draws).sum(axis=1)
    return picked


def _pick_one(logits: list[float], draw: float) -> int:
    """The same for one row, without arrays: three times as fast for the few actions that there are."""
    largest = max(logits)
    weights = [math.exp(logit - largest) for logit in logits]
    left = draw * sum(weights)
    for number, weight in enumerate(weights):
        left -= weight
        if left < 0.0:
            return number
    return len(logits) - 1


class NetworkPolicy(ObservationPolicy):
    """A multilayer perceptron as a policy.

    Whole numbers are drawn by the softmax of their logits, each of its own, bits independently, and the numbers of a
    box from normal distributions, cut off at its bounds.

    Args:
        observation_space: the environment's own.
        action_space: the environment's own.
        layers: in order; the last one's outputs are what `num_outputs` counts.
        log_std: of the numbers of a box, the logarithms of their standard deviations; zeros if None.
        normalisation: how observations are shifted and scaled, once they are numbers; not at all if None.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        layers: Sequence[Layer],
        *,
        log_std: NDArray[Any] | None = None,
        normalisation: Normalisation | None = None,
    ) -> None:
        self._inputs = NetworkInputs(observation_space)
        widths = [self._inputs.width, *(layer.weight.shape[1] for layer in layers)]
        needed = num_outputs(action_space)
        for place, layer in enumerate(layers):
            if layer.weight.shape[0] != widths[place]:
                raise ValueError(f"layer {place} takes {layer.weight.shape[0]} numbers, but is given {widths[place]}")
        if not layers or widths[-1] != needed:
            raise ValueError(f"the network puts out {widths[-1]} numbers, but acting in {action_space} needs {needed}")
        if normalisation is not None and normalisation.mean.shape != (widths[0],):
            raise ValueError(
                f"the normalisation is for {len(normalisation.mean)} numbers, but an observation is {widths[0]}"
            )
        self.observation_space: Any = observation_space
        self.action_space: Any = action_space
        self.layers, self.normalisation = tuple(layers), normalisation
        self.log_std: Singles = np.zeros(needed, np.float32) if log_std is None else np.array(log_std, np.float32)
        with np.errstate(over="ignore"):
            self._std = np.exp(self.log_std.astype(np.float64))
        if self._std.shape != (needed,) or not np.isfinite(self._std).all():
            raise ValueError(f"the logarithms of the standard deviations are {self.log_std}, expected {needed} numbers")

    def rows(self, observations: Sequence[Any]) -> Floats:
        """What the network sees of each observation: its numbers, normalised, shape (N, width)."""
        rows = self._inputs.rows(observations)
        return rows if self.normalisation is None else self.normalisation.apply(rows)

    def outputs(self, observations: Sequence[Any]) -> Singles:
        """What the network puts out: the parameters of the distributions of actions, shape (N, num_outputs)."""
        return forward_pass(self.layers, self.rows(observations).astype(np.float32))

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """An action of the environment for each observation, drawn."""
        return self._actions(self.outputs(observations), generator)

    def act_likeliest(self, observations: Sequence[Any]) -> list[Any]:
        """The likeliest action for each observation; `train` evaluates so unless it is told ``--stochastic``."""
        return self._actions(self.outputs(observations), None)

    def _actions(self, outputs: Singles, generator: np.random.Generator | None) -> list[Any]:
        # A sum is finite if all of its numbers are, unless they are huge; it takes less time than to look at each.
        if not (math.isfinite(np.add.reduce(outputs, axis=None)) or np.isfinite(outputs).all()):
            raise ObservationError(
                "the network put out numbers that are not finite: the observation has NaN or infinity in it, or "
                "learning diverged; repair the environment, or learn with a smaller learning_rate"
            )
        space, numbers = self.action_space, cast(NDArray[Any], outputs)
        if isinstance(space, spaces.Discrete):
            if generator is not None and len(outputs) == 1:
                return [_pick_one(outputs[0].tolist(), generator.random()) + int(space.start)]
            return (_pick(outputs, generator) + int(space.start)).tolist()  # type: ignore[no-any-return]
        if isinstance(space, spaces.MultiDiscrete):
            pieces = np.split(outputs, np.cumsum(space.nvec)[:-1], axis=1)
            numbers = np.stack([_pick(piece, generator) for piece in pieces], axis=1) + space.start
        elif isinstance(space, spaces.MultiBinary):
            with np.errstate(over="ignore"):
                chance = 1.0 / (1.0 + np.exp(-outputs.astype(np.float64)))
            numbers = chance > (0.5 if generator is None else generator.random(outputs.shape))
        else:
            if generator is not None:
                numbers = outputs + self._std * generator.standard_normal(outputs.shape)
            numbers = np.clip(numbers.reshape(-1, *space.shape), space.low, space.high)
        return list(numbers.astype(space.dtype))

    def probabilities(self, observations: Sequence[Any]) -> Floats:
        """The probability of each action, shape (N, actions), where an action is one whole number."""
        if not isinstance(self.action_space, spaces.Discrete):
            raise ValueError(f"only a policy of one whole number has a row of probabilities, not {self}")
        outputs = self.outputs(observations).astype(np.float64)
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        probabilities: Floats = weights / weights.sum(axis=1, keepdims=True)
        return probabilities

    def encode(self) -> bytes:
        """A safetensors file: weights as tensors, everything else as JSON in its metadata."""
        scale = self.normalisation
        content = {
            "observations": _described(self.observation_space),
            "actions": _described(self.action_space),
            "normalisation": None if scale is None else {"clip": scale.clip, "epsilon": scale.epsilon},
            "layers": [layer.activation for layer in self.layers],
        }
        tensors: dict[str, NDArray[Any]] = {}
        for place, layer in enumerate(self.layers):
            tensors[f"layers.{place}.weight"], tensors[f"layers.{place}.bias"] = layer.weight, layer.bias
        if scale is not None:
            tensors |= {"mean": scale.mean, "variance": scale.variance}
        if isinstance(self.action_space, spaces.Box):
            tensors |= {"log_std": self.log_std, "low": self.action_space.low, "high": self.action_space.high}
        metadata = {METADATA: tensors_header(FORMAT, content, tensors)}
        encoded: bytes = require("safetensors.numpy", "sb3").save(tensors, metadata)
        return encoded

    @staticmethod
    def decode(content: bytes) -> NetworkPolicy:
        """The policy in what `encode` wrote; raises a `ValueError` on anything else, and never unpickles."""
        load, keys = require("safetensors.numpy", "sb3").load, {"observations", "actions", "normalisation", "layers"}
        text = _metadata(content)
        try:
            try:
                tensors = load(content)
            except require("safetensors", "sb3").SafetensorError as error:
                raise ValueError(f"it is no complete safetensors file ({error})") from error
            return _assemble(check_tensors(text, FORMAT, keys, tensors), tensors)
        except ValueError:
            raise
        except Exception as error:  # safetensors and Gymnasium let out whatever a damaged description makes them raise
            raise ValueError(f"it is no network policy ({type(error).__name__}: {error})") from error

    def __repr__(self) -> str:
        hidden = [layer.weight.shape[1] for layer in self.layers[:-1]]
        return f"NetworkPolicy({self.observation_space}, hidden {hidden}, {self.action_space})"


def _metadata(content: bytes) -> bytes:
    """Our JSON in the header of a safetensors file: eight bytes of length, then JSON, then the tensors."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise ValueError("it is no complete safetensors file: its header is cut off")
    header = parse_strictly(content[8 : 8 + length])
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    text = metadata.get(METADATA) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise ValueError("it is a safetensors file, but holds no policy of this library")
    return text.encode("utf-8", "surrogatepass")


def _described(space: Any) -> dict[str, Any]:
    """What is kept of a space: of a box of observations its shape, while the bounds of actions are tensors."""
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "parts": [[key, _described(below)] for key, below in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {"kind": "tuple", "parts": [_described(below) for below in space.spaces]}
    if not isinstance(space, SEEN):
        return {"kind": "not_seen"}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        numbers = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"kind": "multi_discrete", **numbers, "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "shape": list(space.shape)}
    return {"kind": "box", "shape": list(space.shape), "picture": is_picture(space)}


def _width(described: Mapping[str, Any]) -> int:
    """How many numbers a network sees of what was described; counted before a space is made, which takes its memory."""
    kind = described["kind"]
    if kind in ("dict", "tuple"):
        return sum(_width(below[1] if kind == "dict" else below) for below in described["parts"])
    if kind == "discrete":
        return check_count(described["n"], "its count of whole numbers", least=1)
    if kind == "multi_discrete":
        return sum(check_count(size, "its counts of whole numbers", least=1) for size in _flat(described["nvec"]))
    if kind in ("box", "multi_binary"):
        return math.prod(check_count(size, "its shape of observations", least=0) for size in described["shape"])
    if kind == "not_seen":
        return 0
    raise ValueError(f"unknown kind of space {kind!r}; a newer version of the library may know it")


def _flat(sizes: Any) -> list[Any]:
    return [number for row in sizes for number in _flat(row)] if isinstance(sizes, list) else [sizes]


def _space(described: Mapping[str, Any]) -> spaces.Space[Any]:
    """The space that was described, which Gymnasium checks; what is not seen is any space that no network sees."""
    kind = described["kind"]
    if kind == "dict":
        return spaces.Dict([(str(key), _space(below)) for key, below in described["parts"]])
    if kind == "tuple":
        return spaces.Tuple([_space(below) for below in described["parts"]])
    if kind == "not_seen":
        return spaces.Text(1)
    if kind == "discrete":
        return spaces.Discrete(described["n"], start=described["start"])
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(described["nvec"], described["dtype"], start=described["start"])
    if kind == "multi_binary":
        return spaces.MultiBinary(described["shape"])
    shape = tuple(described["shape"])
    if described["picture"]:
        return spaces.Box(0, 255, shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, shape, np.float64)


def _assemble(described: Mapping[str, Any], tensors: dict[str, NDArray[Any]]) -> NetworkPolicy:
    """The policy that plain data and tensors stand for, checked."""

    def tensor(name: str, dtype: Any) -> NDArray[Any]:
        if name not in tensors:
            raise ValueError(f"it has no tensor {name!r}")
        found = tensors.pop(name)
        if (dtype is not None and found.dtype != dtype) or not np.isfinite(found).all():
            raise ValueError(f"its tensor {name!r} is of {found.dtype}, expected finite numbers of {dtype}")
        return found

    observations, actions, scale = (described[name] for name in ("observations", "actions", "normalisation"))
    if not isinstance(described["layers"], list):
        raise ValueError(f"its layers are {described['layers']!r}, expected a list of activations")
    layers = [
        Layer(tensor(f"layers.{place}.weight", "f4"), tensor(f"layers.{place}.bias", "f4"), str(activation))
        for place, activation in enumerate(described["layers"])
    ]
    if not layers or _width(observations) != len(layers[0].weight):
        raise ValueError(f"its observations have {_width(observations)} numbers, which its first layer does not take")
    seen, log_std = _space(observations), None
    if actions["kind"] == "box":
        low, high, log_std = tensor("low", None), tensor("high", None), tensor("log_std", "f4")
        acted: spaces.Space[Any] = spaces.Box(low, high, dtype=low.dtype.type)
    else:
        _width(actions)  # refuses what is no number
        acted = _space(actions)
    normalisation = None
    if scale is not None:
        numbers = tensor("mean", "f8"), tensor("variance", "f8")
        normalisation = Normalisation(*numbers, float(scale["clip"]), float(scale["epsilon"]))
    if tensors:
        raise ValueError(f"it has tensors that belong nowhere: {sorted(tensors)[:10]}")
    return NetworkPolicy(seen, acted, layers, log_std=log_std, normalisation=normalisation)
