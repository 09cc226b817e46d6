"""Rollouts: some steps in every lane under one policy, as arrays that a batch of gradient steps is taken on.

The actor is evaluated by NumPy, all lanes at once; critic and log-probabilities are left to the learner, which computes
them for the whole rollout in one go. Stepping Stable-Baselines3's own loop would ask PyTorch at every step, at several
times the cost of a small environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Singles
from curious_explorer.sb3.network_inputs import Inputs, Normalisation
from curious_explorer.sb3.network_policy import NetworkPolicy
from curious_explorer.sb3.sb3_episodes import Ended, Lane

GROWTH = 8
"""The normalisation is measured again whenever there is one observation more for each so many."""
LEAST_EPISODES = 16
"""Where fewer episodes than this ended in the last rollout, those before it say too where the policy goes."""


class Rollout(NamedTuple):
    """T steps in each of N lanes."""

    features: Singles  # (T, N, width): what the network saw
    draws: NDArray[Any]  # (T, N, D): what the head drew
    rewards: Floats  # (T, N)
    starts: NDArray[np.bool_]  # (T, N): whether an episode begins with this step
    cut_off: list[tuple[int, int]]  # (t, n) of steps at which an episode was cut off, to be valued by the critic
    cut_off_features: Singles  # (len(cut_off), width): what was seen after them
    last_features: Singles  # (N, width)
    last_done: NDArray[np.bool_]  # (N,): whether the last step ended its episode


class Scale:
    """The running mean and variance of what was seen, as `VecNormalize` keeps them (Chan et al. 1979)."""

    def __init__(self, width: int, enabled: bool) -> None:
        self._enabled = enabled
        self._count, self._mean, self._squares = 0, np.zeros(width), np.zeros(width)
        self._waiting: list[Floats] = []
        self._waiting_count = 0

    def see(self, rows: Floats) -> bool:
        """Take note of rows; returns whether it is time to normalise by another mean and variance."""
        if not self._enabled:
            return False
        self._waiting.append(rows)
        self._waiting_count += len(rows)
        if self._waiting_count * GROWTH <= self._count:
            return False
        self._merge(np.concatenate(self._waiting))
        self._waiting, self._waiting_count = [], 0
        return True

    def _merge(self, rows: Floats) -> None:
        count, mean = len(rows), rows.mean(axis=0)
        total, shift = self._count + count, mean - self._mean
        self._squares += ((rows - mean) ** 2).sum(axis=0) + shift**2 * (self._count * count / total)
        self._mean = self._mean + shift * (count / total)
        self._count = total

    @property
    def normalisation(self) -> Normalisation | None:
        """What is known now; None before anything was seen."""
        if self._count == 0:
            return None
        return Normalisation(self._mean, self._squares / self._count)


class LaneRollouts:
    """The lanes of a learner, and where their episodes went."""

    def __init__(self, lanes: Sequence[Lane], inputs: Inputs, scale: Scale, generator: np.random.Generator) -> None:
        self._lanes, self._inputs, self._scale, self._generator = lanes, inputs, scale, generator
        self._standing = False
        self.episodes = 0
        self.recent: list[Ended] = []
        """The episodes of the last rollout, and of those before it while they are few."""

    def collect(self, policy: NetworkPolicy, steps: int, *, fresh: bool) -> Rollout:
        """Take so many steps in every lane; with ``fresh`` each lane begins an episode first."""
        lanes, inputs, head = self._lanes, self._inputs, policy.head
        restarted = fresh or not self._standing
        if restarted:
            for lane in lanes:
                lane.begin()
            self._standing = True
        features, draws, rewards, starts = [], [], np.zeros((steps, len(lanes))), np.zeros((steps, len(lanes)), bool)
        starts[0] = restarted
        done = np.zeros(len(lanes), bool)
        cut_off, cut_off_rows, ended = [], [], []
        for t in range(steps):
            rows = inputs.rows([lane.observation for lane in lanes])
            if self._scale.see(rows):
                policy = NetworkPolicy(inputs, policy.layers, head, self._scale.normalisation)
            seen = policy.normalised(rows)
            drawn = head.draw(policy.outputs(seen), self._generator)
            features.append(seen)
            draws.append(drawn)
            for n, (lane, action) in enumerate(zip(lanes, head.to_actions(drawn), strict=True)):
                outcome = lane.step(action)
                rewards[t, n] = outcome.reward
                done[n] = outcome.terminated or outcome.cut_off
                if done[n]:
                    if not outcome.terminated:
                        cut_off.append((t, n))
                        cut_off_rows.append(inputs.rows([lane.observation])[0])
                    ended.append(lane.so_far())
                    if t + 1 < steps:
                        starts[t + 1, n] = True
                    if t + 1 < steps or not fresh:
                        lane.begin()
        self.episodes += len(ended)
        self._remember([*ended, *(lane.so_far() for n, lane in enumerate(lanes) if fresh and not done[n])])
        last = policy.normalised(inputs.rows([lane.observation for lane in lanes]))
        after = policy.normalised(np.array(cut_off_rows).reshape(-1, inputs.width))
        return Rollout(np.array(features), np.array(draws), rewards, starts, cut_off, after, last, done)

    def _remember(self, ended: list[Ended]) -> None:
        under_way = [] if self.recent or ended else [lane.so_far() for lane in self._lanes]
        self.recent = [*self.recent, *ended, *under_way][-max(LEAST_EPISODES, len(ended)) :]

    def mean_return(self) -> float:
        """The mean discounted return of the recent episodes."""
        return float(np.mean([episode.returned for episode in self.recent]))

    def occupancy(self, num_states: int, gamma: float) -> Floats:
        """Discounted visits of the recent episodes, shape (S,), summing to one; an end keeps what is left."""
        total: Floats = np.zeros(num_states)
        for states, _ in self.recent:
            weights = (1.0 - gamma) * gamma ** np.arange(len(states))
            weights[-1] = gamma ** (len(states) - 1)
            np.add.at(total, states, weights)
        share: Floats = total / total.sum()
        return share
