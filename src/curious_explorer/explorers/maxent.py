"""MaxEnt: a cover of policies whose mixture has the largest entropy of visits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.policy_cover import Cover, CoverExplorer
from curious_explorer.learners.optimizer import Task
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import Reward


@dataclass(frozen=True, kw_only=True)
class MaxEnt(CoverExplorer):
    """Provably efficient maximum entropy exploration (Hazan, Kakade, Singh and Van Soest 2019).

    Frank-Wolfe steps towards the mixture of policies whose visitation has the largest entropy: the next policy learns,
    from the start, for the reward -ln(d(s) + sigma), d being the mixture's visitation, and joins with weight `rate`.
    """

    AT_MOST_ONE: ClassVar[tuple[str, ...]] = ("sigma", "rate")

    rounds: int = 10
    """How many policies join the mixture. Chosen with `explore_share` by ``benchmarks.cover_settings``, on cct and dcl
    of depths 10, 15, 18 and 20: 10 and 0.6 solve 64 of 160 runs, 20 and 0.8 63, 10 and 0.5 59, 30 and 0.5 58."""
    sigma: float = 0.001
    """What is added to visitation before the logarithm (published: of the order of the accuracy; ours)."""
    rate: float | None = None
    """The weight of a policy when it joins, as published; None makes all count alike: 1 / (t + 1) in round t."""

    def entropy_reward(self, visitation: Floats) -> Floats:
        """-ln(d + sigma), shifted and scaled so that zero visitation pays one and all of it zero, shape (S,)."""
        most, least = -np.log(self.sigma), -np.log(1.0 + self.sigma)
        reward: Floats = np.clip((-np.log(visitation + self.sigma) - least) / (most - least), 0.0, 1.0)
        return reward

    def round_reward(self, cover: Cover, task: Task) -> Reward:
        """More for a state the less the mixture goes there."""
        return Reward.of_states(self.entropy_reward(cover.state_visitation()), cover.policies[0].shape[1])

    def round_reset(self, cover: Cover) -> RollIn:
        """The start, as published."""
        return RollIn.from_start()

    def new_weights(self, cover: Cover) -> Floats:
        """The new policy takes its share from all others."""
        count = len(cover.policies)
        rate = 1.0 / count if self.rate is None or count == 1 else self.rate
        return np.append((1.0 - rate) * cover.weights, rate)
