"""What resets to chosen states guarantee: a mismatch that depends on arrival alone, not on how the states were found.

A reset model asks for mu = c rho + (1 - c) w, with w on n chosen states G (see `resets.chosen_states`). A roll-in stays
at the start with a probability proportional to c, and goes to s with one proportional to (1 - c) w(s) / q(s), where
q(s) is the arrival probability that the counted model states. It arrives with p(s), whatever was stated; if it does
not, it is begun again. Write r(s) = p(s) / q(s) and R = max(1, max_{s in G} r(s)).

**Theorem.** Resets are drawn from

    mu(s) = (c rho(s) + (1 - c) w(s) r(s)) / (c + (1 - c) sum_{s' in G} w(s') r(s'))  >=  (1 - c) w(s) r(s) / R,

so that for every policy pi, the optimal one among them, and w uniform on G,

    max_{s in G} d_rho^pi(s) / mu(s)  <=  n R / ((1 - c) min_{s in G} r(s)).

**Proof.** One try ends in s by staying or by arriving, with probabilities in the proportion of the numerator, and
arrives at all in that of the denominator; tries are independent, so the first that arrives has the law of a try given
arrival. The denominator is an average of 1 and of r(s') with weights c and (1 - c) w(s'), hence at most R. Leave
c rho(s) out of the numerator, and use d <= 1.

*Where the counts are right*, r = R = 1: the mismatch is at most n / (1 - c), and mu is what was asked for. *Where all
are tried alike* (q = 1), R = 1 and r = p: at most n / ((1 - c) p_min), the number of states met over the least arrival
probability. *Where q are lower limits on p*, r >= 1 and R <= 1 / q_min: at most n / ((1 - c) q_min). *In any case*
r >= p and R <= 1 / q_min. Nothing here knows of the exploitative factor, of thresholds or of an optimizer; those decide
only which states are met.

**States not met.** Let K be the states outside G that are not terminal. mu may be zero in K, and the mismatch infinite;
what counts is how much of any policy's time they can take. The counted model limits that: `certify_counts` bounds
max_pi d_rho^pi(K) by M from the counts of the pairs that were tried, since a pair tried k times without a way into K
has one of probability at most ln(1/delta) / k, or was unlucky. Together with b = (1 - c) min r / (n R), a lower limit
on mu in G, `mismatch_free_bound(mass=M, floor=b)` limits the loss of a policy trained from these resets.
`certify_training` does both from fresh roll-ins; `certify_chosen_resets` measures r, and with it b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.errors import ArrivalError, CertificateError
from curious_explorer.exact import max_visitation
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.chosen_states import ChosenStates
from curious_explorer.resets.reset_model import ResetModel, exact_arrivals
from curious_explorer.theory.reports import CertificateReport, Report, check_probability, figure
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.targets import ARRIVED, TRIED
from curious_explorer.worlds.world import World

DEFAULT_ARRIVALS = 200
"""Puts the limit of a state that is always reached at 0.96 among 300 states."""


@dataclass(frozen=True, eq=False)
class ChosenResets(Report):
    """Both sides of the theorem for a reset model in a known MDP."""

    gamma: float
    states: int
    """n."""
    start_share: float
    """c."""
    least_arrival: float
    """min over G of p."""
    least_ratio: float
    """min over G of r."""
    largest_ratio: float
    """R."""
    left: float
    """max over s in G and policies pi of d_rho^pi(s) / mu(s), exactly."""
    right: float
    """The bound."""
    outside: float
    """max_pi d_rho^pi(K): how much of its discounted time a policy can spend in the states that were not chosen."""
    computed: ClassVar[tuple[str, ...]] = ("slack",)

    @property
    def slack(self) -> float:
        """Right side minus left side."""
        return self.right - self.left

    def _title(self) -> str:
        return f"Mismatch of resets to {self.states:,} chosen states, gamma {self.gamma:g}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("largest mismatch of any policy in them", figure(self.left)),
            ("bound", figure(self.right)),
            ("least probability of arrival", figure(self.least_arrival)),
            ("arrival over what was stated, least", figure(self.least_ratio)),
            ("largest time of any policy elsewhere", figure(self.outside)),
        ]


@dataclass(frozen=True, eq=False)
class ChosenCertificate(CertificateReport):
    """With the confidence given, no policy's mismatch in the chosen states exceeds ``mismatch``."""

    mismatch: float
    floor: float
    """b: every chosen state is reset to with at least this probability."""
    confidence: float
    start_share: float
    states: Integers
    """G, shape (n,), as all others."""
    stated: Floats
    """q."""
    lower: Floats
    """Limits on p from below, for all states at once."""
    upper: Floats
    """Limits on p from above, for all states at once."""
    tried: Integers
    arrived: Integers
    samples: int
    """Steps that the certificate cost."""

    @property
    def statement(self) -> str:
        """What is guaranteed, in one sentence."""
        return (
            f"With confidence {self.confidence:g}, each of {len(self.states):,} chosen states is reset to with "
            f"probability {figure(self.floor)} or more, and no policy's mismatch there exceeds {figure(self.mismatch)}."
        )

    @property
    def assumption(self) -> str:
        """What the guarantee rests on."""
        return "Assumed: restarts are independent, and no time limit cuts roll-ins. No model, no Markov property."

    def _title(self) -> str:
        return f"Resets to chosen states, at confidence {self.confidence:g}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("limit on the mismatch", figure(self.mismatch)),
            ("least reset probability", figure(self.floor)),
            ("least limit on an arrival", figure(float(self.lower.min()))),
            ("tries, arrivals", f"{int(self.tried.sum()):,}, {int(self.arrived.sum()):,}"),
            ("steps taken", f"{self.samples:,}"),
        ]


