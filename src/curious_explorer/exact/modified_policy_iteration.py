"""Modified policy iteration: optimal values of an MDP that mixes, by sweeps alone.

With T the optimality operator and lo <= T v - v <= hi,

    T v + gamma / (1 - gamma) lo  <=  v*  <=  T v + gamma / (1 - gamma) hi                       (MacQueen 1966),

so the middle of the bounds is wrong by at most gamma / (1 - gamma) (hi - lo) / 2. Only the span hi - lo has to become
small, which on an MDP that mixes happens at the rate of mixing, whatever gamma is. Constants are therefore dropped from
the iterates as they arise (the bounds do not see them), and put back once at the end.

*Sweeps in place.* While many actions still change, a few sweeps of T in place (Gauss-Seidel: a new value is used at
once, which takes a third fewer of them than sweeps that keep the old ones), forwards and backwards in turn.

*Corrections.* Once few actions change, and pi is greedy for v, the value of pi is v + delta with
delta = (T v - v) + gamma P_pi delta. That system is solved to a few digits, by sweeps in place that touch one action
per state.

*Single precision* is half the memory, and at a million states memory is what a sweep waits for. So all of it happens
in single precision first, until T v - v is lost in rounding. Then T v - v is computed in double precision, and only
corrections stay in single, as in iterative refinement.

*The constant.* A constant error would die out as gamma^k, by far the slowest of all. So sweeps solve for v relative to
a constant c, that is with (1 - gamma) c taken off the source, and every few of them one sweep that keeps the old values
shows by its mean change what is missing from it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np

from curious_explorer.arrays import Floats, Indices, Singles, Unsigned
from curious_explorer.compile import compiled
from curious_explorer.exact.policy_chain import Rows

Real = TypeVar("Real", Floats, Singles)

OPTIMALITY_SWEEPS = 2
"""Sweeps of the optimality operator between two looks at the actions."""
MANY_SWITCHES = 0.4
"""The share of states whose action has changed, above which no policy is evaluated yet."""
SINGLE_LIMIT = 1e-5
"""The span, for rewards up to one, beyond which single precision sees nothing."""
POLICY_SWEEPS = 4
"""Sweeps in place between two that measure."""
EVALUATION_SWEEPS = 50
"""The most sweeps spent on one policy."""
FEW_SWITCHES = 1e-3
ROUGH, FINE, FINEST = 0.3, 1e-2, 1e-4
"""To what part of its span a correction is computed: many actions switched, few, none."""
WARM_UP = 100
"""Sweeps after which the rate so far is believed."""


class Outlook(NamedTuple):
    """What one application of the optimality operator shows: T v - v, and how many actions are others than before."""

    low: float
    high: float
    mean: float
    switched: int

    @property
    def span(self) -> float:
        """The width that must become small."""
        return self.high - self.low


class Progress:
    """Counts sweeps, and decides after each outlook whether to go on."""

    def __init__(self, budget: int) -> None:
        self.sweeps = 0
        self._budget = budget
        self.begin(0.0)

    @property
    def left(self) -> int:
        """Sweeps that may still be spent."""
        return self._budget - self.sweeps

    def begin(self, target: float) -> None:
        """Aim at a span."""
        self.target = target
        self._first: tuple[float, int] | None = None
        self._last = math.inf
        self._stalls = 0

    def should_stop(self, span: float) -> bool:
        """Whether the target is reached, out of reach within the budget, or hidden by rounding."""
        self._stalls += not span < self._last
        self._last = span
        if span <= self.target or self.left <= 0 or self._stalls >= 3:
            return True
        if self._first is None:
            self._first = span, self.sweeps
            return False
        if self.sweeps <= WARM_UP or self.target == 0.0:
            return False
        rate = math.log(self._first[0] / span) / (self.sweeps - self._first[1])
        return math.log(span / self.target) > max(rate, 1e-12) * self.left


def modified_policy_iteration(
    rows: Rows, source: Floats, gamma: float, target: float, budget: int
) -> tuple[Floats, int]:
    """Optimal values for a non-negative source, one number a row, and the sweeps spent.

    Stops when half the span, discounted, is at most the target; at the budget; when rounding hides all progress; or
    early, when the rate shows that the budget will not suffice. Callers compute the residual of what they get.
    """
    indptr, indices, data = rows.unsigned()
    scale = float(source.max(initial=0.0)) or 1.0
    single = data.astype(np.float32)
    progress = Progress(budget)
    greedy = np.full(rows.num_states, -1, np.int32)
    values = np.zeros(rows.num_states)
    span = 2.0 * target / gamma if gamma > 0.0 else math.inf
    if span < SINGLE_LIMIT * scale:
        progress.begin(SINGLE_LIMIT)
        approached = np.zeros(rows.num_states, np.float32)
        scaled = np.divide(source, scale).astype(np.float32)
        _iterate(indptr, indices, single, scaled, single, gamma, approached, greedy, progress)
        np.multiply(approached, scale, out=values, dtype=np.float64)
    progress.begin(span)
    change, outlook = _iterate(indptr, indices, data, source, single, gamma, values, greedy, progress)
    values += change
    values += gamma / (1.0 - gamma) * 0.5 * (outlook.low + outlook.high)
    return values, progress.sweeps


def _iterate(
    indptr: Unsigned, indices: Unsigned, data: Real, source: Real, single: Singles, gamma: float, values: Real,
    greedy: Indices, progress: Progress
) -> tuple[Real, Outlook]:  # fmt: skip
    """Improve values, up to a constant, until progress says stop; the last T v - v, and what it shows."""
    change = np.empty_like(values)
    while True:
        action_values = apply_rows(indptr, indices, data, source, gamma, values)
        outlook = Outlook(*take_best(action_values, values, change, greedy))
        del action_values
        progress.sweeps += 1
        if progress.should_stop(outlook.span):
            return change, outlook
        if outlook.switched > MANY_SWITCHES * values.size:
            change -= values.dtype.type(outlook.mean)
            values += change
            for sweep in range(OPTIMALITY_SWEEPS):
                backwards = sweep % 2 == 1
                optimality_sweep(indptr, indices, data, source, gamma, outlook.mean, values, backwards)
            progress.sweeps += OPTIMALITY_SWEEPS
        else:
            accuracy = _accuracy(outlook.switched / values.size, 0.5 * progress.target / outlook.span)
            chain = select_rows(indptr, indices, single, greedy)
            remainder = ((change - outlook.mean) / outlook.span).astype(np.float32)
            correction = _correct(chain, remainder, gamma, accuracy, progress)
            values += np.multiply(correction, outlook.span, dtype=values.dtype)


def _accuracy(switched: float, enough: float) -> float:
    """To what part of its span to compute a correction, given the share of actions that have switched."""
    if switched > FEW_SWITCHES:
        return ROUGH
    return max(FINEST, min(ROUGH, enough)) if switched == 0.0 else FINE


Chain = tuple[Unsigned, Unsigned, Singles]


def _correct(chain: Chain, source: Singles, gamma: float, accuracy: float, progress: Progress) -> Singles:
    """The delta with delta = source + gamma P delta but for a constant, until its own span is small."""
    values = source.copy()
    updated = np.empty_like(values)
    constant = 0.0
    for _ in range(0, min(EVALUATION_SWEEPS, progress.left), POLICY_SWEEPS + 1):
        for sweep in range(POLICY_SWEEPS):
            policy_sweep_in_place(*chain, source, gamma, constant, values, sweep % 2 == 1)
        low, high, mean = policy_sweep(*chain, source, gamma, constant, values, updated)
        values, updated = updated, values
        constant += mean
        progress.sweeps += POLICY_SWEEPS + 1
        if high - low <= accuracy:
            break
    return values


# Kernels. Indices are unsigned, which spares the check for negative ones (a factor of two) ----------------------------


@compiled
def apply_rows(indptr: Unsigned, indices: Unsigned, data: Real, source: Real, gamma: float, values: Real) -> Real:
    """The product source + gamma rows v, one number for each row."""
    product = np.empty_like(source)
    factor = source.dtype.type(gamma)
    for row in range(source.size):
        expected = source.dtype.type(0.0)
        for entry in range(indptr[row], indptr[row + 1]):
            expected += data[entry] * values[indices[entry]]
        product[row] = source[row] + factor * expected
    return product


@compiled
def take_best(action_values: Real, values: Real, change: Real, rows: Indices) -> tuple[float, float, float, int]:
    """T v - v into ``change`` and greedy rows into ``rows``; its least, largest and mean entry, and new rows.

    A pass of its own, and without branches: the processor cannot predict which action wins, and a wrong guess inside
    `apply_rows` would stop it from fetching ahead.
    """
    num_actions = action_values.size // values.size
    low, high, total = np.inf, -np.inf, 0.0
    switched = 0
    for state in range(values.size):
        best_row = state * num_actions
        best = action_values[best_row]
        for row in range(best_row + 1, (state + 1) * num_actions):
            better = action_values[row] > best
            best_row = row if better else best_row
            best = action_values[row] if better else best
        switched += rows[state] != best_row
        rows[state] = best_row
        gap = best - values[state]
        change[state] = gap
        total += gap
        low = gap if gap < low else low
        high = gap if gap > high else high
    return low, high, total / values.size, switched


@compiled
def optimality_sweep(
    indptr: Unsigned, indices: Unsigned, data: Real, source: Real, gamma: float, constant: float, values: Real,
    backwards: bool
) -> None:  # fmt: skip
    """T v minus a constant, in place, one state after the other."""
    num_states = values.size
    num_actions = source.size // num_states
    factor, level = source.dtype.type(gamma), source.dtype.type(constant)
    for step in range(num_states):
        state = num_states - 1 - step if backwards else step
        best = source.dtype.type(-np.inf)
        for row in range(state * num_actions, (state + 1) * num_actions):
            expected = source.dtype.type(0.0)
            for entry in range(indptr[row], indptr[row + 1]):
                expected += data[entry] * values[indices[entry]]
            value = source[row] + factor * expected
            best = value if value > best else best
        values[state] = best - level


@compiled
def select_rows(indptr: Unsigned, indices: Unsigned, data: Real, rows: Indices) -> tuple[Unsigned, Unsigned, Real]:
    """The rows of one policy, side by side, so that evaluating it reads nothing else."""
    chain_indptr = np.zeros(rows.size + 1, np.uint32)
    for state in range(rows.size):
        chain_indptr[state + 1] = chain_indptr[state] + (indptr[rows[state] + 1] - indptr[rows[state]])
    chain_indices = np.empty(chain_indptr[rows.size], np.uint32)
    chain_data = np.empty(chain_indptr[rows.size], data.dtype)
    for state in range(rows.size):
        first, target = indptr[rows[state]], chain_indptr[state]
        for offset in range(indptr[rows[state] + 1] - first):
            chain_indices[target + offset] = indices[first + offset]
            chain_data[target + offset] = data[first + offset]
    return chain_indptr, chain_indices, chain_data


@compiled
def policy_sweep_in_place(
    indptr: Unsigned, indices: Unsigned, data: Singles, source: Singles, gamma: float, constant: float,
    values: Singles, backwards: bool
) -> None:  # fmt: skip
    """T_pi v minus a constant, in place, one state after the other."""
    factor, level = np.float32(gamma), np.float32(constant)
    for step in range(values.size):
        state = values.size - 1 - step if backwards else step
        expected = np.float32(0.0)
        for entry in range(indptr[state], indptr[state + 1]):
            expected += data[entry] * values[indices[entry]]
        values[state] = source[state] - level + factor * expected


@compiled
def policy_sweep(
    indptr: Unsigned, indices: Unsigned, data: Singles, source: Singles, gamma: float, constant: float,
    values: Singles, updated: Singles
) -> tuple[float, float, float]:  # fmt: skip
    """T_pi v minus a constant into ``updated``; the least, the largest and the mean change."""
    factor, level = np.float32(gamma), np.float32(constant)
    low, high, total = np.float32(np.inf), np.float32(-np.inf), 0.0
    for state in range(values.size):
        expected = np.float32(0.0)
        for entry in range(indptr[state], indptr[state + 1]):
            expected += data[entry] * values[indices[entry]]
        updated[state] = source[state] - level + factor * expected
        change = updated[state] - values[state]
        total += change
        low = change if change < low else low
        high = change if change > high else high
    return float(low), float(high), total / values.size
