"""A model-based optimizer: count what happens, plan with unknown pairs worth the most (R-MAX), act by the plan, count.

Each update plans optimistically for the reward it is given, runs a few episodes of that plan and adds what it saw to
its counts. The counts are kept from call to call: a model is good for every reward, so in Curious Explorer a later
round, or the improvement phase, begins with all that the earlier ones paid for. When the plan leads to nothing unknown
any more, or nothing unknown was met for a while, it stops, having spent only what it needed.

**What it hands out.** For the world's own reward, alone or combined with another, the result is to be used: it is the
best policy for what was seen, and pairs that were never tried are worth nothing. For a reward that replaces the
world's own, as in Curious Explorer's rounds, the result is to explore: pairs that are not known yet are worth the most.

**Samples.** Counts are paid for in one world, and are refused in another: shared between runs, they would be samples
that nobody counted. Make a new `ModelBased` for each run.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Mask
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Task, TaskOptimizer, Watch, learning_curve, tally
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import PartialPlan, plan_with_unknown
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, World


class ModelBased(TaskOptimizer):
    """R-MAX in batches, for any reward, with a memory (`model`); see the module for what it does.

    Args:
        known_after: how many tries make a pair known. One is enough where nothing is random; three see a chance of 0.2
            every other time, and what they miss shows on the way elsewhere (DCL(20), 10 seeds: all optimal with 1, 2, 3
            and 5). Worlds in which chance decides a lot need more: FrozenLake 8x8 at gamma 0.99 is 0.62 of optimal with
            30, 0.98 with 100.
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
        known_after: int = 3,
        episodes: int = 1,
        updates: int = 2_000,
        patience: int = 10,
        horizon: int | None = None,
    ) -> None:
        self.known_after = check_count(known_after, "known_after", least=1)
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
        """Plan, run, count, until nothing unknown is worth going to or the budget is spent."""
        model = self._model_of(world)
        values = np.zeros(world.num_states)
        used, run, idle = 0, 0, 0
        curve: list[tuple[int, float, int]] = []
        verdicts: Counter[str | None] = Counter()
        occupancy = None
        now = self._plan(model, task, values)
        while len(curve) < self.updates and idle < self.patience and used != task.budget:
            watch(now.policy, used)
            if not now.leads_to_unknown and model.tries.any():
                break
            left = None if task.budget is None else task.budget - used
            batch = self._run(world, now.policy, task, left)
            used += batch.samples
            if len(batch.returns) == 0:
                break
            known = model.tries >= self.known_after
            self._count(model, batch, left, task.gamma)
            self._samples = world.samples
            idle = 0 if _tried(batch)[~known].any() else idle + 1
            before, now = now, self._plan(model, task, values)
            changed = not np.array_equal(before.policy, now.policy)
            verdicts[None if changed else "the plan stayed the same"] += 1
            run += len(batch.returns)
            occupancy = batch.occupancy / batch.occupancy.sum()
            curve.append((used, _mean_return(batch, before.policy, task), run))
        return OptimizerResult(
            policy=frozen(self._result(model, task, now)),
            samples=used,
            curve=learning_curve(curve),
            occupancy=occupancy,
            **tally(verdicts),
        )

    def _plan(self, model: CountedModel, task: Task, values: Floats) -> PartialPlan:
        return plan_with_unknown(
            model, gamma=task.gamma, reward=task.reward, known_after=self.known_after, hopeful=True, values=values
        )

    def _result(self, model: CountedModel, task: Task, now: PartialPlan) -> Floats:
        if task.reward is not None and task.reward.combine == "replace":
            return now.policy
        return plan_with_unknown(model, gamma=task.gamma, reward=task.reward, known_after=1, hopeful=False).policy

    def _run(self, world: World, policy: Floats, task: Task, left: int | None) -> EpisodeStatistics:
        """Episodes of a plan. They earn the world's own reward, whatever is planned for: the rest is known already."""
        return world.episodes(
            policy,
            EpisodeBatch(
                episodes=self.episodes,
                horizon=self.horizon or default_horizon(task.gamma),
                gamma=task.gamma,
                reset=task.roll_in,
                trace=0.0,
                max_samples=left,
                record=True,
            ),
        )

    def _count(self, model: CountedModel, batch: EpisodeStatistics, left: int | None, gamma: float) -> None:
        cut_off = int((batch.lengths >= (self.horizon or default_horizon(gamma))).sum())
        cut_off += int(left is not None and batch.samples >= left)  # the last episode may have been cut short
        model.add_episodes(batch, cut_off=cut_off, gamma=gamma)

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
