"""Theorem 3 of the paper: how good the policy is that REINFORCE learns from the resets of an exploration.

With probability 1 - delta after i episodes from mu, and m = max_s d_rho^{pi*}(s) / mu(s) the mismatch coefficient,

    printed   V*(rho) - V^pi(rho) <= C |S|^2 |A|^2 / (1 - gamma)^2 * log(i / delta)^(5/2) / i^(1/6) * m^2
    derived   V*(rho) - V^pi(rho) <= C |S|^2 |A|^2 / (1 - gamma)^7 * log(i / delta)^(5/2) / i^(1/6) * m

(normalised values). **Neither constant is verified**: the printed form rests on a proof "modified, without too much
efforts" from one that we could not open, and our own derivation gives the powers of the second. Both are far above one
at any budget that can be paid, and are said to be vacuous then. `mismatch_free` is the guarantee to use instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.theory.checks import check_positive, check_probability
from curious_explorer.theory.quantities import mismatch_coefficient
from curious_explorer.theory.reports import Report, figure
from curious_explorer.theory.theorem_2 import UNVERIFIED, reinforce_rate
from curious_explorer.validation import check_count, check_gamma


@dataclass(frozen=True, eq=False)
class Theorem3(Report):
    """Both sides of Theorem 3."""

    gamma: float
    delta: float
    episodes: int
    constant: float
    mismatch: float
    left: float | None
    """V*(rho) - V^pi(rho) of the policy, where one was given."""
    printed: float
    derived: float
    constant_verified: bool = False

    @property
    def vacuous(self) -> dict[str, bool]:
        """For each form, whether its bound on normalised values is one or more."""
        return {"printed": self.printed >= 1.0, "derived": self.derived >= 1.0}

    def _title(self) -> str:
        return f"Theorem 3 after {self.episodes:,} episodes, gamma {self.gamma:g}, constant {self.constant:g}"

    def _facts(self) -> list[tuple[str, str]]:
        truth = [] if self.left is None else [("V*(rho) - V(rho)", figure(self.left))]
        return [
            *truth,
            ("mismatch coefficient", figure(self.mismatch)),
            ("printed bound", figure(self.printed)),
            ("derived bound", figure(self.derived)),
        ]

    def _notes(self) -> list[str]:
        return [UNVERIFIED, *(f"The {form} bound is vacuous." for form, empty in self.vacuous.items() if empty)]

    def _derived(self) -> dict[str, Any]:
        if self.left is None:
            return {"vacuous": self.vacuous}
        slacks = {"printed_slack": self.printed - self.left, "derived_slack": self.derived - self.left}
        return {**slacks, "vacuous": self.vacuous}


def theorem_3(
    mdp: FiniteMDP,
    reset: ResetModel | ArrayLike | int | None,
    *,
    gamma: float,
    episodes: int,
    delta: float,
    constant: float = 1.0,
    policy: ArrayLike | None = None,
) -> Theorem3:
    """Both sides of Theorem 3.

    Args:
        mdp: the MDP, with the rewards to be learned for.
        reset: where episodes begin: a reset model, a distribution, a state, or None for rho.
        gamma: the discount.
        episodes: i, how many episodes are run.
        delta: the probability with which the statement may fail.
        constant: C, which nobody states.
        policy: what was learned, for the left side; left out if None.
    """
    gamma = check_gamma(gamma)
    episodes = check_count(episodes, "episodes", least=1)
    delta, constant = check_probability(delta, "delta"), check_positive(constant, "constant")
    mismatch = mismatch_coefficient(mdp, reset, gamma=gamma)
    sizes = (mdp.num_states, mdp.num_actions, gamma, episodes, delta, mismatch)
    return Theorem3(
        gamma=gamma,
        delta=delta,
        episodes=episodes,
        constant=constant,
        mismatch=mismatch,
        left=None if policy is None else max(0.0, float(mdp.start @ _losses(mdp, policy, gamma))),
        printed=reinforce_rate(*sizes, constant=constant),
        derived=reinforce_rate(*sizes, constant=constant, horizon_power=7, mismatch_power=1),
    )


def _losses(mdp: FiniteMDP, policy: ArrayLike, gamma: float) -> Floats:
    """V* - V^pi in every state, normalised."""
    losses: Floats = solve(mdp, gamma=gamma).values - evaluate(mdp, policy, gamma=gamma)
    return losses
