"""The callback of an optimizer's learning: fresh episodes, the learning curve, and an end before a rollout too dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from curious_explorer.sb3.training_envs import BudgetSpent, Episode, Meter, TaskEnv

LEAST_EPISODES = 16
"""Where fewer episodes than this ended in the last rollout, those before it say too where the policy goes."""


class RolloutLog(BaseCallback):
    """Notes of every rollout.

    Args:
        meter: what pays for steps.
        episodes: the environments that note episodes down.
        fresh: whether every rollout begins with new episodes, which then end with it.
        watch: called before every rollout: at first, and after each update.
    """

    def __init__(
        self, meter: Meter, episodes: Sequence[TaskEnv], *, fresh: bool, watch: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._watch = watch
        self._meter, self._episodes, self._fresh = meter, episodes, fresh
        self._dearest = self._before = self._count = 0
        self.curve: list[tuple[int, float, int]] = []
        """After each rollout: samples, the mean discounted return of recent episodes, episodes so far."""
        self.recent: list[Episode] = []
        """The episodes of the last rollout, and of those before it while they are few."""

    def _on_rollout_start(self) -> None:
        if self._watch is not None:
            self._watch()
        if not self.curve:
            return
        if self._dearest > self._meter.left:  # it could not be finished, and would be paid for nothing
            raise BudgetSpent
        self._before = self._meter.taken
        if self._fresh:
            self.model._last_obs = self.training_env.reset()  # type: ignore[assignment]
            self.model._last_episode_starts = np.ones(self.training_env.num_envs, dtype=bool)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._dearest = max(self._dearest, self._meter.taken - self._before)
        ended = [episode for env in self._episodes for episode in env.finished]
        for env in self._episodes:
            env.finished.clear()
        self._count += len(ended)
        under_way = [episode for env in self._episodes if len((episode := env.so_far()).states) > 1]
        if self._fresh or not (self.recent or ended):
            ended += under_way
        self.recent = [*self.recent, *ended][-max(LEAST_EPISODES, len(ended)) :]
        self.curve.append((self._meter.taken, float(np.mean([each.returned for each in self.recent])), self._count))
