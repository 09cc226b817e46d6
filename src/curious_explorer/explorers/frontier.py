"""Frontier: go by the shortest known way to what is worth most to know, try it, count, and plan again at once.

    keep the counts n(s, a, s') of everything ever seen
    repeat:
        while pairs do what they did before:                  the world is taken to be deterministic, one try tells all
            choose the level of cells on which fewest samples were spent
            find the nearest pair that is new on that level   from here, or from the start if that is nearer
            go there, try it, count                           a step that leads elsewhere: count, and plan anew
        where more than a tenth of them do not:               noise, or cells that mix states; in turns
            go to the nearest new pair as above               seldom, where more than a third of them do not
            or act by values of novelty, 1 / sqrt(n(s, a))    seldom, where fewer do not
            or, once the world paid anything, by hopes        the plan for the reward, with what it may be wrong about
    until nothing is left to which a way is known, or the samples are used up

This is Curious Explorer in its online limit: rounds of one way, a curiosity reward that shrinks with visits, and for
``opt`` a planner that remembers. Four things need saying.

**Noise.** A pair that was seen to have two outcomes is never written off: it stays at the frontier at a price of
`price` ln n steps; and once there was one, so do all others, a little further away, because they may have failed when
they were tried. What cannot be learned (a noisy TV) is looked at ever more rarely and does not hold the agent. Where
the world is noisy throughout, hard knownness misses what lies behind cells that mix states (MountainCar's goal in 8 of
10 runs), and a plan must know how likely steps are: then values with bonuses take turns with ways
(`models.bonus_values`), until surprises should get rare. Where a step fails now and then (sticky actions), ways still
lead where they should, and find in a few tries what values of novelty find in many; on coarser levels a pair is then
tried a few times before it is known. Where cells mix states, ways lead nowhere, and values get most of the samples.

**After the first reward** a deterministic world is explored as before: what was seen is known. Under noise it is not,
and the best of many ways that were tried once is mostly a lucky one. So a third turn acts by hopes: values of the
reward with a bonus for what the plan may be wrong about. Exploring for its own sake keeps its turns, so that a small
reward does not hide a large one. `after_reward` waits until hopes for the start are close to the plan's.

**Levels.** Where a world says what its states are made of (`World.parts`), pairs are counted on four levels of cells
that are found as exploration goes (`models.cell_levels`), and samples are shared among those levels that have something
left, in fixed proportions: none can starve another.

**Restarting costs nothing**, so a way may begin with it: the agent restarts when the frontier is nearer from the start
by a factor of `restart_factor`, or when its time is known to be too short for the way from here. Then it stays a while
with the level that it restarted for. Where several pairs are new it tries those first whose actions mostly lead
nowhere: the others are still at hand then.

**States that change.** Cells that were chosen by a look at an environment may turn out too fine or too coarse
(`World.refit`). Where states are put together, so are counts; otherwise all counts begin anew, and the samples go on.

**Stopping.** Where there is no way from the start to anything new, every action is repeated a few dozen times where the
agent stands, in case that its cells mix states and it has only not seen it yet. What paid once is tried again, and what
pays now this, now that until its mean is known; where nothing has paid, every pair is tried several times. Then it
stops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.callbacks.events import BATCH, EXPLORE, FIRST_REWARD, Callback, tell
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.frontier_files import FrontierCounts, claim_folder, read_counts, write_counts
from curious_explorer.explorers.frontier_run import FrontierRun, Prefer
from curious_explorer.explorers.run_log import RunLog
from curious_explorer.learners.optimizer import Watch
from curious_explorer.models.planning import exploitation
from curious_explorer.storage import reading
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.world import World, check_world

LEAST_AFTER_REWARD = 2_000
LEAST_CHANGE = 1e-4
"""How far a value must move before the states that lead there are looked at, in units of the most."""
PLAN_SHARE = 0.5
"""With ``after_reward``, under noise: up to which share of all samples a plan may be improved that is not good yet."""
TELL_EVERY = 1_000
Progress = Callable[[int, int, int | None], None]
"""Told the samples, how many states were met, and after how many samples the first reward was."""
SAVE_EVERY = 50_000
"""Samples between two checkpoints. The episode in progress is given up there, with or without interruption."""


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
    backups: int = 10
    """How many states are backed up for a step under noise. MountainCar's goal takes as many samples with 5 or 20."""
    hold: int = 50
    """For how many steps values are held under noise. Planned anew at every step the agent dithers: MountainCar's goal
    then takes 9,700 samples (median of 16 seeds, at most 22,200); held for 50 steps 6,700 (14,400), for 100 steps 7,200
    (12,400), but with 100 Acrobot's takes twice as many as with 50."""
    stop_at_reward: bool = False
    """Whether to stop as soon as the world pays anything."""
    after_reward: float | None = None
    """To stop after so many times the samples that the first reward took, and `least_after_reward` more: what lies
    around it is known then. Under noise not before the plan is good, too (hopes for the start are less than a tenth
    above it), or half of the samples are used. None: go on."""
    least_after_reward: int = LEAST_AFTER_REWARD
    """So that a small reward beside the start does not hide a large one further away."""

    def __post_init__(self) -> None:
        check_count(self.steps, "steps", least=1)
        check_count(self.backups, "backups", least=1)
        check_count(self.hold, "hold", least=1)
        check_count(self.least_after_reward, "least_after_reward")
        check_gamma(self.discount, "discount")
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
            watch: called with the best policy for what was seen and the samples so far; or a `Callback`, which is told
                every `TELL_EVERY` samples how far it is.
            checkpoint: a folder to save the counts in every `SAVE_EVERY` samples, and to go on from.
            progress: told every `TELL_EVERY` samples how far it is.
        """
        check_world(world)
        gamma = check_gamma(gamma)
        samples = check_count(self.steps if samples is None else samples, "samples", least=1)
        if isinstance(watch, Callback):
            progress = _telling(watch, progress)
            watch = None
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
        if folder is None or found is None:
            run = self.begin(world, samples=samples)
        else:
            with reading(folder, CheckpointError, advice="choose another folder, or explore anew"):
                run = self.begin(world, found, samples=samples)
        kept = None if found is None else (run.taken, run.done)  # what the folder holds
        log = RunLog(world, samples, watch)
        values = np.zeros(world.num_states if watch is not None else 0)

        def best() -> Floats:
            values.resize(world.num_states, refcheck=False)  # which may have grown
            return exploitation(run.model.counted(world.num_states), None, gamma, values)

        last = samples - world.most_samples_a_step
        while run.taken <= last and not run.done:
            before = run.taken
            stops = [last + 1, run.next_goal(samples), log.next_call]
            stops += [(before // every + 1) * every for every in self._intervals(progress, folder)]
            run.advance(max(min(stops), before + 1))
            run.keep_goals(samples)
            log.samples = run.taken
            if progress is not None and run.taken // TELL_EVERY > before // TELL_EVERY:
                progress(run.taken, len(run.model), run.first_reward)
            if watch is not None and run.taken < samples:
                log.show(best)
            if folder is not None and run.taken // SAVE_EVERY > before // SAVE_EVERY and not run.done:
                write_counts(folder, run.counts(gamma))
                run = self.begin(world, read_counts(folder), samples=samples)  # as a run does that was killed here
                kept = run.taken, run.done
        log.samples = run.taken
        if progress is not None:
            progress(run.taken, len(run.model), run.first_reward)
        if watch is not None:
            log.show(best, always=True)
        if folder is not None and kept != (run.taken, run.done):  # a finished run that is called again stays as it is
            write_counts(folder, run.counts(gamma))
        return Exploration.of_counts(run.counts(gamma))

    @staticmethod
    def _intervals(progress: Progress | None, folder: Path | None) -> list[int]:
        """Every so many samples there is something to do besides stepping."""
        return [TELL_EVERY] * (progress is not None) + [SAVE_EVERY] * (folder is not None)

    def begin(
        self,
        world: World,
        found: FrontierCounts | None = None,
        *,
        prefer: Prefer | None = None,
        samples: int | None = None,
    ) -> FrontierRun:
        """An exploration that the caller steps, from the beginning or from what one has found; see `FrontierRun`."""
        factor, more, latest = math.inf, 0.0, 0.0
        if self.stop_at_reward:
            factor = 1.0
        elif self.after_reward is not None:
            factor, more = 1.0 + self.after_reward, float(self.least_after_reward)
            latest = PLAN_SHARE * samples if samples is not None else 0.0
        return FrontierRun(
            world,
            (self.restart_factor, self.discount, LEAST_CHANGE, self.price, factor, more, latest),
            backups=self.backups,
            hold=self.hold,
            levels=self.levels,
            found=found,
            prefer=prefer,
        )


def _telling(watch: Callback, progress: Progress | None) -> Progress:
    """Both at once."""

    def both(samples: int, states: int, first_reward: int | None) -> None:
        if progress is not None:
            progress(samples, states, first_reward)
        numbers: dict[str, float] = {"states": states}
        if first_reward is not None:
            numbers[FIRST_REWARD] = first_reward
        tell(watch, BATCH, EXPLORE, samples, numbers)

    return both
