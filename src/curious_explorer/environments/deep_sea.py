"""DeepSea, as bsuite defines it (Osband et al. 2020): N right turns in a row, each at a small price, lead to treasure.

An episode begins in the top left cell (row 0, column 0) of an N x N grid and sinks one row at every step, so it has
exactly N steps. One action moves a column to the right and costs 0.01 / N, the other a column to the left (in column 0
it stays there), for nothing. Moving right in the last column pays 1 more. In the stochastic version moving right fails
with probability 1 / N: the column stays, the price is paid. bsuite's stochastic version also adds Gaussian noise of
mean zero to the reward in two corners; an MDP with rewards in [0, 1] has no room for that, so it is left out, and
the expected rewards are the same.

Only cells with column <= row can be reached, so there are N (N + 1) / 2 states and one end. Rewards are shifted by the
price, so that they lie in [0, 1], and the end goes on paying what stands for nothing; `FiniteMDP.reward_scale` has it.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from curious_explorer.environments.action_labels import permute_action_labels
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.validation import check_count

LEFT, RIGHT = 0, 1  # before labels are permuted
MOVE_COST = 0.01
"""bsuite's price of a whole row of right moves."""


def deep_sea(size: int, *, stochastic: bool = False, permute_actions: int | None = 0) -> FiniteMDP:
    """DeepSea with ``size * (size + 1) / 2 + 1`` states and two actions.

    Args:
        size: N, how many rows and columns the sea has.
        stochastic: whether moving right fails with probability 1 / size.
        permute_actions: seed for the action labels of each state; None keeps "action 1 is right" everywhere.
    """
    size = check_count(size, "size", least=2, most=20_000)
    row, column = np.tril_indices(size)  # cell (r, c) is state r (r + 1) / 2 + c
    num_cells = len(row)
    end = num_cells
    state = np.arange(num_cells)

    def below(next_column: np.ndarray) -> np.ndarray:
        inside = (row + 1) * (row + 2) // 2 + next_column
        return np.where(row == size - 1, end, inside)

    failing = 1.0 / size if stochastic else 0.0
    outcomes = [
        (LEFT, below(np.maximum(column - 1, 0)), 1.0),
        (RIGHT, below(np.minimum(column + 1, size - 1)), 1.0 - failing),
        (RIGHT, below(column), failing),
    ]
    pairs = np.concatenate([2 * state + action for action, _, _ in outcomes])
    following = np.concatenate([cells for _, cells, _ in outcomes])
    chances = np.concatenate([np.full(num_cells, chance) for _, _, chance in outcomes])
    rows = sparse.csr_array((chances, (pairs, following)), shape=(2 * (num_cells + 1), num_cells + 1))

    price = MOVE_COST / size
    rewards = np.full((num_cells + 1, 2), price)  # what stands for nothing
    rewards[:num_cells, RIGHT] = np.where(column == size - 1, 1.0, 0.0)
    names = [*(f"({r}, {c})" for r, c in zip(row, column, strict=True)), "end"]
    scale = RewardScale(-price, 1.0)
    mdp = FiniteMDP.from_rows(rows, rewards, 0, terminal=[end], state_names=names, reward_scale=scale)
    return permute_action_labels(mdp, permute_actions)
