"""Algorithm 2 for many seeds at once: the loop of `explorer.algorithm`, every line for B runs.

Run b draws the random numbers of a `TabularWorld` with its seed. Whatever is made of whole numbers (states, visits,
samples) is the same for the same policies; policies come from sums of floats taken in another order and agree to
rounding. Where the search for a step ends on a comparison of two nearly equal numbers, a difference in the last digit
can grow to 10**-9 of the step, and a draw that falls between two policies' thresholds leads elsewhere. So after many
updates a run may part from its single-run twin. What does not change is the distribution over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from curious_explorer.explorers.curious_explorer import REWARDS
from curious_explorer.explorers.exploration import Exploration, Round
from curious_explorer.explorers.thresholds import Schedule, schedule_values
from curious_explorer.explorers.visits import DEFAULT_VISITS
from curious_explorer.gpu.many_seeds_learning import ManyResults, check_learner, learn_many
from curious_explorer.gpu.many_worlds import FROM_START, ManyRollIns, ManyWorlds
from curious_explorer.learners.optimizer import check_budget
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.resets.reset_model import FIXED_WEIGHTINGS, fixed_shares, reset_chains
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import frozen

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
    worlds: ManyWorlds,
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
    chains = reset_chains(fixed_shares(len(policies), weighting)) if policies else FROM_START
    return ManyRollIns(tuple(policies), gamma, tuple(chains))


def improve_many(
    worlds: ManyWorlds,
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
    thresholds: Thresholds | Sequence[Thresholds], rounds: int, worlds: ManyWorlds
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """beta_n of every run, shape (N, B), checked before any work begins."""
    each = list(thresholds) if isinstance(thresholds, Sequence) else [thresholds] * worlds.num_runs
    if len(each) != worlds.num_runs:
        raise ValueError(f"thresholds has {len(each)} entries, expected one for each of the {worlds.num_runs} runs")
    if not isinstance(thresholds, Sequence):  # one schedule for all; asked once
        values = schedule_values(thresholds, rounds, worlds.num_states)
        return np.tile(np.array(values)[:, None], (1, worlds.num_runs))
    return np.array([schedule_values(own, rounds, worlds.num_states) for own in each]).T.copy()
