"""A guarantee for the improvement phase without a mismatch coefficient, which the paper leaves as future work.

A softmax policy pi is trained from resets mu on the log-barrier objective (values here are *not* normalised)

    L(theta) = V^pi(mu) + (lambda / (|S| |A|)) sum_{s,a} log pi(a|s),
    dL/dtheta(s, a) = d(s) pi(a|s) A(s, a) / (1 - gamma) + (lambda / |S|) (1/|A| - pi(a|s)),    d = d_mu^pi,

with A the advantage. Let K be any set of states (the poorly visited ones), and g = max |dL/dtheta|.

**Theorem.** If g <= lambda / (|S| |A|), then

    V*(rho) - V^pi(rho) <= d*(K) / (1 - gamma)^2 + c sum_{s not in K} d*(s) / d(s),    d* = d_rho^{pi*},
                        <= d*(K) / (1 - gamma)^2 + c / ((1 - gamma) b),                b = min_{s not in K} mu(s),
    c = lambda/|S| - lambda/(|S||A|) + g  <=  lambda/|S|.

**Proof.** Take s, a with A(s, a) >= 0 and solve the gradient for it: A(s, a) = (1 - gamma) / d(s) * (lambda/|S| +
(dL/dtheta(s, a) - lambda/(|S||A|)) / pi(a|s)). The bracket over pi is at most g - lambda/(|S||A|) <= 0, and pi <= 1, so
A(s, a) <= (1 - gamma) c / d(s). By the performance difference lemma V*(rho) - V^pi(rho) = sum_s d*(s) sum_a
pi*(a|s) A(s, a) / (1 - gamma); use A <= 1 / (1 - gamma) in K and the bound just proved outside. Last, d_mu^pi >=
(1 - gamma) mu, and d* sums to at most one.

The first term is what exploration makes small: d*(K) <= max_pi d_rho^pi(K), which Theorem 1 bounds and `certify`
certifies. The second is what b, the coverage outside K, is there for. Nothing depends on d*/mu inside K. (With the
usual assumption ||dL|| <= lambda / (2 |S| |A|), c is lambda (1 - 1/(2|A|)) / |S|; bounding the two parts of the bracket
apart, as is usual, costs a factor of two.) The inequality printed in the paper's Limitations section is not this one,
and is false; see docs/theory.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.errors import CertificateError
from curious_explorer.exact import visitation
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.theory.quantities import reset_distribution
from curious_explorer.theory.reports import Report, check_not_negative, check_positive, figure
from curious_explorer.validation import check_count, check_gamma, check_policy, check_states


@dataclass(frozen=True, eq=False)
class MismatchFree(Report):
    """Both sides of the mismatch-free guarantee; values are not normalised."""

    gamma: float
    barrier: float
    gradient: float
    """The largest entry of the gradient, in absolute value."""
    mass: float
    """d*(K)."""
    floor: float
    """b, the least reset probability outside K."""
    left: float
    """V*(rho) - V^pi(rho)."""
    right: float
    """With the ratios d*/d summed exactly."""
    right_from_floor: float
    """With b alone, as somebody without the model would have it."""
    computed = ("slack", "vacuous")

    @property
    def slack(self) -> float:
        """Right side minus left side."""
        return self.right - self.left

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no less than the largest value there can be, 1 / (1 - gamma)."""
        return self.right >= 1.0 / (1.0 - self.gamma)

    def _title(self) -> str:
        return f"Mismatch-free guarantee, gamma {self.gamma:g}, barrier {figure(self.barrier)}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("V*(rho) - V(rho), not normalised", figure(self.left)),
            ("bound", figure(self.right)),
            ("bound from coverage alone", figure(self.right_from_floor)),
            ("d*(K)", figure(self.mass)),
            ("least reset probability outside K", figure(self.floor)),
        ]

    def _notes(self) -> list[str]:
        return ["Vacuous: values are at most 1 / (1 - gamma)."] if self.vacuous else []


def barrier_gradient(
    mdp: FiniteMDP, policy: ArrayLike, reset: ResetModel | ArrayLike | int | None, *, gamma: float, barrier: float
) -> Floats:
    """dL/dtheta of a softmax policy, shape (S, A); values not normalised."""
    gamma = check_gamma(gamma)
    table = check_policy(policy, mdp.num_states, mdp.num_actions)
    barrier = check_positive(barrier, "barrier")
    mu = reset_distribution(mdp, reset)
    values = evaluate(mdp, table, gamma=gamma)
    q = mdp.rewards + gamma / (1.0 - gamma) * (mdp.transitions @ values).reshape(table.shape)
    advantages = q - values[:, None] / (1.0 - gamma)
    visits = visitation(mdp, table, gamma=gamma, start=mu / mu.sum())
    pull = barrier / mdp.num_states * (1.0 / mdp.num_actions - table)
    gradient: Floats = visits[:, None] * table * advantages / (1.0 - gamma) + pull
    return gradient


