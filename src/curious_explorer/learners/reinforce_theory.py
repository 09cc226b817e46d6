"""REINFORCE tuned by theory (Zhang, Kim, O'Donoghue and Boyd, AAAI 2021): a guarantee, paid for with tiny steps.

Values here are *not* normalised, as in that paper: V(theta) = E[sum_t gamma^t r_t], up to 1 / (1 - gamma). The policy
is a softmax of logits theta, and what is ascended is the value with a log-barrier that keeps every action possible,

    L(theta) = V(theta) + lambda / (|S||A|) sum_{s,a} log pi(a|s),
    dL / dtheta(s,a) = (visits of s) pi(a|s) (Q(s,a) - V(s)) + lambda / |S| (1 / |A| - pi(a|s)).

One trajectory of length H, of which the steps t = 0, ..., floor(b H) are credited with gamma^t (what they earned until
its end), estimates the first term; the second is exact. In phase l there are T_l = 2^l updates, and update k steps by

    C / (sqrt(k + 3) log2(k + 3)),     C = 1 / (2 (8 gamma / (1 - gamma)^3 + 2 lambda / |S|)),

which is one over twice the smoothness of L. Between phases PostProcess mixes in the uniform policy,
pi <- eps + (1 - |A| eps) pi with eps = 1 / (2 |A|). The guarantee is on regret, hence on the best iterate: a few are
drawn at random, evaluated by running them, and the best is returned.

**From memory**, since the paper could not be consulted again, and to be taken as documented defaults rather than as
quotations: the horizon H(k) = 2 log_{1/gamma}(8 (k + 1) / (1 - gamma)^3) / (3 min(b, 1 - b)), the barrier's weight
lambda_l = (1 - gamma) / 2 * T_l^(-1/6), and eps = 1 / (2 |A|).

With these steps the paper's 2,400 episodes hardly move a logit; `Reinforce` is the practical mode.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Task, TaskOptimizer, Watch, learning_curve, tally
from curious_explorer.validation import check_count, check_gamma, check_seed
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, World

CHOOSING_SHARE = 0.2
"""How much of a budget may go into choosing among the iterates drawn."""


class Phase(NamedTuple):
    """One row of the schedule: phase l."""

    number: int
    updates: int
    """T_l = 2^l."""
    barrier: float
    """lambda_l."""
    first_step: float
    last_step: float
    first_horizon: int
    last_horizon: int
    """H, the length at which a trajectory is cut off, in the phase's first and last update."""
    most_samples: int
    """Steps in the world up to and with this phase, if no trajectory ends early and roll-ins are left out."""


