"""A certificate from counts alone: how often any policy can visit a set of states, whatever the optimizer did.

Let n(s, a) be how often the pair was tried and p^(.|s, a) the observed frequencies of what followed. Tries are chosen
adaptively and n is random; but whatever rule decides when to try a pair again, the successors of its first, second, ...
try are independent draws from P(.|s, a). So it is enough that a bound for fixed n holds for every n at once, which it
does when the n-th count of each pair is given the share delta / (|S| |A| n (n + 1)): these sum to delta over pairs and
n. Two such regions for the rows of P:

- ``"l1"``: the L1 ball of Weissman et al. (2003), |p - p^|_1 <= r(n) with
  r(n) = sqrt((2 / n) (ln(2^|S| - 2) + ln(|S| |A| n (n + 1) / delta)));
- ``"entries"``: every entry p(s') between its Clopper-Pearson limits, at a share 1 / |S| of that for each s'. Where few
  states can follow, as in most worlds, this is far smaller: an unseen successor has at most about ln(1 / share) / n.

With probability 1 - delta every row of P lies in its region, and then the fixed point of

    v(s) = (1 - gamma) 1{s in K} + gamma max_a max {p v : p in the region of (s, a)}

is at least V*(s) = max_pi d_s^pi(K) for **every** set K, also one that was chosen after looking at the data. Pairs that
were never tried may lead anywhere. Nothing is assumed about the optimizer. ``"both"``, the default, gives each region
half of delta and takes the smaller expectation for each pair.

What is used besides the counts, and said in the certificate: which states are terminal (their rows are known), and
either rho, or fresh restarts whose mean value is bounded by Maurer and Pontil's empirical Bernstein inequality (2009).

**States must be Markov.** "Independent draws from P(.|s, a)" is false where one state stands for several: in a corridor
cut into two cells, what follows a cell depends on where in it the agent is, and a certificate could be false by any
amount. Worlds whose cells may merge observations are refused (`check_markov`); where observations are numbers, one cell
for each, it is assumed that an observation tells the state.

Recorded transitions qualify because a world records each step of an episode when it is taken, before its outcome can
influence anything; a record that drops episodes for how they went would not.

The inner maximum, compiled: *L1 ball*: the best model for values v moves
radius / 2 of probability to the state with the largest value, taking it from the row's successors with the least
(Strehl and Littman 2008). *Box*: each entry between its limits; the best model gives every entry its lower limit, and
what is left to states in order of decreasing value, up to their upper limits. Entries of a row are kept sorted by value
from sweep to sweep, which makes sorting them again nearly free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.compile import compiled
from curious_explorer.errors import CertificateError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.models.planning import best_in_ball
from curious_explorer.theory.reports import (
    CertificateReport,
    check_exploration,
    check_probability,
    figure,
)
from curious_explorer.validation import as_distribution, check_count, check_gamma, check_states
from curious_explorer.worlds.episodes import merge_transitions
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import TransitionCounts, World

REGIONS = ("l1", "entries", "both")
GOAL = 1e-9
MOST_SWEEPS = 100_000
MOST_TRIES = 2.0**63
DEFAULT_RESTARTS = 10_000


@dataclass(frozen=True, eq=False)
class CountsCertificate(CertificateReport):
    """With the confidence given, no policy's discounted visitation of K from rho exceeds ``limit``."""

    limit: float
    confidence: float
    poorly_visited: int
    num_states: int
    gamma: float
    samples: int
    """The transitions counted, all of them."""
    pairs_tried: int
    pairs: int
    """Pairs whose row was to be learned: those of states that are not terminal."""
    fewest_tries: int
    """Of any such pair."""
    start_known: bool
    restarts: int
    """Fresh restarts drawn because the start was not given; they take no step."""
    terminal_states: int
    region: str
    sweeps: int

    @property
    def statement(self) -> str:
        """What is guaranteed, in one sentence."""
        if self.poorly_visited == 0:
            return "No state is in question: there is nothing left to visit."
        return (
            f"With confidence {self.confidence:g}, no policy spends more than {figure(self.limit)} of its discounted "
            f"time in the {self.poorly_visited} states (of {self.num_states}) in question."
        )

    @property
    def assumption(self) -> str:
        """What the guarantee rests on."""
        start = "the start as given" if self.start_known else f"{self.restarts:,} fresh restarts"
        ends = f", and the {self.terminal_states} states given as terminal" if self.terminal_states else ""
        return f"Nothing is assumed about the optimizer; used are the counts, {start}{ends}."

    def _title(self) -> str:
        return f"Certificate from counts at confidence {self.confidence:g}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("limit on max_pi d(K)", figure(self.limit)),
            ("transitions counted", f"{self.samples:,}"),
            ("pairs tried", f"{self.pairs_tried:,} of {self.pairs:,}"),
            ("fewest tries of a pair", f"{self.fewest_tries:,}"),
        ]


