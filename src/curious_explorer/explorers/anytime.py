"""Exploring and learning at the same time: `learn` need not be told whether exploring pays, nor how much of it.

On easy problems a learner from the start alone is done before an exploration has begun in earnest; on hard ones it
never finds anything. `learn` runs both in turns:

- **plain**: the optimizer from the world's start, as ``improve(world, optimizer, None)`` runs it;
- **explore first**: Algorithm 2, then the optimizer from its resets.

The one that will have used fewer steps after its next piece (a batch of episodes, or a measurement of D_n) goes on.
The policy that is handed out is the best of those that were measured from the start: by the optimizer itself after each
of its cycles, and here in between. All evaluations are counted. Policies are compared by their mean return less one
standard error. Until the first measurement the policy of plain learning is handed out as it is.

**Luck is measured away.** The best of many measured policies is one that was lucky: where returns are noisy, a policy
of 0.93 of the best value that was measured as 1.03 would keep all later ones of 0.96 from being handed out. So whoever
looks no better than what is handed out is not turned away by an old number: what is handed out is measured again, by as
many new episodes as its challenger had, and they alone say what it is worth from then on. They have not chosen it, so a
policy stays only by being better, or by being lucky again each time.

**The factor.** Suppose that one of the two, alone, would hand out a policy after n steps. Here it has that policy after
n steps of its own and what was spent on evaluations before. Each of those takes `EVALUATION_SHARE` of the steps so far
at most. Two at a time, of a challenger and of what is handed out, are due when steps have grown by `GROWTH`: 0.15 n
together. One more, of what is handed out, follows each cycle of the optimizer: less than 0.05 n where cycles grow by
half, as they do. The policy is measured at the latest when the process has grown by `GROWTH` again. By then the other
process has used no more, but for a piece. So that is at most 2 * 1.2 * 1.25 n steps, **at most 3 n**, if a measurement
tells the better policy from the worse. Where it does not, because the two are closer than its noise, the better one has
its next chance when the process has grown by `GROWTH`, with more episodes, and against new ones of the other.
A process that ends leaves all further steps to the other one. ``python -m benchmarks.anytime`` measures the factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from curious_explorer.arrays import Floats, Indices, Integers
from curious_explorer.callbacks.events import BATCH, LEARN, tell
from curious_explorer.explorers.curious_explorer import CuriousExplorer
from curious_explorer.explorers.exploration import Exploration, uniform_policy
from curious_explorer.explorers.rounds import Round
from curious_explorer.explorers.visits import default_visits
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.annealed import without_clearly_worse
from curious_explorer.learners.improve import measure_value
from curious_explorer.learners.optimizer import (
    Evaluation,
    Measured,
    Optimizer,
    Pause,
    ResumableOptimizer,
    Watch,
    check_optimizer,
)
from curious_explorer.validation import check_count, check_gamma
from curious_explorer.worlds.policies import KnownPolicy, ObservationPolicy, Policy, frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, Step, World, check_world
from curious_explorer.worlds.wrappers import WorldWrapper

PLAIN, EXPLORE_FIRST = "plain", "explore first"
GROWTH = 1.25
"""A process that learns is measured when it has used so many times the steps of its last measurement."""
EVALUATION_SHARE = 0.015
"""What such a measurement may cost, of all steps of the process; so may what is handed out, measured again."""
LEAST_EPISODES, MOST_EPISODES = 50, 2_000
"""Episodes of such a measurement; there is none for which fewer can be afforded."""
ROUNDING = 1e-9
"""Means that differ by less, relative to them, are the same; where returns do, nothing is left to luck."""
LONG_VISITS = 3.0
"""No measurement of D_n begins with fewer steps left than so many times 1 / (1 - gamma) for each walk. By expectation
walks take two: less than one to roll in by mu_{n-1}, one to walk. With 500 walks or more three are never taken."""


@dataclass(frozen=True, eq=False)
class AnytimeResult:
    """The best policy so far, and where it came from."""

    policy: KnownPolicy
    """Action probabilities, shape (S, A), which cannot be changed."""
    evaluation: Evaluation | None
    """What it was measured to be worth from the world's own start; None if samples ran out before."""
    winner: str
    """Who learned it: "plain" or "explore first"."""
    samples: int
    """Every step taken: exploring, roll-ins, learning, evaluations."""
    samples_by: dict[str, int]
    """The same, by who took them: "plain" and "explore first"."""
    exploration: Exploration | None
    """The rounds that are done so far; None before the first."""

    @property
    def value(self) -> float | None:
        """The measured value, normalised; None if samples ran out before it was measured."""
        return None if self.evaluation is None else self.evaluation.value

    def __repr__(self) -> str:
        return f"AnytimeResult(value={self.value}, winner={self.winner!r}, samples={self.samples:,})"


