"""MDPs on disk: ``.json`` for people, ``.npz`` for size and speed; the ending of the name decides.

Both come back bit for bit and carry the name and the version of their format. Nothing is ever unpickled, and whatever
is wrong with a file is an `MDPFileError`.

**JSON**: one line for each pair, states and actions by name where they have names.

    {"state": "A", "action": "left", "reward": 0.0, "to": [["A", 0.2], ["B", 0.8]]}

It has a checksum, which may be left out where people write such a file or change one.

If rewards depend on the next state, each outcome carries its own: ``["B", 0.8, 1.0]``. Numbers are written by
``repr``, the shortest text that reads back as the same float.

**Archives** (see `curious_explorer.storage`): the header has the sizes, names, reward scale and the MDP's fingerprint;
the arrays are the compressed rows ``indptr``, ``indices`` and ``probabilities``, and ``rewards``, ``start``,
``terminal``, stored exactly as a `FiniteMDP` holds them, so that a large one can be mapped instead of read.

**What is checked.** Always: that the file is whole, that header, types, shapes and sizes fit each other, and the
header's checksum. Reading into memory also takes the checksum of every array and validates the MDP as if it were built
by hand. A mapped MDP is ready in milliseconds because its arrays are not looked at: they are taken to be what was
written, and so is the fingerprint. Asked to check, it reads everything once, block by block: checksums, validity, and
the fingerprint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.arrays import blocks
from curious_explorer.errors import MDPFileError
from curious_explorer.mdp.assembly import RewardScale
from curious_explorer.storage import (
    CHECKSUM,
    Archive,
    Format,
    atomic_writer,
    check_checksum,
    check_header,
    check_size,
    open_plain,
    parse_strictly,
    read_archive,
    reading,
    write_archive,
    write_atomically,
)

if TYPE_CHECKING:  # it imports this module
    from curious_explorer.mdp.finite_mdp import FiniteMDP

TEXT = Format("curious-explorer/finite-mdp", 1)
ARRAYS = Format("curious-explorer/finite-mdp", 3)
_TEXT_KEYS = {"states", "actions", "start", "terminal", "reward_scale", "rewards", "transitions"}
_SIZES = ("num_states", "num_actions", "num_transitions")
_ARRAYS_KEYS = {*_SIZES, "rewards", "reward_scale", "state_names", "action_names", "fingerprint"}
_ARRAYS = {"indptr", "indices", "probabilities", "rewards", "start", "terminal"}
_BY_PAIR, _BY_TRANSITION = "by pair", "by transition"
_ENDINGS = (".json", ".npz")
_LARGEST = np.iinfo(np.int32).max


def save_mdp(mdp: FiniteMDP, path: str | Path) -> Path:
    """Write an MDP to a ``.json`` or ``.npz`` file, atomically, and return the path."""
    ending = _ending(path)
    for kind, names in (("state", mdp._state_names), ("action", mdp._action_names)):
        for name in names or ():
            if any("\ud800" <= letter <= "\udfff" for letter in name):
                raise ValueError(f"{kind} name {name!r} holds half a surrogate pair, expected valid text; rename it")
    if ending == ".json":
        return write_atomically(path, _encode_text(mdp))
    with atomic_writer(path) as stream:
        _write_arrays(mdp, stream)
    return Path(path)


def load_mdp(kind: type[FiniteMDP], path: str | Path, *, mmap: bool = False, check: bool | None = None) -> FiniteMDP:
    """Read what `save_mdp` wrote.

    Args:
        kind: `FiniteMDP`, which has this as `FiniteMDP.load`.
        mmap: whether to map the arrays of an ``.npz`` file into memory instead of reading them: ready at once, however
            large; pages are read when they are used, and shared between processes.
        check: whether to look at every byte (checksums, and that it is a valid MDP). By default a mapped file is not
            looked at and any other is.

    Raises:
        MDPFileError: if the file is truncated, damaged, of another kind or version, or describes no valid MDP.
        OSError: if there is no such file, or it cannot be read.
    """
    ending = _ending(path)
    if ending == ".json" and (mmap or check is False):
        raise ValueError(f"{str(path)!r} is text, which is always read and checked; save the MDP as .npz to map it")
    with reading(path, MDPFileError, "an MDP", missing=True), open_plain(path) as stream:
        if ending == ".json":
            return _decode_text(kind, stream.read())
        return _read_arrays(kind, stream, mapped=mmap, check=not mmap if check is None else check)


def _ending(path: str | Path) -> str:
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(f"{str(path)!r} ends in {ending!r}, expected one of {', '.join(_ENDINGS)}")
    return ending


def _check_finite(value: Any, what: str) -> float:
    """A finite number; ``true`` and ``false`` are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{what} is {value!r}, expected a finite number")
    return float(value)


