"""Optimal values, action values and policies.

Values are normalised as in `evaluation`. The optimal ones are the fixed point of

    v(s) = max_a q(s, a),      q(s, a) = (1 - gamma) r(s, a) + gamma sum_{s'} P(s'|s, a) v(s'),

a contraction by gamma in the sup norm. Methods, in the order in which they are considered:

| method                    | when                                                                          |
|---------------------------|-------------------------------------------------------------------------------|
| backward sweep            | no cycles but self-loops: each state once, successors first; exact            |
| policy iteration          | a narrow band, or up to about 126 states: policies evaluated by elimination   |
| reward sweeps             | few states pay: sweeps by the distance to them, while a few suffice           |
| modified policy iteration | everything else, while it converges: stopped by MacQueen's bounds             |
| policy iteration          | slow ones whose band is narrow once states are reordered                      |
| sparse policy iteration   | other slow ones: policies evaluated by `linear` (LAPACK, Krylov)              |

The first two are right to a relative error in every single value, so tiny values are as good as large ones. Whatever
the method, the Bellman residual is computed afresh and must pass the rule in `report`.

**Ties.** Actions whose q is within 1e-12 * q(best) + 2 * (error bound) of the best one count as tied and share the
probability evenly; for the methods that are exact the second term is dropped. Magnitudes are those of the rewards
shifted to be non-negative, so that a tie does not depend on where zero is.

*Backward sweep and policy iteration* update a single state by solving its self-loop in place: with
source(s, a) = (1 - gamma) r(s, a), not negative, staying with action a for ever while in s is worth

    u(s, a) = (source(s, a) + gamma sum_{s' != s} P(s'|s, a) v(s')) / (1 - gamma P(s|s, a)),

and max_a u(s, a) is the value of s once its successors have theirs. As in `linear`, nothing is ever subtracted.

Modified policy iteration has a file of its own, `modified_policy_iteration`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.compile import compiled
from curious_explorer.exact.evaluation import check_reward_table, shifted_rewards
from curious_explorer.exact.goal_sweeps import closed_value, reward_sweeps
from curious_explorer.exact.linear import (
    AFFORDABLE_ELIMINATION,
    CHEAP_ELIMINATION,
    LAST_RESORT_ELIMINATION,
    LAST_RESORT_SWEEPS,
    System,
    factorise,
    fill_band,
    solve_system,
    solve_values,
)
from curious_explorer.exact.modified_policy_iteration import (
    apply_rows,
    modified_policy_iteration,
    select_rows,
    take_best,
)
from curious_explorer.exact.policy_chain import (
    Rows,
    bandwidths,
    fits_band,
    mdp_rows,
    narrowest_band,
    successors_first,
)
from curious_explorer.exact.report import (
    ExactReport,
    check_method,
    frozen,
    is_accurate,
    require_accurate,
    residual_target,
)
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_gamma

METHODS = (
    *("backward sweep", "policy iteration", "reward sweeps", "modified policy iteration", "sparse policy iteration"),
)
EXACT_METHODS = ("backward sweep", "policy iteration")
RELATIVE_TIE = 1e-12
"""Action values this close, relative to their size, are tied: a thousand times the rounding of a long sum."""
FEW_PAYING = 0.01
"""The share of states with a reward up to which sweeps go by the distance to them."""
ORDERED_SWEEPS = 20
PATIENCE = 1000
"""Sweeps (mostly of one action per state) before modified policy iteration counts as slow."""
POLICY_LIMIT = 10_000
SPARSE_POLICY_LIMIT = 200
RELATIVE_GAIN = 1e-13
"""A change of action must gain this much, relative to the value; smaller gains may be rounding, and would cycle."""
FINE_GAIN = 2e-15
FINE_ROUNDS = 20
"""Once stable, policy iteration goes on with the finer threshold for at most this many rounds."""


@dataclass(frozen=True, eq=False)
class Solution(ExactReport):
    """Optimal normalised values, how they were found, and what goes with them; the residual is Bellman's."""

    policy: Floats
    """An optimal policy, ties split evenly, shape (S, A)."""
    q: Floats
    """Optimal normalised action values, shape (S, A)."""


def solve(mdp: FiniteMDP, *, gamma: float, rewards: ArrayLike | None = None, method: str | None = None) -> Solution:
    """Optimal values and an optimal policy.

    Args:
        rewards: a finite (S, A) table to use in place of the MDP's own rewards.
        method: one of `METHODS`, or None to let structure, size and progress decide.
    """
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
    return Solution(values, used, residual, residual / (1.0 - gamma), iterations, policy, q.reshape(policy.shape))


Found = tuple[Floats, str, int]
"""Optimal values, the method that found them, and its sweeps or policies evaluated."""


