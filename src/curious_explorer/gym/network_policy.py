"""`NetworkPolicy`: a multilayer perceptron that acts on observations, with NumPy alone.

Whatever library learned it, what is kept are its weights and plain data about its inputs and outputs. Acting through
NumPy is what speed demands: roll-ins ask for one action at a time, and one costs about 10 microseconds for the network
here, 40 by the same layers in PyTorch, 400 by Stable-Baselines3's ``predict`` (two hidden layers of 64, one thread).
And a reset model with such policies works where PyTorch is not installed.

Observations become numbers in the way Stable-Baselines3 makes them: a box is flattened (pictures of bytes are divided
by 255 first), whole numbers become one-hot vectors; then `Normalisation` shifts and scales, as `VecNormalize` does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Singles
from curious_explorer.errors import ActionError, ObservationError
from curious_explorer.storage import Format, check_header, parse_strictly
from curious_explorer.worlds.policies import ObservationPolicy

FORMAT = Format("curious-explorer/network-policy", 2)
METADATA = "curious_explorer"
ACTIVATIONS: dict[str, Callable[[Singles], Singles]] = {
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0.0),
    "none": lambda values: values,
}
_BYTES = 255.0


@dataclass(frozen=True)
class Inputs:
    """From observations to rows of numbers.

    Args:
        kind: "box" for numbers as they are, "one_hot" for whole numbers.
        sizes: the shape of a box; or how many values each whole number can have.
        starts: the least value of each whole number; empty for a box.
        divisor: what a box is divided by: 255 for pictures of bytes.
    """

    kind: str
    sizes: tuple[int, ...]
    starts: tuple[int, ...] = ()
    divisor: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("box", "one_hot"):
            raise ValueError(f"the kind of inputs is {self.kind!r}, expected 'box' or 'one_hot'")
        whole = self.kind == "one_hot"
        if any(size < 1 for size in self.sizes) or (whole and not self.sizes):
            raise ValueError(f"the sizes of the inputs are {self.sizes}, expected positive numbers")
        if len(self.starts) != (len(self.sizes) if whole else 0) or not 0.0 < self.divisor < math.inf:
            raise ValueError(
                f"the inputs start at {self.starts} and are divided by {self.divisor}: not for {self.kind}"
            )

    @staticmethod
    def of(space: spaces.Space[Any]) -> Inputs:
        """The inputs for an observation space."""
        if isinstance(space, spaces.Discrete):
            return Inputs("one_hot", (int(space.n),), (int(space.start),))
        if isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1:
            return Inputs("one_hot", tuple(map(int, space.nvec)), tuple(map(int, space.start)))
        if isinstance(space, spaces.Box):
            picture = space.dtype == np.uint8 and len(space.shape) == 3
            picture = picture and bool((space.low == 0).all() and (space.high == 255).all())
            return Inputs("box", tuple(space.shape), divisor=_BYTES if picture else 1.0)
        if isinstance(space, spaces.MultiBinary):
            return Inputs("box", tuple(space.shape))
        raise ObservationError(
            f"a multilayer perceptron cannot see observations in {space}; put a wrapper around the environment that "
            "makes a box of them, such as gymnasium.wrappers.FlattenObservation or, for a MiniGrid, "
            "minigrid.wrappers.ImgObsWrapper, and explore with it in place"
        )

    @property
    def width(self) -> int:
        """How many numbers an observation becomes."""
        return math.prod(self.sizes) if self.kind == "box" else sum(self.sizes)

    def rows(self, observations: Sequence[Any]) -> Floats:
        """The numbers of each observation, shape (N, width)."""
        try:
            given = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
        except (TypeError, ValueError) as error:
            raise ObservationError(f"the policy was given {observations[0]!r}, expected {self} ({error})") from None
        if given.shape[1] != (self.width if self.kind == "box" else len(self.sizes)):
            raise ObservationError(
                f"the policy was given an observation of {given.shape[1]} numbers, expected {self}; it was learned in "
                "another environment, or under other wrappers"
            )
        if self.kind == "box":
            return given if self.divisor == 1.0 else given / self.divisor
        whole = given.astype(np.int64) - self.starts
        if ((whole < 0) | (whole >= self.sizes)).any():
            raise ObservationError(f"the policy was given {given.tolist()}, expected {self}")
        rows = np.zeros((len(given), self.width))
        np.put_along_axis(rows, whole + np.cumsum((0, *self.sizes[:-1])), 1.0, axis=1)
        return rows

    def __str__(self) -> str:
        if self.kind == "box":
            return f"numbers of shape {self.sizes}"
        ranges = [f"{start} to {start + size - 1}" for start, size in zip(self.starts, self.sizes, strict=True)]
        return f"whole numbers from {', '.join(ranges)}"


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


class Head:
    """The distribution of actions whose parameters are a network's outputs.

    Args:
        kind: "categorical" (whole numbers, each of its own range, independently), "bernoulli" (bits, independently) or
            "gaussian" (a normal distribution in each dimension of a box, cut off at its bounds).
        sizes: how many values each number has; or how many bits; or the shape of the box.
        starts: the least value of each whole number; empty for others.
        dtype: of actions that are arrays; empty where an action is one whole number.
        log_std: of a Gaussian, shape (width,).
        low: the bounds of a box.
        high: the bounds of a box.
    """

    def __init__(
        self,
        kind: str,
        sizes: tuple[int, ...],
        starts: tuple[int, ...] = (),
        dtype: str = "",
        *,
        log_std: NDArray[Any] | None = None,
        low: NDArray[Any] | None = None,
        high: NDArray[Any] | None = None,
    ) -> None:
        if kind not in ("categorical", "bernoulli", "gaussian"):
            raise ValueError(f"unknown kind of head {kind!r}; a newer version of the library may know it")
        if any(size < 1 for size in sizes) or (kind != "gaussian" and not sizes):
            raise ValueError(f"the sizes of the actions are {sizes}, expected positive numbers")
        if len(starts) != (len(sizes) if kind == "categorical" else 0) or not (dtype or len(starts) == 1):
            raise ValueError(f"the actions start at {starts} and are of type {dtype!r}: not for {kind} {sizes}")
        self.kind, self.sizes, self.starts, self.dtype = kind, sizes, starts, dtype
        self.width = sum(sizes) if kind == "categorical" else math.prod(sizes)
        if dtype and np.dtype(dtype).kind not in "fiu":
            raise ValueError(f"the actions are of type {dtype!r}, expected numbers")
        self.arrays: dict[str, NDArray[Any]] = {}
        """Standard deviations and bounds of a Gaussian."""
        if kind == "gaussian":
            self._check_box(np.asarray(log_std, np.float32), np.asarray(low, np.float64), np.asarray(high, np.float64))

    def _check_box(self, log_std: Singles, low: Floats, high: Floats) -> None:
        if log_std.shape != (self.width,) or low.shape != self.sizes or high.shape != self.sizes:
            raise ValueError(
                f"the standard deviations have shape {log_std.shape} and the bounds {low.shape} and {high.shape}, "
                f"expected them for a box of shape {self.sizes}"
            )
        with np.errstate(over="ignore"):
            self._std = np.exp(log_std.astype(np.float64))
        if not (np.isfinite([low, high]).all() and (low <= high).all() and np.isfinite(self._std).all()):
            raise ValueError("the bounds or the standard deviations of the actions are not finite, or low > high")
        self.arrays = {"head.log_std": log_std, "head.low": low, "head.high": high}

    @staticmethod
    def of(space: spaces.Space[Any], log_std: NDArray[Any] | None = None) -> Head:
        """The head for an action space."""
        if isinstance(space, spaces.Discrete):
            return Head("categorical", (int(space.n),), (int(space.start),))
        if isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1:
            return Head("categorical", tuple(map(int, space.nvec)), tuple(map(int, space.start)), str(space.dtype))
        if isinstance(space, spaces.MultiBinary) and len(space.shape) == 1:
            return Head("bernoulli", tuple(space.shape), dtype=str(space.dtype))
        if isinstance(space, spaces.Box) and space.is_bounded("both"):
            deviations = np.zeros(math.prod(space.shape)) if log_std is None else log_std
            return Head(
                "gaussian", space.shape, dtype=str(space.dtype), log_std=deviations, low=space.low, high=space.high
            )
        raise ActionError(
            f"there is no network that acts in {space}; put a wrapper around the environment whose actions are a "
            "number, a row of numbers or bits, or a box with bounds (gymnasium.wrappers.RescaleAction)"
        )

    def actions(self, outputs: Singles, generator: np.random.Generator | None) -> list[Any]:
        """An action of the environment for each row of outputs: drawn, or the likeliest where there is no generator."""
        # A sum is finite if all of its numbers are, unless they are huge; it takes less time than to look at each.
        if not (math.isfinite(np.add.reduce(outputs, axis=None)) or np.isfinite(outputs).all()):
            raise ObservationError(
                "the network put out numbers that are not finite: the observation has NaN or infinity in it, or "
                "learning diverged; repair the environment, or learn with a smaller learning_rate"
            )
        if self.kind == "categorical":
            if not self.dtype:
                if generator is not None and len(outputs) == 1:
                    return [_pick_one(outputs[0].tolist(), generator.random()) + self.starts[0]]
                return (_pick(outputs, generator) + self.starts[0]).tolist()  # type: ignore[no-any-return]
            pieces = np.split(outputs, np.cumsum(self.sizes)[:-1], axis=1)
            return list((np.stack([_pick(piece, generator) for piece in pieces], 1) + self.starts).astype(self.dtype))
        if self.kind == "bernoulli":
            with np.errstate(over="ignore"):
                chance = 1.0 / (1.0 + np.exp(-outputs.astype(np.float64)))
            return list((chance > (0.5 if generator is None else generator.random(outputs.shape))).astype(self.dtype))
        values: Any = outputs if generator is None else outputs + self._std * generator.standard_normal(outputs.shape)
        bounds = self.arrays["head.low"], self.arrays["head.high"]
        return list(np.clip(values.reshape(-1, *self.sizes), *bounds).astype(self.dtype))


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

    Args:
        inputs: how observations become numbers.
        layers: in order; the last one's outputs are the head's parameters.
        head: the distribution of actions.
        normalisation: how the numbers are shifted and scaled; as they are if None.
    """

    def __init__(
        self, inputs: Inputs, layers: Sequence[Layer], head: Head, normalisation: Normalisation | None = None
    ) -> None:
        widths = [inputs.width, *(layer.weight.shape[1] for layer in layers)]
        for place, layer in enumerate(layers):
            if layer.weight.shape[0] != widths[place]:
                raise ValueError(f"layer {place} takes {layer.weight.shape[0]} numbers, but is given {widths[place]}")
        if not layers or widths[-1] != head.width:
            raise ValueError(f"the network puts out {widths[-1]} numbers, but its head needs {head.width}")
        if normalisation is not None and normalisation.mean.shape != (inputs.width,):
            raise ValueError(
                f"the normalisation is for {len(normalisation.mean)} numbers, but an observation is {inputs.width}"
            )
        self.inputs, self.layers, self.head, self.normalisation = inputs, tuple(layers), head, normalisation

    def outputs(self, observations: Sequence[Any]) -> Singles:
        """What the network puts out: the parameters of its head, shape (N, head.width)."""
        rows = self.inputs.rows(observations)
        values = (rows if self.normalisation is None else self.normalisation.apply(rows)).astype(np.float32)
        return forward_pass(self.layers, values)

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """An action of the environment for each observation, drawn."""
        return self.head.actions(self.outputs(observations), generator)

    def act_likeliest(self, observations: Sequence[Any]) -> list[Any]:
        """The likeliest action for each observation; `train` evaluates so unless it is told ``--stochastic``."""
        return self.head.actions(self.outputs(observations), None)

    def probabilities(self, observations: Sequence[Any]) -> Floats:
        """The probability of each action, shape (N, actions), where an action is one whole number."""
        if self.head.kind != "categorical" or len(self.head.sizes) != 1:
            raise ValueError(f"only a policy of one whole number has a row of probabilities, not {self}")
        outputs = self.outputs(observations).astype(np.float64)
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        probabilities: Floats = weights / weights.sum(axis=1, keepdims=True)
        return probabilities

    def encode(self) -> bytes:
        """A safetensors file: weights as tensors, everything else as JSON in its metadata."""
        inputs, head, scale = self.inputs, self.head, self.normalisation
        described = {
            "format": FORMAT.name,
            "version": FORMAT.version,
            "inputs": {name: getattr(inputs, name) for name in ("kind", "sizes", "starts", "divisor")},
            "normalisation": None if scale is None else {"clip": scale.clip, "epsilon": scale.epsilon},
            "layers": [layer.activation for layer in self.layers],
            "head": {name: getattr(head, name) for name in ("kind", "sizes", "starts", "dtype")},
        }
        tensors = dict(head.arrays)
        for place, layer in enumerate(self.layers):
            tensors[f"layers.{place}.weight"], tensors[f"layers.{place}.bias"] = layer.weight, layer.bias
        if scale is not None:
            tensors["mean"], tensors["variance"] = scale.mean, scale.variance
        metadata = {METADATA: json.dumps(described, sort_keys=True, allow_nan=False)}
        content: bytes = _safetensors().numpy.save(tensors, metadata)
        return content

    @staticmethod
    def decode(content: bytes) -> NetworkPolicy:
        """The policy in what `encode` wrote; raises a `ValueError` on anything else, and never unpickles."""
        try:
            described = check_header(_metadata(content), FORMAT, {"inputs", "normalisation", "layers", "head"})
            try:
                tensors = _safetensors().numpy.load(content)
            except _safetensors().SafetensorError as error:
                raise ValueError(f"it is no complete safetensors file ({error})") from error
            return _assemble(described, tensors)
        except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"it is no network policy ({type(error).__name__}: {error})") from error

    def __repr__(self) -> str:
        hidden = [layer.weight.shape[1] for layer in self.layers[:-1]]
        return f"NetworkPolicy({self.inputs.width} inputs, hidden {hidden}, {self.head.kind} of {self.head.width})"