def learn(
    world: World,
    optimizer: Optimizer,
    *,
    gamma: float,
    samples: int | None = None,
    watch: Watch | None = None,
) -> AnytimeResult:
    """Learn for the world's own reward, exploring or not, in at most 3 times the steps of the better of the two.

    Args:
        world: where to act; every step is counted in ``world.samples``.
        optimizer: `TRPO()`, `Reinforce()`, or another that can be left and gone on with (`ResumableOptimizer`).
        gamma: the discount.
        samples: the most steps to take in all. If None, `learn` ends when exploring first has ended by itself.
        watch: called with a new policy to hand out and the steps so far, first with the uniform one and zero.
    """
    check_world(world)
    check_optimizer(optimizer)
    gamma = check_gamma(gamma)
    if samples is not None:
        check_count(samples, "samples", least=1)
    if not isinstance(optimizer, ResumableOptimizer):
        raise ValueError(
            f"optimizer is {type(optimizer).__name__}, which cannot be left and gone on with (it has no "
            "learn_in_pieces); expected TRPO() or Reinforce(), or call explore and then improve"
        )
    if getattr(optimizer, "updates", None) is not None:
        raise ValueError(f"optimizer is {optimizer!r}, whose updates are given; expected one that learns while it pays")
    return InTurns(world, optimizer, gamma, samples, watch).run()


class _SamplesSpentError(Exception):
    """A process asked for a step when none was left."""


class _OwnSteps(WorldWrapper):
    """The world as one of several processes sees it: with its own steps only, and with a last step for all of them."""

    def __init__(self, world: World, last: int | None) -> None:
        super().__init__(world)
        self._last, self._own = last, 0

    @property
    def samples(self) -> int:
        """How many steps this process has taken."""
        return self._own

    @property
    def left(self) -> int | None:
        """How many steps are left for all processes; None if there is no limit."""
        return None if self._last is None else self._last - self.world.samples

    def episodes(self, policy: Policy, batch: EpisodeBatch) -> EpisodeStatistics:
        """Run a batch of episodes, no further than the last step."""
        before, left = self._begin_call(), self.left
        if left is not None:
            batch = replace(batch, max_samples=left if batch.max_samples is None else min(left, batch.max_samples))
        result = self.world.episodes(policy, batch)
        self._own += self.world.samples - before
        return result

    def count_ends(self, roll_in: RollIn, count: int) -> Integers:
        """How many walks end in each state."""
        before = self._begin_call()
        ends = self.world.count_ends(roll_in, count)
        self._own += self.world.samples - before
        return ends

    def walk(self, roll_in: RollIn, count: int) -> Indices:
        """The states in which walks end."""
        before = self._begin_call()
        ends = self.world.walk(roll_in, count)
        self._own += self.world.samples - before
        return ends

    def begin(self, reset: RollIn | None = None, *, max_samples: int | None = None) -> int | None:
        """Begin an episode where a roll-in ends."""
        before, left = self._begin_call(), self.left
        if left is not None:
            max_samples = left if max_samples is None else min(left, max_samples)
        state = self.world.begin(reset, max_samples=max_samples)
        self._own += self.world.samples - before
        return state

    def step(self, action: int) -> Step:
        """Take one action."""
        self._begin_call()
        self._own += 1
        return self.world.step(action)

    def _begin_call(self) -> int:
        if self.left is not None and self.left <= 0:
            raise _SamplesSpentError
        return self.world.samples


class _Process:
    """One of the two: what it goes on with, and how far it is."""

    def __init__(self, name: str, world: _OwnSteps, pieces: Iterator[Pause]) -> None:
        self.name, self.world, self._pieces = name, world, pieces
        self.next_steps, self.over = 0.0, False
        self.measured_at: int | None = None
        """Steps of its own up to the last measurement, or to the beginning of learning; None before that."""

    @property
    def used_after_next(self) -> float:
        """How many steps it will have used after its next piece."""
        return self.world.samples + self.next_steps

    def advance(self) -> Pause | None:
        """Do the next piece; None where there is none."""
        try:
            pause = next(self._pieces)
        except (StopIteration, _SamplesSpentError):
            self.over = True
            return None
        self.next_steps = pause.next_steps
        return pause


