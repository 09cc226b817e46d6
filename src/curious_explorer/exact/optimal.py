"""Optimal values, action values and policies.

Values are normalised as in `evaluation`. The optimal ones are the fixed point of

    v(s) = max_a q(s, a),      q(s, a) = (1 - gamma) r(s, a) + gamma sum_{s'} P(s'|s, a) v(s'),

a contraction by gamma in the sup norm. Methods, in the order in which they are considered:

| method                    | when                                                                          |
|---------------------------|-------------------------------------------------------------------------------|
| backward sweep            | no cycles but self-loops: each state once, successors first; exact            |
| policy iteration          | a narrow band, or up to about 126 states: policies evaluated by elimination   |
| modified policy iteration | everything else, while it converges: stopped by MacQueen's bounds             |
| policy iteration          | slow ones whose band is narrow once states are reordered                      |
| sparse policy iteration   | other slow ones: policies evaluated by `linear` (LAPACK, Krylov)              |

The first two are right to a relative error in every single value, so tiny values are as good as large ones. Whatever
the method, the Bellman residual is computed afresh and must pass the rule in `report`.

**Ties.** Actions whose q is within 1e-12 * q(best) + 2 * (error bound) of the best one count as tied and share the
probability evenly; for the methods that are exact the second term is dropped. Magnitudes are those of the rewards
shifted to be non-negative, so that a tie does not depend on where zero is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.exact.linear import (
    AFFORDABLE_ELIMINATION,
    CHEAP_ELIMINATION,
    LAST_RESORT_ELIMINATION,
    LAST_RESORT_SWEEPS,
    System,
    fits_band,
    narrowest_band,
    solve_system,
)
from curious_explorer.exact.policy_chain import Rows, check_reward_table, mdp_rows, shifted_rewards
from curious_explorer.exact.report import check_method, frozen, is_accurate, require_accurate, residual_target
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_gamma

METHODS = ("backward sweep", "policy iteration", "modified policy iteration", "sparse policy iteration")
EXACT_METHODS = ("backward sweep", "policy iteration")
RELATIVE_TIE = 1e-12
"""Action values this close, relative to their size, are tied: a thousand times the rounding of a long sum."""
PATIENCE = 1000
"""Sweeps (mostly of one action per state) before modified policy iteration counts as slow."""
POLICY_LIMIT = 10_000
SPARSE_POLICY_LIMIT = 200


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimal solution.

    Attributes:
        values: optimal normalised values, shape (S,).
        policy: an optimal policy, ties split evenly, shape (S, A).
        q: optimal normalised action values, shape (S, A).
        method: the method that found it.
        residual: sup norm of the Bellman residual.
        error_bound: residual / (1 - gamma), a bound on the error of any value.
        iterations: sweeps or policies evaluated.
    """

    values: Floats
    policy: Floats
    q: Floats
    method: str
    residual: float
    error_bound: float
    iterations: int


def solve(mdp: FiniteMDP, *, gamma: float, rewards: ArrayLike | None = None, method: str | None = None) -> Solution:
    """Optimal values and an optimal policy.

    Args:
        mdp: the MDP.
        gamma: discount, in [0, 1).
        rewards: a finite (S, A) table to use in place of the MDP's own rewards.
        method: one of `METHODS`, or None to let structure, size and progress decide.
    """
    from curious_explorer.exact.optimal_kernels import split_ties

    gamma = check_gamma(gamma)
    check_method(method, METHODS)
    positive, shift = shifted_rewards(check_reward_table(rewards, mdp))
    problem = Problem(mdp_rows(mdp), ((1.0 - gamma) * positive).ravel(), gamma, float(positive.max()))
    values, used, iterations = problem.solve(method)
    q, residual = problem.action_values(values)
    require_accurate("solve", used, residual, gamma, problem.scale)
    error = 0.0 if used in EXACT_METHODS else residual / (1.0 - gamma)
    policy = split_ties(q, mdp.num_actions, RELATIVE_TIE, 2.0 * error)
    if shift:
        values, q = values + shift, q + shift
    return Solution(values, policy, q.reshape(policy.shape), used, residual, residual / (1.0 - gamma), iterations)


