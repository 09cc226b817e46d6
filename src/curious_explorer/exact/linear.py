"""The two linear systems of a Markov chain, and the methods that solve them.

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

*Substitution* visits states in topological order and never subtracts: the diagonal 1 - gamma p(s|s) is formed as
(1 - gamma) + gamma * (probability of leaving s), so every intermediate number is a sum of non-negative ones, and each
entry of the answer is right to a relative error of a few roundings, for any gamma.

*Elimination* is Gauss's, without a single subtraction, inside a band. I - gamma P is a diagonally dominant M-matrix:
off-diagonal entries -N with N = gamma P >= 0, and row sums w = 1 - gamma > 0. Eliminating state k reroutes every path
through it: for each later i, with f = N[i, k] / D[k],

    N[i, j] += f N[k, j]  (j > k),      w[i] += f w[k],      where D[k] = w[k] + sum_{j > k} N[k, j].

The diagonal D is rebuilt from w and N rather than updated by a subtraction (Grassmann, Taksar and Heyman 1985; Alfa,
Xue and Ye 2002), so no cancellation can happen: for a right-hand side that is not negative, every entry of the answer
has a small *relative* error, however close gamma is to one and however tiny the entry. No pivoting is needed, so a band
stays a band, and a chain of S states costs O(S).

*Sweeps.* Applying the equation to itself contracts the error by gamma, but two observations do much better on chains
that mix. For visitation, start from a distribution: then iterate and answer both sum to one, the error sums to zero,
and only the second eigenvalue of the chain counts. For values, the dual: an error that is constant over states shows
as a constant residual, and is removed by adding gamma / (1 - gamma) times its middle (MacQueen 1966):

    lo <= T v - v <= hi   implies   T v + gamma / (1 - gamma) lo  <=  v*  <=  T v + gamma / (1 - gamma) hi,

so the error is bounded by the *span* hi - lo. Iterates are kept near zero by dropping the constant at every sweep, and
it is put back once at the end; near gamma = 1 this saves the digits that would drown in it.

*Krylov.* Chains that mix slowly (long corridors, gamma near one) are recognised by their rate, and are handed to
BiCGSTAB and then to restarted GMRES from the last iterate. Both may break down without saying so; callers check the
residual.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.compile import compiled
from curious_explorer.exact.policy_chain import Rows, bandwidths, fits_band, narrowest_band, successors_first
from curious_explorer.exact.report import ExactReport, is_accurate, require_accurate, residual_target

METHODS = ("substitution", "elimination", "dense", "iteration", "krylov")

CHEAP_ELIMINATION = 2e6
"""S * lower * upper up to which elimination is simply done (about a millisecond; 126 states without any structure)."""
AFFORDABLE_ELIMINATION = 2e9
"""S * lower * upper up to which elimination replaces a slow iteration (about a second)."""
LAST_RESORT_ELIMINATION = 2e10
DENSE_AT_ONCE = 256
DENSE_LIMIT = 2048
PATIENCE = 300
"""Sweeps that are worth spending before a chain counts as slow."""
LAST_RESORT_SWEEPS = 20_000
_WATCH_EVERY = 10


class LinearSolution(NamedTuple):
    """What a method found, its residual in the equation itself, and its sweeps or solves (1 for direct methods)."""

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

    def substitution(self) -> LinearSolution | None:
        """One pass in topological order; None if there are cycles."""
        indptr, indices, data, _ = self.chain
        order = successors_first(indptr, indices, 1)
        if order.size == 0:
            return None
        substitute = push_forward if self.transposed else substitute_back
        return self._found(substitute(indptr, indices, data, order, self.source, self.gamma), "substitution")

    def elimination(self, limit: float, *, reorder: bool = True) -> LinearSolution | None:
        """Elimination inside the band, reordered to make it narrow; None if the band is still too wide."""
        chain, order = narrowest_band(self.chain) if reorder else (self.chain, np.arange(self.chain.num_states))
        if not fits_band(chain, limit):
            return None
        values = np.empty_like(self.source)
        values[order] = eliminate(chain, self.source[order], self.gamma, transposed=self.transposed)
        return self._found(values, "elimination")

    def dense(self) -> LinearSolution:
        """LAPACK on the full matrix."""
        if self.chain.num_states > DENSE_LIMIT:
            raise ValueError(
                f"method 'dense' is for up to {DENSE_LIMIT} states, this chain has {self.chain.num_states}"
            )
        system = np.eye(self.chain.num_states) - self.gamma * self.matrix.toarray()
        return self._found(np.linalg.solve(system, self.source), "dense")

    def iteration(self, budget: int) -> LinearSolution:
        """Plain sweeps, up to a budget."""
        sweep = sweep_visits if self.transposed else sweep_values
        target = residual_target(self.gamma, self.scale)
        values, sweeps = sweep(self.matrix, self.source, self.gamma, target, budget)
        return self._found(values, "iteration", sweeps)

    def krylov(self, guess: Floats) -> LinearSolution:
        """Krylov subspace methods from a guess."""
        target = residual_target(self.gamma, self.scale)
        if self.transposed:  # the L1 norm is at most sqrt(S) times the one that Krylov methods watch
            target /= np.sqrt(guess.size)
        values, steps = krylov(self.matrix, self.source, self.gamma, guess, target)
        return self._found(np.maximum(values, 0.0), "krylov", steps)

    def _found(self, values: Floats, method: str, iterations: int = 1) -> LinearSolution:
        return LinearSolution(values, method, self.residual(values), iterations)

    def accurate(self, solution: LinearSolution) -> bool:
        """Whether a solution may be returned."""
        return is_accurate(solution.residual, self.gamma, self.scale)


def solve_system(system: System, method: str | None = None) -> LinearSolution:
    """Solve by the method named, or by the one that suits; callers check the residual."""
    return _choose(system) if method is None else _forced(system, method)


def checked_report(system: System, method: str | None, what: str) -> ExactReport:
    """The solution of a system as an answer that is called ``what``; refused where it is not accurate."""
    values, used, residual, iterations = solve_system(system, method)
    require_accurate(what, used, residual, system.gamma, system.scale)
    return ExactReport(values, used, residual, residual / (1.0 - system.gamma), iterations)


def _choose(system: System) -> LinearSolution:
    direct = system.substitution() or system.elimination(CHEAP_ELIMINATION, reorder=False)
    if direct is not None:
        return direct
    if system.chain.num_states <= DENSE_AT_ONCE:
        return system.dense()
    swept = system.iteration(PATIENCE)
    if system.accurate(swept):
        return swept
    # What is left for a chain that does not mix: direct methods where they fit, Krylov methods where not.
    direct = system.elimination(AFFORDABLE_ELIMINATION)
    if direct is not None:
        return direct
    if system.chain.num_states <= DENSE_LIMIT:
        return system.dense()
    found = system.krylov(swept.values)
    if system.accurate(found):
        return found
    return system.elimination(LAST_RESORT_ELIMINATION) or system.iteration(LAST_RESORT_SWEEPS)


def _forced(system: System, method: str) -> LinearSolution:
    if method == "substitution":
        found = system.substitution()
        if found is None:
            raise ValueError("method 'substitution' needs a chain without cycles (self-loops apart); this one has one")
        return found
    if method == "elimination":
        found = system.elimination(LAST_RESORT_ELIMINATION)
        if found is None:
            raise ValueError("method 'elimination' needs a narrow band; this chain has none, even reordered")
        return found
    if method == "dense":
        return system.dense()
    if method == "iteration":
        return system.iteration(LAST_RESORT_SWEEPS)
    return system.krylov(system.iteration(1).values)


# Substitution -------------------------------------------------------------------------------------------------------


@compiled
def push_forward(
    indptr: Indices, indices: Indices, data: Floats, order: Integers, source: Floats, gamma: float
) -> Floats:
    """The d with d = source + gamma P^T d on an acyclic chain: every state hands on what reached it, once."""
    visits = source.copy()
    for position in range(order.size - 1, -1, -1):
        state = order[position]
        leaving = 0.0
        for entry in range(indptr[state], indptr[state + 1]):
            if indices[entry] != state:
                leaving += data[entry]
        visits[state] /= (1.0 - gamma) + gamma * leaving
        outflow = gamma * visits[state]
        for entry in range(indptr[state], indptr[state + 1]):
            if indices[entry] != state:
                visits[indices[entry]] += outflow * data[entry]
    return visits


@compiled
def substitute_back(
    indptr: Indices, indices: Indices, data: Floats, order: Integers, source: Floats, gamma: float
) -> Floats:
    """The v with v = source + gamma P v on an acyclic chain, successors first."""
    values = np.empty_like(source)
    for position in range(order.size):
        state = order[position]
        leaving = 0.0
        expected = 0.0
        for entry in range(indptr[state], indptr[state + 1]):
            if indices[entry] != state:
                leaving += data[entry]
                expected += data[entry] * values[indices[entry]]
        values[state] = (source[state] + gamma * expected) / ((1.0 - gamma) + gamma * leaving)
    return values


# Elimination --------------------------------------------------------------------------------------------------------


def eliminate(chain: Rows, source: Floats, gamma: float, *, transposed: bool) -> Floats:
    """Solve one of the two systems by elimination, in the order given."""
    lower, upper = bandwidths(chain.indptr, chain.indices, 1)
    rows = np.arange(chain.num_states, dtype=np.int32)
    band = fill_band(chain.indptr, chain.indices, chain.data, rows, gamma, lower, upper)
    factorise(band, gamma, lower, upper)
    solve = solve_visits if transposed else solve_values
    return solve(band, source, lower, upper)


@compiled
def fill_band(
    indptr: Indices, indices: Indices, data: Floats, rows: Indices, gamma: float, lower: int, upper: int
) -> Floats:
    """The matrix gamma P in band storage; ``rows[s]`` is the compressed row that state s follows.

    ``band[i, j - i + lower]`` holds N[i, j] for j > i and, once factorised, the factor f for j < i and D in the middle.
    """
    num_states = rows.size
    band = np.zeros((num_states, lower + upper + 1))
    for state in range(num_states):
        for entry in range(indptr[rows[state]], indptr[rows[state] + 1]):
            band[state, indices[entry] - state + lower] += gamma * data[entry]
    return band


@compiled
def factorise(band: Floats, gamma: float, lower: int, upper: int) -> None:
    """Factorise I - gamma P = L U in place."""
    num_states = band.shape[0]
    killing = np.full(num_states, 1.0 - gamma)
    for pivot in range(num_states):
        width = min(upper, num_states - 1 - pivot)
        ahead = band[pivot, lower + 1 : lower + 1 + width]
        diagonal = killing[pivot]
        for offset in range(width):
            diagonal += ahead[offset]
        band[pivot, lower] = diagonal
        for row in range(pivot + 1, min(pivot + lower, num_states - 1) + 1):
            column = pivot - row + lower
            if band[row, column] == 0.0:
                continue
            factor = band[row, column] / diagonal
            band[row, column] = factor
            killing[row] += factor * killing[pivot]
            target = band[row, column + 1 : column + 1 + width]
            for offset in range(width):
                target[offset] += factor * ahead[offset]


@compiled
def solve_values(band: Floats, source: Floats, lower: int, upper: int) -> Floats:
    """The v with v = source + gamma P v, from the factors."""
    num_states = band.shape[0]
    values = source.copy()
    for state in range(num_states):
        for other in range(max(0, state - lower), state):
            values[state] += band[state, other - state + lower] * values[other]
    for state in range(num_states - 1, -1, -1):
        total = values[state]
        for other in range(state + 1, min(state + upper, num_states - 1) + 1):
            total += band[state, other - state + lower] * values[other]
        values[state] = total / band[state, lower]
    return values


@compiled
def solve_visits(band: Floats, source: Floats, lower: int, upper: int) -> Floats:
    """The d with d = source + gamma P^T d, from the factors."""
    num_states = band.shape[0]
    visits = source.copy()
    for state in range(num_states):
        visits[state] /= band[state, lower]
        for other in range(state + 1, min(state + upper, num_states - 1) + 1):
            visits[other] += band[state, other - state + lower] * visits[state]
    for state in range(num_states - 1, -1, -1):
        for other in range(max(0, state - lower), state):
            visits[other] += band[state, other - state + lower] * visits[state]
    return visits


# Sweeps and Krylov methods ------------------------------------------------------------------------------------------


class RateWatch:
    """Decides from the observed rate whether to go on, given how many sweeps may be spent."""

    def __init__(self, target: float, budget: int) -> None:
        self._target = target
        self._budget = budget
        self._last = math.inf

    def should_stop(self, sweep: int, size: float) -> bool:
        """Whether the target is reached, out of reach within the budget, or hidden by rounding."""
        if size <= self._target or sweep >= self._budget:
            return True
        if sweep % _WATCH_EVERY:
            return False
        rate = (size / self._last) ** (1.0 / _WATCH_EVERY) if self._last < math.inf else 0.0
        self._last = size
        if rate >= 1.0 or not math.isfinite(size):
            return True
        if rate == 0.0 or self._target == 0.0:
            return False
        return sweep + math.log(self._target / size) / math.log(rate) > self._budget


def sweep_values(
    matrix: sparse.csr_array, source: Floats, gamma: float, target: float, budget: int
) -> tuple[Floats, int]:
    """Sweeps of v = source + gamma P v with MacQueen's correction, until half the span is at the target; how many."""
    watch = RateWatch(target, budget)
    relative = np.zeros_like(source)
    for sweep in range(1, budget + 1):
        applied = matrix @ relative
        applied *= gamma
        applied += source
        np.subtract(applied, relative, out=relative)
        low, high = float(relative.min()), float(relative.max())
        middle = 0.5 * (low + high)
        if watch.should_stop(sweep, gamma * 0.5 * (high - low)):
            break
        applied -= middle
        relative = applied
    return applied + gamma / (1.0 - gamma) * middle, sweep


