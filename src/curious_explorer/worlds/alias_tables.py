"""Tables from which a compiled walk draws: alias tables, and cumulative thresholds.

*Alias table* (Walker 1977). A distribution over at most K = 2**k outcomes becomes K entries. A draw u picks entry
``u mod K`` by its low bits, then the entry's first outcome if ``u >> 1`` is below the entry's threshold and the second
one otherwise: one random number and one look-up, whatever K is. An entry takes two 64-bit words, the threshold and the
pair of outcomes, so that a look-up touches a single cache line. The same memory is seen as 64-bit words (thresholds)
and as 32-bit integers (outcomes).

*Composed table*. Where actions are not asked for, policy and transitions are merged into P_pi and each state gets one
alias row of the same K: entry ``s * K + slot``. An outcome is the next state, or its complement ``~s`` (a negative
number) where that state is terminal, so the walk sees the end without another look-up.

*Thresholds*. Where the policy changes every few thousand steps, rebuilding alias rows costs more than it saves:
`policy_thresholds` holds cumulative action probabilities, `Dynamics` the cumulative transition probabilities, built
once for an MDP.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from curious_explorer.arrays import Floats, Indices, Words
from curious_explorer.compile import compiled
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import ROW_SUM_TOLERANCE
from curious_explorer.worlds.random_streams import ALWAYS, threshold

SMALLEST_GEOMETRIC, LARGEST_GEOMETRIC = 64, 65_536
GEOMETRIC_TAIL = 2.0**-6
"""A stopping time past the end of its table costs another draw; the table is long enough for that to be rare."""


class AliasTable(NamedTuple):
    """Rows of 2**log2_size alias entries each; `words` and `outcomes` are two views of the same memory."""

    words: Words
    outcomes: Indices
    log2_size: int


class Dynamics(NamedTuple):
    """An MDP as cumulative thresholds: what a compiled step needs, row ``s * A + a`` for each pair."""

    num_actions: int
    row_start: NDArray[np.int64]
    thresholds: Words
    next_state: Indices  # complemented (negative) where the next state is terminal
    rewards: Floats  # of each stored transition


def alias_table(probabilities: Floats, terminal: NDArray[np.bool_] | None = None) -> AliasTable:
    """One alias row for a distribution over 0..n-1; outcomes that are terminal are complemented."""
    support = np.flatnonzero(probabilities).astype(np.int32)
    values = support if terminal is None else np.where(terminal[support], ~support, support)
    return _single_row(values, probabilities[support], 1 << _log2_size(len(support)))


def geometric_size(gamma: float) -> int:
    """How many entries the table of a stopping time should have."""
    size = SMALLEST_GEOMETRIC
    while size < LARGEST_GEOMETRIC and gamma**size > GEOMETRIC_TAIL:
        size *= 2
    return size


def geometric_table(gamma: float, size: int) -> AliasTable:
    """The number of steps before stopping, when each is preceded by stopping with probability ``1 - gamma``.

    P(T = k) = (1 - gamma) gamma**k for k up to the last entry, which stands for "at least this many": by the lack of
    memory of the geometric law the walk then adds another draw.
    """
    probabilities: Floats = (1.0 - gamma) * gamma ** np.arange(size, dtype=np.float64)
    probabilities[-1] = gamma ** (size - 1)
    return _single_row(np.arange(size, dtype=np.int32), probabilities, size)


def composed_log2_size(mdp: FiniteMDP) -> int:
    """log2 of the entries that a state's composed row needs under any policy."""
    rows = mdp.transitions
    return _log2_size(_most_successors(rows.indptr, rows.indices, mdp.num_actions))


def composed_table(mdp: FiniteMDP, policy: Floats, log2_size: int) -> AliasTable:
    """P_pi as one alias row of ``2**log2_size`` entries for each state."""
    rows = mdp.transitions
    words = np.zeros(mdp.num_states * (2 << log2_size), dtype=np.uint64)
    outcomes = words.view(np.int32)
    size = 1 << log2_size
    _compose(rows.indptr, rows.indices, rows.data, policy, mdp.terminal, words, outcomes, size, *_scratch(size))
    return AliasTable(words, outcomes, log2_size)


