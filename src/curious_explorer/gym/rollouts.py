"""Walks and episodes in an environment: a roll-in, and then, in an episode, the policy that is tried.

The same walk as the compiled kernels' (see `stepping.roll_in`): restart, draw a chain of policies, follow each for a
geometric number of steps. A terminated episode stays where it is for ever, so a walk that terminates has arrived; an
episode must begin somewhere else, so its roll-in is repeated, at full cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from curious_explorer.gym.actors import Actor, ActorCache, ObservationActor, RandomStream, cumulative
from curious_explorer.gym.single_environment import SingleEnvironment
from curious_explorer.gym.vector_environment import SteppedEnvironments, VectorEnvironment
from curious_explorer.worlds.episode_accumulator import Trajectory
from curious_explorer.worlds.roll_in import RollIn

LOST_IN_A_ROW = 10_000
"""After so many roll-ins that ended in a terminal state we say so, instead of trying for ever."""


def nowhere_to_start() -> NoReturn:
    """Say that roll-ins keep ending in terminal states."""
    raise ValueError(
        f"{LOST_IN_A_ROW:,} roll-ins in a row ended in a terminal state; an episode needs a reset model that reaches "
        "states that are not terminal"
    )


class RollInSampler:
    """A roll-in, ready to be drawn from: which policies to follow, and for how many steps each."""

    def __init__(self, roll_in: RollIn, actors: ActorCache) -> None:
        self._actors = actors.roll_in_by(roll_in.policies)
        self._gammas = roll_in.gammas
        self._cumulative = cumulative(roll_in.weights)
        tail = list(range(len(roll_in.policies) - roll_in.tail, len(roll_in.policies)))
        self._chains = [[*range(first, stop), *tail] for first, stop in roll_in.chains.tolist()]

    def draw(self, draws: RandomStream) -> list[tuple[Actor, int]]:
        """One route, the last leg first."""
        chain = self._chains[draws.pick(self._cumulative)]
        return [(self._actors[i], draws.stopping_time(self._gammas[i])) for i in reversed(chain)]


def roll_in_along(
    lane: SingleEnvironment, route: list[tuple[Actor, int]], draws: RandomStream, last: int | None = None
) -> bool:
    """Follow a whole route in one lane; returns whether an episode can go on from its end.

    It cannot where the route terminated, nor where ``last``, a number of the lane's steps, came first.
    """
    for actor, steps in reversed(route):
        most = steps if last is None else min(steps, last - lane.steps)
        lane.walk(actor, most, draws)
        if lane.terminated or lane.stuck or most < steps:
            return False
    return True


class Rollout:
    """One walk, or one episode if there is somebody to act after the roll-in.

    ``actor`` is who acts now (None: it has ended) and ``left`` for how many steps at most; ``trajectory`` is kept of an
    episode, once it is on its own.
    """

    __slots__ = (
        "_draws",
        "_horizon",
        "_protagonist",
        "_route",
        "_sampler",
        "actor",
        "cell",
        "left",
        "lost",
        "number",
        "terminated",
        "trajectory",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        sampler: RollInSampler,
        draws: RandomStream,
        protagonist: Actor | None = None,
        horizon: int = 0,
    ) -> None:
        self.number = number
        self._sampler, self._draws = sampler, draws
        self._protagonist, self._horizon = protagonist, horizon
        self.trajectory: Trajectory | None = None
        self.lost = 0  # how many roll-ins ended in a terminal state
        self.terminated = False

    def begin(self, cell: int) -> None:
        """Stand where the environment was reset."""
        self.cell = cell
        self._route = self._sampler.draw(self._draws)
        self._next_leg()

    def _next_leg(self) -> None:
        while self._route:
            self.actor: Actor | None
            self.actor, self.left = self._route.pop()
            if self.left > 0:
                return
        if self._protagonist is None or self.trajectory is not None:
            self.actor = None  # arrived
        else:
            self.actor, self.left, self.trajectory = self._protagonist, self._horizon, []

    @property
    def about_to_be_on_its_own(self) -> bool:
        """Whether the roll-in is over and the episode's first step comes next."""
        return self.trajectory is not None and not self.trajectory

    def went(self, steps: int, cell: int, terminated: bool, stuck: bool) -> bool:
        """Take in some steps; returns whether the roll-in is lost and must be made again."""
        self.cell = cell
        self.left -= steps
        if terminated or stuck:
            if self._protagonist is not None and self.trajectory is None:
                self.lost += 1
                return True
            self.terminated = terminated
            self.actor = None
        elif self.left == 0:
            self._next_leg()
        return False


