"""`GymWorld`: any Gymnasium environment as a world to explore, by restart and step alone.

States are cells of observations, actions are numbers of an action set. Each call takes its own random numbers and
reseeds the environment, so that what a call returns depends on the seed, on how many calls came before it and on the
cells discovered by them: a run that is resumed gives what an uninterrupted one gives, as far as the environment obeys
its seed.

Time limits do not end walks or episodes (see `time_limits`), and a terminated episode is absorbing, as in the theory:
it stays in its cell for ever and goes on earning what a given reward pays there (nothing, by the environment's own).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from curious_explorer.arrays import Indices, Integers
from curious_explorer.errors import CellError, CheckpointError
from curious_explorer.gym.action_set import ActionSet
from curious_explorer.gym.actors import ActorCache, RandomStream
from curious_explorer.gym.automatic_cells import LOOK, choose_cells
from curious_explorer.gym.cell_descriptions import cells_from_description
from curious_explorer.gym.cell_refits import refitted
from curious_explorer.gym.cells import Cells, Env, FunctionCells, QuantileCells
from curious_explorer.gym.coded_cells import ROOM
from curious_explorer.gym.discovered_cells import LayoutCells
from curious_explorer.gym.discretisation import Discretisation, without_addresses
from curious_explorer.gym.make_env import maker_of
from curious_explorer.gym.one_life import OneLife
from curious_explorer.gym.picture_cells import PictureCells
from curious_explorer.gym.rollouts import (
    RollInSampler,
    Rollout,
    RolloutCollector,
    random_observations,
    reset_by_roll_in,
)
from curious_explorer.gym.snapshots import Snapshots
from curious_explorer.gym.stepped_environments import (
    VECTORIZATIONS,
    SingleEnvironment,
    SteppedEnvironments,
    VectorEnvironment,
    make_vector_environment,
)
from curious_explorer.validation import check_count, check_seed
from curious_explorer.worlds import random_streams as random
from curious_explorer.worlds.episode_accumulator import EpisodeAccumulator
from curious_explorer.worlds.policies import Policy, check_any_policy
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.stored_discretisation import StoredDiscretisation
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, Step, World

MOST_LAYOUTS = 1_000_000
LATELY = 4_000
"""How many of the last cells that were stood in tell whether small pictures are fine enough."""


class GymWorld(World):
    """A Gymnasium environment as a world of cells and action numbers, with every step counted.

    Args:
        env: an id, an environment, a function that makes one, or a vector environment that does not reset by itself.
        cells: from observations to cells: one of `curious_explorer.gym`'s. None: chosen from the observation space and
            from a first look whose steps are counted (see `automatic_cells`); `describe` says
            what came of it. Observations that are whole numbers are their own cells.
        actions: for continuous actions, how many values along each dimension; or a list of actions, or an `ActionSet`.
            None for a small set that includes the extremes and nothing, held for several steps where one step is found
            to change next to nothing when cells are chosen.
        seed: where all of this world's randomness comes from.
        num_envs: how many environments are stepped together.
        vectorization: "sync" (in this process) or "async" (one process for each), where there are several.
        layout: a seed that every episode is reset with, for environments that draw a new layout at every reset; only
            the layout repeats, other random numbers of the environment go on. None: as the environment likes.
        layouts: the same for many layouts, one of which every restart draws: seeds, such as ``range(45)``, or anything
            that gives so many. States are apart by layout; `explore` explores each from its own restart.
        time_limits: whether the environment's own time limits end episodes of single steps, which they do not unless
            asked to.
        look: the most steps that choosing cells may take.
        max_cells: the room for cells that are discovered, where cells are chosen.
        snapshots: whether roll-ins to chosen cells may restore saved states of the environment, which takes no steps:
            `samples` counts what was stepped, `samples_saved` what restores saved. The environment is checked at once,
            by steps that are counted; one that cannot be restored is a `SnapshotError`.
        hold: for how many steps to hold actions at least, where cells are chosen and are bins of numbers (see
            `choose_cells`).
    """

    def __init__(
        self,
        env: str | Env | VectorEnv[Any, Any, Any] | Callable[[], Env],
        *,
        cells: Cells | None = None,
        actions: int | Sequence[Any] | ActionSet | None = None,
        seed: int = 0,
        num_envs: int = 1,
        vectorization: str = "sync",
        layout: int | None = None,
        layouts: Iterable[int] | None = None,
        time_limits: bool = False,
        look: int = LOOK,
        max_cells: int = ROOM,
        snapshots: bool = False,
        hold: int = 1,
    ) -> None:
        self.seed = check_seed(seed)
        self._layout = None if layout is None else check_seed(layout, "layout")
        if layout is not None and layouts is not None:
            raise ValueError(f"layout is {layout} and layouts are given, too; give one of the two")
        if layouts is not None:
            self.layouts = check_layouts(layouts)
        if (layout is not None or layouts is not None or time_limits) and num_envs > 1:
            raise ValueError(
                f"num_envs is {num_envs}, but a layout and time limits can be kept in one environment only"
            )
        self._time_limits, self._look = bool(time_limits), check_count(look, "look")
        self._hold = check_count(hold, "hold", least=1)
        self._max_cells = check_count(max_cells, "max_cells", least=1)
        check_count(num_envs, "num_envs", least=1)
        if vectorization not in VECTORIZATIONS:
            raise ValueError(f"vectorization is {vectorization!r}, expected one of {', '.join(VECTORIZATIONS)}")
        if cells is not None and not isinstance(cells, Cells):
            raise ValueError(
                f"cells is {cells!r}, expected an object such as GridCells(20, low, high); a function needs to say how "
                "many cells there are: FunctionCells(function, count)"
            )
        if cells is not None:  # a copy: worlds that are given the same cells discover each its own
            cells = cells.recalling(cells.discovered(), growing=True)
        self.calls = 0
        self._other_samples = 0  # steps that were not taken in `_environments`
        self._chosen = cells is None and not isinstance(env, VectorEnv) and layouts is None
        self._refits, self._fitted_at = (
            0,
            0,
        )  # how often chosen cells were changed, and the samples since when they count
        self.notes: list[str] = []
        """What was found out when cells were chosen, in sentences."""
        self._lately: deque[int] = deque(maxlen=LATELY)  # the last cells, of small pictures
        self.advised_memory = 0
        """How many earlier contents of observations are worth remembering; see `gym.memory`."""
        self._make: Callable[[], Env] | None = None
        self._arguments: dict[str, Any] = {}  # what the environment was made with
        if isinstance(env, VectorEnv):
            self._environments: SteppedEnvironments = self._open_vector(env, cells, actions)
        else:
            self._environments = self._open(env, cells, actions, num_envs, vectorization)
        self._kept_actors: ActorCache | None = None
        self._in_episode = False  # whether single steps can be taken
        self._step_stream: RandomStream | None = None  # of episodes of single steps, begun one after the other
        self._snapshots = self._checked_snapshots() if snapshots else None
        self._saved_before = 0  # samples that were saved before a `restore`

    def _checked_snapshots(self) -> Snapshots:
        env = self._environments
        if not isinstance(env, SingleEnvironment) or self.layouts:
            raise ValueError(
                "snapshots are of one environment with one layout; make the world with num_envs=1, without layouts, "
                "or leave snapshots off"
            )
        snapshots = Snapshots(env)
        snapshots.prepare(seed=self.seed)
        return snapshots

    def _open_vector(
        self, envs: VectorEnv[Any, Any, Any], cells: Cells | None, actions: int | Sequence[Any] | ActionSet | None
    ) -> VectorEnvironment:
        self._arguments = {} if envs.spec is None else envs.spec.kwargs
        if isinstance(cells, QuantileCells) and not cells.fitted:
            raise CellError(
                "the quantiles are not known yet, and a vector environment has no warm-up; give GymWorld an id and "
                "num_envs, or the cells of a world that has had one: GymWorld(id, cells=...).discretisation.cells"
            )
        return VectorEnvironment(envs, Discretisation.of_vector(envs, cells, actions))

    def _open(
        self,
        env: Any,
        cells: Cells | None,
        actions: int | Sequence[Any] | ActionSet | None,
        num_envs: int,
        vectorization: str,
    ) -> SteppedEnvironments:
        if not isinstance(env, (str, gymnasium.Env)) and not callable(env):
            raise ValueError(
                f"env is {env!r}, expected an id such as 'MountainCar-v0', an environment, or a function that makes one"
            )
        first: Env = env if isinstance(env, gymnasium.Env) else maker_of(env)()
        if not isinstance(first, gymnasium.Env):
            raise ValueError(f"the function {env!r} made {first!r}, expected an environment of Gymnasium's")
        self._arguments = {} if first.spec is None else first.spec.kwargs
        if not isinstance(env, gymnasium.Env) or env.spec is not None:
            self._make = maker_of(env)
        if cells is None:
            cells, actions, lives = self._choose_cells(first, actions, held=num_envs == 1)
            first = OneLife(first) if lives and num_envs == 1 else first
        discretisation = self._fit_quantiles(Discretisation.of(first, cells, actions), first)
        if num_envs == 1:
            layouts = self.layouts if self._layout is None else (self._layout,)
            if self.layouts:
                apart = LayoutCells(discretisation.cells, len(self.layouts))
                discretisation = discretisation._replace(cells=apart)
            return SingleEnvironment(first, discretisation, layouts=layouts, time_limits=self._time_limits)
        make = maker_of(env)
        first.close()
        return make_vector_environment(make, num_envs, vectorization, discretisation)

    def _choose_cells(
        self, env: Env, actions: int | Sequence[Any] | ActionSet | None, *, held: bool
    ) -> tuple[Cells, ActionSet, bool]:
        """Look at the environment and choose: cells, for how long to hold actions, and whether a life is an episode.

        The steps are counted.
        """
        bare = Discretisation.of(env, FunctionCells(lambda observation: 0, 1), actions)
        seed = int(np.random.default_rng([self.seed, 17]).integers(1 << 31))
        layouts = self.layouts if self._layout is None else (self._layout,)
        chosen = choose_cells(env, bare, seed, layouts, look=self._look, max_cells=self._max_cells, hold=self._hold)
        self.notes, self.advised_memory = chosen.notes, chosen.memory
        # Of what is seen through other cells than small pictures it was not tried whether stored ways are of use.
        self.repeats = chosen.repeats and _small(chosen.cells)
        self._other_samples += chosen.steps
        found = bare.action_set
        return chosen.cells, found.held(chosen.hold) if held and actions is None else found, chosen.lives

    def _fit_quantiles(self, discretisation: Discretisation, env: Env) -> Discretisation:
        """Take the warm-up of cells that are cut at quantiles; its steps are counted."""
        cells = discretisation.cells
        if not isinstance(cells, QuantileCells) or cells.fitted:
            return discretisation
        stream, seeds = self._next_stream()
        observations = random_observations(env, discretisation, cells.warm_up, stream, next(seeds))
        self._other_samples += cells.warm_up
        return discretisation._replace(cells=cells.fitted_to(observations))

    # What it is ---------------------------------------------------------------------------------------------------

    @property
    def discretisation(self) -> Discretisation:
        """The cells and actions that tables over this world's states and actions are about."""
        return self._environments.discretisation

    def stored_discretisation(self) -> StoredDiscretisation:
        """The discretisation as plain data, with the cells discovered so far."""
        return self.discretisation.stored()

    def describe(self) -> str:
        """Cells and actions in words, with what was found out when cells were chosen."""
        cells, action_set = self.discretisation.cells, self.discretisation.action_set
        taken = f" The look took {self._other_samples:,} steps." if self.notes and self._other_samples else ""
        changes = self._refits - 1  # the first time that it was asked changed nothing
        changed = f" Cells were changed {changes} times on the way." if changes > 0 else ""
        words = [f"Cells: {cells.describe()}.", f"Actions: {action_set.describe()}.", *self.notes]
        return " ".join(words) + taken + changed

    @property
    def num_states(self) -> int:
        """How many cells there are, or may be."""
        return self.discretisation.cells.count

    @property
    def num_actions(self) -> int:
        """How many actions are in the action set."""
        return len(self.discretisation.action_set)

    @property
    def most_samples_a_step(self) -> int:
        """For how many steps of the environment an action is held."""
        return self.discretisation.action_set.hold

    @property
    def samples(self) -> int:
        """How many steps have been taken so far."""
        return self._other_samples + self._environments.steps

    @property
    def samples_saved(self) -> int:
        """How many more there would be, at least, had roll-ins that were restores been stepped."""
        return self._saved_before + (0 if self._snapshots is None else self._snapshots.steps_saved)

    def identity(self) -> dict[str, Any]:
        """What tells this world from others, as plain data."""
        description = self.discretisation.description()
        content = json.dumps(
            [description, self._arguments], sort_keys=True, default=lambda argument: without_addresses(repr(argument))
        )
        return {
            "kind": "gymnasium",
            "num_states": self.num_states,
            "num_actions": self.num_actions,
            "seed": self.seed,
            "num_envs": self._environments.count,
            "digest": hashlib.sha256(content.encode()).hexdigest(),
            "discretisation": description,
            **({} if self._layout is None else {"layout": self._layout}),
            **({"layouts": list(self.layouts)} if self.layouts else {}),
            **({"time_limits": True} if self._time_limits else {}),
            **({"snapshots": True} if self._snapshots is not None else {}),
        }

    def position(self) -> dict[str, Any]:
        """Where this world stands; an episode in progress is given up, since an environment cannot be put back."""
        self._in_episode, self._step_stream = False, None
        cells = self.discretisation.cells
        position = {"samples": self.samples, "calls": self.calls, "discovered": cells.discovered()}
        if self._refits:
            position |= {"cells": cells.description(), "refits": self._refits, "fitted_at": self._fitted_at}
        if self._snapshots is not None:
            position["samples_saved"] = self.samples_saved
        return position

    def restore(self, position: dict[str, Any]) -> None:
        """Go back, or on, to a `position`."""
        self._other_samples = check_count(position["samples"], "samples") - self._environments.steps
        self.calls = check_count(position["calls"], "calls")
        self._in_episode, self._step_stream = False, None
        if self._snapshots is not None:
            saved = check_count(position.get("samples_saved", 0), "samples_saved")
            self._saved_before = saved - self._snapshots.steps_saved
        cells = self.discretisation.cells
        if "cells" in position:
            try:
                cells = cells_from_description(position["cells"], cells.function)
            except (KeyError, TypeError, ValueError) as error:
                raise CheckpointError(f"the cells of the checkpoint cannot be read: {error}") from error
            self._refits, self._fitted_at = (check_count(position[name], name) for name in ("refits", "fitted_at"))
            cells.let_room_grow()
        cells = cells.recalling(position.get("discovered", []), growing=True)
        self._lately.clear()
        self._environments.discretisation = self.discretisation._replace(cells=cells)

    def refit(self, met: int, *, exhausted: bool, rewarded: bool) -> Integers | None:
        """Make chosen cells finer or coarser, if need be; cells that were given stay as they are."""
        if not self._chosen:
            return None
        cells = self.discretisation.cells
        self._refits = max(1, self._refits)
        cells.let_room_grow()
        since = self.samples - self._fitted_at
        lately = (len(set(self._lately)), len(self._lately)) if _small(cells) else None
        made = refitted(cells, met, since, self.num_actions, exhausted=exhausted, rewarded=rewarded, lately=lately)
        if made is None:
            return None
        self._lately.clear()
        changed, now = made
        changed.let_room_grow()
        self._environments.discretisation = self.discretisation._replace(cells=changed)
        self._in_episode, self._refits = False, self._refits + 1
        if not len(now):
            self._fitted_at = self.samples
        return now

    def close(self) -> None:
        """Close the environments."""
        self._environments.close()

    def make_environment(self) -> Env:
        """Another environment like this world's, for a learner that steps by itself; see `count_samples`."""
        if self._make is None:
            raise ValueError(
                "this world was given an environment of which no second one can be made; give GymWorld an id or a "
                "function that makes the environment"
            )
        return self._make()

    def opener(self, layout: int | None) -> Callable[[], GymWorld]:
        """What makes a world of one layout with cells of its own, or without any for None; it can be pickled.

        It steps an environment of its own where one can be made, and this world's otherwise. Its steps are its own:
        see `count_samples`.
        """
        if layout is not None and layout not in self.layouts:
            raise ValueError(f"layout is {layout}, expected one of this world's {len(self.layouts)} layouts")
        cells = self.discretisation.cells
        within = cells.cells if isinstance(cells, LayoutCells) else cells
        env = self._environments
        assert isinstance(env, SingleEnvironment)
        return partial(
            GymWorld,
            env.env if self._make is None else self._make,
            cells=within.recalling([], growing=True),
            actions=self.discretisation.action_set,
            seed=self.seed if layout is None else int(random.stream_key(np.uint64(self.seed), np.uint64(layout))) >> 33,
            layout=layout,
            time_limits=self._time_limits,
        )

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The environment's own."""
        return self._environments.observation_space

    def observation(self) -> Any:
        """What the agent sees in the current episode; None where several environments are stepped together."""
        env = self._environments
        return env.observations[0] if isinstance(env, SingleEnvironment) else None

    def count_samples(self, steps: int) -> None:
        """Count steps that were taken in an environment from `make_environment`, or in a world from `opener`."""
        self._other_samples += check_count(steps, "steps")

    # Walks and episodes ---------------------------------------------------------------------------------------------

    def walk(self, roll_in: RollIn, count: int) -> Indices:
        """The cells in which ``count`` independent walks end."""
        sampler = self._sampler(roll_in)
        ends = np.zeros(check_count(count, "count"), dtype=np.int32)

        def on_end(rollout: Rollout) -> None:
            ends[rollout.number] = rollout.cell

        stream, collector = self._collector(on_end)
        collector.run(Rollout(number, sampler, stream) for number in range(len(ends)))
        return ends

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes; a policy that sees observations leaves no advantages."""
        shape = (self.num_states, self.num_actions)
        checked = check_any_policy(policy, *shape)
        accumulator = EpisodeAccumulator(checked, batch, shape, f"the environment {self.discretisation.environment}")
        actor, sampler = self._actors().actor(checked), self._sampler(batch.reset)

        def on_end(rollout: Rollout) -> None:
            assert rollout.trajectory is not None
            accumulator.add(rollout.trajectory, rollout.cell, rollout.terminated)

        stream, collector = self._collector(on_end, batch.max_samples)
        horizon = self._actors().steps(actor, batch.horizon)
        collector.run(Rollout(number, sampler, stream, actor, horizon) for number in range(batch.episodes))
        return accumulator.result(collector.steps)

    # One step at a time -------------------------------------------------------------------------------------------

    def action_of(self, number: int) -> Any:
        """The environment's action of this number."""
        return self.discretisation.action_set.choices[number]

    def restart(self) -> int:
        """Begin an episode from the environment's own start; returns its cell."""
        cell = self.begin()
        assert cell is not None
        return cell

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends; returns its cell, or None if ``max_samples`` were not enough.

        The environment is reseeded, and other random numbers begin, only at the first call after walks or episodes.
        """
        env = self._environments
        if not isinstance(env, SingleEnvironment):
            raise ValueError(
                f"this world steps {env.count} environments together, but single steps are taken in one; make the "
                "world with num_envs=1 for single steps and for optimizers that learn at every step"
            )
        self._in_episode = False
        if max_samples is not None and check_count(max_samples, "max_samples") == 0:
            return None
        sampler, before = self._sampler(reset), env.steps
        seed = None
        if self._step_stream is None:
            self._step_stream, seeds = self._next_stream()
            seed = next(seeds)
        stream, snapshots = self._step_stream, self._snapshots
        if snapshots is not None:
            snapshots.prepare(seed)
        failed = reset_by_roll_in(env, sampler, stream, seed=seed, max_steps=max_samples, snapshots=snapshots)
        self._in_episode = failed is not None and (max_samples is None or env.steps - before < max_samples)
        return env.cells[0] if self._in_episode else None

    def step(self, action: int) -> Step:
        """Take one action in the current episode."""
        if not self._in_episode:
            raise RuntimeError("no episode is in progress; call restart() first")
        env = self._environments
        assert isinstance(env, SingleEnvironment)  # no episode of single steps begins in others
        choices = env.discretisation.action_set.choices
        if not isinstance(action, (int, np.integer)) or not 0 <= action < len(choices):
            raise ValueError(f"action is {action!r}, expected a whole number from 0 to {len(choices) - 1}")
        step = env.step(choices[action])
        if self._chosen:
            self._lately.append(step.state)
        if step.terminated or step.truncated:
            self._in_episode = False
        return step

    def parts(self) -> Mapping[str, Hashable] | None:
        """What the cell that the episode stands in is made of, where the cells know."""
        env = self._environments
        if not isinstance(env, SingleEnvironment):
            return None
        return env.discretisation.cells.parts(env.observations[0], env.env)

    # What the calls above share -------------------------------------------------------------------------------------

    def _sampler(self, reset: RollIn | None) -> RollInSampler:
        return RollInSampler(RollIn.from_start() if reset is None else reset, self._actors())

    def _actors(self) -> ActorCache:
        """Actors for tables over as many cells as there may be now."""
        if self._kept_actors is None or self._kept_actors.num_states != self.num_states:
            action_set = self.discretisation.action_set
            self._kept_actors = ActorCache(self.num_states, action_set.choices, action_set.hold)
        return self._kept_actors

    def _collector(
        self, on_end: Callable[[Rollout], None], max_steps: int | None = None
    ) -> tuple[RandomStream, RolloutCollector]:
        """The random numbers and the collector of one call; an episode of single steps is given up for it."""
        self._in_episode, self._step_stream = False, None
        stream, seeds = self._next_stream()
        return stream, RolloutCollector(self._environments, stream, seeds, on_end, max_steps, snapshots=self._snapshots)

    def _next_stream(self) -> tuple[RandomStream, Iterator[int]]:
        """Random numbers that no call has used before, and a seed for each environment."""
        key = int(random.stream_key(np.uint64(self.seed), np.uint64(self.calls)))
        self.calls += 1
        return RandomStream(key), (int(random.walk_key(np.uint64(key), index)) >> 33 for index in itertools.count())


def _small(cells: Cells) -> bool:
    """Whether these are pictures made small, which mix what differs in what they do not show."""
    return isinstance(cells, PictureCells) and cells.rows is not None


def check_layouts(layouts: Iterable[int]) -> tuple[int, ...]:
    """Seeds of layouts, all different, as a tuple."""
    try:
        seeds = tuple(itertools.islice((check_seed(seed) for seed in layouts), MOST_LAYOUTS + 1))
    except TypeError:
        raise ValueError(f"layouts is {layouts!r}, expected seeds, such as range(45)") from None
    if not 1 <= len(seeds) <= MOST_LAYOUTS:
        raise ValueError(f"there are {len(seeds)} layouts or more, expected from 1 to {MOST_LAYOUTS:,}")
    twice = [seed for seed, times in Counter(seeds).items() if times > 1]
    if twice:
        raise ValueError(f"layouts has the seed {twice[0]} more than once, expected different seeds")
    return seeds