def certify_counts(
    world: World,
    counts: TransitionCounts | Exploration,
    *,
    delta: float,
    poorly_visited: ArrayLike | None = None,
    gamma: float | None = None,
    start: int | ArrayLike | None = None,
    terminal: ArrayLike | None = None,
    restarts: int = DEFAULT_RESTARTS,
    region: str = "both",
) -> CountsCertificate:
    """Certify from counted transitions how often any policy can visit a set of states.

    Args:
        counts: the transitions, or an exploration made with ``record=True``, all of whose rounds are used.
        delta: the probability with which the samples may mislead.
        poorly_visited: K, a mask or state indices; an exploration's last K_n if None.
        gamma: the discount; an exploration's own if None.
        start: rho, if it is known: a state or a distribution. Otherwise it is sampled, at half of delta.
        terminal: a mask or indices of states known to be terminal; none if None.
        restarts: how many restarts to draw if the start is not given.
        region: "l1", "entries" or "both": how transitions are bounded.

    Raises:
        CertificateError: if the world's cells may merge observations, if nothing was recorded, or if the limit would be
            one that holds whatever was counted.
    """
    delta = check_probability(delta, "delta")
    check_markov(world)
    mask, gamma = _set_and_discount(world, counts, poorly_visited, gamma)
    ends = check_states([] if terminal is None else terminal, world.num_states, "terminal")
    seen = merge_checked(world, counts, ends)
    rho = None if start is None else as_distribution(start, world.num_states, "start")
    restarts = check_count(restarts, "restarts", least=2)
    if region not in REGIONS:
        raise ValueError(f"region is {region!r}, expected one of {', '.join(map(repr, REGIONS))}")
    share = delta if rho is not None else 0.5 * delta
    values, _, sweeps = optimistic_visitation(
        seen, mask, num_actions=world.num_actions, gamma=gamma, delta=share, terminal=ends, region=region
    )
    # What holds in every world, whatever its transitions: from the first step on, all the time may be spent in K.
    anywhere = np.where(ends, mask, (1.0 - gamma) * mask + gamma)
    if rho is not None:
        limit, known_anyway = float(rho @ values), float(rho @ anywhere)
    else:
        starts = world.walk(RollIn.from_start(), restarts)
        limit, known_anyway = bernstein_upper(values[starts], 0.5 * delta), float(anywhere[starts].mean())
    tries = np.bincount(
        seen.state * world.num_actions + seen.action,
        weights=seen.times,
        minlength=world.num_states * world.num_actions,
    )[np.repeat(~ends, world.num_actions)]
    if mask.any() and limit >= known_anyway - GOAL:
        raise CertificateError(
            f"from {int(seen.times.sum()):,} transitions the limit is {limit:.3g}, which holds in every world and so "
            f"certifies nothing; {int((tries == 0).sum()):,} of {tries.size:,} pairs were never tried: count more "
            "transitions, or name terminal states"
        )
    return CountsCertificate(
        limit=limit,
        confidence=1.0 - delta,
        poorly_visited=int(mask.sum()),
        num_states=world.num_states,
        gamma=gamma,
        samples=int(seen.times.sum()),
        pairs_tried=int((tries > 0).sum()),
        pairs=tries.size,
        fewest_tries=int(tries.min()) if tries.size else 0,
        start_known=rho is not None,
        restarts=0 if rho is not None else restarts,
        terminal_states=int(ends.sum()),
        region=region,
        sweeps=sweeps,
    )


