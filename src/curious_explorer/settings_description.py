"""Settings as plain data, so that those of a run can be compared with those of an earlier one.

A dataclass is its fields; a function is a digest of its code and of what it closes over; any other object is its
attributes. What cannot be told from another by any of these is told by its class alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import CodeType
from typing import Any


def describe(thing: Any) -> Any:
    """A setting as plain JSON data."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (list, tuple)):
        return [describe(item) for item in thing]
    if isinstance(thing, dict):
        return {str(key): describe(value) for key, value in sorted(thing.items(), key=lambda item: str(item[0]))}
    if hasattr(thing, "fingerprint"):
        return {"kind": type(thing).__name__, "digest": thing.fingerprint}
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **{f.name: describe(getattr(thing, f.name)) for f in fields(thing)}}
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        enclosed = [describe(cell.cell_contents) for cell in thing.__closure__ or ()]
        digest = hashlib.sha256(repr((_code_parts(code), thing.__defaults__, enclosed)).encode()).hexdigest()
        return {"kind": thing.__qualname__, "digest": digest}
    if isinstance(thing, type):
        return {"kind": thing.__qualname__}
    plain = {key: describe(value) for key, value in getattr(thing, "__dict__", {}).items()}
    return {"kind": type(thing).__qualname__, **plain}


def first_difference(found: Any, wanted: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two descriptions differ, leaf by leaf: the place, what was found there and what was wanted."""
    if isinstance(found, dict) and isinstance(wanted, dict) and found.get("kind") == wanted.get("kind"):
        for key in sorted(found.keys() | wanted.keys()):
            yield from first_difference(found.get(key), wanted.get(key), f"{path}.{key}" if path else key)
    elif found != wanted:
        yield path, _short(found), _short(wanted)


def _short(value: Any) -> Any:
    """A description that fits a line: a kind stands for the whole of it."""
    return value["kind"] if isinstance(value, dict) and "kind" in value else value


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    constants = [_code_parts(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return code.co_code.hex(), code.co_names, tuple(constants)
