"""How much any policy can visit each state: max over pi of d^pi(s), for every s.

The visitation of s is the normalised value of the reward that is 1 in s and 0 elsewhere, so

    max_pi d_mu^pi(s) = sum_x mu(x) v*_s(x),
    v*_s(x) = (1 - gamma) 1{x = s} + gamma max_a sum_x' P(x'|x, a) v*_s(x'),

one optimality equation for each target s (the maximising policy differs from target to target, so the maxima sum to the
exploitative factor, not to one). Methods, in the order in which they are considered:

| method           | when                                                                                          |
|------------------|-----------------------------------------------------------------------------------------------|
| backward sweep   | no cycles but self-loops                                                                      |
| goal sweeps      | moves are certain, or a few sweeps in the order of the distance to the target suffice         |
| policy iteration | a narrow band, or a small MDP: policies evaluated by elimination                              |
| value iteration  | everything else, stopped by MacQueen's bounds                                                 |
| one by one       | targets that those bounds do not settle, through the machinery of `optimal`                   |

The largest Bellman residual over all targets is checked as in `report`. Backward sweeps and value iteration take
targets in blocks, in which their values lie side by side, ``values[s, k]`` for target k, so that one look at a
transition serves the whole block and the inner loops are vectorised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.compile import compiled
from curious_explorer.exact.goal_sweeps import Predecessors, goal_values, predecessors
from curious_explorer.exact.linear import CHEAP_ELIMINATION
from curious_explorer.exact.modified_policy_iteration import apply_rows
from curious_explorer.exact.optimal import POLICY_LIMIT, Problem, bellman_residual, policy_iteration
from curious_explorer.exact.policy_chain import Rows, bandwidths, fits_band, mdp_rows, successors_first
from curious_explorer.exact.report import ExactReport, check_method, is_accurate, require_accurate, residual_target
from curious_explorer.exact.visitation import start_distribution
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_gamma, check_indices

METHODS = ("backward sweep", "goal sweeps", "policy iteration", "value iteration", "one by one")
MOST_STATES = 10_000
"""How many targets are computed without being asked for by name: the cost is that of as many solutions."""
BLOCK = 128
SWEEPS = 500
PROBED_TARGETS, FEW_SWEEPS = 4, 50
"""Goal sweeps serve all targets if these many, spread over all of them, take no more sweeps than that."""


def max_visitation(
    mdp: FiniteMDP, *, gamma: float, start: int | ArrayLike | None = None, targets: ArrayLike | None = None
) -> Floats:
    """The largest discounted visitation of each state over all policies, shape (S,) or that of ``targets``.

    Args:
        start: a state or a distribution mu; the MDP's own start if None.
        targets: the states of interest; all of them if None, which is refused above `MOST_STATES` states.
    """
    return max_visitation_report(mdp, gamma=gamma, start=start, targets=targets).values


def max_visitation_report(
    mdp: FiniteMDP,
    *,
    gamma: float,
    start: int | ArrayLike | None = None,
    targets: ArrayLike | None = None,
    method: str | None = None,
) -> ExactReport:
    """`max_visitation` with its method (one of `METHODS`, chosen if None), and the largest residual over targets."""
    gamma = check_gamma(gamma)
    check_method(method, METHODS)
    mu = start_distribution(mdp, start)
    chosen = _check_targets(targets, mdp.num_states)
    values, used, residual, iterations = _Targets(mdp_rows(mdp), gamma, mu, chosen).solve(method)
    require_accurate("max_visitation", used, residual, gamma, 1.0)
    return ExactReport(values, used, residual, residual / (1.0 - gamma), iterations)


Answer = tuple[Floats, str, float, int]


class _Targets:
    """The optimality equations of all targets."""

    def __init__(self, rows: Rows, gamma: float, mu: Floats, targets: Integers) -> None:
        self.rows = rows
        self.gamma = gamma
        self.mu = mu
        self.targets = targets

    def solve(self, method: str | None) -> Answer:
        """Values from the start, the method used, the largest residual and the iterations."""
        if method in (None, "backward sweep"):
            answer = self._backward_sweep()
            if answer is not None:
                return answer
            if method is not None:
                raise ValueError("method 'backward sweep' needs an MDP without cycles (self-loops apart)")
        if method == "goal sweeps" or (method is None and self._moves_are_certain()):
            return self._goal_sweeps(predecessors(self.rows), self.targets, SWEEPS)
        if method == "policy iteration" or (method is None and fits_band(self.rows, CHEAP_ELIMINATION)):
            return self._policy_iteration()
        if method is None:
            answer = self._goal_sweeps_if_few()
            if answer is not None:
                return answer
        if method == "one by one":
            return self._one_by_one(self.targets)
        return self._value_iteration(fall_back=method is None)

    def _backward_sweep(self) -> Answer | None:
        indptr, indices, data, num_actions = self.rows
        order = successors_first(indptr, indices, num_actions)
        if order.size == 0:
            return None
        found = np.empty(self.targets.size)
        residual = 0.0
        for block in self._blocks():
            targets = self.targets[block]
            values = acyclic_block(indptr, indices, data, num_actions, order, targets, self.gamma)
            gaps = block_residual(indptr, indices, data, num_actions, targets, self.gamma, values)
            residual = max(residual, float(gaps.max()))
            found[block] = self.mu @ values
        return found, "backward sweep", residual, 1

    def _moves_are_certain(self) -> bool:
        return self.rows.data.size == self.rows.indptr.size - 1

    def _goal_sweeps_if_few(self) -> Answer | None:
        graph = predecessors(self.rows)
        probed = self.targets[:: max(1, self.targets.size // PROBED_TARGETS)][:PROBED_TARGETS]
        if self._goal_sweeps(graph, probed, FEW_SWEEPS)[3] >= FEW_SWEEPS:
            return None
        answer = self._goal_sweeps(graph, self.targets, SWEEPS)
        return answer if is_accurate(answer[2], self.gamma, 1.0) else None

    def _goal_sweeps(self, graph: Predecessors, targets: Integers, limit: int) -> Answer:
        found, residuals, sweeps = goal_values(*self.rows, *graph, targets, self.gamma, self.mu, limit)
        return found, "goal sweeps", float(residuals.max(initial=0.0)), sweeps

    def _policy_iteration(self) -> Answer:
        indptr, indices, data, num_actions = self.rows
        lower, upper = bandwidths(indptr, indices, num_actions)
        found, residuals, count = policy_iteration_targets(
            indptr, indices, data, num_actions, self.targets, self.gamma, self.mu, lower, upper, POLICY_LIMIT
        )
        return found, "policy iteration", float(residuals.max(initial=0.0)), count

    def _value_iteration(self, *, fall_back: bool) -> Answer:
        indptr, indices, data, num_actions = self.rows
        found = np.empty(self.targets.size)
        residual, sweeps, method = 0.0, 0, "value iteration"
        goal = residual_target(self.gamma, 1.0)
        for block in self._blocks():
            targets = self.targets[block]
            values, _, count = span_block(indptr, indices, data, num_actions, targets, self.gamma, goal, SWEEPS)
            gaps = block_residual(indptr, indices, data, num_actions, targets, self.gamma, values)
            found[block] = self.mu @ values
            sweeps += count
            open_targets = np.array([not is_accurate(gap, self.gamma, 1.0) for gap in gaps])
            if fall_back and open_targets.any():
                answer = self._one_by_one(targets[open_targets])
                found[np.arange(self.targets.size)[block][open_targets]] = answer[0]
                gaps[open_targets] = answer[2]
                sweeps += answer[3]
                method = "value iteration, then one by one"
            residual = max(residual, float(gaps.max()))
        return found, method, residual, sweeps

    def _one_by_one(self, targets: Integers) -> Answer:
        found = np.empty(targets.size)
        residual, iterations = 0.0, 0
        for slot, target in enumerate(targets):
            source = np.zeros((self.rows.num_states, self.rows.num_actions))
            source[target] = 1.0 - self.gamma
            problem = Problem(self.rows, source.ravel(), self.gamma, 1.0)
            values, _, count = problem.solve(None)
            residual = max(residual, problem.action_values(values)[1])
            found[slot] = self.mu @ values
            iterations += count
        return found, "one by one", residual, iterations

    def _blocks(self) -> list[slice]:
        return [slice(first, first + BLOCK) for first in range(0, self.targets.size, BLOCK)]


def _check_targets(targets: ArrayLike | None, num_states: int) -> Integers:
    if targets is None:
        if num_states > MOST_STATES:
            raise ValueError(
                f"max_visitation solves one optimality problem for each of {num_states} states, which is refused above "
                f"{MOST_STATES}; name the states of interest with targets=[...]"
            )
        return np.arange(num_states)
    return check_indices(targets, num_states, "targets")


# A block of targets at once -----------------------------------------------------------------------------------------


@compiled
def acyclic_block(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, order: Integers, targets: Integers, gamma: float
) -> Floats:
    """Optimal values, shape (S, block), of an MDP without cycles: one pass, successors first."""
    num_states = order.size
    column = np.full(num_states, -1, np.int64)
    for slot in range(targets.size):
        column[targets[slot]] = slot
    values = np.zeros((num_states, targets.size))
    ahead = np.empty(targets.size)
    for position in range(num_states):
        state = order[position]
        best = values[state]
        for row in range(state * num_actions, (state + 1) * num_actions):
            ahead[:] = 0.0
            leaving = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                if indices[entry] != state:
                    leaving += data[entry]
                    weight = gamma * data[entry]
                    successor = values[indices[entry]]
                    for slot in range(targets.size):
                        ahead[slot] += weight * successor[slot]
            if column[state] >= 0:
                ahead[column[state]] += 1.0 - gamma
            closing = 1.0 / ((1.0 - gamma) + gamma * leaving)
            for slot in range(targets.size):
                best[slot] = max(best[slot], closing * ahead[slot])
    return values


@compiled
def optimality_block(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Integers, gamma: float, values: Floats,
    updated: Floats
) -> tuple[Floats, Floats]:  # fmt: skip
    """T v into ``updated`` for every target of the block; the least and largest entries of T v - v."""
    num_states = values.shape[0]
    column = np.full(num_states, -1, np.int64)
    for slot in range(targets.size):
        column[targets[slot]] = slot
    low = np.full(targets.size, np.inf)
    high = np.full(targets.size, -np.inf)
    ahead = np.empty(targets.size)
    for state in range(num_states):
        best = updated[state]
        best[:] = -np.inf
        for row in range(state * num_actions, (state + 1) * num_actions):
            ahead[:] = 0.0
            for entry in range(indptr[row], indptr[row + 1]):
                weight = gamma * data[entry]
                successor = values[indices[entry]]
                for slot in range(targets.size):
                    ahead[slot] += weight * successor[slot]
            for slot in range(targets.size):
                best[slot] = max(best[slot], ahead[slot])
        if column[state] >= 0:
            best[column[state]] += 1.0 - gamma
        here = values[state]
        for slot in range(targets.size):
            change = best[slot] - here[slot]
            low[slot] = min(low[slot], change)
            high[slot] = max(high[slot], change)
    return low, high


@compiled
def span_block(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Integers, gamma: float, goal: float,
    budget: int
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """Value iteration with MacQueen's bounds; values (S, block), the half-span of each target, sweeps."""
    num_states = (indptr.size - 1) // num_actions
    values = np.zeros((num_states, targets.size))
    updated = np.empty((num_states, targets.size))
    for sweep in range(1, budget + 1):
        low, high = optimality_block(indptr, indices, data, num_actions, targets, gamma, values, updated)
        middle = 0.5 * (low + high)
        half_span = gamma * 0.5 * (high - low)
        if half_span.max() <= goal or sweep == budget:
            break
        values, updated = updated, values
        values -= middle
    updated += gamma / (1.0 - gamma) * middle
    return updated, half_span, sweep