def weissman_radius(tries: ArrayLike, *, num_states: int, num_actions: int, delta: float) -> Floats:
    """r(n) for each entry of ``tries``, valid for all pairs and all n at once; 2, the whole simplex, for n = 0."""
    count = np.asarray(tries, dtype=np.float64)
    check_count(num_states, "num_states", least=1)
    check_count(num_actions, "num_actions", least=1)
    check_probability(delta, "delta")
    if not ((count >= 0.0) & (count <= MOST_TRIES)).all():
        raise ValueError(f"tries must be numbers of tries, from 0 to {MOST_TRIES:g}")
    if num_states == 1:
        return np.zeros(count.shape)
    subsets = num_states * math.log(2.0) + math.log1p(-(2.0 ** (1 - num_states)))  # ln(2^S - 2)
    positive = np.maximum(count, 1.0)
    shares = np.log(num_states * num_actions / delta) + np.log(positive) + np.log(positive + 1.0)
    radius = np.sqrt(2.0 / positive * (subsets + shares))
    return np.where(count > 0.0, np.minimum(radius, 2.0), 2.0)


def entry_limits(
    hits: Floats, tries: Floats, *, num_states: int, num_actions: int, delta: float
) -> tuple[Floats, Floats]:
    """Clopper-Pearson limits on single entries, valid for all pairs, successors and n at once; [0, 1] for n = 0."""
    from scipy.special import betainccinv, betaincinv

    count = np.maximum(tries, 1.0)
    share = delta / (2.0 * num_states**2 * num_actions * count * (count + 1.0))  # half for each side
    lower = np.where(hits > 0.0, betaincinv(np.maximum(hits, 1.0), count - np.maximum(hits, 1.0) + 1.0, share), 0.0)
    upper = np.where(hits < tries, betainccinv(hits + 1.0, np.maximum(count - hits, 1.0), share), 1.0)
    return lower, upper


def optimistic_visitation(
    counts: TransitionCounts,
    poorly_visited: Mask,
    *,
    num_actions: int,
    gamma: float,
    delta: float,
    terminal: Mask,
    region: str = "both",
) -> tuple[Floats, Floats, int]:
    """Upper bounds on max_pi d_s^pi(K) from every state, shape (S,); L1 radii, shape (S * A,); sweeps."""
    num_states = poorly_visited.size
    ends = np.flatnonzero(terminal)
    stay = np.repeat(ends, num_actions)
    stay_pair = stay * num_actions + np.tile(np.arange(num_actions), ends.size)
    pair = np.concatenate([counts.state * num_actions + counts.action, stay_pair])
    target = np.concatenate([counts.next_state, stay])
    times = np.concatenate([counts.times, np.ones(stay.size, dtype=np.int64)]).astype(np.float64)
    order = np.argsort(pair, kind="stable")
    pair, target, times = pair[order], target[order], times[order]
    num_pairs = num_states * num_actions
    tries: Floats = np.bincount(pair, weights=times, minlength=num_pairs).astype(np.float64)
    share = 0.5 * delta if region == "both" else delta
    radius = np.full(num_pairs, 2.0)
    lower, upper, unseen = np.zeros(times.size), np.ones(times.size), np.ones(num_pairs)
    if region != "entries":
        radius = weissman_radius(tries, num_states=num_states, num_actions=num_actions, delta=share)
    if region != "l1":
        limits = partial(entry_limits, num_states=num_states, num_actions=num_actions, delta=share)
        lower, upper = limits(times, tries[pair])
        unseen = limits(np.zeros(num_pairs), tries)[1]
    known = terminal[pair // num_actions]
    lower[known] = upper[known] = 1.0
    radius.reshape(num_states, num_actions)[terminal] = 0.0
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=num_pairs))]).astype(np.int64)
    rows = (indptr, target.astype(np.int64), times / tries[pair], radius, lower, upper, unseen)
    source = (1.0 - gamma) * poorly_visited.astype(np.float64)
    values, sweeps = optimistic_values(rows, num_actions, source, gamma, GOAL, MOST_SWEEPS)
    return values, radius, int(sweeps)


