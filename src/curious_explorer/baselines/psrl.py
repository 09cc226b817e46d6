"""PSRL: be as optimistic as a guess. Draw a world from the posterior, and act as if it were the true one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curious_explorer.baselines.living import Directions, ModelBasedExplorer, Strategy, check_growth, growth_quota
from curious_explorer.baselines.model import EmpiricalModel
from curious_explorer.baselines.planning import Problem, plan
from curious_explorer.mdp.validation import check_seed
from curious_explorer.optimizers.protocol import Floats, Task
from curious_explorer.sampling import World

NEGLIGIBLE = 1e-9
"""Drawn chances below this are left out: most of a Dirichlet(1/S) row is far smaller, and planning takes time."""
DRAWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, kw_only=True)
class PSRL(ModelBasedExplorer):
    """Posterior sampling (Osband, Russo and Van Roy 2013): Dirichlet(1/S) for transitions, Beta(1, 1) for rewards.

    A reward r between 0 and 1 counts as r of a success. One draw costs S^2 A random numbers.
    """

    growth: float = 0.1
    """Draw again at the end of the episode in which some pair was tried this much more often: the posterior has
    hardly moved before. 0 as published, after every episode."""
    seed: int = 0
    """Together with the world's own, where the draws come from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_growth(self.growth)
        check_seed(self.seed)

    def strategy(self, world: World, task: Task) -> Strategy:
        """See `ModelBasedExplorer`."""
        world_seed = int(world.identity().get("seed", 0))
        random = np.random.default_rng([self.seed, world_seed, world.samples])
        return _PosteriorStrategy(task, self.growth, random)


class _PosteriorStrategy:
    def __init__(self, task: Task, growth: float, random: np.random.Generator) -> None:
        self._task, self._growth, self._random = task, growth, random
        self._values: Floats | None = None

    def directions(self, model: EmpiricalModel, samples: int) -> Directions:
        """The best policy of a world drawn from the posterior."""
        if self._values is None:
            self._values = np.ones(model.num_states)
        policy = plan(posterior_sample(model, self._task, self._random), self._task.gamma, self._values).policy
        return Directions(policy, growth_quota(model, self._growth), to_the_end=True)


def posterior_sample(model: EmpiricalModel, task: Task, random: np.random.Generator) -> Problem:
    """A world drawn from the posterior, to be planned on; what terminal states pay is known."""
    num_states, num_actions = model.shape
    rewards = model.rewards(task.reward)
    if task.reward is None or task.reward.combine != "replace":
        earned = rewards * model.tries
        rewards = random.beta(1.0 + earned, 1.0 + np.maximum(model.tries - earned, 0.0))
    drawn = ~np.repeat(model.terminal, num_actions)  # rows of terminal states are not asked for
    starts, next_states, chances = [0], [], []
    block = max(1, DRAWS_AT_ONCE // num_states)
    for first in range(0, num_states * num_actions, block):
        rows = np.arange(first, min(first + block, num_states * num_actions))
        shares = np.full((len(rows), num_states), 1.0 / num_states)
        entries = slice(model.row_start[rows[0]], model.row_start[rows[-1] + 1])
        shares[model.pairs[entries] - first, model.next_states[entries]] += model.times[entries]
        shares = random.standard_gamma(shares)
        shares /= shares.sum(axis=1, keepdims=True)
        kept = (shares > NEGLIGIBLE) & drawn[rows, None]
        starts.extend((starts[-1] + np.cumsum(kept.sum(axis=1))).tolist())
        next_states.append(np.nonzero(kept)[1])
        chances.append(shares[kept])
    nothing = np.zeros(model.shape)
    return Problem(
        np.array(starts, dtype=np.int64),
        np.concatenate(next_states).astype(np.int64),
        np.concatenate(chances),
        rewards,
        model.settled(task.reward),
        nothing,
        nothing,
        np.ones(model.shape),
    )
