"""Checks of arguments and of finite MDPs, with messages that name the first place where something is not well formed.

Every check raises ``ValueError`` with three things in it: what was given and where (state and action), what was
expected, and what to do about it. The checks are vectorised, so that a million states cost milliseconds, and work
through long arrays in blocks, so that they take next to no memory of their own.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from curious_explorer.arrays import blocks

ROW_SUM_TOLERANCE = 1e-9
"""How far a row of transition probabilities, a policy row or a start distribution may be from summing to one."""


class Where:
    """Turns indices into words, with the user's own names where there are any."""

    def __init__(self, state_names: Sequence[str] | None, action_names: Sequence[str] | None) -> None:
        self._state_names = state_names
        self._action_names = action_names

    def state(self, state: int) -> str:
        """The state in words: its index, and its name if it has one."""
        return f"state {state}" + (f" ({self._state_names[state]!r})" if self._state_names is not None else "")

    def pair(self, state: int, action: int) -> str:
        """The state and the action in words."""
        name = f" ({self._action_names[action]!r})" if self._action_names is not None else ""
        return f"{self.state(state)}, action {action}{name}"


def first(mask: NDArray[np.bool_]) -> int | None:
    """The first flat index at which the mask is true, or None."""
    if mask.size == 0:
        return None
    index = int(np.argmax(mask))
    return index if mask.flat[index] else None


def check_sizes(num_states: int, num_actions: int) -> None:
    """Refuse an MDP without states or without actions."""
    if num_states < 1 or num_actions < 1:
        raise ValueError(
            f"an MDP needs at least one state and one action, but transitions describe {num_states} states and "
            f"{num_actions} actions"
        )