@compiled
def policy_iteration_targets(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Integers, gamma: float, start: Floats,
    lower: int, upper: int, limit: int
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """Policy iteration target by target; the value from the start, the Bellman residual, policies evaluated."""
    num_states = (indptr.size - 1) // num_actions
    found = np.empty(targets.size)
    residuals = np.empty(targets.size)
    evaluated = 0
    source = np.zeros(num_states * num_actions)
    unsigned = indptr.view(np.uint32), indices.view(np.uint32)
    for slot in range(targets.size):
        first = targets[slot] * num_actions
        source[first : first + num_actions] = 1.0 - gamma
        values, count = policy_iteration(indptr, indices, data, source, num_states, gamma, lower, upper, limit)
        evaluated += count
        residuals[slot] = bellman_residual(apply_rows(*unsigned, data, source, gamma, values), values)
        found[slot] = start @ values
        source[first : first + num_actions] = 0.0
    return found, residuals, evaluated


@compiled
def block_residual(
    indptr: Indices, indices: Indices, data: Floats, num_actions: int, targets: Integers, gamma: float, values: Floats
) -> Floats:
    """The sup norm of T v - v for every target of the block."""
    low, high = optimality_block(indptr, indices, data, num_actions, targets, gamma, values, np.empty_like(values))
    return np.maximum(-low, high)
