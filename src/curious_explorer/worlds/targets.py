"""States to go to: for each a plan, which is looked at before every step, and how many steps it is given.

A roll-in *goes to* a target in a closed loop: it looks where it is, takes the action that the plan has for that state,
and looks again, so that it survives noise. It ends on arrival. It gives up after the target's limit of steps, in a
terminal state, and where the plan knows no way; then the whole roll-in is begun again, up to ``tries`` times in a row.
Every try is counted, whichever world it is made in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curious_explorer.arrays import Floats, Integers
from curious_explorer.errors import ArrivalError
from curious_explorer.validation import check_count

DEFAULT_TRIES = 100
"""A state that is reached one time in twenty is missed so often in a row once in 170 resets."""
NO_WAY = -1
"""In a plan: the state is not on any way to the target that is known."""
MOST_BYTES_KEPT = 1 << 28
MOST_TABLE_BYTES = 1 << 30
TRIED, ARRIVED, STEPS = 0, 1, 2
"""Columns of a tally: how often a target was tried, how often it was reached, and the steps of the tries that did."""


class Targets:
    """States to go to, with their plans.

    Args:
        states: the targets, shape (T,).
        limits: after how many steps a try is given up, shape (T,).
        plan: makes the plan to a state, when it is first needed: the action in every state, shape (S,), and `NO_WAY`
            where there is none.
        tries: how many roll-ins in a row may fail to arrive before that is an error.
        arrival: the probability of arriving, as it was counted, shape (T,) or the same for all.
    """

    def __init__(
        self,
        states: ArrayLike,
        limits: ArrayLike,
        plan: Callable[[int], NDArray[np.int16]],
        *,
        tries: int = DEFAULT_TRIES,
        arrival: ArrayLike = 1.0,
    ) -> None:
        self.states: Integers = np.array(states, dtype=np.int64)
        self.limits: Integers = np.array(limits, dtype=np.int64)
        if self.states.ndim != 1 or self.states.shape != self.limits.shape or len(self.states) == 0:
            raise ValueError(
                f"targets of shape {self.states.shape} with limits of shape {self.limits.shape}, expected (T,) twice"
            )
        if (self.limits < 0).any():
            raise ValueError(f"a limit is {self.limits.min()}, expected a number of steps")
        self.arrival: Floats = np.broadcast_to(np.asarray(arrival, dtype=np.float64), self.states.shape)
        self.tries = check_count(tries, "tries", least=1)
        self.counts: Integers = np.zeros((len(self.states) + 1, 3), dtype=np.int64)
        """For kernels: `tally`, and a row in which a compiled roll-in says that `tries` in a row failed."""
        self.table: Integers = np.column_stack([self.states, self.limits, np.full(len(self.states), self.tries)])
        """For kernels: state, limit and tries of each, shape (T, 3)."""
        self._plan = plan
        self._kept: OrderedDict[int, NDArray[np.int16]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.states)

    def actions(self, index: int) -> NDArray[np.int16]:
        """What to do in every state to get to target number ``index``, shape (S,)."""
        known = self._kept.get(index)
        if known is None:
            known = self._kept[index] = self._plan(int(self.states[index]))
            while len(self._kept) > 1 and len(self._kept) * known.nbytes > MOST_BYTES_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(index)
        return known

    @property
    def tally(self) -> Integers:
        """What became of all tries so far, shape (T, 3): tried, arrived, steps of those that arrived."""
        return self.counts[:-1]

    def all_actions(self) -> NDArray[np.int16]:
        """All plans, shape (T, S), for kernels; refused where that is too large to hold."""
        first = self.actions(0)
        if len(self) * first.nbytes > MOST_TABLE_BYTES:
            raise ValueError(
                f"the plans to {len(self):,} targets among {len(first):,} states take "
                f"{len(self) * first.nbytes / 2**30:.1f} GiB, more than {MOST_TABLE_BYTES / 2**30:g}; choose fewer of "
                "them: weighted({state: weight, ...})"
            )
        return np.stack([first, *(self.actions(index) for index in range(1, len(self)))])

    def note(self, index: int, arrived: bool, steps: int) -> None:
        """Count one try."""
        self.counts[index] += (1, arrived, steps if arrived else 0)

    def refuse(self) -> NoReturn:
        """Say that too many roll-ins in a row did not arrive."""
        if len(self) == 1:
            where, limit = f"state {self.states[0]}", f"within {self.limits[0]:,} steps"
        else:
            where, limit = (
                f"any of {len(self):,} states",
                f"within {self.limits.min():,} to {self.limits.max():,} steps",
            )
        tried, arrived, _ = self.tally.sum(axis=0).tolist()
        raise ArrivalError(
            f"{self.tries:,} roll-ins in a row did not arrive in {where} {limit} (of all {tried:,} tries so far "
            f"{arrived:,} did); the world is not as it was counted: explore it further, or give more tries or a "
            "larger limit"
        )

    def check(self) -> None:
        """Raise what `refuse` says if a compiled roll-in gave up."""
        if self.counts[-1, 0] > 0:
            self.counts[-1, 0] = 0
            self.refuse()