class RolloutCollector:
    """Journeys, one in each lane at a time.

    Args:
        lanes: where to collector.
        draws: the random numbers.
        seeds: for the lanes, each of which is seeded once.
        finish: told of every rollout that has ended, in the order of their ends.
        most_steps: how many steps may be taken; every step of every lane counts, those of idle ones included.
    """

    def __init__(
        self,
        lanes: SteppedEnvironments,
        draws: RandomStream,
        seeds: Iterator[int],
        finish: Callable[[Rollout], None],
        most_steps: int | None = None,
    ) -> None:
        self._lanes, self._draws, self._seeds, self._finish = lanes, draws, seeds, finish
        self._seeded: set[int] = set()
        self._first = lanes.steps
        self._most = most_steps

    @property
    def taken(self) -> int:
        """How many steps were taken."""
        return self._lanes.steps - self._first

    def run(self, rollouts: Iterable[Rollout]) -> None:
        """Make all rollouts, or as many as the steps allow.

        What the steps did not suffice for ends where it is; if it was an episode on its own already, it counts.
        """
        if isinstance(self._lanes, SingleEnvironment):
            self._run_alone(self._lanes, iter(rollouts))
        elif isinstance(self._lanes, VectorEnvironment):
            self._run_together(self._lanes, iter(rollouts))

    def _run_alone(self, lane: SingleEnvironment, waiting: Iterator[Rollout]) -> None:
        while (rollout := self._set_out(0, waiting)) is not None:
            while rollout.actor is not None:
                most = rollout.left if self._most is None else min(rollout.left, self._most - self.taken)
                if most <= 0:
                    if rollout.trajectory:
                        self._finish(rollout)
                    return
                if rollout.about_to_be_on_its_own:
                    lane.turn_back_time_limits()
                steps = lane.walk(rollout.actor, most, self._draws, rollout.trajectory)
                if rollout.went(steps, lane.cells[0], lane.terminated, lane.stuck):
                    self._begin_again(0, rollout)
            self._finish(rollout)

    def _run_together(self, lanes: VectorEnvironment, waiting: Iterator[Rollout]) -> None:
        under_way = [self._set_out(lane, waiting) for lane in range(lanes.count)]
        for lane in range(lanes.count):
            if lane not in self._seeded and any(under_way):
                self._reset(lane)  # lanes are stepped together, so all must stand somewhere
        while any(under_way) and (self._most is None or self.taken + lanes.count <= self._most):
            cells = lanes.cells.copy()
            chosen = self._choose(lanes, under_way)
            events = lanes.step([action for _, action in chosen])
            for lane, (rollout, event) in enumerate(zip(under_way, events, strict=True)):
                if rollout is not None:
                    if rollout.trajectory is not None:
                        rollout.trajectory.append((cells[lane], chosen[lane][0], event.reward))
                    if rollout.went(1, event.cell, event.terminated, event.stuck):
                        self._begin_again(lane, rollout)
                    elif rollout.actor is None:
                        self._finish(rollout)
                        under_way[lane] = self._set_out(lane, waiting)
                if under_way[lane] is None and (event.terminated or event.stuck):
                    self._reset(lane)  # an idle lane is stepped with the others
        for rollout in under_way:
            if rollout is not None and rollout.trajectory:
                self._finish(rollout)

    def _set_out(self, lane: int, waiting: Iterator[Rollout]) -> Rollout | None:
        """The next rollout that takes a step, at its start; those that take none end at once."""
        while self._most is None or self.taken < self._most:
            rollout = next(waiting, None)
            if rollout is None:
                return None
            self._reset(lane)
            rollout.begin(self._lanes.cells[lane])
            if rollout.actor is not None:
                return rollout
            self._finish(rollout)
        return None

    def _begin_again(self, lane: int, rollout: Rollout) -> None:
        if rollout.lost == LOST_IN_A_ROW:
            nowhere_to_start()
        self._reset(lane)
        rollout.begin(self._lanes.cells[lane])

    def _reset(self, lane: int) -> None:
        seed = None if lane in self._seeded else next(self._seeds)
        self._seeded.add(lane)
        self._lanes.reset(lane, seed)

    def _choose(self, lanes: VectorEnvironment, under_way: list[Rollout | None]) -> list[tuple[int, Any]]:
        """An action for every lane; policies that see observations are asked for all of theirs at once."""
        chosen: list[tuple[int, Any]] = []
        together: dict[int, list[int]] = {}
        for lane, rollout in enumerate(under_way):
            actor = None if rollout is None else rollout.actor
            if rollout is not None and rollout.about_to_be_on_its_own:
                lanes.turn_back_time_limits(lane)
            if actor is None:
                chosen.append((-1, lanes.discretisation.action_set.choices[0]))
            elif isinstance(actor, ObservationActor):
                together.setdefault(id(actor), []).append(lane)
                chosen.append((-1, actor))
            else:
                chosen.append(actor.choose(lanes.observations[lane], lanes.cells[lane], self._draws))
        for members in together.values():
            actor = chosen[members[0]][1]
            actions = actor.policy.act([lanes.observations[lane] for lane in members], self._draws.generator)
            for lane, action in zip(members, actions, strict=True):
                chosen[lane] = (-1, action)
        return chosen
