"""Theorem 1 of the paper for a finished exploration, in three forms side by side, round by round.

Let w be the weight of rho in mu_n (1/2), V_n the normalised value for the reward 1 on K_n, and eps_n how far pi_{n+1}
is from optimal, V_n*(mu_n) - V_n^{pi_{n+1}}(mu_n). For rounds 0..N the left side of every form is

    sum_{n <= N} max_pi d_rho^pi(K_n),

and the right sides are, with k(s) the number of n <= N with s in K_n and nt(s) the last of them, s running over the
union of the K_n where not said otherwise, m(s) = max_pi d_rho^pi(s), and C_n = D_0 + ... + D_n:

    printed        2 sum_n eps_n    + 2 sum_s beta_nt(s) + 2 sum_{all s} m(s)
    repaired       sum_n eps_n / w  + sum_s min{(beta_nt(s) - D_0(s)) / w + m(s),  k(s) m(s)}
    a posteriori   sum_n eps_n / w  + sum_s ((C_nt(s)(s) - D_0(s)) / w + d_rho^{pi_{nt(s)+1}}(s))

**Proof of the repaired form**, which needs no lemma. (1) V_n* - V_n^{pi_{n+1}} is nowhere negative and mu_n >= w rho,
so w (V_n*(rho) - V_n^{pi_{n+1}}(rho)) <= eps_n, that is, max_pi d_rho^pi(K_n) <= d_rho^{pi_{n+1}}(K_n) + eps_n / w.
(2) D_{n+1} = d_{mu_n}^{pi_{n+1}} >= w d_rho^{pi_{n+1}}, so d_rho^{pi_{n+1}}(s) summed over the n < nt(s) with s in K_n
is at most (D_1(s) + ... + D_nt(s)(s)) / w = (C_nt(s)(s) - D_0(s)) / w <= (beta_nt(s) - D_0(s)) / w, as s is in K_nt(s).
(3) The one term left, n = nt(s), is d_rho^{pi_{nt(s)+1}}(s) <= m(s); and none of the k(s) terms is more than that.
Sum (1) over n, exchange the sums, and use (2) and (3). The a-posteriori form stops before the last steps of (2) and
(3), at what visits show, and knows nothing of m.

The thresholds in the proof are those of exact visitation. Where visits were sampled, s may be in K_n although C_n(s) is
above beta_n; the repaired form then uses max(beta_n, C_n(s)), known from the model, or beta_n plus ``margins`` (see
`visit_margins`) where those are given. The printed form is left as printed.

**The Remark after Theorem 1**: with constant thresholds the *last* poorly visited states are hard to visit. If beta_n =
beta for all n, visits only add up, so K_0 contains K_1 contains ... contains K_N, and each max_pi d_rho^pi(K_n) in the
sum of Theorem 1 is at least max_pi d_rho^pi(K_N). The paper divides the sum over the N rounds 0..N-1 by N; the sum over
the N + 1 rounds 0..N may be divided by N + 1:

    printed    max_pi d(K_N) <= 2 (sum_{n < N} eps_n + |S| beta + e) / N                        nothing for N = 0
    repaired   max_pi d(K_N) <= (sum_{n <= N} eps_n / w + sum_{s in K_0} ((beta - D_0(s)) / w + m(s))) / (N + 1)

(with the minimum over k(s) m(s) as in Theorem 1), and the a-posteriori form is divided as the repaired one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Mask
from curious_explorer.exact import max_visitation, visitation
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import RHO_WEIGHT, exact_visits
from curious_explorer.theory.reports import BoundReport, Rows, check_exploration, check_per_round, figure, round_rows

FORMS = ("printed", "repaired", "a_posteriori")


@dataclass(frozen=True, eq=False)
class Theorem1(BoundReport):
    """Both sides of Theorem 1, one entry for each round; sums run over the rounds up to and with it."""

    gamma: float
    rho_weight: float
    thresholds: Floats
    epsilons: Floats
    """eps_n: given, or exact."""
    epsilons_are_exact: bool
    round_left: Floats
    """max_pi d_rho^pi(K_n), of the round alone."""
    round_right: Floats
    """d_rho^{pi_{n+1}}(K_n) + eps_n / w, of the round alone: step (1) of the proof."""
    left: Floats
    printed: Floats
    repaired: Floats
    a_posteriori: Floats
    exploitative_factor: float
    sampling_excess: float
    """The most by which exact visitation exceeds a threshold in K_n; zero when visits were exact."""
    forms = FORMS
    computed = ("vacuous", "average_mass")

    @property
    def average_mass(self) -> float:
        """What is being bounded, per round: the average over rounds of max_pi d_rho^pi(K_n)."""
        return float(self.left[-1] / self.left.size)

    @property
    def largest(self) -> float:
        """The number of rounds."""
        return self.left.size

    def _title(self) -> str:
        return f"Theorem 1 after {self.left.size} rounds, gamma {self.gamma:g}"

    def _rounds(self) -> Rows:
        names = ("max d(K_n)", "its bound", "sum", "a posteriori", "repaired", "printed")
        columns = (self.round_left, self.round_right, self.left, self.a_posteriori, self.repaired, self.printed)
        return round_rows(names, *columns)

    def _facts(self) -> list[tuple[str, str]]:
        kind = "exact" if self.epsilons_are_exact else "as given"
        return [
            ("exploitative factor e", figure(self.exploitative_factor)),
            ("sum of eps_n", f"{figure(float(self.epsilons.sum()))} ({kind})"),
            ("printed / repaired", figure(float(self.printed[-1] / max(self.repaired[-1], 1e-300)))),
        ]

    def _notes(self) -> list[str]:
        empty = [form.replace("_", " ") for form, is_empty in self.vacuous.items() if is_empty]
        notes = [f"Vacuous (no less than the number of rounds): {', '.join(empty)}."] if empty else []
        if self.sampling_excess > 1e-9:
            notes.append(f"Visits were sampled: a threshold is exceeded by up to {figure(self.sampling_excess)}.")
        return notes


def theorem_1(
    mdp: FiniteMDP,
    exploration: Exploration,
    epsilons: ArrayLike | None = None,
    *,
    margins: ArrayLike | None = None,
    gamma: float | None = None,
) -> Theorem1:
    """Both sides of Theorem 1, in all forms, for an exploration of a known MDP.

    Args:
        epsilons: eps_n for each round (or one number for all) as guaranteed by the optimizer; exact ones if None.
        margins: tau_n for each round, to be added to thresholds in the repaired form instead of what the model shows.
        gamma: if given, checked to be the exploration's own.
    """
    gamma = check_exploration(exploration, mdp, gamma)
    rounds = exploration.rounds
    given = None if epsilons is None else check_per_round(epsilons, len(rounds), "epsilons")
    added = None if margins is None else check_per_round(margins, len(rounds), "margins")
    rho = mdp.start / mdp.start.sum()
    visits = exact_visits(exploration.reset_model, mdp)
    most = max_visitation(mdp, gamma=gamma)

    exact_epsilons, round_left, from_rho = [], [], []
    for round_, visited in zip(rounds, visits[:-1], strict=True):
        gaps, best = _suboptimality(mdp, round_.poorly_visited, round_.learned_policy, gamma)
        mu = RHO_WEIGHT * rho + (1.0 - RHO_WEIGHT) * visited
        exact_epsilons.append(max(0.0, float(mu @ gaps)))
        round_left.append(float(rho @ best))
        from_rho.append(visitation(mdp, round_.learned_policy, gamma=gamma))
    used = np.array(exact_epsilons) if given is None else given
    masks = [round_.poorly_visited for round_ in rounds]
    round_right = np.array([visited[mask].sum() for visited, mask in zip(from_rho, masks, strict=True)])
    sides = _Sides(np.array([round_.threshold for round_ in rounds]), masks, visits, most, from_rho, added)
    errors = np.cumsum(used) / RHO_WEIGHT
    return Theorem1(
        gamma=gamma,
        rho_weight=RHO_WEIGHT,
        thresholds=sides.thresholds,
        epsilons=used,
        epsilons_are_exact=given is None,
        round_left=np.array(round_left),
        round_right=round_right + used / RHO_WEIGHT,
        left=np.cumsum(round_left),
        printed=2.0 * np.cumsum(used) + sides.printed,
        repaired=errors + sides.repaired,
        a_posteriori=errors + sides.a_posteriori,
        exploitative_factor=float(most.sum()),
        sampling_excess=sides.excess,
    )


def _suboptimality(mdp: FiniteMDP, poorly_visited: Mask, policy: Floats, gamma: float) -> tuple[Floats, Floats]:
    """V_n* - V_n^pi and V_n* in every state, for the reward 1 on the poorly visited states."""
    if not poorly_visited.any():
        return np.zeros(mdp.num_states), np.zeros(mdp.num_states)
    rewards = np.repeat(poorly_visited.astype(np.float64)[:, None], mdp.num_actions, axis=1)
    best = solve(mdp, gamma=gamma, rewards=rewards).values
    return best - evaluate(mdp, policy, gamma=gamma, rewards=rewards), best


class _Sides:
    """The right sides without their eps_n, for the rounds up to and with each round."""

    def __init__(
        self,
        thresholds: Floats,
        masks: list[Mask],
        visits: list[Floats],
        most: Floats,
        from_rho: list[Floats],
        margins: Floats | None,
    ) -> None:
        self.thresholds = thresholds
        self.excess = 0.0
        printed, repaired, a_posteriori = [], [], []
        num_states = most.size
        union = np.zeros(num_states, dtype=bool)
        last_threshold, allowed, observed, final, times = (np.zeros(num_states) for _ in range(5))
        total = np.zeros(num_states)
        for n, (threshold, mask) in enumerate(zip(thresholds, masks, strict=True)):
            total += visits[n]  # C_n
            union |= mask
            times[mask] += 1.0  # k
            last_threshold[mask] = threshold
            allowed[mask] = np.maximum(threshold, total[mask]) if margins is None else threshold + margins[n]
            observed[mask] = (total - visits[0])[mask]
            final[mask] = from_rho[n][mask]
            self.excess = max(self.excess, float((total[mask] - threshold).max(initial=0.0)))
            printed.append(2.0 * last_threshold.sum() + 2.0 * most.sum())
            by_threshold = (allowed - visits[0]) / RHO_WEIGHT + most
            repaired.append(np.minimum(by_threshold, times * most)[union].sum())
            a_posteriori.append(observed.sum() / RHO_WEIGHT + final.sum())
        self.printed, self.repaired, self.a_posteriori = map(np.array, (printed, repaired, a_posteriori))


@dataclass(frozen=True, eq=False)
class Remark(BoundReport):
    """Both sides of the Remark, one entry for each round taken as the last."""

    gamma: float
    threshold: float
    epsilons: Floats
    left: Floats
    """max_pi d_rho^pi(K_N)."""
    printed: Floats
    """As in the paper; infinite for N = 0, of which it says nothing."""
    repaired: Floats
    a_posteriori: Floats
    forms = FORMS

    @property
    def largest(self) -> float:
        """One: it is a probability."""
        return 1.0

    def _title(self) -> str:
        return f"Remark: constant threshold {figure(self.threshold)}, gamma {self.gamma:g}"

    def _rounds(self) -> Rows:
        names = ("max d(K_n)", "a posteriori", "repaired", "printed")
        return round_rows(names, self.left, self.a_posteriori, self.repaired, self.printed)


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
    earlier = np.cumsum(sums.epsilons) - sums.epsilons  # of the rounds before N
    with np.errstate(divide="ignore"):
        printed = 2.0 * (earlier + mdp.num_states * threshold + sums.exploitative_factor) / (counts - 1)
    return Remark(
        gamma=sums.gamma,
        threshold=threshold,
        epsilons=sums.epsilons,
        left=sums.round_left,
        printed=printed,
        repaired=sums.repaired / counts,
        a_posteriori=sums.a_posteriori / counts,
    )
