"""From what users hand in (arrays, sparse matrices, masks) to the compressed rows of a `FiniteMDP`.

Each function returns fresh arrays, so that what the caller gave is never changed, unless told not to copy. Where an
array could be long, what is computed from it on the way is computed in blocks: building takes little more memory than
the MDP itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from curious_explorer import validation
from curious_explorer.arrays import Floats, Integers, blocks


class RewardScale(NamedTuple):
    """How rewards in [0, 1] map back to the original ones: ``original = offset + factor * scaled``."""

    offset: float = 0.0
    factor: float = 1.0

    def original(self, scaled: ArrayLike) -> Floats:
        """Rewards, or normalised values, in the units of the original problem."""
        return self.offset + self.factor * np.asarray(scaled, dtype=np.float64)


UNSCALED = RewardScale()


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
    rows = [sparse.csr_array(matrix) for matrix in matrices]
    lengths = np.stack([np.diff(matrix.indptr) for matrix in rows], axis=1)
    total = sum(int(matrix.nnz) for matrix in rows)
    kind = np.int32 if max(lengths.size, total) <= np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(lengths.size + 1, dtype=kind)
    np.cumsum(lengths.ravel(), out=indptr[1:])
    data, indices = np.empty(total), np.empty(total, dtype=kind)
    for action, matrix in enumerate(rows):
        for first, stop in blocks(shape[0]):
            cuts = matrix.indptr[first : stop + 1]
            shift = indptr[first * len(rows) + action : stop * len(rows) : len(rows)] - cuts[:-1]
            place = np.repeat(shift, np.diff(cuts)) + np.arange(cuts[0], cuts[-1], dtype=kind)
            data[place], indices[place] = matrix.data[cuts[0] : cuts[-1]], matrix.indices[cuts[0] : cuts[-1]]
    stacked = sparse.csr_array((data, indices, indptr), shape=(lengths.size, shape[0]))
    stacked.sum_duplicates()
    return stacked


def reward_table(rewards: Any, num_states: int, num_actions: int, *, copy: bool = True) -> Floats:
    """Rewards as an (S, A) array, stored row by row."""
    table = np.array(validation.as_numbers(rewards, "rewards"), order="C", copy=copy or None)
    if table.shape != (num_states, num_actions):
        _bad_reward_shape(table.shape, num_states, num_actions)
    return table


def _bad_reward_shape(shape: tuple[int, ...], num_states: int, num_actions: int) -> NoReturn:
    raise ValueError(
        f"rewards has shape {shape}, expected ({num_states}, {num_actions}) or "
        f"({num_states}, {num_actions}, {num_states})"
    )


def transition_rewards(
    rewards: Any, rows: sparse.csr_array, num_actions: int, where: validation.Where, *, copy: bool = True
) -> Floats | None:
    """The reward of each stored transition, if the rewards given depend on the next state; else None."""
    num_states = rows.shape[1]
    given = validation.as_numbers(rewards, "rewards")
    if given.ndim == 3:
        if given.shape != (num_states, num_actions, num_states):
            _bad_reward_shape(given.shape, num_states, num_actions)
        rows.sum_duplicates()
        row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        aligned: Floats = given.reshape(rows.shape)[row_of_entry, rows.indices]
    elif given.ndim == 1:
        if given.shape != rows.data.shape:
            raise ValueError(f"rewards has shape {given.shape}, expected ({rows.nnz},): one for each stored transition")
        aligned = given.copy() if copy else given
    else:
        return None
    bad = validation.first_outside(aligned, 0.0, 1.0)
    if bad is not None:
        row = int(np.searchsorted(rows.indptr, bad, side="right")) - 1
        pair = where.pair(*divmod(row, num_actions))
        validation.bad_reward(float(aligned[bad]), f"{pair}, next {where.state(int(rows.indices[bad]))}")
    return aligned


def expected_rewards(rows: sparse.csr_array, by_transition: Floats, num_actions: int) -> Floats:
    """The mean reward of each pair, shape (S, A)."""
    products = sparse.csr_array((rows.data * by_transition, rows.indices, rows.indptr), shape=rows.shape)
    table = validation.row_sums(products).reshape(-1, num_actions)
    return np.clip(table, 0.0, 1.0, out=table)  # an average of rewards in [0, 1] can round to 1 + 1e-16


def rows_are_permutations(labels: NDArray[Any]) -> bool:
    """Whether each row of (S, A) holds each of 0..A-1 once."""
    wanted = np.arange(labels.shape[1])
    return all((np.sort(labels[first:stop], axis=1) == wanted).all() for first, stop in blocks(len(labels)))


def drop_zeros(rows: sparse.csr_array, by_transition: Floats | None) -> tuple[sparse.csr_array, Floats | None]:
    """Remove stored zeros, so that every entry is a transition that can happen."""
    if np.count_nonzero(rows.data) == rows.nnz:
        return rows, by_transition
    keep = rows.data != 0.0
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
    states = np.flatnonzero(terminal)
    row = (states[:, None] * num_actions + np.arange(num_actions)).ravel()  # of terminal states only
    begin, stop = rows.indptr[row].astype(np.int64), rows.indptr[row + 1].astype(np.int64)
    count = stop - begin
    place = np.repeat(np.arange(len(row)), count)
    entry = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count) + begin[place]
    leaves = rows.indices[entry] != row[place] // num_actions
    bad = validation.first(leaves)
    if bad is not None:
        pair = where.pair(*divmod(int(row[place[bad]]), num_actions))
        raise ValueError(
            f"{pair}: the state is terminal, but this action leads to {where.state(int(rows.indices[entry[bad]]))}; "
            "leave the rows of terminal states empty, or make them loop"
        )
    empty = row[count == 0]
    if empty.size == 0:
        return rows, by_transition
    lengths = np.diff(rows.indptr)
    at = rows.indptr[empty]
    data = np.insert(rows.data, at, 1.0)
    indices = np.insert(rows.indices, at, empty // num_actions)
    lengths[empty] = 1
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(rows.indptr.dtype)
    filled = sparse.csr_array((data, indices, indptr), shape=rows.shape)
    return filled, None if by_transition is None else np.insert(by_transition, at, 0.0)


def merge_outcomes(
    row: Integers, column: Integers, probability: Floats, reward: Floats, shape: tuple[int, int]
) -> tuple[sparse.csr_array, Floats]:
    """Canonical rows of the given shape from single outcomes, and rewards: (S, A) if the next state is nothing to them.

    Descriptions by hand and Gymnasium's tables both name the same next state more than once for a pair: the
    probabilities add up, and the reward of the merged transition is their average, weighted by probability.
    """
    order = np.lexsort((column, row))
    row, column, probability, reward = row[order], column[order], probability[order], reward[order]
    is_first = np.ones(row.size, dtype=np.bool_)
    is_first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    group = np.flatnonzero(is_first)
    merged_probability, merged_reward = _merge_groups(group, probability, reward)
    happens = merged_probability != 0.0
    group, merged_probability, merged_reward = group[happens], merged_probability[happens], merged_reward[happens]
    row, column = row[group], column[group]

    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    rows = sparse.csr_array((merged_probability, column, indptr), shape=shape)
    rows.has_canonical_format = True  # sorted and merged above
    table = np.zeros(shape[0])
    table[row] = merged_reward
    if (table[row] == merged_reward).all():
        return rows, table.reshape(shape[1], -1)
    return rows, merged_reward


def _merge_groups(group: NDArray[np.intp], probability: Floats, reward: Floats) -> tuple[Floats, Floats]:
    """Sums of probabilities and weighted means of rewards over the runs that begin at ``group``."""
    if group.size == 0:
        return np.zeros(0), np.zeros(0)
    total = np.add.reduceat(probability, group)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.add.reduceat(probability * reward, group) / total
    lowest, highest = np.minimum.reduceat(reward, group), np.maximum.reduceat(reward, group)
    # Equal rewards stay exactly what they were, and rounding cannot leave the interval that they span.
    return total, np.clip(np.where(np.isfinite(mean), mean, lowest), lowest, highest)
