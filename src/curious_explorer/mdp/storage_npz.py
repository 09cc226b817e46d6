"""The ``.npz`` form of an MDP: an archive (see `curious_explorer.archives`) of its compressed rows.

The header has the sizes, names and reward scale; the arrays are the rows ``indptr``, ``indices`` and ``probabilities``,
and ``rewards``, ``start``, ``terminal``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer import archives
from curious_explorer.archives import check_size
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.mdp.storage_header import BY_PAIR, BY_TRANSITION, FORMAT, check_reward_kind, check_scale

_KEYS = {"num_states", "num_actions", "num_transitions", "rewards", "reward_scale", "state_names", "action_names"}
_ARRAYS = {"indptr", "indices", "probabilities", "rewards", "start", "terminal"}


def encode(mdp: FiniteMDP) -> bytes:
    """The whole file."""
    header = {
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "num_transitions": int(mdp.transitions.nnz),
        "rewards": BY_PAIR if mdp.transition_rewards is None else BY_TRANSITION,
        "reward_scale": mdp.reward_scale._asdict(),
        # Names go here because NumPy's text arrays drop trailing NULs.
        "state_names": list(mdp.state_names) if mdp.has_state_names else None,
        "action_names": list(mdp.action_names) if mdp.has_action_names else None,
    }
    arrays = {
        "indptr": mdp.transitions.indptr.astype("<i8"),
        "indices": mdp.transitions.indices.astype(_index_type(mdp.num_states)),
        "probabilities": mdp.transitions.data.astype("<f8"),
        "rewards": (mdp.rewards if mdp.transition_rewards is None else mdp.transition_rewards).astype("<f8"),
        "start": mdp.start.astype("<f8"),
        "terminal": mdp.terminal,
    }
    return archives.encode(FORMAT, header, arrays)


def decode(content: bytes) -> FiniteMDP:
    """The MDP in the content of a file; any ``ValueError`` says what is wrong with it."""
    archive = archives.decode(content, FORMAT, _KEYS, _ARRAYS)
    header = archive.header
    num_states, num_actions, entries = (
        check_size(header, f"num_{kind}") for kind in ("states", "actions", "transitions")
    )
    by_transition = check_reward_kind(header["rewards"])
    num_pairs = num_states * num_actions
    indptr = archive.array("indptr", "<i8", (num_pairs + 1,))
    indices = archive.array("indices", _index_type(num_states), (entries,))
    probabilities = archive.array("probabilities", "<f8", (entries,))
    rewards = archive.array("rewards", "<f8", (entries,) if by_transition else (num_states, num_actions))
    _check_rows(indptr, indices, num_states)
    return FiniteMDP.from_rows(
        sparse.csr_array((probabilities, indices, indptr), shape=(num_pairs, num_states)),
        rewards,
        archive.array("start", "<f8", (num_states,)),
        terminal=archive.array("terminal", "|b1", (num_states,)),
        state_names=_names(header, "state_names"),
        action_names=_names(header, "action_names"),
        reward_scale=RewardScale(*check_scale(header["reward_scale"])),
    )


def _index_type(num_states: int) -> str:
    return "<i8" if num_states > np.iinfo(np.int32).max else "<i4"


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


def _names(header: dict[str, Any], key: str) -> list[str] | None:
    value = header[key]
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{key} is {value!r}, expected a list of names or null")
    return value
