"""The two linear systems of a Markov chain, and which method solves which.

    values:      v = source + gamma P v          (residual in the sup norm)
    visitation:  d = source + gamma P^T d        (residual in the L1 norm)

| method       | when                                                   | accuracy                     |
|--------------|--------------------------------------------------------|------------------------------|
| substitution | no cycles but self-loops (DCL, anything layered)       | relative, entry by entry     |
| elimination  | a narrow band, as given or after Cuthill-McKee         | relative, entry by entry     |
| dense        | up to `DENSE_LIMIT` states (LAPACK)                    | rounding / (1 - gamma)       |
| iteration    | everything else, while the chain mixes                 | to the tolerance             |
| krylov       | large chains that mix slowly and have no narrow band   | to the tolerance             |

The choice looks at structure first and at the observed rate second, so a long corridor near gamma = 1 ends up in
`elimination` and a random graph of a million states in `iteration`. Sparse LU is not in the table: on a random graph
its fill-in is the full matrix. ``source`` must not be negative; callers shift rewards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from curious_explorer.arrays import Floats
from curious_explorer.exact.iteration import Iterate, krylov, sweep_values, sweep_visits
from curious_explorer.exact.policy_chain import Rows
from curious_explorer.exact.report import frozen, is_accurate, residual_target

METHODS = ("substitution", "elimination", "dense", "iteration", "krylov")

CHEAP_ELIMINATION = 2e6
"""S * lower * upper up to which elimination is simply done (about a millisecond; 126 states without any structure)."""
AFFORDABLE_ELIMINATION = 2e9
"""S * lower * upper up to which elimination replaces a slow iteration (about a second)."""
LAST_RESORT_ELIMINATION = 2e10
BAND_ENTRIES = 5e7
"""The largest band that is ever stored: 400 MB."""
DENSE_AT_ONCE = 256
DENSE_LIMIT = 2048
PATIENCE = 300
"""Sweeps that are worth spending before a chain counts as slow."""
LAST_RESORT_SWEEPS = 20_000


class LinearSolution(NamedTuple):
    """The solution of one of the two systems, with its residual."""

    values: Floats
    method: str
    residual: float
    iterations: int


class System:
    """One linear system, solved by whichever method is asked for; products are prepared once."""

    def __init__(self, chain: Rows, source: Floats, gamma: float, scale: float, *, transposed: bool) -> None:
        self.chain = chain
        self.source = source
        self.gamma = gamma
        self.scale = scale
        self.transposed = transposed
        self._matrix: sparse.csr_array | None = None

    @property
    def matrix(self) -> sparse.csr_array:
        """P, or its transpose, in rows."""
        if self._matrix is None:
            matrix = self.chain.matrix()
            self._matrix = sparse.csr_array(matrix.T) if self.transposed else matrix
        return self._matrix

    def residual(self, values: Floats) -> float:
        """How far the values are from satisfying the system."""
        matrix = self._matrix
        if matrix is None:  # direct methods need no products, so a transpose by columns will do for this one
            matrix = self.chain.matrix().T if self.transposed else self.chain.matrix()
        gap = np.abs(self.source + self.gamma * (matrix @ values) - values)
        size = float(gap.sum() if self.transposed else gap.max())
        return size if np.isfinite(size) else np.inf

    def substitution(self) -> Floats | None:
        """One pass in topological order; None if there are cycles."""
        from curious_explorer.exact.kernels import push_forward, substitute_back, successors_first

        indptr, indices, data, _ = self.chain
        order = successors_first(indptr, indices, 1)
        if order.size == 0:
            return None
        substitute = push_forward if self.transposed else substitute_back
        return substitute(indptr, indices, data, order, self.source, self.gamma)

    def elimination(self, limit: float, *, reorder: bool) -> Floats | None:
        """Elimination inside the band, reordered to make it narrow; None if the band is still too wide."""
        chain, order = narrowest_band(self.chain) if reorder else (self.chain, None)
        source = self.source if order is None else self.source[order]
        if not fits_band(chain, limit):
            return None
        values = eliminate(chain, source, self.gamma, transposed=self.transposed)
        if order is None:
            return values
        restored = np.empty_like(values)
        restored[order] = values
        return restored

    def dense(self) -> Floats:
        """LAPACK on the full matrix."""
        if self.chain.num_states > DENSE_LIMIT:
            raise ValueError(
                f"method 'dense' is for up to {DENSE_LIMIT} states, this chain has {self.chain.num_states}"
            )
        system = np.eye(self.chain.num_states) - self.gamma * self.matrix.toarray()
        return np.linalg.solve(system, self.source)

    def sweep(self, budget: int) -> Iterate:
        """Plain sweeps, up to a budget."""
        sweep = sweep_visits if self.transposed else sweep_values
        return sweep(self.matrix, self.source, self.gamma, residual_target(self.gamma, self.scale), budget)

    def krylov(self, guess: Floats) -> Iterate:
        """Krylov subspace methods from a guess."""
        target = residual_target(self.gamma, self.scale)
        if self.transposed:  # the L1 norm is at most sqrt(S) times the one that Krylov methods watch
            target /= np.sqrt(guess.size)
        found = krylov(self.matrix, self.source, self.gamma, guess, target)
        return Iterate(np.maximum(found.values, 0.0), found.iterations)

    def solution(self, values: Floats, method: str, iterations: int = 1) -> LinearSolution:
        """The values with their residual, checked against the equation itself."""
        return LinearSolution(values, method, self.residual(values), iterations)

    def accurate(self, solution: LinearSolution) -> bool:
        """Whether a solution may be returned."""
        return is_accurate(solution.residual, self.gamma, self.scale)


def solve_system(system: System, method: str | None = None) -> LinearSolution:
    """Solve by the method named, or by the one that suits; callers check the residual."""
    return _choose(system) if method is None else _forced(system, method)


def _choose(system: System) -> LinearSolution:
    values = system.substitution()
    if values is not None:
        return system.solution(values, "substitution")
    values = system.elimination(CHEAP_ELIMINATION, reorder=False)
    if values is not None:
        return system.solution(values, "elimination")
    num_states = system.chain.num_states
    if num_states <= DENSE_AT_ONCE:
        return system.solution(system.dense(), "dense")
    swept = system.solution(*_named(system.sweep(PATIENCE), "iteration"))
    if system.accurate(swept):
        return swept
    return _solve_slow(system, swept)


def _solve_slow(system: System, swept: LinearSolution) -> LinearSolution:
    """What is left for a chain that does not mix: direct methods where they fit, Krylov methods where not."""
    values = system.elimination(AFFORDABLE_ELIMINATION, reorder=True)
    if values is not None:
        return system.solution(values, "elimination")
    if system.chain.num_states <= DENSE_LIMIT:
        return system.solution(system.dense(), "dense")
    found = system.solution(*_named(system.krylov(swept.values), "krylov"))
    if system.accurate(found):
        return found
    values = system.elimination(LAST_RESORT_ELIMINATION, reorder=True)
    if values is not None:
        return system.solution(values, "elimination")
    return system.solution(*_named(system.sweep(LAST_RESORT_SWEEPS), "iteration"))


def _forced(system: System, method: str) -> LinearSolution:
    if method == "substitution":
        values = system.substitution()
        if values is None:
            raise ValueError("method 'substitution' needs a chain without cycles (self-loops apart); this one has one")
        return system.solution(values, method)
    if method == "elimination":
        values = system.elimination(LAST_RESORT_ELIMINATION, reorder=True)
        if values is None:
            raise ValueError("method 'elimination' needs a narrow band; this chain has none, even reordered")
        return system.solution(values, method)
    if method == "dense":
        return system.solution(system.dense(), method)
    if method == "iteration":
        return system.solution(*_named(system.sweep(LAST_RESORT_SWEEPS), method))
    return system.solution(*_named(system.krylov(system.sweep(1).values), method))


def _named(iterate: Iterate, method: str) -> tuple[Floats, str, int]:
    return iterate.values, method, iterate.iterations


def narrowest_band(rows: Rows) -> tuple[Rows, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The same rows in the order with the narrower band: as given, or Cuthill-McKee's; new k is old ``order[k]``.

    Cuthill-McKee brings neighbours together whatever the numbering was; on a grid numbered row by row it does not win.
    """
    moved, order = _reverse_cuthill_mckee(rows)
    if band_cost(rows) <= band_cost(moved):
        return rows, np.arange(rows.num_states)
    return moved, order


