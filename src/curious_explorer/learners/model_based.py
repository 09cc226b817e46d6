"""A model-based optimizer: count what happens, plan as if everything unknown were wonderful (R-MAX), go there, count.

Each update plans optimistically for the reward it is given, runs a few episodes of that plan and adds what it saw to
its counts. The counts are kept from call to call: a model is good for every reward, so in Curious Explorer a later
round, or the improvement phase, begins with all that the earlier ones paid for. When the plan leads to nothing unknown
any more, or nothing unknown was met for a while, it stops, having spent only what it needed.

**What it hands out.** For the world's own reward, alone or combined with another, the result is to be used: it is the
best policy for what was seen, and pairs that were never tried are worth nothing. For a reward that replaces the
world's own, as in Curious Explorer's rounds, the result is to explore: pairs that are not known yet keep their promise.

**Honesty.** Counts are paid for in one world, and are refused in another: shared between runs, they would be samples
that nobody counted. Make a new `ModelBased` for each run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats
from curious_explorer.learners.actor_critic import default_horizon
from curious_explorer.learners.optimizer import OptimizerResult, Reward, Task, check_task, learning_curve, tally
from curious_explorer.models.counted_model import Experience, Plan, plan
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import EpisodeBatch, EpisodeStatistics, TransitionCounts, World

MEMORY = (*TransitionCounts._fields, "terminal", "end_met", "end_paid", "num_actions", "world", "samples")


class _Memory:
    """What one optimizer remembers: its experience, and the world (and how far into it) that it is from."""

    def __init__(self) -> None:
        self.experience: Experience | None = None
        self.world = ""
        self.samples = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelBased:
    """R-MAX in batches, for any reward, with a memory; see the module for what it does."""

    known_after: int = 3
    """How many tries make a pair known. One is enough where nothing is random; three see a chance of 0.2 every other
    time, and what they miss shows on the way elsewhere (DCL(20), 10 seeds: all optimal with 1, 2, 3 and 5). Worlds in
    which chance decides a lot need more: FrozenLake 8x8 at gamma 0.99 is 0.62 of optimal with 30, 0.98 with 100."""
    episodes: int = 1
    """Episodes between two plans. More of them save time and cost samples: what one finds, the next could have used."""
    updates: int = 2_000
    """The most times that it plans and runs, if the budget allows."""
    patience: int = 10
    """After so many updates in a row without a try of an unknown pair, what is left unknown counts as out of reach."""
    horizon: int | None = None
    """When an episode is cut off; by default where gamma**horizon is 0.01."""

    def __post_init__(self) -> None:
        for name in ("known_after", "episodes", "updates", "patience"):
            check_count(getattr(self, name), name, least=1)
        if self.horizon is not None:
            check_count(self.horizon, "horizon", least=1)
        object.__setattr__(self, "_memory", _Memory())  # not a field: settings are compared, memory is not

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Callable[[Floats, int], None] | None = None,
    ) -> OptimizerResult:
        """Learn a policy; see `Optimizer`."""
        task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        memory_ = self._open_memory(world)
        assert memory_.experience is not None
        used, run, idle = 0, 0, 0
        curve: list[tuple[int, float, int]] = []
        verdicts: Counter[str | None] = Counter()
        occupancy = None
        now = self._plan(memory_.experience, task)
        while len(curve) < self.updates and idle < self.patience and used != task.budget:
            if watch is not None:
                watch(now.policy, used)
            if not now.leads_to_unknown and memory_.experience.met().any():
                break
            left = None if task.budget is None else task.budget - used
            batch = self._run(world, now.policy, task, left)
            used += batch.samples
            if len(batch.returns) == 0:
                break
            known = self._known(memory_.experience)
            self._note(memory_, world, batch, left, task.gamma)
            idle = 0 if _tried(batch)[~known].any() else idle + 1
            before, now = now, self._plan(memory_.experience, task)
            changed = not np.array_equal(before.policy, now.policy)
            verdicts[None if changed else "the plan stayed the same"] += 1
            run += len(batch.returns)
            occupancy = batch.occupancy / batch.occupancy.sum()
            curve.append((used, _mean_return(batch, before.policy, task), run))
        return OptimizerResult(
            policy=frozen(self._result(memory_.experience, task, now)),
            samples=used,
            curve=learning_curve(curve),
            occupancy=occupancy,
            **tally(verdicts),
        )

    def _plan(self, experience: Experience, task: Task) -> Plan:
        return plan(experience, gamma=task.gamma, reward=task.reward, known_after=self.known_after, hopeful=True)

    def _result(self, experience: Experience, task: Task, now: Plan) -> Floats:
        if task.reward is not None and task.reward.combine == "replace":
            return now.policy
        return plan(experience, gamma=task.gamma, reward=task.reward, known_after=1, hopeful=False).policy

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

    def _known(self, experience: Experience) -> NDArray[np.bool_]:
        return experience.tries() >= self.known_after

    def _note(self, memory_: _Memory, world: World, batch: EpisodeStatistics, left: int | None, gamma: float) -> None:
        assert memory_.experience is not None
        cut_off = int((batch.lengths >= (self.horizon or default_horizon(gamma))).sum())
        cut_off += int(left is not None and batch.samples >= left)  # the last episode may have been cut short
        memory_.experience = memory_.experience.after(batch, cut_off, gamma)
        memory_.samples = world.samples

    # Memory -------------------------------------------------------------------------------------------------------

    def _open_memory(self, world: World) -> _Memory:
        memory_: _Memory = self._memory  # type: ignore[attr-defined]
        identity = json.dumps(world.identity(), sort_keys=True)
        if memory_.experience is None:
            memory_.experience = Experience.nothing(world.num_states, world.num_actions)
            memory_.world, memory_.samples = identity, world.samples
        elif memory_.experience.shape != (world.num_states, world.num_actions):
            num_states, num_actions = memory_.experience.shape
            raise ValueError(
                f"this ModelBased has counts from a world of {num_states} states and {num_actions} actions, but the "
                f"world has {world.num_states} and {world.num_actions}; make a new ModelBased for it"
            )
        elif memory_.world != identity or world.samples < memory_.samples:
            raise ValueError(
                f"this ModelBased has counts that were paid for in another world ({memory_.world}, after "
                f"{memory_.samples} samples; this one is {identity} after {world.samples}); make a new ModelBased "
                "for each run, so that every sample is counted"
            )
        return memory_

    def forget(self) -> None:
        """Start anew, as if just made."""
        object.__setattr__(self, "_memory", _Memory())

    def memory(self) -> dict[str, NDArray[Any]]:
        """What it remembers, as plain arrays; none if it has seen nothing yet."""
        memory_: _Memory = self._memory  # type: ignore[attr-defined]
        if memory_.experience is None:
            return {}
        return {
            **memory_.experience.seen._asdict(),
            "terminal": memory_.experience.terminal,
            "end_met": memory_.experience.end_met,
            "end_paid": memory_.experience.end_paid,
            "num_actions": np.array([memory_.experience.num_actions], dtype=np.int64),
            "world": np.frombuffer(memory_.world.encode(), dtype=np.uint8),
            "samples": np.array([memory_.samples], dtype=np.int64),
        }

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Remember this, which `memory` gave, instead of what it remembers now."""
        if not memory:
            self.forget()
            return
        if set(memory) != set(MEMORY):
            raise ValueError(f"the memory of a ModelBased has {', '.join(MEMORY)}; got {', '.join(sorted(memory))}")
        own = {name: np.array(array) for name, array in memory.items()}
        memory_ = _Memory()
        memory_.experience = Experience(
            int(own["num_actions"][0]),
            TransitionCounts(*(own[name] for name in TransitionCounts._fields)),
            own["terminal"],
            own["end_met"],
            own["end_paid"],
        )
        memory_.world = memory["world"].tobytes().decode()
        memory_.samples = int(memory["samples"][0])
        object.__setattr__(self, "_memory", memory_)


def _tried(batch: EpisodeStatistics) -> NDArray[np.bool_]:
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
