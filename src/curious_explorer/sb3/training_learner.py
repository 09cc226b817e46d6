"""The learner of `train`: a Stable-Baselines3 algorithm in metered environments that begin where a reset model says.

All that it knows goes into tensors and plain data, and comes back from them: weights, the gradient method's moments,
the statistics of observations and the count of steps. Every interval between two checkpoints begins with fresh episodes
and its own seed, so that a training that is taken up again goes on exactly as one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.optional_packages import require
from curious_explorer.resets.moving_starts import MovingStarts
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.starts import starts_of
from curious_explorer.sb3.algorithms import ROLLOUT, network_policy, quiet_logger, spawned_seed
from curious_explorer.sb3.network_view import NUMBERS, PERCEPTRON, SpaceView
from curious_explorer.sb3.training_envs import BudgetSpent, Meter, make_training_envs
from curious_explorer.sb3.training_settings import LAST_STRETCH, TrainingSettings

if TYPE_CHECKING:
    import torch

State = tuple[dict[str, "torch.Tensor"], dict[str, Any]]
"""Tensors by name, and plain data."""


class Learner:
    """An algorithm under training.

    Args:
        settings: what to train, and where.
        reset_model: where episodes begin; the environment's own start if None.
        log_folder: where TensorBoard logs go; nowhere if None.
    """

    def __init__(self, settings: TrainingSettings, reset_model: ResetModel | None, log_folder: str | None) -> None:
        from curious_explorer.sb3.sb3_rollouts import RolloutPolicy  # it needs Stable-Baselines3

        self._settings = settings
        self.meter = Meter(settings.samples)
        example = make_by_id(settings.environment)
        self._spaces = example.observation_space, example.action_space
        example.close()
        self.view = SpaceView(*self._spaces)
        begin = None if reset_model is None else starts_of(reset_model, settings.starts)
        self.starts = begin if isinstance(begin, MovingStarts) else None
        """Where episodes begin, if that moves with what is learned."""
        resets = None
        if reset_model is not None and begin is not None:
            resets = (begin, Discretisation.of_reset_model(reset_model))
        envs, _ = make_training_envs(
            lambda: make_by_id(settings.environment),
            self.meter,
            num_envs=settings.num_envs,
            resets=resets,
            perceptron=False,
            normalize=settings.normalize,
        )
        self._seeding = require("stable_baselines3.common.utils", "sb3").set_random_seed
        self._seeding(settings.seed)
        policy = RolloutPolicy if self.view.kind == PERCEPTRON else f"{self.view.kind}Policy"
        self.model: Any = settings.algorithm_class()(policy, envs, device="cpu", **settings.arguments())
        self._normalizer: Any = self.model.get_vec_normalize_env()
        self.model.set_logger(_logger(log_folder))

    @property
    def learning_steps(self) -> int:
        """Steps of episodes, roll-ins not included."""
        return int(self.model.num_timesteps)

    def begin_interval(self, number: int) -> None:
        """Begin afresh in all environments, on random numbers that belong to this interval."""
        seed = spawned_seed(self._settings.seed, number)
        self._seeding(seed)
        self.model.get_env().seed(seed)
        self.model._last_obs = None  # so that `learn` resets the environments

    def learn(self, steps: int) -> bool:
        """Learn from about so many steps, a few thousand at most; returns whether the budget sufficed for them."""
        if self.starts is not None:
            self.starts.finish(self.meter.left <= LAST_STRETCH * self._settings.samples)
        rollout = self.model.n_steps * self._settings.num_envs
        rollouts = max(1, min(steps, ROLLOUT) // rollout)
        try:
            self.model.learn(rollouts * rollout, reset_num_timesteps=False)
        except BudgetSpent:
            return False  # what is left does not suffice for an update
        return True

    def network_policy(self) -> NetworkPolicy | None:
        """The actor as weights and plain data; None for one that is no multilayer perceptron."""
        if self.view.kind != PERCEPTRON:
            return None
        return network_policy(self.model.policy, *self._spaces, self._normalizer)

    def actor(self, seed: int) -> Callable[[Any], Any]:
        """How an evaluation acts: by NumPy where that can be, at a tenth of the time of ``predict``."""
        network, deterministic = self.network_policy(), self._settings.deterministic
        if network is None:
            return lambda observation: self._predict(observation, deterministic)
        if deterministic:
            return lambda observation: network.act_likeliest([observation])[0]
        generator = np.random.default_rng(seed)
        return lambda observation: network.act([observation], generator)[0]

    def _predict(self, observation: Any, deterministic: bool) -> Any:
        seen = self.view.see(observation)
        seen = seen if self._normalizer is None else self._normalizer.normalize_obs(seen)
        action, _ = self.model.predict(seen, deterministic=deterministic)
        return self.view.act(action)

    def log(self, numbers: dict[str, float], samples: int) -> None:
        """Write to the TensorBoard log."""
        for name, number in numbers.items():
            self.model.logger.record(name, number)
        self.model.logger.dump(step=samples)

    def close(self) -> None:
        """Give the environments back, and end the log."""
        self.model.get_env().close()
        self.model.logger.close()

    def state(self) -> State:
        """All that it knows."""
        import torch

        tensors = {f"policy.{name}": tensor for name, tensor in self.model.policy.state_dict().items()}
        plain: dict[str, Any] = {"learning_steps": self.learning_steps, "samples": self.meter.taken, "optimizer": {}}
        plain["updates"] = int(self.model._n_updates)
        for number, moments in self.model.policy.optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimizer.{number}.{name}"] = value
                else:
                    plain["optimizer"][f"{number}.{name}"] = value
        if self._normalizer is not None:
            seen = _statistics(self._normalizer)
            tensors["seen.mean"], tensors["seen.variance"] = torch.tensor(seen.mean), torch.tensor(seen.var)
            plain["seen"] = float(seen.count)
        if self.starts is not None:
            plain["starts"] = self.starts.state()
        return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, plain

    def restore(self, state: State) -> None:
        """Know what `state` said."""
        tensors, plain = state
        self.model.policy.load_state_dict(_named(tensors, "policy."))
        moments: dict[int, dict[str, Any]] = {}
        for name, value in (*_named(tensors, "optimizer.").items(), *plain["optimizer"].items()):
            number, _, what = name.partition(".")
            moments.setdefault(int(number), {})[what] = value
        groups = self.model.policy.optimizer.state_dict()["param_groups"]
        self.model.policy.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        if self._normalizer is not None:
            seen = _statistics(self._normalizer)
            seen.mean, seen.var = tensors["seen.mean"].numpy().copy(), tensors["seen.variance"].numpy().copy()
            seen.count = float(plain["seen"])
        if self.starts is not None:
            self.starts.restore(plain["starts"])
        self.model.num_timesteps = int(plain["learning_steps"])
        self.model._n_updates = int(plain["updates"])
        self.meter.taken = int(plain["samples"])


def _named(tensors: dict[str, torch.Tensor], beginning: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(beginning): tensor for name, tensor in tensors.items() if name.startswith(beginning)}


def _statistics(normalizer: Any) -> Any:
    """The running mean and variance of the numbers that a network sees."""
    return normalizer.obs_rms[NUMBERS] if isinstance(normalizer.obs_rms, dict) else normalizer.obs_rms


def _logger(folder: str | None) -> Any:
    if folder is None:
        return quiet_logger()
    require("tensorboard", "sb3")
    return require("stable_baselines3.common.logger", "sb3").configure(folder, ["tensorboard"])
