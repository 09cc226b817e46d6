"""Where Stable-Baselines3 comes in: its policy networks, its rollout buffer and its gradient steps.

Everything else (environments, roll-ins, acting, counting) is ours, so only three things are asked of it: make an
algorithm for given spaces, take the gradient steps of a filled buffer, and show the weights.
"""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_explorer.sb3.network_heads import Head, head_of
from curious_explorer.sb3.network_inputs import Inputs, Normalisation
from curious_explorer.sb3.network_policy import Layer, NetworkPolicy
from curious_explorer.sb3.sb3_rollouts import Rollout

ALGORITHMS = {"ppo": ("stable_baselines3", "PPO"), "a2c": ("stable_baselines3", "A2C"), "trpo": ("sb3_contrib", "TRPO")}
OURS = {
    "policy": "policy",
    "env": "the world that the optimizer is called with",
    "gamma": "gamma of the call",
    "seed": "seed",
    "device": "device",
    "policy_kwargs": "net_arch and activation",
    "use_sde": "nothing: state-dependent exploration cannot be stored with a reset model",
    "sde_sample_freq": "nothing: state-dependent exploration cannot be stored with a reset model",
    "rollout_buffer_class": "nothing: the buffer is filled by this library",
    "rollout_buffer_kwargs": "nothing: the buffer is filled by this library",
    "stats_window_size": "nothing: the learning curve comes with the result",
    "tensorboard_log": "nothing: the learning curve comes with the result",
    "verbose": "nothing",
    "_init_setup_model": "nothing",
}
"""Arguments of the algorithms that are decided elsewhere, and where."""
ACTIVATION_CLASSES = {"Tanh": "tanh", "ReLU": "relu", "LeakyReLU": "leaky_relu", "ELU": "elu", "Sigmoid": "sigmoid"}


def require_algorithm(name: str) -> Any:
    """The class of an algorithm; an error that says what to install where it is missing."""
    module, kind = ALGORITHMS[name]
    try:
        return getattr(importlib.import_module(module), kind)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"SB3({name!r}) needs the package {(error.name or module)!r}, which is not installed; install it by "
            "pip install 'curious-explorer[sb3]'"
        ) from error


def check_hyperparameters(algorithm: Any, given: Mapping[str, Any]) -> None:
    """Refuse what the algorithm does not know, or what is said elsewhere."""
    known = inspect.signature(algorithm.__init__).parameters
    for name in given:
        if name in OURS:
            raise ValueError(f"hyperparameters has {name!r}, which is not taken from there; use {OURS[name]} instead")
        if name not in known:
            open_to_choice = sorted(set(known) - set(OURS) - {"self"})
            raise ValueError(
                f"hyperparameters has {name!r}, which {algorithm.__name__} of Stable-Baselines3 does not know; "
                f"expected some of {', '.join(open_to_choice)}"
            )


@contextmanager
def private_randomness(seed: int, threads: int) -> Iterator[None]:
    """Global generators seeded for Stable-Baselines3, which draws from them, and put back afterwards; so are threads.

    One thread is the default for small networks: more of them wait for each other.
    """
    import torch

    python, numpy, before = random.getstate(), np.random.get_state(), torch.get_num_threads()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(threads)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 (rollout buffers are shuffled by it)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            np.random.set_state(numpy)  # noqa: NPY002
            random.setstate(python)