def check_markov(world: World) -> None:
    """Refuse a world whose states are cells that may merge observations: its states are not Markov."""
    stored = world.stored_discretisation()
    if stored is not None and (kind := stored.description["cells"]["kind"]) != "discrete":
        raise CertificateError(
            f"the states of this world are {kind} cells, which may merge observations; a certificate from counts needs "
            "Markov states, and could be false here; certify_arrivals needs none"
        )


def check_counts(counts: TransitionCounts, world: World, terminal: Mask) -> None:
    """Refuse counts that cannot have come from the world."""
    columns = [np.asarray(column) for column in counts[:4]]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ValueError(f"counts has columns of shapes {[column.shape for column in columns]}, expected equal lengths")
    sizes = (world.num_states, world.num_actions, world.num_states)
    for name, column, size in zip(("state", "action", "next_state"), columns[:3], sizes, strict=True):
        if not np.issubdtype(column.dtype, np.integer):
            raise ValueError(f"counts.{name} holds {column.dtype}, expected whole numbers")
        outside = np.flatnonzero((column < 0) | (column >= size))
        if outside.size:
            raise ValueError(
                f"counts.{name}[{outside[0]}] is {column[outside[0]]}, but the world has indices from 0 to {size - 1}; "
                "these counts do not belong to this world"
            )
    if not np.issubdtype(columns[3].dtype, np.integer) or (columns[3] < 1).any():
        raise ValueError("counts.times must hold whole numbers of at least 1")
    left = np.flatnonzero(terminal[columns[0]])
    if left.size:
        raise ValueError(
            f"counts hold a transition out of state {columns[0][left[0]]}, which was given as terminal; these "
            "counts do not belong to this world, or the state is not terminal"
        )


def bernstein_upper(values: Floats, delta: float) -> float:
    """An upper confidence limit on the mean of independent numbers in [0, 1] (Maurer and Pontil 2009, Theorem 4)."""
    logarithm = math.log(2.0 / delta)
    spread = math.sqrt(2.0 * float(values.var(ddof=1)) * logarithm / values.size)
    return min(1.0, float(values.mean()) + spread + 7.0 * logarithm / (3.0 * (values.size - 1)))


def merge_checked(world: World, counts: TransitionCounts | Exploration, terminal: Mask) -> TransitionCounts:
    """All transitions that were counted, checked to belong to the world; refused where there are none."""
    parts: list[Any] = [counts]
    if isinstance(counts, Exploration):
        parts = [round_.seen for round_ in counts.rounds]
        missing = [n for n, part in enumerate(parts) if part is None]
        if missing:
            raise CertificateError(f"round {missing[0]} recorded no transitions; explore with record=True")
    elif not isinstance(counts, TransitionCounts):
        raise ValueError(f"counts is a {type(counts).__name__}, expected TransitionCounts or an Exploration")
    for part in parts:
        check_counts(part, world, terminal)
    seen = merge_transitions(parts, world.num_states, world.num_actions)
    if seen.times.size == 0:
        raise CertificateError("no transition was counted; explore with record=True, or run episodes with record=True")
    return seen


