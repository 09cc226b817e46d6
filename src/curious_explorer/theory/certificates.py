"""A certificate for a finished run, from fresh visits: how often *any* policy can visit the states still in K_n.

Fix a round n, hence K_n and the policy pi_{n+1} that was learned for it, before drawing anything. Of m fresh visits of
pi_{n+1} from rho, k stop in K_n; these are independent draws of probability d_rho^{pi_{n+1}}(K_n), and the
Clopper-Pearson limit p(k, m, delta) is above it with probability 1 - delta. If the optimizer was eps_n-optimal from
mu_n >= w rho, step (1) in `theorem_1` gives

    max_pi d_rho^pi(K_n) <= p(k, m, delta) + eps_n / w.

That eps_n is an *assumption*: samples of one policy cannot show that no other is better, so the caller has to state it,
and the certificate repeats it. `counts_certificate` needs no such assumption, and many more samples.

**Margins**: how far sampled visits may be from exact visitation, in all states and all rounds at once. In round i, m
visits are drawn from D_i, which is fixed by what came before: given the past they are independent. Let C_n = D_0 + ...
+ D_n and C^_n its estimate (visits counted, over m). With probability at least 1 - delta, for all |S| states and N
rounds together:

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

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.errors import CertificateError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.resets.reset_model import RHO_WEIGHT
from curious_explorer.theory.quantities import bisect
from curious_explorer.theory.reports import (
    CertificateReport,
    Report,
    Rows,
    check_exploration,
    check_not_negative,
    check_per_round,
    check_probability,
    check_round,
    figure,
    round_rows,
)
from curious_explorer.validation import check_count
from curious_explorer.worlds import visit
from curious_explorer.worlds.world import World

DEFAULT_VISITS = 10_000
"""Puts the limit at 0.0003 when nothing is seen in K_n and delta is 0.05."""


@dataclass(frozen=True, eq=False)
class Certificate(CertificateReport):
    """With the confidence given, no policy's discounted visitation of K_n from rho exceeds ``limit``."""

    limit: float
    confidence: float
    epsilon: float
    """The assumption: pi_{n+1} is within this of optimal for the reward 1 on K_n, from mu_n, normalised."""
    round_number: int
    poorly_visited: int
    """How many states are in K_n."""
    num_states: int
    gamma: float
    visits: int
    hits: int
    """Visits that stopped in K_n."""
    visitation_limit: float
    """The upper confidence limit on d_rho^{pi_{n+1}}(K_n), before the assumption is used."""
    samples: int
    """Steps that the certificate cost."""

    @property
    def statement(self) -> str:
        """What is guaranteed, in one sentence."""
        if self.poorly_visited == 0:
            return f"No state was poorly visited after round {self.round_number}: there is nothing left to visit."
        return (
            f"With confidence {self.confidence:g}, no policy spends more than {figure(self.limit)} of its discounted "
            f"time in the {self.poorly_visited} states (of {self.num_states}) that were poorly visited after round "
            f"{self.round_number}."
        )

    @property
    def assumption(self) -> str:
        """What the guarantee rests on."""
        if self.poorly_visited == 0:
            return "Nothing is assumed."
        return (
            f"Assumed: the policy learned in round {self.round_number} is within epsilon = {figure(self.epsilon)} of "
            "optimal for the reward 1 on those states, from that round's resets (normalised values)."
        )

    def _title(self) -> str:
        return f"Certificate at confidence {self.confidence:g}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("limit on max_pi d(K)", figure(self.limit)),
            ("of which seen", f"{figure(self.visitation_limit)} ({self.hits:,} of {self.visits:,} visits)"),
            ("of which assumed", figure(self.epsilon / RHO_WEIGHT)),
            ("steps taken", f"{self.samples:,}"),
        ]


def clopper_pearson_upper(hits: int, count: int, delta: float) -> float:
    """The largest probability under which so few hits have a chance of delta or more."""
    from scipy.special import betaincinv

    hits, count = check_count(hits, "hits"), check_count(count, "count", least=1)
    if hits > count:
        raise ValueError(f"hits is {hits} of {count}, expected no more hits than trials")
    delta = check_probability(delta, "delta")
    return 1.0 if hits == count else float(betaincinv(hits + 1, count - hits, 1.0 - delta))


