"""How to reach a state from rho by steps alone: a mixture of chains of policies, and of ways to chosen states.

Sampling Algorithm 2's mu_n needs no access to the simulator's state. Restart from rho; with probability 1/2 stop there;
otherwise sample mu_{n-1} in the same way and walk pi_n with geometric stopping. Unrolled, that is a choice among
chains ``pi_i, pi_{i+1}, ..., pi_n`` (or none), each policy walked after the other from rho. A `RollIn` is such a
mixture: the policies in order, and for each chain its weight and the range of policies it walks. `visit` appends one
more policy, which every chain walks at its end.

A chain may also begin by going to a chosen state (see `targets`): then it walks its policies, if it has any, from
there. A roll-in that does not arrive is begun again from rho, with another chain drawn, and all steps are counted. So
the state that a roll-in ends in is drawn from the mixture *given* arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curious_explorer.arrays import Floats, Integers
from curious_explorer.validation import as_distribution, check_walk_gamma
from curious_explorer.worlds.policies import KnownPolicy, ObservationPolicy, Policy, frozen
from curious_explorer.worlds.targets import Targets

NO_GOAL = -1


@dataclass(frozen=True, eq=False)
class RollIn:
    """A mixture of chains of policies, walked from rho.

    Args:
        policies: in the order in which they are walked: tables of shape (S, A), copied unless they are frozen already,
            or policies that see observations.
        gammas: the discount of each policy's walk, which stops with probability ``1 - gamma`` before every step.
        weights: the probability of each chain, shape (C,).
        chains: shape (C, 2): the half-open range of policies that a chain walks; an empty one is rho itself.
        tail: how many policies at the end of ``policies`` every chain walks after its own range.
        targets: states that chains may begin by going to.
        goals: shape (C,): the number of the target that each chain goes to first, or `NO_GOAL`; none by default.
    """

    policies: tuple[KnownPolicy, ...]
    gammas: tuple[float, ...]
    weights: Floats
    chains: NDArray[np.int64]
    tail: int = 0
    targets: Targets | None = None
    goals: Integers | None = None

    def __post_init__(self) -> None:
        policies = (
            p if type(p) is not np.ndarray and isinstance(p, ObservationPolicy) else frozen(p) for p in self.policies
        )
        object.__setattr__(self, "policies", tuple(policies))
        if len(self.gammas) != len(self.policies):
            raise ValueError(f"{len(self.gammas)} gammas for {len(self.policies)} policies; expected one for each")
        for gamma in set(self.gammas):
            check_walk_gamma(gamma)
        if self.chains.ndim != 2 or self.chains.shape[1] != 2 or len(self.chains) == 0:
            raise ValueError(f"chains has shape {self.chains.shape}, expected (C, 2) with C at least 1")
        as_distribution(self.weights, len(self.chains), "weights")
        first, stop = self.chains.T
        last = len(self.policies) - self.tail
        if not (0 <= self.tail <= len(self.policies) and ((first >= 0) & (first <= stop) & (stop <= last)).all()):
            raise ValueError(f"chains must be ranges within the {last} policies that come before the tail")
        goals = np.full(len(self.chains), NO_GOAL) if self.goals is None else np.array(self.goals, dtype=np.int64)
        object.__setattr__(self, "goals", goals)
        known = 0 if self.targets is None else len(self.targets)
        if goals.shape != (len(self.chains),) or (goals < NO_GOAL).any() or (goals >= known).any():
            raise ValueError(f"goals must say for each of {len(self.chains)} chains which of {known} targets it has")

    @staticmethod
    def from_start() -> RollIn:
        """The roll-in that takes no step: rho itself."""
        return _FROM_START

    @staticmethod
    def mixture(policies: Sequence[Policy], gamma: float, weights: ArrayLike, chains: ArrayLike) -> RollIn:
        """A mixture of chains that all use one discount."""
        ranges = np.array(chains, dtype=np.int64).reshape(-1, 2)
        return RollIn(tuple(policies), (gamma,) * len(policies), np.array(weights, dtype=np.float64), ranges)

    def with_start_share(self, share: float) -> RollIn:
        """The same mixture with so much of it at rho; as it is, where none or all of it is there."""
        at_start = (self.chains[:, 0] == self.chains[:, 1]) & (self.goals == NO_GOAL)
        now = float(self.weights[at_start].sum()) / float(self.weights.sum())
        if not 0.0 < now < 1.0:
            return self
        factors = np.where(at_start, share / now, (1.0 - share) / (1.0 - now))
        return replace(self, weights=self.weights * factors / self.weights.sum())

    def draw_chain(self, generator: np.random.Generator) -> tuple[int, list[tuple[KnownPolicy, float]]]:
        """A chain drawn by the weights: its goal, and its policies, with discounts, in the order of walking."""
        assert self.goals is not None
        chain = int(generator.choice(len(self.weights), p=self.weights / self.weights.sum()))
        first, stop = self.chains[chain]
        tail = len(self.policies) - self.tail
        walked = (*range(first, stop), *range(tail, len(self.policies)))
        return int(self.goals[chain]), [(self.policies[i], self.gammas[i]) for i in walked]

    def then(self, policy: Policy, gamma: float) -> RollIn:
        """Sample this, then walk ``policy`` with geometric stopping: the paper's visit(policy, mu)."""
        policies, gammas = (*self.policies, policy), (*self.gammas, float(gamma))
        return RollIn(policies, gammas, self.weights, self.chains, self.tail + 1, self.targets, self.goals)


_FROM_START = RollIn.mixture((), 0.0, [1.0], [(0, 0)])
