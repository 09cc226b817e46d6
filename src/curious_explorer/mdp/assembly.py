"""From what users hand in (arrays, sparse matrices, masks) to the compressed rows of a `FiniteMDP`.

Each function returns fresh arrays; what the caller gave is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.mdp import validation

Floats = NDArray[np.float64]


def as_rows(transitions: Any) -> tuple[sparse.csr_array, int]:
    """Fresh compressed rows of shape (S * A, S) and A, from a dense array or from A sparse matrices."""
    if sparse.issparse(transitions):
        raise ValueError(
            "transitions is one sparse matrix; expected a list of A sparse (S, S) matrices, one for each action "
            "(or use FiniteMDP.from_rows for a matrix of shape (S * A, S))"
        )
    if isinstance(transitions, Sequence) and len(transitions) > 0 and all(map(sparse.issparse, transitions)):
        return _stack_actions(transitions), len(transitions)
    dense = np.asarray(transitions)
    if dense.dtype == object or dense.ndim != 3 or dense.shape[0] != dense.shape[2]:
        shape = "of uneven shape" if dense.dtype == object else f"of shape {dense.shape}"
        raise ValueError(f"transitions is an array {shape}, expected (S, A, S), or a list of A sparse (S, S) matrices")
    num_states, num_actions, _ = dense.shape
    validation.check_sizes(num_states, num_actions)
    rows = sparse.csr_array(dense.reshape(num_states * num_actions, num_states).astype(np.float64))
    return rows, num_actions


def _stack_actions(matrices: Sequence[Any]) -> sparse.csr_array:
    """Interleave A matrices of shape (S, S) into rows ordered by state, then by action."""
    shape = matrices[0].shape
    for action, matrix in enumerate(matrices):
        if matrix.shape != (shape[0], shape[0]):
            raise ValueError(
                f"transitions[{action}] has shape {matrix.shape}, expected ({shape[0]}, {shape[0]}) for every action"
            )
    entries = [sparse.coo_array(matrix) for matrix in matrices]
    row = np.concatenate([e.row.astype(np.int64) * len(matrices) + a for a, e in enumerate(entries)])
    column = np.concatenate([e.col for e in entries])
    data = np.concatenate([e.data.astype(np.float64) for e in entries])
    stacked = sparse.coo_array((data, (row, column)), shape=(shape[0] * len(matrices), shape[0]))
    return sparse.csr_array(stacked)


def as_mask(terminal: Any, num_states: int) -> NDArray[np.bool_]:
    """Terminal states as a fresh boolean mask."""
    mask = np.zeros(num_states, dtype=np.bool_)
    if terminal is None:
        return mask
    given = np.asarray(terminal)
    if given.dtype == np.bool_:
        if given.shape != (num_states,):
            raise ValueError(f"terminal has shape {given.shape}, expected a mask of shape ({num_states},)")
        return given.copy()
    if given.size == 0:
        return mask
    if not np.issubdtype(given.dtype, np.integer) or given.ndim > 1:
        raise ValueError(f"terminal is {terminal!r}, expected a boolean mask or a sequence of state indices")
    bad = validation.first((given.ravel() < 0) | (given.ravel() >= num_states))
    if bad is not None:
        raise ValueError(f"terminal names state {given.ravel()[bad]}, expected indices from 0 to {num_states - 1}")
    mask[given] = True
    return mask


def reward_table(rewards: Any, num_states: int, num_actions: int) -> Floats:
    """Rewards as a fresh (S, A) array."""
    table = np.array(rewards, dtype=np.float64)
    if table.shape != (num_states, num_actions):
        _bad_reward_shape(table.shape, num_states, num_actions)
    return table


def _bad_reward_shape(shape: tuple[int, ...], num_states: int, num_actions: int) -> NoReturn:
    raise ValueError(
        f"rewards has shape {shape}, expected ({num_states}, {num_actions}) or "
        f"({num_states}, {num_actions}, {num_states})"
    )


def transition_rewards(
    rewards: Any, rows: sparse.csr_array, num_actions: int, where: validation.Where
) -> Floats | None:
    """The reward of each stored transition, if the rewards given depend on the next state; else None."""
    num_states = rows.shape[1]
    given = np.asarray(rewards, dtype=np.float64)
    row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    if given.ndim == 3:
        if given.shape != (num_states, num_actions, num_states):
            _bad_reward_shape(given.shape, num_states, num_actions)
        rows.sum_duplicates()
        row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        aligned: Floats = given.reshape(rows.shape)[row_of_entry, rows.indices]
    elif given.ndim == 1:
        if given.shape != rows.data.shape:
            raise ValueError(f"rewards has shape {given.shape}, expected ({rows.nnz},): one for each stored transition")
        aligned = given.copy()
    else:
        return None
    bad = validation.first(~((aligned >= 0.0) & (aligned <= 1.0)))
    if bad is not None:
        pair = where.pair(*divmod(int(row_of_entry[bad]), num_actions))
        validation.bad_reward(float(aligned[bad]), f"{pair}, next {where.state(int(rows.indices[bad]))}")
    return aligned


def drop_zeros(rows: sparse.csr_array, by_transition: Floats | None) -> tuple[sparse.csr_array, Floats | None]:
    """Remove stored zeros, so that every entry is a transition that can happen."""
    keep = rows.data != 0.0
    if keep.all():
        return rows, by_transition
    indptr = np.concatenate([[0], np.cumsum(keep)])[rows.indptr].astype(rows.indptr.dtype)
    kept = sparse.csr_array((rows.data[keep], rows.indices[keep], indptr), shape=rows.shape)
    return kept, None if by_transition is None else by_transition[keep]


def narrow_indices(rows: sparse.csr_array) -> sparse.csr_array:
    """32-bit indices wherever they suffice: half the memory, and kernels are compiled for one kind of index only."""
    largest = max(rows.shape[0], rows.nnz)
    if largest > np.iinfo(np.int32).max or (rows.indices.dtype == np.int32 and rows.indptr.dtype == np.int32):
        return rows
    parts = (rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=rows.shape)


def absorb(
    rows: sparse.csr_array,
    num_actions: int,
    terminal: NDArray[np.bool_],
    by_transition: Floats | None,
    where: validation.Where,
) -> tuple[sparse.csr_array, Floats | None]:
    """Give empty rows of terminal states their self-loop; refuse terminal states that lead elsewhere."""
    if not terminal.any():
        return rows, by_transition
    lengths = np.diff(rows.indptr)
    state_of_row = np.repeat(np.arange(rows.shape[1]), num_actions)
    row_of_entry = np.repeat(np.arange(rows.shape[0]), lengths)
    leaves = terminal[state_of_row[row_of_entry]] & (rows.indices != state_of_row[row_of_entry])
    bad = validation.first(leaves)
    if bad is not None:
        pair = where.pair(*divmod(int(row_of_entry[bad]), num_actions))
        raise ValueError(
            f"{pair}: the state is terminal, but this action leads to {where.state(int(rows.indices[bad]))}; leave the "
            "rows of terminal states empty, or make them loop"
        )
    empty = np.flatnonzero(terminal[state_of_row] & (lengths == 0))
    if empty.size == 0:
        return rows, by_transition
    at = rows.indptr[empty]
    data = np.insert(rows.data, at, 1.0)
    indices = np.insert(rows.indices, at, state_of_row[empty])
    lengths[empty] = 1
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(rows.indptr.dtype)
    filled = sparse.csr_array((data, indices, indptr), shape=rows.shape)
    return filled, None if by_transition is None else np.insert(by_transition, at, 0.0)
