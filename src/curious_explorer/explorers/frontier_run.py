"""One exploration by counts: the arrays that the compiled loop works with, and what it leaves to Python.

Python steps worlds that are not compiled, meets their new states, widens arrays, changes between ways and values, and
saves. Everything else is in `frontier_steps`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats, Indices, Integers, Words
from curious_explorer.compile import addresses_of
from curious_explorer.errors import CellWarning
from curious_explorer.explorers import frontier_steps as loop
from curious_explorer.explorers.exploration import MOST_POLICIES
from curious_explorer.explorers.frontier_files import FrontierCounts
from curious_explorer.explorers.frontier_steps import NOW_SIZE, SHARES, STRETCHES, TABLES, Agent
from curious_explorer.explorers.stored_ways import StoredWays
from curious_explorer.models import bonus_values
from curious_explorer.models.bonus_values import Sweeps, sweeps_for
from curious_explorer.models.cell_levels import CellLevels
from curious_explorer.models.frontier_search import FrontierSearch
from curious_explorer.models.growing_model import FAR, NONE, GrowingModel
from curious_explorer.worlds.world import World, nowhere_to_start

Prefer = Callable[[int, list[int]], list[int]]
"""Given a state of the world and the actions that are worth most to try there, those of them to try first."""
STEPS_AT_ONCE = 1_000_000
"""So many steps a compiled call takes at most, so that Ctrl-C need not wait long."""
REFIT_AFTER = 1_000
"""Samples after which the world is asked whether its states will do, for the first time; then whenever they doubled."""
STRETCH = 500
"""For so many samples it goes by counts before it is asked again whether to go by stored ways."""
TOO_MANY_NEW = 0.9
"""The share of the first steps that may lead to new cells; if it is larger cells are hardly ever met again."""


class FrontierRun:
    """One exploration: where the agent stands, what it has seen, and what it is up to.

    Args:
        settings: price, restart_factor, discount, the least change of a value, as `frontier_steps` wants them.
        backups: states backed up for every step under noise.
        hold: for how many steps values are held.
        levels: whether states may be counted on coarser levels.
        found: what a run that goes on here has saved.
        prefer: whom to ask which of several new pairs to try.
    """

    def __init__(
        self,
        world: World,
        settings: Sequence[float],
        *,
        backups: int,
        hold: int,
        levels: bool,
        found: FrontierCounts | None = None,
        prefer: Prefer | None = None,
    ) -> None:
        self._world, self._least = world, settings[loop.LEAST]
        self._discount, self._backups, self._hold = settings[loop.DISCOUNT], backups, hold
        self._price = float(settings[loop.PRICE])  # compiled code knows no whole number of any size
        self._settings: Floats = np.array([*settings, np.inf, 0.0], dtype=np.float64)  # with nothing known of noise
        self._prefer = prefer
        self._cells = CellLevels()
        self._values: list[Sweeps] | None = None  # by number of table
        self._compiled = world.compiled_steps()
        self._may_layer = levels and self._compiled is None
        self._layered: bool | None = None if self._may_layer else False  # whether the world says what states are of
        self._actions = np.zeros(world.num_actions, dtype=np.int32)
        self._now: Integers = np.full(NOW_SIZE, NONE, dtype=np.int64)
        key = np.random.SeedSequence([world.seed, world.samples, 15]).generate_state(1, np.uint64)
        self._random: Words = key.astype(np.uint64)
        self._way: Indices = np.zeros(0, dtype=np.int32)
        self._hopes: Indices = np.zeros(0, dtype=np.int32)
        self._spent, self._turns = np.zeros(len(SHARES)), np.zeros(loop.HOPES + 1)
        self._first_tries: Integers = np.zeros(2 * world.num_actions, dtype=np.int64)
        self._given: Integers
        self.goals: list[int] = []
        self.ways = StoredWays(world.num_actions, world.seed) if world.repeats else None
        """Ways by which it goes back where cells mix states of a world that repeats; see `stored_ways`."""
        self._gone: Floats = np.zeros(2)  # samples that went by counts and by stored ways, by their shares
        self._on_way = False  # whether the episode in progress goes by a stored way
        if found is None:
            self.model = GrowingModel(world.num_actions)
            self._begin_new()
        else:
            self._go_on(found)
        now = self._now
        now[loop.NUM_ACTIONS], now[loop.BACKUPS], now[loop.HOLD] = world.num_actions, backups, hold
        now[loop.TOOK], now[loop.ASKS] = 1, prefer is not None
        self._holds, self._refit_at = world.most_samples_a_step > 1, next_refit(self.taken)
        if self._compiled is not None:
            self._tables = self._compiled.tables(None, None)
            self._counter = self._compiled.next_key()
            self._index_of = np.full(world.num_states, NONE, dtype=np.int32)
            self._index_of[self.model.states] = np.arange(len(self.model))
        self._refresh()

    def _begin_new(self) -> None:
        now = self._now
        now[loop.TAKEN] = now[loop.DONE] = now[loop.AGE] = now[loop.PAID_ALIKE] = 0
        now[loop.LIMIT] = FAR
        self._begin_search()

    def _begin_levels(self) -> None:
        """Forget what was planned, and what was new on which level."""
        now = self._now
        for place in (loop.LEVEL, loop.AHEAD, loop.IN_VAIN, loop.BY_VALUES, loop.SINCE, loop.TOLD, loop.SAID):
            now[place] = 0
        now[loop.TURN] = now[loop.CLOSE_NOW] = now[loop.STAYS] = 0
        self._first_tries[:] = np.concatenate(self.model.first_tries())
        self._settings[loop.NOISE] = self.model.payments_vary()
        now[loop.AT] = now[loop.LEFT] = now[loop.EXPECTED] = NONE
        self._spent[:] = self._turns[:] = 0.0

    def _begin_search(self) -> None:
        """Search a model for the first time, or for the first time since states have changed."""
        self._begin_levels()
        now = self._now
        now[loop.STRETCHES_LEFT] = len(STRETCHES) * self._world.num_actions
        now[loop.LEVELS] = len(SHARES) if self._layered is None else 1
        self._search = FrontierSearch(self.model, int(now[loop.LEVELS]), self._price)
        self._search.begin_anew()

    def _go_on(self, found: FrontierCounts) -> None:
        """Take over what a run has saved, with the world put where it stood; bounds and values are found anew."""
        assert found.state is not None
        assert found.world is not None
        self._world.restore(found.world)
        self.model, self.goals, self._layered = found.model, list(found.goals), found.state["layered"]
        self._random = np.array([found.state["random"]], dtype=np.uint64)
        places = found.state["now"]
        self._now[: len(places)] = places  # files of 0.2.0 have fewer
        now, stretches = self._now, len(STRETCHES) * self._world.num_actions
        if (
            now[loop.LEVELS] != (1 if self._layered is False else len(SHARES))
            or not 0 <= now[loop.LEVEL] < now[loop.LEVELS]
        ):
            raise ValueError(f"it is at level {now[loop.LEVEL]} of {now[loop.LEVELS]}")
        if not (0 <= now[loop.STRETCHES_LEFT] <= stretches and loop.MANY <= now[loop.START] < len(self.model)):
            raise ValueError("what is left to repeat, or where it starts, is out of range")
        now[loop.AGE] = 0
        self._begin_levels()
        now[loop.LEVEL] = places[loop.LEVEL]
        self._spent[:] = found.state["spent"]
        self._turns[:] = found.state.get("turns", 0.0)
        if found.ways is not None:
            self.ways = found.ways
            self._gone[:] = found.state["ways"]["gone"]
        self._search = FrontierSearch(self.model, int(now[loop.LEVELS]), self._price)
        keys = None
        if self._layered:
            for parts in found.parts or []:
                self._cells.meet(parts)
            seen = self.model.outcomes()
            for before, after in zip(seen.state.tolist(), seen.next_state.tolist(), strict=True):
                self._cells.moved(before, after)
            self._cells.look()
            keys = self._cells.all_keys()
        self._search.begin_anew(keys)
        if found.state["by_values"]:
            self._use_values()

    @property
    def taken(self) -> int:
        """How many steps it took."""
        return int(self._now[loop.TAKEN])

    @property
    def done(self) -> bool:
        """Whether it has stopped by itself."""
        return bool(self._now[loop.DONE])

    @property
    def first_reward(self) -> int | None:
        """After how many steps the world first paid anything; None: never."""
        first = int(self._now[loop.FIRST_REWARD])
        return None if first == NONE else first

    @property
    def _stopped_for_reward(self) -> bool:
        """Whether enough was seen after the first reward."""
        factor, more = self._settings[loop.STOP_FACTOR], self._settings[loop.STOP_MORE]
        return self.first_reward is not None and bool(self.taken >= factor * self.first_reward + more)

    def counts(self, gamma: float) -> FrontierCounts:
        """Everything that is known; the episode in progress is not part of it."""
        world = self._world
        if not self.goals:
            self._keep_goal()
        state = {
            "random": int(self._random[0]),
            "now": self._now.tolist(),
            "spent": self._spent.tolist(),
            "turns": self._turns.tolist(),
            "layered": self._layered,
            "by_values": self._values is not None,
        }
        if self.ways is not None:
            state["ways"] = {**self.ways.numbers(), "gone": self._gone.tolist()}
        position: dict[str, Any] | None = None
        with contextlib.suppress(NotImplementedError):
            position = world.position()
        return FrontierCounts(
            self.model,
            gamma,
            world.num_states,
            self.taken,
            self.first_reward,
            self.done and not self._stopped_for_reward,
            self.goals,
            world.stored_discretisation(),
            self._cells.parts if self._layered else None,
            state,
            position,
            self.ways,
        )

    def next_goal(self, samples: int) -> int:
        """After how many steps of so many `keep_goals` will keep one."""
        return -(-len(self.goals) * samples // MOST_POLICIES)

    def keep_goals(self, samples: int) -> None:
        """Keep the state where the agent is now, or will soon be, for the reset model, evenly spaced in samples."""
        if self.taken >= self.next_goal(samples):
            self._keep_goal()

    def _keep_goal(self) -> None:
        now = self._now
        if now[loop.AHEAD] > 1 and self._hopes[1] >= 0:
            self.goals.append(int(self._hopes[1]))
        elif len(self.model):
            places = (int(now[place]) for place in (loop.AT, loop.LEFT))
            self.goals.append(next((place for place in places if place != NONE), 0))

    def step(self) -> None:
        """Take one step; none where nothing is left."""
        self.advance(self.taken + 1)

    def advance(self, until: int) -> None:
        """Take steps until so many were taken, or until it is done."""
        while self.taken < until and not self.done:
            if self.taken >= self._refit_at:
                first = self._refit_at == REFIT_AFTER
                self._refit_at = next_refit(self.taken)
                if not self._refit(exhausted=False) and first:
                    self._look_at_cells()
            stop = min(until, self._refit_at, self.taken + STEPS_AT_ONCE)
            if self._compiled is not None:
                self._advance_compiled(stop)
            elif self._goes_by_ways:
                self._take_turns(stop)
            else:
                self._advance_by_steps(stop)

    def _advance_compiled(self, until: int) -> None:
        assert self._compiled is not None
        counts = np.zeros(self._compiled.num_transitions, dtype=np.int64)
        before, event = self.taken, 0
        while event not in (loop.SPENT, loop.FINISHED):
            event, self._counter = loop.explore_compiled(
                self._given, self._tables, self._index_of, counts, np.uint64(self._counter), until
            )
            if event == loop.NOWHERE:
                nowhere_to_start()
            self._attend(event)
        self._compiled.finish(self.taken - before, NONE, counts)

    def _advance_by_steps(self, until: int) -> None:
        step, known, now, ways = self._world.step, self.model.index_of, self._now, self.ways
        left = until - self.taken
        action = loop.choose(self._given)
        while True:
            if action < 0:
                if action == loop.FINISHED:
                    return
                self._attend(action)
                action, known = loop.choose(self._given), self.model.index_of
                continue
            if left <= 0:
                now[loop.AHEAD] += 1  # it is left for the next time
                return
            if self._holds:
                before = self._world.samples
                state, reward, terminated, end_reward, truncated = step(action)
                now[loop.TOOK] = took = self._world.samples - before
                left -= took
            else:
                state, reward, terminated, end_reward, truncated = step(action)
                left -= 1
            index = known.get(state)
            if index is None:
                index = self._meet(state)
            ending = (loop.TERMINATED if terminated else 0) + (loop.TRUNCATED if truncated else 0)
            if ways is not None:
                ways.took(int(action), state, reward + end_reward, ending > 0, self.taken)
            if self._layered:
                at = int(now[loop.AT])
                loop.take_in(self._given, index, float(reward), float(end_reward), ending)
                if now[loop.TOLD]:
                    self._cells.moved(at, index)
                    if self._cells.look():
                        self._search.begin_anew(self._cells.all_keys())
                action = loop.choose(self._given)
            else:
                action = loop.proceed(self._given, index, float(reward), float(end_reward), ending)

    def follow(self, act: Callable[[int], int], longest: int) -> None:
        """Take one episode by somebody else's actions, counted as one's own; a world of compiled steps has none.

        Args:
            act: the action in a state of the world that the episode stands in.
            longest: after so many steps the episode is left.
        """
        self._now[loop.EXPECTED], self._now[loop.AHEAD] = NONE, 0
        state = self._restart()
        for _ in range(longest):
            if self._now[loop.AT] == NONE or self.done:
                break
            state, _ = self._take(act(state))

    def _restart(self, *, returning: bool = False) -> int:
        """Begin an episode; by a stored way if it is a return."""
        state = self._world.restart()
        loop.begin(self._given, self._meet(state))
        if self.ways is not None:
            self.ways.begin(state, returning=returning)
        return state

    def _take(self, action: int) -> tuple[int, bool]:
        """Take an action that was not planned by counts, and count it; the state, and whether a return goes on."""
        now = self._now
        if self.model.make_room():
            self._refresh()
        at, before = int(now[loop.AT]), self._world.samples
        now[loop.ACTION], now[loop.HOPED] = action, NONE
        step = self._world.step(action)
        now[loop.TOOK] = self._world.samples - before
        index = self._meet(step.state)
        ending = (loop.TERMINATED if step.terminated else 0) + (loop.TRUNCATED if step.truncated else 0)
        loop.take_in(self._given, index, float(step.reward), float(step.end_reward), ending)
        if self._layered and now[loop.TOLD]:
            self._cells.moved(at, index)
            if self._cells.look():
                self._search.begin_anew(self._cells.all_keys())
        if not self._holds:
            now[loop.TOOK] = 1
        if self.ways is None:
            return step.state, False
        reward = step.reward + step.end_reward
        return step.state, self.ways.took(action, step.state, reward, ending > 0, self.taken)

    # By stored ways -----------------------------------------------------------------------------------------------

    @property
    def _goes_by_ways(self) -> bool:
        """Whether the same actions lead to the same place, while counts say that they do not."""
        if self.ways is None or self.ways.given_up or self._now[loop.START] == loop.MANY:
            return False
        repeats, surprises = self.model.repeats, self.model.surprises
        return repeats >= loop.FEWEST_REPEATS and surprises > loop.NOISY * repeats

    def _take_turns(self, until: int) -> None:
        """Go on by counts or by stored ways: in equal shares, and seldom by counts where these hardly ever hold."""
        taken = self.taken
        if self._on_way or self._gone[1] <= self._gone[0]:
            self._advance_by_ways(until)
            self._gone[1] += self.taken - taken
        else:
            self._advance_by_steps(min(until, taken + STRETCH))
            worse = self.model.surprises > loop.VERY_NOISY * self.model.repeats
            self._gone[0] += (self.taken - taken) * (loop.WORSE if worse else 1.0)

    def _advance_by_ways(self, until: int) -> None:
        """Go back along a stored way and on from there, to the end of the episode or as far as there are samples."""
        ways, now = self.ways, self._now
        assert ways is not None
        if not self._on_way:
            now[loop.EXPECTED], now[loop.AHEAD] = NONE, 0
            self._restart(returning=True)
            self._on_way = True
        while self._on_way and self.taken < until and not self.done:
            _, self._on_way = self._take(ways.action())
        if not self._on_way:
            now[loop.AT], now[loop.AHEAD], now[loop.EXPECTED] = NONE, 0, NONE

    # What happens seldom ------------------------------------------------------------------------------------------

    def _attend(self, event: int) -> None:
        if event == loop.RESTART:
            self._restart()
        elif event == loop.EXHAUSTED:
            self._refit(exhausted=True)
        elif event == loop.CHOICE:
            self._choose()
        elif event == loop.NO_ROOM:
            self.model.make_room()
            self._refresh()
        elif event == loop.TO_VALUES:
            self._use_values()
            self._refresh()
        elif event == loop.TO_WAYS:
            self._values, self._now[loop.BY_VALUES] = None, 0
            self._search.begin_anew(self._cells.all_keys() if self._layered else None)
            self._refresh()

    def _choose(self) -> None:
        """Ask which of the new pairs at the end of the way to try."""
        assert self._prefer is not None
        now = self._now
        actions = self._actions[: now[loop.CHOICES]].tolist()
        preferred = self._prefer(self.model.state(int(now[loop.GOAL])), actions)
        self._way[0] = preferred[loop.draw(self._given, len(preferred))]
        now[loop.CHOICES] = 1

    def _refit(self, *, exhausted: bool) -> bool:
        """Let the world make its states finer or coarser; where it has, counts follow or begin anew."""
        # What pays is not forgotten where there are stored ways to it.
        rewarded = self.first_reward is not None and not self._goes_by_ways
        now = self._world.refit(len(self.model), exhausted=exhausted, rewarded=rewarded)
        if now is None:
            return False
        if self.ways is not None:
            self.ways.forget_states()
            self._on_way = False
        known = self.model
        if len(now) and not self._layered:
            self.model = known.merged(now)
            moved = [self.model.index(int(now[state])) for state in known.states]
            self.goals = [goal for goal in (moved[goal] for goal in self.goals) if goal is not None]
        else:  # what states are made of is not known of those that were put together
            self.model, self.goals = GrowingModel(self._world.num_actions), []
            self._layered = None if self._may_layer else False
        self._cells, self._values = CellLevels(), None
        starts = list(self.model.starts)
        self._now[loop.START] = NONE if not starts else starts[0] if len(starts) == 1 else loop.MANY
        self._begin_search()
        self._refresh()
        return True

    def _meet(self, state: int) -> int:
        known = len(self.model)
        index = self.model.meet(state)
        if index == known:
            keys: list[int] = []
            parts = self._world.parts() if self._layered is not False else None
            if self._layered is None:
                self._layered = parts is not None
                if not self._layered:
                    self._now[loop.LEVELS] = 1
                    self._search = FrontierSearch(self.model, 1, self._price)
                self._refresh()
            if self._layered:
                self._cells.meet(parts or {})
                keys = self._cells.keys(index)
            before = self._search.work
            self._search.meet(index, keys)
            if before is not self._search.work:
                self._refresh()
        return index

    def _look_at_cells(self) -> None:
        """Say so where nearly every step leads to a cell that was never met: there is nothing to be counted then."""
        if len(self.model) > TOO_MANY_NEW * self.taken and self._world.stored_discretisation() is not None:
            warnings.warn(
                f"{len(self.model):,} cells were met in {self.taken:,} steps: nearly every observation is a new cell, "
                "so that there is nothing to count and no way back to anything. Give coarser cells: "
                "GridCells(bins, low, high) for a few numbers, HashedCells(width=...) to round, HashedCells(key=...) "
                "or FunctionCells(...) for the part of the observation that tells places apart; leave out clocks, "
                "noise and counters",
                CellWarning,
                stacklevel=2,
            )

    def _use_values(self) -> None:
        """Make tables of values for what was counted so far."""
        states, discount = len(self.model.graph.first_into), self._discount
        novelty = sweeps_for(states, bonus_values.novelty_terms(self._least))
        bonus_values.settle(self.model, novelty, discount)
        hopes, plan = sweeps_for(states, bonus_values.hope_terms()), sweeps_for(states, bonus_values.plan_terms())
        if self.first_reward is not None:
            bonus_values.settle_plan(self.model, plan, hopes, discount)
        self._values = [novelty, hopes, plan]
        self._now[loop.BY_VALUES], self._now[loop.LEFT] = 1, NONE
        self._search.begin_anew()  # it takes more tries to know a pair

    def _refresh(self) -> None:
        """Widen all arrays to what the model's are, and tell the kernels where they lie."""
        self._search.make_room()
        if self._values is not None:
            states = len(self.model.graph.first_into)
            if states > len(self._values[0].values):
                self._values = [bonus_values.widened(each, states) for each in self._values]
        room = len(self.model.graph.first_into) + max(STRETCHES) + 1
        way, hopes = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32)
        ahead = int(self._now[loop.AHEAD])
        if ahead > 0:
            way[:ahead], hopes[:ahead] = self._way[:ahead], self._hopes[:ahead]
        self._way, self._hopes = way, hopes
        agent = Agent(
            self._now,
            self._settings,
            self._spent,
            self._turns,
            self._actions,
            way,
            hopes,
            self._random,
            self._first_tries,
        )
        tables = [array for each in self._values or [sweeps_for(0)] * TABLES for array in each]
        fields = loop.LEVEL_FIELDS
        levels = [getattr(level, name) for level in self._search.levels for name in fields]
        levels += [self._actions[:0]] * (len(fields) * len(SHARES) - len(levels))  # of levels that there are not
        self._held = (*agent, *self.model.graph, *self._search.work, *tables, *levels)  # kept alive for the kernels
        assert len(self._held) == len(loop.ARRAYS)
        self._given = addresses_of(self._held)


def next_refit(taken: int) -> int:
    """When it is time to refit next, after so many samples."""
    return REFIT_AFTER << (taken // REFIT_AFTER).bit_length()