def policy_thresholds(policy: Floats) -> Words:
    """Cumulative action probabilities as integers, shape (S, A); impossible actions are never drawn."""
    thresholds = np.empty(policy.shape, dtype=np.uint64)
    fill_policy_thresholds(policy, thresholds)
    return thresholds


def dynamics(mdp: FiniteMDP) -> Dynamics:
    """The MDP's transitions as cumulative thresholds.

    One pass in order, with no array in between, so a mapped model is read once and takes no more than the result.
    """
    rows = mdp.transitions
    tables = Dynamics(
        mdp.num_actions,
        np.empty(len(rows.indptr), dtype=np.int64),
        np.empty(rows.nnz, dtype=np.uint64),
        np.empty(rows.nnz, dtype=np.int32),
        np.empty(rows.nnz),
    )
    own = mdp.transition_rewards
    rewards = mdp.rewards.ravel() if own is None else own
    model = (rows.indptr, rows.indices, rows.data, mdp.terminal, rewards, own is not None)
    damaged = _fill_dynamics(*model, *tables[1:])
    if damaged >= 0:
        state, action = divmod(damaged, mdp.num_actions)
        raise ValueError(
            f"state {state}, action {action}: the model's stored transitions are damaged; if it was loaded from a "
            "file, load it with check=True to learn what is wrong"
        )
    return tables


def _single_row(values: Indices, probabilities: Floats, size: int) -> AliasTable:
    words = np.zeros(2 * size, dtype=np.uint64)
    outcomes = words.view(np.int32)
    _fill_row(words, outcomes, 0, size, values, probabilities, len(values), *_scratch(size))
    return AliasTable(words, outcomes, _log2_size(size))


def _log2_size(count: int) -> int:
    return max(int(count) - 1, 0).bit_length()


def _scratch(size: int) -> tuple[Floats, NDArray[np.int32]]:
    return np.empty(size), np.empty(2 * size, dtype=np.int32)


# Kernels ----------------------------------------------------------------------------------------------------------


@compiled
def fill_policy_thresholds(policy: Floats, thresholds: Words) -> bool:
    """Write the cumulative thresholds of every state's actions; False if a row is no distribution."""
    num_actions = policy.shape[1]
    for state in range(policy.shape[0]):
        total = 0.0
        last = 0
        for action in range(num_actions):
            probability = policy[state, action]
            if not probability >= 0.0:
                return False
            total += probability
            thresholds[state, action] = threshold(total)
            if probability > 0.0:
                last = action
        if not abs(total - 1.0) <= ROW_SUM_TOLERANCE:
            return False
        # Rounding may leave the sum just below one; the last action that is possible takes what is left.
        for action in range(last, num_actions):
            thresholds[state, action] = ALWAYS
    return True


@compiled
def _fill_dynamics(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    probabilities: Floats,
    terminal: NDArray[np.bool_],
    given_rewards: Floats,
    by_transition: bool,
    row_start: NDArray[np.int64],
    thresholds: Words,
    next_state: Indices,
    rewards: Floats,
) -> int:
    """Fill the tables of `Dynamics`; the first row that no walk could be trusted with, or -1.

    A model that was mapped and never checked could send a walk out of bounds; here, at no cost, it cannot.
    """
    num_states, entries = len(terminal), len(indices)
    for row in range(len(indptr) - 1):
        begin, stop = indptr[row], indptr[row + 1]
        if begin < 0 or stop <= begin or stop > entries:
            return row
        row_start[row] = begin
        total = 0.0
        for entry in range(begin, stop):
            successor = indices[entry]
            if successor < 0 or successor >= num_states:
                return row
            total += probabilities[entry]
            thresholds[entry] = threshold(total)
            next_state[entry] = ~successor if terminal[successor] else successor
            rewards[entry] = given_rewards[entry] if by_transition else given_rewards[row]
        thresholds[stop - 1] = ALWAYS
    row_start[len(indptr) - 1] = indptr[len(indptr) - 1]
    return -1


