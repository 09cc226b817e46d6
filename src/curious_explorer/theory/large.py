"""The exploitative factor of MDPs with a million states: an interval, never one problem for each state.

**From above, for all states together.** With v*_s the optimal value for the reward 1 in s and T_s the first time in s,

    max_pi d_rho^pi(s) = h(s) g(s),    h(s) = max_pi E_rho[gamma^T_s],    g(s) = v*_s(s) = (1 - gamma) / (1 - R(s)),

where R(s) = max_pi E_s[gamma^(time of first return)]. Let C(x, s) = max_a P(s|x, a) and u_0 = rho,
u_t = min(1, C^T u_{t-1}). By induction no policy is in s at time t with probability above u_t(s); so P(T_s = t) <=
u_t(s), while these probabilities sum to at most one, and gamma^t is largest early: filling up the earliest times first,

    h(s) <= sum_t gamma^t q_t(s),    q_t = min(u_t, 1 - q_0 - ... - q_{t-1}).

One sparse product for each t serves all states. R(s) is bounded in the same way from the chances of being back after
1, 2 and 3 steps, the rest being back after 4 at the earliest, or never where s lies on no cycle but a self-loop (a
strongly connected component of its own).

**From below**: the uniform policy's visitation, and exact values at the sampled targets.

**By sampling targets.** With U the sum of the upper bounds u(s), drawing s with probability u(s) / U makes
max_pi d(s) / u(s) a number in [0, 1] of mean e / U. A few exact targets give an estimate, and Hoeffding's inequality in
its relative-entropy form (Hoeffding 1963, Theorem 1) a confidence interval without further assumption.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from curious_explorer.arrays import Floats, Mask
from curious_explorer.exact import visitation
from curious_explorer.exact.max_visitation import MOST_STATES, max_visitation_report
from curious_explorer.exact.policy_chain import mdp_rows
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.theory.checks import check_probability
from curious_explorer.theory.quantities import reachable
from curious_explorer.theory.reports import Report, figure
from curious_explorer.validation import check_count, check_gamma, check_seed

MOST_PRODUCTS = 2_000
NEGLIGIBLE = 1e-4
"""Products stop when what is left to fill adds less than this part; it is then added, so the bound stays a bound."""


@dataclass(frozen=True, eq=False)
class ExploitativeFactorBound(Report):
    """An interval around the exploitative factor, and what it cost."""

    num_states: int
    gamma: float
    lower: float
    """Certain."""
    upper: float
    """Certain."""
    estimate: float | None
    """From sampled targets; None if there were none."""
    interval: tuple[float, float] | None
    """Holds with the confidence below."""
    confidence: float | None
    targets: int
    products: int
    bound_seconds: float
    targets_seconds: float

    def _title(self) -> str:
        return f"Exploitative factor of {self.num_states:,} states, gamma {self.gamma:g}"

    def _facts(self) -> list[tuple[str, str]]:
        certain = f"[{figure(self.lower)}, {figure(self.upper)}], {self.products} sparse products"
        facts = [("certain interval", f"{certain}, {self.bound_seconds:.2f} s")]
        if self.estimate is not None and self.interval is not None and self.confidence is not None:
            low, high = self.interval
            facts.append(("estimate", f"{figure(self.estimate)} from {self.targets} exact targets"))
            name = f"{self.confidence:.1%} interval"
            facts.append((name, f"[{figure(low)}, {figure(high)}], {self.targets_seconds:.1f} s more"))
        return facts


def exploitative_factor_bound(
    mdp: FiniteMDP, *, gamma: float, targets: int = 0, delta: float = 0.05, seed: int = 0
) -> ExploitativeFactorBound:
    """Bound e = sum_s max_pi d_rho^pi(s) without solving a problem for each state.

    Args:
        mdp: the MDP, of any size.
        gamma: the discount.
        targets: how many states to sample and solve exactly for a tighter interval that holds with confidence
            ``1 - delta``; none by default. Each costs about one solution of the MDP.
        delta: how likely that interval may be to miss.
        seed: what targets are drawn from.
    """
    gamma = check_gamma(gamma)
    targets = check_count(targets, "targets")
    delta = check_probability(delta, "delta")
    random = np.random.default_rng(check_seed(seed))
    begin = time.perf_counter()
    ceilings, products = visitation_ceilings(mdp, gamma=gamma)
    floors = visitation(mdp, mdp.uniform_policy(), gamma=gamma)
    upper = float(ceilings.sum())
    middle = time.perf_counter()
    estimate = interval = confidence = None
    if targets:
        drawn = random.choice(mdp.num_states, size=targets, p=ceilings / upper)
        distinct, times = np.unique(drawn, return_counts=True)
        # In blocks where values of many targets fit into the cache; one after the other is faster where they do not.
        method = None if mdp.num_states <= MOST_STATES else "one by one"
        exact = max_visitation_report(mdp, gamma=gamma, targets=distinct, method=method).values
        floors[distinct] = np.maximum(floors[distinct], exact)
        mean = float(np.minimum(exact / ceilings[distinct], 1.0) @ times) / targets
        low, high = mean_interval(mean, targets, delta)
        estimate, interval, confidence = upper * mean, (upper * low, upper * high), 1.0 - delta
    return ExploitativeFactorBound(
        num_states=mdp.num_states,
        gamma=gamma,
        lower=min(upper, float(floors.sum())),
        upper=upper,
        estimate=estimate,
        interval=interval,
        confidence=confidence,
        targets=targets,
        products=products,
        bound_seconds=middle - begin,
        targets_seconds=time.perf_counter() - middle,
    )


def visitation_ceilings(mdp: FiniteMDP, *, gamma: float) -> tuple[Floats, int]:
    """u(s) >= max_pi d_rho^pi(s) for every state, shape (S,), and the number of sparse products it took."""
    from curious_explorer.theory.reach_kernels import best_action_chances, return_chances

    gamma = check_gamma(gamma)
    rows = mdp_rows(mdp)
    indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    row_start, successors, chances = best_action_chances(indptr, indices, np.array(rows.data), mdp.num_actions)
    graph = sparse.csr_array((chances, successors, row_start), shape=(mdp.num_states, mdp.num_states))
    hits, products = _hit_ceilings(mdp, graph, gamma)
    chances_back = return_chances(row_start, successors, chances)
    back = gamma * chances_back[0]
    left = np.where(_on_a_cycle(graph), 1.0 - chances_back[0], 0.0)
    for step in (2, 3):
        filled = np.minimum(chances_back[step - 1], left)
        back += gamma**step * filled
        left -= filled
    back += gamma**4 * left
    ceilings: Floats = hits * (1.0 - gamma) / (1.0 - back)
    return np.minimum(ceilings, 1.0), products


def _on_a_cycle(graph: sparse.csr_array) -> Mask:
    """Which states lie on a cycle with another state."""
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(graph, directed=True, connection="strong")
    shared: Mask = np.bincount(component)[component] > 1
    return shared


def _hit_ceilings(mdp: FiniteMDP, graph: sparse.csr_array, gamma: float) -> tuple[Floats, int]:
    """Upper bounds on max_pi E_rho[gamma^T_s], and the sparse products that they took."""
    matrix = graph.T.tocsr()
    present = mdp.start / mdp.start.sum()
    hits = present.copy()
    left = np.where(reachable(mdp), 1.0 - present, 0.0)
    discount = 1.0
    products = 0
    while products < MOST_PRODUCTS and discount * gamma * left.sum() > NEGLIGIBLE * hits.sum():
        present = np.minimum(1.0, matrix @ present)
        products += 1
        discount *= gamma
        filled = np.minimum(present, left)
        hits += discount * filled
        left -= filled
    return hits + discount * gamma * left, products


def mean_interval(mean: float, count: int, delta: float) -> tuple[float, float]:
    """An interval for the mean of numbers in [0, 1] from the mean of ``count`` independent ones; misses with delta."""
    budget = math.log(2.0 / delta) / count
    return _solve_entropy(mean, 0.0, budget), _solve_entropy(mean, 1.0, budget)


def _solve_entropy(mean: float, end: float, budget: float) -> float:
    """The q between mean and end with kl(mean, q) = budget, by bisection; errs towards the end."""
    inside, outside = mean, end
    for _ in range(100):
        middle = 0.5 * (inside + outside)
        if _entropy(mean, middle) <= budget:
            inside = middle
        else:
            outside = middle
    return outside


def _entropy(p: float, q: float) -> float:
    """kl(p, q) of two coins."""
    head = p * math.log(p / q) if p > 0.0 else 0.0
    tail = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return head + tail
