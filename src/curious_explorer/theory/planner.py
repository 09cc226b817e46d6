"""What to set before a run so that its result is guaranteed: which thresholds, how many rounds, how many visits.

The target is a mass eta: no policy shall spend more than eta of its discounted time in the states that are poorly
visited. Write b for an upper limit on exact visitation in K_n (`visit_margins`: the threshold, plus what
sampling may hide), e for the exploitative factor, and let the optimizer be eps-optimal. After N rounds Theorem 1 gives

    constant thresholds   max_pi d(K_last) <= eps / w + (|S| b / w + e) / N          of the last round (the Remark)
    linear thresholds     average over n of max_pi d(K_n) <= eps / w + |S| b_N / (w N) + e / N,    b_N the last round's

With eta' = eta - eps / w, half of eta' goes to each of the two terms: N >= 2 e / eta', and b <= w eta' N / (2 |S|) for
the last round. So a linear schedule beta (n + 1) needs beta <= eta' / (4 |S|) when w = 1/2, and a constant one may be N
times that: the average visitation that it guarantees outside K_n is the same, but it speaks of the *last* round, while
the linear one speaks of an average over rounds. The paper's beta = 1 / (2 |S|) makes |S| b_N / (w N) equal to one on a
linear schedule, and 1 - 1 / N when it starts at zero; e >= 1, so its bound is at least one, which says nothing.
`assess` finds this for any setting.

The planned threshold is half of b, and the visits are as many as keep exact visitation below b in K_n and above b / 4
outside, in all states and rounds with probability 1 - delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from curious_explorer.errors import CertificateError
from curious_explorer.exact.max_visitation import MOST_STATES
from curious_explorer.explorers.thresholds import constant, linear, paper_linear
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import RHO_WEIGHT
from curious_explorer.theory.certificates import visit_margins
from curious_explorer.theory.quantities import exploitative_factor, exploitative_factor_bound
from curious_explorer.theory.reports import Report, check_not_negative, check_positive, check_probability, figure
from curious_explorer.validation import check_count, check_gamma

SCHEDULES = {"constant": constant, "linear": linear, "paper_linear": paper_linear}
UP, DOWN = 1.0 - math.log(2.0), math.log(2.0) - 0.5
"""h(2 b, b) / b and h(b / 2, b) / b of `certificates`: what visits have to outweigh ln(2 |S| N / delta) with."""


@dataclass(frozen=True, eq=False)
class Plan(Report):
    """Settings that suffice."""

    eta: float
    delta: float
    gamma: float
    num_states: int
    exploitative_factor: float
    """Exact, bounded, or |S| when nothing else is known; see the next field."""
    exploitative_factor_from: str
    schedule: str
    beta: float
    """What to pass to the schedule: ``explore(thresholds=constant(beta))``."""
    rounds: int
    visits: int
    epsilon: float
    """What the optimizer has to achieve in every round, normalised, from its resets."""
    coverage: float
    """States outside the last K have at least this visitation on average over the rounds."""
    steps: int
    """Steps that the visits take at most, in expectation; learning comes on top."""

    def _title(self) -> str:
        return f"Plan for mass {self.eta:g} at confidence {1 - self.delta:g}, {self.num_states:,} states"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("thresholds", f"{self.schedule}({figure(self.beta)})"),
            ("rounds", f"{self.rounds:,}"),
            ("visits a round", f"{self.visits:,}"),
            ("steps for visits, expected", f"at most {self.steps:,}"),
            ("optimizer's epsilon", figure(self.epsilon)),
            ("exploitative factor", f"{figure(self.exploitative_factor)} ({self.exploitative_factor_from})"),
            ("coverage outside K", f"average visitation of at least {figure(self.coverage)}"),
        ]

    def _notes(self) -> list[str]:
        which = "the last round" if self.schedule == "constant" else "an average over rounds"
        return [
            f"Guaranteed, for {which}, if the optimizer keeps to epsilon: no policy spends more than {self.eta:g} of "
            "its discounted time in the poorly visited states."
        ]


@dataclass(frozen=True, eq=False)
class Assessment(Report):
    """What Theorem 1 says before a run with given settings."""

    bound: float
    vacuous: bool
    schedule: str
    beta: float
    rounds: int
    visits: int | None
    delta: float | None
    epsilon: float
    num_states: int
    exploitative_factor: float
    exploitative_factor_from: str
    from_optimizer: float
    """eps / w."""
    from_thresholds: float
    from_exploitation: float
    """e / N."""
    computed = ("verdict",)

    @property
    def verdict(self) -> str:
        """Whether the setting guarantees anything, and what stands in the way."""
        if not self.vacuous:
            return f"Guaranteed: a mass of at most {figure(self.bound)}."
        parts = {
            "the thresholds are too large": self.from_thresholds,
            "the rounds are too few": self.from_exploitation,
            "the optimizer is too far from optimal": self.from_optimizer,
        }
        alone = [reason for reason, part in parts.items() if part >= 1.0] or [max(parts, key=lambda name: parts[name])]
        return f"Vacuous: the bound is {figure(self.bound)}, and a mass is at most 1 anyway; {' and '.join(alone)}."

    def _title(self) -> str:
        return f"Setting {self.schedule}({figure(self.beta)}), {self.rounds} rounds, {self.num_states:,} states"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("bound", figure(self.bound)),
            ("from the optimizer", figure(self.from_optimizer)),
            ("from the thresholds", figure(self.from_thresholds)),
            ("from the exploitative factor", f"{figure(self.from_exploitation)} ({self.exploitative_factor_from})"),
        ]

    def _notes(self) -> list[str]:
        return [self.verdict]


def plan(
    mdp: FiniteMDP | int,
    *,
    gamma: float,
    eta: float,
    delta: float,
    epsilon: float = 0.0,
    schedule: str = "constant",
    exploitative_factor: float | None = None,
) -> Plan:
    """Which thresholds, rounds and visits suffice for a mass eta with confidence ``1 - delta``.

    Args:
        mdp: the MDP, or only |S|, the number of its states.
        eta: the mass that poorly visited states may have at the end, in (0, 1).
        delta: the probability with which visits may mislead.
        epsilon: how far from optimal the optimizer may be, in every round.
        schedule: "constant", which guarantees the last round, or "linear", which guarantees an average over rounds.
        exploitative_factor: e, if it is known; computed or bounded from the MDP, or |S|, if None.

    Raises:
        CertificateError: if epsilon alone is more than eta allows.
    """
    gamma, eta = check_gamma(gamma), check_probability(eta, "eta")
    delta, epsilon = check_probability(delta, "delta"), check_not_negative(epsilon, "epsilon")
    if schedule not in ("constant", "linear"):
        raise ValueError(
            f"schedule is {schedule!r}, expected 'constant' or 'linear'; for resets to chosen states, which need no "
            "thresholds, take plan_chosen_resets"
        )
    left = eta - epsilon / RHO_WEIGHT
    if left <= 0.0:
        raise CertificateError(
            f"no plan: epsilon = {epsilon:g} makes epsilon / {RHO_WEIGHT:g} = {epsilon / RHO_WEIGHT:g}, which is all "
            f"of eta = {eta:g} or more; train the optimizer to an epsilon below {eta * RHO_WEIGHT:g}"
        )
    num_states, factor, source = _factor(mdp, gamma, exploitative_factor)
    rounds = math.ceil(2.0 * factor / left)
    limit = RHO_WEIGHT * left * rounds / (2.0 * num_states)  # b of the last round
    beta = 0.5 * limit
    logarithm = math.log(2.0 * num_states * rounds / delta)
    visits = math.ceil(logarithm / (min(UP, DOWN) * beta))
    return Plan(
        eta=eta,
        delta=delta,
        gamma=gamma,
        num_states=num_states,
        exploitative_factor=factor,
        exploitative_factor_from=source,
        schedule=schedule,
        beta=beta if schedule == "constant" else beta / rounds,
        rounds=rounds,
        visits=visits,
        epsilon=epsilon,
        coverage=0.5 * beta / rounds,
        steps=math.ceil(2.0 * gamma / (1.0 - gamma) * visits * rounds),  # rolling in, then walking: half each
    )


def assess(
    mdp: FiniteMDP | int,
    *,
    gamma: float,
    beta: float,
    rounds: int,
    schedule: str = "linear",
    epsilon: float = 0.0,
    visits: int | None = None,
    delta: float | None = None,
    exploitative_factor: float | None = None,
) -> Assessment:
    """What Theorem 1 promises before a run with these settings, and plainly whether that is nothing; see also `plan`.

    Args:
        beta: the schedule's number.
        schedule: "linear" for beta (n + 1), "paper_linear" for beta n, or "constant".
        visits: how many visits a round makes; exact visitation is assumed if None.
        delta: the probability with which visits may mislead; needed with ``visits``.
    """
    gamma, beta = check_gamma(gamma), check_positive(beta, "beta")
    rounds, epsilon = check_count(rounds, "rounds", least=1), check_not_negative(epsilon, "epsilon")
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule is {schedule!r}, expected one of {', '.join(map(repr, SCHEDULES))}")
    if (visits is None) != (delta is None):
        raise ValueError("visits and delta belong together: give both for sampled visits, none for exact ones")
    num_states, factor, source = _factor(mdp, gamma, exploitative_factor)
    thresholds = [SCHEDULES[schedule](beta)(n) for n in range(rounds)]
    limit = max(thresholds)
    if visits is not None and delta is not None:
        limit = float(visit_margins(num_states, thresholds, visits=visits, delta=delta).upper.max())
    parts = epsilon / RHO_WEIGHT, num_states * limit / (RHO_WEIGHT * rounds), factor / rounds
    return Assessment(
        bound=sum(parts),
        vacuous=sum(parts) >= 1.0,
        schedule=schedule,
        beta=beta,
        rounds=rounds,
        visits=visits,
        delta=delta,
        epsilon=epsilon,
        num_states=num_states,
        exploitative_factor=factor,
        exploitative_factor_from=source,
        from_optimizer=parts[0],
        from_thresholds=parts[1],
        from_exploitation=parts[2],
    )


def _factor(mdp: FiniteMDP | int, gamma: float, given: float | None) -> tuple[int, float, str]:
    """|S|, an upper bound on e, and where it comes from."""
    num_states = mdp.num_states if isinstance(mdp, FiniteMDP) else check_count(mdp, "mdp", least=1)
    if given is not None:
        if not 1.0 <= check_positive(given, "exploitative_factor") <= num_states:
            raise ValueError(f"exploitative_factor is {given:g}, expected a number from 1 to |S| = {num_states}")
        return num_states, float(given), "as given"
    if not isinstance(mdp, FiniteMDP):
        return num_states, float(num_states), "at most |S|"
    if num_states <= MOST_STATES:
        return num_states, exploitative_factor(mdp, gamma=gamma), "exact"
    return num_states, exploitative_factor_bound(mdp, gamma=gamma).upper, "bounded"
