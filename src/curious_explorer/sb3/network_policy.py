"""`NetworkPolicy`: a neural policy that acts on observations, with NumPy alone.

Whatever library learned it, what is kept are the weights of a multilayer perceptron and plain data about its inputs and
outputs. So a reset model with such policies works wherever NumPy does, at a few microseconds a layer for one
observation, where a deep learning library would need a hundred.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Singles
from curious_explorer.sb3.network_heads import Bernoulli, Categorical, Gaussian, Head, MultiCategorical
from curious_explorer.sb3.network_inputs import Inputs, Normalisation
from curious_explorer.storage import Format, check_header, parse_strictly
from curious_explorer.worlds.policies import ObservationPolicy

FORMAT = Format("curious-explorer/network-policy", 1)
METADATA = "curious_explorer"
_KEYS = {"inputs", "normalisation", "layers", "head"}
_TYPES = {"head.low": np.float64, "head.high": np.float64, "mean": np.float64, "variance": np.float64}
"""Of tensors that are not single precision."""


def _elu(values: Singles) -> Singles:
    return np.where(values > 0.0, values, np.expm1(np.minimum(values, np.float32(0.0))))


def _sigmoid(values: Singles) -> Singles:
    with np.errstate(over="ignore"):
        return np.reciprocal(np.exp(-values) + np.float32(1.0))


ACTIVATIONS: dict[str, Any] = {
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0.0),
    "leaky_relu": lambda values: np.where(values > 0.0, values, np.float32(0.01) * values),
    "elu": _elu,
    "sigmoid": _sigmoid,
    "none": lambda values: values,
}


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a network: ``activation(inputs @ weight + bias)``.

    Args:
        weight: shape (inputs, outputs).
        bias: shape (outputs,).
        activation: the name of a function in `ACTIVATIONS`.
    """

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
                raise ValueError(
                    f"layer {place} takes {layer.weight.shape[0]} numbers, but is given {widths[place]} by what comes "
                    "before it"
                )
        if not layers or widths[-1] != head.width:
            raise ValueError(f"the network puts out {widths[-1]} numbers, but its head needs {head.width}")
        if normalisation is not None and normalisation.mean.shape != (inputs.width,):
            raise ValueError(
                f"the normalisation is for {len(normalisation.mean)} numbers, but an observation is {inputs.width}"
            )
        self.inputs, self.layers, self.head, self.normalisation = inputs, tuple(layers), head, normalisation
        self._steps = [(layer.weight, layer.bias, ACTIVATIONS[layer.activation]) for layer in layers]

    def features(self, observations: Sequence[Any]) -> Singles:
        """What the network sees of each observation, shape (N, width)."""
        return self.normalised(self.inputs.rows(observations))

    def normalised(self, rows: NDArray[np.float64]) -> Singles:
        """What the network sees of rows that `Inputs` made."""
        scaled = rows if self.normalisation is None else self.normalisation.apply(rows)
        return scaled.astype(np.float32)

    def outputs(self, features: Singles) -> Singles:
        """What the network puts out: the parameters of its head, shape (N, head.width)."""
        values = features
        for weight, bias, activation in self._steps:
            values = activation(values @ weight + bias)
        return values

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """An action of the environment for each observation, drawn."""
        return self.head.to_actions(self.head.draw(self.outputs(self.features(observations)), generator))

    def act_likeliest(self, observations: Sequence[Any]) -> list[Any]:
        """The likeliest action for each observation; `train` evaluates so unless it is told ``--stochastic``."""
        return self.head.to_actions(self.head.likeliest(self.outputs(self.features(observations))))

    def encode(self) -> bytes:
        """A safetensors file: weights as tensors, everything else as JSON in its metadata."""
        normalisation = self.normalisation
        described = {
            "format": FORMAT.name,
            "version": FORMAT.version,
            "inputs": {
                "kind": self.inputs.kind,
                "sizes": list(self.inputs.sizes),
                "starts": list(self.inputs.starts),
                "divisor": self.inputs.divisor,
            },
            "normalisation": None
            if normalisation is None
            else {"clip": normalisation.clip, "epsilon": normalisation.epsilon},
            "layers": [layer.activation for layer in self.layers],
            "head": self.head.description(),
        }
        tensors: dict[str, NDArray[Any]] = dict(self.head.arrays())
        for place, layer in enumerate(self.layers):
            tensors[f"layers.{place}.weight"], tensors[f"layers.{place}.bias"] = layer.weight, layer.bias
        if normalisation is not None:
            tensors["mean"], tensors["variance"] = normalisation.mean, normalisation.variance
        metadata = {METADATA: json.dumps(described, sort_keys=True, allow_nan=False)}
        content: bytes = _safetensors().numpy.save(tensors, metadata)
        return content

    @staticmethod
    def decode(content: bytes) -> NetworkPolicy:
        """The policy in what `encode` wrote; raises a `ValueError` on anything else, and never unpickles."""
        try:
            described = check_header(_metadata(content), FORMAT, _KEYS)
            tensors = _tensors(content)
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


