"""PC-PG: a cover of policies that grows towards pairs which it has hardly tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats, Mask
from curious_explorer.explorers.policy_cover import Cover, CoverExplorer
from curious_explorer.learners.optimizer import Task
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import Reward


@dataclass(frozen=True, kw_only=True)
class PCPG(CoverExplorer):
    """Policy cover guided policy gradient (Agarwal, Henaff, Kakade and Sun 2020), tabular.

    With one feature for each pair their elliptical bonus is a matter of counting: a pair is known when the cover's
    visitation d_0(s,a) + d_1(s,a) + ... exceeds 1 / beta - lambda. Unknown pairs pay the most, one, in place of their
    own reward where that is less (published: a bonus of 1 / (1 - gamma) added to it), all others their own, and
    episodes begin where the policies of the cover stop, each as likely as any other.
    """

    rounds: int = 30
    """How many policies join the cover. Chosen with `explore_share` by ``benchmarks.cover_settings``, on cct and dcl of
    depths 10, 15, 18 and 20: 30 and 0.6 solve 153 of 160 runs, 30 and 0.7 as many, 30 and 0.8 148, 20 and 0.6 134, 10
    and 0.6 115."""
    known_mass: float | None = None
    """1 / beta - lambda, the visitation that makes a pair known. None takes 1 / (4 S A): a quarter of an even share of
    one policy's visitation (practical; published only as a power of the accuracy, far smaller)."""

    def known(self, cover: Cover) -> Mask:
        """Which pairs are known, shape (S, A)."""
        mass = cover.pair_visitation()
        return mass > (1.0 / (4.0 * mass.size) if self.known_mass is None else self.known_mass)

    def round_reward(self, cover: Cover, task: Task) -> Reward:
        """One for an unknown pair, and the extrinsic reward for a known one."""
        bonus = np.where(self.known(cover), 0.0, 1.0)
        if task.reward is None:
            return Reward(bonus, "max")
        return Reward(np.maximum(bonus, task.reward.table), task.reward.combine)

    def round_reset(self, cover: Cover) -> RollIn:
        """Where the policies of the cover stop."""
        return cover.roll_in(0.0)

    def new_weights(self, cover: Cover) -> Floats:
        """All alike."""
        return np.full(len(cover.policies), 1.0 / len(cover.policies))
