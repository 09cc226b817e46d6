"""Settings as plain data, and folders that keep them, so that a run can go on where an earlier one stopped.

In `describe`, a dataclass is its fields; a function is a digest of its code and of what it closes over; any other
object is its attributes. What cannot be told from another by any of these is told by its class alone.

A `RunFolder` belongs to the run whose settings it holds: the same settings go on there, others are refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from curious_explorer.storage import Format, holds_files, read_json, write_json

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)
Plain = dict[str, Any]


def describe(thing: Any) -> Any:
    """A setting as plain JSON data."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (list, tuple)):
        return [describe(item) for item in thing]
    if isinstance(thing, (set, frozenset)):  # in an order that is the same in every process
        return sorted((describe(item) for item in thing), key=repr)
    if isinstance(thing, dict):
        return {str(key): describe(value) for key, value in sorted(thing.items(), key=lambda item: str(item[0]))}
    if callable(getattr(thing, "settings", None)) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **describe(thing.settings())}
    if hasattr(thing, "fingerprint"):
        return {"kind": type(thing).__name__, "digest": thing.fingerprint}
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"kind": type(thing).__name__, **{f.name: describe(getattr(thing, f.name)) for f in fields(thing)}}
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        enclosed = [describe(cell.cell_contents) for cell in thing.__closure__ or ()]
        parts = (_code_parts(code), describe(thing.__defaults__), describe(thing.__kwdefaults__), enclosed)
        digest = hashlib.sha256(repr(parts).encode()).hexdigest()
        return {"kind": thing.__qualname__, "digest": digest}
    if isinstance(thing, type):
        return {"kind": thing.__qualname__}
    plain = {key: describe(value) for key, value in getattr(thing, "__dict__", {}).items()}
    return {"kind": type(thing).__qualname__, **plain}


class Difference(NamedTuple):
    """Where two descriptions first differ, and what stands there in each, shortened to fit a line."""

    place: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.place} is {self.found} there and {self.wanted} here"


def first_difference(found: Any, wanted: Any, place: str = "") -> Difference | None:
    """Where two descriptions first differ, in the order of ``wanted``; None if they are the same."""
    if isinstance(found, dict) and isinstance(wanted, dict) and found.get("kind") == wanted.get("kind"):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            below = f"{place}.{key}" if place else str(key)
            difference = first_difference(found.get(key), wanted.get(key), below)
            if difference is not None:
                return difference
        return None
    return None if found == wanted else Difference(place, _short(found), _short(wanted))


def _short(value: Any) -> str:
    """A description that fits a line: a kind stands for the whole of it."""
    text = repr(value["kind"] if isinstance(value, dict) and "kind" in value else value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    return code.co_code.hex(), code.co_names, tuple(map(_constant, code.co_consts))


def _constant(item: Any) -> Any:
    """A constant of a function's code, written the same in every process."""
    if isinstance(item, CodeType):
        return _code_parts(item)
    if isinstance(item, tuple):
        return tuple(map(_constant, item))
    if isinstance(item, frozenset):  # its own order depends on the hashes of strings, which differ between processes
        return "set", sorted(map(repr, map(_constant, item)))
    return repr(item)


@dataclass(frozen=True)
class RunFolder:
    """A folder that belongs to one run, or to none yet."""

    path: Path
    file: str
    """The file that holds the settings."""
    format: Format
    what: str
    """What the folder holds, in a word for errors: study, comparison, exploration, training."""
    error: type[ValueError]
    advice: str = "choose another folder"
    """What to do about a folder that is refused."""

    @property
    def claimed(self) -> bool:
        """Whether it belongs to a run already."""
        return (self.path / self.file).exists()

    def settings(self) -> Plain:
        """The settings that it holds."""
        path = self.path / self.file
        try:
            settings = read_json(path, self.format, {"settings"})["settings"]
            if not isinstance(settings, dict):
                raise ValueError(f"settings is {settings!r}, expected an object")
            return settings
        except (ValueError, OSError, RecursionError) as error:
            raise self.error(f"{path} cannot be read: {error}; {self.advice}") from error

    def claim(
        self, settings: Plain, *, resume: bool = True, growing: tuple[str, ...] = (), replace: bool = False
    ) -> None:
        """Make the folder this run's own, or refuse it; what it holds of another is never overwritten or removed.

        Args:
            settings: what the results depend on, as plain data.
            resume: whether it may belong to a run with these settings already.
            growing: settings that may differ as long as one goes on where the other ends: numbers, or lists of which
                one begins with the other. The larger is kept.
            replace: whether other settings may take the place of those there, because nothing was finished with them.
        """
        if self.path.exists() and not self.path.is_dir():
            raise self.error(f"{self.path} is a file, expected a folder; {self.advice}")
        wanted: Plain = json.loads(json.dumps(settings, allow_nan=False))
        if self.claimed:
            if not resume:
                raise self.error(
                    f"{self.path} holds {_with_article(self.what)} already; add --resume to go on with it, "
                    f"or {self.advice}"
                )
            found = self.settings()
            kept = {name: _larger(found.get(name), wanted[name]) for name in growing}
            same = {name: wanted[name] for name, larger in kept.items() if larger is not None}
            difference = None if replace else first_difference(found | same, wanted)
            if difference is not None:
                raise self.error(
                    f"{self.path} holds {_with_article(self.what)} with other settings: {difference}; {self.advice}, "
                    "or the settings it was made with"
                )
            for leftover in self.path.rglob(".*.tmp"):
                leftover.unlink(missing_ok=True)  # half-written when an earlier process was killed
            wanted |= {name: kept[name] for name in same}
            if found == wanted:
                return
        elif self.path.exists() and holds_files(self.path):  # a process may be killed before it writes the settings
            raise self.error(f"{self.path} is not empty and holds no {self.what}; {self.advice}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(self.path / self.file, self.format, {"settings": wanted})
        except OSError as error:
            if error.errno in DISK_IS_FULL:
                raise
            raise self.error(
                f"{self.path} cannot be written ({error.strerror or error}); {self.advice}, or change its permissions"
            ) from error


def _larger(found: Any, wanted: Any) -> Any:
    """The larger of two numbers, or the longer of two lists that begin alike; None if one does not go on the other."""
    if isinstance(found, list) and isinstance(wanted, list):
        longer = max(found, wanted, key=len)
        return longer if all(a == b for a, b in zip(found, wanted, strict=False)) else None
    return max(found, wanted) if type(found) is type(wanted) is int else None


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
