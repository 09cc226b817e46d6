"""PPO across many layouts, from starts that move in each of them, warmed up by cloning what was found best.

The actor begins with the cloned network's weights, and only the critic learns at first, since one that knows nothing
would unlearn what was cloned. Then PPO goes on as usual. Every step of the environments is a sample, those of roll-ins
too. Where a network that remembers was cloned, sb3-contrib's RecurrentPPO goes on with it (see `recurrent_actor`); with
``recurrent`` that of sb3-contrib itself, an LSTM, begins from nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.gym.cells import Env
from curious_explorer.gym.checked_env import CheckedEnv
from curious_explorer.gym.cloned_policy import ClonedPolicy
from curious_explorer.gym.layout_starts import LayoutStarts, LayoutStartsWrapper
from curious_explorer.gym.recurrent_policy import RecurrentPolicy
from curious_explorer.gym.symbols import SymbolObservations
from curious_explorer.optional_packages import require
from curious_explorer.sb3.algorithms import network_policy, private_randomness
from curious_explorer.sb3.model_agent import ModelAgent
from curious_explorer.sb3.network_view import NetworkView, SpaceView
from curious_explorer.sb3.training_envs import BudgetSpent, Meter, MeteredEnv
from curious_explorer.validation import check_count, check_seed
from curious_explorer.worlds.policies import ObservationPolicy


@dataclass(frozen=True, kw_only=True)
class LayoutTraining:
    """How to learn across layouts."""

    samples: int
    """All steps of learning, roll-ins included."""
    num_envs: int = 16
    rollout: int = 128
    """Steps of each environment between two updates."""
    critic_share: float = 0.1
    """In this share of the samples only the critic learns, where the actor was cloned; in one rollout at least."""
    learning_rate: float = 3e-4
    entropy: float = 0.01
    gamma: float = 0.99
    hidden: tuple[int, ...] = (256, 256)
    recurrent: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("samples", "num_envs", "rollout"):
            check_count(getattr(self, name), name, least=1)
        if not 0.0 <= self.critic_share < 1.0:
            raise ValueError(f"critic_share is {self.critic_share!r}, expected a share below 1")
        check_seed(self.seed)


class LayoutTrained(NamedTuple):
    """What was learned across layouts."""

    policy: ObservationPolicy
    samples: int
    learning_steps: int
    """Those of them that were not of roll-ins."""
    standing: float
    """How far the layouts trained in are learned, from 0 to 1; see `LayoutStarts.standing`."""
    failed: dict[int, str]
    """What the environment raised in new layouts, by their seeds."""


def train_in_layouts(
    make: Callable[[], Env],
    starts: LayoutStarts,
    settings: LayoutTraining,
    *,
    cloned: ClonedPolicy | RecurrentPolicy | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> LayoutTrained:
    """Learn by PPO from starts in many layouts.

    Args:
        make: makes the environment that was explored.
        starts: where episodes begin; they move as this learns.
        settings: how to learn.
        cloned: the policy to begin with, which says what the network sees; one that remembers goes on remembering.
            None: from nothing.
        watch: called with the samples so far and the standing, after every rollout.
    """
    if settings.recurrent and isinstance(cloned, ClonedPolicy):
        raise ValueError(
            "a recurrent network cannot begin with what was cloned without memory, whose layers are others; clone by "
            "RecurrentCloning, or leave one of both out"
        )
    meter = Meter(settings.samples)
    remembers = cloned if isinstance(cloned, RecurrentPolicy) else None
    symbols = cloned.symbols if isinstance(cloned, ClonedPolicy) else None
    choices = None if cloned is None else cloned.choices

    def one() -> Env:
        env: Env = LayoutStartsWrapper(MeteredEnv(make(), meter), starts)
        env = CheckedEnv(env) if symbols is None else CheckedEnv(SymbolObservations(env, symbols))
        env = env if choices is None else _Choices(env, choices)
        if remembers is not None:
            from curious_explorer.sb3.recurrent_actor import SeenAndDone

            env = SeenAndDone(env, remembers.inputs)
        return NetworkView(env)

    vector = require("stable_baselines3.common.vec_env", "sb3").DummyVecEnv([one] * settings.num_envs)
    with private_randomness(settings.seed, threads=1):
        model = _model(vector, settings, remembers)
        if isinstance(cloned, ClonedPolicy):
            _begin_with(model, cloned)
        callback = _callback(meter, starts, settings, cloned, watch)
        with contextlib.suppress(BudgetSpent):
            model.learn(2 * settings.samples, callback=callback)
    steps = int(model.num_timesteps)
    policy: ObservationPolicy
    if remembers is not None:
        policy = model.policy.policy(remembers.inputs, remembers.choices)
    elif settings.recurrent:
        bare = make()
        policy = RememberingPolicy(model, SpaceView(bare.observation_space, bare.action_space))
    else:
        space = vector.observation_space
        network = network_policy(model.policy, space, vector.action_space)
        policy = ClonedPolicy(network, symbols, list(range(vector.action_space.n)) if choices is None else choices)
    return LayoutTrained(policy, meter.taken, steps, starts.standing, dict(starts.failed))


def _model(vector: Any, settings: LayoutTraining, remembers: RecurrentPolicy | None) -> Any:
    import torch

    common = {
        "n_steps": settings.rollout,
        "batch_size": max(settings.rollout * settings.num_envs // 4, 2),
        "n_epochs": 4,
        "ent_coef": settings.entropy,
        "learning_rate": settings.learning_rate,
        "gamma": settings.gamma,
        "seed": settings.seed % 2**31,
        "device": "cpu",
    }
    if remembers is not None:
        from curious_explorer.sb3.recurrent_actor import RecurrentActor

        learner = require("sb3_contrib", "sb3").RecurrentPPO
        return learner(RecurrentActor, vector, policy_kwargs={"cloned": remembers}, **common)
    shape: dict[str, Any] = {"net_arch": list(settings.hidden), "activation_fn": torch.nn.ReLU}
    if settings.recurrent:
        shape["features_extractor_class"] = _flatten()
        return require("sb3_contrib", "sb3").RecurrentPPO("MlpLstmPolicy", vector, policy_kwargs=shape, **common)
    return require("stable_baselines3", "sb3").PPO("MlpPolicy", vector, policy_kwargs=shape, **common)


def _flatten() -> Any:
    """Stable-Baselines3's extractor, whose width is a number that PyTorch takes for one in recurrent layers, too."""
    base: Any = require("stable_baselines3.common.torch_layers", "sb3").FlattenExtractor

    class Flatten(base):  # type: ignore[misc]
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space)
            self._features_dim: int = int(self.features_dim)

    return Flatten


