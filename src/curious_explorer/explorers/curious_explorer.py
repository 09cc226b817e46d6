"""Algorithm 2: Curious Explorer.

    mu_{-1} = rho,  pi_0 = uniform
    for n = 0, 1, ..., N-1:
        D_n     = visit(pi_n, mu_{n-1})                       where does the current policy go?
        K_n     = {s : D_0(s) + ... + D_n(s) <= beta_n}       which states are poorly visited?
        r_n     = 1 on K_n                                    reward exactly those
        mu_n    = 1/2 D_n + 1/2 rho                           start from where we have learned to go
        pi_{n+1} = opt(r_n, mu_n)                             and learn to reach them

`explore` is that loop. It needs of the world only restart and step, and of the optimizer only that it learns.

One thing differs from the paper by default. mu_n forgets its past geometrically, so when a round learns nothing the
next one no longer starts near the frontier, and exploration falls back to rho: at depth 40 the crossroads are lost that
way. So opt learns from 1/2 rho + 1/2 (D_0 + ... + D_n) / (n + 1) unless `learn_from="last"` asks for mu_n. The theorems
ask of opt's reset model only that at least half of it is rho, which holds for both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.explorers.checkpoint import Checkpoint
from curious_explorer.explorers.exploration import Exploration, Round
from curious_explorer.explorers.progress import RoundProgress
from curious_explorer.explorers.thresholds import Schedule, schedule_values
from curious_explorer.explorers.visits import DEFAULT_VISITS, FreshVisits, Visits
from curious_explorer.gym.discretisation import discretisation_of
from curious_explorer.learners.optimizer import Optimizer, Reward, check_budget, check_learned, check_optimizer
from curious_explorer.resets.reset_model import WEIGHTINGS, ResetModel
from curious_explorer.settings_description import describe
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import KnownPolicy, check_any_policy, frozen
from curious_explorer.worlds.recording import RecordingWorld
from curious_explorer.worlds.world import World, check_world

REWARDS = ("curiosity", "combined")


def explore(
    world: World,
    optimizer: Optimizer,
    *,
    gamma: float,
    rounds: int,
    thresholds: Schedule | float | None = None,
    visits: Visits | int = DEFAULT_VISITS,
    budget: int | None = None,
    reward: str = "curiosity",
    learn_from: str = "average",
    record: bool = False,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Exploration:
    """Explore a world from its start and return the rounds, whose policies make the reset model.

    Args:
        world: where to act; every step is counted in ``world.samples``.
        optimizer: ``opt`` of the paper: `TRPO`, `Reinforce`, `ModelBased`, or anything with their signature.
        gamma: the discount.
        rounds: N, how many policies to learn.
        thresholds: beta_n: a number beta for the linear schedule beta * (n + 1), a function of n (see
            `curious_explorer.explorers.thresholds`), or None for the linear one with beta = 1 / (2 |S|).
        visits: how D_n is measured: how many walks, or one of the ways in `curious_explorer.explorers.visits`.
        budget: the most steps the optimizer may take in a round; its own default if None.
        reward: "curiosity" is r_n alone, as in the paper; "combined" is max(r_n, the world's own reward), so that the
            last policy is already trained on both and no second phase is needed.
        learn_from: the resets opt learns from: "average" of all rounds so far, the "last" one's, as in the paper, or
            "spread" over as much as possible of what was seen.
        record: whether to keep the transitions seen while learning, for learning off-policy afterwards.
        checkpoint: a folder to save each round in, and to go on from if it holds the same exploration already.
        progress: whether to show a progress bar.
    """
    check_world(world)
    check_optimizer(optimizer)
    gamma = check_gamma(gamma)
    rounds = check_count(rounds, "rounds", least=1)
    betas = schedule_values(thresholds, rounds, world.num_states)
    measure = visits if callable(visits) else FreshVisits(visits)
    if reward not in REWARDS:
        raise ValueError(f"reward is {reward!r}, expected one of {', '.join(map(repr, REWARDS))}")
    if learn_from not in WEIGHTINGS:
        raise ValueError(f"learn_from is {learn_from!r}, expected one of {', '.join(map(repr, WEIGHTINGS))}")
    settings = {
        "gamma": gamma,
        "thresholds": betas,
        "visits": describe(measure),
        "budget": check_budget(budget),
        "reward": reward,
        "learn_from": learn_from,
        "record": record,
    }
    saved = Checkpoint(checkpoint, world, optimizer, settings)
    done = saved.resume()[:rounds]
    learning_world = RecordingWorld(world) if record else world

    with RoundProgress(world, rounds, show=progress) as bar:
        for finished in done:
            bar.advance(finished)
        for n in range(len(done), rounds):
            policy: KnownPolicy = done[-1].learned_policy if done else uniform_policy(world)
            policies = [finished.policy for finished in done]

            before = world.samples
            mu = ResetModel(policies, gamma=gamma, weighting="last") if policies else None  # mu_{n-1}; None is rho
            visited = measure(world, policy, mu, done[-1].occupancy if done else None, gamma)  # D_n
            total = visited + sum(finished.visited for finished in done)
            poorly_visited = total <= betas[n]  # K_n

            between = world.samples
            measured = [*(finished.visited for finished in done), visited]
            mu = ResetModel([*policies, policy], gamma=gamma, weighting=learn_from, visited=measured)  # mu_n
            curiosity = curiosity_reward(poorly_visited, world.num_actions, reward)  # r_n
            learned = optimizer(learning_world, mu, gamma=gamma, reward=curiosity, budget=budget)  # pi_{n+1}
            check_learned(learned, world.samples - between, budget)

            done.append(
                Round(
                    number=n,
                    threshold=betas[n],
                    policy=policy,
                    visited=visited,
                    poorly_visited=poorly_visited,
                    learned_policy=check_any_policy(learned.policy, world.num_states, world.num_actions),
                    visit_samples=between - before,
                    learning_samples=world.samples - between,
                    accepted=learned.accepted,
                    rejected=learned.rejected,
                    occupancy=learned.occupancy,
                    seen=learning_world.take() if isinstance(learning_world, RecordingWorld) else None,
                )
            )
            saved.save(done[-1])
            bar.advance(done[-1])
    return Exploration(tuple(done), gamma, discretisation=discretisation_of(world))


def uniform_policy(world: World) -> Floats:
    """pi_0."""
    return frozen(np.full((world.num_states, world.num_actions), 1.0 / world.num_actions))


def curiosity_reward(poorly_visited: NDArray[np.bool_], num_actions: int, kind: str) -> Reward:
    """r_n: 1 in every poorly visited state, alone or together with the world's own reward."""
    combine = "max" if kind == "combined" else "replace"
    return Reward.of_states(poorly_visited.astype(np.float64), num_actions, combine)
