"""Demonstrations: the best known way to the reward, walked again, as episodes to imitate.

The way is a plan on the counted model (`models.best_ways`) and is walked in a closed loop: look, act, look again. Every
step is one of the world's and is counted there. With ``noise`` a random action is taken now and then, and what the plan
advises is noted beside what was done, so that who imitates learns what to do beside the way, too (Laskey et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.errors import DemonstrationError
from curious_explorer.models.best_ways import MOST_STEPS, BestWays
from curious_explorer.models.counted_model import NO_REWARD, CountedModel
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.world import World, check_world

TRIES = 5
"""How many episodes are walked at most for each that is asked for: noise may make one fail."""
HOPELESS = 20
"""After so many in a row from the first on that do not get there no more are tried."""
CUT_FACTOR, CUT_SPARE = 3.0, 20
"""An episode is given up after so many times the length of its way, and so many steps more."""
UNADVISED = -1


@dataclass(eq=False)
class Demonstration:
    """One episode from the world's own start to the reward."""

    states: list[int]
    """In which its steps were taken, and in which it ended: one more than there are steps."""
    observations: list[Any]
    """What was seen there; the states again in a world that shows no more."""
    actions: list[Any]
    """What was done, as the world's actions."""
    advised: list[int]
    """The plan's action numbers, `UNADVISED` where it had none."""
    rewards: list[float]
    terminated: bool = False
    """Whether it ended in a terminal state; if not, it was cut off."""

    @property
    def returned(self) -> float:
        """The sum of its rewards."""
        return sum(self.rewards)

    def __len__(self) -> int:
        return len(self.rewards)


def demonstrations(
    world: World,
    model: CountedModel,
    *,
    gamma: float,
    episodes: int = 10,
    noise: float = 0.0,
    samples: int | None = None,
    seed: int = 0,
) -> list[Demonstration]:
    """Walk the best known way from the world's own start.

    Only episodes that return at least half of what the plan returns are kept; the steps of the others are counted, too.

    Args:
        world: where to walk; the one that was explored, or another like it.
        model: what was counted.
        gamma: the discount of the plan.
        episodes: how many to give.
        noise: how often a random action is taken in place of the plan's.
        samples: the most steps to take; then there may be fewer episodes.
        seed: of the random actions, and of ties of the plan.

    Raises:
        DemonstrationError: if no way to a reward is known, or none of the episodes got there.
    """
    check_world(world)
    gamma = check_gamma(gamma)
    check_count(episodes, "episodes", least=1)
    if not 0.0 <= noise < 1.0:
        raise ValueError(f"noise is {noise!r}, expected a share of at least 0 and less than 1")
    walker = _Walker(world, model, gamma, noise, np.random.default_rng([seed, world.seed, 16]))
    first = world.samples
    kept: list[Demonstration] = []
    for tried in range(TRIES * episodes):
        left = MOST_STEPS if samples is None else samples - (world.samples - first)
        if left <= 0 or len(kept) == episodes or (tried == HOPELESS and not kept):
            break
        episode = walker.walk(left)
        if walker.succeeded(episode):
            kept.append(episode)
    if not kept:
        raise DemonstrationError(
            f"none of the episodes along the best known way got to the reward, in {world.samples - first:,} steps; the "
            "world is not as it was counted: explore it further, or give less noise or more samples"
        )
    return kept


class _Walker:
    """Walks the plan."""

    def __init__(
        self, world: World, model: CountedModel, gamma: float, noise: float, generator: np.random.Generator
    ) -> None:
        self._world, self._noise, self._random = world, noise, generator
        met = np.flatnonzero(model.met() | (model.starts > 0))
        self._ways = ways = BestWays(model, met, gamma)
        if not ways.reward_known:
            raise DemonstrationError(
                "no reward was seen while exploring, so that there is no way to it; explore further"
            )
        self._policy: Floats = ways.policy
        # Of equally good actions always the same: what is imitated has to be told from observations that look alike.
        self._order = generator.permutation(ways.policy.shape[1])
        self._place = {int(state): place for place, state in enumerate(met)}
        starts = model.starts[met] / max(int(model.starts.sum()), 1)
        known = (starts > 0) & np.isfinite(ways.distance)
        if not known.any():
            raise DemonstrationError("no way from the start to a reward is known; explore further")
        self._cut = int(min(CUT_FACTOR * ways.distance[known].max() + CUT_SPARE, MOST_STEPS))
        none = np.zeros(0, dtype=np.int64)
        self._expected = ways.expected(none, none, starts, self._cut)[1]

    def succeeded(self, episode: Demonstration) -> bool:
        """Whether an episode returned half of what the plan returns, above what steps pay as a rule."""
        low = self._ways.usual * self._cut
        return episode.returned - low >= 0.5 * max(self._expected - low, NO_REWARD)

    def walk(self, most: int) -> Demonstration:
        """One episode of at most so many steps."""
        world, random = self._world, self._random
        state = world.restart()
        found = Demonstration([state], [self._seen(state)], [], [], [])
        for _ in range(min(self._cut, most)):
            advised = self._advice(state)
            action = advised
            if advised == UNADVISED or random.random() < self._noise:
                action = int(random.integers(world.num_actions))
            step = world.step(action)
            state = step.state
            found.states.append(state)
            found.observations.append(self._seen(state))
            found.actions.append(world.action_of(action))
            found.advised.append(advised)
            found.rewards.append(step.reward)
            if step.terminated or step.truncated:
                found.terminated = step.terminated
                break
        return found

    def _advice(self, state: int) -> int:
        place = self._place.get(state)
        if place is None or not self._policy[place].any():
            return UNADVISED
        return int(self._order[np.flatnonzero(self._policy[place][self._order])[0]])

    def _seen(self, state: int) -> Any:
        seen = self._world.observation()
        return state if seen is None else seen
