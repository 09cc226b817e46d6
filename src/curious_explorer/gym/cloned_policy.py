"""A policy on observations that was cloned from labels: a network on symbols, or on numbers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.errors import ObservationError
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.gym.symbols import Symbols
from curious_explorer.storage import Format, read_json, read_plain, reading, write_atomically, write_json
from curious_explorer.worlds.policies import ObservationPolicy

CLONED = Format("curious-explorer/cloned-policy", 1)
_FILE, _NETWORK = "cloned.json", "policy.safetensors"


class ClonedPolicy(ObservationPolicy):
    """Acts by a network, on the environment's own observations and with its own actions.

    Args:
        network: its actions are the numbers of ``choices``; it sees one-hot vectors where there are symbols, and the
            environment's own observations otherwise.
        symbols: how observations become one-hot vectors; None: they are numbers.
        choices: actions of the environment, by number.
    """

    def __init__(self, network: NetworkPolicy, symbols: Symbols | None, choices: Sequence[Any]) -> None:
        self.network, self.symbols, self.choices = network, symbols, list(choices)

    def _seen(self, observations: Sequence[Any]) -> Sequence[Any]:
        return observations if self.symbols is None else list(self.symbols.rows(observations))

    def probabilities(self, observations: Sequence[Any]) -> Floats:
        """The probability of each action, shape (N, A), by number."""
        return self.network.probabilities(self._seen(observations))

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """An action of the environment for each observation, drawn."""
        return [self.choices[number] for number in self.network.act(self._seen(observations), generator)]

    def encode(self) -> bytes:
        """Refused: a policy on symbols is a folder."""
        raise NotImplementedError("a cloned policy is stored in a folder: policy.save(folder)")

    def save(self, folder: str | Path) -> Path:
        """Write the policy into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / _NETWORK, self.network.encode())
        symbols = None if self.symbols is None else self.symbols.description()
        choices = [np.asarray(choice).tolist() for choice in self.choices]
        write_json(path / _FILE, CLONED, {"symbols": symbols, "choices": choices})
        return path

    @staticmethod
    def load(folder: str | Path, space: spaces.Space[Any]) -> ClonedPolicy:
        """Read a policy for an environment with this observation space."""
        path = Path(folder)
        with reading(path, ObservationError, "a cloned policy"):
            header = read_json(path / _FILE, CLONED, {"symbols", "choices"})
            network = NetworkPolicy.decode(read_plain(path / _NETWORK))
            described = header["symbols"]
            symbols = None if described is None else Symbols.from_description(described, space)
            return ClonedPolicy(network, symbols, header["choices"])
