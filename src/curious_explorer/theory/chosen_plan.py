"""What to set before a run of an explorer that counts, so that resets to chosen states come with a guarantee.

An explorer stops when every pair of every state that it met (terminal ones excepted) was tried m times or more, after r
restarts or more; then resets are to the n states that it met. Let a pair have b possible successors at most, and the
start b_0. Write e = (1 - gamma) eta / (2 gamma).

**Theorem.** If m >= (b ln 2 + ln(3 |S| |A| / delta)) / e and r >= 2 (b_0 ln 2 + ln(3 / delta)) / eta, then with
probability 1 - 2 delta / 3 no policy spends more than eta of its discounted time in states that were not met. With one
start r = 1 will do, and m with e = (1 - gamma) eta / gamma.

**Proof.** The successors of a pair's first m tries are independent draws, whatever decides when it is tried. A set of
successors of probability more than e is missed by all of them with probability below (1 - e)^m <= exp(-e m); there are
2^b sets, and |S| |A| pairs. So, but for delta / 3, what the first m tries of a pair have not shown has probability e at
most; likewise for starts, and eta / 2. A walk that stops with probability 1 - gamma before each step ends in a state
that was not met only if it began there, or went there from one that was: each step does with probability e at most, and
gamma / (1 - gamma) steps are expected.

**Arrivals.** `certify_chosen_resets` goes to each state until it was reached k times, in N tries. Its limits on the
probability p of arrival, at delta / (6 n) each for delta / 3 in all, are no further from k / N than those of a Poisson
distribution: p >= (k / N) g / k and p <= (k / (N - 1)) G / k, with g and G the quantiles of Gamma(k) at delta / (6 n)
and 1 - delta / (6 n) (tails of a binomial distribution are lighter than those of a Poisson distribution of the same
mean: Anderson and Samuels 1967). The plan takes the least k with g / k >= 1 - precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from curious_explorer.errors import CertificateError
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.chosen_states import START_SHARE
from curious_explorer.theory.chosen_resets import chosen_resets_bound
from curious_explorer.theory.reports import Report, check_probability, figure
from curious_explorer.validation import check_count, check_gamma

MOST_ARRIVALS = 1 << 40


@dataclass(frozen=True, eq=False)
class ChosenPlan(Report):
    """Settings that suffice."""

    eta: float
    delta: float
    gamma: float
    num_states: int
    num_actions: int
    successors: int
    """b."""
    starts: int
    """b_0."""
    tries: int
    """m, of every pair that is met: ``RMax(known_after=tries)`` takes them."""
    restarts: int
    """r."""
    arrivals: int
    """k: what to pass to ``certify_chosen_resets(..., delta=delta / 3)``."""
    start_share: float
    precision: float
    mismatch: float
    """What is certified at most where states are reached as often as stated, if all |S| states are met."""

    def _title(self) -> str:
        return (
            f"Plan for resets to chosen states, mass {self.eta:g} elsewhere at confidence {1 - self.delta:g}, "
            f"{self.num_states:,} states"
        )

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("tries of every pair that is met", f"{self.tries:,}"),
            ("restarts", f"{self.restarts:,}"),
            ("arrivals in every state that was met", f"{self.arrivals:,}"),
            ("mismatch there", f"at most {figure(self.mismatch)}"),
            ("possible successors of a pair, at most", f"{self.successors:,}"),
        ]

    def _notes(self) -> list[str]:
        return [
            f"Guaranteed: no policy spends more than {self.eta:g} of its discounted time in states that were not met; "
            f'explore with RMax(known_after={self.tries}), reset by weighted("uniform", least_arrival=0), and certify '
            f"with certify_chosen_resets(..., arrivals={self.arrivals}, delta={self.delta / 3.0:.3g})."
        ]


def plan_chosen_resets(
    mdp: FiniteMDP | tuple[int, int],
    *,
    gamma: float,
    eta: float,
    delta: float,
    successors: int | None = None,
    start_share: float = START_SHARE,
    precision: float = 0.5,
) -> ChosenPlan:
    """How often to try every pair, and to go to every state, so that resets to chosen states are guaranteed.

    Args:
        mdp: the MDP, or only (|S|, |A|).
        eta: the discounted time that a policy may spend in states that were not met, in (0, 1).
        delta: the probability with which samples may mislead.
        successors: how many states a pair can lead to, at most; counted in the MDP, or |S|, if None.
        start_share: c, of the resets.
        precision: by which part of what was measured the limit on an arrival may lie below it, in (0, 1).

    Raises:
        CertificateError: if no number of arrivals is enough for the precision.
    """
    gamma, eta = check_gamma(gamma), check_probability(eta, "eta")
    delta, precision = check_probability(delta, "delta"), check_probability(precision, "precision")
    if isinstance(mdp, FiniteMDP):
        num_states, num_actions = mdp.num_states, mdp.num_actions
        most, starts = int(np.diff(mdp.transitions.indptr).max()), int(np.count_nonzero(mdp.start))
    else:
        num_states, num_actions = (check_count(size, "mdp", least=1) for size in mdp)
        most = starts = num_states
    if successors is not None and not 1 <= check_count(successors, "successors") <= num_states:
        raise ValueError(f"successors is {successors}, expected a number from 1 to |S| = {num_states}")
    most = most if successors is None else successors
    for_steps = eta if starts == 1 else 0.5 * eta
    logarithm = most * math.log(2.0) + math.log(3.0 * num_states * num_actions / delta)
    arrivals, factor = _arrivals(delta / (6.0 * num_states), precision)
    return ChosenPlan(
        eta=eta,
        delta=delta,
        gamma=gamma,
        num_states=num_states,
        num_actions=num_actions,
        successors=most,
        starts=starts,
        tries=math.ceil(logarithm * gamma / ((1.0 - gamma) * for_steps)),
        restarts=1 if starts == 1 else math.ceil((starts * math.log(2.0) + math.log(3.0 / delta)) / (0.5 * eta)),
        arrivals=arrivals,
        start_share=start_share,
        precision=precision,
        mismatch=chosen_resets_bound(
            num_states, start_share=start_share, least_ratio=1.0 - precision, largest_ratio=factor
        ),
    )


def _arrivals(share: float, precision: float) -> tuple[int, float]:
    """The least k with g / k >= 1 - precision, and G / k."""
    from scipy.special import gammaincinv

    def is_enough(count: int) -> bool:
        return bool(gammaincinv(count, share) >= (1.0 - precision) * count)

    most = 1
    while not is_enough(most):
        most *= 2
        if most > MOST_ARRIVALS:
            raise CertificateError(f"precision is {precision:g}, for which no number of arrivals is enough")
    least = most // 2 + 1
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if is_enough(middle) else (middle + 1, most)
    return least, float(gammaincinv(least, 1.0 - share)) / least
