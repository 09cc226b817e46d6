"""Curious Explorer for many seeds in one call: Algorithm 2 and learning on tensors with a leading dimension of B runs.

`explore_many` is the loop of `explorers.curious_explorer`, and `learn_many` that of `learners.actor_critic`, every line
for B runs: each learns its own policy, all in step. Run b draws the random numbers of a `TabularWorld` with its seed.
Whatever is made of whole numbers (states, visits, samples) is the same for the same policies; policies come from sums
of floats taken in another order and agree to rounding. Where the search for a step ends on a comparison of two nearly
equal numbers, a difference in the last digit can grow to 10**-9 of the step, and a draw that falls between two
policies' thresholds leads elsewhere. So after many updates a run may part from its single-run twin. What does not
change is the distribution over seeds.

A run whose budget is spent waits: it takes no step, changes nothing, and is not counted, as if it had left the loop.
Nothing is read back from the device while learning goes on, except whether anybody still learns, every few updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from curious_explorer.errors import BackendError
from curious_explorer.explorers.curious_explorer import REWARDS
from curious_explorer.explorers.exploration import Exploration, Round
from curious_explorer.explorers.thresholds import Schedule, schedule_values
from curious_explorer.explorers.visits import DEFAULT_VISITS
from curious_explorer.learners.actor_critic import FIXED_EPISODES, default_horizon
from curious_explorer.learners.optimizer import LearningCurve, OptimizerResult, check_budget
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import EDGE_MEMORY, TRPO
from curious_explorer.optional_packages import installing
from curious_explorer.resets.reset_model import FIXED_WEIGHTINGS, fixed_shares, reset_chains
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import frozen

try:
    import torch
    from torch import Tensor

    from curious_explorer.gpu.many_worlds import FROM_START, ManyRollIns, SeededWorlds
    from curious_explorer.gpu.softmax_steps import Sums, ascend, natural_steps, uniform_actors
except ModuleNotFoundError as error:
    raise BackendError(
        f"many seeds at once need the package {error.name!r}, which is not installed; "
        f"{installing('gpu')}, or call explore for each seed"
    ) from error

REASONS = ("accepted", "no advantage to follow", "advantages not finite")
"""What the verdicts ``ACCEPTED``, ``NO_SIGNAL`` and ``NOT_FINITE`` mean."""
LOOK_EVERY = 16
"""After so many updates we look whether every budget is spent; to look is to wait for the device."""

Thresholds = Schedule | float | None


@dataclass(frozen=True, eq=False)
class ManyRounds:
    """Round n of every run."""

    thresholds: Tensor
    """beta_n, shape (B,)."""
    policy: Tensor
    """pi_n, shape (B, S, A)."""
    visited: Tensor
    """D_n, shape (B, S)."""
    poorly_visited: Tensor
    """K_n, shape (B, S)."""
    visit_samples: Tensor
    """Steps taken to measure D_n, shape (B,)."""
    learned: ManyResults
    """pi_{n+1} and how it was learned."""


@dataclass(frozen=True, eq=False)
class ManyExplorations:
    """B finished explorations."""

    rounds: tuple[ManyRounds, ...]
    gamma: float

    @cached_property
    def policies(self) -> tuple[Tensor, ...]:
        """pi_0, ..., pi_N, each of shape (B, S, A)."""
        return (*(round_.policy for round_ in self.rounds), self.rounds[-1].learned.policy)

    @cached_property
    def samples(self) -> Tensor:
        """All steps of all rounds: visits, roll-ins and learning, shape (B,)."""
        return torch.stack([round_.visit_samples + round_.learned.samples for round_ in self.rounds]).sum(dim=0)

    def reset(self, weighting: str = "average") -> ManyRollIns:
        """The reset models of all policies; see `ResetModel` for the ways to weigh rounds."""
        return resets(self.policies, self.gamma, weighting)

    def run(self, index: int) -> Exploration:
        """One run, as `explore` would have returned it."""
        return Exploration(tuple(self._round(n, index) for n in range(len(self.rounds))), self.gamma)

    def _round(self, number: int, index: int) -> Round:
        many = self.rounds[number]
        learned = many.learned.run(index)
        return Round(
            number=number,
            threshold=float(many.thresholds[index]),
            policy=frozen(many.policy[index].cpu().numpy()),
            visited=many.visited[index].cpu().numpy(),
            poorly_visited=many.poorly_visited[index].cpu().numpy(),
            learned_policy=learned.policy,
            visit_samples=int(many.visit_samples[index]),
            learning_samples=learned.samples,
            accepted=learned.accepted,
            rejected=learned.rejected,
            occupancy=learned.occupancy,
        )


def explore_many(
    worlds: SeededWorlds,
    optimizer: TRPO | Reinforce,
    *,
    gamma: float,
    rounds: int,
    thresholds: Thresholds | Sequence[Thresholds] = None,
    visits: int = DEFAULT_VISITS,
    budget: int | None = None,
    reward: str = "curiosity",
    learn_from: str = "average",
) -> ManyExplorations:
    """Explore B worlds from their start, in step; arguments as in `explore`.

    ``thresholds`` may also be a sequence of B of them, one for each run, to compare thresholds in a single call.
    """
    check_learner(optimizer)
    gamma, rounds = check_gamma(gamma), check_count(rounds, "rounds", least=1)
    betas = torch.from_numpy(many_thresholds(thresholds, rounds, worlds)).to(worlds.device)
    visits, budget = check_count(visits, "visits", least=1), check_budget(budget)
    if reward not in REWARDS:
        raise ValueError(f"reward is {reward!r}, expected one of {', '.join(map(repr, REWARDS))}")
    if learn_from not in FIXED_WEIGHTINGS:
        raise ValueError(f"learn_from is {learn_from!r}, expected one of {', '.join(map(repr, FIXED_WEIGHTINGS))}")
    shape = (worlds.num_runs, worlds.num_states, worlds.num_actions)
    budgets = None if budget is None else torch.full(shape[:1], budget, dtype=torch.int64, device=worlds.device)

    done: list[ManyRounds] = []
    policy = torch.full(shape, 1.0 / shape[2], dtype=torch.float64, device=worlds.device)
    past = torch.zeros(shape[:2], dtype=torch.float64, device=worlds.device)  # D_0 + ... + D_{n-1}
    for n in range(rounds):
        policies = [round_.policy for round_ in done]

        before = worlds.samples
        mu = resets(policies, gamma, "last")  # mu_{n-1}
        visited = shares(worlds.walk_counts(mu.then(policy), visits), visits)  # D_n
        poorly_visited = visited + past <= betas[n][:, None]  # K_n
        between = worlds.samples

        mu = resets([*policies, policy], gamma, learn_from)  # mu_n
        curiosity = poorly_visited.to(torch.float64)[:, :, None].expand(shape).contiguous()  # r_n
        combine = "max" if reward == "combined" else "replace"
        learned = learn_many(
            worlds, optimizer, mu, gamma=gamma, rewards=curiosity, combine=combine, budgets=budgets
        )  # pi_{n+1}

        done.append(ManyRounds(betas[n], policy, visited, poorly_visited, between - before, learned))
        policy, past = learned.policy, past + visited
    return ManyExplorations(tuple(done), gamma)


def shares(counts: Tensor, visits: int) -> Tensor:
    """Counts as shares; a quotient of tensors is rounded as NumPy's is, one by a number is not on every device."""
    return counts.to(torch.float64) / torch.full_like(counts, visits, dtype=torch.float64)