@compiled
def _fill_row(
    words: Words,
    outcomes: Indices,
    first_entry: int,
    size: int,
    values: Indices,
    probabilities: Floats,
    count: int,
    share: Floats,
    stacks: NDArray[np.int32],
) -> None:
    """Vose's construction: pair each entry that is too light with one that is too heavy."""
    total = 0.0
    for slot in range(count):
        total += probabilities[slot]
    light, heavy = 0, 0  # two stacks: light from the left of `stacks`, heavy from its middle
    for slot in range(size):
        share[slot] = probabilities[slot] * size / total if slot < count else 0.0
        if share[slot] < 1.0:
            stacks[light] = slot
            light += 1
        else:
            stacks[size + heavy] = slot
            heavy += 1
    while light > 0 and heavy > 0:
        light -= 1
        slot, giver = stacks[light], stacks[size + heavy - 1]
        _write_entry(words, outcomes, first_entry + slot, share[slot], values[min(slot, count - 1)], values[giver])
        share[giver] -= 1.0 - share[slot]
        if share[giver] < 1.0:
            heavy -= 1
            stacks[light] = giver
            light += 1
    # What rounding leaves over is full. A padding slot is never left: its share is zero, so some giver had to fill it.
    while heavy > 0:
        heavy -= 1
        slot = stacks[size + heavy]
        _write_entry(words, outcomes, first_entry + slot, 1.0, values[slot], values[slot])
    while light > 0:
        light -= 1
        slot = stacks[light]
        _write_entry(
            words, outcomes, first_entry + slot, 1.0, values[min(slot, count - 1)], values[min(slot, count - 1)]
        )


@compiled
def _write_entry(words: Words, outcomes: Indices, entry: int, share: float, chosen: int, other: int) -> None:
    words[2 * entry] = threshold(share)
    outcomes[4 * entry + 2] = chosen
    outcomes[4 * entry + 3] = other


@compiled
def _most_successors(row_start: NDArray[np.int32], next_state: NDArray[np.int32], num_actions: int) -> int:
    """The largest number of distinct next states of any state."""
    num_states = (len(row_start) - 1) // num_actions
    seen = np.full(num_states, -1, dtype=np.int32)
    most = 1
    for state in range(num_states):
        count = 0
        for entry in range(row_start[state * num_actions], row_start[(state + 1) * num_actions]):
            if seen[next_state[entry]] != state:
                seen[next_state[entry]] = state
                count += 1
        most = max(most, count)
    return most


@compiled
def _compose(
    row_start: NDArray[np.int32],
    next_state: NDArray[np.int32],
    probabilities: Floats,
    policy: Floats,
    terminal: NDArray[np.bool_],
    words: Words,
    outcomes: Indices,
    size: int,
    share: Floats,
    stacks: NDArray[np.int32],
) -> None:
    """Merge the actions of each state by next state, and write the state's alias row."""
    num_states, num_actions = policy.shape
    place = np.full(
        num_states, -1, dtype=np.int64
    )  # where a next state stands in `values`, offset by all states before
    values = np.empty(size, dtype=np.int32)
    weights = np.empty(size)
    used = 0
    for state in range(num_states):
        count = 0
        for action in range(num_actions):
            chosen = policy[state, action]
            if chosen > 0.0:
                row = state * num_actions + action
                for entry in range(row_start[row], row_start[row + 1]):
                    successor = next_state[entry]
                    if place[successor] < used:
                        place[successor] = used + count
                        values[count] = ~successor if terminal[successor] else successor
                        weights[count] = 0.0
                        count += 1
                    weights[place[successor] - used] += chosen * probabilities[entry]
        _fill_row(words, outcomes, state * size, size, values, weights, count, share, stacks)
        used += count
