# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, import-untyped, unused-ignore"
"""The steps of many softmax policies and their critics, all runs at once.

TRPO's step is described in `learners.trpo`, which also takes it here where tensors live on the CPU: run by run,
by the same compiled function that single runs use. On a GPU it is one launch, `natural_kernel`, each run in a program
of its own: the run's first states stay in registers (small problems have no others), and its search for the trust
region's edge ends when it has found it, without waiting for other runs or for the host. Sums over states are taken in
another order there, so steps agree to rounding and not bit by bit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from curious_explorer.gpu.device_tables import constants
from curious_explorer.learners.actor_critic import LEAST_LOGIT
from curious_explorer.learners.trpo import (
    ACCEPTED,
    BISECTIONS,
    MOST_LOGIT_CHANGE,
    NO_SIGNAL,
    NOT_FINITE,
    ROUNDING,
    natural_step,
)

TILE = 1_024
"""So many entries (states times actions) of a run fit the registers of one program."""


class Actors(NamedTuple):
    """The softmax policies of all runs."""

    logits: Tensor  # (B, S, A)
    policy: Tensor  # (B, S, A)


class Sums(NamedTuple):
    """What a batch of episodes of every run says about its steps; see `EpisodeStatistics`."""

    weight: Tensor  # (B, S, A)
    advantage_sum: Tensor  # (B, S, A)
    target_sum: Tensor  # (B, S)


def uniform_actors(num_runs: int, num_states: int, num_actions: int, device: torch.device) -> Actors:
    """Policies that prefer nothing."""
    logits = torch.zeros((num_runs, num_states, num_actions), dtype=torch.float64, device=device)
    return Actors(logits, torch.full_like(logits, 1.0 / num_actions))


def natural_steps(
    actors: Actors, critic: Tensor, sums: Sums, *, max_kl: float, memory: float, critic_memory: float
) -> tuple[Actors, Tensor, Tensor]:
    """The largest step of every run inside its trust region: actors, critics (B, S), and the verdicts (B,).

    Where the verdict is not ``ACCEPTED`` the run's policy is what it was.
    """
    if critic.device.type == "cuda":
        return launch_natural_kernel(actors, critic, sums, max_kl, memory, critic_memory)
    stepped = Actors(*(table.clone(memory_format=torch.contiguous_format) for table in actors))
    tables = [table.contiguous().numpy() for table in (*stepped, sums.weight, sums.advantage_sum)]
    verdicts = [
        natural_step(logits, policy, weight, advantage_sum, max_kl, memory)[0]
        for logits, policy, weight, advantage_sum in zip(*tables, strict=True)
    ]
    return stepped, improved_critics(critic, sums, critic_memory), torch.tensor(verdicts)


def ascend(
    actors: Actors, critic: Tensor, sums: Sums, rate: Tensor, *, critic_memory: float
) -> tuple[Actors, Tensor, Tensor]:
    """Add ``rate`` (B,) times the batch's gradient to the logits: actors, critics (B, S), and the verdicts (B,).

    The gradient is that of `learners.reinforce`: advantages minus their share by the policy.
    """
    moved = (sums.weight.sum(dim=2) > 0.0)[:, :, None]
    change = rate[:, None, None] * (sums.advantage_sum - actors.policy * sums.advantage_sum.sum(dim=2, keepdim=True))
    raised = actors.logits + change
    logits = (raised - raised.amax(dim=2, keepdim=True)).clamp(min=LEAST_LOGIT)
    policy = torch.softmax(logits, dim=2)
    stepped = Actors(torch.where(moved, logits, actors.logits), torch.where(moved, policy, actors.policy))
    verdict = torch.where((moved & (change != 0.0)).flatten(1).any(dim=1), ACCEPTED, NO_SIGNAL)
    return stepped, improved_critics(critic, sums, critic_memory), verdict


def improved_critics(critic: Tensor, sums: Sums, memory: float) -> Tensor:
    """Critics moved towards the mean target of each state, their old value counting as ``memory`` visits."""
    seen = sums.weight.sum(dim=2)
    return torch.where(seen > 0.0, (memory * critic + sums.target_sum) / (memory + seen), critic)


# On the GPU ---------------------------------------------------------------------------------------------------------


def launch_natural_kernel(
    actors: Actors, critic: Tensor, sums: Sums, max_kl: float, memory: float, critic_memory: float
) -> tuple[Actors, Tensor, Tensor]:
    """`natural_steps` in one launch."""
    num_runs, num_states, num_actions = actors.policy.shape
    stepped = Actors(torch.empty_like(actors.logits), torch.empty_like(actors.policy))
    learned = torch.empty_like(critic)
    verdict = torch.empty(num_runs, dtype=torch.int64, device=critic.device)
    actions = _power_of_two(num_actions)
    natural_kernel[(num_runs,)](
        *(table.contiguous() for table in (*actors, *sums, critic)),
        *stepped,
        learned,
        verdict,
        constants((max_kl, memory, critic_memory, MOST_LOGIT_CHANGE, LEAST_LOGIT, ROUNDING), critic.device),
        num_states,
        num_actions,
        STATES=min(_power_of_two(num_states), max(TILE // actions, 1)),
        ACTIONS=actions,
        SEARCHES=BISECTIONS,
        ACCEPTED=ACCEPTED,
        NO_SIGNAL=NO_SIGNAL,
        NOT_FINITE=NOT_FINITE,
        enable_fp_fusion=False,
    )
    return stepped, learned, verdict


def _power_of_two(size: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << max(size - 1, 0).bit_length()


@triton.jit
def read_tile(first, run, tables, sizes, total, memory, rounding, STATES: tl.constexpr, ACTIONS: tl.constexpr):
    """What a step reads of the states from ``first`` on: where they stand, and all that the search needs of them."""
    logits_in, policy_in, weight_in, advantage_in = tables
    num_states, num_actions = sizes
    state, action = first + tl.arange(0, STATES), tl.arange(0, ACTIONS)
    there = (state < num_states)[:, None] & (action < num_actions)[None, :]
    place = run * num_states * num_actions + state[:, None] * num_actions + action[None, :]
    weight = tl.load(weight_in + place, mask=there, other=0.0)
    policy = tl.load(policy_in + place, mask=there, other=0.0)
    logits = tl.load(logits_in + place, mask=there, other=0.0)
    logits = tl.where((action < num_actions)[None, :], logits, float("-inf"))  # actions that only fill up the tile

    seen = tl.sum(weight, axis=1)
    frequency = tl.where(seen > 0.0, seen / tl.where(total > 0.0, total, 1.0), 0.0)
    gained = tl.load(advantage_in + place, mask=there, other=0.0)
    advantage = tl.where(weight > 0.0, gained / tl.where(weight > 0.0, weight + memory, 1.0), 0.0)
    size = tl.max(tl.abs(advantage), axis=1)
    advantage = tl.where(there, advantage - tl.sum(policy * advantage, axis=1)[:, None], 0.0)
    advantage = tl.where(tl.abs(advantage) <= rounding * size[:, None], 0.0, advantage)
    top = tl.max(logits, axis=1)
    log_policy = logits - (top + tl.log(tl.sum(tl.exp(logits - top[:, None]), axis=1)))[:, None]
    return there, place, seen, logits, (policy, log_policy, advantage, frequency)


@triton.jit
def signal(tile):
    """The tile's share of the advantages' variance, and its smallest advantage that is not zero."""
    policy, _, advantage, frequency = tile
    size = tl.where(tl.abs(advantage) > 0.0, tl.abs(advantage), float("inf"))
    variance = tl.sum(frequency * tl.sum(policy * advantage * advantage, axis=1), axis=0)
    return variance, tl.min(tl.min(size, axis=1), axis=0)


@triton.jit
def tile_divergence(step, tile, most):
    """The tile's share of KL(t); see `trpo.mean_divergence`."""
    policy, log_policy, advantage, frequency = tile
    change = tl.minimum(tl.maximum(step * advantage, -most), most)
    shifted = log_policy + change
    largest = tl.max(shifted, axis=1)
    normaliser = tl.sum(tl.exp(shifted - largest[:, None]), axis=1)
    moved = tl.log(normaliser) + largest - tl.sum(policy * change, axis=1)
    return tl.sum(tl.where(frequency > 0.0, frequency * moved, 0.0), axis=0)


