"""Read the tables of Gymnasium's tabular environments: FrozenLake, Taxi, CliffWalking and their kin.

Such an environment carries ``P[state][action] = [(probability, next state, reward, terminated), ...]``. Two things do
not translate word for word:

*Termination* is a property of a transition there and of a state here. A state is terminal if every transition into it
that can happen (from the start, before the end of an episode) is flagged as terminated. Where some are and some are
not, or an episode may start there, the flagged ones lead to a terminal copy called ``"<state> (ended)"``. States
that cannot be reached are judged by all transitions into them; they never get a copy.

*Rewards* are moved into [0, 1] only as far as needed, and `RewardScale` remembers how. After the end Gymnasium pays 0
for ever, so terminal states carry the image of 0; hence every policy keeps its rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from curious_explorer import validation
from curious_explorer.arrays import Floats, Integers, Mask
from curious_explorer.mdp.assembly import RewardScale, merge_outcomes
from curious_explorer.registration import split_arguments

if TYPE_CHECKING:  # it imports this module
    from curious_explorer.mdp.finite_mdp import FiniteMDP


class _Outcomes(NamedTuple):
    """The table as columns, one entry for each outcome that can happen."""

    state: Integers
    action: Integers
    successor: Integers
    probability: Floats
    reward: Floats
    ended: Mask


def read_gymnasium(kind: type[FiniteMDP], env: gymnasium.Env[Any, Any] | str, **arguments: Any) -> FiniteMDP:
    """The finite MDP behind a Gymnasium environment that publishes its table.

    Args:
        kind: `FiniteMDP`, which has this as `FiniteMDP.from_gymnasium`.
        env: an environment, wrapped or not, or its id, such as ``"FrozenLake-v1"`` or ``"FrozenLake-v1?map_name=8x8"``.
        arguments: passed on to ``gymnasium.make`` with an id.

    Raises:
        ValueError: if the environment has no table ``P``, no discrete spaces, or a table that is not well formed.
    """
    if isinstance(env, str):
        identifier, given = split_arguments(env)
        made = gymnasium.make(identifier, **(given | arguments))
        try:
            return read_gymnasium(kind, made)
        finally:
            made.close()
    table_of = getattr(env, "unwrapped", env)
    if isinstance(own := getattr(table_of, "mdp", None), kind):  # an environment of this library's
        return own
    num_states = _discrete_size(table_of, "observation_space")
    num_actions = _discrete_size(table_of, "action_space")
    outcomes = _read_table(table_of, num_states, num_actions)
    start = _read_start(table_of, num_states)

    terminal, copied = _classify(outcomes, start > 0.0)
    scale = _scale_of(outcomes.reward[~terminal[outcomes.state]])
    copies = np.flatnonzero(copied)
    copy_of = np.full(num_states, -1)
    copy_of[copies] = num_states + np.arange(copies.size)
    terminal = np.concatenate([terminal, np.ones(copies.size, dtype=np.bool_)])
    rows, rewards = _compress(outcomes, terminal, copy_of, num_actions, scale)
    names = [*map(str, range(num_states)), *(f"{state} (ended)" for state in copies)]
    return kind.from_rows(
        rows,
        rewards,
        np.concatenate([start, np.zeros(copies.size)]),
        terminal=terminal,
        state_names=names if copies.size else None,
        reward_scale=scale,
    )


def _discrete_size(env: Any, name: str) -> int:
    space = getattr(env, name, None)
    if not isinstance(space, gymnasium.spaces.Discrete) or space.start != 0:
        raise ValueError(
            f"{_called(env)} has {name} {space!r}, expected a Discrete space that starts at 0; only environments with "
            "finitely many numbered states and actions can be read"
        )
    return int(space.n)


def _called(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return f"environment {spec.id!r}" if spec is not None else f"environment {type(env).__name__}"


def _read_table(env: Any, num_states: int, num_actions: int) -> _Outcomes:
    """``env.P`` as columns, with every entry checked."""
    table = getattr(env, "P", None)
    if table is None:
        raise ValueError(
            f"{_called(env)} has no table P, expected P[state][action] = [(probability, next state, reward, "
            "terminated), ...] as FrozenLake, Taxi and CliffWalking have; build the MDP with FiniteMDP or MDPBuilder"
        )
    _check_length(table, num_states, f"{_called(env)}: P", "states of observation_space")
    entries: list[tuple[int, int, int, float, float, bool]] = []
    for state in range(num_states):
        actions = _entry(table, state, f"{_called(env)}: P")
        _check_length(actions, num_actions, f"{_called(env)}: P[{state}]", "actions of action_space")
        for action in range(num_actions):
            place = f"{_called(env)}: P[{state}][{action}] (state {state}, action {action})"
            outcomes = _entry(actions, action, f"{_called(env)}: P[{state}]")
            entries += [(state, action, *_read_outcome(outcome, num_states, place)) for outcome in outcomes]
    numbers = np.array(entries, dtype=np.float64).reshape(len(entries), 6)
    numbers = numbers[numbers[:, 3] > 0.0]
    state, action, successor = numbers[:, :3].astype(np.int64).T
    return _Outcomes(state, action, successor, numbers[:, 3], numbers[:, 4], numbers[:, 5] != 0.0)


def _check_length(table: Any, expected: int, place: str, of_what: str) -> None:
    try:
        length = len(table)
    except TypeError:
        length = -1
    if length != expected:
        found = f"{length} entries" if length >= 0 else f"a {type(table).__name__}"
        raise ValueError(f"{place} has {found}, expected {expected}: one for each of the {of_what}")


def _entry(table: Any, index: int, place: str) -> Any:
    try:
        return table[index]
    except (KeyError, IndexError) as error:
        raise ValueError(f"{place} has no entry {index}, expected entries from 0 to {len(table) - 1}") from error


def _read_outcome(outcome: Any, num_states: int, place: str) -> tuple[int, float, float, bool]:
    """One outcome as (next state, probability, reward, terminated)."""
    try:
        probability, successor, reward, terminated = outcome
        probability, reward = float(probability), float(reward)
        is_state = 0 <= successor < num_states and int(successor) == successor
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{place} holds {outcome!r}, expected (probability, next state, reward, terminated)"
        ) from error
    if not is_state:
        raise ValueError(f"{place} leads to state {successor!r}, expected an index from 0 to {num_states - 1}")
    if not 0.0 <= probability <= 1.0 + validation.ROW_SUM_TOLERANCE:
        raise ValueError(f"{place}: the probability of state {successor} is {probability}, expected one in [0, 1]")
    if not np.isfinite(reward):
        raise ValueError(f"{place}: the reward is {reward}, expected a finite number")
    return int(successor), probability, reward, bool(terminated)


def _read_start(env: Any, num_states: int) -> Floats:
    given = getattr(env, "initial_state_distrib", None)
    if given is None:
        raise ValueError(
            f"{_called(env)} has no initial_state_distrib, expected {num_states} probabilities: where its episodes "
            "start"
        )
    return validation.as_distribution(given, num_states, f"{_called(env)}: initial_state_distrib")


def _scale_of(rewards: Floats) -> RewardScale:
    """The scale that moves these rewards, and the 0 that follows the end, into [0, 1]; none if they are there."""
    lowest, highest = float(rewards.min(initial=0.0)), float(rewards.max(initial=0.0))
    factor = max(1.0, highest - lowest)
    if not np.isfinite(factor):
        raise ValueError(f"rewards range from {lowest} to {highest}, which is too wide to scale into [0, 1]")
    return RewardScale(lowest, factor)


def _classify(outcomes: _Outcomes, can_start: Mask) -> tuple[Mask, Mask]:
    """Which states are terminal, and which need a terminal copy because they are entered both ways."""
    num_states = can_start.size
    reached = _reached_alive(outcomes, can_start)
    happens = reached[outcomes.state]

    def entered(selection: Mask) -> Mask:
        return np.bincount(outcomes.successor[selection], minlength=num_states) > 0

    alive = entered(happens & ~outcomes.ended) | can_start
    ended = entered(happens & outcomes.ended)
    unreached = ~alive & ~ended
    looks_terminal = entered(outcomes.ended) & ~entered(~outcomes.ended)
    return (ended & ~alive) | (unreached & looks_terminal), ended & alive


def _reached_alive(outcomes: _Outcomes, can_start: Mask) -> Mask:
    """The states in which some episode can still be running."""
    num_states = can_start.size
    starts = np.flatnonzero(can_start)
    # One more node, from which every start can be reached, makes it a search from a single place.
    tail = np.concatenate([outcomes.state[~outcomes.ended], np.full(starts.size, num_states)])
    head = np.concatenate([outcomes.successor[~outcomes.ended], starts])
    graph = sparse.csr_array((np.ones(tail.size), (tail, head)), shape=(num_states + 1, num_states + 1))
    order = csgraph.breadth_first_order(graph, num_states, return_predecessors=False)
    reached = np.zeros(num_states + 1, dtype=np.bool_)
    reached[order] = True
    return reached[:num_states]


def _compress(
    outcomes: _Outcomes, terminal: Mask, copy_of: Integers, num_actions: int, scale: RewardScale
) -> tuple[sparse.csr_array, Floats]:
    """Rows and scaled rewards; terminal states loop and pay the image of 0."""
    to_copy = outcomes.ended & (copy_of[outcomes.successor] >= 0)
    successor = np.where(to_copy, copy_of[outcomes.successor], outcomes.successor)
    goes_on = ~terminal[outcomes.state]
    loops = np.repeat(np.flatnonzero(terminal), num_actions)
    loop_rows = (np.flatnonzero(terminal)[:, None] * num_actions + np.arange(num_actions)).ravel()
    rewards = np.concatenate([outcomes.reward[goes_on], np.zeros(loops.size)])
    return merge_outcomes(
        np.concatenate([(outcomes.state * num_actions + outcomes.action)[goes_on], loop_rows]),
        np.concatenate([successor[goes_on], loops]),
        np.concatenate([outcomes.probability[goes_on], np.ones(loops.size)]),
        (rewards - scale.offset) / scale.factor,
        (terminal.size * num_actions, terminal.size),
    )
