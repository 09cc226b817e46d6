"""Learning as long as it pays: what `TRPO()` and `Reinforce()` do where nobody says how many updates.

Four things decide whether a policy gradient on a table keeps what it has found; `benchmarks.robustness` shows it.

- **A step is as long as its signal.** A step to the edge of the trust region, whatever the batch said, turns the noise
  of a batch without signal into as large a move as the best batch makes. So a step is measured against the largest
  signal of the recent updates, which is forgotten slowly (`FORGETTING`). RiverSwim(20): solved by none of two seeds
  without this, by all with it.
- **A floor.** While there is learning, no action falls below a small probability, so that what was given up can be seen
  again. The floor sinks in `STAGES`; what is handed out has none.
- **Batches as large as the problem.** In a batch each pair that was seen is tried about `TRIES_OF_A_PAIR` times.
- **Nothing false to begin with.** Episodes are half from rho, as mu promises, also where most roll-ins end in terminal
  states and are drawn again. The critic begins with the mean return of a first batch, so that no advantage measures the
  distance between the rewards' level and zero (Taxi, whose rewards are shifted into [0, 1], with REINFORCE: 4 of 4
  within 5% of the best value in its own units, none without it).
- **Stages and cycles.** A stage goes on while the mean return from the resets rises by more than chance: they cover
  more than the start, so a reward on its way back to the start shows there first. At its end, actions that all of its
  batches together call better take the place of those that are taken (see `pooled_advantages`). After the last stage
  the policy is measured from the start. The next cycle begins with it, softened; from the third on, in batches twice
  as large as those of the one before. The last cycle is the one that brought nothing.

A round of Algorithm 2 (`learn_for_a_round`) is shorter, because the next round has another reward: a few updates that
begin with the policy of the round before, softened. The way to the frontier is the same in both, and need not be
learned again: a one-way maze of 400 cells is explored whole in 19 million steps that way, and by a quarter less than
whole in 30 million without it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from curious_explorer.arrays import Floats, Mask
from curious_explorer.compile import compiled
from curious_explorer.learners.optimizer import Evaluation, Measured, OptimizerResult, Pieces
from curious_explorer.learners.pooled_advantages import Exchanges, PooledAdvantages
from curious_explorer.worlds.policies import KnownPolicy, ObservationPolicy
from curious_explorer.worlds.world import EpisodeStatistics

if TYPE_CHECKING:
    from curious_explorer.learners.actor_critic import ActorCritic, LearningRun

TRIES_OF_A_PAIR = 10
LEAST_EPISODES, MOST_EPISODES = 50, 20_000
FORGETTING = 0.95
"""What is left of the largest signal after each update."""

ROUND_UPDATES = 10
"""Updates of a round. Where nothing new was reached and a round makes more effort, both they and their batches grow
with its square root: a way of forty steps that a few lucky episodes have found takes updates to be learned, too (with
larger batches alone, deep seas of depth 40 were given up in one run of thirty)."""
SOFTENING, ROUND_SOFTENING = 0.5, 0.8
"""What logits are multiplied with at the beginning of a cycle and of a round: certainties become preferences. With 0.5
in rounds, a way of fifty steps to where something is left is forgotten while the rest is explored: REINFORCE left a
part of a maze of 400 cells in 4 of 30 runs."""
ROUND_FLOOR = 0.05
"""How likely an action is at least at the beginning of a round, relative to the best one."""

STAGES = (0.03, 0.0075, 0.0019)
"""The floor of each stage, shared by the actions; steps are halved from stage to stage."""
STAGE_UPDATES, MOST_REPEATS = 8, 10
"""Updates between two looks at the returns, and how often a stage is gone through at most."""
LEARNING_TRACE = 0.8
"""lambda while learning for the world's own reward: less noise than the rounds' 0.95 (FrozenLake 8x8, 3 seeds: 0.980 of
the best value against 0.939)."""
FIRST_SIGNAL = 0.01
"""What counts as the largest signal before any was seen, for rewards in [0, 1]: the small costs of a step must not make
habits before the first reward is found (deep sea). Where a cycle that is to be the last has never met as large a
signal, its largest takes the place of this, and learning goes on: rewards may be that small."""
EVALUATION_EPISODES, MOST_DOUBLINGS = 200, 6
"""Episodes from the start that measure the policy after the first cycle; twice as many after each further one."""
MOST_EVALUATION_STEPS = 1_100_000
"""What such a measurement may take at most."""
GAIN = 0.01
"""A cycle that does not improve anything by this share brought nothing, if values are known that well."""
LEAST_SCALE = 0.1
"""What values have to be known well for is what learning brought beside the first batch, or this share of the value,
whichever is larger: a value of 0.98 of which 0.97 are the same for all policies is not known by two digits."""
EPISODES_OF_ONE_STEP = int(GAIN**-2)
"""With gamma 0 nothing is on its way back from elsewhere, and values that are known to this share of the deviation of a
single return are known well enough, however small they are beside it."""
LEAST_CYCLES = 2
STEPS_FOR_PAIRS, STEPS_FOR_LENGTH = 200.0, 10.0
"""Learning takes at least 200 P**1.5 and 10 P L**2 steps, with P the pairs seen and L the length of an episode: a pair
must be tried again at every stage that values pass through on their way back. The first is what a bidirectional lock
of 62 states and 10 actions needs to show its reward, the second what RiverSwim(20) needs."""
MOST_STEPS, LEAST_LIMIT = 46_000_000, 13_000_000
"""Where no budget is given, learning stops when the world was stepped so often in all, exploring included; but it has
a certain number of steps of its own in any case."""
CLEARLY_WORSE = 0.2
"""What is handed out never takes an action less than this share as likely as the best one."""


class _Annealed:
    """A run whose steps are measured against the largest recent signal, and whose batches grow with what was seen."""

    def __init__(self, optimizer: ActorCritic, run: LearningRun, trace: float, largest: float) -> None:
        self._optimizer, self._run, self._trace, self._largest = optimizer, run, trace, largest
        self._seen: Mask = np.zeros(run.world.num_states, dtype=np.bool_)
        self._ended: Mask = np.zeros(run.world.num_states, dtype=np.bool_)
        self._pooled = PooledAdvantages(run.world.num_states, run.world.num_actions)
        self._strongest = 0.0  # the largest signal of the cycle
        self._steps_of_an_episode = math.inf

    @property
    def pairs_seen(self) -> int:
        """How many pairs there are in the states that were acted in."""
        return int(self._seen.sum()) * self._run.world.num_actions

    @property
    def least_steps(self) -> float:
        """How many steps learning takes before it may be said to bring nothing any more."""
        pairs = self.pairs_seen
        return max(STEPS_FOR_PAIRS * math.sqrt(pairs) * pairs, STEPS_FOR_LENGTH * pairs * self._steps_of_an_episode**2)

    def begin(self) -> float:
        """Let the critic begin with the mean return of a first batch; returns it, normalised."""
        batch = self._run.update(LEAST_EPISODES, self._trace, lambda _: "the first batch is for the critic")
        if batch is None:
            return 0.0
        mean = float(batch.returns.mean())
        self._run.critic[:] = mean
        return (1.0 - self._run.task.gamma) * mean

    def begin_cycle(self) -> None:
        """Forget what was said of other policies, and let half of the episodes begin at rho."""
        self._pooled.clear()
        self._strongest = 0.0
        self._run.share_starts(self._ended & ~self._seen)

    def rescale(self) -> bool:
        """Measure steps against the largest signal of the cycle, if that was smaller; says whether it was."""
        smaller = 0.0 < self._strongest < self._largest
        if smaller:
            self._largest = self._strongest
        return smaller

    def exchanges(self) -> Exchanges:
        """Where all batches since the last exchange call another action better; begins anew."""
        found = self._pooled.exchanges(self._run.policy)
        self._pooled.clear()
        return found

    def update(self, *, size: float, floor: float, caution: float) -> EpisodeStatistics | None:
        """One update by a batch of ``size`` times the usual episodes; no action falls below the floor."""
        run = self._run

        def step(batch: EpisodeStatistics) -> str | None:
            self._pooled.add(batch)
            verdict, signal = self._optimizer.take_measured_step(
                run.logits, run.policy, batch, largest=self._largest, caution=caution
            )
            self._largest = max(signal, FORGETTING * self._largest)
            self._strongest = max(signal, self._strongest)
            return verdict

        batch = run.update(self._episodes(size), self._trace, step)
        if batch is not None:
            raise_to_floor(run.logits, run.policy, math.log(floor / run.world.num_actions))
            self._seen |= batch.weight.any(axis=1)
            self._ended |= batch.occupancy > 0.0
            self._steps_of_an_episode = float(batch.weight.sum()) / len(batch.returns)
        return batch

    def _episodes(self, size: float) -> int:
        if self._optimizer.episodes is not None:
            return int(size * self._optimizer.episodes)
        wanted = size * TRIES_OF_A_PAIR * self.pairs_seen / self._steps_of_an_episode
        return int(max(size * LEAST_EPISODES, min(wanted, MOST_EPISODES)))


def learn_for_a_round(
    optimizer: ActorCritic, run: LearningRun, start: KnownPolicy | None, *, effort: int
) -> Pieces[OptimizerResult]:
    """A few updates for a reward that the next round replaces, from a policy that learned for the one before."""
    if start is not None and not isinstance(start, ObservationPolicy):
        with np.errstate(divide="ignore"):
            run.logits[:] = np.log(start)
        soften(run, ROUND_FLOOR, ROUND_SOFTENING)
    learning = _Annealed(optimizer, run, optimizer.trace, largest=0.0)
    share = math.sqrt(effort)
    for _ in range(round(ROUND_UPDATES * share)):
        if learning.update(size=share, floor=1e-12, caution=1.0) is None:
            break
        yield run.pause()
    return run.result()


def learn_while_it_pays(optimizer: ActorCritic, run: LearningRun) -> Pieces[OptimizerResult]:
    """Cycles of stages until one brings nothing; hands out the best policy of those measured from the start."""
    learning = _Annealed(optimizer, run, min(optimizer.trace, LEARNING_TRACE), largest=FIRST_SIGNAL)
    best_policy, best = run.policy, Evaluation(-math.inf, 0.0, 0, 0)
    best_return, level = -math.inf, run.level
    idle, cycle, enough = False, 0, True
    if run.task.budget is None:
        run.last_batch_ends = max(MOST_STEPS - run.world.samples, LEAST_LIMIT)
    first = learning.begin()
    while (
        enough
        and run.left_for_batches != 0
        and not (idle and cycle >= LEAST_CYCLES and run.used >= learning.least_steps)
    ):
        learning.begin_cycle()
        mean_return, error, enough = yield from _one_cycle(learning, run, 2 ** max(cycle - 1, 0))
        episodes = EVALUATION_EPISODES * 2 ** min(cycle, MOST_DOUBLINGS)
        policy, evaluation = _measure(learning, run, episodes)
        value = evaluation.value
        if value < best.value and best.standard_error > 0.0:  # which may have been luck, in fewer episodes
            best = run.measure(best_policy, episodes, MOST_EVALUATION_STEPS)
        improved = value > best.value + GAIN * abs(best.value) or mean_return > best_return + max(
            2.0 * error, GAIN * abs(best_return)
        )
        moved, level = run.level != level, run.level  # starts on their way bring a reward to the own start yet
        best_return = max(best_return, mean_return)
        known = evaluation.standard_error <= GAIN * max(abs(value - first), LEAST_SCALE * abs(value))
        known = known and (value != 0.0 or best_return <= 0.0)  # what resets lead to can be had from the start
        known = known or (run.task.gamma == 0.0 and evaluation.episodes >= EPISODES_OF_ONE_STEP)
        if value >= best.value:
            best_policy, best = policy, evaluation
        soften(run, STAGES[0] / run.world.num_actions)
        cycle += 1
        rescaled = not improved and not moved and cycle >= LEAST_CYCLES and learning.rescale()
        idle = not improved and not moved and known and not rescaled
        yield run.pause(Measured(policy, evaluation))
    return run.result(best_policy)


def _measure(learning: _Annealed, run: LearningRun, episodes: int) -> tuple[Floats, Evaluation]:
    """What is worth more from the start: the policy as it is, or with what its last batches call better."""
    policy, found = without_clearly_worse(run.policy), learning.exchanges()
    evaluation = run.measure(policy, episodes, MOST_EVALUATION_STEPS)
    if len(found.states) == 0:
        return policy, evaluation
    exchanged = run.policy.copy()
    found.apply(exchanged)
    exchanged = without_clearly_worse(exchanged)
    measured = run.measure(exchanged, episodes, MOST_EVALUATION_STEPS)
    if measured.value <= evaluation.value:
        return policy, evaluation
    found.apply(run.logits)
    found.apply(run.policy)
    return exchanged, measured


def _one_cycle(learning: _Annealed, run: LearningRun, size: int) -> Pieces[tuple[float, float, bool]]:
    """All stages; returns the best mean return from the resets, its standard error, and whether steps are left."""
    best, error = -math.inf, 0.0
    for stage, floor in enumerate(STAGES):
        for _ in range(MOST_REPEATS):
            returns = []
            for _ in range(STAGE_UPDATES):
                batch = learning.update(size=size, floor=floor, caution=0.5**stage)
                if batch is None:
                    return best, error, False
                returns.append(batch.returns)
                yield run.pause()
            values = (1.0 - run.task.gamma) * np.concatenate(returns)
            mean, error = float(values.mean()), float(values.std() / math.sqrt(len(values)))
            if mean <= best + 2.0 * error:
                break
            best = mean
        if stage < len(STAGES) - 1:
            found = learning.exchanges()
            found.apply(run.logits)
            found.apply(run.policy)
    return best, error, True


def soften(run: LearningRun, floor: float, factor: float = SOFTENING) -> None:
    """Make certainties preferences: shrink the logits; no action is less likely than ``floor`` times the best."""
    run.logits *= factor
    raise_to_floor(run.logits, run.policy, math.log(floor))


def without_clearly_worse(policy: Floats) -> Floats:
    """The policy without actions that are far less likely than the best: what the floor kept alive is left out."""
    kept = np.where(policy >= CLEARLY_WORSE * policy.max(axis=1, keepdims=True), policy, 0.0)
    result: Floats = kept / kept.sum(axis=1, keepdims=True)
    return result


@compiled
def raise_to_floor(logits: Floats, policy: Floats, floor: float) -> None:
    """Let no logit be further below its state's largest than ``floor`` (which is negative), in place."""
    for state in range(logits.shape[0]):
        largest, total = logits[state].max(), 0.0
        for action in range(logits.shape[1]):
            logits[state, action] = max(logits[state, action] - largest, floor)
            policy[state, action] = np.exp(logits[state, action])
            total += policy[state, action]
        for action in range(logits.shape[1]):
            policy[state, action] /= total