def _begin_with(model: Any, cloned: ClonedPolicy) -> None:
    """Give the actor the cloned network's weights."""
    import torch

    linear = [module for module in model.policy.mlp_extractor.policy_net if isinstance(module, torch.nn.Linear)]
    linear.append(model.policy.action_net)
    shapes = [layer.weight.shape for layer in cloned.network.layers]
    if [tuple(reversed(module.weight.shape)) for module in linear] != shapes:
        raise ValueError(
            f"the cloned network has layers of {shapes}; give LayoutTraining hidden layers of the same widths"
        )
    with torch.no_grad():
        for module, layer in zip(linear, cloned.network.layers, strict=True):
            module.weight.copy_(torch.as_tensor(layer.weight.T.copy()))
            module.bias.copy_(torch.as_tensor(layer.bias))


def _callback(
    meter: Meter,
    starts: LayoutStarts,
    settings: LayoutTraining,
    cloned: ClonedPolicy | RecurrentPolicy | None,
    watch: Callable[[int, float], None] | None,
) -> Any:
    """Tells how learning goes, and lets the actor learn when the critic has had its share."""
    base: Any = require("stable_baselines3.common.callbacks", "sb3").BaseCallback

    class Progress(base):  # type: ignore[misc]
        def _on_training_start(self) -> None:
            policy = self.model.policy
            if isinstance(cloned, RecurrentPolicy):
                self._actor = policy.actor()
            else:
                self._actor = [*policy.mlp_extractor.policy_net.parameters(), *policy.action_net.parameters()]
            self._hold(cloned is not None)

        def _hold(self, held: bool) -> None:
            for weight in self._actor:
                weight.requires_grad_(not held)

        def _on_rollout_start(self) -> None:
            if 0 < meter.taken >= settings.critic_share * settings.samples:
                self._hold(False)

        def _on_rollout_end(self) -> None:
            if watch is not None:
                watch(meter.taken, starts.standing)

        def _on_step(self) -> bool:
            return True

    return Progress()


class _Choices(gymnasium.ActionWrapper[Any, Any, Any]):
    """An environment with the actions of a set, by number."""

    def __init__(self, env: Env, choices: Sequence[Any]) -> None:
        super().__init__(env)
        self._choices, self.action_space = list(choices), spaces.Discrete(len(choices))

    def action(self, action: Any) -> Any:
        """The action of a number."""
        return self._choices[int(action)]


class RememberingPolicy(ObservationPolicy):
    """A recurrent network, which remembers one episode; `begin` makes it forget the last."""

    def __init__(self, model: Any, view: SpaceView) -> None:
        self._agent = ModelAgent(model, view, None, deterministic=False)

    def begin(self) -> None:
        """An episode begins."""
        self._agent.begin()

    def act(self, observations: Sequence[Any], generator: np.random.Generator) -> list[Any]:
        """The action for the one observation of this step."""
        (observation,) = observations
        return [self._agent.act(observation)]

    def encode(self) -> bytes:
        """Refused: NumPy cannot run it."""
        raise NotImplementedError("a recurrent network is not stored as a policy; save the model by Stable-Baselines3")