def resets(policies: Sequence[Tensor], gamma: float, weighting: str) -> ManyRollIns:
    """Mu of a chain of policies, for every run; rho itself without policies."""
    if not policies:
        return ManyRollIns((), gamma, FROM_START)
    weights, ranges = (array.tolist() for array in reset_chains(fixed_shares(len(policies), weighting)))
    return ManyRollIns(tuple(policies), gamma, tuple(zip(weights, map(tuple, ranges), strict=True)))


def improve_many(
    worlds: SeededWorlds,
    optimizer: TRPO | Reinforce,
    reset: ManyRollIns | None,
    *,
    gamma: float,
    budgets: Tensor | int | None = None,
) -> ManyResults:
    """The improvement phase of B runs: learn for the world's own reward from the resets that exploration found.

    Args:
        worlds: where to act.
        optimizer: `TRPO` or `Reinforce`.
        reset: where episodes begin; None means the world's start, which is learning without Curious Explorer.
        gamma: the discount.
        budgets: the most steps to learn with, for all runs or for each, shape (B,), int64.
    """
    gamma = check_gamma(gamma)
    if isinstance(budgets, int):
        size = check_budget(budgets)
        budgets = torch.full((worlds.num_runs,), size or 0, dtype=torch.int64, device=worlds.device)
    if budgets is not None and (budgets.shape != (worlds.num_runs,) or bool((budgets < 1).any())):
        raise ValueError(f"budgets has shape {tuple(budgets.shape)}, expected a budget of at least 1 for each run")
    start = ManyRollIns((), gamma, FROM_START) if reset is None else reset
    return learn_many(worlds, optimizer, start, gamma=gamma, budgets=budgets)


