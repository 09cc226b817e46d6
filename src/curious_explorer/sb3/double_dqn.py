"""DQN with double targets (van Hasselt, Guez and Silver 2016).

The network that is learned says which action is best in the next state, and the older copy what it is worth, so that an
action is not chosen for having been overestimated. Stable-Baselines3's DQN takes the largest value of the copy, which
goes wrong first where most steps are of somebody else's exploring. All else is as there, n-step targets included.
"""

from __future__ import annotations

import numpy as np
import torch
from stable_baselines3 import DQN
from torch.nn import functional


class DoubleDQN(DQN):
    """DQN whose targets are double."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take so many gradient steps from the replay buffer."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            assert self.replay_buffer is not None
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            discounts = self.gamma if batch.discounts is None else batch.discounts
            with torch.no_grad():
                best = self.q_net(batch.next_observations).argmax(dim=1, keepdim=True)
                following = self.q_net_target(batch.next_observations).gather(1, best)
                targets = batch.rewards + (1.0 - batch.dones) * discounts * following
            values = self.q_net(batch.observations).gather(1, batch.actions.long())
            loss = functional.smooth_l1_loss(values, targets)
            losses.append(loss.item())
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))
