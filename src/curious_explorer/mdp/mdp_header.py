"""What the two file formats of an MDP share: the name of the format, and checks of single values."""

from __future__ import annotations

import math
from typing import Any

from curious_explorer.archives import Format

FORMAT = Format("curious-explorer/finite-mdp", 1)
BY_PAIR, BY_TRANSITION = "by pair", "by transition"


def check_finite(value: Any, what: str) -> float:
    """A finite number; ``true`` and ``false`` are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{what} is {value!r}, expected a finite number")
    return float(value)


def check_index(value: Any, size: int, what: str) -> int:
    """A whole number from 0 to size - 1; ``true`` and ``false`` are none."""
    if type(value) is not int or not 0 <= value < size:
        raise ValueError(f"{what} is {value!r}, expected a whole number from 0 to {size - 1}")
    return value


def check_reward_kind(value: Any) -> bool:
    """Whether rewards are stored for each transition rather than for each pair."""
    if value not in (BY_PAIR, BY_TRANSITION):
        raise ValueError(f"rewards is {value!r}, expected {BY_PAIR!r} or {BY_TRANSITION!r}")
    return bool(value == BY_TRANSITION)


def check_scale(value: Any) -> tuple[float, float]:
    """Offset and factor of the reward scale."""
    if not isinstance(value, dict) or value.keys() != {"offset", "factor"}:
        raise ValueError(f"reward_scale is {value!r}, expected an object with offset and factor")
    return check_finite(value["offset"], "reward_scale.offset"), check_finite(value["factor"], "reward_scale.factor")
