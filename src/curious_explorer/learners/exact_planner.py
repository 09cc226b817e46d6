"""The exact optimum as an optimizer: the ideal `opt` of the paper, for tests, bounds and studies without sampling.

It is handed the model openly and takes no step in the world at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.exact.optimal import solve
from curious_explorer.learners.optimizer import OptimizerResult, Watch, check_task, learning_curve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.roll_in import RollIn
from curious_explorer.worlds.visit import Reset
from curious_explorer.worlds.world import Reward, World


@dataclass(frozen=True)
class Planner:
    """An exactly optimal policy for whatever reward is asked for, ties split evenly.

    One policy is optimal from every state, so where episodes would begin does not matter.
    """

    mdp: FiniteMDP
    """The model of the world that it will be called with."""

    def __call__(
        self,
        world: World,
        reset: Reset | RollIn | None,
        *,
        gamma: float,
        reward: Reward | None = None,
        budget: int | None = None,
        watch: Watch | None = None,
    ) -> OptimizerResult:
        """Solve for the reward; see `Optimizer`. Takes no step."""
        shape = (self.mdp.num_states, self.mdp.num_actions)
        if (world.num_states, world.num_actions) != shape:
            raise ValueError(
                f"the planner was given a model of {shape[0]} states and {shape[1]} actions, but the world has "
                f"{world.num_states} and {world.num_actions}; give it the model of this world"
            )
        task = check_task(world, reset, gamma=gamma, reward=reward, budget=budget)
        rewards = None if task.reward is None else expected_rewards(self.mdp, task.reward)
        solution = solve(self.mdp, gamma=task.gamma, rewards=rewards)
        if watch is not None:
            watch(solution.policy, 0)
        return OptimizerResult(policy=frozen(solution.policy), samples=0, curve=learning_curve([]))


def expected_rewards(mdp: FiniteMDP, reward: Reward) -> Floats:
    """What a pair is paid on average, shape (S, A); "max" takes the larger reward of each transition."""
    if reward.combine == "replace":
        return reward.table
    if mdp.transition_rewards is None:
        return np.maximum(reward.table, mdp.rewards)
    rows = mdp.transitions
    pair = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    paid = rows.data * np.maximum(reward.table.ravel()[pair], mdp.transition_rewards)
    expected = np.zeros(rows.shape[0])
    np.add.at(expected, pair, paid)
    return expected.reshape(reward.table.shape)
