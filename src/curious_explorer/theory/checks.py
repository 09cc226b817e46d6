"""Checks of what theory is asked about; all of them before any work begins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curious_explorer.arrays import Floats, Mask
from curious_explorer.explorers.exploration import Exploration
from curious_explorer.mdp.finite_mdp import FiniteMDP
from curious_explorer.validation import check_gamma, check_policy
from curious_explorer.worlds.world import World


def check_probability(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} is {value!r}, expected a number in (0, 1)")
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} is {value}, expected a number strictly between 0 and 1, such as 0.05")
    return float(value)


def check_not_negative(value: Any, name: str) -> float:
    """A finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} is {value!r}, expected a finite number that is not negative")
    if not (math.isfinite(value) and value >= 0.0):
        raise ValueError(f"{name} is {value}, expected a finite number that is not negative")
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    if check_not_negative(value, name) == 0.0:
        raise ValueError(f"{name} is 0, expected a number above zero")
    return float(value)


def check_per_round(values: ArrayLike, rounds: int, name: str) -> Floats:
    """One finite number that is not negative for each round; a single number is repeated."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim == 0:
        given = np.full(rounds, float(given))
    if given.shape != (rounds,):
        raise ValueError(f"{name} has shape {given.shape}, expected ({rounds},): one for each round")
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0.0)))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {given[bad[0]]}, expected a finite number that is not negative")
    return given


def check_states(states: ArrayLike, num_states: int, name: str) -> Mask:
    """A boolean mask over states from a mask or from state indices."""
    given = np.asarray(states)
    if given.dtype == np.bool_:
        if given.shape != (num_states,):
            raise ValueError(f"{name} is a mask of shape {given.shape}, expected ({num_states},)")
        return given.copy()
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(f"{name} is {states!r}, expected a boolean mask or a sequence of state indices")
    outside = given[(given < 0) | (given >= num_states)]
    if outside.size:
        raise ValueError(f"{name} names state {outside[0]}, expected indices from 0 to {num_states - 1}")
    mask = np.zeros(num_states, dtype=bool)
    mask[given.astype(np.int64)] = True
    return mask


def check_exploration(exploration: Exploration, home: FiniteMDP | World, gamma: float | None = None) -> float:
    """Refuse an exploration without rounds or policies, of another world, or with another discount; returns gamma."""
    if not isinstance(exploration, Exploration):
        raise ValueError(f"exploration is a {type(exploration).__name__}, expected what explore() returns")
    if not exploration.rounds:
        raise ValueError("the exploration has no rounds; run explore(..., rounds=N) with N at least 1")
    shape = (home.num_states, home.num_actions)
    for index, round_ in enumerate(exploration.rounds):
        for name in ("policy", "learned_policy", "visited", "poorly_visited"):
            table = getattr(round_, name)
            if table is None:
                raise ValueError(
                    f"round {index} has no stored {name}; load the run with Exploration.load, or repeat it"
                )
            expected = shape if name.endswith("policy") else shape[:1]
            if np.shape(table) != expected:
                raise ValueError(
                    f"round {index}: {name} has shape {np.shape(table)}, expected {expected} for a world of {shape[0]} "
                    f"states and {shape[1]} actions; give the world that was explored"
                )
        check_policy(round_.learned_policy, *shape, name=f"round {index}: learned_policy")
        if index and not np.array_equal(round_.policy, exploration.rounds[index - 1].learned_policy):
            raise ValueError(
                f"round {index} does not visit the policy that round {index - 1} learned; is a round lost?"
            )
    own = check_gamma(exploration.gamma)
    if gamma is not None and check_gamma(gamma) != own:
        raise ValueError(
            f"gamma is {gamma}, but the exploration was made with gamma {own}; leave gamma out, or use {own}"
        )
    return own


def check_round(number: int | None, rounds: int) -> int:
    """The number of a round that exists; None is the last, and negative ones count from the end."""
    if number is None:
        return rounds - 1
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not -rounds <= number < rounds:
        raise ValueError(f"round_number is {number!r}, expected a round from 0 to {rounds - 1}")
    return int(number) % rounds
