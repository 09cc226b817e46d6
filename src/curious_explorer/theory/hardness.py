"""How hard an MDP is to explore and to solve, in a report that a person can read.

What is in it, and which way is hard:

- exploitative factor e: how many states' worth of visits there are to hand out; rounds needed grow with it;
- hardest state: the reachable state that even the best policy visits least;
- random-walk cost: max_s max_pi d(s) / d^uniform(s), how many times better the best policy visits some state than
  choosing at random does; exponential in the depth of a combination lock, and what Curious Explorer is there to beat;
- radius and diameter: the largest effective hitting time (see `quantities`) from rho, and between any two states;
- action gaps V*(s) - q*(s, a) of the MDP's own reward, normalised, over states that can be reached: the smallest one
  above zero, and the sum of 1 / gap, to which sample bounds that depend on the instance are proportional.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats, Mask
from curious_explorer.exact import max_visitation, visitation
from curious_explorer.exact.max_visitation import MOST_STATES
from curious_explorer.exact.optimal import solve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.theory.quantities import (
    MOST_PAIRS,
    ExploitativeFactorBound,
    distances,
    exploitative_factor_bound,
    hitting_times,
    largest_ratio,
)
from curious_explorer.theory.reports import Report, figure
from curious_explorer.validation import check_gamma

RELATIVE_TIE = 1e-9
"""Gaps below this part of the largest value are ties."""


@dataclass(frozen=True, eq=False)
class Hardness(Report):
    """How hard an MDP is; fields that would cost too much at its size are None."""

    num_states: int
    num_actions: int
    gamma: float
    reachable_states: int
    eccentricity: int
    """The most steps that the nearest path to a reachable state needs."""
    exploitative_factor: float | None
    exploitative_factor_bound: ExploitativeFactorBound | None
    """Where the exact one is out of reach."""
    hardest_state: str | None
    hardest_visitation: float | None
    """max_pi d_rho^pi of the hardest state."""
    random_walk_cost: float | None
    radius: float | None
    diameter: float | None
    unreachable_pairs: int | None
    """Ordered pairs of reachable states between which there is no path."""
    optimal_value: float
    """V*(rho), normalised."""
    random_value: float
    """The uniform policy's value from rho, normalised."""
    smallest_gap: float | None
    """None if every action is optimal everywhere."""
    inverse_gaps: float
    computed = ("verdict",)

    def _title(self) -> str:
        return f"Hardness of an MDP of {self.num_states:,} states and {self.num_actions} actions, gamma {self.gamma:g}"

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("reachable states", f"{self.reachable_states:,}, at most {self.eccentricity} steps away")]
        if self.exploitative_factor is not None:
            facts.append(("exploitative factor e", figure(self.exploitative_factor)))
        if self.exploitative_factor_bound is not None:
            bound = self.exploitative_factor_bound
            facts.append(("exploitative factor e", f"between {figure(bound.lower)} and {figure(bound.upper)}"))
        if self.hardest_visitation is not None:
            facts.append(("hardest state", f"{self.hardest_state}: best visitation {figure(self.hardest_visitation)}"))
        if self.random_walk_cost is not None:
            facts.append(("random-walk cost", f"{figure(self.random_walk_cost)} times fewer visits at random"))
        if self.radius is not None and self.diameter is not None:
            facts.append(("radius, diameter", f"{figure(self.radius)}, {figure(self.diameter)} effective steps"))
        if self.unreachable_pairs:
            facts.append(("no way back", f"{self.unreachable_pairs:,} pairs of states have no path"))
        facts.append(("value, best and random", f"{figure(self.optimal_value)}, {figure(self.random_value)}"))
        gap = "every action is optimal" if self.smallest_gap is None else figure(self.smallest_gap)
        return [*facts, ("smallest action gap", gap), ("sum of 1 / gap", figure(self.inverse_gaps))]

    def _notes(self) -> list[str]:
        return [self.verdict]

    @property
    def verdict(self) -> str:
        """One sentence on what exploration has to do here."""
        cost = self.random_walk_cost
        if cost is None:
            return "Too large for exact visitation of every state; see the interval for e."
        if math.isinf(cost) or cost > 1e4:
            return "Random actions will not get everywhere: this needs directed exploration."
        if cost > 30.0:
            return "Random actions get everywhere slowly: directed exploration pays."
        return "Random actions get nearly everywhere: directed exploration adds little."


def hardness(mdp: FiniteMDP, *, gamma: float) -> Hardness:
    """Measure how hard an MDP is to explore and to solve.

    Exact up to 10,000 states (hitting times between all pairs up to 2,000); beyond that e is bounded.
    """
    gamma = check_gamma(gamma)
    steps = distances(mdp)
    mask = steps >= 0
    uniform = visitation(mdp, mdp.uniform_policy(), gamma=gamma)
    solution = solve(mdp, gamma=gamma)
    gap, inverse = _gaps(solution.values, solution.q, mask)
    exact: dict[str, Any] = dict.fromkeys(
        ("exploitative_factor", "hardest_state", "hardest_visitation", "random_walk_cost"), None
    )
    bound = None
    if mdp.num_states <= MOST_STATES:
        most = max_visitation(mdp, gamma=gamma)
        hardest = int(np.flatnonzero(mask)[np.argmin(most[mask])])
        exact = {
            "exploitative_factor": float(most.sum()),
            "hardest_state": mdp.state_names[hardest],
            "hardest_visitation": float(most[hardest]),
            "random_walk_cost": largest_ratio(most[mask], uniform[mask]),
        }
    else:
        bound = exploitative_factor_bound(mdp, gamma=gamma)
    return Hardness(
        num_states=mdp.num_states,
        num_actions=mdp.num_actions,
        gamma=gamma,
        reachable_states=int(mask.sum()),
        eccentricity=int(steps.max()),
        exploitative_factor_bound=bound,
        optimal_value=float(mdp.start @ solution.values),
        random_value=float(uniform @ mdp.rewards.mean(axis=1)),
        smallest_gap=gap,
        inverse_gaps=inverse,
        **exact,
        **_pair_times(mdp, gamma, mask, exact["hardest_visitation"]),
    )


def _gaps(values: Floats, q: Floats, mask: Mask) -> tuple[float | None, float]:
    gaps = (values[:, None] - q)[mask]
    positive = gaps[gaps > RELATIVE_TIE * max(float(np.abs(values).max()), np.finfo(float).tiny)]
    return (float(positive.min()), float((1.0 / positive).sum())) if positive.size else (None, 0.0)


def _pair_times(mdp: FiniteMDP, gamma: float, mask: Mask, hardest: float | None) -> dict[str, Any]:
    """Radius, diameter and pairs without a path, over reachable states."""
    if mdp.num_states > MOST_PAIRS or gamma == 0.0 or hardest is None:
        return {"radius": None, "diameter": None, "unreachable_pairs": None}
    targets = np.flatnonzero(mask)
    times = hitting_times(mdp, gamma=gamma, targets=targets)
    from_start = -np.log(np.maximum(mdp.start @ gamma**times, 1e-300)) / -math.log(gamma)  # of E_rho[gamma^T]
    between = times[targets]
    finite = between[np.isfinite(between)]
    return {
        "radius": float(from_start.max()),
        "diameter": float(finite.max()),
        "unreachable_pairs": int((~np.isfinite(between)).sum()),
    }
