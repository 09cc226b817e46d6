"""Algorithms of Stable-Baselines3 and sb3-contrib: found by name, arguments checked, and their networks taken out."""

from __future__ import annotations

import inspect
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_explorer.gym.network_policy import Layer, NetworkPolicy, Normalisation
from curious_explorer.optional_packages import require

ALGORITHMS = {"ppo": ("stable_baselines3", "PPO"), "a2c": ("stable_baselines3", "A2C"), "trpo": ("sb3_contrib", "TRPO")}
"""Optimizers by name: the package and the class."""
TRAINABLE = ALGORITHMS | {
    "ppo": ("curious_explorer.sb3.steady_ppo", "SteadyPPO"),
    "dqn": ("curious_explorer.sb3.double_dqn", "DoubleDQN"),
    "sac": ("stable_baselines3", "SAC"),
    "recurrent-ppo": ("sb3_contrib", "RecurrentPPO"),
    "rnd": ("curious_explorer.sb3.intrinsic_ppo", "PPOWithDistillation"),
    "noveld": ("curious_explorer.sb3.intrinsic_ppo", "PPOWithNoveltyDifference"),
    "counts": ("curious_explorer.sb3.intrinsic_ppo", "PPOWithCounts"),
}
"""What `train` and `solve` know: those, PPO one that keeps what succeeds, and others, DQN with double targets."""
OFF_POLICY = ("dqn", "sac")
RECURRENT = ("recurrent-ppo",)
WITH_BONUS = ("rnd", "noveld", "counts")
"""PPO with a bonus for what is new; see `intrinsic_ppo`."""
ON_POLICY = (*ALGORITHMS, *WITH_BONUS)
"""Those whose actor is a multilayer perceptron of our kind."""
NETWORK_SETTINGS = ("net_arch", "activation_fn")
"""What is told to the network and not to the algorithm."""
ACTIVATION_NAMES = {"tanh": "Tanh", "relu": "ReLU"}
SHARES = ("gamma", "gae_lambda", "tau", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps")
"""Hyperparameters that lie between 0 and 1."""
POSITIVE = ("learning_rate", "clip_range", "clip_range_vf", "max_grad_norm", "target_kl", "rms_prop_eps")
COUNTS = (
    "n_steps", "batch_size", "n_epochs", "buffer_size", "train_freq", "target_update_interval", "cg_max_steps",
    "line_search_max_iter", "n_critic_updates", "sub_sampling_factor",
)  # fmt: skip
"""Hyperparameters that are whole numbers from one on."""
ROLLOUT = 2_048
"""Steps between two updates of PPO and TRPO, all environments together: Stable-Baselines3's number for one."""
DECIDED_HERE = {
    "policy", "env", "seed", "device", "verbose", "tensorboard_log", "stats_window_size", "_init_setup_model",
}  # fmt: skip
"""Arguments of the algorithms that nobody sets as a hyperparameter."""


def algorithm_class(name: str, hyperparameters: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> Any:
    """The class of an algorithm, and a refusal of hyperparameters that it does not know.

    ``elsewhere`` says of some arguments what to use instead.
    """
    package, kind = TRAINABLE[name]
    found = getattr(require(package, "sb3"), kind)
    elsewhere = {"policy_kwargs": " and ".join(NETWORK_SETTINGS)} if elsewhere is None else elsewhere
    known = set(inspect.signature(found.__init__).parameters) - DECIDED_HERE - set(elsewhere) - {"self"}
    for given in hyperparameters:
        if given in elsewhere:
            raise ValueError(f"hyperparameters has {given!r}, which is not taken from there; use {elsewhere[given]}")
        if given not in known:
            raise ValueError(f"{name} has no hyperparameter {given!r}; expected {', '.join(sorted(known))}")
    return found


def check_numbers(algorithm: Any, hyperparameters: Mapping[str, Any]) -> None:
    """Refuse what is no number where one is expected, which a learner would notice in the middle of its work."""
    expected = inspect.signature(algorithm.__init__).parameters
    for name, value in hyperparameters.items():
        default = expected[name].default
        if callable(value):  # a schedule
            continue
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise ValueError(f"{name} is {value!r}, expected true or false")
            continue
        such = f", such as {default:g}" if isinstance(default, int | float) else ""
        if name in COUNTS:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}, expected a whole number that is at least 1{such}")
            continue
        if name not in (*POSITIVE, *SHARES) and not such:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}, expected a number{such}")
        if name in SHARES and not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} is {value!r}, expected a number from 0 to 1{such}")
        if name in POSITIVE and value <= 0.0:
            raise ValueError(f"{name} is {value!r}, expected a positive number{such}")


