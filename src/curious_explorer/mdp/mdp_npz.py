"""The ``.npz`` form of an MDP: an archive (see `curious_explorer.archives`) of its compressed rows.

The header has the sizes, names, reward scale and (since version 2) the MDP's fingerprint; the arrays are the rows
``indptr``, ``indices`` and ``probabilities``, and ``rewards``, ``start``, ``terminal``. Since version 2 they are stored
exactly as a `FiniteMDP` holds them, each at an aligned place, so that a large one can be mapped instead of read.

**What is checked.** Always: that the file is whole, that header, types, shapes and sizes fit each other, and the
header's checksum. Reading into memory also takes the checksum of every array and validates the MDP as if it were built
by hand. A mapped MDP is ready in milliseconds because its arrays are not looked at: they are taken to be what was
written, and so is the fingerprint. Asked to check, it reads everything once, block by block: checksums, validity, and
the fingerprint.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer import archives
from curious_explorer.archives import Format, StoredArchive, check_size
from curious_explorer.mdp.blocks import blocks
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.mdp.mdp_header import BY_PAIR, BY_TRANSITION, FORMAT, check_reward_kind, check_scale

ARRAYS_FORMAT = Format(FORMAT.name, 2)
_KEYS = {"num_states", "num_actions", "num_transitions", "rewards", "reward_scale", "state_names", "action_names"}
_KEYS_BY_VERSION = {1: _KEYS, 2: _KEYS | {"fingerprint"}}
_ARRAYS = {"indptr", "indices", "probabilities", "rewards", "start", "terminal"}
_LARGEST = np.iinfo(np.int32).max


def write(mdp: FiniteMDP, stream: BinaryIO) -> None:
    """Write the whole file."""
    rows = mdp.transitions
    pointer, index = _index_types(rows.shape[0], mdp.num_states, int(rows.nnz))
    header = {
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "num_transitions": int(rows.nnz),
        "rewards": BY_PAIR if mdp.transition_rewards is None else BY_TRANSITION,
        "reward_scale": mdp.reward_scale._asdict(),
        # Names go here because NumPy's text arrays drop trailing NULs.
        "state_names": list(mdp.state_names) if mdp.has_state_names else None,
        "action_names": list(mdp.action_names) if mdp.has_action_names else None,
        "fingerprint": mdp.fingerprint,
    }
    arrays = {
        "indptr": rows.indptr.astype(pointer, copy=False),
        "indices": rows.indices.astype(index, copy=False),
        "probabilities": rows.data.astype("<f8", copy=False),
        "rewards": (mdp.rewards if mdp.transition_rewards is None else mdp.transition_rewards).astype(
            "<f8", copy=False
        ),
        "start": mdp.start.astype("<f8", copy=False),
        "terminal": mdp.terminal,
    }
    archives.write(stream, ARRAYS_FORMAT, header, arrays)


def read(stream: BinaryIO, *, mapped: bool, check: bool) -> FiniteMDP:
    """The MDP in an open file; any ``ValueError`` says what is wrong with it."""
    with archives.open_archive(stream, ARRAYS_FORMAT, _KEYS_BY_VERSION, _ARRAYS) as archive:
        header = archive.header
        if mapped and header["version"] == 1:
            raise ValueError("it was written by version 0.1, before files could be mapped; load it and save it again")
        parts = _read_parts(archive, mapped)
        fingerprint = _fingerprint(header)
        if not check:
            return FiniteMDP._trusted(*parts, fingerprint)
        if mapped:
            archive.check_sums()
            archives.check_booleans("terminal", parts[3])
    mdp = _validated(*parts)
    if mapped and mdp.fingerprint != fingerprint:
        raise ValueError("its fingerprint is not that of its arrays: it was changed after it was written")
    return mdp


Parts = tuple[sparse.csr_array, NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], dict[str, Any]]


def _read_parts(archive: StoredArchive, mapped: bool) -> Parts:
    """Rows, rewards, start, terminal, and everything that is no array; types and sizes are right, contents unknown."""
    header = archive.header
    num_states, num_actions, entries = (
        check_size(header, f"num_{kind}") for kind in ("states", "actions", "transitions")
    )
    by_transition = check_reward_kind(header["rewards"])
    num_pairs = num_states * num_actions
    pointer, index = _index_types(num_pairs, num_states, entries, version=header["version"])

    def array(name: str, dtype: str, *shape: int) -> NDArray[Any]:
        return archive.array(name, dtype, shape, mapped=mapped)

    indptr = array("indptr", pointer, num_pairs + 1)
    indices, probabilities = array("indices", index, entries), array("probabilities", "<f8", entries)
    rewards = array("rewards", "<f8", *((entries,) if by_transition else (num_states, num_actions)))
    if indptr[0] != 0 or indptr[-1] != entries:
        raise ValueError(f"indptr runs from {indptr[0]} to {indptr[-1]}, expected from 0 to {entries}")
    texts = {
        "state_names": _names(header, "state_names"),
        "action_names": _names(header, "action_names"),
        "reward_scale": RewardScale(*check_scale(header["reward_scale"])),
    }
    rows = sparse.csr_array((probabilities, indices, indptr), shape=(num_pairs, num_states))
    return rows, rewards, array("start", "<f8", num_states), array("terminal", "|b1", num_states), texts


def _validated(
    rows: sparse.csr_array,
    rewards: NDArray[np.float64],
    start: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    texts: dict[str, Any],
) -> FiniteMDP:
    _check_rows(rows.indptr, rows.indices, rows.shape[1])
    return FiniteMDP.from_rows(rows, rewards, start, terminal=terminal, copy=False, **texts)


def _index_types(
    num_pairs: int, num_states: int, entries: int, version: int = ARRAYS_FORMAT.version
) -> tuple[str, str]:
    """How row pointers and column indices are stored: as a `FiniteMDP` holds them."""
    if version == 1:
        return "<i8", "<i8" if num_states > _LARGEST else "<i4"
    both = "<i8" if max(num_pairs, num_states, entries) > _LARGEST else "<i4"
    return both, both


def _check_rows(indptr: NDArray[Any], indices: NDArray[Any], num_states: int) -> None:
    """Compressed rows that SciPy can be trusted with: in range, in order, without repetition."""
    for first, stop in blocks(len(indptr) - 1):
        cuts = indptr[first : stop + 1]
        if (np.diff(cuts) < 1).any() or cuts[0] < 0 or cuts[-1] > indices.size:
            raise ValueError("indptr does not cut the transitions into one row for each pair, none of them empty")
        columns = indices[cuts[0] : cuts[-1]]
        if columns.min() < 0 or columns.max() >= num_states:
            raise ValueError(f"indices names a state outside 0 to {num_states - 1}")
        ascending = np.diff(columns) > 0
        ascending[cuts[1:-1] - cuts[0] - 1] = True  # from the end of one row to the beginning of the next
        if not ascending.all():
            raise ValueError("indices is not sorted within each row, or repeats a state")


def _names(header: dict[str, Any], key: str) -> list[str] | None:
    value = header[key]
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{key} is {value!r}, expected a list of names or null")
    return value


def _fingerprint(header: dict[str, Any]) -> str | None:
    """The digest that the file claims; files of version 1 have none."""
    value = header.get("fingerprint")
    if header["version"] == 1:
        return None
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise ValueError(f"fingerprint is {value!r}, expected 64 hexadecimal digits")
    return value
