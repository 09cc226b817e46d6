"""Which states a method has seen, noted from outside, without a step more or another random number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeStatistics, QProgress, QTable, Step, TransitionCounts, World


class NotingWorld:
    """Passes everything on to another world and notes the states that the answers show.

    What happens on the way of a walk or a roll-in stays unseen here; only where it ends is shown. Q-learning shows the
    states it acted in, and not where its episodes ended, so count states that are not terminal.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.seen: NDArray[np.bool_] = np.zeros(world.num_states, dtype=np.bool_)
        """Shape (S,)."""

    def restart(self) -> int:
        """Begin an episode."""
        state = self._world.restart()
        self.seen[state] = True
        return state

    def step(self, action: int) -> Step:
        """Take one action."""
        step = self._world.step(action)
        self.seen[step.state] = True
        return step

    def walk(self, roll_in: RollIn, count: int) -> NDArray[np.int32]:
        """The states in which walks end."""
        ends = self._world.walk(roll_in, count)
        self.seen[ends] = True
        return ends

    def episodes(self, policy: NDArray[np.float64], **arguments: Any) -> EpisodeStatistics:
        """Run a batch of episodes; which transitions they see costs nothing but time."""
        batch = self._world.episodes(policy, **(arguments | {"record": True}))
        self._note(batch)
        return batch if arguments.get("record") else batch._replace(seen=None)

    def learn_q(self, table: QTable, *arguments: Any, **options: Any) -> QProgress:
        """Q-learning; the states in which something was tried were seen."""
        progress: QProgress = self._world.learn_q(table, *arguments, **options)
        self.seen[table.tries.any(axis=1)] = True
        return progress

    def __getattr__(self, name: str) -> Any:
        """Everything else that a world can do; answers that show transitions are noted."""
        attribute = getattr(self._world, name)
        return self._noting(attribute) if callable(attribute) else attribute

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            answer = function(*arguments, **options)
            self._note(answer)
            return answer

        return noted

    def _note(self, answer: Any) -> None:
        seen = getattr(answer, "seen", None)
        if isinstance(seen, TransitionCounts):
            self.seen[seen.state] = True
            self.seen[seen.next_state] = True
