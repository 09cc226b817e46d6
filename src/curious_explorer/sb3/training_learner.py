"""The learner of `train`: a Stable-Baselines3 algorithm in metered environments that begin where a reset model says.

All that it knows goes into tensors and plain data, and comes back from them: weights, the gradient method's moments,
the statistics of observations and the count of steps. Every interval between two checkpoints begins with fresh episodes
and its own seed, so that a training that is taken up again goes on exactly as one that was never stopped.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

from curious_explorer.gym.agents import Agent, NetworkAgent
from curious_explorer.gym.cells import Env
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.held_actions import holding
from curious_explorer.gym.network_policy import NetworkPolicy
from curious_explorer.optional_packages import require
from curious_explorer.resets.moving_starts import MovingStarts
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.resets.starts import starts_of
from curious_explorer.sb3.algorithms import (
    OFF_POLICY,
    ON_POLICY,
    RECURRENT,
    ROLLOUT,
    WITH_BONUS,
    network_policy,
    quiet_logger,
    spawned_seed,
)
from curious_explorer.sb3.model_agent import ModelAgent
from curious_explorer.sb3.network_view import NUMBERS, PERCEPTRON, SpaceView
from curious_explorer.sb3.training_envs import BudgetSpent, Meter, make_training_envs
from curious_explorer.sb3.training_settings import LAST_STRETCH, TrainingSettings
from curious_explorer.sb3.warm_start import WarmStart

if TYPE_CHECKING:
    import torch

    from curious_explorer.sb3.reminders import Reminders

State = tuple[dict[str, "torch.Tensor"], dict[str, Any]]
"""Tensors by name, and plain data."""
LARGEST_RETURN = "largest_return"
"""Of `SteadyPPO`, by which it scales advantages."""


class Learner:
    """An algorithm under training.

    Args:
        settings: what to train, and where.
        reset_model: where episodes begin; the environment's own start if None.
        log_folder: where TensorBoard logs go; nowhere if None.
        callback: one of Stable-Baselines3's, a function, or a list of them; told of every step.
        watched: put around every environment that is learned in, by whoever wants to see what it pays.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        reset_model: ResetModel | None,
        log_folder: str | None,
        *,
        callback: Any = None,
        watched: Callable[[Env], Env] | None = None,
    ) -> None:
        self._settings, self._callback = settings, callback
        self.meter = Meter(settings.samples)
        example = settings.make_env()
        self._spaces = example.observation_space, example.action_space
        self.action_space = example.action_space
        """The environment's own."""
        example.close()
        self.view = SpaceView(*self._spaces)
        begin = None if reset_model is None else starts_of(reset_model, settings.starts)
        self.starts = begin if isinstance(begin, MovingStarts) else None
        """Where episodes begin, if that moves with what is learned."""
        resets = None
        if reset_model is not None and begin is not None:
            resets = (begin, Discretisation.of_reset_model(reset_model))
        around = watched or (lambda env: env)
        envs, _ = make_training_envs(
            lambda: around(settings.make_training_env()),
            self.meter,
            num_envs=settings.num_envs,
            resets=resets,
            perceptron=False,
            normalize=settings.normalize,
            reward_scale=settings.reward_scale,
            snapshots=settings.snapshots,
            hold=settings.hold,
        )
        self._snapshots: list[Any] = envs.get_attr("snapshots") if resets is not None and settings.snapshots else []
        self._seeding = require("stable_baselines3.common.utils", "sb3").set_random_seed
        self._seeding(settings.seed)
        kind, arguments = settings.algorithm_class(), settings.arguments()
        try:
            self.model: Any = kind(self._policy_class(), envs, device="cpu", **arguments)
        except (TypeError, ValueError, AssertionError) as error:
            raise ValueError(f"{settings.algorithm} cannot be made with {arguments}: {error}") from error
        if settings.algorithm == "dqn":  # chances fall with the samples of all, not with those of one call of `learn`
            self.model.exploration_schedule = self._chance_of_random_actions
        self.normalizer: Any = self.model.get_vec_normalize_env()
        self.reminded = settings.algorithm == "ppo"
        """Whether a warm start is to be reminded of."""
        self.reminders: Reminders | None = None
        self.warm_start: WarmStart | None = None
        """What was cloned first, if anything was."""
        self.begun = 0
        """How many steps of others a replay buffer begins with."""
        self.model.set_logger(_logger(log_folder))

    @property
    def steps_saved(self) -> int:
        """How many steps restores have saved in this process, at least."""
        return sum(each.steps_saved for each in self._snapshots)

    def _policy_class(self) -> Any:
        from curious_explorer.sb3.sb3_rollouts import RolloutPolicy  # it needs Stable-Baselines3

        if self.view.kind == PERCEPTRON and self._settings.algorithm in ON_POLICY:
            return RolloutPolicy
        return f"{self.view.kind}{'Lstm' if self._settings.algorithm in RECURRENT else ''}Policy"

    def _chance_of_random_actions(self, _: float) -> float:
        model = self.model
        done = min(1.0, self.meter.taken / (model.exploration_fraction * self._settings.samples))
        first, last = model.exploration_initial_eps, model.exploration_final_eps
        return float(first + done * (last - first))

    @property
    def statistics(self) -> Any:
        """The running mean and variance of the numbers that a network sees, where there is a normalizer."""
        seen = self.normalizer.obs_rms
        return seen[NUMBERS] if isinstance(seen, dict) else seen

    @property
    def learning_steps(self) -> int:
        """Steps of episodes, roll-ins not included."""
        if self._settings.hold > 1 and self.starts is None:
            return self.meter.taken  # the model counts actions, each of several steps
        return int(self.model.num_timesteps)

    def begin_interval(self, number: int) -> None:
        """Begin afresh in all environments, on random numbers that belong to this interval."""
        seed = spawned_seed(self._settings.seed, number)
        self._seeding(seed)
        self.model.get_env().seed(seed)
        self.model._last_obs = None  # so that `learn` resets the environments

    def learn(self, steps: int) -> bool:
        """Learn from about so many steps, a few thousand at most; returns whether there is any use in going on.

        There is none where the budget did not suffice, or a callback said that it is enough.
        """
        if self.starts is not None:
            self.starts.finish(self.meter.left <= LAST_STRETCH * self._settings.samples)
        rollout, hold = self._settings.num_envs, self._settings.hold
        if self._settings.algorithm not in OFF_POLICY:
            rollout *= self.model.n_steps
        wanted, before = max(1, min(steps // hold, ROLLOUT) // rollout) * rollout, int(self.model.num_timesteps)
        try:
            self.model.learn(wanted, reset_num_timesteps=False, callback=self._callback)
        except BudgetSpent:
            return False  # what is left does not suffice for an update
        if self.reminders is not None:
            self.reminders.remind(self.model, self.normalizer)
            self.reminders = None if self.reminders.over else self.reminders
        return int(self.model.num_timesteps) - before >= wanted

    def network_policy(self) -> NetworkPolicy | None:
        """The actor as weights and plain data; None for one that is no multilayer perceptron of our kind."""
        if self.view.kind != PERCEPTRON or self._settings.algorithm not in ON_POLICY:
            return None
        return network_policy(self.model.policy, *self._spaces, self.normalizer)

    def agent(self, seed: int, deterministic: bool | None = None) -> Agent:
        """What has been learned: acts by NumPy where that can be, at a tenth of the time of ``predict``."""
        network = self.network_policy()
        likeliest = self._settings.deterministic if deterministic is None else deterministic
        if network is None:
            model = ModelAgent(self.model, self.view, self.normalizer, deterministic=likeliest)
            return holding(model, self._settings.hold)
        return holding(NetworkAgent(network, deterministic=likeliest, seed=seed), self._settings.hold)

    def own_format(self) -> dict[str, bytes]:
        """The model, and the statistics of what it saw, as Stable-Baselines3 itself stores them; never read here."""
        import pickle

        content, absent = io.BytesIO(), {"gym": None}
        # It asks OpenAI's old package for its version, and stumbles over any folder that has this name.
        with mock.patch.dict(sys.modules, absent):
            # The schedule of DQN's random actions is ours, and would take this learner and its open logs along.
            self.model.save(content, exclude=["exploration_schedule"])
        files = {"model.zip": content.getvalue()}
        if self.normalizer is not None:
            files["vecnormalize.pkl"] = pickle.dumps(self.normalizer)
        return files

    def numbers(self) -> dict[str, float]:
        """What the last stretch of learning was like: steps so far, and losses as the algorithm calls them."""
        learned = {"samples/learning": float(self.learning_steps)}
        learned["samples/roll_ins"] = float(self.meter.taken - self.learning_steps)
        for name, value in self.model.logger.name_to_value.items():  # noted since the last line of its log
            if name.startswith("train/"):
                learned[name.removeprefix("train/")] = float(value)
        return learned

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
        for place, optimizer in self._optimizers().items():
            for number, moments in optimizer.state_dict()["state"].items():
                for name, value in moments.items():
                    if isinstance(value, torch.Tensor):
                        tensors[f"{place}.{number}.{name}"] = value
                    else:
                        plain["optimizer"][f"{place}.{number}.{name}"] = value
        tensors |= {f"variable.{name}": tensor for name, tensor in self._variables().items()}
        if self.normalizer is not None:
            seen = self.statistics
            tensors["seen.mean"], tensors["seen.variance"] = torch.tensor(seen.mean), torch.tensor(seen.var)
            plain["seen"] = float(seen.count)
        if self._settings.algorithm in WITH_BONUS:
            tensors |= {f"bonus.{name}": tensor for name, tensor in self.model.bonus_state().items()}
        if hasattr(self.model, LARGEST_RETURN):
            plain[LARGEST_RETURN] = float(self.model.largest_return)
        if self.starts is not None:
            plain["starts"] = self.starts.state()
        if self.warm_start is not None:
            plain["warm_start"] = self.warm_start._asdict()
        if self.reminders is not None:
            kept, plain["reminders"] = self.reminders.state()
            tensors |= {f"reminders.{name}": tensor for name, tensor in kept.items()}
        return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, plain

    def restore(self, state: State) -> None:
        """Know what `state` said."""
        tensors, plain = state
        weights = _named(tensors, "policy.")
        _check_sizes(weights, self.model.policy.state_dict())
        self.model.policy.load_state_dict(weights)
        for place, optimizer in self._optimizers().items():
            moments: dict[int, dict[str, Any]] = {}
            found = (*_named(tensors, f"{place}.").items(), *_named(plain["optimizer"], f"{place}.").items())
            for name, value in found:
                number, _, what = name.partition(".")
                moments.setdefault(int(number), {})[what] = value
            optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
        for name, variable in self._variables().items():
            variable.data = tensors[f"variable.{name}"].data
        if self.normalizer is not None:
            seen = self.statistics
            seen.mean, seen.var = tensors["seen.mean"].numpy().copy(), tensors["seen.variance"].numpy().copy()
            seen.count = float(plain["seen"])
        if self._settings.algorithm in WITH_BONUS:
            self.model.restore_bonus(_named(tensors, "bonus."))
        if LARGEST_RETURN in plain:
            self.model.largest_return = float(plain[LARGEST_RETURN])
        if self.starts is not None:
            self.starts.restore(plain["starts"])
        if "warm_start" in plain:
            self.warm_start = WarmStart(**plain["warm_start"])
        if "reminders" in plain:
            from curious_explorer.sb3.reminders import Reminders

            self.reminders = Reminders.restored(_named(tensors, "reminders."), plain["reminders"])
        self.model.num_timesteps = int(plain["learning_steps"])
        self.model._n_updates = int(plain["updates"])
        self.meter.taken = int(plain["samples"])

    def _optimizers(self) -> dict[str, Any]:
        """The gradient methods, by where their moments are kept; SAC has three."""
        names, _ = self.model._get_torch_save_params()
        found = {}
        for name in names:
            if name.endswith("optimizer"):
                holder: Any = self.model
                for part in name.split("."):
                    holder = getattr(holder, part)
                found["optimizer" if name == "policy.optimizer" else name] = holder
        return found

    def _variables(self) -> dict[str, torch.Tensor]:
        """What an algorithm learns outside of its networks, as SAC its entropy coefficient."""
        _, names = self.model._get_torch_save_params()
        return {name: getattr(self.model, name) for name in names}


Kept = TypeVar("Kept")


def _check_sizes(stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse weights of a network that saw or did something else, with a word about what may have happened."""
    for name, tensor in wanted.items():
        if name in stored and stored[name].shape != tensor.shape:
            raise ValueError(
                f"its {name} has shape {tuple(stored[name].shape)}, and the environment's network now "
                f"{tuple(tensor.shape)}: observations or actions have another form than they had then, or an earlier "
                "version made it, which saw large pictures in full; train anew, in another folder"
            )


def _named(kept: dict[str, Kept], beginning: str) -> dict[str, Kept]:
    return {name.removeprefix(beginning): value for name, value in kept.items() if name.startswith(beginning)}


def _logger(folder: str | None) -> Any:
    if folder is None:
        return quiet_logger()
    require("tensorboard", "sb3")
    return require("stable_baselines3.common.logger", "sb3").configure(folder, ["tensorboard"])
