"""`RecurrentPolicy`: a network that remembers an episode, run by NumPy alone.

    x_t = relu(E o_t + U a_(t-1) + b)            what is seen, and what was done to come here
    h_t = GRU(x_t, h_(t-1))                      what is remembered
    p_t = softmax(k (W relu(V [x_t, h_t] + c) + d))  how likely each action is the right one

Where a view is partial, the right action depends on what was seen before: which doors were tried, what lies behind. The
gated recurrent unit (Cho et al. 2014) is that of PyTorch, whose names of gates are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats, Singles
from curious_explorer.errors import ObservationError
from curious_explorer.gym.seen_inputs import SeenInputs
from curious_explorer.storage import Format, decode, encode, read_plain, reading, write_atomically
from curious_explorer.worlds.policies import ObservationPolicy

REMEMBERED = Format("curious-explorer/recurrent-policy", 1)
_FILE = "policy.npz"
WEIGHTS = {
    "see": ("seen", "wide"),
    "did": ("actions and none", "wide"),
    "see_bias": ("wide",),
    "enter": ("wide", "gates"),
    "enter_bias": ("gates",),
    "recall": ("memory", "gates"),
    "recall_bias": ("gates",),
    "mix": ("wide and memory", "mixed"),
    "mix_bias": ("mixed",),
    "choose": ("mixed", "actions"),
    "choose_bias": ("actions",),
}
"""The weights by name, with their shapes in words; ``gates`` are reset, update and new, each as wide as the memory."""


class RecurrentPolicy(ObservationPolicy):
    """Acts by what it saw and did since `begin`.

    Args:
        inputs: how observations become what the network sees.
        weights: by the names of `WEIGHTS`.
        choices: actions of the environment, by number.
        sharpness: k; above one likely actions are drawn more often than the weights say.
    """

    def __init__(
        self, inputs: SeenInputs, weights: Mapping[str, Singles], choices: Sequence[Any], *, sharpness: float = 1.0
    ) -> None:
        self.inputs, self.choices, self.sharpness = inputs, list(choices), float(sharpness)
        self.weights = {name: np.ascontiguousarray(weights[name], dtype=np.float32) for name in WEIGHTS}
        self.memory_size = len(self.weights["recall"])
        self._check()
        self.begin()

    def _check(self) -> None:
        size, wide = self.memory_size, self.weights["see"].shape[1]
        mixed, actions = self.weights["choose"].shape
        sizes = {"seen": self.inputs.width, "wide": wide, "memory": size, "gates": 3 * size, "mixed": mixed}
        sizes |= {"actions": actions, "actions and none": actions + 1, "wide and memory": wide + size}
        for name, words in WEIGHTS.items():
            if self.weights[name].shape != tuple(sizes[word] for word in words):
                raise ValueError(
                    f"{name} has the shape {self.weights[name].shape}, expected {tuple(sizes[word] for word in words)}"
                )
            if not np.isfinite(self.weights[name]).all():
                raise ValueError(f"{name} has numbers that are not finite; learning diverged, or the file is damaged")
        if not 0.0 < self.sharpness < math.inf:
            raise ValueError(f"sharpness is {self.sharpness}, expected a positive number")
        if actions != len(self.choices):
            raise ValueError(f"the network has {actions} actions, and {len(self.choices)} are given")

    def look(self, memory: Any, action: int | None, observation: Any) -> tuple[Floats, Any]:
        """How likely each action is the right one, and what to remember; see `RememberingGuess`."""
        held, size = self.weights, self.memory_size
        recalled = np.zeros(size, dtype=np.float32) if memory is None else memory
        seen = self.inputs.through(held["see"], observation)
        seen = np.maximum(seen + held["did"][-1 if action is None else action] + held["see_bias"], 0.0)
        entered = seen @ held["enter"] + held["enter_bias"]
        past = recalled @ held["recall"] + held["recall_bias"]
        gates = 1.0 / (1.0 + np.exp(-(entered[: 2 * size] + past[: 2 * size])))
        new = np.tanh(entered[2 * size :] + gates[:size] * past[2 * size :])
        recalled = new + gates[size:] * (recalled - new)
        mixed = np.maximum(np.concatenate([seen, recalled]) @ held["mix"] + held["mix_bias"], 0.0)
        logits = (mixed @ held["choose"] + held["choose_bias"]).astype(np.float64)
        likely = np.exp(self.sharpness * (logits - logits.max()))
        return likely / likely.sum(), recalled

    def begin(self) -> None:
        """An episode begins."""
        self._memory: Any = None
        self._did: int | None = None

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """The action for the one observation of this step, drawn."""
        (observation,) = observations
        likely, self._memory = self.look(self._memory, self._did, observation)
        self._did = min(int(np.searchsorted(np.cumsum(likely), generator.random(), side="right")), len(likely) - 1)
        return [self.choices[self._did]]

    def encode(self) -> bytes:
        """A file of the policy."""
        choices = [np.asarray(choice).tolist() for choice in self.choices]
        inputs, arrays = self.inputs.description()
        return encode(
            REMEMBERED, {"inputs": inputs, "choices": choices, "sharpness": self.sharpness}, {**self.weights, **arrays}
        )

    def save(self, folder: str | Path) -> Path:
        """Write the policy into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / _FILE, self.encode())
        return path

    @staticmethod
    def load(folder: str | Path, space: spaces.Space[Any]) -> RecurrentPolicy:
        """Read a policy for an environment with this observation space."""
        path = Path(folder)
        with reading(path, ObservationError, "a recurrent policy"):
            header, arrays = decode(read_plain(path / _FILE), REMEMBERED, {"inputs", "choices", "sharpness"}, None)
            missing = sorted(WEIGHTS.keys() - arrays.keys())
            if missing:
                raise ValueError(f"it has no {missing[0]}")
            inputs = SeenInputs.from_description(header["inputs"], arrays, space)
            weights, sharpness = {name: arrays[name] for name in WEIGHTS}, header["sharpness"]
            return RecurrentPolicy(inputs, weights, header["choices"], sharpness=sharpness)
