"""``explore`` as a folder that speaks for itself, on a table of transitions or by stepping in an environment.

RUN/environment.json     what was explored: the table's digest, or the id, the spaces, the cells and the action set
RUN/mdp.npz              the table of transitions, where there is one
RUN/exploration/         the checkpoint: settings and one file a round, or the counts of `Frontier`
RUN/reset_model/         what to train from
RUN/visited.png, .pdf    a picture of where it went, unless it is a table of many states
RUN/report.html          the same and the figures for people
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from curious_explorer.callbacks.events import EXPLORE, Callback, part_of
from curious_explorer.errors import CheckpointError
from curious_explorer.explorers.checkpoint import COUNTS_FILE, SETTINGS_FILE, holds_results
from curious_explorer.explorers.curious_explorer import explore
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.explorers.frontier import Frontier
from curious_explorer.explorers.sample_budget import SampleBudget
from curious_explorer.explorers.thresholds import constant, default_beta, linear, paper_linear
from curious_explorer.gym.automatic_cells import LOOK
from curious_explorer.gym.cell_names import named_cells
from curious_explorer.gym.coded_cells import ROOM
from curious_explorer.gym.discovered_cells import DiscoveredCells
from curious_explorer.gym.gym_world import GymWorld
from curious_explorer.gym.make_env import make_by_id
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.model_based import ModelBased
from curious_explorer.learners.optimizer import Optimizer
from curious_explorer.learners.reinforce import Reinforce
from curious_explorer.learners.trpo import TRPO
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.studies.explored_runs import LAYOUT, LOOK_STEPS, MDP_FILE, RESETS, ROUNDS, TABLE, run_folder
from curious_explorer.studies.figures import save_figure
from curious_explorer.studies.named_tables import is_gymnasium_id, table_behind
from curious_explorer.studies.run_reports import REPORT_FILE, write_exploration_report
from curious_explorer.studies.visited_figures import draw_visited_cells, draw_visited_states
from curious_explorer.validation import check_count, check_gamma, check_name, check_number, check_seed
from curious_explorer.worlds.tabular_world import TabularWorld

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABULAR: dict[str, type[TRPO] | type[Reinforce] | type[ModelBased]] = {
    "trpo": TRPO,
    "reinforce": Reinforce,
    "model-based": ModelBased,
}
"""Optimizers that see states or cells."""
NEURAL = {"ppo": "ppo", "a2c": "a2c", "sb3-trpo": "trpo"}
"""Optimizers that see observations, and what Stable-Baselines3 calls them."""
FRONTIER = "frontier"
"""No optimizer, but an explorer of its own: the default where an environment is stepped in."""
LOOK_SHARE = 0.2
"""The most of all samples that choosing cells may take."""
SCHEDULES = {"linear": linear, "constant": constant, "paper": paper_linear}
PICTURE = "visited"
STEPPING_SAMPLES = 1_200_000
MOST_ROUNDS, VISITS = 20, 2_000
"""Of an exploration of a table that does not end by itself, where they are not given."""
FULL_BATCH = 50
"""Episodes in a batch of a tabular optimizer, where a round can afford several such batches."""
BATCHES_A_ROUND = 4
MOST_DRAWN = 200
"""States of a table of which a picture can be read."""
UNTIL_SPENT = 1_000_000
"""Updates of a tabular optimizer: its samples are what stops it."""


@dataclass(frozen=True, kw_only=True)
class ExploreSettings:
    """What to explore and how; None is the default of a table, or of stepping, whichever it comes to."""

    environment: str
    optimizer: str | None = None
    samples: int | None = None
    gamma: float | None = None
    rounds: int | None = None
    beta: float | None = None
    schedule: str = "linear"
    visits: int | None = None
    seed: int = 0
    record: bool | None = None
    cells: str | None = None
    max_cells: int | None = None
    actions: int | None = None
    num_envs: int = 1
    layout: int | None = None
    """The layout of every episode, where resets draw one."""

    def __post_init__(self) -> None:
        if self.optimizer is not None:
            check_name(self.optimizer, (FRONTIER, *TABULAR, *NEURAL), "optimizer")
        check_name(self.schedule, SCHEDULES, "schedule")
        if self.optimizer == FRONTIER and self._asks_for_rounds:
            raise ValueError(
                "frontier has no rounds and steps in one environment: leave out --rounds, --beta, --visits, --record "
                "and --num-envs, or choose --optimizer model-based"
            )
        if self.record and self.optimizer in NEURAL:
            raise ValueError(
                f"--record keeps the transitions of cells, which {self.optimizer} does not see; leave it out"
            )

    @property
    def _asks_for_rounds(self) -> bool:
        """Whether something was asked for that only Algorithm 2 has."""
        return (self.rounds, self.beta, self.visits, self.record, self.num_envs) != (None, None, None, None, 1)

    @property
    def ends_by_itself(self) -> bool:
        """Whether nothing was said about how long to explore a table: then until every state is well visited."""
        return (self.rounds, self.beta, self.visits, self.samples, self.schedule) == (None, None, None, None, "linear")

    @property
    def by_frontier(self) -> bool:
        """Whether an environment that is stepped in is explored by `Frontier`: unless something else was asked for."""
        return self.optimizer == FRONTIER or (self.optimizer is None and not self._asks_for_rounds)

    @property
    def asks_for_stepping(self) -> bool:
        """Whether something was asked for that only stepping in an environment has."""
        stepping = (self.cells, self.max_cells, self.actions, self.num_envs, self.layout)
        return self.optimizer in NEURAL or stepping != (None, None, None, 1, None)

    def table(self) -> FiniteMDP | None:
        """The table of transitions to explore; None if it is to be done by stepping."""
        if not self.asks_for_stepping:
            return table_behind(self.environment)
        if not is_gymnasium_id(self.environment) and (mdp := table_behind(self.environment)) is not None:
            raise ValueError(
                f"{self.environment} is a table of transitions with {mdp.num_states} states, so it needs no cells and "
                "has no observations; leave out --cells, --max-cells, --actions, --num-envs and --layout, and choose "
                f"the optimizer among {', '.join(TABULAR)}"
            )
        return None


class Explored(NamedTuple):
    """A finished run."""

    exploration: Exploration
    world: TabularWorld | GymWorld
    given: int | None
    """The most samples that it was given."""
    picture: Path | None
    was_finished: bool = False
    """Whether an earlier run had finished it, so that nothing was done now."""
    looked: int = 0
    """How many of its steps found the cells, before the exploration began."""

    @property
    def first_reward(self) -> int | None:
        """After how many of its samples a reward was first seen."""
        first = self.exploration.first_reward
        return None if first is None else self.looked + first

    @property
    def samples(self) -> int:
        """Every step of it, those that found the quantiles included."""
        return self.world.samples


def explore_into(
    folder: str | Path,
    settings: ExploreSettings,
    *,
    tell: Callable[[str], None] = lambda text: None,
    progress: bool = True,
    watch: Callback | None = None,
) -> Explored:
    """Explore and keep everything; a run that was interrupted goes on where it stood.

    Args:
        folder: for the run; see the top of this module.
        settings: what to explore and how.
        tell: told in a sentence what is going to be done.
        progress: whether to show a progress bar.
        watch: told how far it is.
    """
    target, plan = Path(folder), _Plan.of(settings)
    look = _look(target, settings) if plan.mdp is None else None
    world, learner = plan.table_world(plan.mdp, tell) if plan.mdp is not None else plan.stepped_world(tell, look)
    with _claim(target, world, settings.layout, look):
        if plan.mdp is not None and not (target / MDP_FILE).is_file():
            plan.mdp.save(target / MDP_FILE)
        looked = world.samples  # finding the cells took so many
        before = _taken_before(target / ROUNDS, world)
        told = None if watch is None else part_of(watch, EXPLORE, looked)
        growth: list[list[int]] = []  # states met, by samples
        exploration = plan.explore(world, learner, target / ROUNDS, told, growth, progress)
        exploration.reset_model.save(target / RESETS)
        drawn = _draw(world, plan.mdp, exploration)
        picture = None if drawn is None else save_figure(drawn, target / PICTURE)[0]
        explored = Explored(exploration, world, plan.given, picture, exploration.samples == before, looked)
        if not (explored.was_finished and (target / REPORT_FILE).is_file()):  # how it grew is not known any more
            write_exploration_report(
                target,
                settings.environment,
                exploration,
                samples=explored.samples,
                first_reward=explored.first_reward,
                rows=_rows(world),
                visited=drawn,
                growth=growth,
            )
        if isinstance(world, GymWorld):
            world.close()
        return explored


@dataclass(frozen=True)
class _Plan:
    """What is going to be done, checked before a step is taken."""

    settings: ExploreSettings
    mdp: FiniteMDP | None
    """The table; None where an environment is stepped in."""
    gamma: float
    given: int | None
    """The most samples; None: as long as exploring takes."""
    budget: SampleBudget | None
    """How Algorithm 2 shares them out."""

    @staticmethod
    def of(settings: ExploreSettings) -> _Plan:
        """The plan of these settings."""
        mdp = settings.table()
        stepping = mdp is None
        gamma = check_gamma((0.99 if stepping else 0.95) if settings.gamma is None else settings.gamma)
        check_seed(settings.seed)
        if settings.beta is not None:
            check_number(settings.beta, "beta", high=1.0)
        for name in ("rounds", "visits"):
            if (count := getattr(settings, name)) is not None:
                check_count(count, name, least=1)
        if mdp is not None and settings.optimizer == FRONTIER:
            raise ValueError(
                f"{settings.environment} shows its table of transitions; frontier steps in the environment: add "
                f"--cells identity, or choose the optimizer among {', '.join(TABULAR)}"
            )
        given = STEPPING_SAMPLES if stepping and settings.samples is None else settings.samples
        budget = None
        if given is not None and stepping and settings.by_frontier:
            check_count(given, "samples", least=1)
        elif given is not None:
            budget = SampleBudget.plan(
                given, gamma, rounds=settings.rounds, visits=settings.visits, num_envs=settings.num_envs
            )
        return _Plan(settings, mdp, gamma, given, budget)

    def table_world(self, mdp: FiniteMDP, tell: Callable[[str], None]) -> tuple[TabularWorld, Optimizer]:
        """The world of a table, and who explores it."""
        name = self.settings.environment
        stepped = "; --cells identity steps in the environment instead." if is_gymnasium_id(name) else "."
        tell(
            f"{name} shows its table of transitions ({mdp.num_states} states): samples are drawn from it, which "
            f"is fast{stepped}"
        )
        return TabularWorld(mdp, seed=self.settings.seed), TABULAR[self.settings.optimizer or "trpo"]()

    def stepped_world(self, tell: Callable[[str], None], look: int | None) -> tuple[GymWorld, Optimizer | Frontier]:
        """The world of an environment that is stepped in, and who explores it."""
        learner: Optimizer | Frontier = Frontier()
        if self.budget is not None:
            learner = make_optimizer(self.settings.optimizer or "model-based", self.budget)
        world = open_world(self.settings, look)
        cells = world.discretisation.cells
        room = "room for " if isinstance(cells, DiscoveredCells) else ""
        rounds = "" if self.budget is None else f" in {self.budget.rounds} rounds"
        tell(
            f"{self.settings.environment}: stepping in the environment, {room}{world.num_states:,} cells "
            f"({cells.description()['kind']}), {world.num_actions} actions; "
            f"{'at most ' if self.budget is None else ''}{self.given:,} samples{rounds}."
            + ("" if self.settings.cells is not None else f"\n{world.describe()}")
        )
        return world, learner

    def explore(
        self,
        world: TabularWorld | GymWorld,
        learner: Optimizer | Frontier,
        checkpoint: Path,
        watch: Callback | None,
        growth: list[list[int]],
        progress: bool,
    ) -> Exploration:
        """Explore, within the samples that finding the cells has left."""
        settings, looked, left = self.settings, world.samples, self.given
        if left is not None and (left := left - looked) < 1:
            raise ValueError(
                f"{self.given:,} samples are too few: finding the cells took {looked:,}; give more, or other --cells"
            )
        if isinstance(learner, Frontier):
            return learner.explore(
                world,
                gamma=self.gamma,
                samples=left,
                watch=watch,
                checkpoint=checkpoint,
                progress=lambda samples, states, first: growth.append([looked + samples, states]),
            )
        options: dict[str, Any] = {}
        if not settings.ends_by_itself:
            beta = default_beta(world.num_states) if settings.beta is None else settings.beta
            rounds, visits = settings.rounds or MOST_ROUNDS, settings.visits or VISITS
            if self.budget is not None:
                rounds, visits = self.budget.rounds, self.budget.visits
            options = {"rounds": rounds, "visits": visits, "thresholds": SCHEDULES[settings.schedule](beta)}
        return explore(
            world,
            learner,
            gamma=self.gamma,
            samples=left,
            record=self.mdp is not None if settings.record is None else settings.record,
            watch=watch,
            checkpoint=checkpoint,
            progress=progress,
            **options,
        )


def _draw(world: TabularWorld | GymWorld, mdp: FiniteMDP | None, exploration: Exploration) -> Figure | None:
    """A picture of where it went; None for a table of too many states."""
    if isinstance(world, GymWorld):
        return draw_visited_cells(exploration, world.discretisation)
    if mdp is not None and mdp.num_states <= MOST_DRAWN:
        return draw_visited_states(mdp, exploration.total_visited)
    return None


def _rows(world: TabularWorld | GymWorld) -> dict[str, str]:
    """What was explored, for the report."""
    return {"cells": world.describe()} if isinstance(world, GymWorld) else {"states": f"{world.num_states:,}"}


def _taken_before(folder: Path, world: TabularWorld | GymWorld) -> int:
    """The samples that an earlier run left in the folder; 0 where there is none."""
    if not holds_results(folder):
        return 0
    cells = world.discretisation.cells if isinstance(world, GymWorld) else None
    function = getattr(cells, "function", None)
    return Exploration.load(folder, cell_function=function).samples


def _look(target: Path, settings: ExploreSettings) -> int | None:
    """How many steps a look for cells may take: as many as the run in the folder gave it, so that it finds the same.

    A run that goes on repeats its look, seed and all, and counts it once. None: there is no look.
    """
    folder = run_folder(target)
    if settings.cells is not None or not settings.by_frontier:
        return None
    look = LOOK if settings.samples is None else min(LOOK, int(LOOK_SHARE * settings.samples))
    if folder.claimed and holds_results(target / ROUNDS):
        return check_count(folder.settings().get(LOOK_STEPS, look), LOOK_STEPS)
    return look


def open_world(settings: ExploreSettings, look: int | None) -> GymWorld:
    """The world of a Gymnasium id, with its cells by name (see `named_cells`), or chosen by a look at it."""
    cells = None
    if settings.cells is not None or not settings.by_frontier:
        made = make_by_id(settings.environment)
        try:
            cells = named_cells(settings.cells, made, max_cells=settings.max_cells)
        finally:
            made.close()
    return GymWorld(
        settings.environment,
        cells=cells,
        actions=settings.actions,
        seed=settings.seed,
        num_envs=settings.num_envs,
        layout=settings.layout,
        look=LOOK if look is None else look,
        max_cells=ROOM if settings.max_cells is None else settings.max_cells,
    )


def make_optimizer(name: str, budget: SampleBudget) -> Optimizer:
    """An optimizer by its name, with batches that fit what a round can spend."""
    if name in NEURAL:
        from curious_explorer.sb3.sb3_optimizer import SB3

        return SB3(NEURAL[name])
    if name == "model-based":
        return ModelBased()
    episode = default_horizon(budget.gamma) + 1.5 / (1.0 - budget.gamma)
    affordable = int(budget.learning_of_a_round / (BATCHES_A_ROUND * episode))
    kind = TRPO if name == "trpo" else Reinforce
    return kind(updates=UNTIL_SPENT, episodes=min(max(affordable, 5), FULL_BATCH))


@contextmanager
def _claim(target: Path, world: TabularWorld | GymWorld, layout: int | None, look: int | None) -> Iterator[None]:
    """Make the folder this world's, or refuse one that is something else's or in use."""
    by_steps = isinstance(world, GymWorld)
    wanted: dict[str, Any] = (
        world.discretisation.description() if isinstance(world, GymWorld) else {TABLE: world.identity()["digest"]}
    )
    wanted |= {} if layout is None else {LAYOUT: layout}
    folder = run_folder(target)
    finished = any((target / ROUNDS).glob("round-*")) or (target / ROUNDS / COUNTS_FILE).exists()
    if look is not None and not (finished and folder.claimed and LOOK_STEPS not in folder.settings()):
        wanted[LOOK_STEPS] = look  # folders of earlier versions do not say
    if folder.claimed and finished:
        found = folder.settings()
        if by_steps and TABLE in found:
            raise CheckpointError(
                f"{target} holds a run on the environment's table of transitions; choose another folder, or leave "
                "--cells out to go on with it"
            )
        if not by_steps and TABLE not in found:
            raise CheckpointError(
                f"{target} holds a run that steps in the environment; choose another folder, or give the --cells it "
                "was made with to go on with it"
            )
        if not by_steps and found != wanted:
            raise CheckpointError(f"{target} holds a run on another MDP; choose another folder")
    # Where nothing was finished, whoever was told to try other cells may do so in the same folder.
    with folder.claim(wanted, replace=not finished):
        if not finished:
            (target / ROUNDS / SETTINGS_FILE).unlink(missing_ok=True)
            (target / MDP_FILE).unlink(missing_ok=True)
        yield