def as_numbers(given: Any, name: str) -> NDArray[np.float64]:
    """An array of floats; the array itself when it is one already."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is {given!r:.200}, expected numbers ({error})") from error


def as_list(given: Any, name: str, what: str) -> list[Any]:
    """Things in order, as a list."""
    try:
        return list(given)
    except TypeError:
        raise ValueError(f"{name} is {given!r:.200}, expected a sequence of {what}") from None


def check_names(names: Sequence[str] | None, count: int, kind: str) -> tuple[str, ...] | None:
    """Names as a tuple of distinct strings, one for each state or action."""
    if names is None:
        return None
    if isinstance(names, str):
        raise ValueError(f"{kind}_names is the one string {names!r}; expected a sequence of {count} strings")
    result = as_list(names, f"{kind}_names", "strings")
    if len(result) != count:
        raise ValueError(f"{kind}_names has {len(result)} entries, expected one for each of the {count} {kind}s")
    seen: set[str] = set()
    for index, name in enumerate(result):
        if not isinstance(name, str):
            raise ValueError(f"{kind}_names[{index}] is {name!r}, expected a string")
        if name in seen:
            raise ValueError(f"{kind}_names[{index}] is {name!r}, which names an earlier {kind} too; names must differ")
        seen.add(name)
    return tuple(result)


def check_rows(rows: sparse.csr_array, num_actions: int, where: Where) -> None:
    """Probabilities finite and not negative, and each row (state, action) summing to one."""
    probabilities = rows.data
    bad = first_outside(probabilities, 0.0, np.finfo(np.float64).max)
    if bad is not None:
        row = int(np.searchsorted(rows.indptr, bad, side="right")) - 1
        pair = where.pair(row // num_actions, row % num_actions)
        raise ValueError(
            f"{pair}: the probability of moving to {where.state(int(rows.indices[bad]))} is {probabilities[bad]}; "
            "expected a finite number that is not negative"
        )
    for begin, stop in blocks(rows.shape[0]):
        sums = row_sums(row_block(rows, begin, stop))
        bad = first(~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE))
        if bad is not None:
            pair = where.pair((begin + bad) // num_actions, (begin + bad) % num_actions)
            raise ValueError(
                f"{pair}: transition probabilities sum to {sums[bad]:.12g}, expected 1 (within "
                f"{ROW_SUM_TOLERANCE:g}); divide the row by its sum, or mark the state as terminal if nothing leaves it"
            )


def first_outside(values: NDArray[np.float64], low: float, high: float) -> int | None:
    """The first flat index at which a value is not in [low, high], NaN included, or None."""
    flat = values.ravel()
    for begin, stop in blocks(flat.size):
        block = flat[begin:stop]
        bad = first(~((block >= low) & (block <= high)))
        if bad is not None:
            return begin + bad
    return None


def row_block(rows: sparse.csr_array, begin: int, stop: int) -> sparse.csr_array:
    """Rows ``begin`` to ``stop``, as they are stored; only the pointers are copied."""
    cuts = rows.indptr[begin : stop + 1]
    block = sparse.csr_array((stop - begin, rows.shape[1]), dtype=rows.data.dtype)
    # Set by hand: the constructor would copy a part of a much larger array.
    block.indptr, block.indices, block.data = (
        cuts - cuts[0],
        rows.indices[cuts[0] : cuts[-1]],
        rows.data[cuts[0] : cuts[-1]],
    )
    return block


def row_sums(rows: sparse.csr_array) -> NDArray[np.float64]:
    """The sum of each row."""
    sums: NDArray[np.float64] = np.asarray(rows @ np.ones(rows.shape[1]), dtype=np.float64)
    return sums


def check_rewards(rewards: NDArray[np.float64], num_actions: int, where: Where) -> None:
    """Rewards of shape (S, A), finite and in [0, 1]."""
    bad = first_outside(rewards, 0.0, 1.0)
    if bad is not None:
        state, action = divmod(bad, num_actions)
        bad_reward(float(rewards[state, action]), where.pair(state, action))


def bad_reward(value: float, place: str) -> NoReturn:
    """The one message about a reward that does not fit."""
    raise ValueError(
        f"{place}: the reward is {value}, expected a finite number in [0, 1]; rescale with "
        "(r - lowest) / (highest - lowest); FiniteMDP.from_gymnasium does so by itself and keeps the scale"
    )


def check_reward_scale(offset: float, factor: float) -> tuple[float, float]:
    """A finite offset and a finite positive factor."""
    if not (np.isfinite(offset) and np.isfinite(factor) and factor > 0.0):
        raise ValueError(
            f"reward_scale has offset {offset} and factor {factor}, expected finite numbers and a positive factor"
        )
    return float(offset), float(factor)


def as_distribution(given: Any, size: int, name: str, *, copy: bool = True) -> NDArray[np.float64]:
    """A distribution over ``size`` states from a state index or from probabilities; a fresh array unless told."""
    if isinstance(given, (bool, np.bool_)):
        raise ValueError(f"{name} is {given!r}, expected a state index or {size} probabilities")
    if isinstance(given, (int, np.integer)):
        if not 0 <= given < size:
            raise ValueError(f"{name} is state {given}, expected an index from 0 to {size - 1}")
        point = np.zeros(size)
        point[given] = 1.0
        return point
    distribution = as_numbers(given, name)
    if copy:
        distribution = distribution.copy()
    if distribution.shape != (size,):
        raise ValueError(f"{name} has shape {distribution.shape}, expected ({size},): one probability for each state")
    bad = first_outside(distribution, 0.0, np.finfo(np.float64).max)
    if bad is not None:
        raise ValueError(f"{name}[{bad}] is {distribution[bad]}, expected a finite probability that is not negative")
    total = float(distribution.sum())
    if abs(total - 1.0) > ROW_SUM_TOLERANCE:
        raise ValueError(
            f"{name} sums to {total:.12g}, expected 1 (within {ROW_SUM_TOLERANCE:g}); divide it by its sum"
        )
    return distribution


def check_states(states: Any, num_states: int, name: str, *, copy: bool = True) -> NDArray[np.bool_]:
    """A boolean mask over states, from a mask or from state indices; a fresh array unless told."""
    given = np.asarray(states)
    if given.dtype == np.bool_:
        if given.shape != (num_states,):
            raise ValueError(f"{name} is a mask of shape {given.shape}, expected ({num_states},)")
        return given.copy() if copy else given
    mask = np.zeros(num_states, dtype=np.bool_)
    mask[check_indices(given, num_states, name)] = True
    return mask


def check_indices(states: Any, num_states: int, name: str) -> NDArray[np.int64]:
    """State indices, in the order given."""
    given = np.asarray(states)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(f"{name} is {states!r}, expected a sequence of state indices")
    outside = given[(given < 0) | (given >= num_states)]
    if outside.size:
        raise ValueError(f"{name} names state {outside[0]}, expected indices from 0 to {num_states - 1}")
    return given.astype(np.int64)


def check_finite(
    given: Any, shape: tuple[int, ...], name: str, axes: tuple[str, ...] = ("state", "action")
) -> NDArray[np.float64]:
    """Finite numbers in an array of this shape; ``axes`` says what its indices are called."""
    table = as_numbers(given, name)
    if table.shape != shape:
        raise ValueError(f"{name} has shape {table.shape}, expected {shape}")
    if not np.isfinite(table).all():
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(table))[0])
        words = ", ".join(f"{axis} {index}" for axis, index in zip(axes, place, strict=False))
        raise ValueError(f"{name}, {words}: {table[place]}, expected a finite number")
    return table


def check_policy(policy: Any, num_states: int, num_actions: int, name: str = "policy") -> NDArray[np.float64]:
    """A policy of shape (S, A) whose rows are distributions; the array itself when it is one already."""
    table = as_numbers(policy, name)
    if table.shape != (num_states, num_actions):
        raise ValueError(
            f"{name} has shape {table.shape}, expected ({num_states}, {num_actions}): one row of action probabilities "
            "for each state"
        )
    for begin, stop in blocks(num_states):
        _check_policy_rows(table[begin:stop], begin, name)
    return table


def _check_policy_rows(rows: NDArray[np.float64], begin: int, name: str) -> None:
    bad = first_outside(rows, 0.0, np.finfo(np.float64).max)
    if bad is not None:
        state, action = divmod(bad, rows.shape[1])
        raise ValueError(
            f"{name}, state {begin + state}, action {action}: the probability is {rows[state, action]}, expected a "
            "finite number that is not negative"
        )
    sums = rows.sum(axis=1)
    bad = first(~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE))
    if bad is not None:
        raise ValueError(
            f"{name}, state {begin + bad}: action probabilities sum to {sums[bad]:.12g}, expected 1 (within "
            f"{ROW_SUM_TOLERANCE:g}); divide each row by its sum"
        )


LONGEST_WALK = 10_000_000
"""How many steps a walk may take on average: a hundred times what anybody waits for."""


def check_walk_gamma(gamma: Any) -> float:
    """The discount of walks that stop with probability ``1 - gamma`` before each step, and so must stop at all."""
    value = check_gamma(gamma)
    if (1.0 - value) * LONGEST_WALK < 0.999:  # 1 - gamma is rounded: not at the limit itself
        raise ValueError(
            f"gamma is {value!r}, with which a walk takes {1.0 / (1.0 - value):.0e} steps on average; expected at most "
            f"1 - 1/{LONGEST_WALK:,}"
        )
    return value


def check_gamma(gamma: Any, name: str = "gamma") -> float:
    """A discount factor in [0, 1)."""
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} is {gamma!r}, expected a number in [0, 1)")
    value = float(gamma)
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{name} is {value}, expected a discount in [0, 1); for long horizons try 0.99 or 0.999")
    return value


def check_probability(value: Any, name: str) -> float:
    """A number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is {value!r}, expected a number in [0, 1]")
    return float(value)


def check_number(value: Any, name: str, *, low: float = 0.0, high: float = math.inf, above: bool = False) -> float:
    """A finite number from ``low`` to ``high``; ``above`` leaves out ``low`` itself."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or math.isinf(value) or (above and value == low):
        end = "" if math.isinf(high) else f", and at most {high:g}"
        raise ValueError(f"{name} is {value!r}, expected a finite number {'above' if above else 'from'} {low:g}{end}")
    return float(value)


def check_count(value: Any, name: str, *, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number that is at least ``least``, and fits the 63 bits in which compiled code counts."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}, expected a whole number that is at least {least}")
    if value > most:
        raise ValueError(f"{name} is {value!r}, expected a whole number of at most {most}")
    return int(value)


def check_seed(seed: Any, name: str = "seed") -> int:
    """A seed: a whole number from 0 to 2**64 - 1."""
    return check_count(seed, name, most=2**64 - 1)


def check_name(given: str, known: Iterable[str], what: str) -> str:
    """A name that is known; otherwise the error suggests the nearest one that is."""
    names = list(known)
    if given in names:
        return given
    nearest = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.4)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(f"{what} is {given!r}, expected one of {', '.join(map(repr, names))}{hint}")
