"""Cloning a network that remembers, from walks in what was counted.

What is cloned is not one state after the other but whole episodes: first by the best actions with some noise, then ever
more of the network's own, labelled with the best action of each state that they get into (DAgger; see `graph_walks`).
In a view that hides something the best action depends on what is hidden, which the labels know and the network does
not: it learns to do what is best on average over what it may be, given all that it saw. So once a room was seen to be
empty, it leaves.

The loss is the negative logarithm of the probability of all best actions together: which of them is taken does not
matter. No layout is held out to tell when to stop: from 16 layouts of MultiRoom-N4 a network solved 0.60 of unseen ones
when weights were chosen on held-out layouts, and 0.83 when it learned from all of them for as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.explorers.layout_slice import Labelled
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.gym.seen_inputs import SeenInputs, distinct
from curious_explorer.sb3.algorithms import private_randomness
from curious_explorer.sb3.graph_walks import KnownSteps, Walks
from curious_explorer.validation import check_count, check_seed


@dataclass(frozen=True, kw_only=True)
class RecurrentCloning:
    """How a network that remembers is cloned."""

    width: int = 128
    """Of what is seen, and of the layer before the actions."""
    memory: int = 128
    walks: int = 128
    """How many episodes are walked at a time, half of them by the network."""
    kept: int = 16
    """From how many such times episodes are learned."""
    longest: int = 160
    """Steps of an episode."""
    noise: float = 0.2
    """How often an action is drawn evenly, so that there are labels off the way."""
    batch: int = 48
    """Episodes of an update."""
    every: int = 15
    """Updates between two times of walking."""
    updates: int = 400
    updates_a_layout: int = 2
    """More of them, for each layout."""
    learning_rate: float = 1e-3
    """At first; it falls to zero."""
    weight_decay: float = 1e-2
    dropout: float = 0.2
    sharpness: float = 1.5
    """Of what is handed out, see `RecurrentPolicy`. Actions that are all wrong now and then cost more than one that is
    never drawn: the logarithms of the probabilities are multiplied by so much."""
    device: str = "cpu"
    """Where PyTorch learns; what is learned acts by NumPy."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "memory", "walks", "kept", "longest", "batch", "every", "updates"):
            check_count(getattr(self, name), name, least=1)
        check_count(self.updates_a_layout, "updates_a_layout")
        check_seed(self.seed)

    def clone(
        self,
        labels: Sequence[Labelled],
        space: spaces.Space[Any],
        choices: Sequence[Any],
        *,
        begin: RecurrentPolicy | None = None,
    ) -> RecurrentPolicy:
        """A policy that imitates the labels.

        Args:
            labels: of layouts, each apart, with the steps between their states.
            space: of the observations.
            choices: the actions of the environment, by number.
            begin: a policy to go on from; None: from nothing.
        """
        filled = [each for each in labels if len(each.starts) and len(each.steps)]
        if not filled:
            raise ValueError(
                "there are no labels to clone: no layout has a start from which a way to a reward is known"
            )
        inputs = SeenInputs.of(space, distinct(observation for each in filled for observation in each.observations)[0])
        if begin is not None and inputs.symbols is None:
            inputs = begin.inputs  # scaled as what it has learned from
        with private_randomness(self.seed, threads=1):
            network = _Network(inputs, len(choices), self)
            if begin is not None:
                network.begin_with(begin)
            known = KnownSteps(filled, inputs, network.device)
            self._learn(network, known, self.updates + self.updates_a_layout * len(filled), begin is not None)
            return RecurrentPolicy(inputs, network.weights(), choices, sharpness=self.sharpness)

    def _learn(self, network: _Network, known: KnownSteps, updates: int, able: bool) -> None:
        """Walk and learn in turns; one that is not yet able walks by the best actions alone at first."""
        import torch

        optimiser = torch.optim.AdamW(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 1.0 / updates, updates)
        episodes: list[Walks] = []
        for update in range(updates):
            if update % self.every == 0:
                network.train(False)
                half = self.walks // 2
                own = network.walking(known) if able or update else None
                episodes.append(known.walk(self.walks - half, self.longest, self.noise, None))
                episodes.append(known.walk(half, self.longest, self.noise if own is None else self.noise / 2, own))
                episodes = episodes[-2 * self.kept :]
                network.train(True)
            loss = network.loss(known, _batch(episodes, self.batch))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()


def _batch(episodes: Sequence[Walks], count: int) -> Walks:
    """Some episodes of all, cut off where the last of them ends."""
    import torch

    which = np.random.randint(len(episodes), size=count)  # noqa: NPY002 (seeded by private_randomness)
    longest = max(len(episodes[place].states) for place in which)
    columns: list[list[Any]] = [[], [], []]
    for place in which:
        walks = episodes[place]
        episode = np.random.randint(walks.states.shape[1])  # noqa: NPY002
        for into, part in zip(columns, walks, strict=True):
            into.append(torch.nn.functional.pad(part[:, episode], (0, longest - len(part))))
    states, actions, alive = (torch.stack(column, dim=1) for column in columns)
    steps = int(alive.any(dim=1).sum())
    return Walks(states[:steps], actions[:steps], alive[:steps])


