"""How far sampled visits may be from exact visitation, in all states and all rounds at once.

In round i, m visits are drawn from D_i, which is fixed by what came before: given the past they are independent. Let
C_n = D_0 + ... + D_n and C^_n its estimate (visits counted, over m). With probability at least 1 - delta, for all |S|
states and N rounds together:

**Azuma.** |C^_n(s) - C_n(s)| <= tau_n = sqrt((n + 1) ln(2 |S| N / delta) / (2 m)): a sum of (n + 1) m martingale
differences, each in an interval of length 1 / m.

**Chernoff.** Let L = ln(2 |S| N / delta). For every t > 0, exp(-t m C^_n + (1 - e^-t) m C_n) and
exp(t m C^_n - (e^t - 1) m C_n) are supermartingales that start at one, since ln(1 + p x) <= p x for a visit of
probability p. By Markov's inequality at the best t, with h(x, b) = x - b + b ln(b / x):

    C^_n(s) <= beta_n   implies   C_n(s) <= x,    x > beta_n the root of m h(x, beta_n) = L,
    C^_n(s) >  beta_n   implies   C_n(s) >= y,    y < beta_n the root of m h(y, beta_n) = L.

Thresholds are small, and there Chernoff is far better: about L / beta visits suffice, against n L / beta^2 for Azuma.
Every bound of this package then holds with ``upper[n]`` in place of beta_n, and states outside K_n have at least
``lower[n]``. The visits must be fresh ones (`FreshVisits`): those made while learning come from changing policies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.theory.checks import check_per_round, check_probability
from curious_explorer.theory.reports import Report, Rows, figure
from curious_explorer.validation import check_count

METHODS = ("chernoff", "azuma")


@dataclass(frozen=True, eq=False)
class VisitMargins(Report):
    """What estimated visits guarantee about exact ones, one entry for each round."""

    method: str
    delta: float
    visits: int
    thresholds: Floats
    upper: Floats
    """In K_n, exact cumulated visitation is at most this."""
    lower: Floats
    """Outside K_n, exact cumulated visitation is at least this."""

    @property
    def margins(self) -> Floats:
        """tau_n: what to add to beta_n; the ``margins`` of `theorem_1`."""
        difference: Floats = self.upper - self.thresholds
        return difference

    def _title(self) -> str:
        return f"Visit margins ({self.method}), {self.visits:,} visits a round, confidence {1 - self.delta:g}"

    def _rounds(self) -> Rows:
        columns = (self.thresholds, self.upper, self.lower)
        cells = [[str(n), *(figure(column[n]) for column in columns)] for n in range(self.upper.size)]
        return ("round", "threshold", "at most, in K_n", "at least, outside"), cells

    def _derived(self) -> dict[str, Any]:
        return {"margins": self.margins}


def visit_margins(
    num_states: int,
    thresholds: ArrayLike,
    *,
    visits: int,
    delta: float,
    method: str = "chernoff",
) -> VisitMargins:
    """Margins for all states and all rounds at once, with confidence ``1 - delta``.

    Args:
        num_states: |S|.
        thresholds: beta_n, one for each round.
        visits: m, how many fresh visits each round makes.
        delta: how likely any of them may be to fail.
        method: "chernoff" (the default, far tighter at small thresholds) or "azuma".
    """
    num_states = check_count(num_states, "num_states", least=1)
    betas = check_per_round(np.atleast_1d(np.asarray(thresholds, dtype=np.float64)), np.size(thresholds), "thresholds")
    if betas.size == 0:
        raise ValueError("thresholds is empty, expected one for each round")
    visits = check_count(visits, "visits", least=1)
    delta = check_probability(delta, "delta")
    if method not in METHODS:
        raise ValueError(f"method is {method!r}, expected one of {', '.join(map(repr, METHODS))}")
    logarithm = math.log(2.0 * num_states * betas.size / delta)
    if method == "azuma":
        tau = np.sqrt(np.arange(1, betas.size + 1) * logarithm / (2.0 * visits))
        upper, lower = betas + tau, np.maximum(betas - tau, 0.0)
    else:
        upper = np.array([chernoff_upper(beta, visits, logarithm) for beta in betas])
        lower = np.array([chernoff_lower(beta, visits, logarithm) for beta in betas])
    return VisitMargins(method=method, delta=delta, visits=visits, thresholds=betas, upper=upper, lower=lower)


def chernoff_upper(beta: float, visits: int, logarithm: float) -> float:
    """The x above beta with m h(x, beta) = L."""
    if beta == 0.0:
        return logarithm / visits
    low, high = beta, beta + math.sqrt(2.0 * beta * logarithm / visits) + 2.0 * logarithm / visits
    return _root(beta, visits, logarithm, low, high)


def chernoff_lower(beta: float, visits: int, logarithm: float) -> float:
    """The y below beta with m h(y, beta) = L."""
    if beta == 0.0:
        return 0.0
    return _root(beta, visits, logarithm, beta, 0.0)


def _root(beta: float, visits: int, logarithm: float, inside: float, outside: float) -> float:
    """Bisection between a point where m h <= L and one where it is above; returns the cautious end."""
    for _ in range(200):
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            break
        if visits * (middle - beta + beta * math.log(beta / middle)) <= logarithm:
            inside = middle
        else:
            outside = middle
    return outside
