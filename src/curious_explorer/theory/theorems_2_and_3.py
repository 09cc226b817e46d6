"""Theorems 2 and 3 of the paper, which rest on a rate for REINFORCE.

**Theorem 2** is Theorem 1 with the optimizer's error replaced by a rate for REINFORCE.

The rate is quoted by the paper from Zhang, Kim, O'Donoghue and Boyd (AAAI 2021, Theorem 6). After i episodes from mu,
with probability 1 - delta, for a universal constant C that is not stated,

    E(i, delta, m) = C |S|^2 |A|^2 / (1 - gamma)^2 * log(i / delta)^(5/2) / i^(1/6) * m^2,

where m is a mismatch. **C is unverified**: it is an argument here, with default 1, so figures show how the bound scales
and never certify anything. Three things are repaired:

- the printed proof ends with the false Lemma 2. It is not needed: step (1) of `theorem_1` uses only the error of
  pi_{n+1} *from rho*, and the rate in the form of Theorem 3 bounds that with m_n = max_s d_rho^{pi*_n}(s) / mu_n(s),
  pi*_n being optimal for the reward 1 on K_n. So the error enters once and not 1 / w = 2 times;
- with N rounds the failure probabilities must be delta / N each;
- log(N i / delta) = log(i / delta) + log N stays inside the power; printed, log N became a factor (zero for N = 1).

    printed    2 log N sum_n E(i_n, delta, max_s max_pi d(s) / mu_n(s)) + 2 sum_s beta_nt(s) + 2 e
    repaired     sum_n E(i_n, delta / N, m_n) + the rest of the repaired form of `theorem_1`

**Theorem 3**: how good the policy is that REINFORCE learns from the resets of an exploration.

With probability 1 - delta after i episodes from mu, and m = max_s d_rho^{pi*}(s) / mu(s) the mismatch coefficient,

    printed   V*(rho) - V^pi(rho) <= C |S|^2 |A|^2 / (1 - gamma)^2 * log(i / delta)^(5/2) / i^(1/6) * m^2
    derived   V*(rho) - V^pi(rho) <= C |S|^2 |A|^2 / (1 - gamma)^7 * log(i / delta)^(5/2) / i^(1/6) * m

(normalised values). **Neither constant is verified**: the printed form rests on a proof "modified, without too much
efforts" from one that we could not open, and our own derivation gives the powers of the second. Both are far above one
at any budget that can be paid, and are said to be vacuous then. `mismatch_free` is the guarantee to use instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats
from curious_explorer.exact import max_visitation
from curious_explorer.exact.evaluation import evaluate
from curious_explorer.exact.optimal import solve
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import RHO_WEIGHT, ResetModel, exact_visits
from curious_explorer.theory.quantities import largest_ratio, mismatch_coefficient
from curious_explorer.theory.reports import (
    BoundReport,
    Rows,
    check_exploration,
    check_per_round,
    check_positive,
    check_probability,
    figure,
    round_rows,
)
from curious_explorer.theory.theorem_1 import theorem_1
from curious_explorer.validation import check_count, check_gamma, check_number

UNVERIFIED = "The constant C is unverified: this shows how the bound scales, and certifies nothing."


def reinforce_rate(
    num_states: int,
    num_actions: int,
    gamma: float,
    episodes: float,
    delta: float,
    mismatch: float,
    *,
    constant: float = 1.0,
    horizon_power: int = 2,
    mismatch_power: int = 2,
) -> float:
    """E(i, delta, m) as printed in the paper's quotation; the constant is unverified."""
    check_count(num_states, "num_states", least=1)
    check_count(num_actions, "num_actions", least=1)
    check_gamma(gamma)
    check_probability(delta, "delta")
    check_number(episodes, "episodes", low=1.0)
    check_number(mismatch, "mismatch")
    check_number(constant, "constant")
    size = (num_states * num_actions) ** 2 / (1.0 - gamma) ** horizon_power
    logarithm = max(0.0, math.log(episodes / delta))
    return float(constant * size * logarithm**2.5 / episodes ** (1.0 / 6.0) * mismatch**mismatch_power)


