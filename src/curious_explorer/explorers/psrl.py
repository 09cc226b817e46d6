"""PSRL: draw a world from the posterior, and act as if it were the true one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Integers
from curious_explorer.compile import compiled
from curious_explorer.explorers.model_based_explorer import ModelBasedExplorer, NextPolicy, Strategy, growth_quota
from curious_explorer.learners.optimizer import Task
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import Problem, plan
from curious_explorer.worlds.world import World

NEGLIGIBLE = 1e-9
"""Drawn chances below this are left out: most of a Dirichlet(1/S) row is far smaller, and planning takes time."""


@dataclass(frozen=True, kw_only=True)
class PSRL(ModelBasedExplorer):
    """Posterior sampling (Osband, Russo and Van Roy 2013): Dirichlet(1/S) for transitions, Beta(1, 1) for rewards.

    A reward r between 0 and 1 counts as r of a success.
    """

    growth: float = 0.1
    """Draw again at the end of the episode in which some pair was tried this much more often: the posterior has
    hardly moved before. 0 as published, after every episode."""
    seed: int = 0
    """Together with the world's own, where the draws come from."""

    def strategy(self, world: World, task: Task) -> Strategy:
        """The best policy of a world drawn from the posterior."""
        random = np.random.default_rng([self.seed, int(world.identity().get("seed", 0)), world.samples])
        values = np.ones(world.num_states)

        def next_policy(model: CountedModel, samples: int) -> NextPolicy:
            policy = plan(posterior_sample(model, task, random), task.gamma, values).policy
            return NextPolicy(policy, growth_quota(model, self.growth), finish_episode=True)

        return next_policy


def posterior_sample(model: CountedModel, task: Task, random: np.random.Generator) -> Problem:
    """A world drawn from the posterior, to be planned on; what terminal states pay is known."""
    rewards = model.rewards(task.reward)
    if task.reward is None or task.reward.combine != "replace":
        earned = rewards * model.tries
        rewards = random.beta(1.0 + earned, 1.0 + np.maximum(model.tries - earned, 0.0))
    wanted = ~np.repeat(model.terminal, model.num_actions)  # rows of terminal states are not asked for
    going_on = (model.times - model.stopped) / model.times
    starts, next_states, chances = draw_rows(
        random, model.rows.row_start, model.rows.next_states, model.times, going_on, wanted, model.num_states
    )
    nothing = np.zeros(model.shape)
    return Problem(
        starts, next_states, chances, rewards, model.settled(task.reward), nothing, nothing, np.ones(model.shape)
    )


@compiled
def draw_rows(
    random: np.random.Generator,
    row_start: Integers,
    next_states: Integers,
    times: Integers,
    going_on: Floats,
    wanted: NDArray[np.bool_],
    num_states: int,
) -> tuple[Integers, Integers, Floats]:
    """A Dirichlet(1/S + times) draw for each wanted row, as compressed rows of what is not negligible.

    States that a row has led to are drawn as Gamma variables, one each. The k others share one Gamma(k/S) as a
    symmetric Dirichlet does, whose largest parts come first when it is drawn in size-biased order: the j-th part breaks
    a Beta(1 + 1/S, (k - j)/S) share off what is left, and belongs to any state not named yet. What is left falls
    below `NEGLIGIBLE` after some twenty parts, however many states there are.
    """
    spread = 1.0 / num_states
    starts = np.zeros(len(row_start), dtype=np.int64)
    columns = np.empty(len(next_states) + 32 * len(row_start), dtype=np.int64)
    chances = np.empty(len(columns))
    named = np.full(num_states, -1)
    size = 0
    for row in range(len(wanted)):
        if wanted[row]:
            if size + num_states > len(columns):
                room = 2 * len(columns) + num_states
                columns, old_columns = np.empty(room, dtype=np.int64), columns
                chances, old_chances = np.empty(room), chances
                columns[:size], chances[:size] = old_columns[:size], old_chances[:size]
            first = size
            for entry in range(row_start[row], row_start[row + 1]):
                columns[size] = next_states[entry]
                chances[size] = random.standard_gamma(spread + times[entry])
                named[next_states[entry]] = row
                size += 1
            others = num_states - (size - first)
            unseen = random.standard_gamma(others * spread) if others else 0.0
            total = unseen + chances[first:size].sum()
            chances[first:size] /= total
            chances[first:size] *= going_on[row_start[row] : row_start[row + 1]]  # an end is worth nothing
            left = unseen / total
            while others > 0 and left > NEGLIGIBLE:
                others -= 1
                part = left * (random.beta(1.0 + spread, others * spread) if others else 1.0)
                state = random.integers(0, num_states)
                while named[state] == row:
                    state = random.integers(0, num_states)
                named[state] = row
                if part > NEGLIGIBLE:
                    columns[size], chances[size] = state, part
                    size += 1
                left -= part
        starts[row + 1] = size
    return starts, columns[:size].copy(), chances[:size].copy()