class InTurns:
    """Both processes in one world, and the best policy of both; or one of them alone, measured in the same way."""

    def __init__(
        self,
        world: World,
        optimizer: ResumableOptimizer,
        gamma: float,
        samples: int | None,
        watch: Watch | None,
        *,
        processes: tuple[str, ...] = (PLAIN, EXPLORE_FIRST),
    ) -> None:
        self._world, self._optimizer, self._gamma, self._watch = world, optimizer, gamma, watch
        self._before, self._limited = world.samples, samples is not None
        last = None if samples is None else world.samples + samples
        own, exploring = _OwnSteps(world, last), _OwnSteps(world, last)
        self._explorer = CuriousExplorer(optimizer)
        self._rounds: list[Round] = []
        self._plain = _Process(PLAIN, own, optimizer.learn_in_pieces(own, None, gamma=gamma))
        self._explore_first = _Process(EXPLORE_FIRST, exploring, self._explore_and_learn(exploring))
        for process in (self._plain, self._explore_first):
            process.over = process.name not in processes
        self._policy: KnownPolicy = uniform_policy(world)
        self._evaluation: Evaluation | None = None
        self._winner = PLAIN
        self._episode_steps = 2.0 * default_horizon(gamma)
        """What an episode of an evaluation costs: at most so much, or what the last one did."""
        self._show()

    def run(self) -> AnytimeResult:
        """Go on with whoever has used less, until exploring first is over, or all samples are spent."""
        while not (self._explore_first.over and (self._plain.over or not self._limited)):
            process = self._next()
            pause = process.advance()
            if pause is not None and pause.policy is not None:
                self._look_at(process, pause, pause.policy)
        processes = (self._plain, self._explore_first)
        return AnytimeResult(
            policy=self._policy,
            evaluation=self._evaluation,
            winner=self._winner,
            samples=self._world.samples - self._before,
            samples_by={process.name: process.world.samples for process in processes},
            exploration=self._exploration() if self._rounds else None,
        )

    def _next(self) -> _Process:
        if self._plain.over or self._explore_first.over:
            return self._explore_first if self._plain.over else self._plain
        first = self._plain.used_after_next <= self._explore_first.used_after_next
        return self._plain if first else self._explore_first

    def _explore_and_learn(self, world: _OwnSteps) -> Iterator[Pause]:
        """Algorithm 2 as far as samples allow, then learning from its resets."""
        visits = LONG_VISITS * default_visits(world.num_states) / (1.0 - self._gamma)
        for pause in self._explorer.explore_in_pieces(world, self._rounds, gamma=self._gamma):
            if pause.policy is None and world.left is not None and world.left < visits:
                break
            yield Pause(pause.next_steps)  # what a round learns is not for the world's own reward
        if self._rounds:
            self._explore_first.measured_at = world.samples
            resets = self._exploration().reset_model
            yield from self._optimizer.learn_in_pieces(world, resets, gamma=self._gamma)

    def _exploration(self) -> Exploration:
        return self._explorer.exploration(self._world, self._rounds, gamma=self._gamma)

    # What is handed out --------------------------------------------------------------------------------------------

    def _look_at(self, process: _Process, pause: Pause, policy: KnownPolicy) -> None:
        """Take note of what was measured; measure where it is time to, and hand out what is better."""
        measured = pause.measured or self._measure(process, policy)
        if measured is not None and measured.evaluation.episodes > 0:
            evaluation = measured.evaluation
            self._episode_steps = max(1.0, evaluation.samples / evaluation.episodes)
            if self._looks_worse(evaluation):  # than what may have been lucky
                self._measure_again(process, evaluation.episodes)
            process.measured_at = process.world.samples
            if not self._looks_worse(evaluation):
                self._policy, self._evaluation = frozen(measured.policy), evaluation
                self._winner = process.name
                self._show()
        elif self._evaluation is None and process is self._plain and not isinstance(policy, ObservationPolicy):
            self._policy = frozen(policy.copy())
            self._show()

    def _looks_worse(self, evaluation: Evaluation) -> bool:
        """Whether a policy was measured to be worth no more than what is handed out."""
        if self._evaluation is None:
            return False
        return _surely(evaluation) <= _surely(self._evaluation) + ROUNDING * abs(self._evaluation.value)

    def _measure(self, process: _Process, policy: KnownPolicy) -> Measured | None:
        """Measure the policy that a process is learning, where it is time to."""
        waits = process.measured_at is not None and process.world.samples < GROWTH * process.measured_at
        if waits or isinstance(policy, ObservationPolicy):
            return None
        candidate: Floats = without_clearly_worse(policy)
        evaluation = self._evaluate(process, candidate, MOST_EPISODES)
        return None if evaluation is None else Measured(candidate, evaluation)

    def _measure_again(self, process: _Process, episodes: int) -> None:
        """Measure what is handed out by new episodes, as many as its challenger had: they have not chosen it."""
        known = self._evaluation is None or self._evaluation.standard_error <= ROUNDING * abs(self._evaluation.value)
        again = None if known else self._evaluate(process, self._policy, episodes)
        if again is not None:
            self._evaluation = again

    def _evaluate(self, process: _Process, policy: KnownPolicy, most: int) -> Evaluation | None:
        """What a policy is worth, by as many episodes as a process can afford; None where those are too few."""
        assert not isinstance(policy, ObservationPolicy)
        episodes = min(most, int(EVALUATION_SHARE * process.world.samples / self._episode_steps))
        if episodes < LEAST_EPISODES:
            return None
        try:
            evaluation = measure_value(process.world, policy, gamma=self._gamma, episodes=episodes)
        except _SamplesSpentError:
            return None
        return evaluation if evaluation.episodes == episodes else None  # cut short by the last of all samples

    def _show(self) -> None:
        numbers = {} if self._evaluation is None else {"value": self._evaluation.value}
        tell(self._watch, BATCH, LEARN, self._world.samples - self._before, numbers, lambda: self._policy)


def _surely(evaluation: Evaluation) -> float:
    return evaluation.value - evaluation.standard_error