def _is_by_transition(value: Any) -> bool:
    """Whether rewards are stored for each transition rather than for each pair."""
    if value not in (_BY_PAIR, _BY_TRANSITION):
        raise ValueError(f"rewards is {value!r}, expected {_BY_PAIR!r} or {_BY_TRANSITION!r}")
    return bool(value == _BY_TRANSITION)


def _reward_scale(value: Any) -> RewardScale:
    if not isinstance(value, dict) or value.keys() != {"offset", "factor"}:
        raise ValueError(f"reward_scale is {value!r}, expected an object with offset and factor")
    return RewardScale(*(_check_finite(value[key], f"reward_scale.{key}") for key in ("offset", "factor")))


# Archives ----------------------------------------------------------------------------------------------------------


def _write_arrays(mdp: FiniteMDP, stream: BinaryIO) -> None:
    rows = mdp.transitions
    index = _index_type(rows.shape[0], mdp.num_states, int(rows.nnz))
    rewards = mdp.rewards if mdp.transition_rewards is None else mdp.transition_rewards
    header = {
        "num_states": mdp.num_states,
        "num_actions": mdp.num_actions,
        "num_transitions": int(rows.nnz),
        "rewards": _BY_PAIR if mdp.transition_rewards is None else _BY_TRANSITION,
        "reward_scale": mdp.reward_scale._asdict(),
        # Names go here because NumPy's text arrays drop trailing NULs.
        "state_names": list(mdp.state_names) if mdp.has_state_names else None,
        "action_names": list(mdp.action_names) if mdp.has_action_names else None,
        "fingerprint": mdp.fingerprint,
    }
    arrays = {
        "indptr": rows.indptr.astype(index, copy=False),
        "indices": rows.indices.astype(index, copy=False),
        "probabilities": rows.data.astype("<f8", copy=False),
        "rewards": rewards.astype("<f8", copy=False),
        "start": mdp.start.astype("<f8", copy=False),
        "terminal": mdp.terminal,
    }
    write_archive(stream, ARRAYS, header, arrays)


def _read_arrays(kind: type[FiniteMDP], stream: BinaryIO, *, mapped: bool, check: bool) -> FiniteMDP:
    archive = read_archive(stream, ARRAYS, _ARRAYS_KEYS, _ARRAYS, mapped=mapped, checked=check)
    rows, rewards = _rows_and_rewards(archive)
    start, terminal = (
        archive.array(name, dtype, rows.shape[1:]) for name, dtype in (("start", "<f8"), ("terminal", "|b1"))
    )
    fingerprint = archive.header["fingerprint"]
    if not isinstance(fingerprint, str) or len(fingerprint) != 64 or set(fingerprint) - set("0123456789abcdef"):
        raise ValueError(f"fingerprint is {fingerprint!r}, expected 64 hexadecimal digits")
    texts: dict[str, Any] = {key: archive.header[key] for key in ("state_names", "action_names")}
    for key, value in texts.items():
        if value is not None and not isinstance(value, list):
            raise ValueError(f"{key} is {value!r}, expected a list of names or null")
    texts["reward_scale"] = _reward_scale(archive.header["reward_scale"])
    if not check:
        return kind._trusted(rows, rewards, start, terminal, texts, fingerprint)
    _check_rows(rows.indptr, rows.indices, rows.shape[1])
    mdp = kind.from_rows(rows, rewards, start, terminal=terminal, copy=False, **texts)
    if mapped and mdp.fingerprint != fingerprint:
        raise ValueError("its fingerprint is not that of its arrays: it was changed after it was written")
    return mdp


