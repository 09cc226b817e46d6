"""Transition rows as the solvers read them: those of an MDP, or of the Markov chain that a policy makes of it.

P_pi(s'|s) = sum_a pi(a|s) P(s'|s, a). Rows of P and of pi are distributions up to rounding in what the user typed
(`ROW_SUM_TOLERANCE`); near gamma = 1 even 1e-10 too much or too little in a row would be multiplied by 1 / (1 - gamma),
so rows are divided by their sums before anything is computed from them.

Both an MDP and a chain are a *graph*: rows ``s * A + a`` (A = 1 for a chain), with the successors of a state in one
contiguous stretch of ``indices``. Two facts about it decide which methods apply: whether it has cycles, and how wide
its band is. Reverse Cuthill-McKee brings neighbours together whatever the numbering was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from curious_explorer.arrays import Floats, Indices, Integers, Unsigned
from curious_explorer.compile import compiled
from curious_explorer.exact.report import frozen
from curious_explorer.mdp.finite_mdp import FiniteMDP

_UNIT_SUM = 4 * float(np.finfo(np.float64).eps)
_UNSEEN, _DONE = -1, -2
BAND_ENTRIES = 5e7
"""The largest band that is ever stored: 400 MB."""


class Rows(NamedTuple):
    """Compressed rows of distributions over states, as kernels want them; A of them for each state."""

    indptr: Indices
    indices: Indices
    data: Floats
    num_actions: int

    @property
    def num_states(self) -> int:
        """How many states the rows belong to."""
        return (self.indptr.size - 1) // self.num_actions

    def unsigned(self) -> tuple[Unsigned, Unsigned, Floats]:
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
    indptr, indices = (index.astype(np.int32, copy=False) for index in (matrix.indptr, matrix.indices))
    sums = row_sums(frozen(indptr), frozen(data))
    if np.abs(sums - 1.0).max() > _UNIT_SUM:
        data = data / np.repeat(sums, np.diff(matrix.indptr))
    return Rows(frozen(indptr), frozen(indices), frozen(data), mdp.num_actions)


def policy_chain(mdp: FiniteMDP, policy: Floats) -> Rows:
    """P_pi as compressed rows, one for each state."""
    matrix = mdp.transitions
    indptr, indices = (frozen(index.astype(np.int32, copy=False)) for index in (matrix.indptr, matrix.indices))
    chain = compose(indptr, indices, frozen(matrix.data), frozen(policy))
    return Rows(frozen(chain[0]), frozen(chain[1]), frozen(chain[2]), 1)


def narrowest_band(rows: Rows) -> tuple[Rows, Integers]:
    """The same rows in the order with the narrower band: as given, or Cuthill-McKee's; new k is old ``order[k]``.

    Cuthill-McKee brings neighbours together whatever the numbering was; on a grid numbered row by row it does not win.
    """
    moved, order = _reverse_cuthill_mckee(rows)
    if band_cost(rows) <= band_cost(moved):
        return rows, np.arange(rows.num_states)
    return moved, order


def _reverse_cuthill_mckee(rows: Rows) -> tuple[Rows, Integers]:
    from scipy.sparse import csgraph

    num_states, num_actions = rows.num_states, rows.num_actions
    reach = sparse.csr_array((np.ones(rows.data.size), rows.indices, rows.indptr[::num_actions]), (num_states,) * 2)
    order = csgraph.reverse_cuthill_mckee(sparse.csr_array(reach + reach.T), symmetric_mode=True).astype(np.int64)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(num_states)
    row_order = (order[:, None] * num_actions + np.arange(num_actions)).ravel()
    moved = rows.matrix()[row_order]
    indices = inverse[moved.indices].astype(np.int32)
    indptr = moved.indptr.astype(np.int32, copy=False)
    return Rows(frozen(indptr), frozen(indices), frozen(moved.data), num_actions), order


def fits_band(rows: Rows, limit: float) -> bool:
    """Whether elimination inside the band stays within a cost limit and within memory."""
    size = rows.num_states
    if not spans_at_most(rows.indptr, rows.indices, rows.num_actions, limit / size):
        return False
    lower, upper = bandwidths(rows.indptr, rows.indices, rows.num_actions)
    return size * max(lower, 1) * max(upper, 1) <= limit and size * (lower + upper + 1) <= BAND_ENTRIES


def band_cost(rows: Rows) -> int:
    """Multiplications that elimination inside the band takes: S * lower * upper."""
    lower, upper = bandwidths(rows.indptr, rows.indices, rows.num_actions)
    return rows.num_states * max(lower, 1) * max(upper, 1)


@compiled
def row_sums(indptr: Indices, data: Floats) -> Floats:
    """The sum of each row."""
    sums = np.zeros(indptr.size - 1)
    for row in range(sums.size):
        for entry in range(indptr[row], indptr[row + 1]):
            sums[row] += data[entry]
    return sums


@compiled
def spans_at_most(indptr: Indices, indices: Indices, num_actions: int, limit: float) -> bool:
    """Whether lower times upper bandwidth is within a limit; a graph without structure shows at once that it is not."""
    num_states = (indptr.size - 1) // num_actions
    lower, upper = 1, 1
    for state in range(num_states):
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            reach = indices[entry] - state
            upper = max(upper, reach)
            lower = max(lower, -reach)
        if lower * upper > limit:
            return False
    return True


@compiled
def successors_first(indptr: Indices, indices: Indices, num_actions: int) -> Integers:
    """States ordered so that successors come first (self-loops apart); empty if the graph has a cycle.

    A depth-first search, which on a graph with cycles usually meets one at once.
    """
    num_states = (indptr.size - 1) // num_actions
    order = np.empty(num_states, np.int64)
    stack = np.empty(num_states, np.int64)
    cursor = np.full(num_states, _UNSEEN, np.int64)  # the next entry to look at, once a state is on the stack
    finished = 0
    for root in range(num_states):
        if cursor[root] != _UNSEEN:
            continue
        cursor[root] = indptr[root * num_actions]
        stack[0] = root
        depth = 1
        while depth > 0:
            state = stack[depth - 1]
            entry = cursor[state]
            end = indptr[(state + 1) * num_actions]
            descend = False
            while entry < end and not descend:
                successor = indices[entry]
                entry += 1
                if successor == state or cursor[successor] == _DONE:
                    continue
                if cursor[successor] != _UNSEEN:
                    return order[:0]
                cursor[state] = entry
                cursor[successor] = indptr[successor * num_actions]
                stack[depth] = successor
                depth += 1
                descend = True
            if not descend:
                cursor[state] = _DONE
                order[finished] = state
                finished += 1
                depth -= 1
    return order


@compiled
def bandwidths(indptr: Indices, indices: Indices, num_actions: int) -> tuple[int, int]:
    """How far below and above its own index a state's successors reach."""
    num_states = (indptr.size - 1) // num_actions
    lower = 0
    upper = 0
    for state in range(num_states):
        for entry in range(indptr[state * num_actions], indptr[(state + 1) * num_actions]):
            reach = indices[entry] - state
            upper = max(upper, reach)
            lower = max(lower, -reach)
    return lower, upper


