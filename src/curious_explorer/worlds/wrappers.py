"""Worlds that pass everything on to another world and take note of what it shows, at no step more."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from curious_explorer.arrays import Indices, Integers, Mask
from curious_explorer.worlds.compiled_steps import CompiledSteps
from curious_explorer.worlds.episode_accumulator import TransitionCounter
from curious_explorer.worlds.episodes import merge_transitions
from curious_explorer.worlds.policies import Policy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.world import (
    EpisodeBatch,
    EpisodeStatistics,
    Step,
    TransitionCounts,
    World,
)


class WorldWrapper(World):
    """A world that is another one, but for what a subclass changes.

    `count_ends` and `compiled_steps` are not passed on: they go through `walk` and `step`, so that who changes these
    sees every walk and every step. A subclass that passes them on must look at what they bring.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return self.world.num_states

    @property
    def num_actions(self) -> int:
        """How many actions there are in every state."""
        return self.world.num_actions

    @property
    def samples(self) -> int:
        """How many steps have been taken so far."""
        return self.world.samples

    def identity(self) -> dict[str, Any]:
        """What tells the world from others."""
        return self.world.identity()

    def stored_discretisation(self) -> StoredDiscretisation | None:
        """What states and actions stand for."""
        return self.world.stored_discretisation()

    def parts(self) -> Mapping[str, Hashable] | None:
        """What the state is made of."""
        return self.world.parts()

    def observation(self) -> Any:
        """What the agent sees."""
        return self.world.observation()

    def action_of(self, number: int) -> Any:
        """What an action's number means."""
        return self.world.action_of(number)

    def position(self) -> dict[str, Any]:
        """Where the world stands."""
        return self.world.position()

    def restore(self, position: dict[str, Any]) -> None:
        """Go back, or on, to a `position`."""
        self.world.restore(position)

    def restart(self) -> int:
        """Begin an episode."""
        return self.world.restart()

    def step(self, action: int) -> Step:
        """Take one action."""
        return self.world.step(action)

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends."""
        return self.world.begin(reset, max_samples=max_samples)

    def walk(self, roll_in: RollIn, count: int) -> Indices:
        """The states in which walks end."""
        return self.world.walk(roll_in, count)

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes."""
        return self.world.episodes(policy, batch)


class RecordingWorld(WorldWrapper):
    """Keeps the transitions of all episodes (not of their roll-ins), so that they can be learned from again."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._seen: list[TransitionCounts] = []
        self._steps = TransitionCounter()
        self._state: int | None = None

    def count_ends(self, roll_in: RollIn, count: int) -> Integers:
        """How many walks end in each state; what they pass through is not kept."""
        return self.world.count_ends(roll_in, count)

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes, and keep its transitions."""
        result = self.world.episodes(policy, replace(batch, record=True))
        assert result.seen is not None
        self._seen.append(result.seen)
        return result

    def compiled_steps(self) -> CompiledSteps | None:
        """The world's own, whose transitions are kept."""
        steps = self.world.compiled_steps()
        return None if steps is None else steps.noting(self._seen.append)

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends."""
        self._state = self.world.begin(reset, max_samples=max_samples)
        return self._state

    def restart(self) -> int:
        """Begin an episode."""
        self._state = self.world.restart()
        return self._state

    def step(self, action: int) -> Step:
        """Take one action, and keep the transition."""
        step = self.world.step(action)
        assert self._state is not None
        self._steps.add(self._state, action, step.state, step.reward)
        self._state = step.state
        return step

    def take(self) -> TransitionCounts:
        """Everything that was kept since the last call, each transition once."""
        seen = [*self._seen, self._steps.counts()]
        self._seen.clear()
        self._steps = TransitionCounter()
        return merge_transitions(seen, self.num_states, self.num_actions)


class SeenStates(WorldWrapper):
    """Knows which states were seen: where walks end, and everything that episodes and single steps show.

    What happens on the way of a walk or a roll-in is not shown by any world; only where it ends.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.seen: Mask = np.zeros(world.num_states, dtype=np.bool_)
        """Shape (S,)."""

    def restart(self) -> int:
        """Begin an episode."""
        state = self.world.restart()
        self.seen[state] = True
        return state

    def step(self, action: int) -> Step:
        """Take one action."""
        step = self.world.step(action)
        self.seen[step.state] = True
        return step

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends."""
        state = self.world.begin(reset, max_samples=max_samples)
        if state is not None:
            self.seen[state] = True
        return state

    def walk(self, roll_in: RollIn, count: int) -> Indices:
        """The states in which walks end."""
        ends = self.world.walk(roll_in, count)
        self.seen[ends] = True
        return ends

    def count_ends(self, roll_in: RollIn, count: int) -> Integers:
        """How many walks end in each state."""
        counts = self.world.count_ends(roll_in, count)
        self.seen |= counts > 0
        return counts

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes; which transitions they see costs nothing but time."""
        result = self.world.episodes(policy, replace(batch, record=True))
        self._note(result.seen)
        return result if batch.record else result._replace(seen=None)

    def compiled_steps(self) -> CompiledSteps | None:
        """The world's own, whose transitions show states."""
        steps = self.world.compiled_steps()
        return None if steps is None else steps.noting(self._note)

    def _note(self, transitions: TransitionCounts | None) -> None:
        assert transitions is not None
        self.seen[transitions.state] = True
        self.seen[transitions.next_state] = True
