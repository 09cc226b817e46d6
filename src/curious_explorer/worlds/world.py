"""The agent's side of the line: what can be asked of a world by somebody who may only restart, step and look.

Nothing here knows transition probabilities. Whoever learns or explores is given a `World` and nothing else, so a method
that works here works wherever an environment can be restarted and stepped.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.worlds.roll_in import RollIn


class Step(NamedTuple):
    """What one step shows: the next state, the reward, and whether the episode has ended there."""

    state: int
    reward: float
    terminated: bool


class TransitionCounts(NamedTuple):
    """Which transitions were seen, how often, and what they paid; five columns of equal length."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    next_state: NDArray[np.int64]
    times: NDArray[np.int64]
    reward: Floats


class EpisodeStatistics(NamedTuple):
    """What a batch of episodes leaves behind: sums over steps, not trajectories.

    Divide `advantage_sum` by `weight` for the mean advantage of a pair; `weight` counts steps unless weights decay.
    """

    advantage_sum: Floats  # (S, A)
    weight: Floats  # (S, A)
    target_sum: Floats  # (S,): what the critic should predict, summed over the steps taken in a state
    occupancy: Floats  # (S,): discounted visits, one in all for each episode; the end of an episode keeps what is left
    returns: Floats  # (E,): the discounted return of each episode, not normalised
    lengths: NDArray[np.int64]  # (E,)
    samples: int  # every step taken, roll-ins included
    seen: TransitionCounts | None = None  # of the episodes, not of their roll-ins; only where asked for


class Followed(NamedTuple):
    """What an agent saw while it acted by one policy; sums, in no order."""

    seen: TransitionCounts  # not of roll-ins
    ends: NDArray[np.int64]  # (S,): how often an episode ended in this (terminal) state
    end_rewards: Floats  # (S,): what such a state goes on paying at every step, zero where none was met
    episodes: int  # how many began and ended during the call
    returned: float  # the sum of their discounted returns, not normalised
    samples: int  # every step taken, roll-ins included
    done: bool  # whether a quota or `max_episodes` was met, and not just the samples used up


class QRule(NamedTuple):
    """How an agent that carries a table of action values along chooses and learns at every step.

    Try n of a pair (s, a) that paid r and led to s' moves its value Q, in normalised units, by

        Q(s,a) += rate_n ((1 - gamma) r + gamma max_b U(s',b) + bonus sqrt((log_term + ln((n+1)(n+2))) / n) - Q(s,a)),
        rate_n = max(least_rate, (rate_horizon + 1) / (rate_horizon + n)),

    with U = Q, or, where it is ``falling``, the least that Q has ever been. The agent acts greedily by U, ties broken
    at random, but with probability ``epsilon`` it takes any action.
    """

    epsilon: float = 0.0
    rate_horizon: float = 0.0
    least_rate: float = 0.0
    bonus: float = 0.0
    log_term: float = 0.0
    falling: bool = False


class QTable(NamedTuple):
    """An agent's table of action values, changed in place by `World.learn_q`; three arrays of shape (S, A)."""

    values: Floats  # Q
    bounds: Floats  # U, by which it acts
    tries: NDArray[np.int64]


class QProgress(NamedTuple):
    """How a stretch of Q-learning went."""

    episodes: int  # how many began and ended during the call
    returned: float  # the sum of their discounted returns, not normalised
    samples: int  # every step taken, roll-ins included


@runtime_checkable
class World(Protocol):
    """A finite world that can be restarted and stepped.

    `samples` counts every step ever taken in it: roll-ins, episodes, single steps.
    """

    @property
    def num_states(self) -> int:
        """How many states there are."""

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state."""

    @property
    def samples(self) -> int:
        """How many steps have been taken so far."""

    def identity(self) -> dict[str, Any]:
        """What tells this world from others, as plain data: its kind, sizes, seed, and a digest of what it is."""

    def position(self) -> dict[str, Any]:
        """Where this world stands, as plain data: enough for `restore` to go on exactly from here."""

    def restore(self, position: dict[str, Any]) -> None:
        """Go back, or on, to a `position`."""

    def restart(self) -> int:
        """Begin an episode from the start distribution; returns its state."""

    def step(self, action: int) -> Step:
        """Take one action in the current episode."""

    def walk(self, roll_in: RollIn, count: int) -> NDArray[np.int32]:
        """The states in which ``count`` independent walks end."""

    def episodes(
        self,
        policy: Floats,
        *,
        episodes: int,
        horizon: int,
        gamma: float,
        reset: RollIn | None = None,
        rewards: Floats | None = None,
        critic: Floats | None = None,
        trace: float = 1.0,
        weight_decay: float = 1.0,
        credited: int | None = None,
        max_samples: int | None = None,
        combine: str = "replace",
        record: bool = False,
    ) -> EpisodeStatistics:
        """Run a batch of episodes under a policy and return their statistics.

        Args:
            policy: action probabilities, shape (S, A).
            episodes: how many to run.
            horizon: after how many steps an episode is cut off.
            gamma: the discount of returns and advantages.
            reset: where episodes begin; the start distribution if None. RandomStream that land in a terminal state are
                repeated; their steps are counted.
            rewards: shape (S, A), in place of the world's own; a terminal state pays its row for ever.
            critic: predicted values (not normalised), shape (S,); zero if None.
            trace: lambda of generalised advantage estimation.
            weight_decay: step t of an episode enters the sums with this factor to the power t.
            credited: how many steps of an episode enter the sums; all if None.
            max_samples: the number of steps, roll-ins included, that may not be exceeded.
            combine: "replace" pays ``rewards``, "max" the larger of ``rewards`` and the world's own.
            record: whether to return which transitions were seen.
        """

    def follow(
        self,
        policy: Floats,
        *,
        gamma: float,
        horizon: int,
        max_samples: int,
        quota: NDArray[np.int64] | None = None,
        max_episodes: int | None = None,
        reset: RollIn | None = None,
        rewards: Floats | None = None,
        combine: str = "replace",
        fresh: bool = False,
    ) -> Followed:
        """Act by a policy from where the agent stands, until it is worth thinking again.

        Goes on with the episode in progress; begins another when it has ended or has lasted ``horizon`` steps.

        Args:
            policy: action probabilities, shape (S, A).
            gamma: the discount of the returns that are reported.
            horizon: after how many steps an episode is given up for the next one.
            max_samples: how many steps to take at most, roll-ins included.
            quota: shape (S, A): come back as soon as a pair has been tried this often during the call.
            max_episodes: come back when this many episodes have ended.
            reset: where new episodes begin; the start distribution if None.
            rewards: what the reported returns pay; see `episodes`.
            combine: see `episodes`.
            fresh: whether to drop the episode in progress and begin another.
        """

    def learn_q(
        self,
        table: QTable,
        rule: QRule,
        *,
        gamma: float,
        horizon: int,
        max_samples: int,
        reset: RollIn | None = None,
        rewards: Floats | None = None,
        combine: str = "replace",
        fresh: bool = False,
    ) -> QProgress:
        """Act by a table of action values and update it at every step; the other arguments are those of `follow`.

        The rule sees what `step` would have shown: state, action, reward, next state, and whether the episode ended.
        """


def check_world(world: object) -> None:
    """Refuse what an agent cannot act in, before anything is sampled."""
    if not isinstance(world, World):
        raise ValueError(f"world is {type(world).__name__}, expected a World, such as TabularWorld(mdp, seed=0)")