class Learner:
    """An algorithm of Stable-Baselines3 whose rollouts are brought to it.

    Args:
        algorithm: its class.
        inputs: how observations become numbers; the algorithm itself sees rows of numbers only.
        action_space: the environment's.
        lanes: how many episodes run side by side.
        arguments: what the algorithm is told.
    """

    def __init__(
        self,
        algorithm: Any,
        inputs: Inputs,
        action_space: spaces.Space[Any],
        lanes: int,
        *,
        arguments: Mapping[str, Any],
    ) -> None:
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.vec_env import DummyVecEnv

        head_of(action_space)  # refuses what no network can act in
        self._inputs, self._action_space = inputs, action_space
        stand_in = DummyVecEnv([lambda: _Spaces(inputs.width, action_space)] * lanes)
        self._algorithm = algorithm("MlpPolicy", stand_in, **arguments)
        self._algorithm.set_logger(Logger(None, []))

    @property
    def steps(self) -> int:
        """How many steps of each lane make a rollout."""
        return int(self._algorithm.n_steps)

    def policy(self, normalisation: Normalisation | None) -> NetworkPolicy:
        """The actor as it is now."""
        return network_policy(self._algorithm.policy, self._inputs, self._action_space, normalisation)

    def learn(self, rollout: Rollout, progress: float) -> None:
        """Take the gradient steps of one rollout; ``progress`` is the share of the budget spent, for schedules."""
        import torch

        policy, buffer = self._algorithm.policy, self._algorithm.rollout_buffer
        steps, lanes, width = rollout.features.shape
        policy.set_training_mode(False)
        with torch.no_grad():
            seen = torch.as_tensor(rollout.features.reshape(-1, width), device=policy.device)
            drawn = torch.as_tensor(rollout.draws.reshape(steps * lanes, -1), device=policy.device)
            discrete = isinstance(self._action_space, spaces.Discrete)
            values, log_probs, _ = policy.evaluate_actions(seen, drawn.flatten() if discrete else drawn)
            last_values = policy.predict_values(torch.as_tensor(rollout.last_features, device=policy.device))
            rewards = rollout.rewards.astype(np.float32)
            if rollout.cut_off:  # what lies behind the cut is worth what the critic says of it
                after = policy.predict_values(torch.as_tensor(rollout.cut_off_features, device=policy.device))
                t, n = np.array(rollout.cut_off).T
                rewards[t, n] += self._algorithm.gamma * after.cpu().numpy().ravel()
        buffer.reset()
        buffer.observations[:] = rollout.features
        buffer.actions[:] = rollout.draws
        buffer.rewards[:] = rewards
        buffer.episode_starts[:] = rollout.starts
        buffer.values[:] = values.cpu().numpy().reshape(steps, lanes)
        buffer.log_probs[:] = log_probs.cpu().numpy().reshape(steps, lanes)
        buffer.pos, buffer.full = steps, True
        buffer.compute_returns_and_advantage(last_values=last_values, dones=rollout.last_done)
        self._algorithm._current_progress_remaining = 1.0 - progress
        self._algorithm.train()


class _Spaces(gymnasium.Env[Any, Any]):
    """An environment that is only asked for its spaces."""

    def __init__(self, width: int, action_space: spaces.Space[Any]) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (width,), dtype=np.float32)
        # Numbered from zero, as Stable-Baselines3 wants it; our own head knows where the numbers begin.
        if isinstance(action_space, spaces.Discrete):
            self.action_space = spaces.Discrete(int(action_space.n))
        elif isinstance(action_space, spaces.MultiDiscrete):
            self.action_space = spaces.MultiDiscrete(action_space.nvec)
        else:
            self.action_space = action_space


def network_policy(
    policy: Any, inputs: Inputs, action_space: spaces.Space[Any], normalisation: Normalisation | None
) -> NetworkPolicy:
    """The actor of a Stable-Baselines3 ``MlpPolicy`` as weights and plain data."""
    import torch

    layers: list[Layer] = []
    modules = [*policy.mlp_extractor.policy_net, policy.action_net]
    for module, following in zip(modules, [*modules[1:], None], strict=True):
        if isinstance(module, torch.nn.Linear):
            name = "none" if following is None else type(following).__name__
            activation = "none" if isinstance(following, torch.nn.Linear) else ACTIVATION_CLASSES.get(name, name)
            layers.append(Layer(_array(module.weight).T, _array(module.bias), activation))
    log_std = getattr(policy, "log_std", None)
    head: Head = head_of(action_space, None if log_std is None else _array(log_std))
    return NetworkPolicy(inputs, layers, head, normalisation)


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()
