"""Four ways to measure D_n, where the current policy goes when it starts from mu_{n-1}.

- `FreshVisits(count)`: Algorithm 1, ``count`` walks after learning. The default.
- `OccupancyVisits(episodes)`: every state of every walk counts, with its discount, and not only the last one. A walk
  tells as much as many single stops, which matters where a step is dear, as in a Gymnasium environment.
- `LearningVisits()`: the visits made while learning, at no further cost, and biased. The last batch of the optimizer
  ran the policy just before its last step; round 0, which learns nothing before it visits, walks.
- `ExactVisits(mdp)`: no sampling at all, for theory and tests; it is given the model openly (see `exact_visits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from curious_explorer.arrays import Floats
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import KnownPolicy
from curious_explorer.worlds.visit import visit
from curious_explorer.worlds.world import EpisodeBatch, World

DEFAULT_VISITS = 2_000
"""Enough to tell a visit probability of 1/(2|S|) from zero for the paper's |S| up to 64: about 16 visits expected."""
FEWEST_VISITS, VISITS_OF_A_STATE_OF_FEW = 500, 32
"""In smaller worlds as many as expect those 16, but not fewer than this."""
VISITS_OF_A_STATE, MOST_VISITS = 3, 20_000
"""In larger worlds so many walks for each state, up to a total."""


def default_visits(num_states: int) -> int:
    """How many walks measure D_n in a world of this size."""
    few = min(max(FEWEST_VISITS, VISITS_OF_A_STATE_OF_FEW * num_states), DEFAULT_VISITS)
    return max(few, min(VISITS_OF_A_STATE * num_states, MOST_VISITS))


class Visits(Protocol):
    """A way to measure D_n."""

    def __call__(
        self, world: World, policy: KnownPolicy, reset: ResetModel | None, occupancy: Floats | None, gamma: float
    ) -> Floats:
        """The share of visits of each state, shape (S,), summing to one.

        ``reset`` is mu_{n-1} (None for rho) and ``occupancy`` is where the optimizer's last episodes went, from the
        same resets, when it learned this policy (None for the uniform policy of round 0).
        """


@runtime_checkable
class LimitedVisits(Visits, Protocol):
    """A way to measure D_n that can stop at a number of steps, as `explore(samples=...)` needs it."""

    def limited(self, max_samples: int) -> Visits:
        """The same, with at most so many steps."""


@dataclass(frozen=True)
class FreshVisits:
    """Algorithm 1: walk ``count`` times and look where the walks stop."""

    count: int = DEFAULT_VISITS

    def __post_init__(self) -> None:
        check_count(self.count, "visits", least=1)

    def __call__(
        self, world: World, policy: KnownPolicy, reset: ResetModel | None, occupancy: Floats | None, gamma: float
    ) -> Floats:
        """The share of visits of each state."""
        return visit(world, policy, gamma=gamma, count=self.count, reset=reset) / self.count


@dataclass(frozen=True)
class OccupancyVisits:
    """Walk ``episodes`` times, as far as the discount reaches, and count each state on the way by its discount.

    The mean of what `FreshVisits` measures is the same where no start is terminal. Terminal starts are drawn again
    here, so this measures where the policy goes from those starts that are not, and that is another distribution where
    mu_{n-1} often ends an episode: on the lock of depth 20, where 29% of it is terminal, the total variation distance
    to D_n is 0.18 with 100 walks as with 10,000 (2,000 fresh ones: 0.05, and that is chance). All other states look up
    to 1.4 times as well visited as they are (``python -m benchmarks.visits_error``).
    """

    episodes: int = 100
    max_samples: int | None = None
    """The most steps that a measurement may take, roll-ins included; the walk that exceeds them is cut short."""

    def limited(self, max_samples: int) -> OccupancyVisits:
        """The same walks, with at most so many steps."""
        least = max_samples if self.max_samples is None else min(max_samples, self.max_samples)
        return replace(self, max_samples=least)

    def __post_init__(self) -> None:
        check_count(self.episodes, "episodes", least=1)
        if self.max_samples is not None:
            check_count(self.max_samples, "max_samples", least=1)

    def __call__(
        self, world: World, policy: KnownPolicy, reset: ResetModel | None, occupancy: Floats | None, gamma: float
    ) -> Floats:
        """The share of visits of each state."""
        batch = world.episodes(
            policy,
            EpisodeBatch(
                episodes=self.episodes,
                horizon=default_horizon(gamma),
                gamma=gamma,
                reset=None if reset is None else reset.roll_in,
                max_samples=self.max_samples,
            ),
        )
        total = batch.occupancy.sum()
        if total == 0.0:
            raise ValueError(
                f"{batch.samples:,} samples did not suffice for a single walk; give more samples, fewer rounds, or a "
                "smaller gamma"
            )
        visited: Floats = batch.occupancy / total
        return visited


@dataclass(frozen=True)
class LearningVisits:
    """The paper's future work: count visits while learning, instead of afresh; free, and biased.

    The optimizer's last episodes are not D_n, for three reasons. They draw a terminal start again, as `OccupancyVisits`
    does; they begin where opt learned from, which is mu_{n-1} only with ``learn_from="last"``; and they ran the policy
    before its last step. On the lock of depth 20, with TRPO, fifteen rounds and six seeds, the total variation distance
    to D_n is 0.20 by mean over rounds, 0.45 at most (2,000 fresh walks: 0.05, 0.07). Terminal starts alone make 0.18 of
    bias and the resets of ``learn_from="average"`` alone 0.05, 0.14 at most (``python -m benchmarks.visits_error``).
    So nothing uses it unless it is asked for.
    """

    first: Visits = FreshVisits()
    """How round 0 is measured, before anything was learned."""
    later: Visits | None = None
    """How a policy is measured whose optimizer ran no episodes, as a model-based one may; by default as round 0 is."""

    def limited(self, max_samples: int) -> LearningVisits:
        """The same, with walks of at most so many steps."""
        later = None if self.later is None else limited(self.later, max_samples)
        return LearningVisits(limited(self.first, max_samples), later)

    def __call__(
        self, world: World, policy: KnownPolicy, reset: ResetModel | None, occupancy: Floats | None, gamma: float
    ) -> Floats:
        """The share of visits of each state."""
        if occupancy is not None:
            return occupancy
        walks = self.first if reset is None or self.later is None else self.later
        return walks(world, policy, reset, None, gamma)


def limited(visits: Visits, max_samples: int) -> Visits:
    """The same way to measure, with at most so many steps; refuses one that cannot stop at a limit."""
    if not isinstance(visits, LimitedVisits):
        raise ValueError(
            f"visits is {visits!r}, which cannot stop at a number of steps; with samples, give a number of walks or "
            "OccupancyVisits(...)"
        )
    return visits.limited(max_samples)