def sweep_visits(
    transpose: sparse.csr_array, source: Floats, gamma: float, target: float, budget: int
) -> tuple[Floats, int]:
    """Sweeps of d = source + gamma P^T d from the start, until the L1 residual is below the target; and how many."""
    watch = RateWatch(target, budget)
    visits = source / source.sum()
    for sweep in range(1, budget + 1):
        applied = transpose @ visits
        applied *= gamma
        applied += source
        np.subtract(applied, visits, out=visits)
        size = gamma * float(np.abs(visits, out=visits).sum())
        visits = applied
        if watch.should_stop(sweep, size):
            break
    return visits / visits.sum(), sweep


def krylov(matrix: sparse.csr_array, source: Floats, gamma: float, guess: Floats, target: float) -> tuple[Floats, int]:
    """BiCGSTAB, then GMRES if that is not enough, on (I - gamma matrix) x = source from a guess; and the steps."""
    from scipy.sparse import linalg

    def apply(vector: Floats) -> Floats:
        image: Floats = vector - gamma * (matrix @ vector)
        return image

    def residual(vector: Floats) -> float:
        size = float(np.linalg.norm(source - apply(vector)))
        return size if math.isfinite(size) else math.inf

    steps = 0

    def count(_: object) -> None:
        nonlocal steps
        steps += 1

    operator = linalg.LinearOperator(matrix.shape, matvec=apply, dtype=np.float64)
    best = guess
    with np.errstate(all="ignore"):  # a breakdown divides by zero; the residual below is what decides
        for _ in range(3):  # restarts from the true residual, where the recurrence has drifted away from it
            found, _flag = linalg.bicgstab(
                operator, source, x0=best, rtol=0.0, atol=target, maxiter=1000, callback=count
            )
            if not residual(found) < 0.5 * residual(best):
                break
            best = found
            if residual(best) <= target:
                return best, steps
        found, _flag = linalg.gmres(
            operator, source, x0=best, rtol=0.0, atol=target, restart=50, maxiter=20, callback=count,
            callback_type="pr_norm",
        )  # fmt: skip
    return found if residual(found) < residual(best) else best, steps
