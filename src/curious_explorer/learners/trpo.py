"""Trust-region policy optimisation for tables (Schulman et al. 2015), with the exact step.

For a tabular softmax policy the natural direction has a closed form and the trust region's edge is found by bisection,
so there is no conjugate gradient, no damping and no line search to get wrong: the divergence is never above its limit,
and where the batch carries no signal the old parameters are kept.

With w(s) the batch's state frequencies and A centred under pi at every state, the Fisher block of state s is
w(s) (diag pi - pi pi^T), so the natural direction is A itself and the step of length t is

    pi_t(a|s)  proportional to  pi(a|s) exp(t A(s,a)).

Its mean divergence  KL(t) = sum_s w(s) (log E_pi[exp(t A)] - t E_pi[A])  is convex and increasing in t, so bisection
finds the largest step inside the trust region; sqrt(2 delta / sum_s w Var_pi(A)) is a start within a few percent.
The surrogate's slope, sum_s w Var_{pi_t}(A), is never negative: a step never promises to make things worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats, Integers
from curious_explorer.compile import compiled
from curious_explorer.learners.actor_critic import ActorCritic, softmax_row
from curious_explorer.validation import check_number
from curious_explorer.worlds.world import EpisodeStatistics

BISECTIONS = 30
MOST_LOGIT_CHANGE = 350.0
"""How far a logit moves in one step at most. Where the trust region does not bind (few steps of the batch have any
signal) the best step is infinite; this one makes an action as good as certain, and can be undone."""
ROUNDING = 1e-14
"""Differences between a state's advantages that are this small, relative to them, are rounding and no signal."""
ACCEPTED, NO_SIGNAL, NOT_FINITE = 0, 1, 2
REASONS = (None, "no advantage to follow", "advantages not finite")
"""Why nothing was changed, by verdict."""
EDGE_MEMORY, MEASURED_MEMORY = 5.0, 1.0
"""`TRPO.advantage_memory` by default, for steps to the edge and for those measured against the largest signal."""


