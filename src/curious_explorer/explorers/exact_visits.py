"""Exact visitation in place of sampled visits, for whoever has the MDP."""

from __future__ import annotations

from dataclasses import dataclass

from curious_explorer.arrays import Floats
from curious_explorer.exact import visitation
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.worlds.world import World


@dataclass(frozen=True)
class ExactVisits:
    """D_n by solving for it; takes no step."""

    mdp: FiniteMDP

    def limited(self, max_samples: int) -> ExactVisits:
        """The same: there is no step to limit."""
        return self

    def __call__(
        self, world: World, policy: Floats, reset: ResetModel | None, occupancy: Floats | None, gamma: float
    ) -> Floats:
        """The exact visitation."""
        start = self.mdp.start if reset is None else reset.distribution(self.mdp)
        return visitation(self.mdp, policy, gamma=gamma, start=start / start.sum())
