"""Learning off-policy from what an exploration has already seen: no new sample at all.

`explore(..., record=True)` keeps the transitions of every round; together they are a counted model, and this plans on
it. What was never tried is worth the least that can be earned, so the policy stays where the data are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from curious_explorer.learners.optimizer import OptimizerResult, Task, TaskOptimizer, Watch, learning_curve
from curious_explorer.models.counted_model import CountedModel
from curious_explorer.models.planning import plan_with_unknown
from curious_explorer.validation import check_count
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.world import TransitionCounts, World


@dataclass(frozen=True, eq=False)
class OffPolicy(TaskOptimizer):
    """The best policy for recorded transitions; takes no step.

    The records do not say which states are terminal nor what those pay: a state that was entered and never left counts
    as an end, and an end pays nothing of the world's own reward.

    Args:
        seen: tables of transitions, such as ``[round_.seen for round_ in exploration.rounds]``.
        known_after: how often a pair must have been tried to be trusted.
    """

    seen: Sequence[TransitionCounts | None]
    known_after: int = 1

    def __post_init__(self) -> None:
        check_count(self.known_after, "known_after", least=1)
        if len(self.seen) == 0:
            raise ValueError("there is no table of transitions to learn from; explore with record=True")
        for number, table in enumerate(self.seen):
            if table is None:
                raise ValueError(
                    f"table {number} of transitions is None: nothing was recorded; explore with record=True"
                )

    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Plan on the records; takes no step."""
        model = CountedModel(world.num_states, world.num_actions)
        for number, table in enumerate(self.seen):
            assert table is not None
            _check_table(table, number, world.num_states, world.num_actions)
            model.add(table)
        model.terminal = model.met() & ~model.tries.any(axis=1)
        best = plan_with_unknown(
            model, gamma=task.gamma, reward=task.reward, known_after=self.known_after, hopeful=False
        )
        watch(best.policy, 0)
        return OptimizerResult(policy=frozen(best.policy), samples=0, curve=learning_curve([]))


def _check_table(table: TransitionCounts, number: int, num_states: int, num_actions: int) -> None:
    """Refuse transitions of another world, as far as their numbers tell."""
    for column, size, kind in (
        (table.state, num_states, "state"),
        (table.next_state, num_states, "next state"),
        (table.action, num_actions, "action"),
    ):
        if column.size and not (column.min() >= 0 and column.max() < size):
            worst = int(column.max() if column.max() >= size else column.min())
            raise ValueError(
                f"table {number} of transitions has {kind} {worst}, expected 0 to {size - 1}; were they recorded in a "
                "world of other sizes?"
            )
    if not (np.all(table.times > 0) and np.isfinite(table.reward).all()):
        raise ValueError(f"table {number} of transitions has counts below one or rewards that are not finite")