@dataclass(frozen=True, eq=False)
class Theorem2(BoundReport):
    """Both sides of Theorem 2, one entry for each round; sums run over the rounds up to and with it."""

    gamma: float
    delta: float
    constant: float
    episodes: Floats
    mismatches: Floats
    """max_s d_rho^{pi*_n}(s) / mu_n(s), round by round."""
    worst_mismatches: Floats
    """max_s max_pi d_rho^pi(s) / mu_n(s), round by round."""
    left: Floats
    printed: Floats
    repaired: Floats
    constant_verified: bool = False
    forms = ("printed", "repaired")

    @property
    def largest(self) -> float:
        """The number of rounds."""
        return self.episodes.size

    def _title(self) -> str:
        return f"Theorem 2 after {self.episodes.size} rounds, gamma {self.gamma:g}, constant {self.constant:g}"

    def _rounds(self) -> Rows:
        names = ("mismatch", "sum of max d(K_n)", "repaired", "printed")
        return round_rows(names, self.mismatches, self.left, self.repaired, self.printed)

    def _notes(self) -> list[str]:
        empty = " The repaired bound is vacuous here." if self.vacuous["repaired"] else ""
        return [UNVERIFIED + empty]


def theorem_2(
    mdp: FiniteMDP,
    exploration: Exploration,
    *,
    episodes: ArrayLike,
    delta: float,
    constant: float = 1.0,
    gamma: float | None = None,
) -> Theorem2:
    """Both sides of Theorem 2 for an exploration with REINFORCE.

    Args:
        episodes: i(n), the episodes of each round, or one number for all.
        delta: the probability with which the statement may fail.
        constant: C, which is stated nowhere.
    """
    gamma = check_exploration(exploration, mdp, gamma)
    rounds = len(exploration.rounds)
    counts = check_per_round(episodes, rounds, "episodes")
    if (counts < 1.0).any():
        raise ValueError(f"episodes holds {counts.min():g}, expected at least one episode a round")
    delta, constant = check_probability(delta, "delta"), check_positive(constant, "constant")
    sums = theorem_1(mdp, exploration, np.zeros(rounds))
    most = max_visitation(mdp, gamma=gamma)
    rho = mdp.start / mdp.start.sum()
    mismatches, worst = np.ones(rounds), np.ones(rounds)
    for n, visited in enumerate(exact_visits(exploration.reset_model, mdp)[:-1]):
        mu = RHO_WEIGHT * rho + (1.0 - RHO_WEIGHT) * visited
        poorly = exploration.rounds[n].curiosity_reward
        rewards = np.repeat(poorly[:, None], mdp.num_actions, axis=1)
        mismatches[n] = mismatch_coefficient(mdp, mu / mu.sum(), gamma=gamma, rewards=rewards)
        worst[n] = largest_ratio(most, mu)

    def errors(share: float, factors: Floats) -> Floats:
        terms = [
            reinforce_rate(mdp.num_states, mdp.num_actions, gamma, count, share, factor, constant=constant)
            for count, factor in zip(counts, factors, strict=True)
        ]
        return np.cumsum(terms)

    return Theorem2(
        gamma=gamma,
        delta=delta,
        constant=constant,
        episodes=counts,
        mismatches=mismatches,
        worst_mismatches=worst,
        left=sums.left,
        printed=sums.printed + 2.0 * np.log(np.arange(1, rounds + 1)) * errors(delta, worst),
        repaired=sums.repaired + errors(delta / rounds, mismatches),
    )


@dataclass(frozen=True, eq=False)
class Theorem3(BoundReport):
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
    forms = ("printed", "derived")

    @property
    def largest(self) -> float:
        """One: values are normalised."""
        return 1.0

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
        delta: the probability with which the statement may fail.
        constant: C, which is stated nowhere.
        policy: what was learned, for the left side; left out if None.
    """
    gamma = check_gamma(gamma)
    episodes = check_count(episodes, "episodes", least=1)
    delta, constant = check_probability(delta, "delta"), check_positive(constant, "constant")
    mismatch = mismatch_coefficient(mdp, reset, gamma=gamma)
    sizes = (mdp.num_states, mdp.num_actions, gamma, episodes, delta, mismatch)
    left = None
    if policy is not None:
        losses = solve(mdp, gamma=gamma).values - evaluate(mdp, policy, gamma=gamma)
        left = max(0.0, float(mdp.start @ losses))
    return Theorem3(
        gamma=gamma,
        delta=delta,
        episodes=episodes,
        constant=constant,
        mismatch=mismatch,
        left=left,
        printed=reinforce_rate(*sizes, constant=constant),
        derived=reinforce_rate(*sizes, constant=constant, horizon_power=7, mismatch_power=1),
    )
