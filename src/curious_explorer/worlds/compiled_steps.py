"""`restart` and `step` as compiled functions, for learners that act one step at a time and are compiled themselves.

A learner's kernel is given `StepTables`, which it passes on to `begin_episode` and `take_step` and never looks into. A
state is a number from 0, or, once the episode has ended there, its complement ``~state`` (negative). Draws are read
from a counter (see `random_streams`), in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Words
from curious_explorer.compile import inlined, int64
from curious_explorer.worlds.alias_tables import Dynamics
from curious_explorer.worlds.episode_kernels import (
    GAVE_UP,
    LARGER_REWARDS,
    OWN_REWARDS,
    TERMINAL_STARTS_IN_A_ROW,
    pick,
    roll_in,
)
from curious_explorer.worlds.episodes import Reward, TransitionCounts
from curious_explorer.worlds.random_streams import GOLDEN, ONE, mix64
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.walk_kernels import Chains

OUT_OF_STEPS, NOWHERE_TO_START = -1, -2
"""What `begin_episode` returns in place of a state."""


class StepTables(NamedTuple):
    """What compiled steps read: where episodes begin, the transitions, and what steps pay.

    What `take_step` reads is not nested: an array in a tuple in a tuple more than doubles the cost of a step.
    """

    num_actions: int
    row_start: Integers
    thresholds: Words
    next_state: Indices
    own_rewards: Floats
    dynamics: Dynamics  # all of the above, for `begin_episode`
    chains: Chains
    policies: Words  # (N, S * A): thresholds of the policies of the roll-in
    reward_mode: int
    rewards: Floats  # (S, A)
    end_rewards: Floats  # (S,): what a terminal state goes on paying at every step


@dataclass(frozen=True)
class CompiledSteps:
    """How a compiled learner acts in a world."""

    num_transitions: int
    """How many transitions there are to be counted."""
    end_rewards: Floats
    """In the world's own reward, shape (S,); zero where a state is not terminal."""
    tables: Callable[[RollIn | None, Reward | None], StepTables]
    """The tables for a place to begin episodes (None: the start) and a reward (None: the world's own)."""
    next_key: Callable[[], np.uint64]
    """The key of a new stream of draws."""
    finish: Callable[[int, int, Integers], TransitionCounts]
    """To be called after every stretch: with the steps taken, roll-ins included, the state of the episode in progress
    (negative: none) and how often each transition was taken; returns these as transitions."""

    def noting(self, note: Callable[[TransitionCounts], None]) -> CompiledSteps:
        """The same steps, their transitions shown to ``note``."""

        def finish(samples: int, state: int, counts: Integers) -> TransitionCounts:
            transitions = self.finish(samples, state, counts)
            note(transitions)
            return transitions

        return replace(self, finish=finish)


@inlined
def begin_episode(tables: StepTables, counter: np.uint64, most_steps: int) -> tuple[int, int, np.uint64]:
    """Roll in until a state that is not terminal: that state, the steps taken, and the counter.

    The state is `OUT_OF_STEPS` where the steps ran out first, and `NOWHERE_TO_START` where all starts are
    terminal or roll-ins to chosen states gave up.
    """
    taken = int64(0)
    state = int64(-1)
    for _ in range(TERMINAL_STARTS_IN_A_ROW):
        state, steps, counter = roll_in(tables.dynamics, tables.chains, tables.policies, counter, most_steps - taken)
        taken += steps
        if state >= 0 or state == GAVE_UP or taken >= most_steps:
            break
    if taken >= most_steps:
        state = int64(OUT_OF_STEPS)
    elif state < 0:
        state = int64(NOWHERE_TO_START)
    return state, taken, counter


@inlined
def choose_action(thresholds: Words, num_actions: int, state: int, counter: np.uint64) -> tuple[int, np.uint64]:
    """Draw an action by a policy's flat (S, A) table of thresholds; returns it and the counter."""
    counter += GOLDEN
    first = state * num_actions
    return pick(thresholds, first, first + num_actions - 1, mix64(counter) >> ONE) - first, counter


@inlined
def take_step(tables: StepTables, state: int, action: int, counter: np.uint64) -> tuple[int, int, float, np.uint64]:
    """Take an action: the transition's number, the next state, what the step earns, and the counter."""
    row = state * tables.num_actions + action
    counter += GOLDEN
    entry = pick(tables.thresholds, tables.row_start[row], tables.row_start[row + 1] - 1, mix64(counter) >> ONE)
    earned = float(tables.own_rewards[entry])
    if tables.reward_mode != OWN_REWARDS:
        given = float(tables.rewards[state, action])
        earned = max(earned, given) if tables.reward_mode == LARGER_REWARDS else given
    return entry, int64(tables.next_state[entry]), earned, counter
