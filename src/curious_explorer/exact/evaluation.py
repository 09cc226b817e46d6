"""Policy evaluation: what a policy is worth from every state.

Values are normalised: v(s) = (1 - gamma) E[sum_t gamma^t r(s_t, a_t) | s_0 = s], so that rewards in [0, 1] give values
in [0, 1]. Conditioning on the first step gives

    v = (1 - gamma) r_pi + gamma P_pi v,

whose right-hand side contracts by gamma in the sup norm. With d the visitation from mu, v(mu) = sum_s d(s) r_pi(s). The
system is solved by one of the methods of `linear` and returned when its residual passes the rule in `report`, whose
scale here is the range of the rewards. Rewards that may be negative are shifted first, which shifts every value by the
same constant.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.exact.linear import METHODS, System, checked_report
from curious_explorer.exact.policy_chain import policy_chain
from curious_explorer.exact.report import ExactReport, check_method
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_finite, check_gamma, check_policy


def evaluate(mdp: FiniteMDP, policy: ArrayLike, *, gamma: float, rewards: ArrayLike | None = None) -> Floats:
    """The normalised value of a policy in every state, shape (S,).

    Args:
        policy: action probabilities, shape (S, A).
        rewards: a finite (S, A) table to use in place of the MDP's own rewards.
    """
    return evaluation_report(mdp, policy, gamma=gamma, rewards=rewards).values


def evaluation_report(
    mdp: FiniteMDP,
    policy: ArrayLike,
    *,
    gamma: float,
    rewards: ArrayLike | None = None,
    method: str | None = None,
) -> ExactReport:
    """`evaluate` with its method (one of `linear.METHODS`, chosen if None), residual and error bound."""
    gamma = check_gamma(gamma)
    table = check_policy(policy, mdp.num_states, mdp.num_actions)
    check_method(method, METHODS)
    positive, shift = shifted_rewards(check_reward_table(rewards, mdp))
    source = (1.0 - gamma) * np.einsum("sa,sa->s", table, positive) / table.sum(axis=1)
    scale = float(positive.max())
    found = checked_report(
        System(policy_chain(mdp, table), source, gamma, scale, transposed=False), method, "evaluation"
    )
    return replace(found, values=found.values + shift) if shift else found


def check_reward_table(rewards: ArrayLike | None, mdp: FiniteMDP) -> Floats:
    """The MDP's own rewards, or a finite (S, A) table given in their place; any range will do."""
    if rewards is None:
        return mdp.rewards
    return check_finite(rewards, (mdp.num_states, mdp.num_actions), "rewards")


def shifted_rewards(rewards: Floats) -> tuple[Floats, float]:
    """Rewards without negative ones, and the constant to add to normalised values to undo the shift.

    Values are normalised, so a constant added to every reward is added to every value. With rewards that are not
    negative the methods never cancel, and small values keep their digits.
    """
    shift = min(0.0, float(rewards.min()))
    return (rewards - shift if shift < 0.0 else rewards), shift