@dataclass(frozen=True, kw_only=True)
class TRPO(ActorCritic):
    """TRPO on tables; see `ActorCritic` for what it shares with `Reinforce`."""

    max_kl: float = 0.05
    """The trust region: how far the policy may move in an update, on average over the batch's states."""
    advantage_memory: float | None = None
    """How many tries to no advantage each pair is credited with, beside those in the batch. Where a step always goes to
    the edge of the trust region, whatever the size of the signal, the mean of one or two lucky tries can make a wrong
    action certain, so there it is 5, and deep problems want more (20 at depth 60 and beyond); steps that are measured
    against the largest signal (see `annealed`) make do with 1. None takes these."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.max_kl, "max_kl", above=True)
        if self.advantage_memory is not None:
            check_number(self.advantage_memory, "advantage_memory")

    def take_step(self, logits: Floats, policy: Floats, batch: EpisodeStatistics) -> str | None:
        """Take the natural step to the edge of the trust region, or none."""
        verdict, _ = natural_step(
            logits, policy, batch.weight, batch.advantage_sum, self.max_kl, self.memory_for(EDGE_MEMORY)
        )
        return REASONS[verdict]

    def take_measured_step(
        self, logits: Floats, policy: Floats, batch: EpisodeStatistics, *, largest: float, caution: float
    ) -> tuple[str | None, float]:
        """Take the natural step that a signal as large as ``largest`` would take to the edge, or a shorter one.

        The signal is the variance of the advantages: the edge lies at sqrt(2 max_kl / variance) of them.
        """
        verdict, variance = measured_step(
            logits,
            policy,
            batch.weight,
            batch.advantage_sum,
            caution * self.max_kl,
            self.memory_for(MEASURED_MEMORY),
            largest,
        )
        return REASONS[verdict], variance

    def memory_for(self, usual: float) -> float:
        """`advantage_memory`, or what is usual for a kind of step."""
        return usual if self.advantage_memory is None else float(self.advantage_memory)


@compiled
def natural_step(
    logits: Floats, policy: Floats, weight: Floats, advantage_sum: Floats, max_kl: float, memory: float = 0.0
) -> tuple[int, float]:
    """Change ``logits`` and ``policy`` (both (S, A)) by the largest step inside the trust region.

    The mean advantage of a pair is taken as if it had been tried ``memory`` times more, to no advantage. Returns the
    verdict and the mean divergence of the step taken; without acceptance nothing is changed.
    """
    states, frequency, here, log_policy, advantage, variance = _batch_direction(
        logits, policy, weight, advantage_sum, memory
    )
    if not np.isfinite(variance):
        return NOT_FINITE, 0.0
    if variance == 0.0:
        return NO_SIGNAL, 0.0
    low, high = 0.0, np.sqrt(2.0 * max_kl / variance)
    if not 0.0 < high < np.inf:  # a signal, or a trust region, so small that no number is the step
        return NO_SIGNAL, 0.0
    longest = _longest_step(advantage)
    if mean_divergence(here, log_policy, advantage, frequency, high) <= max_kl:
        low, high = high, max(high, longest)
        while 2.0 * low < high and mean_divergence(here, log_policy, advantage, frequency, 2.0 * low) <= max_kl:
            low *= 2.0
        high = min(high, 2.0 * low)
    else:  # far too long where an action that is next to impossible turns out to be good
        while high > 0.0 and mean_divergence(here, log_policy, advantage, frequency, high) > max_kl:
            low, high = 0.5 * high, 0.5 * high
        if high == 0.0:  # rounding alone moves the policy further than the trust region reaches
            return NO_SIGNAL, 0.0
        high = 2.0 * low
    low = _bisect(here, log_policy, advantage, frequency, low, high, max_kl)
    divergence = mean_divergence(here, log_policy, advantage, frequency, low)
    _move(logits, policy, states, advantage, low)
    return ACCEPTED, divergence


@compiled
def measured_step(
    logits: Floats,
    policy: Floats,
    weight: Floats,
    advantage_sum: Floats,
    max_kl: float,
    memory: float,
    least_variance: float,
) -> tuple[int, float]:
    """Like `natural_step`, but no longer than advantages of ``least_variance`` would go to the edge.

    Returns the verdict and the variance of the advantages.
    """
    states, frequency, here, log_policy, advantage, variance = _batch_direction(
        logits, policy, weight, advantage_sum, memory
    )
    if not np.isfinite(variance):
        return NOT_FINITE, 0.0
    if variance == 0.0:
        return NO_SIGNAL, 0.0
    low, high = 0.0, np.sqrt(2.0 * max_kl / max(variance, least_variance))
    if not 0.0 < high < np.inf:
        return NO_SIGNAL, 0.0
    if mean_divergence(here, log_policy, advantage, frequency, high) <= max_kl:
        low = high
    else:
        while high > 0.0 and mean_divergence(here, log_policy, advantage, frequency, high) > max_kl:
            low, high = 0.5 * high, 0.5 * high
        if high == 0.0:
            return NO_SIGNAL, 0.0
        low = _bisect(here, log_policy, advantage, frequency, low, 2.0 * low, max_kl)
    _move(logits, policy, states, advantage, low)
    return ACCEPTED, variance


@compiled
def _batch_direction(
    logits: Floats, policy: Floats, weight: Floats, advantage_sum: Floats, memory: float
) -> tuple[Integers, Floats, Floats, Floats, Floats, float]:
    """The states of a batch, and of these alone: frequency, policy, its logarithm, advantages; their mean variance.

    Of a million other states nothing is read and nothing written.
    """
    states, frequency = _states_of(weight)
    here, log_policy, advantage = policy[states], _log_softmax(logits[states]), np.zeros((len(states), policy.shape[1]))
    tries, sums = weight[states], advantage_sum[states]
    variance = 0.0
    for place in range(len(states)):
        variance += frequency[place] * _centre(here, tries, sums, advantage, memory, place)
    return states, frequency, here, log_policy, advantage, variance


@compiled
def _bisect(
    policy: Floats, log_policy: Floats, advantage: Floats, frequency: Floats, low: float, high: float, max_kl: float
) -> float:
    """The longest step between two, the shorter of which is inside the trust region, that is inside it."""
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if mean_divergence(policy, log_policy, advantage, frequency, middle) <= max_kl:
            low = middle
        else:
            high = middle
    return low


@compiled
def _move(logits: Floats, policy: Floats, states: Integers, advantage: Floats, step: float) -> None:
    """Take a step in the states of a batch."""
    for place in range(len(states)):
        for action in range(policy.shape[1]):
            logits[states[place], action] += _change(step, advantage[place, action])
        softmax_row(logits, policy, states[place])


@compiled
def _states_of(weight: Floats) -> tuple[Integers, Floats]:
    """The states that a batch was in, in order, and the share of its steps that were taken in each."""
    visits, total, found = np.empty(weight.shape[0]), 0.0, 0
    states = np.empty(weight.shape[0], dtype=np.int64)
    for state in range(weight.shape[0]):
        here = 0.0
        for action in range(weight.shape[1]):
            here += weight[state, action]
        if here > 0.0:
            states[found], visits[found] = state, here
            found += 1
            total += here
    return states[:found].copy(), visits[:found] / total if found > 0 else visits[:0].copy()


@compiled
def _centre(
    policy: Floats, weight: Floats, advantage_sum: Floats, advantage: Floats, memory: float, state: int
) -> float:
    """Mean advantages of the state's actions, centred under the policy; returns their variance under it."""
    mean, largest = 0.0, 0.0
    for action in range(policy.shape[1]):
        if weight[state, action] > 0.0:
            advantage[state, action] = advantage_sum[state, action] / (weight[state, action] + memory)
            largest = max(largest, abs(advantage[state, action]))
        mean += policy[state, action] * advantage[state, action]
    variance = 0.0
    for action in range(policy.shape[1]):
        advantage[state, action] -= mean
        if abs(advantage[state, action]) <= ROUNDING * largest:
            advantage[state, action] = 0.0
        variance += policy[state, action] * advantage[state, action] ** 2
    return variance


