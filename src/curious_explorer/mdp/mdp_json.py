"""The JSON form of an MDP: one line for each pair, states and actions by name where they have names.

    {"state": "A", "action": "left", "reward": 0.0, "to": [["A", 0.2], ["B", 0.8]]}

If rewards depend on the next state, each outcome carries its own: ``["B", 0.8, 1.0]``. Numbers are written by
``repr``, the shortest text that reads back as the same float.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from curious_explorer.archives import check_header, parse_strictly
from curious_explorer.mdp.finite_mdp import FiniteMDP, RewardScale
from curious_explorer.mdp.mdp_header import (
    BY_PAIR,
    BY_TRANSITION,
    FORMAT,
    check_finite,
    check_index,
    check_reward_kind,
    check_scale,
)

_KEYS = {"states", "actions", "start", "terminal", "reward_scale", "rewards", "transitions"}


def encode(mdp: FiniteMDP) -> bytes:
    """The whole file."""
    states: list[Any] = list(mdp.state_names) if mdp.has_state_names else list(range(mdp.num_states))
    actions: list[Any] = list(mdp.action_names) if mdp.has_action_names else list(range(mdp.num_actions))
    # A start of -0.0 is told from 0.0, so that what comes back is the same bit for bit.
    started = np.flatnonzero((mdp.start != 0.0) | np.signbit(mdp.start))
    header = {
        "format": FORMAT.name,
        "version": FORMAT.version,
        "states": states if mdp.has_state_names else mdp.num_states,
        "actions": actions if mdp.has_action_names else mdp.num_actions,
        "start": [[states[state], float(mdp.start[state])] for state in started],
        "terminal": [states[state] for state in np.flatnonzero(mdp.terminal)],
        "reward_scale": mdp.reward_scale._asdict(),
        "rewards": BY_PAIR if mdp.transition_rewards is None else BY_TRANSITION,
    }
    lines = ",\n".join(f"  {_text(key)}: {_text(value)}" for key, value in header.items())
    pairs = ",\n".join(f"    {_text(record)}" for record in _records(mdp, states, actions))
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


def decode(content: bytes) -> FiniteMDP:
    """The MDP in the content of a file; any ``ValueError`` says what is wrong with it."""
    header = check_header(parse_strictly(content), FORMAT, _KEYS)
    states, actions = _Numbering(header["states"], "state"), _Numbering(header["actions"], "action")
    by_transition = check_reward_kind(header["rewards"])
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
        start[number] = check_finite(chance, f"start: the probability of {state!r}")
    terminal = [states.number(state) for state in _list(header["terminal"], "terminal")]
    rows, rewards = _read_records(records, states, actions, by_transition)
    return FiniteMDP.from_rows(
        rows,
        rewards,
        start,
        terminal=np.isin(np.arange(states.size), terminal),
        state_names=states.names,
        action_names=actions.names,
        reward_scale=RewardScale(*check_scale(header["reward_scale"])),
    )


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
            rewards[state, action] = check_finite(record["reward"], f"{place}: the reward")
        for outcome in _list(record["to"], f"{place}: to"):
            successor, *numbers = _items(outcome, 3 if by_transition else 2, f"{place}: an outcome")
            column = states.number(successor)
            if column in found:
                raise ValueError(f"{place}: the next state {successor!r} is listed twice")
            found[column] = [check_finite(value, f"{place}, next state {successor!r}: a number") for value in numbers]
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
            return check_index(reference, self.size, f"a {self._kind}")
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
