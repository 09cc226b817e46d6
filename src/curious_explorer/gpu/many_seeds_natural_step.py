"""The natural step of many tabular softmax policies at once; see `optimizers.trust_region` for the formulas.

Every run finds its own trust region: what the single-run code does in loops over states is done here on tensors of
shape (B, S, A), and its searches go on until the last run has found its step, the others waiting behind a mask. Sums
over states are taken in another order than there, so steps agree to rounding and not bit by bit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from curious_explorer.learners.trust_region import (
    ACCEPTED,
    BISECTIONS,
    LEAST_LOGIT,
    MOST_LOGIT_CHANGE,
    NO_SIGNAL,
    NOT_FINITE,
    ROUNDING,
)

MOST_ENTRIES = 1_024
"""A run's tables up to this size (states times actions) fit the registers of one program of `step_kernel`."""


class ActorCache(NamedTuple):
    """The softmax policies of all runs."""

    logits: Tensor  # (B, S, A)
    policy: Tensor  # (B, S, A)


def uniform_actors(num_runs: int, num_states: int, num_actions: int, device: torch.device) -> ActorCache:
    """Policies that prefer nothing."""
    shape = (num_runs, num_states, num_actions)
    logits = torch.zeros(shape, dtype=torch.float64, device=device)
    return ActorCache(logits, torch.full_like(logits, 1.0 / num_actions))


def natural_steps(
    actors: ActorCache, weight: Tensor, advantage_sum: Tensor, *, max_kl: float, memory: float
) -> tuple[ActorCache, Tensor]:
    """The largest step of every run inside its trust region, and the verdict on each, shape (B,).

    Where the verdict is not ``ACCEPTED`` the run's policy is what it was.
    """
    seen = weight.sum(dim=2)
    frequency = seen / seen.sum(dim=1, keepdim=True).clamp(min=torch.finfo(seen.dtype).tiny)
    advantage = centred_advantages(actors.policy, weight, advantage_sum, memory)
    variance = (frequency * (actors.policy * advantage**2).sum(dim=2)).sum(dim=1)
    accepted = torch.isfinite(variance) & (variance != 0.0)
    verdict = torch.where(accepted, ACCEPTED, torch.where(variance == 0.0, NO_SIGNAL, NOT_FINITE))

    region = _Region(actors.policy, torch.log_softmax(actors.logits, dim=2), advantage, frequency)
    start = torch.where(accepted, divided(2.0 * max_kl, variance).sqrt(), 0.0)
    low, high = _bracket(region, start, accepted, max_kl)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        inside = region.divergence(middle) <= max_kl
        low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)

    moved = accepted[:, None, None] & (seen > 0.0)[:, :, None]
    return stepped(actors, _change(low, advantage), moved), verdict


def ascend(actors: ActorCache, weight: Tensor, advantage_sum: Tensor, rate: Tensor) -> tuple[ActorCache, Tensor]:
    """Add ``rate`` (B,) times the batch's gradient to the logits; and whether that changes a run's, shape (B,).

    The gradient is that of `optimizers.gradient_step.batch_gradient`: advantages minus their share by the policy.
    """
    moved = (weight.sum(dim=2) > 0.0)[:, :, None]
    gradient = advantage_sum - actors.policy * advantage_sum.sum(dim=2, keepdim=True)
    change = rate[:, None, None] * gradient
    return stepped(actors, change, moved), (moved & (change != 0.0)).flatten(1).any(dim=1)


def stepped(actors: ActorCache, change: Tensor, moved: Tensor) -> ActorCache:
    """Policies after a change of their logits, in the states that moved; the largest logit of such a state is zero."""
    raised = actors.logits + change
    logits = (raised - raised.amax(dim=2, keepdim=True)).clamp(min=LEAST_LOGIT)
    likelihood = logits.exp()
    policy = likelihood / likelihood.sum(dim=2, keepdim=True)
    return ActorCache(torch.where(moved, logits, actors.logits), torch.where(moved, policy, actors.policy))


def centred_advantages(policy: Tensor, weight: Tensor, advantage_sum: Tensor, memory: float) -> Tensor:
    """Mean advantages, each pair credited with ``memory`` tries to none, centred under the policy at every state."""
    tried = weight > 0.0
    mean = torch.where(tried, advantage_sum / torch.where(tried, weight + memory, 1.0), 0.0)
    largest = mean.abs().amax(dim=2, keepdim=True)
    centred = mean - (policy * mean).sum(dim=2, keepdim=True)
    return torch.where(centred.abs() <= ROUNDING * largest, 0.0, centred)


class _Region(NamedTuple):
    """What the divergence of a step depends on."""

    policy: Tensor
    log_policy: Tensor
    advantage: Tensor
    frequency: Tensor

    def divergence(self, step: Tensor) -> Tensor:
        """KL(t) of every run: how far its policy moves, on average over the states of its batch, shape (B,)."""
        change = _change(step, self.advantage)
        mean = (self.policy * change).sum(dim=2)
        return (self.frequency * (torch.logsumexp(self.log_policy + change, dim=2) - mean)).sum(dim=1)

    def longest_step(self) -> Tensor:
        """The step after which no logit moves any further, shape (B,)."""
        size = self.advantage.abs()
        smallest = torch.where(size > 0.0, size, torch.inf).flatten(1).amin(dim=1)
        return divided(MOST_LOGIT_CHANGE, smallest)


def _bracket(region: _Region, start: Tensor, searching: Tensor, max_kl: float) -> tuple[Tensor, Tensor]:
    """A step inside the trust region and one outside, at most twice as long (or the longest that changes anything)."""
    at_start = region.divergence(start)
    fits, exceeds = at_start <= max_kl, (at_start > max_kl) & torch.isfinite(start)
    longest = torch.maximum(start, region.longest_step())
    low = torch.where(fits | exceeds, start, 0.0)  # a variance so small that no number is the step: none is taken
    growing = searching & fits
    while True:
        growing = growing & (2.0 * low < longest) & (region.divergence(2.0 * low) <= max_kl)
        if not growing.any():
            break
        low = torch.where(growing, 2.0 * low, low)
    shrinking = searching & exceeds  # far too long where an action that is next to impossible turns out to be good
    while shrinking.any():
        low = torch.where(shrinking, 0.5 * low, low)
        shrinking = shrinking & (region.divergence(low) > max_kl)
    return low, torch.where(fits, torch.minimum(longest, 2.0 * low), 2.0 * low)


def power_of_two(size: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << max(size - 1, 0).bit_length()


def small_enough(num_states: int, num_actions: int) -> bool:
    """Whether `step_kernel` can take the step in one launch."""
    return power_of_two(num_states) * power_of_two(num_actions) <= MOST_ENTRIES


def divided(number: float, by: Tensor) -> Tensor:
    """The quotient, correctly rounded: torch would multiply by a reciprocal, which overflows before a quotient does."""
    return torch.full_like(by, number) / by


def _change(step: Tensor, advantage: Tensor) -> Tensor:
    """How much a step changes each logit."""
    return (step[:, None, None] * advantage).clamp(-MOST_LOGIT_CHANGE, MOST_LOGIT_CHANGE)
