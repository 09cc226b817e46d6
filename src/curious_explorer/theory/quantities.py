"""Exact quantities that say how hard an MDP is to explore, and how well a distribution covers it.

With d_mu^pi the discounted visitation of `curious_explorer.exact`, rho the start and pi* an optimal policy:

    exploitative factor      e = sum_s max_pi d_rho^pi(s)               between 1 and |S|
    mismatch coefficient     max_s d_rho^{pi*}(s) / mu(s)               at least 1; infinite where mu misses pi*
    worst mismatch           max_s max_pi d_rho^pi(s) / mu(s)           bounds the mismatch of every policy
    effective hitting time   t(x, s) = log_gamma max_pi E_x[gamma^T_s]  steps; infinite where s cannot be reached

T_s is the first time in s. Since a visit of s needs to reach s first, v*_s(x) = max_pi E_x[gamma^T_s] v*_s(s), where
v*_s is the optimal value for the reward 1 in s: hitting times come from the same equations as the exploitative factor.
Discounting keeps them finite where a trap makes the expected hitting time of every policy infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.exact import max_visitation, visitation
from curious_explorer.exact.max_visitation import MOST_STATES
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.theory.checks import check_states
from curious_explorer.theory.reports import Report, figure
from curious_explorer.validation import as_distribution, check_gamma

MOST_PAIRS = 2_000
"""The most states for which hitting times between all pairs are computed unless targets are named."""


def exploitative_factor(mdp: FiniteMDP, *, gamma: float) -> float:
    """The exploitative factor e = sum_s max_pi d_rho^pi(s), exactly; one optimality problem for each state.

    Refused above 10,000 states; `exploitative_factor_bound` gives an interval at any size.
    """
    if mdp.num_states > MOST_STATES:
        raise ValueError(
            f"the exact exploitative factor of {mdp.num_states} states means as many optimality problems, which is "
            f"refused above {MOST_STATES}; use theory.exploitative_factor_bound(mdp, gamma=...)"
        )
    return float(max_visitation(mdp, gamma=gamma).sum())


def reset_distribution(mdp: FiniteMDP, reset: ResetModel | ArrayLike | int | None) -> Floats:
    """The distribution over states behind a reset model, a state or a table; rho for None."""
    if reset is None:
        rho: Floats = mdp.start / mdp.start.sum()
        return rho
    if isinstance(reset, ResetModel):
        return reset.distribution(mdp)
    return as_distribution(reset, mdp.num_states, "reset")


def mismatch_coefficient(
    mdp: FiniteMDP,
    reset: ResetModel | ArrayLike | int | None,
    *,
    gamma: float,
    rewards: ArrayLike | None = None,
    policy: ArrayLike | None = None,
) -> float:
    """max_s d_rho^{pi*}(s) / mu(s), infinite where mu misses a state that pi* visits.

    Args:
        mdp: the MDP.
        reset: mu: a reset model, a distribution, a state, or None for rho. A reset model keeps its own discount.
        gamma: the discount of d and of pi*.
        rewards: an (S, A) table in place of the MDP's own, for which pi* is optimal.
        policy: a policy in place of pi*. By default pi* splits ties evenly.
    """
    gamma = check_gamma(gamma)
    mu = reset_distribution(mdp, reset)
    table = solve(mdp, gamma=gamma, rewards=rewards).policy if policy is None else policy
    return largest_ratio(visitation(mdp, table, gamma=gamma), mu)


def worst_mismatch(mdp: FiniteMDP, reset: ResetModel | ArrayLike | int | None, *, gamma: float) -> float:
    """max_s max_pi d_rho^pi(s) / mu(s), which no policy's mismatch exceeds."""
    return largest_ratio(max_visitation(mdp, gamma=gamma), reset_distribution(mdp, reset))


def largest_ratio(visits: Floats, mu: Floats) -> float:
    """max_s visits(s) / mu(s), states that are not visited left out."""
    visited = visits > 0.0
    with np.errstate(divide="ignore", over="ignore"):
        return float((visits[visited] / mu[visited]).max())


@dataclass(frozen=True, eq=False)
class Coverage(Report):
    """How well a distribution covers a set of states."""

    states: int
    """How many states were asked about: those that can be reached, unless said otherwise."""
    covered: int
    """How many of them have at least the floor."""
    floor: float
    smallest: float
    """The least probability among them."""
    effective_states: float
    """exp(entropy): as many states under the uniform distribution would be as spread out."""

    def _title(self) -> str:
        return "Coverage"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("states covered", f"{self.covered} of {self.states} have probability {figure(self.floor)} or more"),
            ("smallest probability", figure(self.smallest)),
            ("effective number of states", figure(self.effective_states)),
        ]


def coverage(
    mdp: FiniteMDP,
    reset: ResetModel | ArrayLike | int | None,
    *,
    floor: float | None = None,
    states: ArrayLike | None = None,
) -> Coverage:
    """How well a reset model or distribution covers the states that can be reached.

    Args:
        mdp: the MDP.
        reset: a reset model, a distribution, a state, or None for rho.
        floor: what counts as covered; half the uniform share, 1 / (2 |S|), if None.
        states: a mask or indices of the states of interest; those reachable from rho if None.
    """
    mu = reset_distribution(mdp, reset)
    mask = reachable(mdp) if states is None else check_states(states, mdp.num_states, "states")
    if not mask.any():
        raise ValueError("states names no state, expected at least one")
    least = 1.0 / (2.0 * mdp.num_states) if floor is None else float(floor)
    positive = mu[mu > 0.0]
    return Coverage(
        states=int(mask.sum()),
        covered=int((mu[mask] >= least).sum()),
        floor=least,
        smallest=float(mu[mask].min()),
        effective_states=float(np.exp(-(positive * np.log(positive)).sum())),
    )


def distances(mdp: FiniteMDP) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The fewest steps from the support of rho to each state, shape (S,); -1 where there is no path."""
    from curious_explorer.theory.reach_kernels import breadth_first

    matrix = mdp.transitions
    starts = np.flatnonzero(mdp.start > 0.0)
    return breadth_first(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), mdp.num_actions, starts)


def reachable(mdp: FiniteMDP) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which states some policy reaches from rho, shape (S,)."""
    return distances(mdp) >= 0


def hitting_times(mdp: FiniteMDP, *, gamma: float, targets: ArrayLike | None = None) -> Floats:
    """Effective hitting times t(x, s) of every target from every state, shape (S, targets); infinite if unreachable.

    Args:
        mdp: the MDP.
        gamma: the discount, in (0, 1).
        targets: state indices; all states if None, which is refused above 2,000.
    """
    gamma = check_gamma(gamma)
    if gamma == 0.0:
        raise ValueError("gamma is 0, expected a discount in (0, 1): nothing is hit after the first step otherwise")
    if targets is None:
        if mdp.num_states > MOST_PAIRS:
            raise ValueError(
                f"hitting times between all pairs of {mdp.num_states} states are refused above {MOST_PAIRS}; name the "
                "states of interest with targets=[...]"
            )
        targets = np.arange(mdp.num_states)
    chosen = np.flatnonzero(check_states(targets, mdp.num_states, "targets"))
    times = np.empty((mdp.num_states, chosen.size))
    rewards = np.zeros((mdp.num_states, mdp.num_actions))
    for slot, target in enumerate(chosen):
        rewards[target] = 1.0
        values = solve(mdp, gamma=gamma, rewards=rewards).values
        rewards[target] = 0.0
        with np.errstate(divide="ignore"):
            times[:, slot] = np.maximum(0.0, np.log(np.minimum(values / values[target], 1.0)) / np.log(gamma))
    return times