def chosen_resets_bound(
    num_chosen: int, *, start_share: float, least_ratio: float, largest_ratio: float = 1.0
) -> float:
    """The bound on the mismatch of even resets to so many states, from numbers alone: n R / ((1 - c) r).

    Args:
        num_chosen: n.
        start_share: c.
        least_ratio: a lower limit on p / q; on p itself where all states are tried alike.
        largest_ratio: R, at least 1.
    """
    check_count(num_chosen, "num_chosen", least=1)
    if not 0.0 <= start_share < 1.0:
        raise ValueError(f"start_share is {start_share!r}, expected at least 0 and less than 1")
    if least_ratio < 0.0 or largest_ratio < 1.0:
        raise ValueError(f"ratios are {least_ratio!r} and {largest_ratio!r}, expected at least 0 and at least 1")
    return float(np.inf) if least_ratio == 0.0 else num_chosen * largest_ratio / ((1.0 - start_share) * least_ratio)


def chosen_resets(mdp: FiniteMDP, reset_model: ResetModel, *, gamma: float) -> ChosenResets:
    """Both sides of the theorem in a known MDP, for any weights: 1 / w(s) stands for n where they are not even."""
    gamma, chosen = check_gamma(gamma), _chosen(reset_model)
    arrivals = exact_arrivals(chosen, mdp)
    ratios = arrivals / chosen.probability
    largest = max(1.0, float(ratios.max()))
    floors = (1.0 - chosen.choice.start_share) * chosen.choice.weights[chosen.states] * ratios / largest
    mu = reset_model.distribution(mdp)
    visits = max_visitation(mdp, gamma=gamma, targets=chosen.states)
    others = ~mdp.terminal
    others[chosen.states] = False
    rewards = np.repeat(others[:, None].astype(np.float64), mdp.num_actions, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ChosenResets(
            gamma=gamma,
            states=len(chosen.states),
            start_share=chosen.choice.start_share,
            least_arrival=float(arrivals.min()),
            least_ratio=float(ratios.min()),
            largest_ratio=largest,
            left=float(np.where(visits > 0.0, visits / mu[chosen.states], 0.0).max()),
            right=float((1.0 / floors).max()),
            outside=float(mdp.start @ solve(mdp, gamma=gamma, rewards=rewards).values) if others.any() else 0.0,
        )


def certify_chosen_resets(
    world: World, reset_model: ResetModel, *, delta: float = 0.05, arrivals: int = DEFAULT_ARRIVALS
) -> ChosenCertificate:
    """Certify the mismatch of resets to chosen states, from fresh roll-ins to each of them.

    A state is tried until it was reached so many times, so the number of tries is random: of N of them k arrived. N or
    fewer are as likely as k or more arrivals in N, and N or more as less than k in N - 1, which gives limits like those
    of Clopper and Pearson, at delta / (2 n) each.

    Args:
        world: where to walk; every step is counted in ``world.samples``.
        reset_model: one that starts in chosen states.
        delta: the probability with which roll-ins may mislead.
        arrivals: k.

    Raises:
        CertificateError: if a state was not reached at all in as many tries as the reset model allows.
    """
    from scipy.special import betaincinv

    chosen = _chosen(reset_model)
    reset_model.check_world(world)
    delta, arrivals = check_probability(delta, "delta"), check_count(arrivals, "arrivals", least=1)
    choice, before = chosen.choice, world.samples
    tally = np.zeros((len(chosen.states), 2), dtype=np.int64)
    for index, state in enumerate(chosen.states.tolist()):
        to = reset_model.to(state, limit=choice.limit, tries=choice.tries)
        try:
            to.sample(world, arrivals)
        except ArrivalError as error:
            raise CertificateError(f"resets to state {state} cannot be certified: {error}") from error
        table = to.arrivals
        tally[index, [TRIED, ARRIVED]] = table.tried[0], table.arrived[0]
    tried, arrived = tally.T
    share = 0.5 * delta / len(chosen.states)
    lower: Floats = betaincinv(arrived, tried - arrived + 1.0, share)
    upper: Floats = np.where(tried > arrived, betaincinv(arrived, np.maximum(tried - arrived, 1), 1.0 - share), 1.0)
    ratios, largest = lower / chosen.probability, max(1.0, float((upper / chosen.probability).max()))
    floor = float(((1.0 - choice.start_share) * choice.weights[chosen.states] * ratios / largest).min())
    return ChosenCertificate(
        mismatch=1.0 / floor,
        floor=floor,
        confidence=1.0 - delta,
        start_share=choice.start_share,
        states=chosen.states,
        stated=chosen.probability,
        lower=lower,
        upper=upper,
        tried=tried.copy(),
        arrived=arrived.copy(),
        samples=world.samples - before,
    )


def _chosen(reset_model: ResetModel) -> ChosenStates:
    if reset_model.chosen is None:
        raise ValueError(
            f"this reset model walks policies ({reset_model.weighting}), expected one that starts in chosen states: "
            'reset_model.weighted("uniform")'
        )
    return reset_model.chosen
