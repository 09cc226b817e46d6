"""The update of many runs as one launch: the step of the actor and of the critic, each run in a program of its own.

The formulas are those of `natural_step`, which serves wherever there is no GPU and judges this kernel. There a step is
a few hundred small operations, each a launch; here a run's tables stay in registers and its search for the trust
region's edge ends when it has found it, without waiting for the others or for the host.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-untyped, unused-ignore"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from curious_explorer.gpu.many_seeds_natural_step import ActorCache, power_of_two
from curious_explorer.learners.trust_region import (
    ACCEPTED,
    BISECTIONS,
    LEAST_LOGIT,
    MOST_LOGIT_CHANGE,
    NO_SIGNAL,
    NOT_FINITE,
    ROUNDING,
)


def natural_updates(
    actors: ActorCache,
    critic: Tensor,
    weight: Tensor,
    advantage_sum: Tensor,
    target_sum: Tensor,
    *,
    max_kl: float,
    memory: float,
    critic_memory: float,
) -> tuple[ActorCache, Tensor, Tensor]:
    """`natural_steps` and `improved_critics` in one launch: actors, verdicts (B,) and critics (B, S)."""
    num_runs, num_states, num_actions = actors.policy.shape
    logits, policy = torch.empty_like(actors.logits), torch.empty_like(actors.policy)
    verdict = torch.empty(num_runs, dtype=torch.int64, device=policy.device)
    learned = torch.empty_like(critic)
    numbers = _numbers(policy.device, max_kl, memory, critic_memory)
    given = (actors.logits, actors.policy, critic, weight, advantage_sum, target_sum)
    natural_kernel[(num_runs,)](
        *(table.contiguous() for table in given),
        logits,
        policy,
        learned,
        verdict,
        numbers,
        num_states,
        num_actions,
        STATES=power_of_two(num_states),
        ACTIONS=power_of_two(num_actions),
        SEARCHES=BISECTIONS,
        TAKEN=ACCEPTED,
        SILENT=NO_SIGNAL,
        BROKEN=NOT_FINITE,
        enable_fp_fusion=False,
    )
    return ActorCache(logits, policy), verdict, learned


_KEPT: dict[tuple[Any, ...], Tensor] = {}


def _numbers(device: torch.device, *numbers: float) -> Tensor:
    """Settings as a tensor, sent once: a float argument of a kernel would be rounded to 32 bits."""
    if (device, *numbers) not in _KEPT:
        values = [*numbers, MOST_LOGIT_CHANGE, LEAST_LOGIT, ROUNDING]
        _KEPT[(device, *numbers)] = torch.tensor(values, dtype=torch.float64, device=device)
    return _KEPT[(device, *numbers)]


@triton.jit
def divergence(step, policy, log_policy, advantage, frequency, most):
    """KL(t); see `optimizers.trust_region.mean_divergence`."""
    change = tl.minimum(tl.maximum(step * advantage, -most), most)
    shifted = log_policy + change
    largest = tl.max(shifted, axis=1)
    normaliser = tl.sum(tl.exp(shifted - largest[:, None]), axis=1)
    moved = tl.log(normaliser) + largest - tl.sum(policy * change, axis=1)
    return tl.sum(tl.where(frequency > 0.0, frequency * moved, 0.0), axis=0)


@triton.jit
def natural_kernel(
    logits_in,
    policy_in,
    critic_in,
    weight_in,
    advantage_in,
    target_in,
    logits_out,
    policy_out,
    critic_out,
    verdict_out,
    numbers,
    num_states,
    num_actions,
    STATES: tl.constexpr,
    ACTIONS: tl.constexpr,
    SEARCHES: tl.constexpr,
    TAKEN: tl.constexpr,
    SILENT: tl.constexpr,
    BROKEN: tl.constexpr,
):
    """One run: centre the advantages, find the largest step inside the trust region, take it, and move the critic."""
    run = tl.program_id(0).to(tl.int64)
    max_kl, memory, critic_memory = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    most, least, rounding = tl.load(numbers + 3), tl.load(numbers + 4), tl.load(numbers + 5)
    state, action = tl.arange(0, STATES), tl.arange(0, ACTIONS)
    there = (state < num_states)[:, None] & (action < num_actions)[None, :]
    place = run * num_states * num_actions + state[:, None] * num_actions + action[None, :]
    place_of_state = run * num_states + state

    weight = tl.load(weight_in + place, mask=there, other=0.0)
    policy = tl.load(policy_in + place, mask=there, other=0.0)
    logits = tl.load(logits_in + place, mask=there, other=0.0)
    logits = tl.where((action < num_actions)[None, :], logits, float("-inf"))  # actions that only fill up the tile

    seen = tl.sum(weight, axis=1)
    total = tl.sum(seen, axis=0)
    frequency = tl.where(seen > 0.0, seen / tl.where(total > 0.0, total, 1.0), 0.0)
    gained = tl.load(advantage_in + place, mask=there, other=0.0)
    advantage = tl.where(weight > 0.0, gained / tl.where(weight > 0.0, weight + memory, 1.0), 0.0)
    size = tl.max(tl.abs(advantage), axis=1)
    advantage = tl.where(there, advantage - tl.sum(policy * advantage, axis=1)[:, None], 0.0)
    advantage = tl.where(tl.abs(advantage) <= rounding * size[:, None], 0.0, advantage)
    variance = tl.sum(frequency * tl.sum(policy * advantage * advantage, axis=1), axis=0)

    finite = tl.abs(variance) < float("inf")  # false for what is no number, too
    taken = finite & (variance != 0.0)
    verdict = tl.where(taken, TAKEN, tl.where(finite, SILENT, BROKEN))

    top = tl.max(logits, axis=1)
    log_policy = logits - (top + tl.log(tl.sum(tl.exp(logits - top[:, None]), axis=1)))[:, None]
    largest_first = tl.where(tl.abs(advantage) > 0.0, tl.abs(advantage), float("inf"))
    smallest = tl.min(tl.min(largest_first, axis=1), axis=0)
    low = tl.sqrt(2.0 * max_kl / tl.where(taken, variance, 1.0))
    # A variance so small that no number is the step: none is taken. (With an advantage of zero among infinite steps
    # the single-run code finds a divergence that is no number, and takes none either.)
    searching = taken & (low < float("inf"))
    low = tl.where(searching, low, 0.0)
    longest = tl.maximum(low, most / smallest)
    inside = divergence(low, policy, log_policy, advantage, frequency, most) <= max_kl
    growing = searching & inside & (2.0 * low < longest)
    while growing:
        fits = divergence(2.0 * low, policy, log_policy, advantage, frequency, most) <= max_kl
        low = tl.where(fits, 2.0 * low, low)
        growing = fits & (2.0 * low < longest)
    shrinking = searching & (inside == 0)
    while shrinking:
        low = 0.5 * low
        shrinking = divergence(low, policy, log_policy, advantage, frequency, most) > max_kl
    high = tl.where(inside, tl.minimum(longest, 2.0 * low), 2.0 * low)
    for _ in range(SEARCHES):
        middle = 0.5 * (low + high)
        fits = divergence(middle, policy, log_policy, advantage, frequency, most) <= max_kl
        low = tl.where(fits, middle, low)
        high = tl.where(fits, high, middle)

    raised = logits + tl.minimum(tl.maximum(low * advantage, -most), most)
    stepped = tl.maximum(raised - tl.max(raised, axis=1)[:, None], least)
    likelihood = tl.where((action < num_actions)[None, :], tl.exp(stepped), 0.0)
    moved = (tl.where(taken, seen, 0.0) > 0.0)[:, None]
    share = likelihood / tl.sum(likelihood, axis=1)[:, None]
    tl.store(logits_out + place, tl.where(moved, stepped, logits), mask=there)
    tl.store(policy_out + place, tl.where(moved, share, policy), mask=there)
    tl.store(verdict_out + run, verdict.to(tl.int64))

    critic = tl.load(critic_in + place_of_state, mask=state < num_states, other=0.0)
    target = tl.load(target_in + place_of_state, mask=state < num_states, other=0.0)
    known = tl.where(seen > 0.0, critic_memory + seen, 1.0)
    learned = tl.where(seen > 0.0, (critic_memory * critic + target) / known, critic)
    tl.store(critic_out + place_of_state, learned, mask=state < num_states)
