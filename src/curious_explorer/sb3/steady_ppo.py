"""PPO that does not unlearn what succeeds: noise in advantages is never scaled up to the size of a reward.

Stable-Baselines3 divides the advantages of a minibatch by their deviation, so that they are of size one whatever they
mean. Where every episode succeeds and the critic knows it, they mean nothing: what is left is the critic's own error,
which then moves the policy as far in each update as a reward would. A policy that solved its task was lost that way
within a single update (measured; see docs/starts.md). So advantages are divided by the larger of

- their deviation, over the whole rollout, and
- a twentieth of the largest return that was met, which fades by a hundredth with each rollout.

Where an action changes a return by more than a twentieth of it, that is Stable-Baselines3's PPO.
"""

from __future__ import annotations

import numpy as np
from stable_baselines3 import PPO

from curious_explorer.arrays import Floats

LEAST_SHARE = 0.05
"""Of the largest return; advantages that deviate by less are not scaled up."""
FADING = 0.99
SMALLEST = 1e-8
"""As in Stable-Baselines3, where nothing was ever returned."""


class SteadyPPO(PPO):
    """PPO whose advantages are scaled once a rollout, and not up to more than they are worth."""

    largest_return = 0.0
    """Of the rollouts so far, fading."""

    def train(self) -> None:
        """Train as PPO does, on advantages that are scaled already."""
        normalized = self.normalize_advantage
        if normalized:
            buffer = self.rollout_buffer
            self.largest_return = max(FADING * self.largest_return, float(np.abs(buffer.returns).max()))
            buffer.advantages = scaled(buffer.advantages, LEAST_SHARE * self.largest_return)
        self.normalize_advantage = False  # for the minibatches of this update
        super().train()
        self.normalize_advantage = normalized


def scaled(advantages: Floats, least: float) -> Floats:
    """Advantages shifted to a mean of zero and divided by their deviation, or by ``least`` where that is more."""
    centred: Floats = advantages - advantages.mean()
    return centred / max(float(centred.std()), least, SMALLEST)