@dataclass(frozen=True, kw_only=True)
class TheoryReinforce(TaskOptimizer):
    """REINFORCE with everything set by theory; made by `Reinforce.theory`. See the module for the formulas."""

    phases: int = 11
    """How many phases, if the budget allows: 2^phases - 1 updates in all; 11 are about the paper's 2,400 episodes."""
    trajectories: int = 1
    """Trajectories in an update; the analysis has one."""
    credited_share: float = 0.5
    """b, how much of a trajectory is credited; a half makes trajectories shortest."""
    failure: float = 0.1
    """The chance that none of the iterates drawn is among the better half: ceil(log2(1 / failure)) are drawn."""
    choosing_episodes: int = 20
    """Episodes that evaluate each iterate drawn."""
    seed: int = 0
    """Which iterates are drawn."""

    def __post_init__(self) -> None:
        for name in ("phases", "trajectories", "choosing_episodes"):
            check_count(getattr(self, name), name, least=1)
        for name in ("credited_share", "failure"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a number between 0 and 1")
        check_seed(self.seed)

    @property
    def candidates(self) -> int:
        """How many iterates are drawn and evaluated."""
        return math.ceil(math.log2(1.0 / self.failure))

    def horizon(self, update: int, gamma: float) -> int:
        """H(k): where the trajectory of a phase's update k is cut off."""
        if gamma == 0.0:
            return 1
        share = min(self.credited_share, 1.0 - self.credited_share)
        needed = 2.0 * math.log(8.0 * (update + 1) / (1.0 - gamma) ** 3) / math.log(1.0 / gamma) / (3.0 * share)
        return max(1, math.ceil(needed))

    def credited(self, horizon: int) -> int:
        """How many steps of a trajectory are credited: t = 0, ..., floor(b H), as far as it goes."""
        return min(horizon, math.floor(self.credited_share * horizon) + 1)

    # The schedule -------------------------------------------------------------------------------------------------

    def schedule(self, num_states: int, num_actions: int, gamma: float, phases: int | None = None) -> list[Phase]:
        """What each phase will do in a world of this size, for ``phases`` phases (the setting's own number if None).

        The number of actions changes nothing but PostProcess; it is asked for so that a world's sizes can be passed.
        """
        check_count(num_states, "num_states", least=1)
        check_count(num_actions, "num_actions", least=1)
        gamma = check_gamma(gamma)
        rows: list[Phase] = []
        samples = 0
        for number in range(self.phases if phases is None else check_count(phases, "phases", least=1)):
            updates = 2**number
            weight = barrier_weight(updates, gamma)
            horizons = [self.horizon(update, gamma) for update in range(updates)]
            samples += self.trajectories * sum(horizons)
            first, last = (step_size(update, weight, num_states, gamma) for update in (0, updates - 1))
            rows.append(Phase(number, updates, weight, first, last, horizons[0], horizons[-1], samples))
        return rows

    def print_schedule(self, num_states: int, num_actions: int, gamma: float, phases: int | None = None) -> None:
        """Print `schedule` as a table."""
        from rich.console import Console
        from rich.table import Table

        title = f"REINFORCE by theory: {num_states} states, {num_actions} actions, gamma {gamma:g}"
        table = Table(title=title)
        for heading in ("phase", "updates", "barrier", "first step", "last step", "horizon", "most samples"):
            table.add_column(heading, justify="right")
        for row in self.schedule(num_states, num_actions, gamma, phases):
            table.add_row(
                str(row.number),
                f"{row.updates:,}",
                f"{row.barrier:.3g}",
                f"{row.first_step:.3g}",
                f"{row.last_step:.3g}",
                f"{row.first_horizon}-{row.last_horizon}",
                f"{row.most_samples:,}",
            )
        Console().print(table)

    # Learning -----------------------------------------------------------------------------------------------------

    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Ascend phase after phase, then choose among iterates; a budget covers the choice, too."""
        for_learning = None if task.budget is None else task.budget - self._kept_for_choosing(task)
        random = np.random.default_rng(self.seed)
        logits = np.zeros((world.num_states, world.num_actions))
        policy = softmax(logits)
        drawn = [policy] * self.candidates
        used, run = 0, 0
        curve: list[tuple[int, float, int]] = []
        verdicts: Counter[str | None] = Counter()
        for phase, update in self._updates():
            if update == 0 and phase > 0:
                logits = np.log(post_process(policy))
                policy = softmax(logits)
            if used == for_learning:
                break
            watch(policy, used)
            left = None if for_learning is None else for_learning - used
            weight = barrier_weight(2**phase, task.gamma)
            gradient, batch = self.gradient(world, policy, task, update, weight, left)
            used += batch.samples
            if len(batch.returns) == 0:
                break
            run += len(batch.returns)
            curve.append((used, float(batch.returns.mean()), run))
            drawn = draw_again(drawn, policy, len(curve), random)
            verdicts[None if gradient.any() else "neither return nor barrier to follow"] += 1
            logits = logits + step_size(update, weight, world.num_states, task.gamma) * gradient
            policy = softmax(logits)
        left = None if task.budget is None else task.budget - used
        best, occupancy, choosing = self._choose(world, drawn, task, left)
        return OptimizerResult(
            policy=frozen(best),
            samples=used + choosing,
            curve=learning_curve(curve),
            occupancy=occupancy,
            **tally(verdicts),
        )

    def gradient(
        self, world: World, policy: Floats, task: Task, update: int, barrier: float, left: int | None = None
    ) -> tuple[Floats, EpisodeStatistics]:
        """An estimate of the gradient of L, shape (S, A), and the trajectories it is from."""
        horizon = self.horizon(update, task.gamma)
        batch = world.episodes(
            policy,
            EpisodeBatch(
                episodes=self.trajectories,
                horizon=horizon,
                credited=self.credited(horizon),
                gamma=task.gamma,
                weight_decay=task.gamma,
                reset=task.roll_in,
                max_samples=left,
                reward=task.reward,
            ),
        )
        value_part = batch_gradient(policy, batch.advantage_sum) / max(1, len(batch.returns))
        return value_part + barrier_gradient(policy, barrier), batch

    def _updates(self) -> Iterator[tuple[int, int]]:
        """Every update in order: its phase, and its number within the phase."""
        return ((phase, update) for phase in range(self.phases) for update in range(2**phase))

    def _kept_for_choosing(self, task: Task) -> int:
        assert task.budget is not None
        needed = self.candidates * self.choosing_episodes * default_horizon(task.gamma)
        return min(needed, int(CHOOSING_SHARE * task.budget))

    def _choose(
        self, world: World, drawn: list[Floats], task: Task, left: int | None
    ) -> tuple[Floats, Floats | None, int]:
        """The best of the iterates drawn, by running them from the same resets, where it went, and what that took.

        What is left of the budget is shared evenly; an iterate that could not be run does not count.
        """
        best, best_value, used, occupancy = drawn[-1], -math.inf, 0, None
        for index, policy in enumerate(drawn):
            share = None if left is None else (left - used) // (len(drawn) - index)
            if share == 0:
                continue
            batch = world.episodes(
                policy,
                EpisodeBatch(
                    episodes=self.choosing_episodes,
                    horizon=default_horizon(task.gamma),
                    gamma=task.gamma,
                    reset=task.roll_in,
                    max_samples=share,
                    reward=task.reward,
                ),
            )
            used += batch.samples
            if len(batch.returns) > 0 and batch.returns.mean() > best_value:
                best, best_value = policy, float(batch.returns.mean())
                occupancy = batch.occupancy / batch.occupancy.sum()
        return best, occupancy, used


def barrier_weight(updates: int, gamma: float) -> float:
    """lambda_l, for a phase of T_l updates (from memory)."""
    return (1.0 - gamma) / 2.0 * math.pow(updates, -1.0 / 6.0)


def step_size(update: int, barrier: float, num_states: int, gamma: float) -> float:
    """How far update k of a phase steps along the gradient."""
    constant = 1.0 / (2.0 * (8.0 * gamma / (1.0 - gamma) ** 3 + 2.0 * barrier / num_states))
    return constant / (math.sqrt(update + 3.0) * math.log2(update + 3.0))


def batch_gradient(policy: Floats, advantage_sum: Floats) -> Floats:
    """The gradient with respect to the logits, summed over the batch: advantages minus their share by the policy."""
    gradient: Floats = advantage_sum - policy * advantage_sum.sum(axis=1, keepdims=True)
    return gradient


def barrier_gradient(policy: Floats, barrier: float) -> Floats:
    """The gradient of the log-barrier with respect to the logits, exactly, shape (S, A)."""
    num_states, num_actions = policy.shape
    gradient: Floats = barrier / num_states * (1.0 / num_actions - policy)
    return gradient


def post_process(policy: Floats) -> Floats:
    """PostProcess: the policy with half of the uniform one mixed in."""
    least = 1.0 / (2.0 * policy.shape[1])
    mixed: Floats = least + (1.0 - policy.shape[1] * least) * policy
    return mixed


def draw_again(drawn: list[Floats], new: Floats, count: int, random: np.random.Generator) -> list[Floats]:
    """Candidates that are each uniform over ``count`` iterates, from some that were so before the ``new`` one came."""
    replaced = random.random(len(drawn)) < 1.0 / count
    return [new if now else old for now, old in zip(replaced, drawn, strict=True)]


def softmax(logits: Floats) -> Floats:
    """Action probabilities from logits, shape (S, A)."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    policy: Floats = weights / weights.sum(axis=1, keepdims=True)
    return policy
