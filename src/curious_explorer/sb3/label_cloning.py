"""Cloning: a network that does what was found best, learned from labelled observations of many layouts.

The loss is the cross-entropy to the labels, in which all best actions are alike. What counts is how the network does in
layouts that it never saw, so some layouts are held out; learning ends when the loss on them has not fallen for a while,
and the weights of its least are what is handed out. Where observations are symbols the first layer is a sum of rows of
a table, which is the same as a linear layer on one-hot vectors at a tenth of the time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.arrays import Floats
from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.gym.network_inputs import NetworkInputs
from curious_explorer.gym.network_policy import Layer, NetworkPolicy, Normalisation
from curious_explorer.gym.symbols import Symbols
from curious_explorer.sb3.algorithms import private_randomness
from curious_explorer.validation import check_count, check_seed


@dataclass(frozen=True, kw_only=True)
class Cloning:
    """How labels are cloned; from which layouts does not matter."""

    hidden: tuple[int, ...] = (256, 256)
    batch: int = 512
    most_updates: int = 4_000
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    dropout: float = 0.2
    held_out: int = 6
    """One layout in so many is held out."""
    look_every: int = 50
    """Updates between two looks at what is held out."""
    patience: int = 6
    """After so many looks without a smaller loss learning ends."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "most_updates", "look_every", "patience"):
            check_count(getattr(self, name), name, least=1)
        check_count(self.held_out, "held_out", least=2)
        check_seed(self.seed)

    def clone(self, labels: Sequence[Labelled], space: spaces.Space[Any], choices: Sequence[Any]) -> ClonedPolicy:
        """A policy that imitates the labels.

        Args:
            labels: of layouts, each apart.
            space: of the observations.
            choices: the actions of the environment, by number.
        """
        filled = [each for each in labels if len(each.observations)]
        if not filled:
            raise ValueError(
                "there are no labels to clone: no layout has a state from which a way to a reward is known"
            )
        seen = [observation for each in filled for observation in each.observations]
        symbols = Symbols.of(space, seen)
        dense: Floats | None = None
        if symbols is None:
            dense = NetworkInputs(space).rows(seen)
            scale = Normalisation(dense.mean(axis=0), dense.var(axis=0), epsilon=1e-4)
            inputs: Any = scale.apply(dense).astype(np.float32)
        else:
            inputs = symbols.columns(seen)
        wanted = np.concatenate([each.probabilities for each in filled]).astype(np.float32)
        layout = np.repeat(np.arange(len(filled)), [len(each.observations) for each in filled])
        test = (layout % self.held_out == self.held_out - 1) if len(filled) >= self.held_out else layout < 0
        width = dense.shape[1] if dense is not None else symbols.width if symbols is not None else 0
        layers = self._learn(inputs, wanted, test, width, symbolic=symbols is not None)
        network = NetworkPolicy(
            space if symbols is None else symbols.space,
            spaces.Discrete(len(choices)),
            layers,
            normalisation=scale if symbols is None else None,
        )
        return ClonedPolicy(network, symbols, choices)

    def _learn(self, inputs: Any, wanted: Any, test: Any, width: int, *, symbolic: bool) -> list[Layer]:
        """The layers, at their least loss on what is held out."""
        with private_randomness(self.seed, threads=1):
            import torch

            table: Any = torch.nn.EmbeddingBag(width, self.hidden[0], mode="sum") if symbolic else None
            if symbolic:
                torch.nn.init.normal_(table.weight, std=1.0 / np.sqrt(inputs.shape[1]))
                bias = torch.nn.Parameter(torch.zeros(self.hidden[0]))
            else:
                table = torch.nn.Linear(width, self.hidden[0])
                bias = table.bias
            sizes = [*self.hidden, wanted.shape[1]]
            rest = [torch.nn.Linear(one, other) for one, other in itertools.pairwise(sizes)]
            weights = [table.weight, bias, *(weight for layer in rest for weight in layer.parameters())]
            optimiser = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=self.weight_decay)
            data, goal = torch.as_tensor(inputs), torch.as_tensor(wanted)
            shown = torch.as_tensor(np.flatnonzero(~test))
            hidden_away = torch.as_tensor(np.flatnonzero(test))
            judged = hidden_away if len(hidden_away) else shown
            drop = torch.nn.functional.dropout

            def loss_on(rows: Any, *, learning: bool) -> Any:
                values = table(data[rows]) + (bias if symbolic else 0.0)
                for layer in rest:
                    values = layer(drop(torch.relu(values), self.dropout, learning))
                return -(goal[rows] * torch.log_softmax(values, dim=1)).sum(dim=1).mean()

            best, kept, since = np.inf, [weight.detach().clone() for weight in weights], 0
            for update in range(1, self.most_updates + 1):
                loss = loss_on(shown[torch.randint(len(shown), (self.batch,))], learning=True)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                if update % self.look_every and update < self.most_updates:
                    continue
                with torch.no_grad():
                    pieces = [judged[first : first + 8_192] for first in range(0, len(judged), 8_192)]
                    measured = sum(float(loss_on(rows, learning=False)) * len(rows) for rows in pieces)
                since += 1
                if measured < best:
                    best, kept, since = measured, [weight.detach().clone() for weight in weights], 0
                if since == self.patience:
                    break
            arrays = [weight.numpy() for weight in kept]
        layers = [Layer(arrays[0] if symbolic else arrays[0].T, arrays[1], "relu")]
        for place in range(2, len(arrays), 2):
            last = place == len(arrays) - 2
            layers.append(Layer(arrays[place].T, arrays[place + 1], "none" if last else "relu"))
        return layers


@dataclass(frozen=True)
class CloningTeacher:
    """A teacher for `ManyLayouts`: clones all labels so far."""

    space: spaces.Space[Any]
    choices: tuple[Any, ...]
    cloning: Cloning = Cloning(most_updates=600)

    def __call__(self, labels: list[Labelled]) -> ClonedPolicy:
        """What is likeliest to be best, by what the agent sees."""
        return self.cloning.clone(labels, self.space, self.choices)