def certify(
    world: World,
    exploration: Exploration,
    *,
    delta: float,
    epsilon: float | None = None,
    visits: int = DEFAULT_VISITS,
    round_number: int | None = None,
    optimizer_delta: float = 0.0,
    gamma: float | None = None,
) -> Certificate:
    """Draw fresh visits and certify how often any policy can visit the states that are still poorly visited.

    Args:
        world: the world that was explored; every step is counted in ``world.samples``.
        delta: the probability with which the samples may mislead.
        epsilon: eps_n, how far from optimal the optimizer is assumed to be in that round (normalised, from its resets,
            for the curiosity reward alone). It has to be stated; there is no default.
        round_number: which round's K_n; the last if None. Choose it before looking at any certificate.
        optimizer_delta: the probability with which the optimizer may miss epsilon; lowers the confidence.
        gamma: if given, checked to be the exploration's own.

    Raises:
        CertificateError: if epsilon is not stated, or if the limit would be one or more and so say nothing.
    """
    gamma = check_exploration(exploration, world, gamma)
    delta = check_probability(delta, "delta")
    visits = check_count(visits, "visits", least=1)
    number = check_round(round_number, len(exploration.rounds))
    missed = check_not_negative(optimizer_delta, "optimizer_delta")
    if delta + missed >= 1.0:
        raise ValueError(f"delta + optimizer_delta is {delta + missed}, expected less than 1")
    if epsilon is None:
        raise CertificateError(
            "no certificate without an assumption on the optimizer: state epsilon=..., how far from optimal its policy "
            "may be; certify_counts needs no such assumption"
        )
    assumed = check_not_negative(epsilon, "epsilon") / RHO_WEIGHT
    round_ = exploration.rounds[number]
    _require_informative(clopper_pearson_upper(0, visits, delta) + assumed, visits, assumed, "at best")
    before = world.samples
    if round_.poorly_visited.any():
        counts = visit(world, round_.learned_policy, gamma=gamma, count=visits)
        hits = int(counts[round_.poorly_visited].sum())
        reach = clopper_pearson_upper(hits, visits, delta)
        limit = reach + assumed
    else:  # no policy can visit no state at all: nothing to draw, nothing to assume
        visits, hits, reach, limit = 0, 0, 0.0, 0.0
    _require_informative(limit, visits, assumed, f"with {hits} hits")
    return Certificate(
        limit=limit,
        confidence=1.0 - delta - missed,
        epsilon=assumed * RHO_WEIGHT,
        round_number=number,
        poorly_visited=int(round_.poorly_visited.sum()),
        num_states=world.num_states,
        gamma=gamma,
        visits=visits,
        hits=hits,
        visitation_limit=reach,
        samples=world.samples - before,
    )


def _require_informative(limit: float, visits: int, assumed: float, how: str) -> None:
    """Refuse a limit that every probability satisfies."""
    if limit >= 1.0:
        raise CertificateError(
            f"the limit from {visits} visits is {limit:.3g} {how} ({assumed:.3g} of it assumed as epsilon / "
            f"{RHO_WEIGHT:g}), which certifies nothing; draw more visits, or train the optimizer to a smaller epsilon"
        )


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
    computed = ("margins",)

    @property
    def margins(self) -> Floats:
        """tau_n: what to add to beta_n; the ``margins`` of `theorem_1`."""
        difference: Floats = self.upper - self.thresholds
        return difference

    def _title(self) -> str:
        return f"Visit margins ({self.method}), {self.visits:,} visits a round, confidence {1 - self.delta:g}"

    def _rounds(self) -> Rows:
        return round_rows(
            ("threshold", "at most, in K_n", "at least, outside"), self.thresholds, self.upper, self.lower
        )


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
    above = beta + math.sqrt(2.0 * beta * logarithm / visits) + 2.0 * logarithm / visits
    return bisect(lambda x: visits * _h(x, beta) <= logarithm, beta, above)


def chernoff_lower(beta: float, visits: int, logarithm: float) -> float:
    """The y below beta with m h(y, beta) = L."""
    return 0.0 if beta == 0.0 else bisect(lambda y: visits * _h(y, beta) <= logarithm, beta, 0.0)


def _h(x: float, beta: float) -> float:
    return x - beta + beta * math.log(beta / x)
