"""What a policy is worth on a scale that environments share: 0 is earning nothing, 1 is the best possible.

score = (V - V_0) / (V* - V_0), values from the start, exact, normalised by 1 - gamma. V_0 is what a policy is worth
that never earns anything. Where rewards were rescaled into [0, 1], nothing is not zero, and the environment's
`reward_scale` says what it is; so the score is the fraction of V* in the units of the original problem. Where even the
best policy loses (CliffWalking costs 1 a step), V_0 is the value of the worst policy instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer.arrays import Floats
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP

SMALLEST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores policies of one MDP; see the top of this module."""

    mdp: FiniteMDP
    gamma: float
    best: float
    """V* from the start."""
    nothing: float
    """V_0 from the start."""

    @staticmethod
    def of(mdp: FiniteMDP, gamma: float) -> Scorer:
        """A scorer; raises ``ValueError`` if there is nothing to gain in the MDP."""
        best = float(mdp.start @ solve(mdp, gamma=gamma).values)
        nothing = -mdp.reward_scale.offset / mdp.reward_scale.factor
        if not 0.0 <= nothing < best:
            nothing = 1.0 - float(mdp.start @ solve(mdp, gamma=gamma, rewards=1.0 - mdp.rewards).values)
        if best - nothing <= SMALLEST_GAIN:
            raise ValueError(
                "every policy is worth the same from the start, so there is nothing to compare; choose an environment "
                "in which a reward can be reached"
            )
        return Scorer(mdp, gamma, best, nothing)

    def __call__(self, policy: Floats) -> float:
        """The score of a policy of shape (S, A)."""
        value = float(self.mdp.start @ evaluate(self.mdp, policy, gamma=self.gamma))
        return (value - self.nothing) / (self.best - self.nothing)


def reachable(mdp: FiniteMDP) -> NDArray[np.bool_]:
    """Which states can be reached from the start, shape (S,)."""
    rows = mdp.transitions
    pair = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    starts = np.flatnonzero(mdp.start)
    origin = np.concatenate([pair // mdp.num_actions, np.full(len(starts), mdp.num_states)])
    target = np.concatenate([rows.indices, starts])
    size = mdp.num_states + 1  # one node more, which leads to every start
    graph = sparse.csr_array((np.ones(len(origin)), (origin, target)), shape=(size, size))
    found = np.zeros(size, dtype=np.bool_)
    found[csgraph.breadth_first_order(graph, mdp.num_states, return_predecessors=False)] = True
    return found[:-1]