@triton.jit
def divergence(
    step, tile, most, run, tables, sizes, total, memory, rounding, STATES: tl.constexpr, ACTIONS: tl.constexpr
):
    """KL(t): of the first tile, which is at hand, and of all others, which are read again."""
    result = tile_divergence(step, tile, most)
    for first in range(STATES, sizes[0], STATES):
        other = read_tile(first, run, tables, sizes, total, memory, rounding, STATES, ACTIONS)[4]
        result += tile_divergence(step, other, most)
    return result


@triton.jit
def natural_kernel(
    logits_in,
    policy_in,
    weight_in,
    advantage_in,
    target_in,
    critic_in,
    logits_out,
    policy_out,
    critic_out,
    verdict_out,
    settings,
    num_states,
    num_actions,
    STATES: tl.constexpr,
    ACTIONS: tl.constexpr,
    SEARCHES: tl.constexpr,
    ACCEPTED: tl.constexpr,
    NO_SIGNAL: tl.constexpr,
    NOT_FINITE: tl.constexpr,
):
    """One run: centre the advantages, find the largest step inside the trust region, take it, and move the critic."""
    run = tl.program_id(0).to(tl.int64)
    max_kl, memory, critic_memory = tl.load(settings), tl.load(settings + 1), tl.load(settings + 2)
    most, least, rounding = tl.load(settings + 3), tl.load(settings + 4), tl.load(settings + 5)
    tables = (logits_in, policy_in, weight_in, advantage_in)
    sizes = (num_states, num_actions)

    total = tl.full([], 0.0, tl.float64)
    for first in range(0, num_states, STATES):
        state, action = first + tl.arange(0, STATES), tl.arange(0, ACTIONS)
        there = (state < num_states)[:, None] & (action < num_actions)[None, :]
        place = run * num_states * num_actions + state[:, None] * num_actions + action[None, :]
        total += tl.sum(tl.sum(tl.load(weight_in + place, mask=there, other=0.0), axis=1), axis=0)
    tile = read_tile(0, run, tables, sizes, total, memory, rounding, STATES, ACTIONS)[4]
    variance, smallest = signal(tile)
    for first in range(STATES, num_states, STATES):
        other = read_tile(first, run, tables, sizes, total, memory, rounding, STATES, ACTIONS)[4]
        more, least_there = signal(other)
        variance += more
        smallest = tl.minimum(smallest, least_there)

    finite = tl.abs(variance) < float("inf")  # false for what is no number, too
    signalled = finite & (variance != 0.0)
    low = tl.sqrt(2.0 * max_kl / tl.where(signalled, variance, 1.0))
    searching = signalled & (low > 0.0) & (low < float("inf"))
    low = tl.where(searching, low, 0.0)
    longest = tl.maximum(low, most / smallest)
    inside = divergence(low, tile, most, run, tables, sizes, total, memory, rounding, STATES, ACTIONS) <= max_kl
    growing = searching & inside & (2.0 * low < longest)
    while growing:
        fits = divergence(2.0 * low, tile, most, run, tables, sizes, total, memory, rounding, STATES, ACTIONS) <= max_kl
        low = tl.where(fits, 2.0 * low, low)
        growing = fits & (2.0 * low < longest)
    shrinking = searching & (inside == 0)
    while shrinking:
        low = 0.5 * low
        beyond = divergence(low, tile, most, run, tables, sizes, total, memory, rounding, STATES, ACTIONS) > max_kl
        shrinking = beyond & (low > 0.0)
    taken = searching & (low > 0.0)
    high = tl.where(inside, tl.minimum(longest, 2.0 * low), 2.0 * low)
    for _ in range(SEARCHES):
        middle = 0.5 * (low + high)
        fits = divergence(middle, tile, most, run, tables, sizes, total, memory, rounding, STATES, ACTIONS) <= max_kl
        low = tl.where(fits, middle, low)
        high = tl.where(fits, high, middle)
    tl.store(verdict_out + run, tl.where(taken, ACCEPTED, tl.where(finite, NO_SIGNAL, NOT_FINITE)).to(tl.int64))

    for first in range(0, num_states, STATES):
        there, place, seen, logits, here = read_tile(
            first, run, tables, sizes, total, memory, rounding, STATES, ACTIONS
        )
        policy, advantage = here[0], here[2]
        raised = logits + tl.minimum(tl.maximum(low * advantage, -most), most)
        stepped = tl.maximum(raised - tl.max(raised, axis=1)[:, None], least)
        likelihood = tl.where((tl.arange(0, ACTIONS) < num_actions)[None, :], tl.exp(stepped), 0.0)
        moved = (tl.where(taken, seen, 0.0) > 0.0)[:, None]
        share = likelihood / tl.sum(likelihood, axis=1)[:, None]
        tl.store(logits_out + place, tl.where(moved, stepped, logits), mask=there)
        tl.store(policy_out + place, tl.where(moved, share, policy), mask=there)

        state = first + tl.arange(0, STATES)
        critic = tl.load(critic_in + run * num_states + state, mask=state < num_states, other=0.0)
        target = tl.load(target_in + run * num_states + state, mask=state < num_states, other=0.0)
        known = tl.where(seen > 0.0, critic_memory + seen, 1.0)
        learned = tl.where(seen > 0.0, (critic_memory * critic + target) / known, critic)
        tl.store(critic_out + run * num_states + state, learned, mask=state < num_states)
