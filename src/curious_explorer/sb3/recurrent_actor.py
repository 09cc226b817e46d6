"""The network of `RecurrentPolicy` as one of sb3-contrib's, so that RecurrentPPO goes on from what was cloned.

sb3-contrib's unit is an LSTM, that of `RecurrentPolicy` a GRU which is handed out beside what is seen. Here it stands
in the LSTM's place: of the two states that sb3-contrib carries along it uses the first. The critic sees what the actor
does, and a layer of its own behind that; its gradient does not reach what is shared, so that what was cloned is changed
by what pays alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from curious_explorer.arrays import Singles
from curious_explorer.gym.cells import Env
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.gym.seen_inputs import SeenInputs


class SeenAndDone(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows what the network of `RecurrentPolicy` is given, and which action led here, in one row.

    Args:
        env: with numbered actions.
        inputs: what the network is given of an observation.
    """

    def __init__(self, env: Env, inputs: SeenInputs) -> None:
        super().__init__(env)
        self._inputs, self._actions = inputs, int(num_actions(env.action_space))
        self.observation_space = spaces.Box(-np.inf, np.inf, (inputs.width + self._actions + 1,), dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._row(observation, self._actions), info

    def step(self, action: Any) -> Any:
        """Take one action."""
        observation, *rest = self.env.step(action)
        return self._row(observation, int(action)), *rest

    def _row(self, observation: Any, action: int) -> Singles:
        row = np.zeros(self.observation_space.shape or (), dtype=np.float32)
        row[: self._inputs.width] = self._inputs.rows([observation])[0]
        row[self._inputs.width + action] = 1.0
        return row


def num_actions(space: Any) -> int:
    """How many actions a space of numbered ones has."""
    if not isinstance(space, spaces.Discrete):
        raise ValueError(f"actions are {space}, expected numbered ones; explore with actions=... to number them")
    return int(space.n)


class _Seeing(BaseFeaturesExtractor):
    """What enters the memory, by what is seen and what was done."""

    def __init__(self, observation_space: spaces.Space[Any], width: int) -> None:
        super().__init__(observation_space, width)
        self.see = nn.Linear(spaces.flatdim(observation_space), width)

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.see(row))


class _Recalling(nn.GRU):
    """A GRU in the place of an LSTM; what it hands out is what it was given and what it recalls."""

    def forward(self, seen: Any, states: Any = None) -> Any:
        recalled, memory = super().forward(seen, states[0].contiguous())
        return torch.cat([seen, recalled], dim=-1), (memory, states[1])


class RecurrentActor(RecurrentActorCriticPolicy):
    """The network of `RecurrentPolicy`, and a critic.

    Args:
        observation_space: that of `SeenAndDone`.
        action_space: of numbered actions.
        lr_schedule: of the learning rate.
        cloned: whose weights it begins with.
        others: what RecurrentPPO gives to every policy.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Any,
        *,
        cloned: RecurrentPolicy,
        **others: Any,
    ) -> None:
        width, mixed = cloned.weights["see"].shape[1], cloned.weights["choose"].shape[0]
        self._handed_out = width + cloned.memory_size
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            net_arch={"pi": [mixed], "vf": [mixed]},
            activation_fn=nn.ReLU,
            features_extractor_class=_Seeing,
            features_extractor_kwargs={"width": width},
            lstm_hidden_size=cloned.memory_size,
            shared_lstm=True,
            enable_critic_lstm=False,
            **others,
        )
        self.lstm_actor = _Recalling(width, cloned.memory_size)  # type: ignore[assignment]
        self._begin_with(cloned)
        self.to(self.device)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]

    def _build_mlp_extractor(self) -> None:
        self.lstm_output_dim = self._handed_out
        super()._build_mlp_extractor()

    def actor(self) -> list[nn.Parameter]:
        """All that decides what it does."""
        modules = self.features_extractor, self.lstm_actor, self.mlp_extractor.policy_net, self.action_net
        return [weight for module in modules for weight in module.parameters()]

    def _layers(self) -> dict[str, torch.Tensor]:
        """The weights of `RecurrentPolicy` as they stand here, turned; ``see`` and ``did`` are one."""
        see: Any = self.features_extractor.see
        mix: Any = self.mlp_extractor.policy_net[0]
        gru: Any = self.lstm_actor
        choose: Any = self.action_net
        return {
            "see_bias": see.bias,
            "enter": gru.weight_ih_l0,
            "enter_bias": gru.bias_ih_l0,
            "recall": gru.weight_hh_l0,
            "recall_bias": gru.bias_hh_l0,
            "mix": mix.weight,
            "mix_bias": mix.bias,
            "choose": choose.weight,
            "choose_bias": choose.bias,
        }

    def _begin_with(self, cloned: RecurrentPolicy) -> None:
        see: Any = self.features_extractor.see
        with torch.no_grad():
            see.weight.copy_(torch.as_tensor(np.concatenate([cloned.weights["see"], cloned.weights["did"]]).T.copy()))
            for name, layer in self._layers().items():
                sharper = cloned.sharpness if name.startswith("choose") else 1.0
                layer.copy_(torch.as_tensor(sharper * cloned.weights[name].T))

    def policy(self, inputs: SeenInputs, choices: Sequence[Any]) -> RecurrentPolicy:
        """What it has learned, run by NumPy alone; it acts as it learned, by its probabilities as they are."""
        see: Any = self.features_extractor.see
        both = see.weight.detach().cpu().numpy().T
        weights = {name: layer.detach().cpu().numpy().T for name, layer in self._layers().items()}
        weights |= {"see": both[: inputs.width], "did": both[inputs.width :]}
        return RecurrentPolicy(inputs, weights, choices)
