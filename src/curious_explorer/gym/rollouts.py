"""Rollouts in an environment: walks, and episodes that begin where a roll-in ends.

A walk restarts, draws a chain of policies and follows each for a geometric number of steps, as the compiled worlds do.
A terminated episode stays where it is for ever, so a walk that terminates is at its end; an episode must begin in a
state that is not terminal, so its roll-in is repeated, and all of its steps are counted. A roll-in that is to go to a
chosen cell is repeated until it arrives, for walks and episodes alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Protocol

import numpy as np

from curious_explorer.gym.actors import (
    Actor,
    ActorCache,
    ObservationActor,
    RandomStream,
    TableActor,
    TargetActor,
    cumulate,
)
from curious_explorer.gym.cells import Env, FunctionCells
from curious_explorer.gym.discretisation import Discretisation
from curious_explorer.gym.snapshots import Snapshots
from curious_explorer.gym.stepped_environments import SingleEnvironment, SteppedEnvironments, VectorEnvironment
from curious_explorer.worlds.episode_accumulator import Trajectory
from curious_explorer.worlds.roll_in import NO_GOAL, RollIn

MAX_FAILED_ROLL_INS = 10_000
"""After so many roll-ins in a row that ended in a terminal state an error is raised, instead of trying for ever."""


class RollInSampler:
    """Draws from a roll-in: which cell to go to, if any, which policies to follow, and for how many steps each."""

    def __init__(self, roll_in: RollIn, actors: ActorCache) -> None:
        self._actors = actors.roll_in_actors(roll_in.policies)
        self._gammas = roll_in.gammas
        self._cumulative = cumulate(roll_in.weights)
        tail = list(range(len(roll_in.policies) - roll_in.tail, len(roll_in.policies)))
        self._chains = [[*range(first, stop), *tail] for first, stop in roll_in.chains.tolist()]
        assert roll_in.goals is not None
        self._goals: list[int] = roll_in.goals.tolist()
        self._targets, self._target_actor, self._steps = roll_in.targets, actors.target_actor, actors.steps

    def sample(self, stream: RandomStream) -> list[tuple[Actor, int]]:
        """A chain of actors with their numbers of steps, the last one first; a `TargetActor` has its limit."""
        number = stream.choice(self._cumulative)
        steps = self._steps
        walked = [
            (self._actors[i], steps(self._actors[i], stream.stopping_time(self._gammas[i])))
            for i in reversed(self._chains[number])
        ]
        if self._targets is None or self._goals[number] == NO_GOAL:
            return walked
        actor = self._target_actor(self._targets, self._goals[number])
        return [*walked, (actor, steps(actor, actor.limit))]

    def settles(self, cell: int) -> bool:
        """Whether an episode may begin in this cell, where a roll-in ran out of steps on its way: here it may not."""
        return False

    def check_misses(self, missed: int) -> None:
        """Raise an error if so many roll-ins in a row that missed their target are too many."""
        if self._targets is not None and missed >= self._targets.tries:
            self._targets.refuse()


class ChainSampler(Protocol):
    """Draws roll-ins, as `RollInSampler` does."""

    def sample(self, stream: RandomStream) -> list[tuple[Actor, int]]:
        """A chain of actors with their numbers of steps, the last one first; a `TargetActor` has its limit."""

    def settles(self, cell: int) -> bool:
        """Whether an episode may begin in this cell, where a roll-in ran out of steps on its way."""

    def check_misses(self, missed: int) -> None:
        """Raise an error if so many roll-ins in a row that missed their target are too many."""


def reset_by_roll_in(
    env: SingleEnvironment,
    sampler: ChainSampler,
    stream: RandomStream,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    max_steps: int | None = None,
    snapshots: Snapshots | None = None,
) -> int | None:
    """Begin an episode where a roll-in ends, repeated while it ends in a terminal state; time limits restart there.

    Chosen cells are restored from ``snapshots``, if they are given and have them, without a step.
    Returns how many roll-ins were repeated, or None if ``max_steps`` were not enough.
    """
    last = None if max_steps is None else env.steps + max_steps
    missed = 0
    for failed in range(MAX_FAILED_ROLL_INS):
        env.reset(seed=seed if failed == 0 else None, options=options)
        outcome = _follow_chain(env, sampler.sample(stream), stream, last, snapshots)
        if outcome == FOLLOWED or (outcome == LATE and sampler.settles(env.cells[0])):
            env.restart_time_limits()
            return failed
        if last is not None and env.steps >= last:
            return None
        missed = missed + 1 if outcome in (MISSED, LATE) else 0
        sampler.check_misses(missed)
    refuse_roll_in()


FOLLOWED, ENDED, MISSED, LATE = range(4)
"""How the chain of a roll-in went: to its end; to the end of the episode, or of the steps; not to its target; not in
time, or not away from where it began, so that it can be stepped on from there."""


def _follow_chain(
    env: SingleEnvironment,
    chain: list[tuple[Actor, int]],
    stream: RandomStream,
    last: int | None,
    snapshots: Snapshots | None,
) -> int:
    """Follow a chain until the environment's step number ``last``; a step that ends the episode is not `FOLLOWED`."""
    for actor, steps in reversed(chain):
        allowed = steps if last is None else min(steps, last - env.steps)
        if isinstance(actor, TargetActor):
            restored = None if snapshots is None else snapshots.restore(actor, stream)
            if restored is not None:
                if not restored:
                    return MISSED
                continue
            taken, arrived = env.go_to(actor, allowed, stream)
            if arrived or taken < allowed or allowed == steps:  # not cut off by `last`
                actor.note(arrived, taken)
            if not arrived:
                stopped = taken >= steps or taken == 0
                return LATE if stopped and not (env.terminated or env.truncated) else MISSED
            if env.terminated or env.truncated:
                return ENDED
            if snapshots is not None:
                snapshots.keep(actor.target, taken)
            continue
        env.run(actor, allowed, stream)
        if env.terminated or env.truncated or allowed < steps:
            return ENDED
    return FOLLOWED