@compiled
def compose(indptr: Indices, indices: Indices, data: Floats, policy: Floats) -> tuple[Indices, Indices, Floats]:
    """Compressed rows of P_pi, without actions of probability zero, each row divided by its sum.

    A successor that several actions share stays in as several entries; every use of the rows adds them up.
    """
    num_states, num_actions = policy.shape
    chain_indptr = np.empty(num_states + 1, np.int32)
    chain_indptr[0] = 0
    for state in range(num_states):
        count = 0
        for action in range(num_actions):
            if policy[state, action] > 0.0:
                row = state * num_actions + action
                count += indptr[row + 1] - indptr[row]
        chain_indptr[state + 1] = chain_indptr[state] + count
    chain_indices = np.empty(chain_indptr[num_states], np.int32)
    chain_data = np.empty(chain_indptr[num_states], np.float64)
    for state in range(num_states):
        slot = chain_indptr[state]
        total = 0.0
        for action in range(num_actions):
            weight = policy[state, action]
            if weight > 0.0:
                row = state * num_actions + action
                for entry in range(indptr[row], indptr[row + 1]):
                    chain_indices[slot] = indices[entry]
                    chain_data[slot] = weight * data[entry]
                    total += chain_data[slot]
                    slot += 1
        for slot in range(chain_indptr[state], chain_indptr[state + 1]):
            chain_data[slot] /= total
    return chain_indptr, chain_indices, chain_data
