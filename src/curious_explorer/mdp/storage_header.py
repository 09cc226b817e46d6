"""What both file formats share: the header that says what a file is, and strict reading of JSON."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

FORMAT = "curious-explorer/finite-mdp"
VERSION = 1
BY_PAIR, BY_TRANSITION = "by pair", "by transition"


def parse_strictly(content: bytes) -> Any:
    """JSON without the liberties that Python takes: no NaN or Infinity, no key twice, UTF-8 only."""
    if not content.strip():
        raise ValueError("the file is empty")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text ({error})") from error
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not complete JSON ({error})") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, expected finite numbers only")


def check_header(given: Any, keys: set[str]) -> dict[str, Any]:
    """The header as a dictionary with exactly these keys besides format and version."""
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        found = given.get("format") if isinstance(given, dict) else None
        raise ValueError(f"its format is {found!r}, expected {FORMAT!r}; this is a file of another kind")
    version = given.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}, expected a whole number from 1 to {VERSION}")
    if version > VERSION:
        raise ValueError(f"its version is {version}, newer than {VERSION}, the newest known here; update the library")
    expected = keys | {"format", "version"}
    if given.keys() != expected:
        missing, unknown = sorted(expected - given.keys()), sorted(given.keys() - expected)
        raise ValueError(f"its header misses {missing} and has the unknown {unknown}")
    return given


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