def many_thresholds(
    thresholds: Thresholds | Sequence[Thresholds], rounds: int, worlds: SeededWorlds
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """beta_n of every run, shape (N, B), checked before any work begins."""
    if not isinstance(thresholds, Sequence):  # one schedule for all; asked once
        values = schedule_values(thresholds, rounds, worlds.num_states)
        return np.tile(np.array(values)[:, None], (1, worlds.num_runs))
    if len(thresholds) != worlds.num_runs:
        raise ValueError(
            f"thresholds has {len(thresholds)} entries, expected one for each of the {worlds.num_runs} runs"
        )
    return np.array([schedule_values(own, rounds, worlds.num_states) for own in thresholds]).T.copy()


# Learning ------------------------------------------------------------------------------------------------------------


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
    worlds: SeededWorlds,
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
    updates = optimizer.updates
    if updates is None:
        raise ValueError(
            f"{type(optimizer).__name__} has no number of updates; many seeds take the same ones in step, so give it: "
            f"{type(optimizer).__name__}(updates=100)"
        )
    shape, device = (worlds.num_runs, worlds.num_states, worlds.num_actions), worlds.device
    actors = uniform_actors(*shape, device)
    critic = torch.zeros(shape[:2], dtype=torch.float64, device=device)
    occupancy = torch.zeros_like(critic)
    used = torch.zeros(shape[0], dtype=torch.int64, device=device)
    run = torch.zeros_like(used)
    verdicts = torch.zeros((shape[0], len(REASONS)), dtype=torch.int64, device=device)
    curve: list[tuple[Tensor, Tensor, Tensor]] = []
    asked: dict[str, Any] = {"gamma": gamma, "reset": reset, "rewards": rewards, "combine": combine}
    asked |= {"episodes": optimizer.episodes or FIXED_EPISODES, "horizon": optimizer.horizon or default_horizon(gamma)}
    asked["trace"] = optimizer.trace
    memories = {"critic_memory": float(optimizer.critic_memory)}
    if isinstance(optimizer, TRPO):
        memories["memory"] = optimizer.memory_for(EDGE_MEMORY)
    for update in range(updates):
        left = None if budgets is None else budgets - used
        if left is not None and update % LOOK_EVERY == 0 and not (left > 0).any():
            break
        batch = worlds.episodes(actors.policy, critic=critic, max_samples=left, **asked)
        used = used + batch.samples
        run = run + batch.run
        ran = batch.run > 0
        sums = Sums(batch.weight, batch.advantage_sum, batch.target_sum)
        if isinstance(optimizer, TRPO):
            actors, critic, verdict = natural_steps(actors, critic, sums, max_kl=optimizer.max_kl, **memories)
        else:
            ran_at_least = batch.run.clamp(min=1).to(torch.float64)
            rate = torch.full_like(ran_at_least, optimizer.learning_rate) / ran_at_least  # rounded as NumPy does
            actors, critic, verdict = ascend(actors, critic, sums, rate, **memories)
        verdicts.scatter_add_(1, verdict[:, None], ran[:, None].to(torch.int64))
        shares = batch.occupancy / batch.occupancy.sum(dim=1, keepdim=True)
        occupancy = torch.where(ran[:, None], shares, occupancy)
        curve.append((used, batch.mean_return, run))
    worlds.check()
    samples, returns, episodes = (torch.stack(column) for column in zip(*curve, strict=True))
    return ManyResults(actors.policy, used, verdicts, occupancy, samples, returns, episodes)


def check_learner(optimizer: object) -> None:
    """Refuse an optimizer that knows only single runs."""
    if not isinstance(optimizer, TRPO | Reinforce):
        raise ValueError(
            f"optimizer is {type(optimizer).__name__}, expected TRPO(...) or Reinforce(...): only these learn in many "
            "runs at once; for another one call explore for each seed"
        )


def _array(tensor: Tensor) -> Any:
    return tensor.cpu().numpy()