def _set_and_discount(
    world: World, counts: TransitionCounts | Exploration, poorly_visited: ArrayLike | None, gamma: float | None
) -> tuple[Mask, float]:
    if isinstance(counts, Exploration):
        gamma = check_exploration(counts, world, gamma)
        chosen = counts.rounds[-1].poorly_visited if poorly_visited is None else poorly_visited
        return check_states(chosen, world.num_states, "poorly_visited"), gamma
    if poorly_visited is None or gamma is None:
        raise ValueError("counts alone do not say which states and which discount; give poorly_visited and gamma")
    return check_states(poorly_visited, world.num_states, "poorly_visited"), check_gamma(gamma)


@compiled
def best_in_box(
    indices: Integers, lower: Floats, upper: Floats, first: int, stop: int, unseen: float, values: Floats,
    falling: Integers, place: Integers
) -> float:  # fmt: skip
    """The largest p v over distributions p with entries between their limits; other states have at most ``unseen``.

    ``falling`` lists the states by decreasing value. ``place`` is scratch space of -1, and is left that way.
    """
    expected, left = 0.0, 1.0
    for entry in range(first, stop):
        expected += lower[entry] * values[indices[entry]]
        left -= lower[entry]
        place[indices[entry]] = entry
    for state in falling:
        if left <= 0.0:
            break
        entry = place[state]
        room = unseen if entry < 0 else upper[entry] - lower[entry]
        given = min(left, room)
        expected += given * values[state]
        left -= given
    for entry in range(first, stop):
        place[indices[entry]] = -1
    return float(expected + max(left, 0.0) * values[falling[0]])


Region = tuple[Integers, Integers, Floats, Floats, Floats, Floats, Floats]
"""Rows (indptr, successors, frequencies), L1 radii, lower and upper limits of entries, upper limits of unseen ones."""


@compiled
def optimistic_sweep(
    region: Region, order: Integers, place: Integers, num_actions: int, source: Floats, gamma: float, values: Floats,
    updated: Floats
) -> tuple[float, float]:  # fmt: skip
    """One step of optimistic value iteration into ``updated``; the least and the largest change."""
    indptr, indices, data, radius, lower, upper, unseen = region
    falling = np.argsort(-values)
    best = int(falling[0])
    low, high = np.inf, -np.inf
    for state in range(values.size):
        most = -np.inf
        for row in range(state * num_actions, (state + 1) * num_actions):
            first, stop = indptr[row], indptr[row + 1]
            ahead = values[best]  # a pair never tried may lead anywhere
            if first < stop:
                ball = best_in_ball(order, indices, data, first, stop, radius[row], values, best)
                box = best_in_box(indices, lower, upper, first, stop, unseen[row], values, falling, place)
                ahead = min(ball, box)
            most = max(most, ahead)
        updated[state] = source[state] + gamma * most
        low = min(low, updated[state] - values[state])
        high = max(high, updated[state] - values[state])
    return low, high


@compiled
def optimistic_values(
    region: Region, num_actions: int, source: Floats, gamma: float, goal: float, budget: int
) -> tuple[Floats, int]:
    """Upper bounds on the optimistic values, right to the goal unless the budget of sweeps ends; sweeps used.

    Values start at one, above every fixed point for rewards in [0, 1], and fall; with hi the largest change of a sweep,
    T v + gamma / (1 - gamma) hi is never below the fixed point (MacQueen), so stopping early stays on the safe side.
    """
    values = np.ones(source.size)
    updated = np.empty(source.size)
    order = np.arange(region[1].size)
    place = np.full(source.size, -1, np.int64)
    sweeps = 0
    while True:
        low, high = optimistic_sweep(region, order, place, num_actions, source, gamma, values, updated)
        sweeps += 1
        if gamma / (1.0 - gamma) * (high - low) <= goal or sweeps >= budget:
            break
        values, updated = updated, values
    for state in range(source.size):
        updated[state] = min(1.0, updated[state] + gamma / (1.0 - gamma) * high)
    return updated, sweeps
