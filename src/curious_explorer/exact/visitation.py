"""Discounted state visitation: where a policy spends its time.

    d(s) = (1 - gamma) sum_t gamma^t P(s_t = s),      s_0 ~ mu,  s_{t+1} ~ P_pi(.|s_t)

is a distribution over states: the law of the state in which a walk is found that stops with probability 1 - gamma at
each step (Algorithm 1 of the paper). Conditioning on the first step gives the linear system

    d = (1 - gamma) mu + gamma P_pi^T d,

whose right-hand side contracts by gamma in the L1 norm. It is solved by one of the methods of `linear`, and returned
when its L1 residual passes the rule in `report`. A terminal state is a self-loop, so it collects the time after an
episode's end.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.exact.linear import METHODS, System, checked_report
from curious_explorer.exact.policy_chain import policy_chain
from curious_explorer.exact.report import ExactReport, check_method
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import as_distribution, check_gamma, check_policy


def visitation(mdp: FiniteMDP, policy: ArrayLike, *, gamma: float, start: int | ArrayLike | None = None) -> Floats:
    """The discounted visitation of a policy, shape (S,), summing to one.

    Args:
        policy: action probabilities, shape (S, A).
        start: a state or a distribution mu; the MDP's own start if None.
    """
    return visitation_report(mdp, policy, gamma=gamma, start=start).values


def visitation_report(
    mdp: FiniteMDP,
    policy: ArrayLike,
    *,
    gamma: float,
    start: int | ArrayLike | None = None,
    method: str | None = None,
) -> ExactReport:
    """`visitation` with its method (one of `linear.METHODS`, chosen if None), L1 residual and error bound."""
    gamma = check_gamma(gamma)
    table = check_policy(policy, mdp.num_states, mdp.num_actions)
    check_method(method, METHODS)
    source = (1.0 - gamma) * start_distribution(mdp, start)
    return checked_report(System(policy_chain(mdp, table), source, gamma, 1.0, transposed=True), method, "visitation")


def start_distribution(mdp: FiniteMDP, start: int | ArrayLike | None) -> Floats:
    """The start given, or the MDP's own, summing to one without rounding that a long horizon would amplify."""
    mu = mdp.start if start is None else as_distribution(start, mdp.num_states, "start")
    normalised: Floats = mu / mu.sum()
    return normalised
