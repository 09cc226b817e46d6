"""PPO with a bonus for what is new: Stable-Baselines3's, and beside it a critic of the bonus.

`PPOWithDistillation` is RND as published (Burda et al. 2018): the world's reward and the bonus have a critic each,
because they have different discounts and different ends. The bonus goes on after an episode, so that dying costs what
would have been found; advantages are added 2 : 1. The bonus is divided by the running deviation of its discounted sum,
and nothing is paid or learned before random actions have shown what observations look like. Every step of that is
counted, too.

Two things differ from what was published, so that the learner is the same as without a bonus: the critic of the bonus
is a network of its own and not a second head (the actor and critic of an ``MlpPolicy`` share no layer either), and
advantages are normalised in each minibatch.

NovelD and counts, whose authors add the bonus to the reward, have one critic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize
from torch import nn

from curious_explorer.arrays import Floats, Singles
from curious_explorer.sb3.novelty import (
    Counts,
    Distillation,
    Novelty,
    NoveltyDifference,
    beginning_with,
    moments_of,
    restore_moments,
    restore_statistics,
    statistics_of,
)


@dataclass(frozen=True)
class BonusSettings:
    """How a bonus is paid."""

    novelty: type[Novelty]
    own_critic: bool
    """Whether the bonus has a critic of its own and goes on after an episode; else it is added to the reward."""
    bonus_weight: float
    reward_weight: float = 1.0
    bonus_gamma: float = 0.99
    warm_up: int = 0
    """How many steps random actions take first, in each environment."""


class IntrinsicPPO(PPO):
    """PPO with a bonus; its arguments are PPO's."""

    bonus_settings: ClassVar[BonusSettings]

    def _setup_model(self) -> None:
        super()._setup_model()
        if not isinstance(self.observation_space, spaces.Box | spaces.Discrete):
            raise ValueError(
                f"observations are {self.observation_space}, but a bonus for what is new needs a number, or a box of "
                "numbers; flatten them with gymnasium.wrappers.FlattenObservation"
            )
        numbers = spaces.flatdim(self.observation_space)
        self._novelty = self.bonus_settings.novelty(numbers, self.n_envs)
        self._running = np.zeros(self.n_envs)
        self._deviation = RunningMeanStd(shape=())
        self._critic = nn.Sequential(nn.Linear(numbers, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self._critic_optimizer = torch.optim.Adam(self._critic.parameters(), lr=float(self.lr_schedule(1.0)), eps=1e-5)
        self._warm = self.bonus_settings.warm_up == 0
        self._seen = self._following = np.zeros((0, self.n_envs, numbers), dtype=np.float32)
        self._bonus_returns = np.zeros((0, self.n_envs))

    def bonus_state(self) -> dict[str, torch.Tensor]:
        """What the bonus has learned, beside the policy."""
        kept = {f"novelty.{key}": value for key, value in self._novelty.state().items()}
        kept |= {f"critic.{key}": value for key, value in self._critic.state_dict().items()}
        kept |= {f"critic_optimizer.{key}": value for key, value in moments_of(self._critic_optimizer).items()}
        kept |= {f"deviation.{key}": value for key, value in statistics_of(self._deviation).items()}
        return kept | {"running": torch.tensor(self._running), "warm": torch.tensor(self._warm)}

    def restore_bonus(self, state: Mapping[str, torch.Tensor]) -> None:
        """Know what `bonus_state` said."""
        self._novelty.restore(beginning_with(state, "novelty."))
        self._critic.load_state_dict(beginning_with(state, "critic."))
        restore_moments(self._critic_optimizer, beginning_with(state, "critic_optimizer."))
        restore_statistics(self._deviation, beginning_with(state, "deviation."))
        self._running, self._warm = state["running"].numpy().copy(), bool(state["warm"])

    def _setup_learn(self, *given: Any, **named: Any) -> Any:
        if self._last_obs is None:
            self._novelty.begin_episodes()
        return super()._setup_learn(*given, **named)

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Collect as PPO does, then pay for what was new."""
        if not self._warm:
            self._warm_up(env)
        recorder = _StepRecorder(env, self._last_obs)
        if not super().collect_rollouts(recorder, callback, rollout_buffer, n_rollout_steps):  # type: ignore[arg-type]
            return False
        settings, ended = self.bonus_settings, np.array(recorder.ended)
        self._following = self._numbers(np.array(recorder.following))
        bonus = self._scaled(self._novelty.bonus(self._numbers(np.array(recorder.seen)), self._following, ended))
        assert isinstance(self._last_obs, np.ndarray)
        if settings.own_critic:
            self._seen = self._numbers(rollout_buffer.observations)
            values = self._values(np.concatenate([self._seen, self._numbers(self._last_obs[None])]))
            advantage = advantages(bonus, values, settings.bonus_gamma, self.gae_lambda)
            self._bonus_returns = advantage + values[:-1]
            rollout_buffer.advantages = (
                settings.reward_weight * rollout_buffer.advantages + settings.bonus_weight * advantage
            ).astype(np.float32)
        else:
            rollout_buffer.rewards += (settings.bonus_weight * bonus).astype(np.float32)
            with torch.no_grad():
                last = self.policy.predict_values(torch.as_tensor(self._last_obs))
            rollout_buffer.compute_returns_and_advantage(last_values=last, dones=ended[-1])
        return True

    def train(self) -> None:
        """Train as PPO does; then the critic of the bonus, and what tells the new from the known."""
        super().train()
        if self.bonus_settings.own_critic:
            self._train_critic()
        self._novelty.learn(self._following)

    def _train_critic(self) -> None:
        seen = torch.as_tensor(self._seen.reshape(-1, self._seen.shape[-1]))
        returns = torch.as_tensor(self._bonus_returns.reshape(-1), dtype=torch.float32)
        for _ in range(self.n_epochs):
            for part in torch.split(torch.randperm(len(seen)), self.batch_size):
                loss = (self._critic(seen[part]).flatten() - returns[part]).square().mean()
                self._critic_optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self._critic.parameters(), self.max_grad_norm)
                self._critic_optimizer.step()

    def _warm_up(self, env: VecEnv) -> None:
        recorder = _StepRecorder(env, self._last_obs)
        self.action_space.seed(int(torch.randint(2**31, ()).item()))  # from the generator that runs are repeated by
        for _ in range(self.bonus_settings.warm_up):
            actions = np.array([self.action_space.sample() for _ in range(env.num_envs)])
            self._last_obs, _, self._last_episode_starts, _ = recorder.step(actions)
        self.num_timesteps += self.bonus_settings.warm_up * env.num_envs
        self._novelty.learn(self._numbers(np.array(recorder.following)), warming_up=True)
        self._warm = True

    def _scaled(self, bonus: Floats) -> Floats:
        """Divided by the running deviation of discounted sums, which do not end with episodes."""
        sums = np.empty_like(bonus)
        for step, row in enumerate(bonus):
            self._running = self.bonus_settings.bonus_gamma * self._running + row
            sums[step] = self._running
        self._deviation.update(sums.reshape(-1))
        scaled: Floats = bonus / np.sqrt(self._deviation.var + 1e-8)
        return scaled

    def _numbers(self, observations: Any) -> Singles:
        """As (steps, environments, numbers); one that is a number becomes a row of zeros with a one in it."""
        given = np.asarray(observations)
        steps_and_envs = given.shape[:2]
        if isinstance(self.observation_space, spaces.Discrete):
            places = given.reshape(steps_and_envs).astype(np.int64) - int(self.observation_space.start)
            one_hot: Singles = np.eye(int(self.observation_space.n), dtype=np.float32)[places]
            return one_hot
        found: Singles = given.astype(np.float32).reshape(*steps_and_envs, -1)
        return found

    def _values(self, observations: Singles) -> Floats:
        with torch.no_grad():
            values = self._critic(torch.as_tensor(observations.reshape(-1, observations.shape[-1])))
        found: Floats = values.numpy().astype(np.float64).reshape(observations.shape[:2])
        return found

    def _excluded_save_params(self) -> list[str]:
        kept_out = ["_novelty", "_critic", "_critic_optimizer", "_deviation", "_seen", "_following", "_bonus_returns"]
        return [*super()._excluded_save_params(), *kept_out]


class PPOWithDistillation(IntrinsicPPO):
    """Random network distillation; the numbers are the published ones.

    All but the warm-up, which took 6,400 steps of 128 environments there.
    """

    bonus_settings = BonusSettings(Distillation, own_critic=True, bonus_weight=1.0, reward_weight=2.0, warm_up=256)


class PPOWithNoveltyDifference(IntrinsicPPO):
    """NovelD, which was published on another learner (IMPALA); its weight on PPO is ours."""

    bonus_settings = BonusSettings(NoveltyDifference, own_critic=False, bonus_weight=0.03, warm_up=256)


class PPOWithCounts(IntrinsicPPO):
    """A bonus of counts on equal observations; its weight is ours."""

    bonus_settings = BonusSettings(Counts, own_critic=False, bonus_weight=0.03)


def advantages(rewards: Floats, values: Floats, gamma: float, trace: float) -> Floats:
    """Generalised advantages of rewards that no episode ends, shape (T, E); ``values`` has one row more."""
    found, last = np.zeros_like(rewards), np.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        surprise = rewards[step] + gamma * values[step + 1] - values[step]
        last = surprise + gamma * trace * last
        found[step] = last
    return found


class _StepRecorder:
    """A vector environment that remembers what each step began in and led to, also where it ended an episode."""

    def __init__(self, env: VecEnv, first: Any) -> None:
        self._env, self.num_envs = env, env.num_envs
        self._scaling = unwrap_vec_normalize(env)
        self.seen: list[Any] = []
        self.following: list[Any] = []
        self.ended: list[Any] = []
        self._now = self._unscaled(first)

    def step(self, actions: Any) -> Any:
        observations, rewards, ended, infos = self._env.step(actions)
        self.seen.append(self._now)
        self._now = np.array(observations if self._scaling is None else self._scaling.get_original_obs())
        following = self._now.copy()
        for env in np.flatnonzero(ended):
            following[env] = self._unscaled(infos[env]["terminal_observation"])
        self.following.append(following)
        self.ended.append(ended)
        return observations, rewards, ended, infos

    def _unscaled(self, observations: Any) -> Any:
        return np.array(observations if self._scaling is None else self._scaling.unnormalize_obs(observations))
