"""What a step earns, and what a batch of rollouts leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.compile import compiled, int64
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.gym.actors import Trajectory
from curious_explorer.gym.rollouts import Rollout
from curious_explorer.validation import check_count
from curious_explorer.worlds.episode_kernels import credit
from curious_explorer.worlds.policies import ObservationPolicy, Policy
from curious_explorer.worlds.world import EpisodeStatistics, TransitionCounts

NO_LIMIT = 1 << 62
STEPS_AT_ONCE = 1 << 16
"""Episodes are added up in portions, so that a long measurement needs no more memory than a short one."""


class RewardRule(NamedTuple):
    """Which reward steps earn: the environment's own, a table's, or the larger of the two."""

    table: Floats | None
    larger: bool
    for_ever: Floats  # (S, A): what a terminated episode goes on earning

    @staticmethod
    def of(rewards: Floats | None, combine: str, shape: tuple[int, int]) -> RewardRule:
        """The payment that a caller of the world asked for, checked."""
        if combine not in ("replace", "max"):
            raise ValueError(f"combine is {combine!r}, expected 'replace' or 'max'")
        if rewards is None:
            return RewardRule(None, False, np.zeros(shape))
        table = np.array(rewards, dtype=np.float64)
        if table.shape != shape or not np.isfinite(table).all():
            raise ValueError(f"rewards has shape {table.shape}, expected {shape}, all of them finite")
        return RewardRule(table, combine == "max", np.maximum(table, 0.0) if combine == "max" else table)

    def of_step(self, cell: int, action: int, own: float) -> float:
        """What one step earns; an action without a number earns the mean of its cell."""
        if self.table is None:
            return own
        given = float(self.table[cell].mean() if action < 0 else self.table[cell, action])
        return max(own, given) if self.larger else given

    def of_steps(self, cells: NDArray[np.int64], actions: NDArray[np.int64], own: Sequence[float]) -> Floats:
        """What the steps of an episode earn."""
        earned = np.array(own, dtype=np.float64)
        if self.table is None:
            return earned
        given = self.table[cells].mean(axis=1) if (actions < 0).any() else self.table[cells, actions]
        return np.maximum(earned, given) if self.larger else given

    def at_the_end(self, cell: int) -> float:
        """What a terminated episode earns at every step from then on."""
        return float(self.for_ever[cell].mean())


class EpisodeAccumulator:
    """Statistics of episodes as they end, by the same sums as those of `stepping.episode_statistics`.

    Args:
        policy: whose episodes they are; one that sees observations leaves no advantages, since its actions have no
            numbers to be credited under.
        pay: what steps earn.
        critic: predicted values, shape (S,), or None.
        gamma: the discount.
        trace: lambda of generalised advantage estimation.
        weight_decay: step t of an episode enters the sums with this factor to the power t.
        credited: how many steps of an episode enter the sums; all if None.
        record: whether to keep which transitions were seen.
        environment: who to blame for a reward that is no number.
    """

    def __init__(
        self,
        policy: Policy,
        pay: RewardRule,
        critic: Floats | None,
        *,
        gamma: float,
        trace: float,
        weight_decay: float,
        credited: int | None,
        record: bool,
        environment: str,
    ) -> None:
        shape = pay.for_ever.shape
        numbered = not isinstance(policy, ObservationPolicy)
        self._credited = (NO_LIMIT if credited is None else check_count(credited, "credited")) if numbered else 0
        self._policy = np.array(policy) if numbered else np.full(shape, 1.0 / shape[1])
        self._critic = np.zeros(shape[0]) if critic is None else np.array(critic, dtype=np.float64)
        if self._critic.shape != shape[:1] or not np.isfinite(self._critic).all():
            raise ValueError(f"critic has shape {self._critic.shape}, expected {shape[:1]}, all of them finite")
        for name, factor in (("trace", trace), ("weight_decay", weight_decay)):
            if not 0.0 <= factor <= 1.0:
                raise ValueError(f"{name} is {factor!r}, expected a number in [0, 1]")
        self._pay, self._environment = pay, environment
        self._factors = (gamma, float(trace), float(weight_decay))
        self._sums = (np.zeros(shape), np.zeros(shape), np.zeros(shape[0]), np.zeros(shape[0]))
        self._returns: list[Floats] = []
        self._lengths: list[int] = []
        self._notes = TransitionCounter() if record else None
        self._forget()

    def _forget(self) -> None:
        """Begin the next portion of episodes."""
        self._steps: Trajectory = []
        self._stops: list[int] = []
        self._ends: list[int] = []
        self._terminated: list[bool] = []

    def add(self, rollout: Rollout) -> None:
        """Take in an episode that has ended."""
        trajectory = rollout.trajectory
        assert trajectory is not None
        self._steps += trajectory
        self._stops.append(len(self._steps))
        self._ends.append(rollout.cell)
        self._terminated.append(rollout.terminated)
        self._lengths.append(len(trajectory))
        if self._notes is not None:
            following = [*(cell for cell, _, _ in trajectory[1:]), rollout.cell]
            for (cell, action, reward), after in zip(trajectory, following, strict=True):
                self._notes.add(cell, action, after, reward)
        if len(self._steps) >= STEPS_AT_ONCE:
            self._add_up()

    def _add_up(self) -> None:
        """Add what was taken in to the sums, and let go of the steps."""
        if not self._stops:
            return
        columns = zip(*self._steps, strict=True)
        cells, actions = np.array(next(columns), dtype=np.int64), np.array(next(columns), dtype=np.int64)
        earned = self._pay.of_steps(cells, actions, next(columns))
        if not np.isfinite(earned).all():
            refuse_reward(float(earned[~np.isfinite(earned)][0]), self._environment)
        returns = np.empty(len(self._stops))
        credit_episodes(
            cells,
            actions,
            earned,
            np.array(self._stops, dtype=np.int64),
            np.array(self._ends, dtype=np.int64),
            np.array(self._terminated, dtype=np.bool_),
            self._policy,
            self._pay.for_ever,
            self._critic,
            *self._factors,
            self._credited,
            *self._sums,
            returns,
        )
        self._returns.append(returns)
        self._forget()

    def result(self, samples: int) -> EpisodeStatistics:
        """The statistics of everything that was added, for which so many steps were taken."""
        self._add_up()
        returns = np.concatenate([np.zeros(0), *self._returns])
        seen = None if self._notes is None else self._notes.counts()
        return EpisodeStatistics(*self._sums, returns, np.array(self._lengths, dtype=np.int64), samples, seen)


@compiled
def credit_episodes(
    cells: NDArray[np.int64],
    actions: NDArray[np.int64],
    earned: Floats,
    stops: NDArray[np.int64],
    ends: NDArray[np.int64],
    terminated: NDArray[np.bool_],
    policy: Floats,
    for_ever: Floats,
    critic: Floats,
    gamma: float,
    trace: float,
    weight_decay: float,
    credited: int,
    advantage_sum: Floats,
    weight: Floats,
    target_sum: Floats,
    occupancy: Floats,
    returns: Floats,
) -> None:
    """Add episodes to the sums; episode e has the steps up to ``stops[e]`` and led to ``ends[e]``."""
    first = int64(0)
    for episode in range(len(stops)):
        stop, end = stops[episode], ends[episode]
        returns[episode] = credit(
            cells[first:stop],
            actions[first:stop],
            earned[first:stop],
            end,
            terminated[episode],
            policy,
            for_ever,
            critic,
            gamma,
            trace,
            weight_decay,
            credited,
            advantage_sum,
            weight,
            target_sum,
        )
        discount = 1.0
        for step in range(first, stop):
            occupancy[cells[step]] += (1.0 - gamma) * discount
            discount *= gamma
        occupancy[end] += discount  # it stays there, or we say so for want of knowing
        first = stop


def refuse_reward(reward: float, environment: str) -> NoReturn:
    """Say that a reward is no number."""
    raise EnvironmentFailureError(
        f"the environment {environment} paid a reward of {reward}, expected a finite number; repair it, or wrap it in "
        "gymnasium.wrappers.TransformReward"
    )


class TransitionCounter:
    """Transitions as they are seen."""

    def __init__(self) -> None:
        self._times: Counter[tuple[int, int, int]] = Counter()
        self._paid: Counter[tuple[int, int, int]] = Counter()

    def add(self, cell: int, action: int, after: int, reward: float) -> None:
        """Take note of one."""
        if action >= 0:
            self._times[cell, action, after] += 1
            self._paid[cell, action, after] += reward  # type: ignore[assignment]

    def counts(self) -> TransitionCounts:
        """All of them, with the mean reward of each."""
        keys = sorted(self._times)
        columns = np.array(keys, dtype=np.int64).reshape(-1, 3).T
        times = np.array([self._times[key] for key in keys], dtype=np.int64)
        paid = np.array([self._paid[key] for key in keys], dtype=np.float64)
        return TransitionCounts(columns[0], columns[1], columns[2], times, paid / np.maximum(times, 1))
