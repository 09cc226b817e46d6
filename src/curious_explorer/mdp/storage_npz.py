"""The ``.npz`` form of an MDP: a ZIP archive of plain NumPy arrays, readable by ``numpy.load(allow_pickle=False)``.

Members: ``header`` (JSON as bytes: format, version, sizes, names, reward scale), the compressed rows ``indptr``,
``indices``, ``probabilities``, and ``rewards``, ``start``, ``terminal``.

Members are stored, not deflated. Random transitions do not compress, and a reader that refuses anything else cannot be
made to allocate more than the file itself holds: what every array claims about its shape is compared with the header
and with the bytes that are there, before any array is made.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.mdp.storage_header import (
    BY_PAIR,
    BY_TRANSITION,
    FORMAT,
    VERSION,
    check_header,
    check_reward_kind,
    check_scale,
    parse_strictly,
)

_KEYS = {"num_states", "num_actions", "num_transitions", "rewards", "reward_scale", "state_names", "action_names"}
_ARRAYS = ("header", "indptr", "indices", "probabilities", "rewards", "start", "terminal")


def encode(mdp: FiniteMDP) -> bytes:
    """The whole file."""
    by_transition = mdp.transition_rewards is not None
    header = {
        "format": FORMAT,
        "version": VERSION,
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "num_transitions": int(mdp.transitions.nnz),
        "rewards": BY_TRANSITION if by_transition else BY_PAIR,
        "reward_scale": mdp.reward_scale._asdict(),
        # Names go here because NumPy's text arrays drop trailing NULs.
        "state_names": list(mdp.state_names) if mdp.has_state_names else None,
        "action_names": list(mdp.action_names) if mdp.has_action_names else None,
    }
    buffer = io.BytesIO()
    np.savez(
        buffer,
        header=np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8),
        indptr=mdp.transitions.indptr.astype("<i8"),
        indices=mdp.transitions.indices.astype("<i8" if mdp.num_states > np.iinfo(np.int32).max else "<i4"),
        probabilities=mdp.transitions.data.astype("<f8"),
        rewards=(mdp.rewards if mdp.transition_rewards is None else mdp.transition_rewards).astype("<f8"),
        start=mdp.start.astype("<f8"),
        terminal=mdp.terminal,
    )
    return buffer.getvalue()


def decode(content: bytes) -> FiniteMDP:
    """The MDP in the content of a file; any ``ValueError`` says what is wrong with it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive, len(content))
            members = {name: archive.read(f"{name}.npy") for name in _ARRAYS}
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error) as error:
        raise ValueError(f"it is no complete archive of arrays ({error})") from error
    header = check_header(parse_strictly(_array(members, "header", "|u1", None).tobytes()), _KEYS)
    num_states, num_actions, entries = (_size(header, f"num_{kind}") for kind in ("states", "actions", "transitions"))
    by_transition = check_reward_kind(header["rewards"])

    num_pairs = num_states * num_actions
    indptr = _array(members, "indptr", "<i8", (num_pairs + 1,))
    indices = _array(members, "indices", "<i8" if num_states > np.iinfo(np.int32).max else "<i4", (entries,))
    probabilities = _array(members, "probabilities", "<f8", (entries,))
    rewards = _array(members, "rewards", "<f8", (entries,) if by_transition else (num_states, num_actions))
    _check_rows(indptr, indices, num_states)
    return FiniteMDP.from_rows(
        sparse.csr_array((probabilities, indices, indptr), shape=(num_pairs, num_states)),
        rewards,
        _array(members, "start", "<f8", (num_states,)),
        terminal=_array(members, "terminal", "|b1", (num_states,)),
        state_names=_names(header, "state_names"),
        action_names=_names(header, "action_names"),
        reward_scale=RewardScale(*check_scale(header["reward_scale"])),
    )


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Exactly the arrays expected, stored as they are, and no larger together than the file."""
    found = [member.filename for member in archive.infolist()]
    expected = [f"{name}.npy" for name in _ARRAYS]
    if sorted(found) != sorted(expected):
        raise ValueError(f"it holds {found[:20]}, expected {expected}; this is a file of another kind")
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed, expected it stored; save_mdp writes no other")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError("its arrays claim to be larger than the file")


def _array(members: dict[str, bytes], name: str, dtype: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """One array whose dtype, shape and length are what they have to be; ``shape`` None means any length, flat."""
    stream = io.BytesIO(members[name])
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("its array format is not 1.0")
        found_shape, fortran, found_dtype = np.lib.format.read_array_header_1_0(stream)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, EOFError) as error:
        raise ValueError(f"{name} is no NumPy array ({error})") from error
    data = memoryview(members[name])[stream.tell() :]
    expected = (data.nbytes,) if shape is None else shape
    if found_dtype.str != dtype or found_shape != expected or (fortran and len(expected) > 1):
        raise ValueError(
            f"{name} holds {found_dtype} of shape {found_shape}, expected {np.dtype(dtype)} of shape {expected}"
        )
    array: NDArray[Any] = np.frombuffer(data, dtype=dtype)
    if array.size != np.prod(expected, dtype=object):
        raise ValueError(f"{name} has {array.size} entries, expected {expected}")
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{name} holds bytes other than 0 and 1, expected booleans")
    return array.reshape(expected)


def _check_rows(indptr: NDArray[Any], indices: NDArray[Any], num_states: int) -> None:
    """Compressed rows that SciPy can be trusted with: in range, in order, without repetition."""
    if indptr[0] != 0 or indptr[-1] != indices.size or (np.diff(indptr) < 1).any():
        raise ValueError("indptr does not cut the transitions into one row for each pair, none of them empty")
    if ((indices < 0) | (indices >= num_states)).any():
        raise ValueError(f"indices names a state outside 0 to {num_states - 1}")
    ascending = np.diff(indices) > 0
    ascending[indptr[1:-1] - 1] = True  # from the end of one row to the beginning of the next
    if not ascending.all():
        raise ValueError("indices is not sorted within each row, or repeats a state")


def _size(header: dict[str, Any], key: str) -> int:
    value = header[key]
    if type(value) is not int or value < 1:
        raise ValueError(f"{key} is {value!r}, expected a whole number that is at least 1")
    return value


def _names(header: dict[str, Any], key: str) -> list[str] | None:
    value = header[key]
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{key} is {value!r}, expected a list of names or null")
    return value