def _rows_and_rewards(archive: Archive) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Compressed rows, and rewards by pair or by entry; types and sizes are right, contents unknown."""
    num_states, num_actions, entries = (check_size(archive.header, key) for key in _SIZES)
    shape = (num_states * num_actions, num_states)
    index = _index_type(*shape, entries)
    indptr = archive.array("indptr", index, (shape[0] + 1,))
    indices, probabilities = (
        archive.array("indices", index, (entries,)),
        archive.array("probabilities", "<f8", (entries,)),
    )
    by_transition = _is_by_transition(archive.header["rewards"])
    rewards = archive.array("rewards", "<f8", (entries,) if by_transition else (num_states, num_actions))
    if indptr[0] != 0 or indptr[-1] != entries:
        raise ValueError(f"indptr runs from {indptr[0]} to {indptr[-1]}, expected from 0 to {entries}")
    return sparse.csr_array((probabilities, indices, indptr), shape=shape), rewards


def _index_type(num_pairs: int, num_states: int, entries: int) -> str:
    """How row pointers and column indices are stored: as a `FiniteMDP` holds them."""
    return "<i8" if max(num_pairs, num_states, entries) > _LARGEST else "<i4"


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


# JSON --------------------------------------------------------------------------------------------------------------


def _encode_text(mdp: FiniteMDP) -> bytes:
    states: list[Any] = list(mdp.state_names) if mdp.has_state_names else list(range(mdp.num_states))
    actions: list[Any] = list(mdp.action_names) if mdp.has_action_names else list(range(mdp.num_actions))
    # A start of -0.0 is told from 0.0, so that what comes back is the same bit for bit.
    started = np.flatnonzero((mdp.start != 0.0) | np.signbit(mdp.start))
    content = {
        "states": states if mdp.has_state_names else mdp.num_states,
        "actions": actions if mdp.has_action_names else mdp.num_actions,
        "start": [[states[state], float(mdp.start[state])] for state in started],
        "terminal": [states[state] for state in np.flatnonzero(mdp.terminal)],
        "reward_scale": mdp.reward_scale._asdict(),
        "rewards": _BY_PAIR if mdp.transition_rewards is None else _BY_TRANSITION,
    }
    records = list(_records(mdp, states, actions))
    header = TEXT.header({**content, "transitions": records})
    lines = ",\n".join(f"  {_text(key)}: {_text(header[key])}" for key in header if key != "transitions")
    pairs = ",\n".join(f"    {_text(record)}" for record in records)
    return f'{{\n{lines},\n  "transitions": [\n{pairs}\n  ]\n}}\n'.encode()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _records(mdp: FiniteMDP, states: list[Any], actions: list[Any]) -> Iterator[dict[str, Any]]:
    indptr, columns = mdp.transitions.indptr.tolist(), mdp.transitions.indices.tolist()
    probabilities, rewards = mdp.transitions.data.tolist(), mdp.rewards.ravel().tolist()
    own = None if mdp.transition_rewards is None else mdp.transition_rewards.tolist()
    for row in range(len(indptr) - 1):
        state, action = divmod(row, mdp.num_actions)
        record = {"state": states[state], "action": actions[action]}
        span = range(indptr[row], indptr[row + 1])
        if own is None:
            record["reward"] = rewards[row]
            record["to"] = [[states[columns[k]], probabilities[k]] for k in span]
        else:
            record["to"] = [[states[columns[k]], probabilities[k], own[k]] for k in span]
        yield record


def _decode_text(kind: type[FiniteMDP], content: bytes) -> FiniteMDP:
    header = check_header(parse_strictly(content), TEXT, _TEXT_KEYS, by_hand=True)
    states, actions = _Numbering(header["states"], "state"), _Numbering(header["actions"], "action")
    by_transition = _is_by_transition(header["rewards"])
    records = _list(header["transitions"], "transitions")
    # Every pair has its line, so what a file claims to be large also is large: nothing is allocated on its word alone.
    if len(records) != states.size * actions.size:
        raise ValueError(
            f"it has {len(records)} lines of transitions, expected {states.size * actions.size}: one for each of "
            f"{states.size} states and {actions.size} actions"
        )
    start, started = np.zeros(states.size), set[int]()
    for entry in _list(header["start"], "start"):
        state, chance = _items(entry, 2, "an entry of start")
        number = states.number(state)
        if number in started:
            raise ValueError(f"start lists the state {state!r} twice")
        started.add(number)
        start[number] = _check_finite(chance, f"start: the probability of {state!r}")
    terminal = [states.number(state) for state in _list(header["terminal"], "terminal")]
    rows, rewards = _read_records(records, states, actions, by_transition)
    mdp = kind.from_rows(
        rows,
        rewards,
        start,
        terminal=np.isin(np.arange(states.size), terminal),
        state_names=states.names,
        action_names=actions.names,
        reward_scale=_reward_scale(header["reward_scale"]),
    )
    check_checksum(header, f"; remove its {CHECKSUM!r} if that was on purpose")
    return mdp


def _read_records(
    records: list[Any], states: _Numbering, actions: _Numbering, by_transition: bool
) -> tuple[sparse.csr_array, Any]:
    """Compressed rows and rewards of each pair or of each entry."""
    outcomes: list[dict[int, list[float]]] = [{} for _ in records]
    rewards = np.zeros((states.size, actions.size))
    keys = {"state", "action", "to"} | (set() if by_transition else {"reward"})
    for number, record in enumerate(records):
        if not isinstance(record, dict) or record.keys() != keys:
            raise ValueError(f"transitions[{number}] is {record!r}, expected an object with {sorted(keys)}")
        state, action = states.number(record["state"]), actions.number(record["action"])
        place = f"state {record['state']!r}, action {record['action']!r}"
        found = outcomes[state * actions.size + action]
        if found:
            raise ValueError(f"{place} is described twice")
        if not by_transition:
            rewards[state, action] = _check_finite(record["reward"], f"{place}: the reward")
        for outcome in _list(record["to"], f"{place}: to"):
            successor, *numbers = _items(outcome, 3 if by_transition else 2, f"{place}: an outcome")
            column = states.number(successor)
            if column in found:
                raise ValueError(f"{place}: the next state {successor!r} is listed twice")
            found[column] = [_check_finite(value, f"{place}, next state {successor!r}: a number") for value in numbers]
        if not found:
            raise ValueError(f"{place} leads nowhere, expected at least one outcome")
    flat = [(column, *found[column]) for found in outcomes for column in sorted(found)]
    indptr = np.cumsum([0, *map(len, outcomes)])
    columns, probabilities = np.array([entry[0] for entry in flat]), np.array([entry[1] for entry in flat])
    rows = sparse.csr_array((probabilities, columns, indptr), shape=(len(records), states.size))
    return rows, np.array([entry[2] for entry in flat]) if by_transition else rewards


class _Numbering:
    """How states or actions are referred to: by name if the header lists names, else by number."""

    def __init__(self, given: Any, kind: str) -> None:
        self._kind = kind
        self.names: tuple[str, ...] | None = None
        if isinstance(given, list):
            if not all(isinstance(name, str) for name in given) or len(set(given)) < len(given) or not given:
                raise ValueError(f"{kind}s is no list of distinct names")
            self.names, self.size = tuple(given), len(given)
        elif type(given) is int and given > 0:
            self.size = given
        else:
            raise ValueError(f"{kind}s is {given!r}, expected a list of names or how many there are")
        self._number = {name: number for number, name in enumerate(self.names or ())}

    def number(self, reference: Any) -> int:
        """The index behind a name or a number in the file."""
        if self.names is None:
            if type(reference) is not int or not 0 <= reference < self.size:
                raise ValueError(f"a {self._kind} is {reference!r}, expected a whole number from 0 to {self.size - 1}")
            return reference
        if not isinstance(reference, str) or reference not in self._number:
            raise ValueError(f"the {self._kind} {reference!r} is mentioned, but is not in the list of {self._kind}s")
        return self._number[reference]


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is {value!r}, expected a list")
    return value


def _items(value: Any, count: int, what: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"{what} is {value!r}, expected a list of {count} entries")
    return value