class Problem:
    """The optimality equation of one MDP with non-negative rewards, solved by whichever method is asked for."""

    def __init__(self, rows: Rows, source: Floats, gamma: float, scale: float) -> None:
        self.rows = rows
        self.source = source
        self.gamma = gamma
        self.scale = scale
        self._judged: tuple[Floats, Floats, float] | None = None

    def solve(self, method: str | None) -> Found:
        """Solve by the method named, or by the one that suits; callers check the residual."""
        return self._choose() if method is None else self._forced(method)

    def action_values(self, values: Floats) -> tuple[Floats, float]:
        """The action values that belong to values, one for each row, and the Bellman residual."""
        if self._judged is None or self._judged[0] is not values:  # a method's answer is judged, then used
            q = apply_rows(*self.rows.unsigned(), self.source, self.gamma, values)
            self._judged = values, q, bellman_residual(q, values)
        return self._judged[1:]

    def _choose(self) -> Found:
        direct = self._backward_sweep() or self._policy_iteration(CHEAP_ELIMINATION, reorder=False)
        if direct is not None:
            return direct
        if (
            np.count_nonzero(self.source.reshape(self.rows.num_states, -1).any(axis=1))
            <= FEW_PAYING * self.rows.num_states
        ):
            swept = self._reward_sweeps(ORDERED_SWEEPS)
            if self._accurate(swept[0]):
                return swept
        iterated = self._modified_policy_iteration(PATIENCE)
        if self._accurate(iterated[0]):
            return iterated
        return self._policy_iteration(AFFORDABLE_ELIMINATION) or self._sparse_policy_iteration(iterated[0])

    def _forced(self, method: str) -> Found:
        if method == "backward sweep":
            found = self._backward_sweep()
            if found is None:
                raise ValueError("method 'backward sweep' needs an MDP without cycles (self-loops apart)")
            return found
        if method == "policy iteration":
            found = self._policy_iteration(LAST_RESORT_ELIMINATION)
            if found is None:
                raise ValueError("method 'policy iteration' needs a narrow band; this MDP has none, even reordered")
            return found
        if method == "reward sweeps":
            return self._reward_sweeps(LAST_RESORT_SWEEPS)
        if method == "modified policy iteration":
            return self._modified_policy_iteration(LAST_RESORT_SWEEPS)
        return self._sparse_policy_iteration(np.zeros(self.rows.num_states))

    def _accurate(self, values: Floats) -> bool:
        return is_accurate(self.action_values(values)[1], self.gamma, self.scale)

    def _backward_sweep(self) -> Found | None:
        indptr, indices, data, num_actions = self.rows
        order = successors_first(indptr, indices, num_actions)
        if order.size == 0:
            return None
        return acyclic_values(indptr, indices, data, self.source, order, self.gamma), "backward sweep", 1

    def _policy_iteration(self, limit: float, *, reorder: bool = True) -> Found | None:
        """Policy iteration by elimination inside the band; None if the band is too wide."""
        rows, order = narrowest_band(self.rows) if reorder else (self.rows, np.arange(self.rows.num_states))
        if not fits_band(rows, limit):
            return None
        indptr, indices, data, num_actions = rows
        band = bandwidths(indptr, indices, num_actions)
        source = self.source.reshape(-1, num_actions)[order].ravel()
        values = np.empty(rows.num_states)
        values[order], count = policy_iteration(
            indptr, indices, data, source, rows.num_states, self.gamma, *band, POLICY_LIMIT
        )
        return values, "policy iteration", count

    def _reward_sweeps(self, limit: int) -> Found:
        values, sweeps = reward_sweeps(self.rows, self.source, self.gamma, limit)
        return values, "reward sweeps", sweeps

    def _modified_policy_iteration(self, budget: int) -> Found:
        target = residual_target(self.gamma, self.scale)
        values, sweeps = modified_policy_iteration(self.rows, self.source, self.gamma, target, budget)
        return values, "modified policy iteration", sweeps

    def _sparse_policy_iteration(self, values: Floats) -> Found:
        """Policy iteration in which `linear` evaluates; improvement sweeps run both ways as in the compiled one."""
        indptr, indices, data, _ = self.rows
        unsigned = self.rows.unsigned()
        greedy_rows = np.zeros(values.size, np.int32)
        action_values = apply_rows(*unsigned, self.source, self.gamma, values)
        take_best(action_values, values, np.empty_like(values), greedy_rows)
        count, switched = 0, True
        while switched and count < SPARSE_POLICY_LIMIT and not self._accurate(values):
            count += 1
            chain = select_rows(*unsigned, greedy_rows)
            rows = Rows(frozen(chain[0].view(np.int32)), frozen(chain[1].view(np.int32)), frozen(chain[2]), 1)
            system = System(rows, self.source[greedy_rows], self.gamma, self.scale, transposed=False)
            values = solve_system(system).values
            improved = values.copy()
            switched = False
            for backwards in (True, False):
                switched |= improve_in_place(
                    indptr, indices, data, self.source, greedy_rows, improved, self.gamma, FINE_GAIN, backwards
                )
        return values, "sparse policy iteration", count