def refuse_roll_in() -> NoReturn:
    """Raise that all roll-ins ended in terminal states."""
    raise ValueError(
        f"{MAX_FAILED_ROLL_INS:,} roll-ins in a row ended in a terminal state; an episode needs a reset model that "
        "reaches states that are not terminal"
    )


class Rollout:
    """One walk, or one episode if ``episode_actor`` acts after the roll-in, for at most ``horizon`` steps.

    ``actor`` is who acts now (None: it has ended), for at most ``steps_left`` steps. ``trajectory`` has the steps of an
    episode, without its roll-in; it is None before the episode begins.
    """

    __slots__ = (  # made for every episode: 4% of what a short one costs
        "_allowed",
        "_chain",
        "_episode_actor",
        "_horizon",
        "_sampler",
        "_stream",
        "_target",
        "actor",
        "cell",
        "failed_roll_ins",
        "missed",
        "number",
        "steps_left",
        "terminated",
        "trajectory",
    )

    def __init__(
        self,
        number: int,
        sampler: RollInSampler,
        stream: RandomStream,
        episode_actor: Actor | None = None,
        horizon: int = 0,
    ) -> None:
        self.number = number
        self._sampler, self._stream = sampler, stream
        self._episode_actor, self._horizon = episode_actor, horizon
        self.trajectory: Trajectory | None = None
        self.failed_roll_ins = self.missed = 0
        self.terminated = False

    def begin(self, cell: int) -> bool:
        """Start, or start again, where the environment was reset; returns whether that must be repeated."""
        self.cell = cell
        self._chain = self._sampler.sample(self._stream)
        self._target: TargetActor | None = None
        self._next_actor()
        return self._target is not None and self._misses(ended=False)

    def _next_actor(self) -> None:
        self._target = None
        while self._chain:
            self.actor: Actor | None
            self.actor, self.steps_left = self._chain.pop()
            if isinstance(self.actor, TargetActor):
                self._target, self._allowed = self.actor, self.steps_left
                if self.cell != self.actor.target:
                    return
                self._arrive()
            elif self.steps_left > 0:
                return
        if self._episode_actor is None or self.trajectory is not None:
            self.actor = None
        else:
            self.actor, self.steps_left, self.trajectory = self._episode_actor, self._horizon, []

    def _arrive(self) -> None:
        assert self._target is not None
        self._target.note(True, self._allowed - self.steps_left)
        self._target, self.missed = None, 0

    def _misses(self, *, ended: bool) -> bool:
        """Whether the target that is not reached yet is given up; then the roll-in has failed."""
        assert self._target is not None
        if not ended and self.steps_left > 0 and self._target.knows_way(self.cell):
            return False
        self._target.note(False, 0)
        self._give_up()
        return True

    def _give_up(self) -> None:
        self._target = None
        self.missed += 1
        self.failed_roll_ins += 1
        self._sampler.check_misses(self.missed)

    def restore(self, arrived: bool, cell: int) -> bool:
        """Take in a restore in place of going to the target, which is no try; whether the roll-in must be repeated."""
        if not arrived:
            self._give_up()
            return True
        self.cell, self.missed = cell, 0
        self._next_actor()
        return False

    @property
    def at_episode_start(self) -> bool:
        """Whether the roll-in is over and the episode's first step comes next."""
        return self.trajectory is not None and not self.trajectory

    def advance(self, steps: int, cell: int, terminated: bool, truncated: bool) -> bool:
        """Take in the result of some steps; returns whether the roll-in failed and must be repeated."""
        self.cell = cell
        self.steps_left -= steps
        if self._target is not None:
            if cell != self._target.target:
                return self._misses(ended=terminated or truncated)
            self._arrive()
            self.steps_left = 0
        if terminated or truncated:
            if self._episode_actor is not None and self.trajectory is None:
                self.failed_roll_ins += 1
                return True
            self.terminated = terminated
            self.actor = None
        elif self.steps_left == 0:
            self._next_actor()
        return False


