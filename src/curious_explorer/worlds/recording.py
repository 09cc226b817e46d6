"""A world that takes notes: every transition of every episode, so that what was seen can be learned from again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import (
    EpisodeStatistics,
    Followed,
    QProgress,
    QRule,
    QTable,
    Step,
    TransitionCounts,
    World,
)


class RecordingWorld:
    """Passes everything on to another world and keeps the transitions of its episodes (not of their roll-ins)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: list[TransitionCounts] = []

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return self._world.num_states

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state."""
        return self._world.num_actions

    @property
    def samples(self) -> int:
        """How many steps have been taken so far."""
        return self._world.samples

    def identity(self) -> dict[str, Any]:
        """What tells the world from others."""
        return self._world.identity()

    def position(self) -> dict[str, Any]:
        """Where the world stands."""
        return self._world.position()

    def restore(self, position: dict[str, Any]) -> None:
        """Go back, or on, to a `position`."""
        self._world.restore(position)

    def restart(self) -> int:
        """Begin an episode."""
        return self._world.restart()

    def step(self, action: int) -> Step:
        """Take one action."""
        return self._world.step(action)

    def walk(self, roll_in: RollIn, count: int) -> NDArray[np.int32]:
        """The states in which walks end."""
        return self._world.walk(roll_in, count)

    def episodes(self, policy: Floats, **arguments: Any) -> EpisodeStatistics:
        """Run a batch of episodes, and take notes."""
        batch = self._world.episodes(policy, **(arguments | {"record": True}))
        assert batch.seen is not None
        self._seen.append(batch.seen)
        return batch

    def follow(self, policy: Floats, **arguments: Any) -> Followed:
        """Act by a policy, and take notes."""
        followed = self._world.follow(policy, **arguments)
        self._seen.append(followed.seen)
        return followed

    def learn_q(self, table: QTable, rule: QRule, **arguments: Any) -> QProgress:
        """Learn a table of action values; what it saw on the way is not noted, for nobody reports it."""
        return self._world.learn_q(table, rule, **arguments)

    def take(self) -> TransitionCounts:
        """Everything noted since the last call, each transition once."""
        seen, self._seen = self._seen, []
        return merge_transitions(seen, self.num_states, self.num_actions)


def merge_transitions(parts: list[TransitionCounts], num_states: int, num_actions: int) -> TransitionCounts:
    """One table of transitions from several: counts added up, rewards averaged."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return TransitionCounts(none, none, none, none, np.zeros(0))
    state, action, next_state, times, reward = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    codes = (state * num_actions + action) * num_states + next_state
    distinct, place = np.unique(codes, return_inverse=True)
    count = np.bincount(place, weights=times, minlength=len(distinct)).astype(np.int64)
    earned = np.bincount(place, weights=times * reward, minlength=len(distinct))
    pair, next_state = np.divmod(distinct, num_states)
    state, action = np.divmod(pair, num_actions)
    return TransitionCounts(state, action, next_state, count, earned / count)
