"""Frontier: go by the shortest known way to what is worth most to know, try it, count, and plan again at once.

    keep the counts n(s, a, s') of everything ever seen
    repeat:
        while pairs do what they did before:                  the world is taken to be deterministic, one try tells all
            choose the level of cells on which fewest samples were spent
            find the nearest pair that is new on that level   from here, or from the start if that is nearer
            go there, try it, count                           a step that leads elsewhere: count, and plan anew
        where more than a tenth of them do not:               noise, or cells that mix states
            act greedily by the counted model with a bonus of 1 / sqrt(n(s, a))
    until nothing is left to which a way is known, or the samples are used up

This is Curious Explorer in its online limit: rounds of one way, a curiosity reward that shrinks with visits, and for
``opt`` a planner that remembers. Four things need saying.

**Noise.** A pair that was seen to have two outcomes is never written off: it stays at the frontier at a price of
`price` ln n steps. What cannot be learned (a noisy TV) is looked at ever more rarely and does not hold the agent. Where
the world is noisy throughout, hard knownness misses what lies behind cells that mix states (MountainCar's goal in 8 of
10 runs), and a plan must know how likely steps are: then values with bonuses take over (`models.bonus_values`), and
hand back should surprises get rare.

**Levels.** Where a world says what its states are made of (`World.parts`), pairs are counted on four levels of cells
that are found as exploration goes (`models.cell_levels`), and samples are shared among those levels that have something
left, in fixed proportions: none can starve another.

**Restarting costs nothing**, so a way may begin with it: the agent restarts when the frontier is nearer from the start
by a factor of `restart_factor`, or when its time is known to be too short for the way from here.

**States that change.** Cells that were chosen by a look at an environment may turn out too fine or too coarse
(`World.refit`). Where states are put together, so are counts; otherwise all counts begin anew, and the samples go on.

**Stopping.** Where there is no way from the start to anything new, every action is repeated a few dozen times where the
agent stands, in case that its cells mix states and it has only not seen it yet. Then it stops.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.exploration import MOST_POLICIES, Exploration
from curious_explorer.explorers.frontier_files import FrontierCounts, claim_folder, read_counts, write_counts
from curious_explorer.explorers.run_log import RunLog
from curious_explorer.learners.optimizer import Watch
from curious_explorer.models.bonus_values import BonusValues
from curious_explorer.models.cell_levels import CellLevels
from curious_explorer.models.frontier_search import FrontierSearch
from curious_explorer.models.growing_model import FAR, NONE, GrowingModel
from curious_explorer.models.planning import exploitation
from curious_explorer.storage import reading
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.world import World, check_world

SHARES = (8.0, 8.0, 3.0, 1.0)
"""In which proportion samples are shared among the levels that have something left, the coarsest first. It matters
little: (3, 3, 3, 1) takes 18,700 samples for DoorKey-16x16 instead of 16,600, and 4,100 for MultiRoom-N4 instead of
6,100 (medians of five layouts)."""
NOISY, QUIET, FEWEST_REPEATS = 0.1, 0.03, 20
"""From which share of surprises among repeated tries on values take over, from which on they hand back, and how many
repeats it takes to tell."""
STRETCHES = (32, 16, 8, 4)
"""Before it stops, an agent repeats every action so many times in a row, shortest stretches first: cells that mix
states may do the same thing ten times before they do another."""
RESTARTS_IN_VAIN = 20
"""After so many restarts in a row from which nothing new can be reached, there is nothing left."""
REFIT_AFTER = 1_000
"""Samples after which the world is asked whether its states will do, for the first time; then whenever they doubled."""
LEAST_AFTER_REWARD = 2_000
LEAST_CHANGE = 1e-4
"""How far a value must move before the states that lead there are looked at, in units of the most."""
TELL_EVERY = 1_000
Progress = Callable[[int, int, int | None], None]
"""Told the samples, how many states were met, and after how many samples the first reward was."""
SAVE_EVERY = 50_000
"""Samples between two checkpoints. The episode in progress is given up there, with or without interruption."""


Prefer = Callable[[int, list[int]], list[int]]
"""Given a state of the world and the actions that are worth most to try there, those of them to try first."""


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Exploration by counts alone, for deterministic and noisy worlds of states or cells."""

    steps: int = 100_000
    """How many steps to take where no number of samples is given."""
    levels: bool = True
    """Whether to count on coarser levels, too, where the world says what its states are made of."""
    price: float = 50.0
    """How much further away, in steps, a pair of varying outcomes seems for every factor e of tries."""
    restart_factor: float = 0.5
    """The agent restarts when the frontier is nearer from the start than this times its distance from here."""
    discount: float = 0.99
    """The discount of values with bonuses; how far such a plan looks ahead."""
    backups: int = 20
    """How many states are backed up for every step under noise."""
    hold: int = 50
    """For how many steps values are held under noise. Planned anew at every step the agent dithers: MountainCar's goal
    then takes 9,700 samples (median of 16 seeds, at most 22,200); held for 50 steps 6,700 (14,400), for 100 steps 7,200
    (12,400), but with 100 Acrobot's takes twice as many as with 50."""
    stop_at_reward: bool = False
    """Whether to stop as soon as the world pays anything."""
    after_reward: float | None = None
    """To stop after so many times the samples that the first reward took, and `LEAST_AFTER_REWARD` more: what lies
    around it is known then. None: go on."""

    def __post_init__(self) -> None:
        check_count(self.steps, "steps", least=1)
        check_count(self.backups, "backups", least=1)
        check_count(self.hold, "hold", least=1)
        check_gamma(self.discount)
        for name in ("price", "restart_factor", "after_reward"):
            value = getattr(self, name)
            if name == "after_reward" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ValueError(f"{name} is {value!r}, expected a number that is not negative")

    def explore(
        self,
        world: World,
        *,
        gamma: float,
        samples: int | None = None,
        watch: Watch | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Exploration:
        """Explore from the world's start; see `Explorer`.

        Args:
            world: where to act.
            gamma: the discount of the reset model and of the policy that is handed out; exploring does not need it.
            samples: the most steps to take.
            watch: called with the best policy for what was seen and the samples so far.
            checkpoint: a folder to save the counts in every `SAVE_EVERY` samples, and to go on from.
            progress: told every `TELL_EVERY` samples how far it is.
        """
        check_world(world)
        gamma = check_gamma(gamma)
        samples = check_count(self.steps if samples is None else samples, "samples", least=1)
        folder = None if checkpoint is None else Path(checkpoint)
        if folder is None:
            return self._explore(world, gamma, samples, watch, progress, None)
        with claim_folder(folder, world, self, gamma, samples):
            return self._explore(world, gamma, samples, watch, progress, folder)

    def _explore(
        self,
        world: World,
        gamma: float,
        samples: int,
        watch: Watch | None,
        progress: Progress | None,
        folder: Path | None,
    ) -> Exploration:
        """Explore, from where the folder's counts stand if there are any."""
        found = None if folder is None else read_counts(folder)
        run = FrontierRun(self, world)
        if folder is not None and found is not None:
            with reading(folder, CheckpointError, advice="choose another folder, or explore anew"):
                run = FrontierRun.going_on(self, world, found)
        log = RunLog(world, samples, watch)
        values = np.zeros(world.num_states if watch is not None else 0)

        def best() -> Floats:
            values.resize(world.num_states, refcheck=False)  # which may have grown
            return exploitation(run.model.counted(world.num_states), None, gamma, values)

        last = samples - world.most_samples_a_step
        saved = run.taken // SAVE_EVERY
        while run.taken <= last and not run.done:
            run.keep_goals(samples)
            run.step()
            log.samples = run.taken
            if progress is not None and run.taken % TELL_EVERY == 0:
                progress(run.taken, len(run.model), run.first_reward)
            if watch is not None and run.taken < samples:
                log.show(best)
            if folder is not None and run.taken // SAVE_EVERY > saved and not run.done:
                saved = run.taken // SAVE_EVERY
                write_counts(folder, run.counts(gamma))
                found = read_counts(folder)
                assert found is not None
                run = FrontierRun.going_on(self, world, found)  # as a run does that was killed here
        log.samples = run.taken
        if progress is not None:
            progress(run.taken, len(run.model), run.first_reward)
        if watch is not None:
            log.show(best, always=True)
        if folder is not None:
            write_counts(folder, run.counts(gamma))
        return Exploration.of_counts(run.counts(gamma))

    def begin(self, world: World, found: FrontierCounts | None = None, *, prefer: Prefer | None = None) -> FrontierRun:
        """An exploration that the caller steps, from the beginning or from what one has found; see `FrontierRun`."""
        run = FrontierRun(self, world) if found is None else FrontierRun.going_on(self, world, found)
        run.prefer = prefer
        return run


def crosses_power(before: int, after: int) -> bool:
    """Whether samples went beyond `REFIT_AFTER`, or that times 2, 4, 8, ..."""
    return (before // REFIT_AFTER).bit_length() != (after // REFIT_AFTER).bit_length()


class FrontierRun:
    """One exploration: where the agent stands, what it has seen, and what it is up to."""

    def __init__(self, settings: Frontier, world: World) -> None:
        self._settings, self._world = settings, world
        self.model = GrowingModel(world.num_actions)
        self._search = FrontierSearch(self.model, len(SHARES) if settings.levels else 1, settings.price)
        self._cells = CellLevels()
        self._values: BonusValues | None = None
        self._random = np.random.default_rng([world.seed, world.samples, 15])
        self._spent = [0.0] * len(self._search.levels)
        self._level = 0
        self._at, self._left, self._age = NONE, NONE, 0
        self._limit = FAR
        self._ahead: list[tuple[int, int]] = []  # actions and where they should lead, the next one last
        self._in_vain = 0
        self._stretches = [(action, length) for length in STRETCHES for action in range(world.num_actions)]
        self._layered: bool | None = None  # whether the world says what states are made of
        self._to_refit = False
        self.taken = 0
        self.goals: list[int] = []
        self.first_reward: int | None = None
        self.done = False
        self.prefer: Prefer | None = None

    @staticmethod
    def going_on(settings: Frontier, world: World, found: FrontierCounts) -> FrontierRun:
        """The run that saved these counts, with the world put where it stood; bounds and values are found anew."""
        assert found.state is not None
        assert found.world is not None
        world.restore(found.world)
        run = FrontierRun(settings, world)
        run.model, run.goals = found.model, list(found.goals)
        run.taken, run.first_reward, run.done = found.samples, found.first_reward, found.complete
        run._random.bit_generator.state = found.state["random"]
        run._limit, run._level = found.state["limit"], found.state["level"]
        run._stretches = [(action, length) for action, length in found.state["stretches"]]
        run._layered = found.state["layered"]
        run._search = FrontierSearch(run.model, len(SHARES) if run._layered else 1, settings.price)
        run._spent = list(found.state["spent"])
        keys = None
        if run._layered:
            for parts in found.parts or []:
                run._cells.meet(parts)
            seen = run.model.outcomes()
            for before, after in zip(seen.state.tolist(), seen.next_state.tolist(), strict=True):
                run._cells.moved(before, after)
            run._cells.look()
            keys = run._cells.all_keys()
        run._search.begin_anew(keys)
        if found.state["by_values"]:
            run._use_values()
        return run

    def counts(self, gamma: float) -> FrontierCounts:
        """Everything that is known; the episode in progress is not part of it."""
        world = self._world
        state = {
            "random": self._random.bit_generator.state,
            "limit": self._limit,
            "level": self._level,
            "stretches": self._stretches,
            "layered": self._layered,
            "spent": self._spent,
            "by_values": self._values is not None,
        }
        position: dict[str, Any] | None = None
        with contextlib.suppress(NotImplementedError):
            position = world.position()
        return FrontierCounts(
            self.model,
            gamma,
            world.num_states,
            self.taken,
            self.first_reward,
            self.done and not self._stops_for_reward,
            self.goals,
            world.stored_discretisation(),
            self._cells.parts if self._layered else None,
            state,
            position,
        )

    def keep_goals(self, samples: int) -> None:
        """Keep the state where the agent is now, or will soon be, for the reset model, evenly spaced in samples."""
        if len(self.goals) * samples > self.taken * MOST_POLICIES:
            return
        if self._at == NONE:
            self._restart()
        self.goals.append(self._ahead[0][1] if self._ahead and self._ahead[0][1] >= 0 else self._at)

    def step(self) -> None:
        """Plan if need be and take one step; none where nothing is left."""
        if self._to_refit:
            self._refit(exhausted=False)
            self._to_refit = False
        if self._at == NONE:
            self._restart()
        action, hoped = self._next_action()
        if self.done:
            return
        at = self._at
        before = self._world.samples
        step = self._world.step(action)
        took = self._world.samples - before
        self.taken += took
        self._to_refit = crosses_power(self.taken - took, self.taken)
        self._age += 1
        self._spent[self._level] += 1.0 / SHARES[self._level]
        following = self._meet(step.state)
        if step.terminated:
            self.model.end(following, step.end_reward)
        if self.first_reward is None and (step.reward > 0.0 or step.end_reward > 0.0):
            self.first_reward = self.taken
        if self._stops_for_reward:
            self.done = True
        if self.model.add(at, action, ~following if step.terminated else following, step.reward):
            if self._values is None:
                self._search.changed(at, action)
            if self._layered:
                self._cells.moved(at, following)
                if self._cells.look():
                    self._search.begin_anew(self._cells.all_keys())
            self._ahead.clear()
        self._left, self._at = at, following
        if following != hoped:
            self._ahead.clear()
        if step.terminated or step.truncated:
            if step.truncated:
                self._limit = self._age
            self._at = NONE
            self._ahead.clear()

    @property
    def _stops_for_reward(self) -> bool:
        """Whether enough was seen after the first reward."""
        first, after = self.first_reward, self._settings.after_reward
        if first is None:
            return False
        if self._settings.stop_at_reward:
            return True
        return after is not None and self.taken >= (1.0 + after) * first + LEAST_AFTER_REWARD

    def _restart(self) -> None:
        self._at = self._meet(self._world.restart())
        self.model.start(self._at)
        self._age = 0

    def _refit(self, *, exhausted: bool) -> bool:
        """Let the world make its states finer or coarser; whether it has, and the agent must restart."""
        now = self._world.refit(len(self.model), exhausted=exhausted, rewarded=self.first_reward is not None)
        if now is None:
            return False
        known = self.model
        if len(now) and not self._layered:
            self.model = known.merged(now)
            moved = [self.model.index(int(now[state])) for state in known.states]
            self.goals = [goal for goal in (moved[goal] for goal in self.goals) if goal is not None]
        else:  # what states are made of is not known of those that were put together
            self.model, self.goals, self._layered = GrowingModel(self._world.num_actions), [], None
        self._cells, self._values = CellLevels(), None
        levels = 1 if self._layered is False or not self._settings.levels else len(SHARES)
        self._search = FrontierSearch(self.model, levels, self._settings.price)
        self._search.begin_anew()
        self._spent = [0.0] * levels
        self._level, self._in_vain = 0, 0
        self._stretches = [(action, length) for length in STRETCHES for action in range(self.model.num_actions)]
        self._at, self._left = NONE, NONE
        self._ahead.clear()
        return True

    def _meet(self, state: int) -> int:
        known = len(self.model)
        index = self.model.meet(state)
        if index == known:
            keys: list[int] = []
            parts = self._world.parts() if self._layered is not False and self._settings.levels else None
            if self._layered is None:
                self._layered = parts is not None
                if not self._layered:
                    self._search = FrontierSearch(self.model, 1, self._settings.price)
                    self._spent = [0.0]
            if self._layered:
                self._cells.meet(parts or {})
                keys = self._cells.keys(index)
            self._search.meet(index, keys)
        return index

    # Planning ---------------------------------------------------------------------------------------------------------

    def _next_action(self) -> tuple[int, int]:
        """What to do now, and where it should lead (NONE: who knows)."""
        if self._ahead:
            return self._ahead.pop()
        self._check_noise()
        if self._values is not None:
            actions = self._values.best_actions(self._left, self._at)
            return self._one_of(actions), NONE
        while not self._plan():
            if len(self.model.starts) == 1 or self._in_vain == RESTARTS_IN_VAIN:
                if not self._stretches:
                    if self._refit(exhausted=True):
                        self._restart()
                        continue
                    self.done = True
                    return 0, NONE
                action, length = self._stretches.pop()
                self._ahead = [(action, self._at)] * length  # given up as soon as it leads elsewhere
                break
            self._in_vain += 1
            self._restart()
        self._in_vain = 0
        return self._ahead.pop()

    def _plan(self) -> bool:
        """Find the way to the nearest new pair of the level that was spent least on; False if there is none."""
        starts = self.model.starts
        start = next(iter(starts)) if len(starts) == 1 else NONE
        for level in sorted(range(len(self._spent)), key=self._spent.__getitem__):
            way = self._search.way(level, self._at, self._limit - self._age - 1)
            if start not in (NONE, self._at) or self._age > 0:
                nearer = self._limit - 1
                if way is not None:
                    nearer = min(nearer, math.ceil(self._settings.restart_factor * way.distance) - 1)
                again = self._search.way(level, start, nearer) if start != NONE and nearer >= 0 else None
                if again is not None:
                    way = again
                    self._restart()
            if way is not None:
                self._level = level
                tried = self._choose(way.goal, self._search.exits(level, way.goal))
                actions = [pair % self.model.num_actions for pair in way.pairs]
                self._ahead = [(tried, NONE), *reversed(list(zip(actions, way.states, strict=True)))]
                return True
        return False

    def _check_noise(self) -> None:
        """Change between ways and values, as the share of surprises tells."""
        model = self.model
        if self._values is None and model.repeats >= FEWEST_REPEATS and model.surprises > NOISY * model.repeats:
            self._use_values()
        elif self._values is not None and model.surprises < QUIET * model.repeats:
            self._values = None
            self._search.begin_anew(self._cells.all_keys() if self._layered else None)

    def _use_values(self) -> None:
        settings = self._settings
        self._values = BonusValues(
            self.model, gamma=settings.discount, least=LEAST_CHANGE, backups=settings.backups, every=settings.hold
        )
        self._left = NONE

    def _choose(self, index: int, actions: list[int]) -> int:
        if self.prefer is not None and len(actions) > 1:
            actions = self.prefer(self.model.state(index), actions)
        return self._one_of(actions)

    def _one_of(self, actions: list[int]) -> int:
        return actions[0] if len(actions) == 1 else actions[int(self._random.integers(len(actions)))]