def _reverse_cuthill_mckee(rows: Rows) -> tuple[Rows, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    from scipy.sparse import csgraph

    num_states, num_actions = rows.num_states, rows.num_actions
    reach = sparse.csr_array((np.ones(rows.data.size), rows.indices, rows.indptr[::num_actions]), (num_states,) * 2)
    order = csgraph.reverse_cuthill_mckee(sparse.csr_array(reach + reach.T), symmetric_mode=True).astype(np.int64)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(num_states)
    row_order = (order[:, None] * num_actions + np.arange(num_actions)).ravel()
    moved = rows.matrix()[row_order]
    indices = inverse[moved.indices].astype(np.int32)
    indptr = moved.indptr.astype(np.int32, copy=False)
    return Rows(frozen(indptr), frozen(indices), frozen(moved.data), num_actions), order


def fits_band(rows: Rows, limit: float) -> bool:
    """Whether elimination inside the band stays within a cost limit and within memory."""
    from curious_explorer.exact.kernels import bandwidths

    lower, upper = bandwidths(rows.indptr, rows.indices, rows.num_actions)
    return band_cost(rows) <= limit and rows.num_states * (lower + upper + 1) <= BAND_ENTRIES


def band_cost(rows: Rows) -> int:
    """Multiplications that elimination inside the band takes: S * lower * upper."""
    from curious_explorer.exact.kernels import bandwidths

    lower, upper = bandwidths(rows.indptr, rows.indices, rows.num_actions)
    return rows.num_states * max(lower, 1) * max(upper, 1)


def eliminate(chain: Rows, source: Floats, gamma: float, *, transposed: bool) -> Floats:
    """Solve one of the two systems by elimination, in the order given."""
    from curious_explorer.exact import elimination
    from curious_explorer.exact.kernels import bandwidths

    lower, upper = bandwidths(chain.indptr, chain.indices, 1)
    rows = np.arange(chain.num_states, dtype=np.int32)
    band = elimination.fill_band(chain.indptr, chain.indices, chain.data, rows, gamma, lower, upper)
    elimination.factorise(band, gamma, lower, upper)
    solve = elimination.solve_visits if transposed else elimination.solve_values
    return solve(band, source, lower, upper)