def check_actions(algorithm: str | None, space: spaces.Space[Any], environment: str) -> None:
    """Refuse an algorithm that has no actions of this kind."""
    kinds = {"sac": (spaces.Box, "a box, as of torques"), "dqn": (spaces.Discrete, "one whole number")}
    kind, words = kinds.get(algorithm or "", (spaces.Space, ""))
    if not isinstance(space, kind):
        raise ValueError(
            f"algorithm is {algorithm}, whose actions are {words}, but actions of {environment} are {space}; leave "
            "--algorithm out, or choose ppo"
        )


MOST_WEIGHTS = 100_000_000
"""Of hidden layers: more need a machine, and a library, for networks of that size."""


def network_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """What Stable-Baselines3 calls ``policy_kwargs``, from `NETWORK_SETTINGS` as plain data."""
    found = dict(given)
    widths = found.get("net_arch")
    if widths is not None and not (
        isinstance(widths, list) and all(isinstance(width, int) and width > 0 for width in widths)
    ):
        raise ValueError(f"net_arch is {widths!r}, expected a list of widths of hidden layers, such as [128,128]")
    if sum(one * other for one, other in itertools.pairwise([1, *(widths or ())])) > MOST_WEIGHTS:
        raise ValueError(f"net_arch is {widths!s:.200}, expected fewer than {MOST_WEIGHTS:,} weights between layers")
    if "activation_fn" in found:
        name = str(found["activation_fn"]).lower()
        if name not in ACTIVATION_NAMES:
            raise ValueError(f"activation_fn is {name!r}, expected one of {', '.join(ACTIVATION_NAMES)}")
        found["activation_fn"] = getattr(require("torch.nn", "sb3"), ACTIVATION_NAMES[name])
    return found


@contextmanager
def private_randomness(seed: int, threads: int) -> Iterator[None]:
    """Global generators seeded for Stable-Baselines3, which draws from them, and put back afterwards; so are threads.

    One thread is the default for small networks: more of them wait for each other. Checks of distributions by PyTorch
    are off meanwhile: a tenth of the time of a step, for what the heads and the environments are checked for anyway.
    """
    import torch

    python, numpy, before = random.getstate(), np.random.get_state(), torch.get_num_threads()  # noqa: NPY002
    checks = torch.distributions.Distribution._validate_args
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(threads)
        torch.distributions.Distribution.set_default_validate_args(False)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 (rollout buffers are shuffled by it)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            torch.distributions.Distribution.set_default_validate_args(checks)
            torch.set_num_threads(before)
            np.random.set_state(numpy)  # noqa: NPY002
            random.setstate(python)


def largest_divisor(total: int, most: int) -> int:
    """The largest size, not above ``most``, of batches that a rollout can be cut into evenly."""
    return max(size for size in range(1, min(total, most) + 1) if total % size == 0)


def spawned_seed(*numbers: int) -> int:
    """A seed of 31 bits that belongs to these numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


def quiet_logger() -> Any:
    """A logger that writes nowhere."""
    return require("stable_baselines3.common.logger", "sb3").Logger(folder=None, output_formats=[])


def network_policy(
    policy: Any, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], normalizer: Any = None
) -> NetworkPolicy:
    """The actor of a Stable-Baselines3 ``MlpPolicy`` as weights and plain data; the spaces are the environment's own.

    ``normalizer`` is the `VecNormalize` that it learned behind; None if it saw observations as they are.
    """
    layers = layers_of([*policy.mlp_extractor.policy_net, policy.action_net])
    log_std = _array(policy.log_std) if hasattr(policy, "log_std") else None
    scale = None
    if normalizer is not None:
        seen = normalizer.obs_rms
        scale = Normalisation(seen.mean, seen.var, clip=normalizer.clip_obs, epsilon=normalizer.epsilon)
    return NetworkPolicy(observation_space, action_space, layers, log_std=log_std, normalisation=scale)


def layers_of(modules: list[Any]) -> list[Layer]:
    """The layers of a network of linear modules and activations."""
    import torch

    layers = []
    for module, following in zip(modules, [*modules[1:], None], strict=True):
        if isinstance(module, torch.nn.Linear):
            linear = following is None or isinstance(following, torch.nn.Linear)
            activation = "none" if linear else type(following).__name__.lower()
            layers.append(Layer(_array(module.weight).T, _array(module.bias), activation))
    return layers


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()