class Problem:
    """The optimality equation of one MDP with non-negative rewards, solved by whichever method is asked for."""

    def __init__(self, rows: Rows, source: Floats, gamma: float, scale: float) -> None:
        self.rows = rows
        self.source = source
        self.gamma = gamma
        self.scale = scale

    def solve(self, method: str | None) -> tuple[Floats, str, int]:
        """Optimal values, the method used, and its iterations."""
        return self._choose() if method is None else self._forced(method)

    def action_values(self, values: Floats) -> tuple[Floats, float]:
        """The action values that belong to values, one for each row, and the Bellman residual."""
        from curious_explorer.exact.optimal_kernels import bellman_residual
        from curious_explorer.exact.span_kernels import apply_rows

        q = apply_rows(*self.rows.unsigned(), self.source, self.gamma, values)
        return q, bellman_residual(q, values)

    def _choose(self) -> tuple[Floats, str, int]:
        values = self._backward_sweep()
        if values is not None:
            return values, "backward sweep", 1
        if fits_band(self.rows, CHEAP_ELIMINATION):
            values, count = self._policy_iteration(self.rows, self.source)
            return values, "policy iteration", count
        values, count = self._modified_policy_iteration(PATIENCE)
        if self._accurate(values):
            return values, "modified policy iteration", count
        reordered = self._reordered_policy_iteration(AFFORDABLE_ELIMINATION)
        if reordered is not None:
            return reordered[0], "policy iteration", reordered[1]
        values, count = self._sparse_policy_iteration(values)
        return values, "sparse policy iteration", count

    def _forced(self, method: str) -> tuple[Floats, str, int]:
        if method == "backward sweep":
            swept = self._backward_sweep()
            if swept is None:
                raise ValueError("method 'backward sweep' needs an MDP without cycles (self-loops apart)")
            return swept, method, 1
        if method == "policy iteration":
            reordered = self._reordered_policy_iteration(LAST_RESORT_ELIMINATION)
            if reordered is None:
                raise ValueError("method 'policy iteration' needs a narrow band; this MDP has none, even reordered")
            return reordered[0], method, reordered[1]
        if method == "modified policy iteration":
            values, count = self._modified_policy_iteration(LAST_RESORT_SWEEPS)
        else:
            values, count = self._sparse_policy_iteration(np.zeros(self.rows.num_states))
        return values, method, count

    def _accurate(self, values: Floats) -> bool:
        return is_accurate(self.action_values(values)[1], self.gamma, self.scale)

    def _backward_sweep(self) -> Floats | None:
        from curious_explorer.exact.kernels import successors_first
        from curious_explorer.exact.optimal_kernels import acyclic_values

        indptr, indices, data, num_actions = self.rows
        order = successors_first(indptr, indices, num_actions)
        return acyclic_values(indptr, indices, data, self.source, order, self.gamma) if order.size else None

    def _policy_iteration(self, rows: Rows, source: Floats) -> tuple[Floats, int]:
        from curious_explorer.exact.kernels import bandwidths
        from curious_explorer.exact.optimal_kernels import policy_iteration

        indptr, indices, data, num_actions = rows
        lower, upper = bandwidths(indptr, indices, num_actions)
        return policy_iteration(indptr, indices, data, source, rows.num_states, self.gamma, lower, upper, POLICY_LIMIT)

    def _reordered_policy_iteration(self, limit: float) -> tuple[Floats, int] | None:
        rows, order = narrowest_band(self.rows)
        if not fits_band(rows, limit):
            return None
        source = self.source.reshape(-1, rows.num_actions)[order].ravel()
        values, count = self._policy_iteration(rows, source)
        restored = np.empty_like(values)
        restored[order] = values
        return restored, count

    def _modified_policy_iteration(self, budget: int) -> tuple[Floats, int]:
        from curious_explorer.exact.span_kernels import modified_policy_iteration

        target = residual_target(self.gamma, self.scale)
        return modified_policy_iteration(
            *self.rows.unsigned(), self.source, self.rows.num_states, self.gamma, target, budget
        )

    def _sparse_policy_iteration(self, values: Floats) -> tuple[Floats, int]:
        """Policy iteration in which `linear` evaluates; improvement sweeps run both ways as in the compiled one."""
        from curious_explorer.exact.optimal_kernels import FINE_GAIN, improve_in_place
        from curious_explorer.exact.span_kernels import apply_rows, select_rows, take_best

        indptr, indices, data, _ = self.rows
        unsigned = self.rows.unsigned()
        greedy_rows = np.empty(values.size, np.int32)
        action_values = apply_rows(*unsigned, self.source, self.gamma, values)
        take_best(action_values, values, np.empty_like(values), greedy_rows)
        count, switched = 0, True
        while switched and count < SPARSE_POLICY_LIMIT and not self._accurate(values):
            count += 1
            chain = select_rows(*unsigned, self.source, greedy_rows)
            rows = Rows(frozen(chain[0].view(np.int32)), frozen(chain[1].view(np.int32)), frozen(chain[2]), 1)
            values = solve_system(System(rows, chain[3], self.gamma, self.scale, transposed=False)).values
            improved = values.copy()
            switched = False
            for backwards in (True, False):
                switched |= improve_in_place(
                    indptr, indices, data, self.source, greedy_rows, improved, self.gamma, FINE_GAIN, backwards
                )
        return values, count
