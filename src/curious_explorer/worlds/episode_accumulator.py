"""What a step earns, and what a batch of rollouts leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

import numpy as np

from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.compile import compiled, int64
from curious_explorer.errors import EnvironmentFailureError
from curious_explorer.worlds.episode_kernels import CreditTables, credit
from curious_explorer.worlds.episodes import EpisodeBatch, EpisodeStatistics, Reward, TransitionCounts, check_reward
from curious_explorer.worlds.policies import ObservationPolicy, Policy

NO_LIMIT = 1 << 62
STEPS_AT_ONCE = 1 << 16
"""Episodes are added up in portions, so that a long measurement needs no more memory than a short one."""


Trajectory: TypeAlias = list[tuple[int, int, float]]
"""An episode's steps: the state, the number of the action (-1 where it has none), and the world's own reward."""


class RewardRule:
    """Which reward steps earn: the world's own, a table's, or the larger of the two; the world's own for None."""

    def __init__(self, reward: Reward | None, shape: tuple[int, int]) -> None:
        given = check_reward(reward, shape)
        self.table = None if given is None else given.table
        self._larger = given is not None and given.combine == "max"
        self.for_ever = np.zeros(shape) if self.table is None else np.array(self.table)
        """Shape (S, A): what an episode goes on earning that terminated in a state, as far as it is known."""
        if self._larger:
            np.maximum(self.for_ever, 0.0, out=self.for_ever)

    def of_step(self, state: int, action: int, own: float) -> float:
        """What one step earns; an action without a number earns the mean of its state."""
        if self.table is None:
            return own
        given = float(self.table[state].mean() if action < 0 else self.table[state, action])
        return max(own, given) if self._larger else given

    def of_steps(self, states: Integers, actions: Integers, own: Sequence[float]) -> Floats:
        """What the steps of an episode earn."""
        earned = np.array(own, dtype=np.float64)
        if self.table is None:
            return earned
        given = self.table[states].mean(axis=1) if (actions < 0).any() else self.table[states, actions]
        return np.maximum(earned, given) if self._larger else given

    def terminated(self, state: int, end_reward: float) -> float:
        """What an episode earns at every step after it terminated in a state that goes on paying ``end_reward``."""
        if end_reward != 0.0:
            if self.table is None:
                self.for_ever[state] = end_reward
            elif self._larger:
                self.for_ever[state] = np.maximum(self.table[state], end_reward)
        return float(self.for_ever[state].mean())