class _Network:
    """The network of `RecurrentPolicy`, in PyTorch."""

    def __init__(self, inputs: SeenInputs, actions: int, settings: RecurrentCloning) -> None:
        import torch

        nn, width, memory = torch.nn, settings.width, settings.memory
        self.device, self._inputs, self._settings = torch.device(settings.device), inputs, settings
        self._symbolic = inputs.symbols is not None
        see: Any
        if inputs.symbols is not None:
            see = nn.EmbeddingBag(inputs.width, width, mode="sum")
            nn.init.normal_(see.weight, std=1.0 / np.sqrt(inputs.symbols.entries))
        else:
            see = nn.Linear(inputs.width, width, bias=False)
        modules = {
            "see": see,
            "did": nn.Embedding(actions + 1, width),
            "gru": nn.GRU(width, memory),
            "mix": nn.Linear(width + memory, width),
            "choose": nn.Linear(width, actions),
        }
        nn.init.normal_(modules["did"].weight, std=0.3)
        self._bias = nn.Parameter(torch.zeros(width, device=self.device))
        self._modules: Any = nn.ModuleDict(modules).to(self.device)

    def parameters(self) -> list[Any]:
        return [*self._modules.parameters(), self._bias]

    def train(self, learning: bool) -> None:
        self._modules.train(learning)

    def _seen(self, known: KnownSteps, view: Any, action: Any) -> Any:
        """What enters the memory, by views and the actions that led to them; each view is looked at once."""
        import torch

        different, back = torch.unique(view, return_inverse=True)
        seen = self._modules["see"](known.views[different])[back]
        return torch.relu(seen + self._modules["did"](action) + self._bias)

    def _values(self, seen: Any, recalled: Any) -> Any:
        import torch

        both = torch.cat([seen, recalled], dim=-1)
        drop, learning = self._settings.dropout, self._modules.training
        both = torch.nn.functional.dropout(both, drop, learning)
        mixed = torch.relu(self._modules["mix"](both))
        return self._modules["choose"](torch.nn.functional.dropout(mixed, drop, learning))

    def loss(self, known: KnownSteps, walks: Walks) -> Any:
        """The negative logarithm of the probability of all best actions together."""
        import torch

        seen = self._seen(known, known.view[walks.states], walks.actions)
        recalled, _ = self._modules["gru"](seen)
        logs = torch.log_softmax(self._values(seen, recalled), dim=-1)
        best = known.wanted[walks.states] > 0.0
        logs = torch.logsumexp(logs.masked_fill(~best, -1e9), dim=-1)
        return -(logs * walks.alive).sum() / walks.alive.sum()

    def walking(self, known: KnownSteps) -> Any:
        """Who acts in walks, by what it remembers of them."""
        import torch

        memory: list[Any] = [None]

        def likely(view: Any, action: Any) -> Any:
            with torch.no_grad():
                seen = self._seen(known, view, action)[None]
                recalled, memory[0] = self._modules["gru"](seen, memory[0])
                return torch.softmax(self._values(seen, recalled)[0], dim=-1)

        return likely

    def weights(self) -> dict[str, Any]:
        """As `RecurrentPolicy` has them."""
        see, gru = self._modules["see"], self._modules["gru"]
        tensors = {
            "see": see.weight if self._symbolic else see.weight.T,
            "did": self._modules["did"].weight,
            "see_bias": self._bias,
            "enter": gru.weight_ih_l0.T,
            "enter_bias": gru.bias_ih_l0,
            "recall": gru.weight_hh_l0.T,
            "recall_bias": gru.bias_hh_l0,
        }
        for name in ("mix", "choose"):
            tensors |= {name: self._modules[name].weight.T, f"{name}_bias": self._modules[name].bias}
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}

    def begin_with(self, policy: RecurrentPolicy) -> None:
        """Take over a policy's weights; of symbols that it did not know the network knows nothing either."""
        import torch

        gru = self._modules["gru"]
        into = {
            "did": self._modules["did"].weight,
            "see_bias": self._bias,
            "enter": gru.weight_ih_l0,
            "enter_bias": gru.bias_ih_l0,
            "recall": gru.weight_hh_l0,
            "recall_bias": gru.bias_hh_l0,
        }
        for name in ("mix", "choose"):
            into |= {name: self._modules[name].weight, f"{name}_bias": self._modules[name].bias}
        turned = {"enter", "recall", "mix", "choose"}
        with torch.no_grad():
            for name, weight in into.items():
                value = policy.weights[name]
                weight.copy_(torch.as_tensor(value.T.copy() if name in turned else value))
            table = policy.weights["see"]
            now, before = self._inputs.symbols, policy.inputs.symbols
            if now is not None and before is not None:
                known = now.known_as(before)
                rows = np.where(known[:, None] < 0, 0.0, table[known])
                self._modules["see"].weight.copy_(torch.as_tensor(rows))
            else:
                self._modules["see"].weight.copy_(torch.as_tensor(table.T.copy()))


class RecurrentTeacher:
    """A teacher for `ManyLayouts`: clones all labels so far, beginning with what it has cloned before.

    Args:
        space: of the observations.
        choices: the actions of the environment, by number.
        lesson: how it clones every time.
        begin: what it knows already.
    """

    def __init__(
        self,
        space: spaces.Space[Any],
        choices: Sequence[Any],
        lesson: RecurrentCloning,
        begin: RecurrentPolicy | None = None,
    ) -> None:
        self._space, self._choices, self._lesson = space, list(choices), lesson
        self.policy = begin
        """What it has cloned last."""

    def __call__(self, labels: list[Labelled]) -> RecurrentPolicy:
        """What is likeliest to be best, by what was seen and done in the episode."""
        self.policy = self._lesson.clone(labels, self._space, self._choices, begin=self.policy)
        return self.policy