def _tensors(content: bytes) -> dict[str, NDArray[Any]]:
    safetensors = _safetensors()
    try:
        tensors: dict[str, NDArray[Any]] = safetensors.numpy.load(content)
        return tensors
    except safetensors.SafetensorError as error:
        raise ValueError(f"it is no complete safetensors file ({error})") from error


def _assemble(described: Mapping[str, Any], tensors: dict[str, NDArray[Any]]) -> NetworkPolicy:
    """The policy that plain data and tensors stand for, checked."""

    def tensor(name: str) -> NDArray[Any]:
        if name not in tensors:
            raise ValueError(f"it has no tensor {name!r}")
        found, expected = tensors.pop(name), np.dtype(_TYPES.get(name, np.float32))
        if found.dtype != expected or not np.isfinite(found).all():
            raise ValueError(f"its tensor {name!r} is of {found.dtype}, expected finite numbers of {expected}")
        return found

    given = described["inputs"]
    inputs = Inputs(given["kind"], _whole(given["sizes"]), _whole(given["starts"]), float(given["divisor"]))
    if not isinstance(described["layers"], list):
        raise ValueError(f"its layers are {described['layers']!r}, expected a list of activations")
    layers = [
        Layer(tensor(f"layers.{place}.weight"), tensor(f"layers.{place}.bias"), str(activation))
        for place, activation in enumerate(described["layers"])
    ]
    normalisation = None
    if (scaling := described["normalisation"]) is not None:
        clip, epsilon = float(scaling["clip"]), float(scaling["epsilon"])
        normalisation = Normalisation(tensor("mean"), tensor("variance"), clip, epsilon)
    head = _head(described["head"], tensor)
    if tensors:
        raise ValueError(f"it has tensors that belong nowhere: {sorted(tensors)[:10]}")
    return NetworkPolicy(inputs, layers, head, normalisation)


def _head(given: Mapping[str, Any], tensor: Any) -> Head:
    kind = given["kind"]
    if kind == Categorical.kind:
        return Categorical(*_whole([given["count"], given["start"]]))
    if kind == MultiCategorical.kind:
        return MultiCategorical(_whole(given["counts"]), _whole(given["starts"]))
    if kind == Bernoulli.kind:
        return Bernoulli(*_whole([given["count"]]))
    if kind == Gaussian.kind:
        head = Gaussian(tensor("head.log_std"), tensor("head.low"), tensor("head.high"), str(given["dtype"]))
        if head.description()["shape"] != given["shape"]:
            raise ValueError(f"its actions have the shape {given['shape']}, but other bounds")
        return head
    raise ValueError(f"unknown kind of head {kind!r}; a newer version of the library may know it")


def _whole(given: Any) -> tuple[int, ...]:
    """Whole numbers from JSON."""
    if not isinstance(given, list) or not all(type(number) is int for number in given):
        raise ValueError(f"it says {given!r}, expected whole numbers")
    return tuple(given)
