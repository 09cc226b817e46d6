"""The agent's side of the line: what can be asked of a world by somebody who may only restart, step and look.

Nothing here knows transition probabilities. Whoever learns or explores is given a `World` and nothing else, so a method
that works here works wherever an environment can be restarted and stepped. A world of your own is a class with its
sizes, `restart`, `step`, a counter of samples and an `identity`; everything else has a plain version built on these:

    class Corridor(World):
        # five places in a row; the last one pays and ends the episode, and one step in ten fails

        num_states, num_actions = 5, 2

        def __init__(self, seed=0):
            self.seed, self.samples = seed, 0
            self._random, self._place = np.random.default_rng(seed), 0

        def identity(self):
            return {"kind": "corridor", "num_states": 5, "num_actions": 2, "seed": self.seed}

        def restart(self):
            self._place = 0
            return self._place

        def step(self, action):
            self.samples += 1
            if self._random.random() < 0.9:
                self._place = max(0, self._place + (1 if action == 1 else -1))
            return Step(self._place, float(self._place == 4), terminated=self._place == 4)

    explore(Corridor(), TRPO(), gamma=0.9, rounds=5)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.validation import check_count
from curious_explorer.worlds.episodes import EpisodeBatch, EpisodeStatistics, Reward, TransitionCounts
from curious_explorer.worlds.policies import KnownPolicy, Policy, as_table, check_any_policy
from curious_explorer.worlds.roll_in import NO_GOAL, RollIn
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.targets import NO_WAY, Targets

if TYPE_CHECKING:  # it imports Numba
    from curious_explorer.worlds.compiled_steps import CompiledSteps

__all__ = [
    "EpisodeBatch",
    "EpisodeStatistics",
    "Reward",
    "Step",
    "TransitionCounts",
    "World",
    "check_world",
]

TERMINAL_STARTS = 10_000
"""After so many roll-ins in a row that ended in a terminal state we say so, instead of trying for ever."""


WALKS_AT_ONCE = 1 << 22


class Step(NamedTuple):
    """What one step shows."""

    state: int
    reward: float
    terminated: bool
    """Whether the episode has ended in this state."""
    end_reward: float = 0.0
    """What a terminal state goes on paying at every step, for ever."""
    truncated: bool = False
    """Whether the world cut the episode off here, though the state is not terminal."""


class World(ABC):
    """A finite world that can be restarted and stepped."""

    if TYPE_CHECKING:  # attributes or properties, as a world likes

        @property
        def num_states(self) -> int:
            """How many states there are."""

        @property
        def num_actions(self) -> int:
            """How many actions there are in every state."""

        @property
        def samples(self) -> int:
            """How many steps were ever taken: those of roll-ins, episodes, single steps."""

    layouts: tuple[int, ...] = ()
    """Seeds of the layouts that restarts draw from, in a world that is many side by side."""
    seed: int = 0
    """Where the draws of the plain versions below come from, together with `calls`."""
    repeats: bool = False
    """Whether the same actions from a start were seen to lead to the same states, wherever it was tried."""
    calls: int = 0
    """How often the plain versions below were called; a `position` of yours should hold it."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What tells this world from others, as plain data: its kind, sizes, seed, and a digest of what it is."""

    @abstractmethod
    def restart(self) -> int:
        """Begin an episode from the start distribution; returns its state."""

    @abstractmethod
    def step(self, action: int) -> Step:
        """Take one action in the current episode."""

    # Many walks and episodes ---------------------------------------------------------------------------------------

    def walk(self, roll_in: RollIn, count: int) -> Indices:
        """The states in which ``count`` independent walks end, shape (count,)."""
        generator = self._next_generator()
        ends = np.empty(check_count(count, "count"), dtype=np.int32)
        for place in range(count):
            ends[place] = self._roll_in(roll_in, generator)[0]
        return ends

    def count_ends(self, roll_in: RollIn, count: int) -> Integers:
        """In how many of ``count`` walks each state is the end, shape (S,): `walk`, without keeping all ends.

        A world that overrides this must count what the same calls of `walk` would show.
        """
        counts = np.zeros(self.num_states, dtype=np.int64)
        for portion in portions(count):
            counts += np.bincount(self.walk(roll_in, portion), minlength=self.num_states)
        return counts

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes under a policy, shape (S, A), and return their statistics."""
        from curious_explorer.worlds.episode_accumulator import EpisodeAccumulator

        shape = (self.num_states, self.num_actions)
        table = as_table(check_any_policy(policy, *shape), type(self).__name__)
        accumulator = EpisodeAccumulator(table, batch, shape, type(self).__name__)
        generator, first = self._next_generator(), self.samples
        last = None if batch.max_samples is None else first + batch.max_samples
        for _ in range(batch.episodes):
            state = self._begin(batch.reset, generator, last)
            if state is None:
                break
            trajectory: list[tuple[int, int, float]] = []
            step = None
            while len(trajectory) < batch.horizon and (last is None or self.samples < last):
                action = draw_action(table[state], generator)
                step = self.step(action)
                trajectory.append((state, action, step.reward))
                state = step.state
                if step.terminated or step.truncated:
                    break
            if step is not None:
                accumulator.add(trajectory, state, step.terminated, step.end_reward)
        return accumulator.result(self.samples - first)

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends; returns its state, or None where the steps ran out on the way.

        A roll-in that ends in a terminal state is repeated; its steps are counted. None for ``reset`` is the start.
        """
        last = None if max_samples is None else self.samples + max_samples
        return self._begin(reset, self._next_generator(), last)

    def _begin(self, reset: RollIn | None, generator: np.random.Generator, last: int | None) -> int | None:
        roll_in = RollIn.from_start() if reset is None else reset
        for _ in range(TERMINAL_STARTS):
            if last is not None and self.samples >= last:
                return None
            state, going_on = self._roll_in(roll_in, generator, last)
            if going_on:
                return None if last is not None and self.samples >= last else state
        nowhere_to_start(roll_in)

    def _roll_in(self, roll_in: RollIn, generator: np.random.Generator, last: int | None = None) -> tuple[int, bool]:
        """Restart and walk one chain: the state, and whether an episode can go on there (``last``: of `samples`)."""
        for _ in range(1 if roll_in.targets is None else roll_in.targets.tries):
            state = int(self.restart())
            goal, chain = roll_in.draw_chain(generator)
            if roll_in.targets is None or goal == NO_GOAL:
                return self._walk_chain(state, chain, generator, last)
            state, arrived, going_on = self._go_to(roll_in.targets, goal, state, last)
            if arrived and going_on:
                return self._walk_chain(state, chain, generator, last)
            if arrived or (last is not None and self.samples >= last):
                return state, False
        assert roll_in.targets is not None
        roll_in.targets.refuse()

    def _go_to(self, targets: Targets, goal: int, state: int, last: int | None) -> tuple[int, bool, bool]:
        """Go to a target: the state, whether that is it, and whether an episode can go on there."""
        target, limit, actions = int(targets.states[goal]), int(targets.limits[goal]), targets.actions(goal)
        steps, going_on = 0, True
        while state != target and going_on and steps < limit and actions[state] != NO_WAY:
            if last is not None and self.samples >= last:
                return state, False, False
            step = self.step(int(actions[state]))
            state, steps = step.state, steps + 1
            going_on = not (step.terminated or step.truncated)
        targets.note(goal, state == target, steps)
        return state, state == target, going_on

    def _walk_chain(
        self, state: int, chain: list[tuple[KnownPolicy, float]], generator: np.random.Generator, last: int | None
    ) -> tuple[int, bool]:
        for policy, gamma in chain:
            table = as_table(check_any_policy(policy, self.num_states, self.num_actions), type(self).__name__)
            for _ in range(generator.geometric(1.0 - gamma) - 1):
                if last is not None and self.samples >= last:
                    return state, False
                step = self.step(draw_action(table[state], generator))
                state = step.state
                if step.terminated or step.truncated:
                    return state, False
        return state, True

    def _next_generator(self) -> np.random.Generator:
        """Random numbers that no call has used before."""
        self.calls += 1
        return np.random.default_rng([self.seed, self.calls])

    def compiled_steps(self) -> CompiledSteps | None:
        """The same restart and step as compiled functions, for compiled learners; None where there are none."""
        return None

    def stored_discretisation(self) -> StoredDiscretisation | None:
        """What states and actions stand for in a world of observations; None in a world of states."""
        return None

    def parts(self) -> Mapping[str, Hashable] | None:
        """What the state that the episode stands in is made of, by name; None where that is not known."""
        return None

    def observation(self) -> Any:
        """What the agent sees now, in a world of observations; None in a world of states."""
        return None

    def opener(self, layout: int | None) -> Callable[[], World]:
        """What makes a world of one of the `layouts` alone, with states of its own, or one that draws them as it likes.

        It can be pickled, so that layouts can be explored in other processes.
        """
        raise NotImplementedError(f"{type(self).__name__} has no layouts")

    def count_samples(self, steps: int) -> None:
        """Count steps that were taken elsewhere for this world: in a world that `opener` made, or by a learner."""
        raise NotImplementedError(f"{type(self).__name__} counts its own steps alone")

    @property
    def most_samples_a_step(self) -> int:
        """How many samples `step` may take; more than one in a world that holds actions."""
        return 1

    def refit(self, met: int, *, exhausted: bool, rewarded: bool) -> Integers | None:
        """Make states finer or coarser, if they can be and turn out to be too coarse or too fine.

        Asked now and then by explorers that can go on from there; the episode in progress is given up if anything
        changes.

        Args:
            met: how many states were met.
            exhausted: whether nothing is left to try.
            rewarded: whether a reward was seen, so that what is known must not be forgotten.

        Returns:
            The state that each old one is now, or an empty array if none can be told; None where nothing has changed.
        """
        return None

    def action_of(self, number: int) -> Any:
        """What an action's number means."""
        return number

    # Runs that are resumed ------------------------------------------------------------------------------------------

    def position(self) -> dict[str, Any]:
        """Where this world stands, as plain data: enough for `restore` to go on exactly from here."""
        raise NotImplementedError(f"{type(self).__name__} has no position(): a run in it cannot be saved and resumed")

    def restore(self, position: dict[str, Any]) -> None:
        """Go back, or on, to a `position`."""
        raise NotImplementedError(f"{type(self).__name__} has no restore(): a run in it cannot be resumed")


