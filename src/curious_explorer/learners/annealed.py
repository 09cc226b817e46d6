"""Learning as long as it pays: what `TRPO()` and `Reinforce()` do where nobody says how many updates.

Four things decide whether a policy gradient on a table keeps what it has found; `benchmarks.robustness` shows it.

- **A step is as long as its signal.** A step to the edge of the trust region, whatever the batch said, turns the noise
  of a batch without signal into as large a move as the best batch makes. So a step is measured against the largest
  signal of the recent updates, which is forgotten slowly (`FORGETTING`). RiverSwim(20): solved by none of two seeds
  without this, by all with it.
- **A floor.** While there is learning, no action falls below a small probability, so that what was given up can be seen
  again. The floor sinks in `STAGES`; what is handed out has none.
- **Batches as large as the problem.** In a batch each pair that was seen is tried about `TRIES_OF_A_PAIR` times.
- **Stages and cycles.** A stage goes on while the mean return from the resets rises by more than chance: they cover
  more than the start, so a reward on its way back to the start shows there first. After the last stage the policy is
  measured from the start. The next cycle begins with it, softened, in batches twice as large, and the last cycle is the
  one that brought nothing.

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
from curious_explorer.learners.optimizer import Measured, OptimizerResult, Pieces
from curious_explorer.worlds.policies import KnownPolicy, ObservationPolicy
from curious_explorer.worlds.world import EpisodeStatistics

if TYPE_CHECKING:
    from curious_explorer.learners.actor_critic import ActorCritic, LearningRun

TRIES_OF_A_PAIR = 10
LEAST_EPISODES, MOST_EPISODES = 50, 20_000
FORGETTING = 0.95
"""What is left of the largest signal after each update."""

ROUND_UPDATES = 10
SOFTENING = 0.5
"""What logits are multiplied with at the beginning of a round or cycle: certainties become preferences."""
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
habits before the first reward is found (deep sea)."""
EVALUATION_EPISODES, MOST_DOUBLINGS = 200, 6
"""Episodes from the start that measure the policy after the first cycle; twice as many after each further one."""
GAIN = 0.01
"""A cycle that does not improve anything by this share brought nothing, if values are known that well."""
LEAST_CYCLES = 2
STEPS_FOR_PAIRS, STEPS_FOR_LENGTH = 200.0, 10.0
"""Learning takes at least 200 P**1.5 and 10 P L**2 steps, with P the pairs seen and L the length of an episode: a pair
must be tried again at every stage that values pass through on their way back. The first is what a bidirectional lock
of 62 states and 10 actions needs to show its reward, the second what RiverSwim(20) needs."""
MOST_STEPS, LEAST_LIMIT = 46_000_000, 16_000_000
"""Where no budget is given, learning stops when the world was stepped so often in all, exploring included; but it has
a certain number of steps of its own in any case."""
CLEARLY_WORSE = 0.2
"""What is handed out never takes an action less than this share as likely as the best one."""


class _Annealed:
    """A run whose steps are measured against the largest recent signal, and whose batches grow with what was seen."""

    def __init__(self, optimizer: ActorCritic, run: LearningRun, trace: float, largest: float) -> None:
        self._optimizer, self._run, self._trace, self._largest = optimizer, run, trace, largest
        self._seen: Mask = np.zeros(run.world.num_states, dtype=np.bool_)
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

    def update(self, *, size: float, floor: float, caution: float) -> EpisodeStatistics | None:
        """One update by a batch of ``size`` times the usual episodes; no action falls below the floor."""
        run = self._run

        def step(batch: EpisodeStatistics) -> str | None:
            verdict, signal = self._optimizer.take_measured_step(
                run.logits, run.policy, batch, largest=self._largest, caution=caution
            )
            self._largest = max(signal, FORGETTING * self._largest)
            return verdict

        batch = run.update(self._episodes(size), self._trace, step)
        if batch is not None:
            raise_to_floor(run.logits, run.policy, math.log(floor / run.world.num_actions))
            self._seen |= batch.weight.any(axis=1)
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
        soften(run, ROUND_FLOOR)
    learning = _Annealed(optimizer, run, optimizer.trace, largest=0.0)
    for _ in range(ROUND_UPDATES):
        if learning.update(size=effort, floor=1e-12, caution=1.0) is None:
            break
        yield run.pause()
    return run.result()


def learn_while_it_pays(optimizer: ActorCritic, run: LearningRun) -> Pieces[OptimizerResult]:
    """Cycles of stages until one brings nothing; hands out the best policy of those measured from the start."""
    learning = _Annealed(optimizer, run, min(optimizer.trace, LEARNING_TRACE), largest=FIRST_SIGNAL)
    best_policy, best_value = run.policy, -math.inf
    best_return, level = -math.inf, run.level
    idle, cycle, enough = False, 0, True
    limit = run.task.budget or max(MOST_STEPS - run.world.samples, LEAST_LIMIT)
    while enough and not (idle and cycle >= LEAST_CYCLES and run.used >= learning.least_steps):
        mean_return, error, enough = yield from _one_cycle(learning, run, 2**cycle, limit)
        policy = without_clearly_worse(run.policy)
        evaluation = run.measure(policy, EVALUATION_EPISODES * 2 ** min(cycle, MOST_DOUBLINGS))
        value, doubt = evaluation.value, evaluation.standard_error
        improved = value > best_value + GAIN * abs(best_value) or mean_return > best_return + max(
            2.0 * error, GAIN * abs(best_return)
        )
        moved, level = run.level != level, run.level  # starts on their way bring a reward to the own start yet
        idle = not improved and not moved and doubt <= GAIN * abs(value)
        if value > best_value:
            best_policy, best_value = policy, value
        best_return = max(best_return, mean_return)
        soften(run, STAGES[0] / run.world.num_actions)
        cycle += 1
        yield run.pause(Measured(policy, evaluation))
    return run.result(best_policy)


def _one_cycle(learning: _Annealed, run: LearningRun, size: int, limit: int) -> Pieces[tuple[float, float, bool]]:
    """All stages; returns the best mean return from the resets, its standard error, and whether steps are left."""
    best, error = -math.inf, 0.0
    for stage, floor in enumerate(STAGES):
        for _ in range(MOST_REPEATS):
            returns = []
            for _ in range(STAGE_UPDATES):
                batch = learning.update(size=size, floor=floor, caution=0.5**stage)
                if batch is None or run.used >= limit:
                    return best, error, False
                returns.append(batch.returns)
                yield run.pause()
            values = (1.0 - run.task.gamma) * np.concatenate(returns)
            mean, error = float(values.mean()), float(values.std() / math.sqrt(len(values)))
            if mean <= best + 2.0 * error:
                break
            best = mean
    return best, error, True


def soften(run: LearningRun, floor: float) -> None:
    """Make certainties preferences: halve the logits; no action is less likely than ``floor`` times the best."""
    run.logits *= SOFTENING
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
