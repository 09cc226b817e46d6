"""A model-based optimizer: count what happens, plan with unknown pairs worth the most (R-MAX), act by the plan, count.

Each update plans optimistically for the reward it is given, runs a few episodes of that plan and adds what it saw to
its counts. The counts are kept from call to call: a model is good for every reward, so in Curious Explorer a later
round, or the improvement phase, begins with all that the earlier ones paid for. When the plan leads to nothing unknown
any more, or nothing unknown was met for a while, it stops, having spent only what it needed.

**What it hands out.** For the world's own reward, alone or combined with another, the result is to be used: it is the
best policy for what was seen, and pairs that were never tried are worth nothing. For a reward that replaces the
world's own, as in Curious Explorer's rounds, the result is to explore: pairs that are not known yet are worth the most.

**How often is enough?** A pair is known after three tries, unless that is given. Where chance decides a lot these
mislead, in two ways that show. A plan for the world's own reward is run from the start, and what it earns is compared
with what the model promises: a plan that is best by luck earns less. Then a pair takes twice as many tries to be known,
and it learns again; where returns differ from run to run, until more tries promise no more. And a round of Algorithm 2
that is to make more effort, because those before reached nothing new, asks for so many times the tries.

**Samples.** Counts are paid for in one world, and are refused in another: shared between runs, they would be samples
that nobody counted. Make a new `ModelBased` for each run.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Mask
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import (
    Optimizer,
    OptimizerResult,
    Task,
    TaskOptimizer,
    Watch,
    learning_curve,
    tally,
)
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import PartialPlan, plan_with_unknown
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import KnownPolicy, frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, World

FIRST_TRIES = 3
"""So many tries make a pair known to begin with."""
MOST_TRIES = 3_000
EVALUATION_EPISODES, EVALUATION_RESTARTS, MOST_EVALUATION_STEPS = 50, 1_000, 1_000_000
"""How often a plan is run to see whether it keeps what it promises: 50 times, and as often again until that is known;
how many restarts say where it begins; and the most steps that this may take."""
TOLERATED = 0.01
"""How much less it may earn, as a share of what it promises, and how well that is to be known."""


class ModelBased(TaskOptimizer):
    """R-MAX in batches, for any reward, with a memory (`model`); see the module for what it does.

    Args:
        known_after: how many tries make a pair known; None: three, and more where it shows that these are too few. One
            is enough where nothing is random; three see a chance of 0.2 every other time, and what they miss shows on
            the way elsewhere (DCL(20), 10 seeds: all optimal with 1, 2, 3 and 5).
        episodes: episodes between two plans. More of them save time and cost samples: what one finds, the next could
            have used.
        updates: the most times that it plans and runs, if the budget allows.
        patience: after so many updates in a row without a try of an unknown pair, what is left unknown counts as out
            of reach.
        horizon: when an episode is cut off; by default where gamma**horizon is 0.01.
    """

    def __init__(
        self,
        *,
        known_after: int | None = None,
        episodes: int = 1,
        updates: int = 2_000,
        patience: int = 10,
        horizon: int | None = None,
    ) -> None:
        self.known_after = None if known_after is None else check_count(known_after, "known_after", least=1)
        self.episodes = check_count(episodes, "episodes", least=1)
        self.updates = check_count(updates, "updates", least=1)
        self.patience = check_count(patience, "patience", least=1)
        self.horizon = None if horizon is None else check_count(horizon, "horizon", least=1)
        self.model: CountedModel | None = None
        """What was counted in all calls so far; None before the first."""
        self._world, self._samples = "", 0  # the world that the counts are from, and how far into it

    def settings(self) -> dict[str, int | None]:
        """What it was made with, and nothing that it learned."""
        names = ("known_after", "episodes", "updates", "patience", "horizon")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"ModelBased({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"

    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Plan, run, count, until nothing unknown is worth going to, and the plan keeps what it promises."""
        return self._learn(world, task, watch, effort=1)

    def for_round(self, start: KnownPolicy, effort: int) -> Optimizer:
        """The optimizer for a round of Algorithm 2, with so many times the tries; see `RoundOptimizer`."""
        return self if effort == 1 else _Round(self, effort)

    def _learn(self, world: World, task: Task, watch: Watch, *, effort: int) -> OptimizerResult:
        run = _Learning(world, task, watch, self._model_of(world))
        known_after = self.known_after or FIRST_TRIES * (effort if task.budget is None else 1)
        self._explore(run, known_after)
        result = self._result(run, known_after)
        settled = self.known_after is not None or _explores(task) or not run.model.tries.any()
        before: float | None = None  # what was promised, and kept, with half of the tries
        while not settled and run.left != 0 and known_after < MOST_TRIES:
            promised, kept, doubt = self._keeps_promise(run, result)
            no_more = before is not None and promised <= before + TOLERATED * abs(before)
            settled = kept and (no_more or doubt == 0.0)
            if not settled:
                known_after, before = 2 * known_after, promised if kept else None
                self._explore(run, known_after)
                result = self._result(run, known_after)
        return run.result(result)

    def _explore(self, run: _Learning, known_after: int) -> None:
        """Plan, run, count, until nothing that is unknown is worth going to or the budget is spent."""
        model, task = run.model, run.task
        values, updates, idle = np.zeros(model.num_states), 0, 0
        episodes = self.episodes * max(1, known_after // FIRST_TRIES)
        now = self._plan(model, task, values, known_after)
        while updates < self.updates and idle < self.patience and run.left != 0:
            run.watch(now.policy, run.used)
            if not now.leads_to_unknown and model.tries.any():
                break
            known = model.tries >= known_after
            batch = self._run(run, now.policy, episodes)
            if len(batch.returns) == 0:
                break
            updates, idle = updates + 1, 0 if _tried(batch)[~known].any() else idle + 1
            before, now = now, self._plan(model, task, values, known_after)
            run.note(batch, before.policy, changed=not np.array_equal(before.policy, now.policy))

    def _keeps_promise(self, run: _Learning, policy: Floats) -> tuple[float, bool, float]:
        """What the model says a plan earns from the start, whether it does when it is run, and the standard error."""
        values = np.zeros(run.model.num_states)
        plan_with_unknown(
            run.model, gamma=run.task.gamma, reward=run.task.reward, known_after=1, hopeful=False, values=values
        )
        starts = run.world.count_ends(RollIn.from_start(), EVALUATION_RESTARTS)  # they take no step
        promised = float(starts @ values) / EVALUATION_RESTARTS
        earned, doubt, before = np.zeros(0), 0.0, run.used
        while run.left != 0 and run.used - before < MOST_EVALUATION_STEPS:
            batch = self._run(run, policy, max(EVALUATION_EPISODES, len(earned)), from_start=True)
            earned = np.concatenate([earned, (1.0 - run.task.gamma) * batch.returns])
            doubt = float(earned.std()) / math.sqrt(max(len(earned), 1))
            missing = promised - float(earned.mean()) if len(earned) > 0 else 0.0
            if missing > max(TOLERATED * abs(promised), 2.0 * doubt):
                return promised, False, doubt
            if doubt <= TOLERATED * abs(promised):
                break
        return promised, True, doubt

    def _plan(self, model: CountedModel, task: Task, values: Floats, known_after: int) -> PartialPlan:
        return plan_with_unknown(
            model, gamma=task.gamma, reward=task.reward, known_after=known_after, hopeful=True, values=values
        )

    def _result(self, run: _Learning, known_after: int) -> Floats:
        """What is handed out: the plan that explores, or the best one for what was seen."""
        model, task = run.model, run.task
        if _explores(task):
            return self._plan(model, task, np.zeros(model.num_states), known_after).policy
        return plan_with_unknown(model, gamma=task.gamma, reward=task.reward, known_after=1, hopeful=False).policy

    def _run(self, run: _Learning, policy: Floats, episodes: int, *, from_start: bool = False) -> EpisodeStatistics:
        """Episodes of a plan, counted. They earn the world's own reward, whatever is planned for: that is known."""
        horizon, left = self.horizon or default_horizon(run.task.gamma), run.left
        horizon *= 2 if from_start else 1
        batch = run.world.episodes(
            policy,
            EpisodeBatch(
                episodes=episodes,
                horizon=horizon,
                gamma=run.task.gamma,
                reset=None if from_start else run.task.roll_in,
                trace=0.0,
                max_samples=left,
                record=True,
            ),
        )
        run.used += batch.samples
        if len(batch.returns) > 0:
            cut_off = int((batch.lengths >= horizon).sum())
            cut_off += int(left is not None and batch.samples >= left)  # the last episode may have been cut short
            run.model.add_episodes(batch, cut_off=cut_off, gamma=run.task.gamma)
        self._samples = run.world.samples
        return batch

    # Memory -------------------------------------------------------------------------------------------------------

    def _model_of(self, world: World) -> CountedModel:
        """What is known of this world; refuses another one than the counts are from."""
        identity = json.dumps(world.identity(), sort_keys=True)
        if self.model is None:
            self.model = CountedModel(world.num_states, world.num_actions)
            self._world, self._samples = identity, world.samples
        elif self.model.shape != (world.num_states, world.num_actions):
            num_states, num_actions = self.model.shape
            raise ValueError(
                f"this ModelBased has counts from a world of {num_states} states and {num_actions} actions, but the "
                f"world has {world.num_states} and {world.num_actions}; make a new ModelBased for it"
            )
        elif self._world != identity or world.samples < self._samples:
            raise ValueError(
                f"this ModelBased has counts that were paid for in another world ({self._world}, after "
                f"{self._samples} samples; this one is {identity} after {world.samples}); make a new ModelBased "
                "for each run, so that every sample is counted"
            )
        return self.model

    def forget(self) -> None:
        """Start anew, as if just made."""
        self.model, self._world, self._samples = None, "", 0

    def memory(self) -> dict[str, NDArray[Any]]:
        """What it remembers, as plain arrays; none if it has seen nothing yet."""
        if self.model is None:
            return {}
        return {
            **self.model.arrays(),
            "world": np.frombuffer(self._world.encode(), dtype=np.uint8),
            "samples": np.array([self._samples], dtype=np.int64),
        }

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Remember this, which `memory` gave, instead of what it remembers now."""
        self.forget()
        if not memory:
            return
        if "times" in memory:  # before 0.3.0 there were no ends of transitions
            memory = {"ended": np.zeros_like(memory["times"]), **memory}
        expected = {*CountedModel(1, 1).arrays(), "world", "samples"}
        if set(memory) != expected:
            raise ValueError(
                f"the memory of a ModelBased has {', '.join(sorted(expected))}; got {', '.join(sorted(memory))}"
            )
        self.model = CountedModel.from_arrays(memory)
        self._world, self._samples = memory["world"].tobytes().decode(), int(memory["samples"][0])


class _Learning:
    """One call in progress: what is learned in, what was used, and the account of it."""

    def __init__(self, world: World, task: Task, watch: Watch, model: CountedModel) -> None:
        self.world, self.task, self.watch, self.model = world, task, watch, model
        self.used = 0
        """Steps taken so far, roll-ins and evaluations included."""
        self._episodes = 0
        self._curve: list[tuple[int, float, int]] = []
        self._verdicts: Counter[str | None] = Counter()
        self._occupancy: Floats | None = None

    @property
    def left(self) -> int | None:
        """How many steps may still be taken; None if there is no limit."""
        return None if self.task.budget is None else self.task.budget - self.used

    def note(self, batch: EpisodeStatistics, policy: Floats, *, changed: bool) -> None:
        """Take note of a batch, the policy that ran it, and whether it changed the plan."""
        self._verdicts[None if changed else "the plan stayed the same"] += 1
        self._episodes += len(batch.returns)
        self._occupancy = batch.occupancy / batch.occupancy.sum()
        self._curve.append((self.used, _mean_return(batch, policy, self.task), self._episodes))

    def result(self, policy: Floats) -> OptimizerResult:
        """The account, with a policy."""
        return OptimizerResult(
            policy=frozen(policy),
            samples=self.used,
            curve=learning_curve(self._curve),
            occupancy=self._occupancy,
            **tally(self._verdicts),
        )


@dataclass(frozen=True, eq=False)
class _Round(TaskOptimizer):
    """A `ModelBased` in a round that makes more effort."""

    optimizer: ModelBased
    effort: int

    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Learn with so many times the tries."""
        return self.optimizer._learn(world, task, watch, effort=self.effort)


def _explores(task: Task) -> bool:
    """Whether the reward replaces the world's own, as in the rounds of Algorithm 2."""
    return task.reward is not None and task.reward.combine == "replace"


def _tried(batch: EpisodeStatistics) -> Mask:
    """Which pairs were tried in a batch, shape (S, A)."""
    return batch.weight > 0.0


def _mean_return(batch: EpisodeStatistics, policy: Floats, task: Task) -> float:
    """The mean discounted return of the episodes for the reward that was planned for.

    Where that is not the reward that the world paid, it is what the policy expects in the states that were visited.
    """
    if task.reward is None:
        return float(batch.returns.mean())
    by_state = (policy * task.reward.table).sum(axis=1)
    planned = float(batch.occupancy @ by_state) / ((1.0 - task.gamma) * len(batch.returns))
    return planned if task.reward.combine == "replace" else max(planned, float(batch.returns.mean()))
