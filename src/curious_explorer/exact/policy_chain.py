"""The Markov chain that a policy makes of an MDP.

P_pi(s'|s) = sum_a pi(a|s) P(s'|s, a) and r_pi(s) = sum_a pi(a|s) r(s, a). Rows of P and of pi are distributions up to
rounding in what the user typed (`ROW_SUM_TOLERANCE`); near gamma = 1 even 1e-10 too much or too little in a row would
be multiplied by 1 / (1 - gamma), so rows are divided by their sums before anything is computed from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from curious_explorer.arrays import Floats
from curious_explorer.exact.report import frozen
from curious_explorer.mdp.finite_mdp import FiniteMDP

_UNIT_SUM = 4 * float(np.finfo(np.float64).eps)


class Rows(NamedTuple):
    """Compressed rows of distributions over states, as kernels want them; A of them for each state."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: Floats
    num_actions: int

    @property
    def num_states(self) -> int:
        """How many states the rows belong to."""
        return (self.indptr.size - 1) // self.num_actions

    def unsigned(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Floats]:
        """The arrays with unsigned indices, for kernels in which the check for negative ones would cost."""
        return self.indptr.view(np.uint32), self.indices.view(np.uint32), self.data

    def matrix(self) -> sparse.csr_array:
        """The rows as a sparse matrix of shape (S * A, S)."""
        shape = (self.indptr.size - 1, self.num_states)
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=shape)


def mdp_rows(mdp: FiniteMDP) -> Rows:
    """The transitions of an MDP, each row summing to one."""
    matrix = mdp.transitions
    if matrix.nnz >= 2**31:
        raise ValueError(f"the MDP stores {matrix.nnz} transitions, expected fewer than 2**31")
    data = matrix.data
    sums = matrix @ np.ones(mdp.num_states)
    if np.abs(sums - 1.0).max() > _UNIT_SUM:
        data = data / np.repeat(sums, np.diff(matrix.indptr))
    indptr, indices = (index.astype(np.int32, copy=False) for index in (matrix.indptr, matrix.indices))
    return Rows(frozen(indptr), frozen(indices), frozen(data), mdp.num_actions)


def policy_chain(mdp: FiniteMDP, policy: Floats) -> Rows:
    """P_pi as compressed rows, one for each state."""
    from curious_explorer.exact.kernels import compose

    matrix = mdp.transitions
    indptr, indices = (frozen(index.astype(np.int32, copy=False)) for index in (matrix.indptr, matrix.indices))
    chain = compose(indptr, indices, frozen(matrix.data), frozen(policy))
    return Rows(frozen(chain[0]), frozen(chain[1]), frozen(chain[2]), 1)


def check_reward_table(rewards: ArrayLike | None, mdp: FiniteMDP) -> Floats:
    """The MDP's own rewards, or a finite (S, A) table given in their place; any range will do."""
    if rewards is None:
        return mdp.rewards
    table = np.asarray(rewards, dtype=np.float64)
    shape = (mdp.num_states, mdp.num_actions)
    if table.shape != shape:
        raise ValueError(f"rewards has shape {table.shape}, expected {shape}: one for each state and action")
    if not np.isfinite(table).all():
        state, action = (int(index) for index in np.argwhere(~np.isfinite(table))[0])
        raise ValueError(
            f"rewards, state {state}, action {action}: the reward is {table[state, action]}, expected a finite number"
        )
    return table


def shifted_rewards(rewards: Floats) -> tuple[Floats, float]:
    """Rewards without negative ones, and the constant to add to normalised values to undo the shift.

    Values are normalised, so a constant added to every reward is added to every value. With rewards that are not
    negative the methods never cancel, and small values keep their digits.
    """
    shift = min(0.0, float(rewards.min()))
    return (rewards - shift if shift < 0.0 else rewards), shift