def portions(count: int) -> list[int]:
    """How many walks to count at once, so that a thousand million need no more memory than a few million."""
    check_count(count, "count")
    return [min(WALKS_AT_ONCE, count - done) for done in range(0, count, WALKS_AT_ONCE)]


def draw_action(probabilities: Floats, generator: np.random.Generator) -> int:
    """An action by its probabilities; rounding never picks an impossible one."""
    last = int(np.flatnonzero(probabilities)[-1])
    return int(np.searchsorted(np.cumsum(probabilities[:last]), generator.random(), side="right"))


def check_arrivals(roll_in: RollIn | None) -> None:
    """Raise an error if a compiled roll-in to chosen states gave up."""
    if roll_in is not None and roll_in.targets is not None:
        roll_in.targets.check()


def nowhere_to_start(roll_in: RollIn | None = None) -> NoReturn:
    """Say that roll-ins keep ending in terminal states, or do not arrive where they were to go."""
    check_arrivals(roll_in)
    raise ValueError(
        "roll-ins keep ending in terminal states; an episode needs a start, or a reset model, that reaches "
        "states that are not terminal"
    )


def check_world(world: object) -> None:
    """Refuse what an agent cannot act in, before anything is sampled."""
    if not isinstance(world, World):
        raise ValueError(f"world is {type(world).__name__}, expected a World, such as TabularWorld(mdp, seed=0)")
    for name in ("num_states", "num_actions", "samples"):
        if not hasattr(world, name):
            raise ValueError(f"the world {type(world).__name__} has no {name}; see curious_explorer.worlds.World")
