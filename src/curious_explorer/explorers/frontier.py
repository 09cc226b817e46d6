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

**Stopping.** Where there is no way from the start to anything new, every action is repeated a few dozen times where the
agent stands, in case that its cells mix states and it has only not seen it yet. Then it stops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.optimizing_explorer import MOST_POLICIES
from curious_explorer.explorers.run_log import RunLog
from curious_explorer.learners.optimizer import Watch
from curious_explorer.models.bonus_values import BonusValues
from curious_explorer.models.cell_levels import CellLevels
from curious_explorer.models.frontier_search import FrontierSearch
from curious_explorer.models.growing_model import FAR, NONE, GrowingModel
from curious_explorer.models.planning import exploitation
from curious_explorer.resets.reset_model import ResetModel
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.world import World, check_world

SHARES = (8.0, 8.0, 3.0, 1.0)
"""In which proportion samples are shared among the levels that have something left, the coarsest first: with equal
shares DoorKey-16x16 takes 26,000 samples instead of 17,000."""
NOISY, QUIET, FEWEST_REPEATS = 0.1, 0.03, 20
"""From which share of surprises among repeated tries on values take over, from which on they hand back, and how many
repeats it takes to tell."""
STRETCHES = (32, 16, 8, 4)
"""Before it stops, an agent repeats every action so many times in a row, shortest stretches first: cells that mix
states may do the same thing ten times before they do another."""
RESTARTS_IN_VAIN = 20
"""After so many restarts in a row from which nothing new can be reached, there is nothing left."""
LEAST_CHANGE = 1e-4
"""How far a value must move before the states that lead there are looked at, in units of the most."""
MOST_ENTRIES = 1 << 26
"""Of all policies of a reset model together: 20 policies of 400,000 cells with eight actions, fewer of more."""


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
    hold: int = 100
    """For how many steps values are held under noise. Planned anew at every step the agent dithers: MountainCar's goal
    then takes 9,700 samples (median of 16 seeds, at most 22,200), and 7,100 (12,400) where values are held."""
    stop_at_reward: bool = False
    """Whether to stop as soon as the world pays anything."""

    def __post_init__(self) -> None:
        check_count(self.steps, "steps", least=1)
        check_count(self.backups, "backups", least=1)
        check_count(self.hold, "hold", least=1)
        check_gamma(self.discount)
        for name in ("price", "restart_factor"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ValueError(f"{name} is {value!r}, expected a number that is not negative")

    def explore(
        self, world: World, *, gamma: float, samples: int | None = None, watch: Watch | None = None
    ) -> Exploration:
        """Explore from the world's start; see `Explorer`."""
        check_world(world)
        gamma = check_gamma(gamma)
        samples = check_count(self.steps if samples is None else samples, "samples", least=1)
        run = _Run(self, world)
        log = RunLog(world, samples, watch)
        num_states, values = world.num_states, np.zeros(world.num_states if watch is not None else 0)
        first = world.samples

        def best() -> Floats:
            return exploitation(run.model.counted(num_states), None, gamma, values)

        while log.samples < samples and not run.done:
            if log.wants_policy():
                run.remember_goal()
            log.note(run.step(), 0, 0.0)
            if watch is not None and log.samples < samples:
                log.show(best)
        if watch is not None:
            log.show(best, always=True)
        discretisation = world.stored_discretisation()
        model, goals = run.model, run.goals
        return Exploration(
            (),
            gamma,
            reset_model=lambda: resets_to(model, goals, num_states, gamma, discretisation),
            samples=world.samples - first,
            policy=lambda: frozen(exploitation(model.counted(num_states), None, gamma, np.zeros(num_states))),
            model=model,
            discretisation=discretisation,
            first_reward=run.first_reward,
            complete=run.done and not (self.stop_at_reward and run.first_reward is not None),
        )


def resets_to(model: GrowingModel, goals: list[int], num_states: int, gamma: float, discretisation: Any) -> ResetModel:
    """Half the start, half where the ways to these goals stop, each walked from the start."""
    most = max(1, min(MOST_POLICIES, MOST_ENTRIES // (num_states * model.num_actions)))
    kept = goals[:: -(-len(goals) // most)]
    policies = []
    for goal in kept:
        policy = np.full((num_states, model.num_actions), 1.0 / model.num_actions)
        policy[model.states] = model.way_to(goal)
        policies.append(frozen(policy))
    counted = model.counted(num_states)
    return ResetModel(policies, gamma=gamma, chained=False, discretisation=discretisation, model=counted)


class _Run:
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
        self._taken = 0
        self.goals: list[int] = []
        self.first_reward: int | None = None
        self.done = False

    def remember_goal(self) -> None:
        """Keep the state where the agent is now, or will soon be, for the reset model."""
        if self._at == NONE:
            self._restart()
        self.goals.append(self._ahead[0][1] if self._ahead and self._ahead[0][1] >= 0 else self._at)

    def step(self) -> int:
        """Plan if need be and take one step; returns how many were taken: none where nothing is left."""
        if self._at == NONE:
            self._restart()
        action, hoped = self._next_action()
        if self.done:
            return 0
        at = self._at
        step = self._world.step(action)
        self._taken += 1
        self._age += 1
        self._spent[self._level] += 1.0 / SHARES[self._level]
        following = self._meet(step.state)
        if step.terminated:
            self.model.end(following, step.end_reward)
        if self.first_reward is None and (step.reward > 0.0 or step.end_reward > 0.0):
            self.first_reward = self._taken
            self.done = self._settings.stop_at_reward
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
        return 1

    def _restart(self) -> None:
        self._at = self._meet(self._world.restart())
        self.model.start(self._at)
        self._age = 0

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
                tried = self._one_of(self._search.exits(level, way.goal))
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

    def _one_of(self, actions: list[int]) -> int:
        return actions[0] if len(actions) == 1 else actions[int(self._random.integers(len(actions)))]