class RolloutCollector:
    """Collects rollouts, one at a time in each environment.

    Args:
        environments: where to act.
        stream: the random numbers.
        seeds: for the environments, each of which is seeded once.
        on_end: called with every rollout that has ended, in the order of their ends.
        max_steps: how many steps may be taken; every step of every environment counts, those of idle ones included.
        snapshots: the saved states of the environment, if it is one and they are allowed.
    """

    def __init__(
        self,
        environments: SteppedEnvironments,
        stream: RandomStream,
        seeds: Iterator[int],
        on_end: Callable[[Rollout], None],
        max_steps: int | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._environments, self._stream, self._seeds, self._on_end = environments, stream, seeds, on_end
        self._snapshots = snapshots
        self._seeded: set[int] = set()
        self._first = environments.steps
        self._max_steps = max_steps

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._environments.steps - self._first

    def run(self, rollouts: Iterable[Rollout]) -> None:
        """Collect all rollouts, or as many as ``max_steps`` allows; an episode that is cut short by it counts."""
        if isinstance(self._environments, SingleEnvironment):
            self._run_single(self._environments, iter(rollouts))
        elif isinstance(self._environments, VectorEnvironment):
            self._run_vector(self._environments, iter(rollouts))

    def _run_single(self, env: SingleEnvironment, rollouts: Iterator[Rollout]) -> None:
        while (rollout := self._begin_next(0, rollouts)) is not None:
            while rollout.actor is not None:
                left = rollout.steps_left
                allowed = left if self._max_steps is None else min(left, self._max_steps - self.steps)
                if allowed <= 0:
                    if rollout.trajectory:
                        self._on_end(rollout)
                    return
                if rollout.at_episode_start:
                    env.restart_time_limits()
                if isinstance(rollout.actor, TargetActor):
                    failed = self._go_to(env, rollout, rollout.actor, allowed)
                else:
                    steps = env.run(rollout.actor, allowed, self._stream, rollout.trajectory)
                    failed = rollout.advance(steps, env.cells[0], env.terminated, env.truncated)
                if failed:
                    self._begin_again(0, rollout)
            self._on_end(rollout)

    def _go_to(self, env: SingleEnvironment, rollout: Rollout, actor: TargetActor, allowed: int) -> bool:
        """Go to a rollout's target, by a restore where its state was saved; whether the rollout must be repeated."""
        snapshots = self._snapshots
        restored = None if snapshots is None else snapshots.restore(actor, self._stream)
        if restored is not None:
            return rollout.restore(restored, env.cells[0])
        steps, arrived = env.go_to(actor, allowed, self._stream)
        if snapshots is not None and arrived and not (env.terminated or env.truncated):
            snapshots.keep(actor.target, steps)
        return rollout.advance(steps, env.cells[0], env.terminated, env.truncated)

    def _run_vector(self, envs: VectorEnvironment, rollouts: Iterator[Rollout]) -> None:
        active = [self._begin_next(index, rollouts) for index in range(envs.count)]
        for index in range(envs.count):
            if index not in self._seeded and any(active):
                self._reset(index)  # all are stepped together, so all must have been reset
        while any(active) and (self._max_steps is None or self.steps + envs.count <= self._max_steps):
            cells = envs.cells.copy()
            chosen = self._choose(envs, active)
            results = envs.step([action for _, action in chosen])
            for index, (rollout, result) in enumerate(zip(active, results, strict=True)):
                if rollout is not None:
                    if rollout.trajectory is not None:
                        rollout.trajectory.append((cells[index], chosen[index][0], result.reward))
                    if rollout.advance(1, result.state, result.terminated, result.truncated):
                        self._begin_again(index, rollout)
                    elif rollout.actor is None:
                        self._on_end(rollout)
                        active[index] = self._begin_next(index, rollouts)
                if active[index] is None and (result.terminated or result.truncated):
                    self._reset(index)  # an idle environment is stepped with the others
        for rollout in active:
            if rollout is not None and rollout.trajectory:
                self._on_end(rollout)

    def _begin_next(self, index: int, rollouts: Iterator[Rollout]) -> Rollout | None:
        """The next rollout that takes a step, at its start; those that take none end at once."""
        while self._max_steps is None or self.steps < self._max_steps:
            rollout = next(rollouts, None)
            if rollout is None:
                return None
            self._begin(index, rollout)
            if rollout.actor is not None:
                return rollout
            self._on_end(rollout)
        return None

    def _begin_again(self, index: int, rollout: Rollout) -> None:
        if rollout.failed_roll_ins >= MAX_FAILED_ROLL_INS:
            refuse_roll_in()
        self._begin(index, rollout)

    def _begin(self, index: int, rollout: Rollout) -> None:
        self._reset(index)
        while rollout.begin(self._environments.cells[index]):  # no way is known from there
            self._reset(index)

    def _reset(self, index: int) -> None:
        seed = None if index in self._seeded else next(self._seeds)
        self._seeded.add(index)
        if self._snapshots is not None:
            self._snapshots.prepare(seed)
        self._environments.reset(index, seed)

    def _choose(self, envs: VectorEnvironment, active: list[Rollout | None]) -> list[tuple[int, Any]]:
        """An action for every environment; a policy that sees observations is asked for all of its actions at once."""
        chosen: list[tuple[int, Any]] = []
        batches: dict[int, list[int]] = {}
        for index, rollout in enumerate(active):
            actor = None if rollout is None else rollout.actor
            if rollout is not None and rollout.at_episode_start:
                envs.restart_time_limits(index)
            if actor is None:
                chosen.append((-1, envs.discretisation.action_set.choices[0]))
            elif isinstance(actor, ObservationActor):
                batches.setdefault(id(actor), []).append(index)
                chosen.append((-1, actor))
            else:
                chosen.append(actor.choose(envs.observations[index], envs.cells[index], self._stream))
        for batch in batches.values():
            actor = chosen[batch[0]][1]
            actions = actor.policy.act([envs.observations[index] for index in batch], self._stream.generator)
            for index, action in zip(batch, actions, strict=True):
                chosen[index] = (-1, action)
        return chosen


def random_observations(
    env: Env, discretisation: Discretisation, steps: int, stream: RandomStream, seed: int
) -> list[Any]:
    """The observations of uniformly random actions, for exactly so many steps."""
    observations: list[Any] = []

    def record(observation: Any) -> int:
        observations.append(np.array(observation))
        return 0

    single = SingleEnvironment(env, discretisation._replace(cells=FunctionCells(record, 1)))
    choices = discretisation.action_set.choices
    actor = TableActor(np.full((1, len(choices)), 1.0 / len(choices)), choices)
    single.reset(seed=seed)
    while single.steps < steps:
        if single.terminated or single.truncated:
            single.reset()
        single.run(actor, steps - single.steps, stream)
    return observations
