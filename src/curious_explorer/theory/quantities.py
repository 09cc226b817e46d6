"""Exact quantities that say how hard an MDP is to explore, and how well a distribution covers it.

With d_mu^pi the discounted visitation of `curious_explorer.exact`, rho the start and pi* an optimal policy:

    exploitative factor      e = sum_s max_pi d_rho^pi(s)               between 1 and |S|
    mismatch coefficient     max_s d_rho^{pi*}(s) / mu(s)               at least 1; infinite where mu misses pi*
    worst mismatch           max_s max_pi d_rho^pi(s) / mu(s)           bounds the mismatch of every policy
    effective hitting time   t(x, s) = log_gamma max_pi E_x[gamma^T_s]  steps; infinite where s cannot be reached

T_s is the first time in s. Since a visit of s needs to reach s first, v*_s(x) = max_pi E_x[gamma^T_s] v*_s(s), where
v*_s is the optimal value for the reward 1 in s: hitting times come from the same equations as the exploitative factor.
Discounting keeps them finite where a trap makes the expected hitting time of every policy infinite.

The exploitative factor of a million states is bounded, never by one problem for each state:

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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from curious_explorer.arrays import Floats, Indices, Integers, Mask
from curious_explorer.compile import compiled
from curious_explorer.exact import max_visitation, visitation
from curious_explorer.exact.max_visitation import MOST_STATES, max_visitation_report
from curious_explorer.exact.optimal import solve
from curious_explorer.exact.policy_chain import mdp_rows
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.theory.reports import Report, check_probability, figure
from curious_explorer.validation import as_distribution, check_count, check_gamma, check_seed, check_states

MOST_PAIRS = 2_000
"""The most states for which hitting times between all pairs are computed unless targets are named."""


def exploitative_factor(mdp: FiniteMDP, *, gamma: float) -> float:
    """The exploitative factor e = sum_s max_pi d_rho^pi(s), exactly; one optimality problem for each state.

    Refused above 10,000 states; `exploitative_factor_bound` gives an interval at any size.
    """
    if mdp.num_states > MOST_STATES:
        raise ValueError(
            f"the exact exploitative factor of {mdp.num_states} states means as many optimality problems, which is "
            f"refused above {MOST_STATES}; use theory.exploitative_factor_bound(mdp, gamma=...)"
        )
    return float(max_visitation(mdp, gamma=gamma).sum())


def reset_distribution(mdp: FiniteMDP, reset: ResetModel | ArrayLike | int | None) -> Floats:
    """The distribution over states behind a reset model, a state or a table; rho for None."""
    if reset is None:
        rho: Floats = mdp.start / mdp.start.sum()
        return rho
    if isinstance(reset, ResetModel):
        return reset.distribution(mdp)
    return as_distribution(reset, mdp.num_states, "reset")


def mismatch_coefficient(
    mdp: FiniteMDP,
    reset: ResetModel | ArrayLike | int | None,
    *,
    gamma: float,
    rewards: ArrayLike | None = None,
    policy: ArrayLike | None = None,
) -> float:
    """max_s d_rho^{pi*}(s) / mu(s), infinite where mu misses a state that pi* visits.

    Args:
        reset: mu: a reset model, a distribution, a state, or None for rho. A reset model keeps its own discount.
        gamma: the discount of d and of pi*.
        rewards: an (S, A) table in place of the MDP's own, for which pi* is optimal.
        policy: a policy in place of pi*. By default pi* splits ties evenly.
    """
    gamma = check_gamma(gamma)
    mu = reset_distribution(mdp, reset)
    table = solve(mdp, gamma=gamma, rewards=rewards).policy if policy is None else policy
    return largest_ratio(visitation(mdp, table, gamma=gamma), mu)


def worst_mismatch(mdp: FiniteMDP, reset: ResetModel | ArrayLike | int | None, *, gamma: float) -> float:
    """max_s max_pi d_rho^pi(s) / mu(s), which no policy's mismatch exceeds."""
    return largest_ratio(max_visitation(mdp, gamma=gamma), reset_distribution(mdp, reset))


def largest_ratio(visits: Floats, mu: Floats) -> float:
    """max_s visits(s) / mu(s), states that are not visited left out."""
    visited = visits > 0.0
    with np.errstate(divide="ignore", over="ignore"):
        return float((visits[visited] / mu[visited]).max())


@dataclass(frozen=True, eq=False)
class Coverage(Report):
    """How well a distribution covers a set of states."""

    states: int
    """How many states were asked about: those that can be reached, unless said otherwise."""
    covered: int
    """How many of them have at least the floor."""
    floor: float
    smallest: float
    """The least probability among them."""
    effective_states: float
    """exp(entropy): as many states under the uniform distribution would be as spread out."""

    def _title(self) -> str:
        return "Coverage"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("states covered", f"{self.covered} of {self.states} have probability {figure(self.floor)} or more"),
            ("smallest probability", figure(self.smallest)),
            ("effective number of states", figure(self.effective_states)),
        ]


def coverage(
    mdp: FiniteMDP,
    reset: ResetModel | ArrayLike | int | None,
    *,
    floor: float | None = None,
    states: ArrayLike | None = None,
) -> Coverage:
    """How well a reset model or distribution covers the states that can be reached.

    Args:
        reset: a reset model, a distribution, a state, or None for rho.
        floor: what counts as covered; half the uniform share, 1 / (2 |S|), if None.
        states: a mask or indices of the states of interest; those reachable from rho if None.
    """
    mu = reset_distribution(mdp, reset)
    mask = reachable(mdp) if states is None else check_states(states, mdp.num_states, "states")
    if not mask.any():
        raise ValueError("states names no state, expected at least one")
    least = 1.0 / (2.0 * mdp.num_states) if floor is None else float(floor)
    positive = mu[mu > 0.0]
    return Coverage(
        states=int(mask.sum()),
        covered=int((mu[mask] >= least).sum()),
        floor=least,
        smallest=float(mu[mask].min()),
        effective_states=float(np.exp(-(positive * np.log(positive)).sum())),
    )


