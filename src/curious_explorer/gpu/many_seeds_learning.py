"""The loop of `optimizers.actor_critic` for many runs at once: every run learns its own policy, all in step.

`TRPO` and `Reinforce` say how to learn, as they do for a single run; what differs is only that batches, critics and
steps have a leading dimension B. A run whose budget is spent waits: it takes no step, changes nothing, and is not
counted, as if it had left the loop. Nothing is read back from the device while learning goes on, except whether
anybody still learns, every few updates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curious_explorer.gpu.many_seeds_natural_step import (
    ActorCache,
    ascend,
    divided,
    natural_steps,
    small_enough,
    uniform_actors,
)
from curious_explorer.gpu.many_worlds import ManyRollIns, ManyStatistics, ManyWorlds
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import LearningCurve, OptimizerResult
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.learners.trust_region import ACCEPTED, NO_SIGNAL
from curious_explorer.worlds.policies import frozen

REASONS = ("accepted", "no advantage to follow", "advantages not finite")
"""What the verdicts ``ACCEPTED``, ``NO_SIGNAL`` and ``NOT_FINITE`` mean."""
LOOK_EVERY = 16
"""After so many updates we look whether every budget is spent; to look is to wait for the device."""


@dataclass(frozen=True, eq=False)
class ManyResults:
    """What B runs have learned, and the account of how."""

    policy: Tensor
    """Shape (B, S, A)."""
    samples: Tensor
    """Every step taken, roll-ins included, shape (B,)."""
    verdicts: Tensor
    """How often an update was accepted, and rejected for each reason, shape (B, 3); see `REASONS`."""
    occupancy: Tensor
    """Discounted visits of each run's last episodes, shape (B, S); rows sum to one, or to zero if there were none."""
    curve_samples: Tensor
    """Steps used up to and with each update, shape (U, B)."""
    curve_returns: Tensor
    """The mean discounted return of each update's episodes, shape (U, B)."""
    curve_episodes: Tensor
    """Episodes run up to and with each update, shape (U, B); where it stands still, the run had stopped."""

    def run(self, index: int) -> OptimizerResult:
        """What one run learned, as the single-run code would tell it."""
        samples, returns, episodes = (
            _array(column[:, index]) for column in (self.curve_samples, self.curve_returns, self.curve_episodes)
        )
        ran = np.diff(episodes, prepend=0) > 0
        accepted, *rejected = (int(times) for times in self.verdicts[index])
        occupancy = _array(self.occupancy[index])
        return OptimizerResult(
            policy=frozen(_array(self.policy[index])),
            samples=int(self.samples[index]),
            curve=LearningCurve(samples[ran], returns[ran], episodes[ran]),
            accepted=accepted,
            rejected={reason: times for reason, times in sorted(zip(REASONS[1:], rejected, strict=True)) if times},
            occupancy=occupancy if ran.any() else None,
        )


def learn_many(
    worlds: ManyWorlds,
    optimizer: TRPO | Reinforce,
    reset: ManyRollIns,
    *,
    gamma: float,
    rewards: Tensor | None = None,
    combine: str = "replace",
    budgets: Tensor | None = None,
) -> ManyResults:
    """Learn a policy in every run.

    Args:
        worlds: where to act; every step is counted in ``worlds.samples``.
        optimizer: `TRPO` or `Reinforce`, the same for all runs.
        reset: where episodes begin.
        gamma: the discount.
        rewards: what each run learns for, shape (B, S, A); the world's own reward if None.
        combine: "replace" pays ``rewards`` alone, "max" the larger of it and the world's own.
        budgets: the most steps each run may take, roll-ins included, shape (B,), int64; None means no limit.
    """
    check_learner(optimizer)
    shape, device = (worlds.num_runs, worlds.num_states, worlds.num_actions), worlds.device
    actors = uniform_actors(*shape, device)
    critic = torch.zeros(shape[:2], dtype=torch.float64, device=device)
    occupancy = torch.zeros_like(critic)
    used = torch.zeros(shape[0], dtype=torch.int64, device=device)
    run = torch.zeros_like(used)
    verdicts = torch.zeros((shape[0], len(REASONS)), dtype=torch.int64, device=device)
    curve: list[tuple[Tensor, Tensor, Tensor]] = []
    asked: dict[str, Any] = {
        "episodes": optimizer.episodes,
        "horizon": optimizer.horizon or default_horizon(gamma),
        "gamma": gamma,
        "reset": reset,
        "trace": optimizer.trace,
        "rewards": rewards,
        "combine": combine,
    }
    for update in range(optimizer.updates):
        left = None if budgets is None else budgets - used
        if left is not None and update % LOOK_EVERY == 0 and not (left > 0).any():
            break
        batch = worlds.episodes(actors.policy, critic=critic, max_samples=left, **asked)
        used = used + batch.samples
        run = run + batch.episodes
        ran = batch.episodes > 0
        actors, critic, verdict = updated(optimizer, actors, critic, batch)
        verdicts.scatter_add_(1, verdict[:, None], ran[:, None].to(torch.int64))
        shares = batch.occupancy / batch.occupancy.sum(dim=1, keepdim=True)
        occupancy = torch.where(ran[:, None], shares, occupancy)
        curve.append((used, batch.mean_return, run))
    worlds.check()
    samples, returns, episodes = (torch.stack(column) for column in zip(*curve, strict=True))
    return ManyResults(actors.policy, used, verdicts, occupancy, samples, returns, episodes)


def updated(
    optimizer: TRPO | Reinforce, actors: ActorCache, critic: Tensor, batch: ManyStatistics
) -> tuple[ActorCache, Tensor, Tensor]:
    """The actors and critics of all runs after a batch, and the verdict on each step, shape (B,)."""
    sums = (batch.weight, batch.advantage_sum)
    if isinstance(optimizer, TRPO):
        region: dict[str, Any] = {"max_kl": optimizer.max_kl, "memory": float(optimizer.advantage_memory)}
        if critic.device.type == "cuda" and small_enough(*actors.policy.shape[1:]):
            from curious_explorer.gpu.natural_step_kernel import natural_updates

            memory = float(optimizer.critic_memory)
            actors, verdict, critic = natural_updates(
                actors, critic, *sums, batch.target_sum, **region, critic_memory=memory
            )
            return actors, critic, verdict
        actors, verdict = natural_steps(actors, *sums, **region)
    else:
        rate = divided(optimizer.learning_rate, batch.episodes.clamp(min=1).to(torch.float64))
        actors, moved = ascend(actors, *sums, rate)
        verdict = torch.where(moved, ACCEPTED, NO_SIGNAL)
    return actors, improved_critics(critic, batch, optimizer.critic_memory), verdict


def improved_critics(critic: Tensor, batch: ManyStatistics, memory: float) -> Tensor:
    """Critics moved towards the mean target of each state, their old value counting as ``memory`` visits."""
    seen = batch.weight.sum(dim=2)
    moved = (memory * critic + batch.target_sum) / (memory + seen)
    return torch.where(seen > 0.0, moved, critic)


def check_learner(optimizer: object) -> None:
    """Refuse an optimizer that knows only single runs."""
    if not isinstance(optimizer, TRPO | Reinforce):
        raise ValueError(
            f"optimizer is {type(optimizer).__name__}, expected TRPO(...) or Reinforce(...): only these learn in many "
            "runs at once; for another one call explore for each seed"
        )


def _array(tensor: Tensor) -> Any:
    return tensor.cpu().numpy()