# Backward sweep and policy iteration --------------------------------------------------------------------------------


@compiled
def acyclic_values(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, order: Integers, gamma: float
) -> Floats:
    """Optimal values of an MDP without cycles (self-loops apart), in one pass, successors first."""
    num_states = order.size
    num_actions = source.size // num_states
    values = np.zeros(num_states)
    for position in range(num_states):
        state = order[position]
        best = 0.0
        for row in range(state * num_actions, (state + 1) * num_actions):
            best = max(best, closed_value(indptr, indices, data, values, source[row], row, state, gamma))
        values[state] = best
    return values


@compiled
def improve_in_place(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, rows: Indices, values: Floats, gamma: float,
    gain: float, backwards: bool
) -> bool:  # fmt: skip
    """One Gauss-Seidel sweep that raises values and switches actions; whether any action was switched."""
    num_states = rows.size
    num_actions = source.size // num_states
    switched = False
    for step in range(num_states):
        state = num_states - 1 - step if backwards else step
        current = closed_value(indptr, indices, data, values, source[rows[state]], rows[state], state, gamma)
        best = current
        for row in range(state * num_actions, (state + 1) * num_actions):
            value = closed_value(indptr, indices, data, values, source[row], row, state, gamma)
            if value > best and value > current * (1.0 + gain):
                best = value
                rows[state] = row
                switched = True
        values[state] = max(values[state], best)
    return switched


@compiled
def policy_iteration(
    indptr: Indices, indices: Indices, data: Floats, source: Floats, num_states: int, gamma: float, lower: int,
    upper: int, limit: int
) -> tuple[Floats, int]:  # fmt: skip
    """Optimal values by policy iteration, each policy evaluated by elimination; and how many were evaluated.

    Gauss-Seidel sweeps both ways between evaluations carry a change along a chain at once rather than state by
    state. They raise values monotonically, so the policy they leave behind is at least as good as what they show.
    """
    num_actions = source.size // num_states
    rows = np.arange(0, source.size, num_actions).astype(np.int32)
    values = np.zeros(num_states)
    improve_in_place(indptr, indices, data, source, rows, values, gamma, RELATIVE_GAIN, True)
    improve_in_place(indptr, indices, data, source, rows, values, gamma, RELATIVE_GAIN, False)
    gain = RELATIVE_GAIN
    fine_rounds = 0
    for evaluation in range(1, limit + 1):
        band = fill_band(indptr, indices, data, rows, gamma, lower, upper)
        factorise(band, gamma, lower, upper)
        values = solve_values(band, source[rows], lower, upper)
        improved = values.copy()
        switched = improve_in_place(indptr, indices, data, source, rows, improved, gamma, gain, True)
        switched |= improve_in_place(indptr, indices, data, source, rows, improved, gamma, gain, False)
        fine_rounds += gain == FINE_GAIN
        if not switched:
            if gain == FINE_GAIN:
                return values, evaluation
            gain = FINE_GAIN
        if fine_rounds >= FINE_ROUNDS:
            return values, evaluation
    return values, limit


@compiled
def bellman_residual(action_values: Floats, values: Floats) -> float:
    """The largest distance between a state's value and the best of its action values."""
    num_actions = action_values.size // values.size
    residual = 0.0
    for state in range(values.size):
        best = -np.inf
        for row in range(state * num_actions, (state + 1) * num_actions):
            best = max(best, action_values[row])
        gap = abs(best - values[state])
        if not gap <= residual:  # so that a NaN is not passed over
            residual = gap
    return residual


@compiled
def split_ties(action_values: Floats, num_actions: int, relative: float, absolute: float) -> Floats:
    """The greedy policy, shape (S, A), with probability split evenly over actions that are as good as tied."""
    num_states = action_values.size // num_actions
    policy = np.zeros((num_states, num_actions))
    for state in range(num_states):
        here = action_values[state * num_actions : (state + 1) * num_actions]
        best = here.max()
        threshold = best - (relative * abs(best) + absolute)
        tied = 0
        for action in range(num_actions):
            tied += here[action] >= threshold
        for action in range(num_actions):
            if here[action] >= threshold:
                policy[state, action] = 1.0 / tied
    return policy