def distances(mdp: FiniteMDP) -> Integers:
    """The fewest steps from the support of rho to each state, shape (S,); -1 where there is no path."""
    matrix = mdp.transitions
    starts = np.flatnonzero(mdp.start > 0.0)
    return breadth_first(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), mdp.num_actions, starts)


def reachable(mdp: FiniteMDP) -> Mask:
    """Which states some policy reaches from rho, shape (S,)."""
    return distances(mdp) >= 0


def hitting_times(mdp: FiniteMDP, *, gamma: float, targets: ArrayLike | None = None) -> Floats:
    """Effective hitting times t(x, s) of every target from every state, shape (S, targets); infinite if unreachable.

    Args:
        targets: state indices; all states if None, which is refused above 2,000.
    """
    gamma = check_gamma(gamma)
    if gamma == 0.0:
        raise ValueError("gamma is 0, expected a discount in (0, 1): nothing is hit after the first step otherwise")
    if targets is None:
        if mdp.num_states > MOST_PAIRS:
            raise ValueError(
                f"hitting times between all pairs of {mdp.num_states} states are refused above {MOST_PAIRS}; name the "
                "states of interest with targets=[...]"
            )
        targets = np.arange(mdp.num_states)
    chosen = np.flatnonzero(check_states(targets, mdp.num_states, "targets"))
    times = np.empty((mdp.num_states, chosen.size))
    rewards = np.zeros((mdp.num_states, mdp.num_actions))
    for slot, target in enumerate(chosen):
        rewards[target] = 1.0
        values = solve(mdp, gamma=gamma, rewards=rewards).values
        rewards[target] = 0.0
        with np.errstate(divide="ignore"):
            times[:, slot] = np.maximum(0.0, np.log(np.minimum(values / values[target], 1.0)) / np.log(gamma))
    return times


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
        targets: how many states to sample and solve exactly for a tighter interval that holds with confidence
            ``1 - delta``; none by default. Each costs about one solution of the MDP.
        delta: how likely that interval may be to miss.
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

    def is_near(q: float) -> bool:  # whether kl(mean, q), of two coins, is within the budget
        head = mean * math.log(mean / q) if mean > 0.0 else 0.0
        tail = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q)) if mean < 1.0 else 0.0
        return head + tail <= budget

    return bisect(is_near, mean, 0.0), bisect(is_near, mean, 1.0)


def bisect(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last point between ``inside``, where something holds, and ``outside``, where it need not; errs outside."""
    for _ in range(200):
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            break
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return outside


@compiled
def breadth_first(indptr: Integers, indices: Integers, num_actions: int, starts: Integers) -> Integers:
    """The fewest steps from any of the starts to each state; -1 where there is no path."""
    num_states = (indptr.size - 1) // num_actions
    distance = np.full(num_states, -1, np.int64)
    queue = np.empty(num_states, np.int64)
    tail = 0
    for start in starts:
        distance[start] = 0
        queue[tail] = start
        tail += 1
    head = 0
    while head < tail:
        state = queue[head]
        head += 1
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            successor = indices[entry]
            if distance[successor] < 0:
                distance[successor] = distance[state] + 1
                queue[tail] = successor
                tail += 1
    return distance


@compiled
def best_action_chances(
    indptr: Integers, indices: Integers, data: Floats, num_actions: int
) -> tuple[Integers, Indices, Floats]:
    """C(x, s) = max_a P(s|x, a) as compressed rows, one for each state, successors in the order first met.

    Successors are narrow on purpose: half the memory to fetch at random.
    """
    num_states = (indptr.size - 1) // num_actions
    place = np.full(num_states, -1, np.int64)
    row_start = np.zeros(num_states + 1, np.int64)
    successors = np.empty(indices.size, np.int32)
    chances = np.empty(indices.size)
    filled = 0
    for state in range(num_states):
        first = filled
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            successor = indices[entry]
            if place[successor] < first:
                place[successor] = filled
                successors[filled] = successor
                chances[filled] = data[entry]
                filled += 1
            else:
                chances[place[successor]] = max(chances[place[successor]], data[entry])
        row_start[state + 1] = filled
    return row_start, successors[:filled].copy(), chances[:filled].copy()


@compiled
def return_chances(row_start: Integers, successors: Indices, chances: Floats) -> Floats:
    """Upper bounds on the chance of being back after exactly 1, 2 and 3 steps, whatever the policy; shape (3, S)."""
    num_states = row_start.size - 1
    back = np.zeros((3, num_states))
    for state in range(num_states):
        for first in range(row_start[state], row_start[state + 1]):
            middle = successors[first]
            if middle == state:
                back[0, state] = chances[first]
                continue
            for second in range(row_start[middle], row_start[middle + 1]):
                if successors[second] == state:
                    back[1, state] += chances[first] * chances[second]
                    continue
                last = successors[second]
                for third in range(row_start[last], row_start[last + 1]):
                    if successors[third] == state:
                        back[2, state] += chances[first] * chances[second] * chances[third]
    return back