class EpisodeAccumulator:
    """Statistics of episodes as they end, by the same sums as those of `episode_kernels.episode_statistics`.

    Args:
        policy: whose episodes they are; one that sees observations leaves no advantages, since its actions have no
            numbers to be credited under.
        source: what the error about a reward that is no number names.
    """

    def __init__(self, policy: Policy, batch: EpisodeBatch, shape: tuple[int, int], source: str) -> None:
        numbered = not isinstance(policy, ObservationPolicy)
        self._reward, self._source = RewardRule(batch.reward, shape), source
        self._credit = CreditTables(
            policy=np.array(policy) if numbered else np.full(shape, 1.0 / shape[1]),
            rewards=self._reward.for_ever,
            critic=np.array(batch.values(shape[0])),
            gamma=float(batch.gamma),
            trace=float(batch.trace),
            weight_decay=float(batch.weight_decay),
            credited=(NO_LIMIT if batch.credited is None else batch.credited) if numbered else 0,
            advantage_sum=np.zeros(shape),
            weight=np.zeros(shape),
            target_sum=np.zeros(shape[0]),
            occupancy=np.zeros(shape[0]),
        )
        self._returns: list[Floats] = []
        self._lengths: list[int] = []
        self._seen = TransitionCounter() if batch.record else None
        self._forget()

    def _forget(self) -> None:
        """Begin the next portion of episodes."""
        self._steps: Trajectory = []
        self._stops: list[int] = []
        self._ends: list[int] = []
        self._terminated: list[bool] = []

    def add(self, trajectory: Trajectory, end: int, terminated: bool, end_reward: float = 0.0) -> None:
        """Take in an episode that led to the state ``end``; see `Step` for what it goes on paying there."""
        self._steps += trajectory
        self._stops.append(len(self._steps))
        self._ends.append(end)
        self._terminated.append(terminated)
        if terminated and end_reward != 0.0:
            self._reward.terminated(end, end_reward)
        self._lengths.append(len(trajectory))
        if self._seen is not None:
            following = [*(state for state, _, _ in trajectory[1:]), end]
            for (state, action, reward), after in zip(trajectory, following, strict=True):
                self._seen.add(state, action, after, reward)
            if terminated and trajectory:
                self._seen.end(*trajectory[-1][:2], end)
        if len(self._steps) >= STEPS_AT_ONCE:
            self._add_up()

    def _add_up(self) -> None:
        """Add what was taken in to the sums, and let go of the steps."""
        if not self._stops:
            return
        columns = zip(*self._steps, strict=True)
        states, actions = np.array(next(columns), dtype=np.int64), np.array(next(columns), dtype=np.int64)
        earned = self._reward.of_steps(states, actions, next(columns))
        if not np.isfinite(earned).all():
            refuse_reward(float(earned[~np.isfinite(earned)][0]), self._source)
        returns = np.empty(len(self._stops))
        credit_episodes(
            states,
            actions,
            earned,
            np.array(self._stops, dtype=np.int64),
            np.array(self._ends, dtype=np.int64),
            np.array(self._terminated, dtype=np.bool_),
            self._credit,
            returns,
        )
        self._returns.append(returns)
        self._forget()

    def result(self, samples: int) -> EpisodeStatistics:
        """The statistics of everything that was added, for which so many steps were taken."""
        self._add_up()
        returns = np.concatenate([np.zeros(0), *self._returns])
        recorded = () if self._seen is None else (self._seen.counts(), self._seen.ended())
        lengths = np.array(self._lengths, dtype=np.int64)
        return EpisodeStatistics(*self._credit[-4:], returns, lengths, samples, *recorded)


@compiled
def credit_episodes(
    states: Integers,
    actions: Integers,
    earned: Floats,
    stops: Integers,
    ends: Integers,
    terminated: Mask,
    to: CreditTables,
    returns: Floats,
) -> None:
    """Add episodes to the sums; episode e has the steps up to ``stops[e]`` and led to ``ends[e]``."""
    first = int64(0)
    for episode in range(len(stops)):
        stop, end = stops[episode], ends[episode]
        steps = slice(first, stop)
        returns[episode] = credit(states[steps], actions[steps], earned[steps], end, terminated[episode], to)
        discount = 1.0
        for step in range(first, stop):
            to.occupancy[states[step]] += (1.0 - to.gamma) * discount
            discount *= to.gamma
        to.occupancy[end] += discount  # it stays there, or we say so for want of knowing
        first = stop


def refuse_reward(reward: float, source: str) -> NoReturn:
    """Say that a reward is no number."""
    raise EnvironmentFailureError(f"{source} paid a reward of {reward}, expected a finite number")


class TransitionCounter:
    """Transitions as they are seen."""

    def __init__(self) -> None:
        self._times: Counter[tuple[int, int, int]] = Counter()
        self._paid: Counter[tuple[int, int, int]] = Counter()
        self._ended: Counter[tuple[int, int, int]] = Counter()

    def add(self, state: int, action: int, after: int, reward: float) -> None:
        """Take note of one."""
        if action >= 0:
            self._times[state, action, after] += 1
            self._paid[state, action, after] += reward  # type: ignore[assignment]

    def end(self, state: int, action: int, after: int) -> None:
        """The episode ended with the transition that was added last."""
        if action >= 0:
            self._ended[state, action, after] += 1

    def counts(self) -> TransitionCounts:
        """All of them, with the mean reward of each."""
        keys = sorted(self._times)
        columns = np.array(keys, dtype=np.int64).reshape(-1, 3).T
        times = np.array([self._times[key] for key in keys], dtype=np.int64)
        paid = np.array([self._paid[key] for key in keys], dtype=np.float64)
        return TransitionCounts(columns[0], columns[1], columns[2], times, paid / np.maximum(times, 1))

    def ended(self) -> Integers:
        """How many of the times of each an episode ended."""
        return np.array([self._ended[key] for key in sorted(self._times)], dtype=np.int64)
