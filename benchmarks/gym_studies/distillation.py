"""Random network distillation (Burda et al. 2018) around any vector environment of Stable-Baselines3.

A network that is never trained turns observations into features; another learns to predict them. Where it still fails,
the observation is new, and its error is paid as a bonus, divided by the running deviation of discounted bonuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch import nn

FEATURES = 64
TRAIN_EVERY = 128  # steps of the vector environment
CLIP = 5.0  # of the normalised observation, as published


class DistillationBonus(VecEnvWrapper):
    """Adds the bonus to every reward."""

    def __init__(
        self, venv: VecEnv, *, gamma: float, seed: int, scale: float = 0.1, learning_rate: float = 1e-3
    ) -> None:
        super().__init__(venv)
        size = int(np.prod(venv.observation_space.shape or (1,)))
        torch.manual_seed(seed)
        self._target = _network(size)
        self._predictor = _network(size)
        self._optimizer = torch.optim.Adam(self._predictor.parameters(), lr=learning_rate)
        self._gamma, self._scale = gamma, scale
        self._running = np.zeros(venv.num_envs)
        self._deviation = RunningMeanStd(shape=())
        self._seen: list[torch.Tensor] = []

    def reset(self) -> Any:
        """Begin everywhere."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Step, and pay for what is new."""
        observations, rewards, dones, infos = self.venv.step_wait()
        assert isinstance(observations, np.ndarray)
        flat = np.clip(observations.reshape(len(observations), -1), -CLIP, CLIP)
        batch = torch.as_tensor(flat, dtype=torch.float32)
        with torch.no_grad():
            bonus = (self._predictor(batch) - self._target(batch)).square().mean(dim=1).numpy()
        self._running = self._gamma * self._running + bonus
        self._deviation.update(self._running)
        self._seen.append(batch)
        if len(self._seen) == TRAIN_EVERY:
            self._train()
        return observations, rewards + self._scale * bonus / np.sqrt(self._deviation.var + 1e-8), dones, infos

    def _train(self) -> None:
        seen = torch.cat(self._seen)
        self._seen.clear()
        order = torch.randperm(len(seen))
        for first in range(0, len(seen), 256):
            part = order[first : first + 256]
            error = (self._predictor(seen[part]) - self._target(seen[part]).detach()).square().mean()
            self._optimizer.zero_grad()
            error.backward()
            self._optimizer.step()


def _network(size: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, FEATURES))
