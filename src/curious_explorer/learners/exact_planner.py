"""The exact optimum as an optimizer: the ideal `opt` of the paper, for tests, bounds and studies without sampling.

It is handed the model openly and takes no step in the world at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curious_explorer.arrays import Floats
from curious_explorer.exact.optimal import solve
from curious_explorer.learners.optimizer import OptimizerResult, Task, TaskOptimizer, Watch, learning_curve
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.worlds.policies import frozen
from curious_explorer.worlds.world import Reward, World


@dataclass(frozen=True)
class Planner(TaskOptimizer):
    """An exactly optimal policy for whatever reward is asked for, ties split evenly.

    One policy is optimal from every state, so where episodes would begin does not matter.
    """

    mdp: FiniteMDP
    """The model of the world that it will be called with."""

    def learn(self, world: World, task: Task, watch: Watch) -> OptimizerResult:
        """Solve for the reward; takes no step."""
        shape = (self.mdp.num_states, self.mdp.num_actions)
        if (world.num_states, world.num_actions) != shape:
            raise ValueError(
                f"the planner was given a model of {shape[0]} states and {shape[1]} actions, but the world has "
                f"{world.num_states} and {world.num_actions}; give it the model of this world"
            )
        rewards = None if task.reward is None else expected_rewards(self.mdp, task.reward)
        solution = solve(self.mdp, gamma=task.gamma, rewards=rewards)
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