def _safetensors() -> Any:
    """The package that writes and reads tensors, which only networks need."""
    try:
        import safetensors.numpy
    except ModuleNotFoundError as error:
        raise ValueError(
            "a network policy is stored by the package 'safetensors', which is not installed; install it by "
            "pip install 'curious-explorer[sb3]'"
        ) from error
    return safetensors


def _metadata(content: bytes) -> Any:
    """Our JSON in the header of a safetensors file: eight bytes of length, then JSON, then the tensors."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise ValueError("it is no complete safetensors file: its header is cut off")
    header = parse_strictly(content[8 : 8 + length])
    text = header.get("__metadata__", {}).get(METADATA) if isinstance(header, dict) else None
    if not isinstance(text, str):
        raise ValueError("it is a safetensors file, but holds no policy of this library")
    return parse_strictly(text.encode())


def _assemble(described: Mapping[str, Any], tensors: dict[str, NDArray[Any]]) -> NetworkPolicy:
    """The policy that plain data and tensors stand for, checked."""

    def tensor(name: str, dtype: Any = np.float32) -> NDArray[Any]:
        if name not in tensors:
            raise ValueError(f"it has no tensor {name!r}")
        found = tensors.pop(name)
        if found.dtype != dtype or not np.isfinite(found).all():
            raise ValueError(f"its tensor {name!r} is of {found.dtype}, expected finite numbers of {np.dtype(dtype)}")
        return found

    seen, head, scale = described["inputs"], described["head"], described["normalisation"]
    inputs = Inputs(seen["kind"], _whole(seen["sizes"]), _whole(seen["starts"]), float(seen["divisor"]))
    if not isinstance(described["layers"], list):
        raise ValueError(f"its layers are {described['layers']!r}, expected a list of activations")
    layers = [
        Layer(tensor(f"layers.{place}.weight"), tensor(f"layers.{place}.bias"), str(activation))
        for place, activation in enumerate(described["layers"])
    ]
    normalisation = None
    if scale is not None:
        numbers = tensor("mean", np.float64), tensor("variance", np.float64)
        normalisation = Normalisation(*numbers, float(scale["clip"]), float(scale["epsilon"]))
    box = {}
    if head["kind"] == "gaussian":
        box = {name: tensor(f"head.{name}", np.float64) for name in ("low", "high")} | {
            "log_std": tensor("head.log_std")
        }
    built = Head(head["kind"], _whole(head["sizes"]), _whole(head["starts"]), str(head["dtype"]), **box)
    if tensors:
        raise ValueError(f"it has tensors that belong nowhere: {sorted(tensors)[:10]}")
    return NetworkPolicy(inputs, layers, built, normalisation)


def _whole(given: Any) -> tuple[int, ...]:
    """Whole numbers from JSON."""
    if not isinstance(given, list) or not all(type(number) is int for number in given):
        raise ValueError(f"it says {given!r}, expected whole numbers")
    return tuple(given)