def mismatch_free(
    mdp: FiniteMDP,
    policy: ArrayLike,
    reset: ResetModel | ArrayLike | int | None,
    poorly_visited: ArrayLike,
    *,
    gamma: float,
    barrier: float,
) -> MismatchFree:
    """Both sides of the guarantee for a policy in a known MDP.

    Args:
        mdp: the MDP, with the rewards that were learned for.
        reset: mu, where learning started: a reset model, a distribution, a state, or None for rho.
        poorly_visited: K, as a mask or state indices; any set will do.
        barrier: lambda, the weight of the log-barrier.

    Raises:
        CertificateError: if the policy is not near enough to a stationary point for the theorem to apply.
    """
    mask = check_states(poorly_visited, mdp.num_states, "poorly_visited")
    mu = reset_distribution(mdp, reset)
    gradient = float(np.abs(barrier_gradient(mdp, policy, mu, gamma=gamma, barrier=barrier)).max())
    least = barrier / (mdp.num_states * mdp.num_actions)
    if gradient > least:
        raise CertificateError(
            f"the gradient of the log-barrier objective is {gradient:.3g}, expected at most lambda / (|S| |A|) = "
            f"{least:.3g}; train longer, or with a larger barrier"
        )
    table = check_policy(policy, mdp.num_states, mdp.num_actions)
    best = solve(mdp, gamma=gamma)
    optimal = visitation(mdp, best.policy, gamma=gamma)
    visits = visitation(mdp, table, gamma=gamma, start=mu / mu.sum())
    outside = ~mask & (optimal > 0.0)
    with np.errstate(divide="ignore"):
        ratios = float((optimal[outside] / visits[outside]).sum())
    floor = float(mu[~mask].min()) if not mask.all() else 1.0
    sizes = (mdp.num_states, mdp.num_actions)
    scale = _scale(*sizes, barrier, gradient)
    mass = float(optimal[mask].sum())
    return MismatchFree(
        gamma=gamma,
        barrier=barrier,
        gradient=gradient,
        mass=mass,
        floor=floor,
        left=float(mdp.start @ (best.values - evaluate(mdp, table, gamma=gamma))) / (1.0 - gamma),
        right=mass / (1.0 - gamma) ** 2 + scale * ratios,
        right_from_floor=mismatch_free_bound(*sizes, gamma=gamma, mass=mass, floor=floor, barrier=barrier,
                                             gradient=gradient),
    )  # fmt: skip


def mismatch_free_bound(
    num_states: int,
    num_actions: int,
    *,
    gamma: float,
    mass: float,
    floor: float,
    barrier: float,
    gradient: float | None = None,
) -> float:
    """The bound on V*(rho) - V^pi(rho), not normalised, from what can be known without the model.

    Args:
        mass: an upper bound on max_pi d_rho^pi(K), such as a certificate's limit.
        floor: a lower bound on mu outside K.
        gradient: an upper bound on the largest gradient entry; lambda / (2 |S| |A|) if None.
    """
    gamma = check_gamma(gamma)
    sizes = check_count(num_states, "num_states", least=1), check_count(num_actions, "num_actions", least=1)
    barrier, mass = check_positive(barrier, "barrier"), check_not_negative(mass, "mass")
    most = barrier / (sizes[0] * sizes[1])
    given = 0.5 * most if gradient is None else check_not_negative(gradient, "gradient")
    if given > most:
        raise CertificateError(f"gradient is {given:.3g}, expected at most lambda / (|S| |A|) = {most:.3g}")
    coverage = np.inf if check_not_negative(floor, "floor") == 0.0 else 1.0 / ((1.0 - gamma) * floor)
    return float(min(mass, 1.0) / (1.0 - gamma) ** 2 + _scale(*sizes, barrier, given) * coverage)


def _scale(num_states: int, num_actions: int, barrier: float, gradient: float) -> float:
    """The letter c of the theorem."""
    return barrier / num_states - barrier / (num_states * num_actions) + gradient