@compiled
def _longest_step(advantage: Floats) -> float:
    """The step after which no logit moves any further."""
    smallest = np.inf
    for state in range(advantage.shape[0]):
        for action in range(advantage.shape[1]):
            if advantage[state, action] != 0.0:
                smallest = min(smallest, abs(advantage[state, action]))
    return MOST_LOGIT_CHANGE / smallest


@compiled
def _change(step: float, advantage: float) -> float:
    """How much a step changes a logit."""
    return min(max(step * advantage, -MOST_LOGIT_CHANGE), MOST_LOGIT_CHANGE)


@compiled
def mean_divergence(policy: Floats, log_policy: Floats, advantage: Floats, frequency: Floats, step: float) -> float:
    """KL(t): how far the policy moves, on average over the states of the batch.

    It works on log probabilities: an action whose probability has underflowed to zero still has its logit, and a long
    step can bring it back.
    """
    total = 0.0
    for state in range(log_policy.shape[0]):
        if frequency[state] > 0.0:
            largest, mean = -np.inf, 0.0
            for action in range(log_policy.shape[1]):
                change = _change(step, advantage[state, action])
                largest = max(largest, log_policy[state, action] + change)
                mean += policy[state, action] * change
            normaliser = 0.0
            for action in range(log_policy.shape[1]):
                normaliser += np.exp(log_policy[state, action] + _change(step, advantage[state, action]) - largest)
            total += frequency[state] * (np.log(normaliser) + largest - mean)
    return total


@compiled
def _log_softmax(logits: Floats) -> Floats:
    """The logarithm of every action's probability."""
    result = np.empty_like(logits)
    for state in range(logits.shape[0]):
        largest = logits[state, 0]
        for action in range(1, logits.shape[1]):
            largest = max(largest, logits[state, action])
        total = 0.0
        for action in range(logits.shape[1]):
            total += np.exp(logits[state, action] - largest)
        shift = largest + np.log(total)
        for action in range(logits.shape[1]):
            result[state, action] = logits[state, action] - shift
    return result
