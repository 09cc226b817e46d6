"""The Remark after Theorem 1: with constant thresholds the *last* poorly visited states are hard to visit.

If beta_n = beta for all n, visits only add up, so K_0 contains K_1 contains ... contains K_N, and each
max_pi d_rho^pi(K_n) in the sum of Theorem 1 is at least max_pi d_rho^pi(K_N). Dividing by the N + 1 rounds 0..N,

    repaired   max_pi d(K_N) <= (sum_n eps_n / w + sum_{s in K_0} ((beta - D_0(s)) / w + max_pi d(s))) / (N + 1)
    printed    max_pi d(K_N) <= 2 (sum_n eps_n + |S| beta + e) / (N + 1)

(with the minimum over k(s) max_pi d(s) as in Theorem 1), and the a-posteriori form may be divided in the same way. All
of them bound K_{N+1}, a part of K_N, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.theory.reports import Report, Rows, figure
from curious_explorer.theory.theorem_1 import FORMS, theorem_1


@dataclass(frozen=True, eq=False)
class Remark(Report):
    """Both sides of the Remark, one entry for each round taken as the last."""

    gamma: float
    threshold: float
    epsilons: Floats
    left: Floats
    """max_pi d_rho^pi(K_N)."""
    printed: Floats
    repaired: Floats
    a_posteriori: Floats

    def slack(self, form: str = "repaired") -> Floats:
        """Right side minus left side, round by round."""
        if form not in FORMS:
            raise ValueError(f"form is {form!r}, expected one of {', '.join(map(repr, FORMS))}")
        difference: Floats = getattr(self, form) - self.left
        return difference

    @property
    def vacuous(self) -> dict[str, bool]:
        """For each form, whether its bound on a probability is one or more."""
        return {form: bool(getattr(self, form)[-1] >= 1.0) for form in FORMS}

    def _title(self) -> str:
        return f"Remark: constant threshold {figure(self.threshold)}, gamma {self.gamma:g}"

    def _rounds(self) -> Rows:
        columns = (self.left, self.a_posteriori, self.repaired, self.printed)
        cells = [[str(n), *(figure(column[n]) for column in columns)] for n in range(self.left.size)]
        return ("round", "max d(K_n)", "a posteriori", "repaired", "printed"), cells

    def _derived(self) -> dict[str, Any]:
        return {**{f"{form}_slack": self.slack(form) for form in FORMS}, "vacuous": self.vacuous}


def remark(
    mdp: FiniteMDP,
    exploration: Exploration,
    epsilons: ArrayLike | None = None,
    *,
    margins: ArrayLike | None = None,
    gamma: float | None = None,
) -> Remark:
    """Both sides of the Remark for an exploration with constant thresholds; arguments as in `theorem_1`."""
    sums = theorem_1(mdp, exploration, epsilons, margins=margins, gamma=gamma)
    if np.ptp(sums.thresholds) > 0.0:
        raise ValueError(
            f"the thresholds run from {sums.thresholds.min():g} to {sums.thresholds.max():g}, but the Remark is about "
            "constant ones; explore with thresholds=constant(beta), or use theorem_1"
        )
    counts = np.arange(1, sums.left.size + 1)
    threshold = float(sums.thresholds[0])
    printed = 2.0 * (np.cumsum(sums.epsilons) + mdp.num_states * threshold + sums.exploitative_factor) / counts
    return Remark(
        gamma=sums.gamma,
        threshold=threshold,
        epsilons=sums.epsilons,
        left=sums.round_left,
        printed=printed,
        repaired=sums.repaired / counts,
        a_posteriori=sums.a_posteriori / counts,
    )
