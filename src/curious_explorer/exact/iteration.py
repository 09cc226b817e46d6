"""Iterative solution of x = source + gamma P x and of its transpose, for chains too large to eliminate.

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

from curious_explorer.arrays import Floats

_WATCH_EVERY = 10


class Iterate(NamedTuple):
    """Where an iteration stopped, whether or not it arrived."""

    values: Floats
    iterations: int


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


def sweep_values(matrix: sparse.csr_array, source: Floats, gamma: float, target: float, budget: int) -> Iterate:
    """Sweeps of v = source + gamma P v with MacQueen's correction, until half the span is below the target."""
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
    return Iterate(applied + gamma / (1.0 - gamma) * middle, sweep)


def sweep_visits(transpose: sparse.csr_array, source: Floats, gamma: float, target: float, budget: int) -> Iterate:
    """Sweeps of d = source + gamma P^T d from the start distribution, until the L1 residual is below the target."""
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
    return Iterate(visits / visits.sum(), sweep)


def krylov(matrix: sparse.csr_array, source: Floats, gamma: float, guess: Floats, target: float) -> Iterate:
    """BiCGSTAB, then GMRES if that is not enough, on (I - gamma matrix) x = source from a guess."""
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
                return Iterate(best, steps)
        found, _flag = linalg.gmres(
            operator, source, x0=best, rtol=0.0, atol=target, restart=50, maxiter=20, callback=count,
            callback_type="pr_norm",
        )  # fmt: skip
    return Iterate(found if residual(found) < residual(best) else best, steps)
