"""The exploration of a run of `solve`: by counts, as far as it is asked to go, and further another time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from curious_explorer.callbacks.events import BATCH, EXPLORE, FIRST_REWARD, tell
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.frontier import SAVE_EVERY, TELL_EVERY, Frontier
from curious_explorer.explorers.frontier_files import claim_folder, read_counts, write_counts
from curious_explorer.gym.automatic_cells import bins_numbers
from curious_explorer.gym.cell_names import named_cells
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.memory import with_memory
from curious_explorer.gym.shifted_reward import without_price
from curious_explorer.models.growing_model import GrowingModel
from curious_explorer.sb3.algorithms import spawned_seed
from curious_explorer.sb3.step_log import StepLog
from curious_explorer.studies.solve_files import EXPLORATION
from curious_explorer.studies.solve_plan import discount_for
from curious_explorer.studies.solve_run import Progress, SolveRun
from curious_explorer.studies.task_look import TaskLook

Enough = Callable[[int, int | None], bool]
"""Asked, of the samples so far and after how many the first reward was, whether that is enough; the look for cells is
among them."""
NOISY = 0.1
"""The share of repeated tries with another outcome than the first from which on a plan gets better by counting on."""


class CountedExploration:
    """`Frontier` in a run's environment, its counts kept in the run's folder.

    Rewards are paid above the price of a step where every step costs the same, so that what pays can be told.

    Args:
        run: the run.
        look: what was found out about the task.
    """

    def __init__(self, run: SolveRun, look: TaskLook) -> None:
        self._run, self._folder, self._open = run, run.folder / EXPLORATION, ExitStack()
        cells = None
        if run.settings.cells is not None:
            made = run.make()
            cells = named_cells(run.settings.cells, made)
            made.close()
        seed = spawned_seed(run.settings.seed, 2)
        example = with_memory(run.make(), run.memory)
        self.steps = StepLog.of(example) if run.memory is None else None
        """Every step that was taken, where a learner of values can begin with them."""
        example.close()
        noted = self.steps.around if self.steps is not None else (lambda env: env)
        self.world = GymWorld(
            lambda: noted(without_price(with_memory(run.make(), run.memory), look.paid_back)),
            cells=cells,
            seed=seed,
            time_limits=True,
            hold=look.hold if self.steps is not None and not look.pays_all_along else 1,
        )
        self._open.callback(self.world.close)
        self.looked = self.world.samples
        """What finding the cells took; it is part of the exploration."""
        self.growth: list[list[int]] = []
        """Samples, and how many cells were met by then."""
        frontier = Frontier()
        gamma = discount_for(1.0)
        self._open.enter_context(claim_folder(self._folder, self.world, frontier, gamma, run.settings.samples))
        self._gamma, self._begin = gamma, frontier.begin
        kept = read_counts(self._folder)
        self._now = self._begin(self.world, kept)
        if self.steps is not None:
            self.steps.load(self._folder, self._now.taken)
            self.steps.begin(self.world.discretisation.action_set)
        self._kept = None if kept is None else self._stands
        """Where it stood when it was written."""

    def close(self) -> None:
        """Give the environment and the folder back."""
        self._open.close()

    @property
    def samples(self) -> int:
        """Every step that was taken."""
        return self.looked + self._now.taken

    @property
    def first_reward(self) -> int | None:
        """After how many of them the first reward was."""
        first = self._now.first_reward
        return None if first is None else self.looked + first

    @property
    def way(self) -> dict[str, Any] | None:
        """The stored way that returned most: how many steps, what it returned, and when it was found."""
        ways = self._now.ways
        if ways is None or ways.given_up or ways.best.returned <= 0.0:
            return None
        steps = len(ways.best_way()) * self.world.most_samples_a_step
        return {"steps": steps, "returned": ways.best.returned, "samples": self.looked + ways.best.samples}

    def go_on(self, most: int, piece: int, enough: Enough) -> Exploration:
        """Explore up to so many samples in all, until it is enough or nothing is left; asked after every piece."""
        most -= self.looked
        last = most - self.world.most_samples_a_step
        while self._now.taken <= last and not self._now.done and not enough(self.samples, self.first_reward):
            before = self._now.taken
            stops = [last + 1, self._now.next_goal(most)]
            stops += [(before // every + 1) * every for every in (piece, TELL_EVERY, SAVE_EVERY)]
            self._now.advance(max(min(stops), before + 1))
            self._now.keep_goals(most)
            if self._now.taken // TELL_EVERY > before // TELL_EVERY:
                self._show()
            if self._now.taken // SAVE_EVERY > before // SAVE_EVERY and not self._now.done:
                self._save()
        self._show()
        found = Exploration.of_counts(self._now.counts(self._gamma))
        if self._stands != self._kept:  # what goes on after its last sample is not written again, in other words
            self._save()
        return found

    @property
    def _stands(self) -> tuple[int, bool]:
        return self._now.taken, self._now.done

    @property
    def noisy(self) -> bool:
        """Whether pairs often do now this, now that: noise, or cells that mix states."""
        model = self._now.model
        return model.surprises > NOISY * model.repeats

    @property
    def mixes(self) -> bool:
        """Whether cells mix states from which the same action leads elsewhere."""
        return bins_numbers(self.world.discretisation.cells)

    def _save(self) -> None:
        if self.steps is not None:
            self.steps.save(self._folder)  # first, so that counts are never of more steps than are kept
        write_counts(self._folder, self._now.counts(self._gamma))
        self._kept = self._stands
        self._now = self._begin(self.world, read_counts(self._folder))  # as a run does that was killed here

    def _show(self) -> None:
        run, met, first = self._run, len(self._now.model), self.first_reward
        self.growth.append([self.samples, met])
        numbers: dict[str, float] = {"states": met}
        if first is not None:
            numbers[FIRST_REWARD] = first
        tell(run.watch, BATCH, EXPLORE, self.samples, numbers)
        before = run.used - int(run.stages.get("explore", {}).get("samples", 0))
        words = f"{met:,} cells" + ("" if first is None else f", reward after {first:,}")
        way = self.way
        if way is not None:
            words += f", best return {way['returned']:.6g}"
        run.progress(Progress("exploring", before + self.samples, words))


def counts_of(exploration: Exploration) -> GrowingModel:
    """What `Frontier` counted."""
    assert isinstance(exploration.model, GrowingModel)
    return exploration.model
